// SPDX-License-Identifier: MIT
#include "loadgen/client/clock_follower.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/tsc.h"

enum { PERIOD_MS = 100, READINGS = 5 };

int clock_read_host(int fd, struct clock_knot *knot)
{
    (void)fd;
    for (unsigned i = 0; i < READINGS; i++) {
        uint64_t before = tsc_now();
        int64_t real_ns = clock_now_ns(CLOCK_REALTIME);
        uint64_t half = (tsc_now() - before) / 2;
        if (i == 0 || half < knot->error)
            *knot = (struct clock_knot){real_ns, (int64_t)(before + half), half};
    }
    return 0;
}

// A knot that cannot be read is left out: the line between its neighbours spans it.
static void take_knot(struct clock_follower *clock)
{
    struct clock_knot knot;
    if (clock->read(clock->fd, &knot) == 0)
        (void)array_push(&clock->knots, knot);
}

static void *follow(void *argument)
{
    struct clock_follower *clock = argument;
    struct pollfd wake = {.fd = clock->wake, .events = POLLIN};
    pthread_setname_np(pthread_self(), "clock-follower");
    while (poll(&wake, 1, PERIOD_MS) <= 0)
        take_knot(clock);
    take_knot(clock);
    return NULL;
}

int clock_follower_begin(struct clock_follower *clock, clock_read_fn *read, int fd,
                         const char *what, struct error *err)
{
    struct clock_knot knot;
    int status = 0;
    *clock = (struct clock_follower){.read = read, .fd = fd, .wake = -1};
    if (read(fd, &knot) < 0)
        status =
            error_set_errno(err, ERROR_FAILED, "cannot read %s together with the host's", what);
    else if (array_push(&clock->knots, knot) < 0 || (clock->wake = eventfd(0, EFD_CLOEXEC)) < 0)
        status = error_set(err, ERROR_FAILED, "cannot follow %s", what);
    else if (pthread_create(&clock->thread, NULL, follow, clock) != 0) {
        close(clock->wake);
        clock->wake = -1;
        status = error_set(err, ERROR_FAILED, "cannot follow %s: no thread", what);
    }
    if (status < 0)
        clock_follower_free(clock);
    return status;
}

void clock_follower_stop(struct clock_follower *clock)
{
    const uint64_t one = 1;
    if (clock->wake < 0)
        return;
    ssize_t written = write(clock->wake, &one, sizeof one);
    (void)written; // the counter cannot overflow
    pthread_join(clock->thread, NULL);
    close(clock->wake);
    clock->wake = -1;
}

void clock_follower_free(struct clock_follower *clock)
{
    clock_follower_stop(clock);
    if (clock->fd >= 0)
        close(clock->fd);
    clock->fd = -1;
    array_free(&clock->knots);
}
