// SPDX-License-Identifier: MIT
#include "base/process.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/new_file.h"
#include "base/program_package.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    START_TIMEOUT_MS = 30000, // from fork to exec
    KILLED_TIMEOUT_MS = 5000, // from SIGKILL to the end: longer only where the kernel itself hangs
    LOOK_MS = 100,            // so soon a person who interrupts is heard
};

// What the child reports to its parent when it cannot exec the program.
struct start_failure {
    int number; // errno
    char step[60];
};

static void fail_start(int report, const char *step)
{
    struct start_failure failure = {.number = errno};
    snprintf(failure.step, sizeof failure.step, "%s", step);
    ssize_t written = write(report, &failure, sizeof failure);
    _exit(written == sizeof failure ? 127 : 126);
}

static void enter_namespace(const struct process_place *place, int report)
{
    int fd = open(place->netns, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
        fail_start(report, "enter its network namespace");
    close(fd);
    if (!place->mount_sysfs)
        return;
    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("sysfs", "/sys", "sysfs", 0, NULL) < 0)
        fail_start(report, "mount /sys of its network namespace");
}

// The child enters the group itself ("0" is the writer), before it can have children.
static void join_group(const char *cgroup, int report)
{
    char path[4200];
    snprintf(path, sizeof path, "%.4000s/cgroup.procs", cgroup);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1)
        fail_start(report, "join its control group");
    close(fd);
}

static void streams_redirect(const struct process_place *place, const int in[2], const int out[2],
                             int report)
{
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd < 0)
        fail_start(report, "open /dev/null");
    int log_fd = place->log_fd ? place->log_fd : -1;
    if (place->log_path) {
        log_fd = new_file_continue(place->log_path);
        if (log_fd < 0)
            fail_start(report, "open its log");
    }
    int new_in = place->pipe_input ? in[0] : null_fd;
    int new_out = place->pipe_output ? out[1] : place->discard_output ? null_fd : log_fd;
    if (dup2(new_in, 0) < 0 || (new_out >= 0 && dup2(new_out, 1) < 0) ||
        (log_fd >= 0 && dup2(log_fd, 2) < 0))
        fail_start(report, "redirect its input and output");
}

// What it gets when its parent dies.
static int death_signal(const struct process_place *place)
{
    return place->has_children || place->writes_at_end ? SIGTERM : SIGKILL;
}

// After all that takes rights: its namespace, group, priority and log. A change of user takes the
// death signal back.
static void become_person(const struct process_place *place, pid_t parent, int report)
{
    struct error ignored;
    if (!place->as)
        return;
    if (rights_give_up(place->as, &ignored) < 0)
        fail_start(report, "give up root's rights");
    if (prctl(PR_SET_PDEATHSIG, death_signal(place)) < 0 || getppid() != parent)
        fail_start(report, "tie its life to its parent's");
}

// Of 62 bits, below RLIM_INFINITY, and none that somebody would set.
uint64_t process_mark_number(const char *variable)
{
    return UINT64_C(1) << 61 | hash_bytes(variable, strlen(variable)) >> 3;
}

// Where a stricter limit is set already, the mark in the environment is all there is.
static void limit_mark(const char *variable)
{
    struct rlimit limit;
    if (strncmp(variable, PROCESS_MARK, strlen(PROCESS_MARK)) != 0 ||
        getrlimit(RLIMIT_LOCKS, &limit) < 0)
        return;
    limit.rlim_cur = process_mark_number(variable);
    setrlimit(RLIMIT_LOCKS, &limit);
}

static void child_exec(const char *const *argv, const struct process_place *place, pid_t parent,
                       const int in[2], const int out[2], int report)
{
    // The parent may already be gone when the death signal is armed.
    if (prctl(PR_SET_PDEATHSIG, death_signal(place)) < 0 || getppid() != parent)
        fail_start(report, "tie its life to its parent's");
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int number = 1; number < NSIG; number++)
        if (number != SIGKILL && number != SIGSTOP)
            signal(number, SIG_DFL);
    setpgid(0, 0); // Ctrl-C must reach the program only, which decides in what order things end.
    if (place->cgroup)
        join_group(place->cgroup, report);
    if (place->netns)
        enter_namespace(place, report);
    if (place->cores && sched_setaffinity(0, sizeof *place->cores, place->cores) < 0)
        fail_start(report, "move to its cores");
    if (place->nice && setpriority(PRIO_PROCESS, 0, place->nice) < 0)
        fail_start(report, "take its priority");
    streams_redirect(place, in, out, report);
    become_person(place, parent, report);
    if (place->directory && chdir(place->directory) < 0)
        fail_start(report, "enter its directory");
    for (const char *const *variable = place->environment; variable && *variable; variable++) {
        if (putenv((char *)(uintptr_t)*variable) != 0)
            fail_start(report, "set its environment");
        limit_mark(*variable);
    }
    execvp(argv[0], (char *const *)(uintptr_t)argv);
    fail_start(report, "start");
}

// Waits until the child has become its program, or says why it cannot. Returns what read() does;
// -1: neither within START_TIMEOUT_MS.
static ssize_t read_report(int report, struct start_failure *failure)
{
    const long deadline = monotonic_ms() + START_TIMEOUT_MS;
    for (;;) {
        struct pollfd ready = {.fd = report, .events = POLLIN};
        long left = deadline - monotonic_ms();
        int polled = poll(&ready, 1, left > 0 ? (int)left : 0);
        if (polled < 0 && errno == EINTR)
            continue;
        ssize_t got = polled > 0 ? read(report, failure, sizeof *failure) : -1;
        if (polled <= 0 || got >= 0 || errno != EINTR)
            return got;
    }
}

static void close_pair(int fds[2])
{
    for (int i = 0; i < 2; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
        fds[i] = -1;
    }
}

static int start_error(const char *program, const struct start_failure *failure, struct error *err)
{
    const char *package = program_package(program);
    if (failure->number != ENOENT || strcmp(failure->step, "start") != 0)
        return error_set(err, ERROR_FAILED, "cannot start %s: could not %s: %s", program,
                         failure->step, strerror(failure->number));
    return error_set(err, ERROR_FAILED,
                     "cannot start %s: there is no such program (is it installed?%s%s)", program,
                     package ? " apt-get install " : "", package ? package : "");
}

int process_start(struct process *process, const char *const *argv,
                  const struct process_place *place, struct error *err)
{
    static const struct process_place anywhere = {0};
    int in[2] = {-1, -1}, out[2] = {-1, -1}, report[2] = {-1, -1}, result;
    if (!place)
        place = &anywhere;
    *process = (struct process){.pid = 0, .input = -1, .output = -1};
    if (place->dry)
        return 0;
    if (pipe2(report, O_CLOEXEC) < 0 || (place->pipe_input && pipe2(in, O_CLOEXEC) < 0) ||
        (place->pipe_output && pipe2(out, O_CLOEXEC) < 0)) {
        result = error_set_errno(err, ERROR_FAILED, "cannot start %s: no pipe", argv[0]);
        goto out;
    }
    fflush(NULL);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        child_exec(argv, place, parent, in, out, report[1]);
    if (pid < 0) {
        result = error_set_errno(err, ERROR_FAILED, "cannot start %s", argv[0]);
        goto out;
    }
    close(report[1]);
    report[1] = -1;
    struct start_failure failure;
    ssize_t got = read_report(report[0], &failure);
    if (got < 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        result = error_set(err, ERROR_FAILED,
                           "cannot start %s: it has not begun after %d s; is a file system, or a "
                           "file that it opens, blocked?",
                           argv[0], START_TIMEOUT_MS / 1000);
        goto out;
    }
    if (got == sizeof failure) {
        waitpid(pid, NULL, 0);
        result = start_error(argv[0], &failure, err);
        goto out;
    }
    process->pid = pid;
    process->has_children = place->has_children;
    process->input = in[1];
    process->output = out[0];
    in[1] = out[0] = -1;
    result = 0;
out:
    close_pair(in);
    close_pair(out);
    close_pair(report);
    return result;
}

// As waitpid. The rest of its process group is killed before the process is reaped: until then its
// number is taken, so the group is certainly its own.
static pid_t process_reap(const struct process *process, bool blocks, int *status)
{
    siginfo_t ended = {.si_pid = 0};
    if (!process->has_children)
        return waitpid(process->pid, status, blocks ? 0 : WNOHANG);
    if (waitid(P_PID, (id_t)process->pid, &ended, WEXITED | WNOWAIT | (blocks ? 0 : WNOHANG)) < 0)
        return -1;
    if (ended.si_pid != process->pid)
        return 0;
    kill(-process->pid, SIGKILL);
    return waitpid(process->pid, status, 0);
}

int process_wait(struct process *process, int timeout_ms, int *status, struct error *err)
{
    long deadline = monotonic_ms() + timeout_ms;
    for (;;) {
        pid_t pid = process_reap(process, timeout_ms < 0, status);
        if (pid == process->pid) {
            process->pid = 0;
            return 1;
        }
        if (pid < 0 && errno != EINTR)
            return error_set_errno(err, ERROR_FAILED, "cannot wait for process %d", process->pid);
        if (timeout_ms >= 0 && monotonic_ms() >= deadline)
            return 0;
        if (pid == 0)
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
}

void process_close_pipes(struct process *process)
{
    if (process->input >= 0)
        close(process->input);
    if (process->output >= 0)
        close(process->output);
    process->input = process->output = -1;
}

void process_ask_to_end(struct process *process)
{
    if (process->pid > 0 && !process->asked)
        process->asked = kill(process->pid, SIGTERM) == 0;
}

int process_stop(struct process *process, int grace_ms)
{
    int status = -1;
    struct error ignored;
    if (process->pid > 0) {
        process_ask_to_end(process);
        if (process_wait(process, grace_ms, &status, &ignored) <= 0) {
            kill(process->pid, SIGKILL);
            process_wait(process, KILLED_TIMEOUT_MS, &status, &ignored);
        }
    }
    process_close_pipes(process);
    return status;
}

void process_stop_all(struct process *const *processes, size_t count, int grace_ms)
{
    const long deadline = monotonic_ms() + grace_ms;
    for (size_t i = 0; i < count; i++)
        process_ask_to_end(processes[i]);
    for (size_t i = 0; i < count; i++) {
        long left = deadline - monotonic_ms();
        process_stop(processes[i], left > 0 ? (int)left : 0);
    }
}

// Reads a file of /proc/PID whole, or its beginning; "": it cannot be read.
static void read_about(pid_t pid, const char *name, char *out, size_t out_bytes)
{
    char path[48];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    int fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t got = fd >= 0 ? read(fd, out, out_bytes - 1) : -1;
    out[got > 0 ? got : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

// The state of a process and how many threads it has (proc_pid_stat(5)); '\0': it cannot be read.
static char state_of(pid_t pid, long *threads)
{
    char stat[512], state = '\0';
    read_about(pid, "stat", stat, sizeof stat);
    const char *name_end = strrchr(stat, ')');
    *threads = 0;
    if (!name_end || sscanf(name_end + 1,
                            " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                            "%ld",
                            &state, threads) < 1)
        return '\0';
    return state;
}

bool process_is_stopped(const struct process *process)
{
    long threads;
    const char state = state_of(process->pid, &threads);
    return state == 'T' || state == 't';
}

bool process_rests(const struct process *process, uint64_t *ran_ns)
{
    char text[80];
    long threads;
    const uint64_t before_ns = *ran_ns;
    const char state = state_of(process->pid, &threads);
    read_about(process->pid, "schedstat", text, sizeof text);
    if (text[0])
        *ran_ns = strtoull(text, NULL, 10);
    return (state == 'S' || state == 'T' || state == 't') && *ran_ns == before_ns;
}

bool process_moves(const struct process *process, uint64_t *moved)
{
    char io[512], stat[512];
    unsigned long long read, written, minor, major;
    const uint64_t before = *moved;
    read_about(process->pid, "io", io, sizeof io);
    read_about(process->pid, "stat", stat, sizeof stat);
    const char *name_end = strrchr(stat, ')');
    if (sscanf(io, "rchar: %llu wchar: %llu", &read, &written) < 2 || !name_end ||
        sscanf(name_end + 1, " %*c %*d %*d %*d %*d %*d %*u %llu %*u %llu", &minor, &major) < 2)
        return true;
    *moved = read + written + minor + major;
    return *moved != before;
}

bool process_has_ended(pid_t pid)
{
    long threads;
    if (kill(pid, 0) < 0 && errno == ESRCH)
        return true;
    // Where only the first thread has ended others go on, and the state is that of the first.
    const char state = state_of(pid, &threads);
    return (state == 'Z' || state == 'X') && threads <= 1;
}

bool process_is_interrupted(void)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
           sigismember(&pending, SIGHUP) == 1;
}

int process_read_line(struct process *process, char *line, size_t line_bytes, int timeout_ms,
                      struct error *err)
{
    long deadline = monotonic_ms() + timeout_ms;
    size_t used = 0;
    while (used + 1 < line_bytes) {
        struct pollfd ready = {.fd = process->output, .events = POLLIN};
        long left = deadline - monotonic_ms();
        int polled = poll(&ready, 1, left > 0 ? (int)left : 0);
        if (polled < 0 && errno == EINTR)
            continue;
        if (polled <= 0)
            return 0;
        ssize_t got = read(process->output, line + used, 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return 0;
        if (line[used] == '\n') {
            line[used] = '\0';
            return 1;
        }
        used++;
    }
    return error_set(err, ERROR_FAILED, "process %d sent a line longer than %zu bytes",
                     process->pid, line_bytes);
}

// Reads the command's output until it closes its stdout, the deadline passes, or a person
// interrupts.
static bool output_collect(struct process *process, char *out, size_t out_bytes, long deadline)
{
    size_t used = 0;
    // What came before is the business of whoever cleans up with this command.
    const bool known = process_is_interrupted();
    char waste[4096];
    for (;;) {
        struct pollfd ready = {.fd = process->output, .events = POLLIN};
        long left = deadline - monotonic_ms();
        int polled = poll(&ready, 1, left <= 0 ? 0 : left < LOOK_MS ? (int)left : LOOK_MS);
        if (polled < 0 && errno == EINTR)
            continue;
        if (polled == 0 && left > 0 && (known || !process_is_interrupted()))
            continue;
        if (polled <= 0)
            return false;
        bool room = out && used + 1 < out_bytes;
        ssize_t got = read(process->output, room ? out + used : waste,
                           room ? out_bytes - 1 - used : sizeof waste);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return true;
        if (room) {
            used += (size_t)got;
            out[used] = '\0';
        }
    }
}

int process_run(const char *const *argv, const struct process_place *place, int timeout_ms,
                char *out, size_t out_bytes, struct error *err)
{
    char complaint[300] = "", described[300];
    struct process_place here = place ? *place : (struct process_place){0};
    struct process process = {.input = -1, .output = -1};
    int status = 0;
    long deadline = monotonic_ms() + timeout_ms;
    if (out && out_bytes)
        out[0] = '\0';
    if (here.dry)
        return 0;
    int log_fd = -1;
    if (!here.log_path) {
        log_fd = memfd_create("taillight-stderr", MFD_CLOEXEC); // nothing that could be left
        if (log_fd < 0)
            return error_set_errno(err, ERROR_FAILED, "no memory for what a command complains of");
        here.log_fd = log_fd;
    }
    here.pipe_output = true;
    int result = process_start(&process, argv, &here, err);
    if (result < 0)
        goto out;
    bool finished = output_collect(&process, out, out_bytes, deadline);
    long left = deadline - monotonic_ms();
    if (finished)
        finished = process_wait(&process, left > 0 ? (int)left : 0, &status, err) == 1;
    process_describe(argv, described, sizeof described);
    if (!finished) {
        result =
            process_is_interrupted() && monotonic_ms() < deadline
                ? error_set(err, ERROR_FAILED, "interrupted")
                : error_set(err, ERROR_FAILED, "%s: no end after %d ms", described, timeout_ms);
        goto out;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        goto out;
    if (log_fd >= 0) {
        ssize_t got = pread(log_fd, complaint, sizeof complaint - 1, 0);
        complaint[got > 0 ? got : 0] = '\0';
        complaint[strcspn(complaint, "\n")] = '\0';
    }
    result = error_set(err, ERROR_FAILED, "%s: %s %d%s%s", described,
                       WIFEXITED(status) ? "exit" : "killed by signal",
                       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
                       complaint[0] ? ": " : "", complaint);
out:
    process_stop(&process, 0);
    if (log_fd >= 0)
        close(log_fd);
    return result;
}

// Appends; what does not fit is cut.
static void line_append(char *out, size_t out_bytes, size_t *used, const char *text)
{
    for (; *text && *used + 1 < out_bytes; text++)
        out[(*used)++] = *text;
    out[*used] = '\0';
}

char *process_describe(const char *const *argv, char *out, size_t out_bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (; *argv; argv++) {
        bool quote = !**argv || strpbrk(*argv, " \t\n\"'\\$`;&|<>()*?[]{}!#~") != NULL;
        line_append(out, out_bytes, &used, used ? " " : "");
        line_append(out, out_bytes, &used, quote ? "'" : "");
        // closes the quotes, adds an escaped quote, opens them again
        for (const char *at = *argv; *at; at++)
            line_append(out, out_bytes, &used,
                        quote && *at == '\'' ? "'\\''" : (char[]){*at, '\0'});
        line_append(out, out_bytes, &used, quote ? "'" : "");
    }
    return out;
}
