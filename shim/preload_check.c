// SPDX-License-Identifier: MIT
//
// The shim's byte counts held against the kernel's. A program may move bytes in ways the shim does
// not see, or close a descriptor so and give its number to something else; every later offset would
// be wrong in silence. So the two counts are compared as a connection ends, as the program ends,
// and now and then in between: never more than once in CHECK_CYCLES by a thread. What the
// comparison means is for the collector to say, who sees all processes that share a connection.
#include "shim/preload.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>

enum { TRIES = 4 }; // to read numbers that belong together

enum { // include/net/tcp_states.h: part of the user interface, so fixed
    FIN_WAIT1 = 4,
    FIN_WAIT2 = 5,
    TIME_WAIT = 6,
    CLOSED = 7,
    CLOSE_WAIT = 8,
    LAST_ACK = 9,
    CLOSING = 11,
};

static uint64_t in_states(uint8_t state, unsigned states)
{
    return states >> state & 1;
}

static bool info_read(int fd, struct tcp_info *info)
{
    socklen_t bytes = sizeof *info;
    memset(info, 0, sizeof *info);
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &bytes) == 0 &&
           bytes >= offsetof(struct tcp_info, tcpi_bytes_received) + sizeof(uint64_t);
}

// The kernel counts what has arrived and what was acknowledged; what is still in its queues is
// between that and the program. A FIN counts as 1.
bool shim_count_kernel(int fd, bool outgoing, struct kernel_counts *out)
{
    const unsigned fin_received =
        1u << CLOSE_WAIT | 1u << LAST_ACK | 1u << CLOSING | 1u << TIME_WAIT;
    const unsigned fin_sent =
        1u << FIN_WAIT1 | 1u << FIN_WAIT2 | 1u << CLOSING | 1u << LAST_ACK | 1u << TIME_WAIT;
    struct tcp_info before, after;
    for (int tries = 0; tries < TRIES; tries++) {
        int unread, unacknowledged;
        if (!info_read(fd, &before) || ioctl(fd, SIOCINQ, &unread) < 0 ||
            ioctl(fd, SIOCOUTQ, &unacknowledged) < 0 || !info_read(fd, &after))
            return false;
        if (before.tcpi_bytes_received != after.tcpi_bytes_received ||
            before.tcpi_bytes_acked != after.tcpi_bytes_acked ||
            before.tcpi_state != after.tcpi_state)
            continue;
        uint8_t state = after.tcpi_state;
        out->ended = state == CLOSED;
        const uint64_t received = after.tcpi_bytes_received, acknowledged = after.tcpi_bytes_acked;
        out->bytes[DIRECTION_IN] = received - (uint64_t)unread - in_states(state, fin_received);
        // The SYN of whoever connects is acknowledged, too.
        out->bytes[DIRECTION_OUT] =
            acknowledged + (uint64_t)unacknowledged - in_states(state, fin_sent) - outgoing;
        return true;
    }
    return false; // it is never quiet: another time
}

static uint64_t moved_by(const struct observation *observation, int direction)
{
    return atomic_load(&observation->slot->moved[direction]) & 0xffffffffffffULL;
}

static bool is_equal(uint64_t counted, uint64_t *kernel, bool ended)
{
    if (ended && counted + 1 == *kernel)
        *kernel = counted;
    return counted == *kernel;
}

// Another thread may be between the kernel's count and ours: then they agree a moment later.
static bool counts_read(const struct observation *observation, unsigned directions,
                        struct ring_check *check)
{
    for (int tries = 0; tries < TRIES; tries++) {
        struct kernel_counts kernel;
        bool equal = true;
        if (!shim_count_kernel(observation->fd, observation->slot->outgoing, &kernel))
            return false;
        for (int d = 0; d < 2; d++) {
            check->counted[d] = moved_by(observation, d);
            equal &= is_equal(check->counted[d], &kernel.bytes[d], kernel.ended) ||
                     !(directions >> d & 1);
            check->kernel[d] = kernel.bytes[d];
        }
        if (equal)
            return true;
    }
    // A socket of another stack, beside or below the kernel's, carries its bytes past it.
    return check->kernel[0] || check->kernel[1];
}

static void check_record(const struct observation *observation, const struct ring_check *check)
{
    if (!shim_record_begin())
        return;
    union ring_entry *entry = ring_reserve(&shim_thread.ring, check->tsc);
    if (entry) {
        entry->check = *check;
        entry->check.kind = RING_CHECK;
        entry->check.connection = observation->connection;
        ring_commit(&shim_thread.ring, entry);
    } else {
        atomic_fetch_add_explicit(&shim.page->dropped_full, 1, memory_order_relaxed);
    }
    shim_record_end();
}

static bool is_still_its(const struct observation *observation)
{
    return atomic_load(&observation->slot->moved[DIRECTION_IN]) >> 48 == observation->generation;
}

static void check(const struct observation *observation, unsigned directions)
{
    const struct connection_slot *slot = observation->slot;
    struct ring_check check = {.tsc = tsc_now(), .directions = (uint8_t)directions};
    bool other = slot->cookie && shim_cookie(observation->fd) != slot->cookie;
    if (!is_still_its(observation) || slot->protocol != CONNECTION_TCP)
        return;
    if (other) {
        check.other = 1;
        check_record(observation, &check);
        shim_descriptor_forget(observation->fd);
    } else if (counts_read(observation, directions, &check) && is_still_its(observation)) {
        check_record(observation, &check);
    }
}

void shim_check_sample(const struct observation *observation, enum direction direction)
{
    int saved = errno;
    shim_thread.checked_tsc = tsc_now();
    check(observation, 1u << direction);
    errno = saved;
}

void shim_check_end(const struct observation *observation)
{
    if (observation->recording)
        check(observation, 1u << DIRECTION_IN | 1u << DIRECTION_OUT);
}

// What the program leaves open is checked as it ends.
__attribute__((destructor)) static void shim_end(void)
{
    uint32_t highest = shim.descriptor_limit ? atomic_load(&shim.highest_descriptor) + 1 : 0;
    uint64_t epoch = highest ? atomic_load(&shim.session->epoch) : 0;
    for (uint32_t fd = 0; fd < highest && epoch; fd++) {
        uint32_t watched = shim_known((int)fd);
        if (!watched || atomic_load(&shim.slots[watched & 0xffff].announced) != epoch)
            continue;
        struct observation observation = observe_begin((int)fd, watched);
        shim_check_end(&observation);
    }
}
