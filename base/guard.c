// SPDX-License-Identifier: MIT
#include "base/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

// The child must not keep the parent's pipes open.
static void close_all_but(int one, int other)
{
    int low = one < other ? one : other, high = one < other ? other : one;
    if (low > 0)
        close_range(0, (unsigned)low - 1, 0);
    if (low >= 0 && low + 1 < high)
        close_range((unsigned)low + 1, (unsigned)high - 1, 0);
    if (low < 0 && high > 0)
        close_range(0, (unsigned)high - 1, 0);
    close_range((unsigned)high + 1, ~0U, 0);
}

static void wait_and_undo(void (*undo)(const void *context), const void *context, int keep_fd,
                          int end)
{
    sigset_t all;
    char byte;
    ssize_t got;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setsid();
    prctl(PR_SET_NAME, "guard");
    close_all_but(keep_fd, end);
    do
        got = read(end, &byte, 1);
    while (got < 0 && errno == EINTR);
    undo(context);
    _exit(0);
}

int guard_begin(struct guard *guard, void (*undo)(const void *context), const void *context,
                int keep_fd, struct error *err)
{
    int ends[2];
    *guard = (struct guard){.pipe = -1};
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot guard a setting: no pipe");
    pid_t pid = fork();
    if (pid == 0)
        wait_and_undo(undo, context, keep_fd, ends[0]);
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        return error_set_errno(err, ERROR_FAILED, "cannot guard a setting: no process");
    }
    *guard = (struct guard){.pid = pid, .pipe = ends[1]};
    return 0;
}

void guard_end(struct guard *guard)
{
    if (!guard->pid)
        return;
    close(guard->pipe);
    while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    guard->pid = 0;
}
