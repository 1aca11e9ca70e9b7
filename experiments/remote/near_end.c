// SPDX-License-Identifier: MIT
#include "experiments/remote/near_end.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "base/clock.h"
#include "base/json_numbers.h"
#include "base/link.h"
#include "base/options.h"
#include "base/process.h"
#include "base/units.h"
#include "experiments/common/supervisor.h"
#include "experiments/remote/deployment.h"
#include "experiments/remote/far_end.h"
#include "experiments/remote/link_file.h"

enum {
    DEPLOY_GRACE_MS = 30000, // from the last byte of the program sent to its first frame
    SSH_GRACE_MS = 1000,
    DYING_MS = 200,         // for a parent's last thread
    SHARED_GRACE_MS = 2000, // for what others still send over a connection whose run has died
    LAST_WORDS_MS = 500,
    INPUT_BYTES = 32 << 10,
    COMPLAINTS_MOST = 64 << 20, // what the other machine may write into a log of this one
    WORDS_MOST = 16 << 20,      // the same of a document
};

struct link_options {
    bool deploy, discard, inside;
    cpu_set_t cores;
    struct option_list set;
    const char *into, *from, *nice, *cgroup, *last_words;
};

static const struct option_spec options[] = {
    OPTION_FLAG("deploy", 0, struct link_options, deploy,
                "copy this program there first, and be the connection that others share"),
    OPTION_FLAG("discard", 0, struct link_options, discard,
                "what it prints on stdout is thrown away there, not sent"),
    OPTION_FLAG("inside", 0, struct link_options, inside,
                "it works in the run's directory there, not in the user's own"),
    OPTION_CORES("cores", 0, "LIST", struct link_options, cores, "where the program runs there"),
    OPTION_STRING("nice", 0, "N", struct link_options, nice, "its priority there, -20 to 19"),
    OPTION_STRING("cgroup", 0, "DIR", struct link_options, cgroup, "its control group there"),
    OPTION_LIST("set", 0, "NAME=VALUE", struct link_options, set, "add to its environment"),
    OPTION_STRING("into", 0, "DIR", struct link_options, into,
                  "unpack the archive that it prints into this folder"),
    OPTION_STRING("from", 0, "DIR", struct link_options, from,
                  "give it an archive of this folder's files on its stdin"),
    OPTION_STRING("last-words", 0, "FILE", struct link_options, last_words,
                  "keep the JSON document that it prints last here, if nobody reads it"),
    OPTION_END,
};
static const struct command_usage usage = {
    .name = "link",
    .arguments = "FILE [options] -- PROGRAM [ARGUMENT...]",
    .summary = "Stands for a process on a host behind ssh (internal).",
    .details = "Started by `taillight run`, `load` and `doctor`; FILE, of their making, says how "
               "the host is reached.",
    .options = options,
};

struct near {
    struct link_options options;
    struct link_file file;
    const char *const *program;
    struct process ssh;
    int complaints;           // read end of ssh's stderr
    struct process tar;       // of --into and --from
    int in, out;              // what stands for the program's stdin and stdout
    pid_t parent;             // whoever started us
    bool unread;              // the reader of stdout has gone
    struct text_buffer words; // of --last-words: what was printed last
    struct link link;         // to the other end, over ssh
    ZSTD_DCtx *decompressor;
    int signals;
    bool told;      // it was told to end: whoever told it may not wait for what it prints
    bool done;      // the other end has reported the program's end
    int status;     // the program's
    char name[600]; // of the link, for errors
    char first_complaint[300], last_complaint[300];
    size_t line_used;
    char line[300];
    uint64_t complained; // bytes that went to our stderr
    char chunk[FAR_CHUNK_BYTES];
};

static void name_link(struct near *near)
{
    bool named = strcmp(near->file.host, near->file.address) != 0;
    snprintf(near->name, sizeof near->name, "the link to host %s%s%s%s", near->file.host,
             named ? " (" : "", named ? near->file.address : "", named ? ")" : "");
}

static int link_error(const struct near *near, struct error *err, const char *what)
{
    return error_set(err, ERROR_FAILED, "%s %s", near->name, what);
}

// The error for what no far end of ours sends, err->text: the wrong machine, or a shell that
// prints.
static int nonsense_error(const struct near *near, struct error *err)
{
    return error_set(err, ERROR_INPUT,
                     "%s; is it the machine that is meant? `ssh %s true` has to print nothing",
                     err->text, near->file.address);
}

// --- what ssh complains of -----------------------------------------------------------------------

static void end_line(struct near *near)
{
    near->line[near->line_used] = '\0';
    if (near->line_used && near->line[near->line_used - 1] == '\r')
        near->line[near->line_used - 1] = '\0';
    near->line_used = 0;
    if (!near->line[0])
        return;
    // On a full disk tar first reports a short write only; the line that names the reason counts.
    bool names_reason =
        strstr(near->line, strerror(ENOSPC)) && !strstr(near->first_complaint, strerror(ENOSPC));
    if (!near->first_complaint[0] || names_reason)
        snprintf(near->first_complaint, sizeof near->first_complaint, "%s", near->line);
    snprintf(near->last_complaint, sizeof near->last_complaint, "%s", near->line);
}

// Nothing that another machine prints commands this one's terminal.
static void tame_for_terminal(int fd, char *bytes, size_t count)
{
    if (!isatty(fd))
        return;
    for (size_t i = 0; i < count; i++)
        if (((unsigned char)bytes[i] < ' ' && bytes[i] != '\n' && bytes[i] != '\t') ||
            bytes[i] == 0x7f)
            bytes[i] = '?';
}

// How many of so many bytes may still go to our stderr, which is a log: another machine does not
// fill this one's disk.
static size_t complaint_room(struct near *near, size_t count)
{
    static const char more[] = "\n... and more, which is left out\n";
    uint64_t room = COMPLAINTS_MOST - near->complained;
    if (count > room && near->complained < COMPLAINTS_MOST &&
        write(STDERR_FILENO, more, sizeof more - 1) < 0)
        return 0;
    count = count < room ? count : (size_t)room;
    near->complained += count;
    return count;
}

// Copies to our stderr what ssh and the far end complain of, and remembers the first and last line.
static void take_complaints(struct near *near)
{
    char bytes[2000];
    ssize_t got = read(near->complaints, bytes, sizeof bytes);
    if (got <= 0) {
        close(near->complaints);
        near->complaints = -1;
        return;
    }
    for (ssize_t i = 0; i < got; i++) {
        if (bytes[i] == '\n')
            end_line(near);
        else if (near->line_used < sizeof near->line - 1)
            near->line[near->line_used++] = bytes[i];
    }
    tame_for_terminal(STDERR_FILENO, bytes, (size_t)got);
    size_t kept = complaint_room(near, (size_t)got);
    if (kept && write(STDERR_FILENO, bytes, kept) < 0)
        return; // our stderr is gone; the lines are remembered all the same
}

// Whether a complaint is one that an unsuitable directory causes.
static bool is_of_a_place(const char *complaint)
{
    static const int numbers[] = {EACCES, EROFS, ENOSPC, ENOENT, EDQUOT};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strstr(complaint, strerror(numbers[i])))
            return true;
    return false;
}

// The error for a link that ended before its program: ssh's last complaint, or, while it was being
// set up, the first complaint of the bootstrap.
static int ended_error(struct near *near, struct error *err)
{
    int status = 0;
    char why[700];
    struct error ignored;
    int64_t silent_ms = monotonic_ms() - near->link.heard_ms;
    struct pollfd more = {.fd = near->complaints, .events = POLLIN};
    while (near->complaints >= 0 && poll(&more, 1, LAST_WORDS_MS) > 0)
        take_complaints(near);
    end_line(near);
    bool ended = process_wait(&near->ssh, SSH_GRACE_MS, &status, &ignored) > 0;
    bool by_ssh = ended && WIFEXITED(status) && WEXITSTATUS(status) == 255;
    bool was_up = near->link.heard || !near->options.deploy;
    const char *words = by_ssh || was_up ? near->last_complaint : near->first_complaint;
    // The shared connection noticed the silence first, and its end ended this one.
    if (was_up && silent_ms >= near->file.silence_ms * 3 / 5) {
        snprintf(why, sizeof why, "is down: nothing has come over it for %lld s",
                 (long long)(silent_ms + 500) / 1000);
        return link_error(near, err, why);
    }
    bool by_place = !by_ssh && !was_up && is_of_a_place(words);
    snprintf(why, sizeof why, "%s%s%s%s%s%s", was_up ? "broke" : "could not be set up",
             *words ? ": " : "", words, by_place ? " (in " : "", by_place ? near->file.base : "",
             by_place ? " there; `directory` can be another place)" : "");
    return link_error(near, err, why);
}

// --- starting ------------------------------------------------------------------------------------

static int start_ssh(struct near *near, struct error *err)
{
    char command[400];
    const char *words[LINK_WORDS_MAX];
    int pipe_fds[2];
    if (!near->options.deploy && !near->file.directory)
        return error_set(err, ERROR_INPUT, "host %s has no directory yet", near->file.host);
    snprintf(command, sizeof command, "exec %s/taillight agent --start", near->file.directory);
    int result = link_file_words(&near->file, near->options.deploy,
                                 near->options.deploy ? deployment_bootstrap : command, words, err);
    if (result < 0)
        return result;
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return error_set_errno(err, ERROR_FAILED, "no pipe");
    const struct process_place place = {
        .pipe_input = true, .pipe_output = true, .log_fd = pipe_fds[1]};
    result = process_start(&near->ssh, words, &place, err);
    close(pipe_fds[1]);
    near->complaints = pipe_fds[0];
    return result;
}

static int send_deployment(struct near *near, struct error *err)
{
    struct deployment deployment;
    char line[400];
    int result = deployment_make(&deployment, err);
    if (result < 0) {
        deployment_free(&deployment);
        return result;
    }
    int length = snprintf(line, sizeof line, "%s %s %llu\n", near->file.base, deployment.hash,
                          (unsigned long long)deployment.blocks);
    if (write(near->ssh.input, line, (size_t)length) != length)
        result = -ERROR_FAILED;
    if (result == 0)
        result = deployment_write(&deployment, near->ssh.input, err);
    deployment_free(&deployment);
    // If the reader is gone, its complaint says why.
    return result < 0 ? ended_error(near, err) : result;
}

static json_t *words_json(const char *const *words, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        if (json_array_append_new(list, json_string(words[i])) < 0) {
            json_decref(list);
            return NULL; // out of memory, or no UTF-8
        }
    return list;
}

static json_t *start_message(const struct near *near)
{
    char cores[1024] = "";
    size_t count = 0;
    const struct link_options *o = &near->options;
    int nice = o->nice ? atoi(o->nice) : 0; // far_host.c writes a plain number
    while (near->program[count])
        count++;
    if (CPU_COUNT(&o->cores))
        units_format_cores(&o->cores, cores, sizeof cores);
    json_t *start = json_pack(
        "{s:s, s:b, s:b, s:i, s:o, s:o, s:s, s:s, s:i}", "type", "start", "discard", o->discard,
        "inside", o->inside, "nice", nice, "argv", words_json(near->program, count), "environment",
        words_json(o->set.items, o->set.count), "cores", cores, "server_cores",
        near->file.server_cores, "silence_ms", near->file.silence_ms);
    if (start && o->cgroup)
        json_object_set_new(start, "cgroup", json_string(o->cgroup));
    return start;
}

// With --into or --from, starts tar between the link and the folder.
static int start_tar(struct near *near, struct error *err)
{
    const struct link_options *o = &near->options;
    const char *const pack[] = {"tar", "-chf", "-", "-C", o->from, ".", NULL};
    const char *const unpack[] = {"tar", "-xf",   "-", "--no-same-owner", "--no-same-permissions",
                                  "-C",  o->into, NULL};
    const struct process_place place = {.pipe_input = o->into != NULL,
                                        .pipe_output = o->from != NULL};
    near->in = STDIN_FILENO;
    near->out = STDOUT_FILENO;
    if (!o->into && !o->from)
        return 0;
    int result = process_start(&near->tar, o->into ? unpack : pack, &place, err);
    if (o->into)
        near->out = near->tar.input;
    else
        near->in = near->tar.output;
    return result;
}

// --- while it runs -------------------------------------------------------------------------------

static int write_all(int fd, const char *bytes, size_t count, struct error *err)
{
    while (count) {
        ssize_t took = write(fd, bytes, count);
        if (took < 0 && errno != EINTR)
            return error_set_errno(err, ERROR_FAILED, "cannot pass on what came");
        bytes += took > 0 ? took : 0;
        count -= took > 0 ? (size_t)took : 0;
    }
    return 0;
}

// Where the last document in what was printed begins: its brace is the first of a line.
static size_t last_document(const struct text_buffer *words)
{
    for (size_t at = words->count; at-- > 1;)
        if (words->items[at] == '{' && words->items[at - 1] == '\n')
            return at;
    return 0;
}

// Appends what was printed; of more than a document has, what is before the last is dropped.
static int remember_words(struct near *near, size_t count, struct error *err)
{
    struct text_buffer *words = &near->words;
    if (words->count + count > WORDS_MOST) {
        size_t drop = last_document(words);
        words->count -= drop;
        memmove(words->items, words->items + drop, words->count);
    }
    if (words->count + count > WORDS_MOST)
        return error_set(err, ERROR_INPUT, "a document of more than %d bytes came", WORDS_MOST);
    if (array_reserve(words, words->count + count) < 0)
        return error_set(err, ERROR_FAILED, "out of memory");
    memcpy(words->items + words->count, near->chunk, count);
    words->count += count;
    return 0;
}

// Passes on what the program has printed, near->chunk.
static int pass_output(struct near *near, size_t count, struct error *err)
{
    int result = near->options.last_words ? remember_words(near, count, err) : 0;
    if (result < 0 || near->unread)
        return result;
    result = write_all(near->out, near->chunk, count, err);
    near->unread = result < 0 && errno == EPIPE && near->options.last_words;
    return near->unread ? 0 : result;
}

// The program has ended, and whoever wanted its document has died before, or ends everything. Who
// reads it after all writes the same.
static int keep_last_words(struct near *near, struct error *err)
{
    size_t begin = last_document(&near->words);
    const bool may_be_read = !near->unread && getppid() == near->parent;
    if (may_be_read && !near->told)
        return 0;
    json_t *document = near->words.count ? json_loadb(near->words.items + begin,
                                                      near->words.count - begin, 0, NULL)
                                         : NULL;
    if (!document)
        return may_be_read ? 0
                           : error_set(err, ERROR_FAILED,
                                       "what host %s printed last is no document", near->file.host);
    int result = json_write(document, JSON_INDENT(2), near->options.last_words, err);
    json_decref(document);
    return result;
}

static int take_bytes(struct near *near, const struct frame *frame, struct error *err)
{
    if (frame->byte_count < 1)
        return error_set(err, ERROR_INPUT, "bytes of nothing came");
    unsigned char which = (unsigned char)frame->bytes[0];
    unsigned stream = which & (unsigned char)~FAR_COMPRESSED;
    const char *from = frame->bytes + 1;
    size_t count = frame->byte_count - 1;
    if ((stream != FAR_STDOUT && stream != FAR_STDERR) ||
        (!(which & FAR_COMPRESSED) && count > sizeof near->chunk))
        return error_set(err, ERROR_INPUT, "%zu bytes of nothing known came", count);
    if (!(which & FAR_COMPRESSED))
        memcpy(near->chunk, from, count);
    else
        count =
            ZSTD_decompressDCtx(near->decompressor, near->chunk, sizeof near->chunk, from, count);
    if (ZSTD_isError(count))
        return error_set(err, ERROR_INPUT, "what came cannot be unpacked: %s",
                         ZSTD_getErrorName(count));
    int to = stream == FAR_STDERR ? STDERR_FILENO : near->out;
    tame_for_terminal(to, near->chunk, count);
    return stream == FAR_STDERR ? write_all(to, near->chunk, complaint_room(near, count), err)
                                : pass_output(near, count, err);
}

// Whether a signal ends a process: none that would stop this one is taken from another machine.
static bool signal_ends(int number)
{
    static const int others[] = {SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU,
                                 SIGCONT, SIGCHLD, SIGURG,  SIGWINCH};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (number == others[i])
            return false;
    return number > 0 && number < NSIG;
}

static int take_message(struct near *near, const json_t *message, struct error *err)
{
    const char *type = json_string_value(json_object_get(message, "type"));
    const char *text = json_string_value(json_object_get(message, "text"));
    if (!type)
        return 0; // a heartbeat
    if (strcmp(type, "failed") == 0)
        return error_set(err, ERROR_FAILED, "host %s: %s", near->file.host, text ? text : "failed");
    if (strcmp(type, "ended") != 0)
        return error_set(err, ERROR_INPUT, "the agent said \"%.40s\" out of turn", type);
    const json_t *status = json_object_get(message, "status");
    if (!json_is_integer(status) || json_integer_value(status) < 0 ||
        json_integer_value(status) > UINT16_MAX)
        return error_set(err, ERROR_INPUT, "the agent gave no status of the program's end");
    near->status = (int)json_integer_value(status);
    if (!WIFEXITED(near->status) && !signal_ends(WTERMSIG(near->status)))
        return error_set(err, ERROR_INPUT, "the program there did not end, by status %d",
                         near->status);
    near->done = true;
    return 0;
}

static int take_frame(void *context, const struct frame *frame, struct error *err)
{
    struct near *near = context;
    int result = frame->kind == FRAME_BYTES ? take_bytes(near, frame, err)
                                            : take_message(near, frame->json, err);
    return result == -ERROR_INPUT ? error_prefix(err, "%s", near->name) : result;
}

// Begins to listen to the other end, and sends what to start. Before its first frame the other end
// may take a while to unpack.
static int begin_link(struct near *near, struct error *err)
{
    const int silence_ms = near->file.silence_ms;
    const struct link_settings settings = {
        .peer = near->name,
        .take = take_frame,
        .context = near,
        .silence_ms = silence_ms,
        .first_word_ms =
            near->options.deploy && silence_ms < DEPLOY_GRACE_MS ? DEPLOY_GRACE_MS : 0};
    json_t *start = start_message(near);
    if (!start)
        return error_set(err, ERROR_INPUT, "a word of the command is not UTF-8");
    link_init(&near->link, near->ssh.output, near->ssh.input, &settings);
    return link_send_new(&near->link, start, err) < 0 ? ended_error(near, err) : 0;
}

// Returns 0 while the link is up, and when it closed after the program's end was reported.
static int check_link(struct near *near, struct error *err)
{
    char why[80];
    if (near->link.state == LINK_UP || near->done)
        return 0;
    if (near->link.state == LINK_CLOSED)
        return ended_error(near, err);
    if (near->link.state == LINK_SILENT) {
        bool deploying = near->options.deploy && !near->link.heard;
        const struct link_settings *settings = &near->link.settings;
        snprintf(why, sizeof why,
                 deploying ? "could not be set up within %d s"
                           : "is down: nothing has come over it for %d s",
                 (deploying ? settings->first_word_ms : settings->silence_ms) / 1000);
        return link_error(near, err, why);
    }
    *err = near->link.err;
    return err->kind == ERROR_INPUT ? nonsense_error(near, err) : -(int)err->kind;
}

static int send_message(struct near *near, json_t *message, struct error *err)
{
    return link_send_new(&near->link, message, err) < 0 ? ended_error(near, err) : 0;
}

static int take_input(struct near *near, struct error *err)
{
    char bytes[INPUT_BYTES];
    ssize_t got = read(near->in, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR)
        return 0;
    if (got > 0)
        return link_send_bytes(&near->link, bytes, (size_t)got, err) < 0 ? ended_error(near, err)
                                                                         : 0;
    near->in = -1;
    return send_message(near, json_pack("{s:s}", "type", "eof"), err);
}

// Whether whoever started us is dead, or dying: with several threads it does so one after the
// other, the first one's end tells its children (PR_SET_PDEATHSIG), and the last one's makes them
// orphans.
static bool is_orphaned(const struct near *near)
{
    for (int waited_ms = 0; getppid() == near->parent; waited_ms++) {
        if (waited_ms == DYING_MS)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return true;
}

static int take_signal(struct near *near, struct error *err)
{
    struct signalfd_siginfo info;
    if (read(near->signals, &info, sizeof info) != sizeof info)
        return 0;
    // The run has died, and a keeper knows it by the end of its input: before it ends, so do those
    // that write what they have, which come over this connection.
    if (near->options.deploy && is_orphaned(near))
        return 0;
    near->told |= info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT;
    return send_message(
        near, json_pack("{s:s, s:i}", "type", "signal", "number", (int)info.ssi_signo), err);
}

// Reads more input only when everything before has been sent, so that signals need not wait behind
// it.
static int relay_program(struct near *near, struct error *err)
{
    struct link *const link = &near->link;
    int result = 0;
    while (result == 0 && !near->done) {
        bool flushed = link_is_flushed(link);
        struct pollfd mine[] = {{.fd = near->complaints, .events = POLLIN},
                                {.fd = flushed ? near->signals : -1, .events = POLLIN},
                                {.fd = flushed ? near->in : -1, .events = POLLIN}};
        link_poll(&link, 1, mine, 3, -1);
        if (mine[0].revents)
            take_complaints(near);
        result = check_link(near, err);
        if (result == 0 && !near->done && mine[1].revents)
            result = take_signal(near, err);
        else if (result == 0 && !near->done && mine[2].revents)
            result = take_input(near, err);
    }
    return result;
}

// Of what another machine sent, only files and folders stay: whoever reads a link, a pipe or a
// device there would read something else, or wait for ever.
static int check_unpacked(const struct near *near, struct error *err)
{
    char *const roots[] = {(char *)(uintptr_t)near->options.into, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
    unsigned others = 0;
    char name[200] = "";
    for (FTSENT *entry; tree && (entry = fts_read(tree));) {
        if (entry->fts_info == FTS_D || entry->fts_info == FTS_DP ||
            (entry->fts_info == FTS_F && entry->fts_statp->st_nlink == 1))
            continue;
        unlink(entry->fts_accpath);
        if (others++ == 0)
            snprintf(name, sizeof name, "%s", entry->fts_name);
    }
    if (tree)
        fts_close(tree);
    return others ? error_set(err, ERROR_INPUT,
                              "host %s sent %u things that are no files, such as %s: they were "
                              "removed from %s; is it the machine that is meant?",
                              near->file.host, others, name, near->options.into)
                  : 0;
}

static int end_tar(struct near *near, struct error *err)
{
    int status = 0;
    if (near->tar.pid <= 0)
        return 0;
    process_close_pipes(&near->tar);
    if (process_wait(&near->tar, -1, &status, err) < 0)
        return -ERROR_FAILED;
    if (!near->options.into)
        return 0;
    int result = check_unpacked(near, err);
    return status ? error_set(err, ERROR_FAILED, "what host %s sent cannot be unpacked into %s",
                              near->file.host, near->options.into)
                  : result;
}

static int run_program(struct near *near, struct error *err)
{
    int result = start_tar(near, err);
    if (result == 0)
        result = start_ssh(near, err);
    if (result == 0 && near->options.deploy)
        result = send_deployment(near, err);
    if (result == 0)
        result = begin_link(near, err);
    if (result == 0)
        result = relay_program(near, err);
    if (result == 0 && near->options.last_words)
        result = keep_last_words(near, err);
    return result < 0 ? result : end_tar(near, err);
}

// The connection that others share ends by itself when they have ended. Of a run that died these
// are a load and a capture which have written, and whose last frames may still be on their way.
static void await_sharers(struct near *near)
{
    int status;
    struct error ignored;
    process_close_pipes(&near->ssh);
    process_wait(&near->ssh, SHARED_GRACE_MS, &status, &ignored);
}

// Ends this process the way the program ended.
static int end_alike(int status)
{
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    const struct rlimit no_core = {0};
    sigset_t none;
    setrlimit(RLIMIT_CORE, &no_core);
    signal(WTERMSIG(status), SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    raise(WTERMSIG(status));
    return ERROR_FAILED;
}

int link_command(int argc, char **argv)
{
    struct error err = {0};
    int positional = 0;
    bool help = false;
    struct near *near = calloc(1, sizeof *near);
    if (!near || options_parse(&usage, argc, argv, &near->options, &positional, &help, &err) < 0) {
        free(near);
        return error_report(&err);
    }
    int result = 0;
    near->ssh = near->tar = (struct process){.input = -1, .output = -1};
    near->complaints = near->signals = -1;
    near->parent = getppid();
    near->decompressor = ZSTD_createDCtx();
    if (!help && positional < 2)
        result = error_set(&err, ERROR_INPUT, "link is started by other commands, not typed");
    if (result == 0 && !help)
        result = link_file_load(argv[1], &near->file, &err);
    if (result == 0 && !help) {
        argv[1 + positional] = NULL;
        name_link(near);
        near->program = (const char *const *)(argv + 2);
        near->signals = supervisor_open_signals(SIGUSR1, NULL, &err);
        result = near->signals;
        if (result >= 0)
            result = run_program(near, &err);
    }
    int code = result < 0 ? error_report(&err) : 0, status = near->status;
    link_fini(&near->link);
    if (near->options.deploy && result == 0 && getppid() != near->parent)
        await_sharers(near);
    process_stop(&near->ssh, near->options.deploy && result == 0 ? SSH_GRACE_MS : 0);
    process_stop(&near->tar, 0);
    ZSTD_freeDCtx(near->decompressor);
    link_file_free(&near->file);
    array_free(&near->options.set);
    array_free(&near->words);
    free(near);
    return result < 0 ? code : end_alike(status);
}
