// SPDX-License-Identifier: MIT
#include "experiments/remote/far_end.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <jansson.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/guard.h"
#include "base/link.h"
#include "base/log_file.h"
#include "base/options.h"
#include "base/process.h"
#include "base/text.h"
#include "base/units.h"
#include "experiments/common/program_path.h"
#include "experiments/keeper/keeper.h"
#include "experiments/keeper/keeper_journal.h"
#include "experiments/remote/deployment.h"
#include "loadgen/agents/agent_command.h"

// --- --keeper: what this machine is --------------------------------------------------------------

static int address_of_card(const char *nic, char *address, struct error *err)
{
    struct ifaddrs *all = NULL;
    bool found = false;
    if (getifaddrs(&all) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot list the network cards");
    for (const struct ifaddrs *one = all; one && !found; one = one->ifa_next) {
        if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET ||
            strcmp(one->ifa_name, nic) != 0)
            continue;
        const struct sockaddr_in *inet = (const void *)one->ifa_addr;
        found = inet_ntop(AF_INET, &inet->sin_addr, address, INET_ADDRSTRLEN) != NULL;
    }
    freeifaddrs(all);
    return found ? 0
                 : error_set(err, ERROR_FAILED, "there is no network card %s with an IPv4 address",
                             nic);
}

// sshd(8): SSH_CONNECTION is "client-address client-port server-address server-port".
static int address_of_ssh(char *address, struct error *err)
{
    const char *connection = getenv("SSH_CONNECTION");
    struct in_addr ignored;
    address[0] = '\0';
    if (connection)
        sscanf(connection, "%*s %*s %15s", address);
    return inet_pton(AF_INET, address, &ignored) == 1
               ? 0
               : error_set(err, ERROR_FAILED,
                           "ssh reached it over no IPv4 address (%s); name its card: `nic: ...`",
                           connection ? connection : "no SSH_CONNECTION");
}

static int write_facts(const char *nic, char text[KEEPER_TEXT_BYTES], struct error *err)
{
    char address[INET_ADDRSTRLEN], cores[200], boot_id[40], directory[4096];
    struct utsname system;
    cpu_set_t mine;
    int result = *nic ? address_of_card(nic, address, err) : address_of_ssh(address, err);
    if (result == 0)
        result = program_path_self(directory, sizeof directory, err);
    if (result < 0)
        return result;
    *strrchr(directory, '/') = '\0';
    CPU_ZERO(&mine);
    sched_getaffinity(0, sizeof mine, &mine);
    uname(&system);
    log_boot_id(boot_id);
    json_t *facts = json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:i}", "uid", (int)geteuid(), "cores",
                              units_format_cores(&mine, cores, sizeof cores), "address", address,
                              "directory", directory, "boot_id", boot_id, "kernel", system.release,
                              "stale_journals", (int)keeper_journals_stale());
    size_t bytes = json_dumpb(facts, text, KEEPER_TEXT_BYTES - 1, JSON_COMPACT);
    json_decref(facts);
    if (bytes == 0 || bytes >= KEEPER_TEXT_BYTES)
        return error_set(err, ERROR_FAILED, "what there is to say of this machine is too long");
    text[bytes] = '\0';
    return 0;
}

// --- --keeper: serving ---------------------------------------------------------------------------

static bool read_request(struct keeper_request *request)
{
    size_t have = 0;
    while (have < sizeof *request) {
        ssize_t got = read(STDIN_FILENO, (char *)request + have, sizeof *request - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        have += (size_t)got;
    }
    request->path[KEEPER_TEXT_BYTES - 1] = request->text[KEEPER_TEXT_BYTES - 1] = '\0';
    return true;
}

static int answer_request(struct keeper *keeper, const struct keeper_request *request,
                          struct keeper_answer *answer, struct error *err)
{
    *answer = (struct keeper_answer){.number = 0};
    if (request->verb == VERB_CLOCK) {
        snprintf(answer->text, sizeof answer->text, "%lld", (long long)monotonic_ns());
    } else if (request->verb == VERB_FACTS) {
        if (write_facts(request->path, answer->text, err) < 0) {
            answer->number = EINVAL;
            snprintf(answer->text, sizeof answer->text, "%.500s", err->text);
        }
    } else {
        return keeper_ask(keeper, request, answer, err);
    }
    return 0;
}

static int send_answer(const struct keeper_answer *answer, struct error *err)
{
    return write(STDOUT_FILENO, answer, sizeof *answer) == sizeof *answer
               ? 0
               : error_set_errno(err, ERROR_FAILED, "cannot answer");
}

// Has this program's own directory, which the bootstrap made for this run, removed in the end.
static int adopt_own_directory(struct keeper *keeper, struct error *err)
{
    char directory[4096];
    struct stat status;
    int result = program_path_self(directory, sizeof directory, err);
    if (result < 0)
        return result;
    *strrchr(directory, '/') = '\0';
    const char *name = strrchr(directory, '/');
    if (!name || strncmp(name, "/taillight-", 11) != 0 || stat(directory, &status) < 0 ||
        status.st_uid != geteuid() || (status.st_mode & 0777) != 0700)
        return error_set(err, ERROR_INPUT,
                         "%s is no directory made for one run; this is started by other commands",
                         directory);
    result = keeper_adopt_directory(keeper, directory, err);
    char *end = directory + strlen(directory);
    snprintf(end, sizeof directory - (size_t)(end - directory), "/" DEPLOYMENT_ADOPTED);
    int fd = result < 0 ? -1 : open(directory, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) // else whoever made the directory removes it, too
        close(fd);
    return result;
}

// Serves until VERB_END or the end of stdin.
static int keeper_service_run(struct error *err)
{
    struct keeper keeper;
    struct keeper_request request = {.verb = VERB_READY};
    struct keeper_answer answer = {.number = 0};
    struct error ignored;
    int result = keeper_start(&keeper, false, err);
    if (result < 0)
        return result;
    keeper.serves_far = true;
    result = adopt_own_directory(&keeper, err);
    if (result == 0)
        result = send_answer(&answer, err);
    while (result == 0 && read_request(&request)) {
        result = answer_request(&keeper, &request, &answer, err);
        if (result == 0)
            result = send_answer(&answer, err);
        if (request.verb == VERB_END)
            break;
    }
    if (request.verb == VERB_END)
        keeper_end(&keeper, &ignored);
    else
        keeper_abandon(&keeper); // the run has died
    return result;
}

enum { WORDS_MAX = 512, COMPRESS_FROM_BYTES = 512, END_GRACE_MS = 200, WRITE_GRACE_MS = 4000 };
enum { FIRST_WORD_MS = 30000 }; // which says how long the link may be silent

struct far_end {
    struct link link; // to the near end
    struct process process;
    struct guard guard;
    pid_t group;    // of the program
    int complaints; // read end of its stderr
    int ended_fd;   // pidfd of the program
    ZSTD_CCtx *compressor;
    char chunk[FAR_CHUNK_BYTES];
    char packed[1 + FAR_CHUNK_BYTES + FAR_CHUNK_BYTES / 128 + 1024];
};

// --- starting ------------------------------------------------------------------------------------

static int take_words(const json_t *list, const char **words, struct error *err)
{
    size_t count = json_array_size(list);
    if (count > WORDS_MAX - 1)
        return error_set(err, ERROR_INPUT, "a command of %s words: at most %d are taken",
                         TEXT_COUNT(count), WORDS_MAX - 1);
    for (size_t i = 0; i < count; i++) {
        words[i] = json_string_value(json_array_get(list, i));
        if (!words[i])
            return error_set(err, ERROR_INPUT, "word %zu of a command is no text", i);
    }
    words[count] = NULL;
    return 0;
}

// Moves this process off the server's cores, when there are others.
static void leave_server_cores(const char *server_cores)
{
    cpu_set_t here, taken, others;
    struct error ignored;
    if (!server_cores || units_parse_cores(server_cores, &taken, &ignored) < 0 ||
        sched_getaffinity(0, sizeof here, &here) < 0)
        return;
    CPU_AND(&taken, &taken, &here);
    CPU_XOR(&others, &here, &taken);
    if (CPU_COUNT(&others))
        sched_setaffinity(0, sizeof others, &others);
}

// Adds the folders of daemons, which sessions without a login do not have on their PATH.
static void extend_path(void)
{
    char path[4200];
    const char *old = getenv("PATH");
    snprintf(path, sizeof path, "%.4000s:/usr/local/sbin:/usr/sbin:/sbin",
             old ? old : "/usr/local/bin:/usr/bin:/bin");
    setenv("PATH", path, 1);
}

static void kill_group(const void *context)
{
    kill(-*(const pid_t *)context, SIGKILL);
}

static int start_program(struct far_end *end, const json_t *start, struct error *err)
{
    const char *argv[WORDS_MAX], *environment[WORDS_MAX], *cores = NULL, *server_cores = NULL;
    cpu_set_t chosen, here;
    int pipe_fds[2];
    json_error_t where;
    const json_t *words, *variables;
    bool discard = json_is_true(json_object_get(start, "discard"));
    char directory[4096];
    struct process_place place = {.pipe_input = true,
                                  .pipe_output = !discard,
                                  .discard_output = discard,
                                  .cgroup = json_string_value(json_object_get(start, "cgroup"))};
    if (json_unpack_ex((json_t *)(uintptr_t)start, &where, 0, "{s:o, s:o, s:i, s:s, s:s}", "argv",
                       &words, "environment", &variables, "nice", &place.nice, "cores", &cores,
                       "server_cores", &server_cores) < 0)
        return error_set(err, ERROR_INPUT, "what is to be started cannot be: %s", where.text);
    if (take_words(words, argv, err) < 0 || take_words(variables, environment, err) < 0)
        return -ERROR_INPUT;
    if (!argv[0])
        return error_set(err, ERROR_INPUT, "nothing is to be started");
    if (sched_getaffinity(0, sizeof here, &here) == 0)
        place.cores = &here; // the cores of this process before it leaves the server's
    if (*cores && units_parse_cores(cores, &chosen, err) < 0)
        return -ERROR_INPUT;
    if (*cores)
        place.cores = &chosen;
    if (json_is_true(json_object_get(start, "inside"))) {
        if (program_path_self(directory, sizeof directory, err) < 0)
            return -ERROR_FAILED;
        *strrchr(directory, '/') = '\0';
        place.directory = directory;
    }
    leave_server_cores(server_cores);
    extend_path();
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return error_set_errno(err, ERROR_FAILED, "no pipe");
    place.environment = environment;
    place.log_fd = pipe_fds[1];
    int result = process_start(&end->process, argv, &place, err);
    close(pipe_fds[1]);
    end->complaints = pipe_fds[0];
    if (result < 0)
        return result;
    end->group = end->process.pid;
    end->ended_fd = (int)syscall(SYS_pidfd_open, end->process.pid, 0);
    if (end->ended_fd < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot watch the program");
    return guard_begin(&end->guard, kill_group, &end->group, -1, err);
}

// --- while it runs -------------------------------------------------------------------------------

// Writes bytes to the program's stdin. A program that has closed it is no failure of the link. If
// it does not read for as long as the link may be silent, the alarm ends this process, and its
// guard (far_end_run) kills the program.
static int take_input(struct far_end *end, const struct frame *frame)
{
    size_t done = 0;
    alarm((unsigned)end->link.settings.silence_ms / 1000 + 1);
    while (end->process.input >= 0 && done < frame->byte_count) {
        ssize_t took = write(end->process.input, frame->bytes + done, frame->byte_count - done);
        if (took < 0 && errno != EINTR)
            break;
        done += took > 0 ? (size_t)took : 0;
    }
    alarm(0);
    return 0;
}

static int start_as_told(struct far_end *end, const json_t *start, struct error *err)
{
    struct error ignored;
    int silence_ms = (int)json_integer_value(json_object_get(start, "silence_ms"));
    if (silence_ms > 0)
        end->link.settings.silence_ms = silence_ms;
    int result = start_program(end, start, err);
    if (result < 0)
        link_send_new(&end->link, json_pack("{s:s, s:s}", "type", "failed", "text", err->text),
                      &ignored);
    return result;
}

static int take_frame(void *context, const struct frame *frame, struct error *err)
{
    struct far_end *end = context;
    if (end->process.pid <= 0) // the first frame says what to start
        return start_as_told(end, frame->json, err);
    if (frame->kind == FRAME_BYTES)
        return take_input(end, frame);
    const char *type = json_string_value(json_object_get(frame->json, "type"));
    if (type && strcmp(type, "eof") == 0) {
        if (end->process.input >= 0)
            close(end->process.input);
        end->process.input = -1;
    } else if (type && strcmp(type, "signal") == 0) {
        kill(end->process.pid, (int)json_integer_value(json_object_get(frame->json, "number")));
    } else {
        return error_set(err, ERROR_INPUT, "the controller said \"%.40s\" out of turn",
                         type ? type : "");
    }
    return 0;
}

// Sends what has been printed. Returns 1 while there may be more, 0 at the end.
static int pass_output(struct far_end *end, int fd, int which, struct error *err)
{
    ssize_t got = read(fd, end->chunk, sizeof end->chunk);
    if (got < 0 && errno == EINTR)
        return 1;
    if (got <= 0)
        return 0;
    size_t bytes = (size_t)got;
    end->packed[0] = (char)which;
    size_t packed = bytes < COMPRESS_FROM_BYTES
                        ? SIZE_MAX
                        : ZSTD_compressCCtx(end->compressor, end->packed + 1,
                                            sizeof end->packed - 1, end->chunk, bytes, 1);
    if (ZSTD_isError(packed) || packed >= bytes) {
        memcpy(end->packed + 1, end->chunk, bytes);
        packed = bytes;
    } else {
        end->packed[0] = (char)(which | FAR_COMPRESSED);
    }
    int result = link_send_bytes(&end->link, end->packed, packed + 1, err);
    return result < 0 ? result : 1;
}

static int pass_ready(struct far_end *end, struct pollfd *ready, struct error *err)
{
    int *const fds[] = {&end->process.output, &end->complaints};
    for (int i = 0; i < 2; i++) {
        if (!ready[i].revents)
            continue;
        int result = pass_output(end, *fds[i], i ? FAR_STDERR : FAR_STDOUT, err);
        if (result < 0)
            return result;
        if (result == 0) {
            close(*fds[i]);
            *fds[i] = -1;
        }
    }
    return 0;
}

// Relays until the program has ended and everything it printed is sent. More is read from it only
// when everything before has been sent. Processes that it leaves behind may hold its pipes open:
// after its end they are read for END_GRACE_MS at most.
static int relay_program(struct far_end *end, struct error *err)
{
    struct link *const link = &end->link;
    int64_t until_ms = INT64_MAX;
    while (link->state == LINK_UP) {
        bool flushed = link_is_flushed(link), ended = until_ms != INT64_MAX;
        struct pollfd mine[] = {{.fd = flushed ? end->process.output : -1, .events = POLLIN},
                                {.fd = flushed ? end->complaints : -1, .events = POLLIN},
                                {.fd = ended ? -1 : end->ended_fd, .events = POLLIN}};
        int64_t now = monotonic_ms();
        if (ended && !flushed)
            until_ms = now + END_GRACE_MS;
        if (ended && flushed &&
            ((end->process.output < 0 && end->complaints < 0) || now >= until_ms))
            return 0;
        link_poll(&link, 1, mine, 3, ended ? (int)(until_ms - now) : -1);
        int result = pass_ready(end, mine, err);
        if (result < 0)
            return result;
        if (mine[2].revents)
            until_ms = monotonic_ms() + END_GRACE_MS;
    }
    *err = link->err;
    return -(int)err->kind;
}

static int run_far_end(struct error *err)
{
    int status = 0;
    struct far_end *end = calloc(1, sizeof *end);
    const struct link_settings settings = {.peer = "the controller",
                                           .take = take_frame,
                                           .context = end,
                                           .first_word_ms = FIRST_WORD_MS};
    if (!end || !(end->compressor = ZSTD_createCCtx())) {
        free(end);
        return error_set(err, ERROR_FAILED, "out of memory");
    }
    end->process = (struct process){.input = -1, .output = -1};
    end->complaints = end->ended_fd = -1;
    link_init(&end->link, STDIN_FILENO, STDOUT_FILENO, &settings);
    json_t *here = json_object(); // a heartbeat: the link is up
    int result = link_send_new(&end->link, here, err);
    if (result == 0)
        result = relay_program(end, err);
    if (result == 0)
        result =
            process_wait(&end->process, 0, &status, err) > 0
                ? link_send_new(&end->link,
                                json_pack("{s:s, s:i}", "type", "ended", "status", status), err)
                : -ERROR_FAILED;
    if (end->link.state == LINK_UP || end->link.state == LINK_FAILED) // somebody may still read it
        link_flush(&end->link, end->link.settings.silence_ms);
    // Of a link that broke the program writes what it has until then.
    if (result < 0 && end->process.pid > 0)
        process_stop(&end->process, WRITE_GRACE_MS);
    guard_end(&end->guard); // kills what is left of the group
    process_stop(&end->process, 0);
    link_fini(&end->link);
    ZSTD_freeCCtx(end->compressor);
    free(end);
    return result;
}

// --- the command ---------------------------------------------------------------------------------

struct role_options {
    bool start, keeper;
};

static const struct option_spec options[] = {
    OPTION_FLAG("start", 0, struct role_options, start,
                "start the program that comes with the first message, and be its link"),
    OPTION_FLAG("keeper", 0, struct role_options, keeper,
                "make the changes that a run asks for on this host, and undo them at the end"),
    OPTION_END,
};
static const struct command_usage usage = {
    .name = "agent",
    .arguments = "[--start | --keeper]",
    .summary = "The far end of a link (internal); without an option, a load agent.",
    .details = "Started by `taillight run`, `load --agent` and `doctor HOST`; nobody needs to type "
               "it. It ends when "
               "its stdin does, or when nothing has come for 5 s.",
    .options = options,
};

int agent_roles_command(int argc, char **argv)
{
    struct role_options role = {false, false};
    struct error err = {0};
    int positional, result = 0;
    bool help;
    if (argc == 1)
        return agent_command(argc, argv);
    if (options_parse(&usage, argc, argv, &role, &positional, &help, &err) < 0)
        return error_report(&err);
    if (help)
        return 0;
    if (positional > 0 || role.start == role.keeper || isatty(STDIN_FILENO))
        result = error_set(&err, ERROR_INPUT, "agent is started by other commands, not typed");
    else
        result = role.start ? run_far_end(&err) : keeper_service_run(&err);
    return result < 0 ? error_report(&err) : 0;
}
