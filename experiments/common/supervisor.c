// SPDX-License-Identifier: MIT
#include "experiments/common/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "experiments/common/command_log.h"
#include "experiments/common/run_folder.h"
#include "base/clock.h"
#include "base/text.h"

enum { MOST_OUTPUT_BYTES = 16 << 20 };

uint64_t supervisor_now_ns(void)
{
    return (uint64_t)monotonic_ns();
}

int supervisor_open_signals(int more, sigset_t *before, struct error *err)
{
    sigset_t taken, until_now;
    sigemptyset(&taken);
    sigaddset(&taken, SIGINT);
    sigaddset(&taken, SIGTERM);
    sigaddset(&taken, SIGHUP);
    sigaddset(&taken, more);
    sigprocmask(SIG_BLOCK, &taken, &until_now);
    int fd = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) {
        error_set_errno(err, ERROR_FAILED, "cannot listen for signals");
        sigprocmask(SIG_SETMASK, &until_now, NULL);
        return -ERROR_FAILED;
    }
    if (before)
        *before = until_now;
    return fd;
}

// How many processes the kernel has killed for want of memory since the machine was started, in
// whichever control group. 0: it does not say.
static uint64_t oom_kills(void)
{
    char line[128];
    unsigned long long count = 0;
    FILE *file = fopen("/proc/vmstat", "re");
    while (file && fgets(line, sizeof line, file) && sscanf(line, "oom_kill %llu", &count) != 1)
        ;
    if (file)
        fclose(file);
    return count;
}

int supervisor_open(struct supervisor *supervisor, struct error *err)
{
    *supervisor =
        (struct supervisor){.signals = -1, .stopped_grace_ns = STOPPED_GRACE_S * 1000000000ull};
    supervisor->oom_kills = oom_kills();
    supervisor->taken = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (supervisor->taken < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot count signals");
    supervisor->signals = supervisor_open_signals(SIGCHLD, &supervisor->mask_before, err);
    if (supervisor->signals < 0)
        close(supervisor->taken);
    return supervisor->signals < 0 ? supervisor->signals : 0;
}

static void take_signals(struct supervisor *supervisor)
{
    struct signalfd_siginfo info;
    while (read(supervisor->signals, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD) {
            supervisor->interrupted = true;
            eventfd_write(supervisor->taken, 1);
        }
}

void supervisor_close(struct supervisor *supervisor)
{
    if (supervisor->signals < 0)
        return;
    take_signals(supervisor); // signals during the teardown have had their effect
    close(supervisor->signals);
    close(supervisor->taken);
    supervisor->signals = -1;
    sigprocmask(SIG_SETMASK, &supervisor->mask_before, NULL);
}

void supervisor_watch(struct supervisor *supervisor, struct process *process, const char *what,
                      const char *log_path)
{
    if (supervisor->watched_count < MOST_WATCHED)
        supervisor->watched[supervisor->watched_count++] =
            (struct watched){process, what, log_path};
}

void supervisor_unwatch(struct supervisor *supervisor, const struct process *process)
{
    size_t kept = 0;
    for (size_t i = 0; i < supervisor->watched_count; i++)
        if (supervisor->watched[i].process != process)
            supervisor->watched[kept++] = supervisor->watched[i];
    supervisor->watched_count = kept;
}

int supervisor_end_error(struct error *err, const char *what, int status, const char *log_path)
{
    char how[100], last[400];
    if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(how, sizeof how, "ended with exit code %d", WEXITSTATUS(status));
    command_log_last_line(log_path, last, sizeof last);
    // The last line of one of our own commands says it all, and its code whose fault that is.
    if (WIFEXITED(status) && strncmp(last, "taillight: ", 11) == 0)
        return error_of(err, WEXITSTATUS(status) == ERROR_INPUT ? ERROR_INPUT : ERROR_FAILED, what,
                        last + 11);
    return error_set(err, ERROR_FAILED, "%s %s; the last line of %s: %s", what, how, log_path,
                     last[0]                            ? last
                     : free_disk_bytes(log_path) < 4096 ? "(nothing, since its disk is full)"
                                                        : "(nothing)");
}

int supervisor_death_error(const struct supervisor *supervisor, struct error *err, const char *what,
                           int status, const char *log_path)
{
    const int result = supervisor_end_error(err, what, status, log_path);
    const uint64_t killed = oom_kills() - supervisor->oom_kills;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && killed)
        text_append(err->text, sizeof err->text,
                    "; the kernel has killed %s process%s for want of memory since the run began: "
                    "give its control group more (memory.max, memory.limit_in_bytes), or the "
                    "machine",
                    TEXT_COUNT(killed), killed == 1 ? "" : "es");
    return result;
}

static int check_watched(struct supervisor *supervisor, struct error *err)
{
    for (size_t i = 0; i < supervisor->watched_count; i++) {
        const struct watched *one = &supervisor->watched[i];
        int status, ended = 0;
        if (one->process->pid > 0)
            ended = process_wait(one->process, 0, &status, err);
        if (ended > 0)
            return supervisor_death_error(supervisor, err, one->what, status, one->log_path);
        if (ended < 0)
            return ended;
    }
    return 0;
}

// "taillight load": enough of its command line to know it by.
static void describe_process(pid_t pid, char *out, size_t out_bytes)
{
    char path[40], line[600] = "";
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, line, sizeof line - 1);
    if (fd >= 0)
        close(fd);
    const char *slash = strrchr(line, '/'), *name = slash ? slash + 1 : line;
    const char *second = line + strlen(line) + 1;
    snprintf(out, out_bytes, "%.50s%s%.20s", name, second < line + got ? " " : "",
             second < line + got ? second : "");
}

// A stopped process would be waited for until its deadline, which is that of one that works.
static int check_stopped(struct supervisor *supervisor, const struct process *awaited,
                         struct error *err)
{
    char name[80];
    if (!awaited || !process_is_stopped(awaited)) {
        supervisor->stopped = 0;
        return 0;
    }
    if (supervisor->stopped != awaited->pid) {
        supervisor->stopped = awaited->pid;
        supervisor->stopped_since_ns = supervisor_now_ns();
    }
    if (supervisor_now_ns() - supervisor->stopped_since_ns < supervisor->stopped_grace_ns)
        return 0;
    describe_process(awaited->pid, name, sizeof name);
    return error_set(err, ERROR_FAILED,
                     "`%s` (process %d) does not end: it has been stopped (SIGSTOP, or a debugger) "
                     "for %s",
                     name, awaited->pid, TEXT_NS((double)supervisor->stopped_grace_ns));
}

// Appends what can be read. Returns 1 at the end of the stream, 0 before.
static int take_output(struct process *process, struct text_buffer *output, struct error *err)
{
    char waste[4096];
    if (output && output->count >= MOST_OUTPUT_BYTES)
        return error_set(err, ERROR_FAILED, "process %d prints more than %d bytes", process->pid,
                         MOST_OUTPUT_BYTES);
    if (output && array_reserve(output, output->count + 65536) < 0)
        return error_set(err, ERROR_FAILED, "out of memory");
    ssize_t got = read(process->output, output ? output->items + output->count : waste,
                       output ? 65535 : sizeof waste);
    if (got < 0)
        return errno == EINTR ? 0 : 1;
    if (output) {
        output->count += (size_t)got;
        output->items[output->count] = '\0'; // so that it can be read as a string
    }
    return got == 0;
}

static bool has_line(const struct text_buffer *output)
{
    return output && output->count && memchr(output->items, '\n', output->count);
}

// Returns 1 when the awaited line or end has come, 0 when not yet, negative on errors.
static int check_awaited(struct process *awaited, const struct text_buffer *output, bool until_line,
                         bool drained, int *status, struct error *err)
{
    if (until_line && has_line(output))
        return 1;
    if (!awaited || (awaited->output >= 0 && !drained))
        return 0;
    return process_wait(awaited, 0, status, err);
}

int supervisor_wait(struct supervisor *supervisor, struct process *awaited,
                    struct text_buffer *output, bool until_line, uint64_t deadline_ns, int *status,
                    struct error *err)
{
    bool drained = !awaited || awaited->output < 0;
    for (;;) {
        take_signals(supervisor);
        if (supervisor->interrupted)
            return error_set(err, ERROR_FAILED, "interrupted");
        int result = check_watched(supervisor, err);
        if (result == 0)
            result = check_awaited(awaited, output, until_line, drained, status, err);
        if (result)
            return result;
        uint64_t now_ns = supervisor_now_ns();
        if (now_ns >= deadline_ns)
            return check_stopped(supervisor, awaited, err);
        struct pollfd ready[2] = {{.fd = supervisor->signals, .events = POLLIN},
                                  {.fd = drained ? -1 : awaited->output, .events = POLLIN}};
        uint64_t left_ms = (deadline_ns - now_ns + 999999) / 1000000;
        int polled = poll(ready, 2, left_ms > 1000 ? 1000 : (int)left_ms);
        if (polled == 0 && check_stopped(supervisor, awaited, err) < 0)
            return -ERROR_FAILED;
        if (polled <= 0 || !ready[1].revents)
            continue;
        int ended = take_output(awaited, output, err);
        if (ended < 0)
            return ended;
        drained = ended == 1;
    }
}

int supervisor_check(struct supervisor *supervisor, struct error *err)
{
    if (supervisor->signals >= 0)
        take_signals(supervisor);
    return supervisor->interrupted ? error_set(err, ERROR_FAILED, "interrupted") : 0;
}

int supervisor_finish(struct supervisor *supervisor, struct process *process, const char *what,
                      const char *log_path, unsigned seconds, struct error *err)
{
    int status = 0;
    int result = supervisor_wait(supervisor, process, NULL, false,
                                 supervisor_now_ns() + seconds * 1000000000ull, &status, err);
    if (result == 0)
        return error_set(err, ERROR_FAILED, "%s does not end within %u s; see %s", what, seconds,
                         log_path);
    if (result > 0 && status != 0)
        return supervisor_death_error(supervisor, err, what, status, log_path);
    return result < 0 ? result : 0;
}
