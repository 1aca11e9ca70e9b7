// SPDX-License-Identifier: MIT
#include "experiments/remote/far_end.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "base/frame.h"
#include "base/guard.h"
#include "base/process.h"
#include "base/units.h"
#include "experiments/common/program_path.h"

enum { WORDS_MAX = 512, COMPRESS_FROM_BYTES = 512, END_GRACE_MS = 200 };

struct far_end {
    struct frame_reader reader;
    struct process process;
    struct guard guard;
    pid_t group;    // of the program
    int complaints; // read end of its stderr
    int ended_fd;   // pidfd of the program
    ZSTD_CCtx *compressor;
    bool link_ended;
    char piece[FAR_PIECE_BYTES];
    char packed[1 + FAR_PIECE_BYTES + FAR_PIECE_BYTES / 128 + 1024];
};

// --- starting ------------------------------------------------------------------------------------

// The next frame, waited for.
static int wait_frame(struct far_end *end, struct frame *frame, struct error *err)
{
    for (;;) {
        int result = frame_reader_next(&end->reader, frame, err);
        if (result)
            return result < 0 ? result : 0;
        bool ended;
        result = frame_reader_fill(&end->reader, STDIN_FILENO, &ended, err);
        if (result < 0)
            return result;
        if (ended)
            return error_set(err, ERROR_FAILED, "the controller is gone");
    }
}

static int take_words(const json_t *list, const char **words, struct error *err)
{
    size_t count = json_array_size(list);
    if (count > WORDS_MAX - 1)
        return error_set(err, ERROR_INPUT, "a command of %zu words: at most %d are taken", count,
                         WORDS_MAX - 1);
    for (size_t i = 0; i < count; i++) {
        words[i] = json_string_value(json_array_get(list, i));
        if (!words[i])
            return error_set(err, ERROR_INPUT, "word %zu of a command is no text", i);
    }
    words[count] = NULL;
    return 0;
}

// Moves this process off the server's cores, when there are others.
static void keep_off(const char *server_cores)
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

// Daemons live where a session that is not a login's does not look.
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
        place.cores = &here; // as this process came, before it keeps off
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
    keep_off(server_cores);
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

static int take_input(struct far_end *end, const struct frame *frame)
{
    size_t done = 0;
    // A program that does not read any more is not a failure of the link's.
    while (end->process.input >= 0 && done < frame->byte_count) {
        ssize_t took = write(end->process.input, frame->bytes + done, frame->byte_count - done);
        if (took < 0 && errno != EINTR)
            break;
        done += took > 0 ? (size_t)took : 0;
    }
    return 0;
}

static int take_frame(struct far_end *end, const struct frame *frame, struct error *err)
{
    if (frame->kind == FRAME_BYTES)
        return take_input(end, frame);
    const char *type = json_string_value(json_object_get(frame->json, "type"));
    if (!type)
        return 0; // a heartbeat
    if (strcmp(type, "eof") == 0) {
        if (end->process.input >= 0)
            close(end->process.input);
        end->process.input = -1;
    } else if (strcmp(type, "signal") == 0 && end->process.pid > 0) {
        kill(end->process.pid, (int)json_integer_value(json_object_get(frame->json, "number")));
    } else {
        return error_set(err, ERROR_INPUT, "the controller said \"%.40s\" out of turn", type);
    }
    return 0;
}

// All that have been read.
static int take_frames(struct far_end *end, struct error *err)
{
    struct frame frame;
    int result;
    while ((result = frame_reader_next(&end->reader, &frame, err)) == 1) {
        int taken = take_frame(end, &frame, err);
        json_decref(frame.json);
        if (taken < 0)
            return taken;
    }
    return result;
}

static int listen_to_link(struct far_end *end, struct error *err)
{
    int result = frame_reader_fill(&end->reader, STDIN_FILENO, &end->link_ended, err);
    alarm(FAR_SILENCE_S + 1); // silence from now on is death
    return result > 0 ? take_frames(end, err) : result;
}

// Passes on what there is. Returns 1 while there may be more, 0 at the end.
static int pass_output(struct far_end *end, int fd, int which, struct error *err)
{
    ssize_t got = read(fd, end->piece, sizeof end->piece);
    if (got < 0 && errno == EINTR)
        return 1;
    if (got <= 0)
        return 0;
    size_t bytes = (size_t)got;
    end->packed[0] = (char)which;
    size_t packed = bytes < COMPRESS_FROM_BYTES
                        ? SIZE_MAX
                        : ZSTD_compressCCtx(end->compressor, end->packed + 1,
                                            sizeof end->packed - 1, end->piece, bytes, 1);
    if (ZSTD_isError(packed) || packed >= bytes) {
        memcpy(end->packed + 1, end->piece, bytes);
        packed = bytes;
    } else {
        end->packed[0] = (char)(which | FAR_COMPRESSED);
    }
    int result = frame_write_bytes(STDOUT_FILENO, end->packed, packed + 1, err);
    return result < 0 ? result : 1;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
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

// Until the program has ended and all it printed is sent. What it leaves behind may hold its pipes
// open: after its end they are read for END_GRACE_MS at most.
static int relay(struct far_end *end, struct error *err)
{
    int64_t beat_ms = now_ms(), until_ms = INT64_MAX;
    int result = take_frames(end, err); // what came with the first one
    while (result == 0 && !end->link_ended) {
        struct pollfd ready[] = {
            {.fd = end->process.output, .events = POLLIN},
            {.fd = end->complaints, .events = POLLIN},
            {.fd = STDIN_FILENO, .events = POLLIN},
            {.fd = until_ms == INT64_MAX ? end->ended_fd : -1, .events = POLLIN}};
        bool drained = end->process.output < 0 && end->complaints < 0;
        int64_t now = now_ms();
        if (until_ms != INT64_MAX && (drained || now >= until_ms))
            return 0;
        int timeout = until_ms == INT64_MAX ? FAR_HEARTBEAT_MS / 2 : (int)(until_ms - now);
        int polled = poll(ready, 4, timeout);
        if (now_ms() - beat_ms >= FAR_HEARTBEAT_MS) {
            beat_ms = now_ms();
            result = frame_write_heartbeat(STDOUT_FILENO, err);
        }
        if (polled <= 0 || result < 0)
            continue;
        result = pass_ready(end, ready, err);
        if (result == 0 && ready[2].revents)
            result = listen_to_link(end, err);
        if (ready[3].revents)
            until_ms = now_ms() + END_GRACE_MS;
    }
    return result < 0 ? result : error_set(err, ERROR_FAILED, "the controller is gone");
}

static int send_json(json_t *message, struct error *err)
{
    int result = frame_write_json(STDOUT_FILENO, message, err);
    json_decref(message);
    return result;
}

static int start_as_told(struct far_end *end, struct error *err)
{
    struct error ignored;
    struct frame frame = {.json = NULL};
    int result = wait_frame(end, &frame, err);
    if (result < 0)
        return result;
    result = start_program(end, frame.json, err);
    json_decref(frame.json);
    if (result < 0)
        send_json(json_pack("{s:s, s:s}", "type", "failed", "text", err->text), &ignored);
    return result;
}

int far_end_run(struct error *err)
{
    int status = 0;
    struct far_end *end = calloc(1, sizeof *end);
    if (!end || !(end->compressor = ZSTD_createCCtx())) {
        free(end);
        return error_set(err, ERROR_FAILED, "out of memory");
    }
    end->process = (struct process){.input = -1, .output = -1};
    end->complaints = end->ended_fd = -1;
    alarm(FAR_SILENCE_S + 1);
    int result = frame_write_heartbeat(STDOUT_FILENO, err); // the link is up
    if (result == 0)
        result = start_as_told(end, err);
    if (result == 0)
        result = relay(end, err);
    if (result == 0)
        result = process_wait(&end->process, 0, &status, err) > 0
                     ? send_json(json_pack("{s:s, s:i}", "type", "ended", "status", status), err)
                     : -ERROR_FAILED;
    guard_end(&end->guard); // kills what is left of the group
    process_stop(&end->process, 0);
    frame_reader_free(&end->reader);
    ZSTD_freeCCtx(end->compressor);
    free(end);
    return result;
}
