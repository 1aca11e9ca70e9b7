// SPDX-License-Identifier: MIT
#include "experiments/common/way_out.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/one_wish.h"
#include "base/progress.h"
#include "experiments/common/supervisor.h"

static bool has_taken(const struct way_out *way_out)
{
    uint64_t count;
    return read(way_out->taken, &count, sizeof count) == sizeof count;
}

static void drain(const struct way_out *way_out)
{
    struct signalfd_siginfo info;
    while (read(way_out->signals, &info, sizeof info) == sizeof info)
        ;
}

// Waits until a signal has come: it is there to be taken, or the program has taken it already. The
// thread is cancelled here when none comes.
static void await_first(const struct way_out *way_out)
{
    struct pollfd either[2] = {{.fd = way_out->taken, .events = POLLIN},
                               {.fd = way_out->signals, .events = POLLIN}};
    while (poll(either, 2, -1) < 0 && errno == EINTR)
        ;
}

// Until the first signal is taken it is pending, and another of its kind is the same to the kernel;
// after that what comes is another one, be it the program that takes it.
static bool await_second(const struct way_out *way_out, bool taken, int64_t deadline_ms)
{
    for (int64_t left_ms; (left_ms = deadline_ms - monotonic_ms()) > 0;) {
        struct pollfd either[2] = {{.fd = way_out->taken, .events = POLLIN},
                                   {.fd = taken ? way_out->signals : -1, .events = POLLIN}};
        if (poll(either, 2, (int)(left_ms < INT_MAX ? left_ms : INT_MAX)) <= 0)
            continue;
        if (taken)
            return true;
        taken = has_taken(way_out);
    }
    return false;
}

static void *wait_for_signals(void *argument)
{
    const struct way_out *way_out = argument;
    await_first(way_out);
    const int64_t deadline_ms = monotonic_ms() + way_out->within_ms;
    poll(NULL, 0, ONE_WISH_MS);
    const bool taken = has_taken(way_out);
    if (taken)
        drain(way_out);
    const bool again = await_second(way_out, taken, deadline_ms);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL); // what it says it says whole
    way_out->leave(way_out->context, again);
    return NULL;
}

int way_out_open(struct way_out *way_out, struct error *err)
{
    way_out->signals = supervisor_open_signals(SIGHUP, NULL, err);
    if (way_out->signals < 0)
        return way_out->signals;
    errno = pthread_create(&way_out->thread, NULL, wait_for_signals, way_out);
    if (errno == 0)
        return 0;
    error_set_errno(err, ERROR_FAILED, "cannot start the thread that waits for interrupts");
    close(way_out->signals);
    way_out->signals = -1;
    return -ERROR_FAILED;
}

int way_out_open_second(struct way_out *way_out, int within_ms, way_out_fn *leave, void *context,
                        struct error *err)
{
    int dies_with = 0;
    *way_out = (struct way_out){.signals = -1};
    if (prctl(PR_GET_PDEATHSIG, &dies_with) == 0 && dies_with)
        return 0;
    *way_out = (struct way_out){.taken = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                                .signals = -1,
                                .within_ms = within_ms,
                                .leave = leave,
                                .context = context,
                                .own_taken = true};
    if (way_out->taken < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot wait for interrupts");
    int result = way_out_open(way_out, err);
    if (result < 0)
        close(way_out->taken);
    return result;
}

void way_out_say(const char *format, ...)
{
    va_list arguments;
    if (!progress_is_heard())
        return;
    va_start(arguments, format);
    vdprintf(STDERR_FILENO, format, arguments);
    va_end(arguments);
}

void way_out_take(const struct way_out *way_out)
{
    if (way_out->signals >= 0)
        eventfd_write(way_out->taken, 1);
}

void way_out_close(struct way_out *way_out)
{
    if (way_out->signals < 0)
        return;
    pthread_cancel(way_out->thread);
    pthread_join(way_out->thread, NULL);
    close(way_out->signals);
    if (way_out->own_taken)
        close(way_out->taken);
    way_out->signals = -1;
}
