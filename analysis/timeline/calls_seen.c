// SPDX-License-Identifier: MIT
#include "analysis/timeline/calls_seen.h"

#include <string.h>

#include "analysis/timeline/pauses.h"
#include "base/array.h"

int calls_seen_at_timer(struct timeline_builder *builder, const struct event *event,
                        int64_t time_ns)
{
    return array_push(&builder->sights,
                      (struct call_sight){.time_ns = time_ns,
                                          .thread = (uint32_t)event->payload.b,
                                          .instance = (uint32_t)(event->payload.a >> 32),
                                          .call = (uint16_t)event->payload.a});
}

int calls_seen_asleep(struct timeline_builder *builder, const struct event *event, int64_t time_ns)
{
    enum { FUTEX = 202 }; // it has something else where others have what they are known again by
    const bool known = event->payload.a != BLOCKED_NO_CALL && (uint32_t)event->payload.a != FUTEX;
    const uint64_t call = known ? event->payload.a : 0;
    return array_push(&builder->sights, (struct call_sight){.time_ns = time_ns,
                                                            .thread = event->id,
                                                            .instance = (uint32_t)(call >> 32),
                                                            .call = (uint16_t)call,
                                                            .asleep = true});
}

static int compare_sights(const void *left, const void *right)
{
    const struct call_sight *a = left, *b = right;
    return order_of(a->thread, b->thread) ?: order_of(a->time_ns, b->time_ns);
}

static bool is_same_call(const struct call_sight *a, const struct call_sight *b)
{
    return a->instance && a->thread == b->thread && a->instance == b->instance &&
           a->call == b->call;
}

// Whether the thread waited for sockets between the two: then it has left the call.
static bool has_waited(const struct host_timeline *host, const struct detour *stay)
{
    size_t count;
    const struct thread_stint *stints = host_timeline_stints(host, stay->thread, &count);
    size_t at = array_bound(0, count, i, stints[i].end_ns < stay->begin_ns);
    for (; at < count && stints[at].end_ns < stay->end_ns; at++)
        if (stints[at].left == STINT_WAITS)
            return true;
    return false;
}

// Whether the kernel may be at work in it for milliseconds. Whoever is seen in another one twice
// calls it over and over, as those do that look at the clock.
static bool may_last(uint32_t call)
{
    static const char *const calls[] = {
        // memory
        "mmap", "mprotect", "munmap", "brk", "mremap", "msync", "madvise", "mlock", "munlock",
        "mlockall", "munlockall", "mbind", "migrate_pages", "move_pages", "mlock2", "pkey_mprotect",
        "process_madvise",
        // processes
        "clone", "fork", "vfork", "execve", "exit", "exit_group", "unshare", "setns", "execveat",
        "membarrier", "clone3",
        // files
        "open", "close", "fsync", "fdatasync", "truncate", "ftruncate", "getdents", "rename",
        "mkdir", "rmdir", "creat", "link", "unlink", "sync", "umount2", "readahead", "getdents64",
        "fadvise64", "openat", "unlinkat", "renameat", "linkat", "sync_file_range", "fallocate",
        "syncfs", "renameat2", "copy_file_range", "openat2",
        // bytes
        "pread64", "pwrite64", "vmsplice", "preadv", "pwritev", "process_vm_readv",
        "process_vm_writev", "getrandom", "preadv2", "pwritev2",
        // drivers, firewalls, the kernel's own code
        "ioctl", "setsockopt", "init_module", "delete_module", "finit_module", "bpf"};
    char name[32];
    system_call_name(call, name, sizeof name);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i], name) == 0)
            return true;
    return false;
}

// Whether the registers are proof enough. Who sleeps in a read may have waited for something to do.
static bool can_be_known_again(const struct call_sight *begin, const struct call_sight *end)
{
    return pause_moves_bytes(begin->call) ? !begin->asleep && !end->asleep : may_last(begin->call);
}

int calls_seen_settle(struct timeline_builder *builder)
{
    const struct call_sight_array *sights = &builder->sights;
    array_sort(&builder->sights, compare_sights);
    for (size_t i = 1; i < sights->count; i++) {
        const struct call_sight *begin = &sights->items[i - 1], *end = &sights->items[i];
        const struct detour stay = {.begin_ns = begin->time_ns,
                                    .end_ns = end->time_ns,
                                    .thread = begin->thread,
                                    .kind = begin->call};
        if (is_same_call(begin, end) && can_be_known_again(begin, end) &&
            !has_waited(builder->out, &stay) && array_push(&builder->out->calls, stay) < 0)
            return -1;
    }
    return 0;
}
