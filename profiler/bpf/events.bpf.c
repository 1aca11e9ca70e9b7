// SPDX-License-Identifier: MIT
//
// The `events` backend: what the kernel does on the captured cores and with the watched sockets,
// as 32-byte records (profiler/event_log.h) in a ring per core that the reader has mapped.
//
// These programs run inside what they measure, so every one filters first, reads the clock once,
// takes its slot with one atomic add on its own core's line and wakes nobody. Programs on one core
// may interrupt one another; a record's last store is the one that makes it whole.
#include "profiler/bpf/kernel.h"

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "base/connection.h"
#include "profiler/bpf/events.h"

enum { UNSEEN_WAIT_NS = 10000000 }; // a request waits no longer for its turn, as a rule

char LICENSE[] SEC("license") = "GPL"; // what the kernel asks of programs that use its tracing

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

// Where a watched connection's stream begins, by its ports: for segments met below TCP.
struct stream {
    uint32_t first; // sequence number of offset 0
    uint32_t id;
    uint64_t reached; // the offset seen last
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __type(key, uint32_t); // peer's port << 16 | local port
    __type(value, struct stream);
} streams SEC(".maps");

struct core_ring rings[EVENTS_MAX_CORES];
uint32_t told[EVENTS_TOLD]; // by the low bits of their number: threads whose process is recorded
uint64_t sockets_dropped;
const volatile uint64_t watched_ports[65536 / 64]; // one bit a port
const volatile bool can_cast;                      // the kernel has bpf_rdonly_cast (6.2)
// Where a core's steal_time lies from its run queue, which BPF can find; 0: not known.
const volatile int64_t steal_from_run_queue;

// Free where the kernel has it; three calls to read a field each where not.
extern void *bpf_rdonly_cast(void *object, __u32 type_id) __ksym __weak;

// The number, in a register the compiler knows nothing of: what is computed from it stays behind
// the comparison before, where older verifiers (6.1) still know its bounds.
static __always_inline uint64_t bounded(uint64_t number)
{
    asm volatile("" : "+r"(number));
    return number;
}

static __always_inline struct core_ring *ring_of(uint32_t core)
{
    uint64_t index = bounded(core);
    return index < EVENTS_MAX_CORES ? &rings[bounded(index)] : NULL;
}

static __always_inline bool port_in_set(uint16_t port)
{
    uint64_t word = bounded(port / 64);
    if (word >= sizeof watched_ports / sizeof *watched_ports)
        return false;
    return watched_ports[bounded(word)] >> (port % 64) & 1;
}

// This core's ring if its scheduler and interrupt events are wanted.
static __always_inline struct core_ring *watched_ring(uint32_t core)
{
    struct core_ring *ring = ring_of(core);
    return ring && ring->watched ? ring : NULL;
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

// Makes a record whole: kind, flags, core and id in one store, after all others.
static __always_inline void slot_finish(struct event *event, uint8_t kind, uint8_t flags,
                                        uint32_t core, uint32_t id)
{
    barrier();
    *(volatile uint64_t *)&event->kind =
        (uint64_t)kind | (uint64_t)flags << 8 | (uint64_t)core << 16 | (uint64_t)id << 32;
}

static __always_inline void put(struct core_ring *ring, uint32_t core, uint8_t kind, uint8_t flags,
                                uint32_t id, uint64_t now, uint64_t a, uint64_t b)
{
    struct event *event = slot_take(ring);
    if (!event)
        return;
    event->time = now;
    event->payload.a = a;
    event->payload.b = b;
    slot_finish(event, kind, flags, core, id);
}

// For how long the host of this virtual machine had the core for others, by its own account at
// that address.
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

// Finds the account of this core, by a thread of its.
static __always_inline void find_steal_time(struct core_ring *ring, struct task_struct *task)
{
    if (!can_tell_stolen() || ring->steal_time || !bpf_core_field_exists(task->se.cfs_rq))
        return;
    uint64_t steal_time = (uint64_t)task->se.cfs_rq->rq + (uint64_t)steal_from_run_queue;
    ring->stolen = stolen_by(steal_time);
    ring->steal_time = steal_time;
}

// Tells what was taken since the record before: of programs that interrupt one another, one does.
static __always_inline void record_stolen(struct core_ring *ring, uint32_t core, uint64_t now)
{
    if (!can_tell_stolen() || !ring->steal_time)
        return;
    uint64_t before = ring->stolen, stolen = stolen_by(ring->steal_time);
    if (stolen != before && __sync_val_compare_and_swap(&ring->stolen, before, stolen) == before)
        put(ring, core, EVENT_STOLEN, 0, 0, now, stolen - before, 0);
}

static __always_inline int record(struct core_ring *ring, uint32_t core, uint8_t kind,
                                  uint8_t flags, uint32_t id, uint64_t a, uint64_t b)
{
    uint64_t now = bpf_ktime_get_ns();
    record_stolen(ring, core, now);
    put(ring, core, kind, flags, id, now, a, b);
    return 0;
}

// For events that are wanted on watched cores only and carry nothing but an id.
static __always_inline int record_here(uint8_t kind, uint32_t id)
{
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = watched_ring(core);
    return ring ? record(ring, core, kind, 0, id, 0, 0) : 0;
}

// --- scheduler -----------------------------------------------------------------------------------

static __always_inline uint64_t task_state(struct task_struct *task)
{
    if (bpf_core_field_exists(task->__state))
        return task->__state;
    return (uint64_t)((struct task_struct___before_5_14 *)task)->state;
}

static __always_inline uint32_t task_core(struct task_struct *task)
{
    if (bpf_core_field_exists(task->thread_info.cpu))
        return task->thread_info.cpu;
    return ((struct task_struct___before_5_16 *)task)->cpu;
}

// Waiting for sockets to become ready is what servers do all day, and the shim records it.
static __always_inline bool waits_for_readiness(uint64_t call)
{
    enum { POLL = 7, SELECT = 23, EPOLL_WAIT = 232, PSELECT6 = 270, PPOLL = 271 };
    enum { EPOLL_PWAIT = 281, EPOLL_PWAIT2 = 441 }; // arch/x86/entry/syscalls/syscall_64.tbl
    return call == EPOLL_WAIT || call == EPOLL_PWAIT || call == EPOLL_PWAIT2 || call == POLL ||
           call == PPOLL || call == SELECT || call == PSELECT6;
}

// Notes what a user thread goes to sleep in.
static __always_inline void record_blocked(struct core_ring *ring, uint32_t core,
                                           struct task_struct *task, uint64_t state)
{
    struct pt_regs *regs = NULL;
    if (!bpf_core_field_exists(regs->orig_ax) ||
        !bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
        return;
    regs = (struct pt_regs *)bpf_task_pt_regs(task);
    uint64_t call = regs->orig_ax;
    if (!(state & BLOCKED_STOPPED) && waits_for_readiness(call))
        return;
    record(ring, core, EVENT_BLOCKED, 0, (uint32_t)task->pid, call, state);
}

// Says once, more or less, whose a thread is that comes: its own name need not tell.
static __always_inline void record_process(struct core_ring *ring, uint32_t core,
                                           struct task_struct *task)
{
    uint32_t thread = (uint32_t)task->pid;
    uint64_t slot = bounded(thread & (EVENTS_TOLD - 1));
    if (slot >= EVENTS_TOLD || told[bounded(slot)] == thread)
        return;
    told[bounded(slot)] = thread;
    const uint64_t *name = (const uint64_t *)task->group_leader->comm;
    record(ring, core, EVENT_PROCESS, 0, thread, name[0], name[1]);
}

// A thread's number may be another's later.
static __always_inline void forget_process(struct task_struct *task)
{
    uint64_t slot = bounded((uint32_t)task->pid & (EVENTS_TOLD - 1));
    if (slot < EVENTS_TOLD)
        told[bounded(slot)] = 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *previous, struct task_struct *next)
{
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = watched_ring(core);
    if (!ring)
        return 0;
    find_steal_time(ring, next);
    uint64_t state = task_state(previous);
    uint8_t flags =
        (preempt || state == 0 ? SWITCH_PREEMPTED : 0) | (state & TASK_DEAD ? SWITCH_EXITED : 0);
    if (ring->current != (uint32_t)previous->pid && ring->current != EVENTS_NO_THREAD)
        flags |= SWITCH_UNSEEN;
    if (flags & SWITCH_UNSEEN) {
        const uint64_t *unseen = (const uint64_t *)previous->comm;
        ring->unseen_until = bpf_ktime_get_ns() + UNSEEN_WAIT_NS;
        record(ring, core, EVENT_UNSEEN, 0, (uint32_t)previous->pid, unseen[0], unseen[1]);
    }
    if (state != 0 && !preempt && !(state & TASK_DEAD) && !(previous->flags & KERNEL_THREAD))
        record_blocked(ring, core, previous, state);
    if (state & TASK_DEAD)
        forget_process(previous);
    if (next->pid != next->tgid)
        record_process(ring, core, next);
    uint64_t dropped = ring->dropped;
    const uint64_t *name = (const uint64_t *)next->comm;
    record(ring, core, EVENT_SWITCH, flags, (uint32_t)next->pid, name[0], name[1]);
    if (ring->dropped == dropped) // else the next switch tells that this one is missing
        ring->current = (uint32_t)next->pid;
    return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *task)
{
    // A wake-up matters to the core that runs the waker and to the one the thread waits for.
    uint32_t core = bpf_get_smp_processor_id();
    uint32_t target = task_core(task);
    if (!watched_ring(core) && !watched_ring(target))
        return 0;
    struct core_ring *ring = ring_of(core);
    if (!ring)
        return 0;
    uint32_t waker = (uint32_t)bpf_get_current_pid_tgid();
    return record(ring, core, EVENT_WAKING, 0, (uint32_t)task->pid, target, waker);
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(sched_migrate_task, struct task_struct *task, int target)
{
    uint32_t from = task_core(task), to = (uint32_t)target;
    barrier_var(to); // keeps its bound where the verifier looks for it
    if (!watched_ring(from) && !watched_ring(to))
        return 0;
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = ring_of(core);
    return ring ? record(ring, core, EVENT_MIGRATE, 0, (uint32_t)task->pid, from, to) : 0;
}

// --- interrupts ----------------------------------------------------------------------------------

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(irq_handler_entry, int irq, struct irqaction *action)
{
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = watched_ring(core);
    if (!ring)
        return 0;
    char name[16] = {};
    bpf_probe_read_kernel_str(name, sizeof name, action->name);
    const uint64_t *words = (const uint64_t *)name;
    return record(ring, core, EVENT_IRQ_ENTRY, 0, (uint32_t)irq, words[0], words[1]);
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(irq_handler_exit, int irq)
{
    return record_here(EVENT_IRQ_EXIT, (uint32_t)irq);
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(softirq_entry, unsigned int vector)
{
    return record_here(EVENT_SOFTIRQ_ENTRY, vector);
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(softirq_exit, unsigned int vector)
{
    return record_here(EVENT_SOFTIRQ_EXIT, vector);
}

#define VECTOR_PROGRAMS(name, id)                                                                  \
    SEC("tp_btf/" #name "_entry")                                                                  \
    int BPF_PROG(name##_entry)                                                                     \
    {                                                                                              \
        return record_here(EVENT_VECTOR_ENTRY, id);                                                \
    }                                                                                              \
    SEC("tp_btf/" #name "_exit")                                                                   \
    int BPF_PROG(name##_exit)                                                                      \
    {                                                                                              \
        return record_here(EVENT_VECTOR_EXIT, id);                                                 \
    }

VECTOR_PROGRAMS(local_timer, VECTOR_LOCAL_TIMER)
VECTOR_PROGRAMS(reschedule, VECTOR_RESCHEDULE)
VECTOR_PROGRAMS(call_function, VECTOR_CALL_FUNCTION)
VECTOR_PROGRAMS(call_function_single, VECTOR_CALL_FUNCTION_SINGLE)
VECTOR_PROGRAMS(irq_work, VECTOR_IRQ_WORK)

static __always_inline int record_fault(uint8_t user, unsigned long address, struct pt_regs *regs)
{
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = watched_ring(core);
    if (!ring)
        return 0;
    uint32_t thread = (uint32_t)bpf_get_current_pid_tgid();
    ring->faulting = thread;
    return record(ring, core, EVENT_PAGE_FAULT, user, thread, address, regs->ip);
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(page_fault_user, unsigned long address, struct pt_regs *regs)
{
    return record_fault(1, address, regs);
}

SEC("tp_btf/page_fault_kernel")
int BPF_PROG(page_fault_kernel, unsigned long address, struct pt_regs *regs)
{
    return record_fault(0, address, regs);
}

// A fault that brings a page counts it, when all but the return is done.
SEC("tp_btf/rss_stat")
int BPF_PROG(rss_stat)
{
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = watched_ring(core);
    if (!ring || !ring->faulting)
        return 0;
    uint32_t thread = (uint32_t)bpf_get_current_pid_tgid();
    if (ring->faulting != thread)
        return 0;
    ring->faulting = 0;
    return record(ring, core, EVENT_FAULT_END, 0, thread, 0, 0);
}

// --- messages ------------------------------------------------------------------------------------
//
// tcp_sock.bytes_received and bytes_acked count from the connection's start. On an accepted
// connection both begin at 0 (rcv_nxt and snd_una are set past the SYNs when the child is made); on
// a connecting one bytes_acked begins at 1, which does not concern a server. Each counts a FIN
// as 1.

static __always_inline bool port_watched(const struct sock *sk)
{
    return port_in_set(sk->__sk_common.skc_num);
}

static __always_inline uint32_t socket_id(struct sock *sk)
{
    uint64_t cookie = (uint64_t)sk->__sk_common.skc_cookie.counter;
    if (!cookie) // nobody asked before: the helper makes one
        cookie = bpf_get_socket_cookie(sk);
    return (uint32_t)cookie;
}

static __always_inline int record_message(uint8_t kind, uint8_t flags, uint32_t id, uint64_t a,
                                          uint64_t b)
{
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = ring_of(core);
    return ring ? record(ring, core, kind, flags, id, a, b) : 0;
}

SEC("tp_btf/tcp_probe")
int BPF_PROG(tcp_probe, struct sock *sk, struct sk_buff *skb)
{
    if (!port_watched(sk))
        return 0;
    struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
    if (!tcp)
        return 0;
    struct tcp_skb_cb *control = (struct tcp_skb_cb *)skb->cb;
    uint32_t begin = *(uint32_t *)((char *)control + bpf_core_field_offset(control->seq));
    uint32_t end = *(uint32_t *)((char *)control + bpf_core_field_offset(control->end_seq));
    // skb->len still counts the TCP header, a multiple of 4: what is left over is the FIN.
    if ((end - begin - skb->len) & 1)
        end--;
    if (end == begin)
        return 0;
    uint64_t offset = tcp->bytes_received + (uint64_t)(int64_t)(int32_t)(end - tcp->rcv_nxt);
    return record_message(EVENT_SEGMENT, 0, socket_id(sk), offset, (uint64_t)skb->tstamp);
}

static __always_inline int record_handoff(struct sock *sk)
{
    if (!port_watched(sk) || sk->__sk_common.skc_state == STATE_LISTEN)
        return 0;
    struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
    if (!tcp)
        return 0;
    uint64_t ready = tcp->bytes_received;
    uint64_t taken = ready - (tcp->rcv_nxt - tcp->copied_seq);
    if (sk->__sk_common.skc_flags >> bpf_core_enum_value(enum sock_flags, SOCK_DONE) & 1)
        ready--; // the FIN
    if (taken > ready)
        taken = ready;
    return record_message(EVENT_HANDOFF, 0, socket_id(sk), ready, taken);
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(sk_data_ready, struct sock *sk)
{
    return record_handoff(sk);
}

// The function in which that tracepoint lies since Linux 6.3, for kernels before.
SEC("fentry/sock_def_readable")
int BPF_PROG(sock_def_readable, struct sock *sk)
{
    return record_handoff(sk);
}

// The offset of a sequence number the server sends. The socket's lock is not held when a queueing
// discipline delayed the packet: an acknowledgement processed on another core between the loads
// would shift the offset, so snd_una is looked at twice.
static __always_inline uint64_t sent_offset(const struct sock *sk, uint32_t sequence)
{
    uint32_t unacknowledged = 0, again = 0;
    uint64_t acknowledged = 0;
    for (int tries = 0; tries < 2; tries++) {
        if (can_cast) {
            const struct tcp_sock *tcp =
                bpf_rdonly_cast((void *)sk, bpf_core_type_id_kernel(struct tcp_sock));
            unacknowledged = *(volatile uint32_t *)&tcp->snd_una;
            acknowledged = *(volatile uint64_t *)&tcp->bytes_acked;
            again = *(volatile uint32_t *)&tcp->snd_una;
        } else {
            const struct tcp_sock *tcp = (const struct tcp_sock *)sk;
            bpf_core_read(&unacknowledged, sizeof unacknowledged, &tcp->snd_una);
            bpf_core_read(&acknowledged, sizeof acknowledged, &tcp->bytes_acked);
            bpf_core_read(&again, sizeof again, &tcp->snd_una);
        }
        if (again == unacknowledged)
            break;
    }
    return acknowledged + (uint64_t)(int64_t)(int32_t)(sequence - unacknowledged);
}

// The first sequence number that TCP has not yet counted as sent.
static __always_inline uint32_t sent_next(const struct sock *sk)
{
    uint32_t next = 0;
    if (can_cast) {
        const struct tcp_sock *tcp =
            bpf_rdonly_cast((void *)sk, bpf_core_type_id_kernel(struct tcp_sock));
        return tcp->snd_nxt;
    }
    bpf_core_read(&next, sizeof next, &((const struct tcp_sock *)sk)->snd_nxt);
    return next;
}

// A reply's bytes on their way to the device. Below TCP the control block is IP's, so the sequence
// number comes from the header. skb->sk may be a request or a time-wait socket, which are smaller.
SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(net_dev_start_xmit, struct sk_buff *skb, struct net_device *device)
{
    struct sock *sk = skb->sk;
    if (!sk || !port_watched(sk))
        return 0;
    unsigned char state = sk->__sk_common.skc_state;
    if (state == STATE_NEW_SYN_RECEIVED || state == STATE_TIME_WAIT ||
        sk->sk_protocol != PROTOCOL_TCP)
        return 0;
    uint32_t words[4]; // TCP header: ports, sequence, acknowledgement, data offset and flags
    unsigned char *header = skb->head + skb->transport_header;
    if (bpf_probe_read_kernel(words, sizeof words, header) < 0)
        return 0;
    uint32_t before = (uint32_t)(header - skb->data);
    uint32_t payload = skb->len - before - (words[3] >> 4 & 0xf) * 4;
    if (payload == 0 || payload > skb->len)
        return 0;
    uint32_t end = bpf_ntohl(words[1]) + payload;
    uint64_t offset = sent_offset(sk, end);
    // TCP moves snd_nxt past new bytes only after it has handed them down.
    uint8_t flags = (int32_t)(end - sent_next(sk)) <= 0 ? TRANSMIT_AGAIN : 0;
    // A socket that has received a request has its cookie.
    uint32_t id = (uint32_t)sk->__sk_common.skc_cookie.counter;
    return record_message(EVENT_TRANSMIT, flags, id, offset, payload);
}

// --- what stands in for messages that came unseen
// -------------------------------------------------

// veth and loopback hand a segment over in its sender's context, stamp included. The Ethernet
// header is off already.
SEC("tp_btf/netif_rx")
int BPF_PROG(netif_rx, struct sk_buff *skb)
{
    uint8_t bytes[40]; // as a rule, both headers
    if (bpf_probe_read_kernel(bytes, 40, skb->data) < 0)
        return 0;
    uint32_t tcp[4]; // ports, sequence, acknowledgement, data offset and flags
    uint32_t header, whole;
    if (bytes[0] == 0x45 && bytes[9] == PROTOCOL_TCP) {
        header = 20;
        whole = (uint32_t)bytes[2] << 8 | bytes[3];
        __builtin_memcpy(tcp, bytes + 20, sizeof tcp);
    } else if (bytes[0] >> 4 == 4 && bytes[9] == PROTOCOL_TCP) {
        header = (uint32_t)(bytes[0] & 0xf) * 4;
        whole = (uint32_t)bytes[2] << 8 | bytes[3];
        if (bpf_probe_read_kernel(tcp, sizeof tcp, skb->data + header) < 0)
            return 0;
    } else if (bytes[0] >> 4 == 6 && bytes[6] == PROTOCOL_TCP) {
        header = 40;
        whole = header + ((uint32_t)bytes[4] << 8 | bytes[5]);
        if (bpf_probe_read_kernel(tcp, sizeof tcp, skb->data + header) < 0)
            return 0;
    } else {
        return 0;
    }
    uint32_t ports = bpf_ntohl(tcp[0]); // source, destination
    uint16_t local = (uint16_t)ports;
    uint32_t payload = whole - header - (tcp[3] >> 4 & 0xf) * 4;
    if (!port_in_set(local) || payload == 0 || payload > whole)
        return 0;
    struct stream *stream = bpf_map_lookup_elem(&streams, &ports);
    if (!stream)
        return 0;
    uint32_t end = bpf_ntohl(tcp[1]) + payload - stream->first;
    stream->reached += (uint64_t)(int64_t)(int32_t)(end - (uint32_t)stream->reached);
    return record_message(EVENT_ARRIVAL, 0, stream->id, stream->reached, 0);
}

// TCP itself notes when it last processed a segment of a socket. That is asked for only when the
// thread that takes the bytes was not seen to come, or shortly after such a time.
SEC("tp_btf/sock_recv_length")
int BPF_PROG(sock_recv_length, struct sock *sk, int bytes, int flags)
{
    if (bytes <= 0 || (flags & MSG_PEEK) || !port_watched(sk))
        return 0;
    struct core_ring *ring = watched_ring(bpf_get_smp_processor_id());
    if (!ring || (ring->current == (uint32_t)bpf_get_current_pid_tgid() &&
                  bpf_ktime_get_ns() > ring->unseen_until))
        return 0;
    struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
    if (!tcp || !bpf_core_field_exists(tcp->tcp_clock_cache))
        return 0;
    uint64_t taken = tcp->bytes_received - (tcp->rcv_nxt - tcp->copied_seq);
    return record_message(EVENT_TAKEN, 0, socket_id(sk), taken, tcp->tcp_clock_cache);
}

// --- connections ---------------------------------------------------------------------------------

static __always_inline void map_address(uint8_t out[16], uint32_t ipv4)
{
    out[10] = out[11] = 0xff;
    __builtin_memcpy(out + 12, &ipv4, 4);
}

// Enters a connection into the table; entries are never taken out, so that closed ones stay known.
static __always_inline void remember(struct sock_common *common, uint64_t cookie,
                                     uint64_t opened_time)
{
    struct connection connection = {.id = (uint32_t)cookie, .protocol = CONNECTION_TCP};
    connection.cookie = cookie;
    connection.local_port = common->skc_num;
    connection.peer_port = bpf_ntohs(common->skc_dport);
    connection.opened_time = opened_time;
    if (common->skc_family == FAMILY_INET) {
        map_address(connection.local, common->skc_rcv_saddr);
        map_address(connection.peer, common->skc_daddr);
    } else if (bpf_core_field_exists(common->skc_v6_daddr)) {
        bpf_core_read(connection.local, 16, &common->skc_v6_rcv_saddr);
        bpf_core_read(connection.peer, 16, &common->skc_v6_daddr);
    }
    if (bpf_map_update_elem(&sockets, &cookie, &connection, BPF_NOEXIST) == -7 /* E2BIG */)
        __sync_fetch_and_add(&sockets_dropped, 1);
    struct tcp_sock *tcp = bpf_skc_to_tcp_sock((void *)common);
    if (!tcp)
        return;
    struct stream stream = {.first = tcp->rcv_nxt - (uint32_t)tcp->bytes_received,
                            .id = (uint32_t)cookie,
                            .reached = tcp->bytes_received};
    uint32_t ports = (uint32_t)connection.peer_port << 16 | connection.local_port;
    bpf_map_update_elem(&streams, &ports, &stream, BPF_ANY);
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(inet_sock_set_state, struct sock *sk, int before, int after)
{
    if (after != STATE_ESTABLISHED || before != STATE_SYN_RECEIVED || !port_watched(sk) ||
        sk->sk_protocol != PROTOCOL_TCP)
        return 0;
    remember(&sk->__sk_common, bpf_get_socket_cookie(sk), bpf_ktime_get_ns());
    return 0;
}

// Runs over the TCP sockets of the reader's network namespace: connections older than the capture.
SEC("iter/tcp")
int known_sockets(struct bpf_iter__tcp *context)
{
    struct sock_common *common = context->sk_common;
    if (!common)
        return 0;
    unsigned char state = common->skc_state;
    if (state == STATE_LISTEN || state == STATE_TIME_WAIT || state == STATE_CLOSE ||
        state == STATE_NEW_SYN_RECEIVED || !port_watched((struct sock *)common))
        return 0;
    remember(common, bpf_get_socket_cookie(common), 0);
    return 0;
}
