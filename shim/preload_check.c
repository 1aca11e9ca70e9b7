// SPDX-License-Identifier: MIT
//
// The shim's byte counts held against the kernel's. A program may move bytes in ways the shim does
// not see, or close a descriptor so and give its number to something else; every later offset would
// be wrong in silence. So the two counts are compared as a connection ends, as the program ends,
// and now and then in between: never more than once in CHECK_CYCLES by a thread. What the
// comparison means is for the collector to say, who sees all processes that share a connection.
#include "shim/preload_local.h"

enum { TRIES = 4 }; // to read numbers that belong together

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
    if (!shim_calls_begin())
        return;
    shim_thread.checked_tsc = tsc_now();
    check(observation, 1u << direction);
    shim_calls_end();
    errno = saved;
}

void shim_check_end(const struct observation *observation)
{
    if (!observation->recording || !shim_calls_begin())
        return;
    check(observation, 1u << DIRECTION_IN | 1u << DIRECTION_OUT);
    shim_calls_end();
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
