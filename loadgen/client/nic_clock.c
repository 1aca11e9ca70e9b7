// SPDX-License-Identifier: MIT
#include "loadgen/client/nic_clock.h"
#include "base/array.h"

#include <fcntl.h>
#include <linux/ptp_clock.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { PERIOD_MS = 100, READINGS = 5 };

static int64_t ns_of(const struct ptp_clock_time *time)
{
    return time->sec * 1000000000 + time->nsec;
}

// Reads both clocks at one instant if the hardware can, else between two readings of the host's.
static int read_both(int fd, struct nic_clock_knot *knot)
{
    struct ptp_sys_offset_precise precise = {0};
    struct ptp_sys_offset_extended extended = {.n_samples = READINGS};
    if (ioctl(fd, PTP_SYS_OFFSET_PRECISE, &precise) == 0) {
        *knot = (struct nic_clock_knot){ns_of(&precise.device), ns_of(&precise.sys_realtime), 0};
        return 0;
    }
    if (ioctl(fd, PTP_SYS_OFFSET_EXTENDED, &extended) < 0)
        return -1;
    for (unsigned i = 0; i < READINGS; i++) {
        int64_t before = ns_of(&extended.ts[i][0]), after = ns_of(&extended.ts[i][2]);
        uint64_t half = (uint64_t)(after > before ? after - before : 0) / 2;
        if (i == 0 || half < knot->error_ns)
            *knot =
                (struct nic_clock_knot){ns_of(&extended.ts[i][1]), before + (int64_t)half, half};
    }
    return 0;
}

// A knot that cannot be read is left out: the line between its neighbours spans it.
static void take_knot(struct nic_clock *clock)
{
    struct nic_clock_knot knot;
    if (read_both(clock->fd, &knot) == 0)
        (void)array_push(&clock->knots, knot);
}

static void *nic_clock_follow(void *argument)
{
    struct nic_clock *clock = argument;
    struct pollfd wake = {.fd = clock->wake, .events = POLLIN};
    pthread_setname_np(pthread_self(), "nic-clock");
    while (poll(&wake, 1, PERIOD_MS) <= 0)
        take_knot(clock);
    take_knot(clock);
    return NULL;
}

int nic_clock_begin(int index, struct nic_clock *clock, struct error *err)
{
    char path[32];
    struct nic_clock_knot knot;
    *clock = (struct nic_clock){.wake = -1};
    snprintf(path, sizeof path, "/dev/ptp%d", index);
    clock->fd = open(path, O_RDONLY | O_CLOEXEC);
    int status = 0;
    if (clock->fd < 0)
        status = error_set_errno(err, ERROR_FAILED, "cannot open the NIC's clock %s", path);
    else if (read_both(clock->fd, &knot) < 0)
        status = error_set_errno(err, ERROR_FAILED,
                                 "cannot read the NIC's clock %s together with the host's", path);
    else if (array_push(&clock->knots, knot) < 0 || (clock->wake = eventfd(0, EFD_CLOEXEC)) < 0 ||
             pthread_create(&clock->thread, NULL, nic_clock_follow, clock) != 0)
        status = error_set(err, ERROR_FAILED, "cannot follow the NIC's clock %s", path);
    if (status < 0) {
        nic_clock_free(clock);
        clock->fd = clock->wake = -1;
    }
    return status;
}

void nic_clock_stop(struct nic_clock *clock)
{
    const uint64_t one = 1;
    ssize_t written = write(clock->wake, &one, sizeof one);
    (void)written; // the counter cannot overflow
    pthread_join(clock->thread, NULL);
}

uint64_t nic_clock_real_ns(const struct nic_clock *clock, uint64_t phc_ns)
{
    const struct nic_clock_knot *knots = clock->knots.items;
    size_t count = clock->knots.count;
    int64_t now = (int64_t)phc_ns;
    size_t last = array_bound(count > 1, count - 1, at, knots[at].phc_ns <= now);
    size_t first = last > 0 ? last - 1 : 0;
    int64_t since = now - knots[first].phc_ns;
    int64_t span = knots[last].phc_ns - knots[first].phc_ns;
    if (span <= 0) // a single knot, or the clock was set back
        return (uint64_t)(knots[first].real_ns + since);
    double rate = (double)(knots[last].real_ns - knots[first].real_ns) / (double)span;
    return (uint64_t)(knots[first].real_ns + (int64_t)((double)since * rate));
}

uint64_t nic_clock_error_ns(const struct nic_clock *clock)
{
    uint64_t worst = 0;
    for (size_t i = 0; i < clock->knots.count; i++)
        if (clock->knots.items[i].error_ns > worst)
            worst = clock->knots.items[i].error_ns;
    return worst;
}

void nic_clock_free(struct nic_clock *clock)
{
    if (clock->fd >= 0)
        close(clock->fd);
    if (clock->wake >= 0)
        close(clock->wake);
    array_free(&clock->knots);
}
