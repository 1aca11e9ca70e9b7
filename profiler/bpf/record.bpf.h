// SPDX-License-Identifier: MIT
//
// The rings, and how a program of events.bpf.c writes a record: used by all of them. Part of that
// file.
#ifndef PROFILER_BPF_RECORD_BPF_H
#define PROFILER_BPF_RECORD_BPF_H

#include "profiler/bpf/kernel.h"

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "base/connection.h"
#include "profiler/bpf/event_rings.h"

// The loader sets the number of records and fills in the rings before it loads.
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, struct event);
} events SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __type(key, uint64_t);
    __type(value, struct connection);
} sockets SEC(".maps");

// Where it is full, those go that were not looked for lately.
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1);
    __type(key, struct stream_key);
    __type(value, struct stream);
} streams SEC(".maps");

// The threads of other PID namespaces than the machine's first: namespace << 32 | the number there,
// to the one here.
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EVENTS_NAMESAKES);
    __type(key, uint64_t);
    __type(value, uint32_t);
} namesakes SEC(".maps");

// By process. The loader fills it.
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, EVENTS_RUNTIMES);
    __type(key, uint32_t);
    __type(value, struct runtime_waits);
} runtimes SEC(".maps");

// Where they are not asked for it is of a page. The loader sets it.
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} payload SEC(".maps");

struct core_ring rings[EVENTS_MAX_CORES];
// by the low bits of the thread's number: threads that have watched sockets
uint32_t servers[EVENTS_SERVERS];
// by the low bits of the thread's number: threads in a send call on a watched socket
uint32_t senders[EVENTS_SERVERS];
// by the low bits of the process's number: processes with watched sockets whose calls are recorded
uint32_t serving_processes[EVENTS_SERVERS];
// by the low bits of the process's number: processes whose socket calls somebody else records
uint32_t left_processes[EVENTS_SERVERS];
// by the low bits of a socket's id: the id, and the low half of the offset it was handed last
uint64_t handed[EVENTS_SOCKETS];
// by the low bits of the thread's number: threads whose process is recorded
uint32_t threads_recorded[EVENTS_THREADS];
// network namespaces (inodes) whose sockets are watched, up to the first 0; none: all
uint32_t watched_namespaces[EVENTS_NAMESPACES];
// by the low bits of a socket's id: sockets that were looked up in their table
uint32_t sockets_met[EVENTS_SOCKETS];
uint64_t sockets_entered;
uint64_t sockets_ended; // of these
uint64_t sockets_dropped;
uint64_t sockets_refused[EVENTS_REFUSED / 64];  // one bit a socket, by the low bits of its id
uint64_t segments_dropped[EVENTS_DROP_REASONS]; // by the kernel's reason
uint32_t resting;                               // nothing is recorded (events_budget.h)
uint32_t sparing;                     // hand-offs are not recorded, nor others (events_budget.h)
uint64_t payload_unseen;              // calls whose bytes are not where these programs can look
uint64_t payload_lost;                // that found the ring full
uint64_t watched_ports[65536 / 64];   // one bit a port; more may come
uint64_t accepting_ports[65536 / 64]; // those that anybody accepts connections on, once seen
const volatile bool can_follow;       // cores that were not asked for
const volatile bool records_calls;    // on watched sockets, as they return
const volatile bool looks_at_payload; // the first bytes of these calls
const volatile bool nic_stamps;       // of what arrives, where the NIC took one
const volatile bool can_cast;         // the kernel has bpf_rdonly_cast (6.2)
// Where a core's steal_time lies from its run queue, which BPF can find; 0: not known.
const volatile int64_t steal_from_run_queue;

// Casts where the kernel can; elsewhere reading a field takes three calls.
extern void *bpf_rdonly_cast(void *object, __u32 type_id) __ksym __weak;

// Returns the number through a register whose value the compiler does not know, so that it does not
// move computations in front of the comparison: older verifiers (6.1) only know the bounds after
// it.
static __always_inline uint64_t number_bounded(uint64_t number)
{
    asm volatile("" : "+r"(number));
    return number;
}

static __always_inline struct core_ring *ring_of(uint32_t core)
{
    uint64_t index = number_bounded(core);
    return index < EVENTS_MAX_CORES ? &rings[number_bounded(index)] : NULL;
}

static __always_inline bool bit_of_port(const uint64_t ports[65536 / 64], uint16_t port)
{
    uint64_t word = number_bounded(port / 64);
    if (word >= sizeof watched_ports / sizeof *watched_ports)
        return false;
    return ports[number_bounded(word)] >> (port % 64) & 1;
}

static __always_inline bool port_in_set(uint16_t port)
{
    return bit_of_port(watched_ports, port);
}

// Reads words of 8 bytes. Where the kernel can cast it takes an instruction or two each, and no
// call; what is not there reads as 0 then. `words` is a constant.
static __always_inline bool words_read(uint64_t *out, const void *from, uint32_t words)
{
    if (!can_cast)
        return bpf_probe_read_kernel(out, words * 8, from) == 0;
#pragma unroll
    for (uint32_t i = 0; i < words; i++) {
        // Any type of the kernel's will do that is long enough.
        const struct in6_addr *at =
            bpf_rdonly_cast((char *)from + i * 8, bpf_core_type_id_kernel(struct in6_addr));
        out[i] = *(volatile uint64_t *)&at->in6_u;
    }
    return true;
}

static __always_inline uint64_t word_read(const void *from)
{
    uint64_t word = 0;
    words_read(&word, from, 1);
    return word;
}

// The 8 bytes that begin with that field of an object of which the verifier does not know what it
// is. What is narrower is cut out of them. 0 if it cannot be read.
#define WORD_READ(object, field)                                                                   \
    word_read((const char *)(object) + bpf_core_field_offset((object)->field))

// The network namespace of a socket; 0: this kernel has no others.
static __always_inline uint32_t namespace_of(const struct sock_common *common)
{
    return bpf_core_field_exists(common->skc_net.net) ? common->skc_net.net->ns.inum : 0;
}

// Whether a namespace is watched (0: this kernel has no others), where `first` is the first that is
// (0: all are).
static __always_inline bool namespace_in_set(uint32_t first, uint32_t namespace)
{
    if (namespace == first || !namespace)
        return true;
#pragma unroll
    for (int i = 1; i < EVENTS_NAMESPACES; i++)
        if (watched_namespaces[i] == namespace)
            return true;
    return false;
}

static __always_inline bool namespace_watched(const struct sock_common *common)
{
    uint32_t first = *(volatile uint32_t *)&watched_namespaces[0];
    return !first || namespace_in_set(first, namespace_of(common));
}

// This core's ring if its scheduler and interrupt events are wanted.
static __always_inline struct core_ring *watched_ring(uint32_t core)
{
    struct core_ring *ring = ring_of(core);
    return ring && ring->watched && !*(volatile uint32_t *)&resting ? ring : NULL;
}

// Has a core recorded from its next event on.
static __always_inline void core_follow(uint32_t core)
{
    struct core_ring *ring = ring_of(core);
    if (can_follow && ring && ring->watched == CORE_UNWATCHED)
        __sync_val_compare_and_swap(&ring->watched, CORE_UNWATCHED, CORE_TO_FOLLOW);
}

// The slot for a new record, NULL (and counted) when the ring is full.
static __always_inline struct event *slot_take(struct core_ring *ring)
{
    uint64_t tail = *(volatile uint64_t *)&ring->tail;
    if (*(volatile uint64_t *)&ring->head - tail + EVENTS_SLACK > ring->mask)
        goto full;
    uint64_t position = __sync_fetch_and_add(&ring->head, 1);
    if (position - tail > ring->mask)
        goto full; // the slack was not enough: this position stays empty
    uint32_t slot = ring->base + ((uint32_t)position & ring->mask);
    return bpf_map_lookup_elem(&events, &slot);
full:
    __sync_fetch_and_add(&ring->dropped, 1);
    return NULL;
}

// Completes a record: kind, flags, core and id in one store, after all others.
static __always_inline void slot_finish(struct event *event, uint8_t kind, uint8_t flags,
                                        uint32_t core, uint32_t id)
{
    barrier();
    *(volatile uint64_t *)&event->kind =
        (uint64_t)kind | (uint64_t)flags << 8 | (uint64_t)core << 16 | (uint64_t)id << 32;
}

static __always_inline void record_complete(struct core_ring *ring, uint32_t core, uint8_t kind,
                                            uint8_t flags, uint32_t id, uint64_t now, uint64_t a,
                                            uint64_t b)
{
    struct event *event = slot_take(ring);
    if (!event)
        return;
    event->time = now;
    event->payload.a = a;
    event->payload.b = b;
    slot_finish(event, kind, flags, core, id);
}

// How long the host of this virtual machine gave the core to others, by its own account at that
// address.
static __always_inline uint64_t stolen_by(uint64_t steal_time)
{
    const struct kvm_steal_time *account =
        bpf_rdonly_cast((void *)steal_time, bpf_core_type_id_kernel(struct kvm_steal_time));
    return *(volatile uint64_t *)&account->steal;
}

static __always_inline bool can_tell_stolen(void)
{
    return can_cast && steal_from_run_queue && bpf_core_type_exists(struct kvm_steal_time);
}

// Finds the account of this core, starting from a thread on it.
static __always_inline void find_steal_time(struct core_ring *ring, struct task_struct *task)
{
    if (!can_tell_stolen() || ring->steal_time || !bpf_core_field_exists(task->se.cfs_rq))
        return;
    uint64_t steal_time = (uint64_t)task->se.cfs_rq->rq + (uint64_t)steal_from_run_queue;
    ring->stolen = stolen_by(steal_time);
    ring->steal_time = steal_time;
}

// Records the time stolen since the record before. If programs interrupt one another, only one of
// them does.
static __always_inline void record_stolen(struct core_ring *ring, uint32_t core, uint64_t now)
{
    if (!can_tell_stolen() || !ring->steal_time)
        return;
    uint64_t before = ring->stolen, stolen = stolen_by(ring->steal_time);
    if (stolen != before && __sync_val_compare_and_swap(&ring->stolen, before, stolen) == before)
        record_complete(ring, core, EVENT_STOLEN, 0, 0, now, stolen - before, 0);
}

// Records who has the core as its recording begins.
static __attribute__((noinline)) int record_watched(uint32_t core, uint64_t now)
{
    struct core_ring *ring = ring_of(core);
    uint32_t before = ring ? ring->watched : CORE_WATCHED;
    if (!ring || before <= CORE_WATCHED ||
        __sync_val_compare_and_swap(&ring->watched, before, CORE_WATCHED) != before)
        return 0;
    uint64_t name[2] = {0, 0};
    uint32_t thread = (uint32_t)bpf_get_current_pid_tgid();
    bpf_get_current_comm(name, sizeof name);
    ring->current = thread;
    record_complete(ring, core, EVENT_WATCHED, before == CORE_TO_FOLLOW ? WATCHED_LATE : 0, thread,
                    now, name[0], name[1]);
    return 0;
}

static __always_inline int record_write_at(struct core_ring *ring, uint32_t core, uint8_t kind,
                                           uint8_t flags, uint32_t id, uint64_t now, uint64_t a,
                                           uint64_t b)
{
    if (ring->watched > CORE_WATCHED)
        record_watched(core, now);
    record_stolen(ring, core, now);
    record_complete(ring, core, kind, flags, id, now, a, b);
    return 0;
}

static __always_inline int record_write(struct core_ring *ring, uint32_t core, uint8_t kind,
                                        uint8_t flags, uint32_t id, uint64_t a, uint64_t b)
{
    return record_write_at(ring, core, kind, flags, id, bpf_ktime_get_ns(), a, b);
}

// For events that are only wanted on watched cores and carry nothing but an id.
static __always_inline int record_here(uint8_t kind, uint32_t id)
{
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = watched_ring(core);
    return ring ? record_write(ring, core, kind, 0, id, 0, 0) : 0;
}

#endif
