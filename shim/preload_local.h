// SPDX-License-Identifier: MIT
//
// Inside the LD_PRELOAD library: what its sources share, and the hot path. The library lives in
// other people's processes, so nothing here allocates, locks, or makes a system call on the way
// of a socket call; the exceptions are accept, connect, close, and a process's first call on a
// watched socket. Its memory is the collector's (shim/ring.h).
//
// How a call is assigned to its connection: descriptors[fd] holds (generation << 16 | slot) of one
// that is watched, DESCRIPTOR_OTHER of one that is known not to be, and 0 of one that nobody has
// looked at: it is looked at when it is first used (preload_identify.c), for it may be a connection
// that came in no way the shim sees. A slot's byte counters carry the same generation, and are
// advanced by compare-and-swap, so a call that returns after its connection's slot was reused
// changes nothing and is counted as late. That the counters are right is checked against the
// kernel's own (preload_check.c).
//
// This is the one place with file-scope state: a preloaded library has nowhere else to keep it.
#ifndef SHIM_PRELOAD_LOCAL_H
#define SHIM_PRELOAD_LOCAL_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/command_words.h"
#include "base/connection.h"
#include "base/tsc.h"
#include "shim/preload_real.h"
#include "shim/ring.h"

#define SHIM_EXPORT __attribute__((visibility("default")))
#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

enum {
    DESCRIPTOR_LIMIT = 1 << 20, // Linux's default fs.nr_open
    SLOT_LIMIT = 1 << 16,       // connections watched at once; slot 0 is never used
    DESCRIPTOR_OTHER = 1 << 16, // an entry of the table: slot 0
    CHECK_CYCLES = 1 << 24,     // a thread checks one of its calls in about 8 ms
};

enum direction { DIRECTION_IN = 0, DIRECTION_OUT = 1 };

// What neither takes bytes out of the stream nor has any of it.
enum { NOT_OF_THE_STREAM = MSG_PEEK | MSG_ERRQUEUE };

struct connection_slot {
    _Atomic uint64_t moved[2];   // by direction: generation << 48 | bytes
    _Atomic uint64_t announced;  // the epoch in which the connection was announced to the collector
    _Atomic uint32_t references; // descriptors that name it
    _Atomic uint32_t next_free;  // in the list of free slots
    uint32_t id;                 // unique within the process, from 1
    uint16_t local_port;         // host byte order
    uint16_t peer_port;          // host byte order; of a UDP socket 0 where it has many peers
    uint8_t outgoing;            // as struct connection
    uint8_t protocol;            // the same
    uint64_t cookie;
    uint64_t opened_tsc;
    uint8_t local[16];
    uint8_t peer[16];
} __attribute__((aligned(128)));

// Private memory that a forked child finds zeroed (MADV_WIPEONFORK): how a child, made by
// whatever means, notices that the rings it inherited are its parent's.
struct session_page {
    _Atomic uint64_t epoch; // of this attachment; 0: not attached (or a child not yet noticed)
    _Atomic uint64_t next_attempt_tsc;
    _Atomic uint32_t attaching; // only one thread attaches, the others go on
    _Atomic uint32_t process;
    uint64_t instance;
    uint64_t place_tsc;       // when to look for a place again
    uint32_t place;           // in the pool
    _Atomic uint32_t calling; // threads amid system calls of the shim's own
};
_Static_assert(sizeof(struct session_page) <= RING_PAGE_BYTES, "one page");

struct shim_state {
    uint32_t descriptor_limit; // 0: inert, everything is passed through
    uint16_t port;             // watch only connections to it; 0: all
    bool retire;               // thread exits are noticed through retire_key
    pthread_key_t retire_key;
    _Atomic uint32_t *descriptors;
    struct connection_slot *slots;
    _Atomic uint32_t *by_cookie;  // by the low bits of the cookie: an entry as in descriptors
    struct control_page *control; // zeros until mapped; the mapping is replaced in place
    struct ring_pool pool;
    struct process_page *_Atomic page; // in the pool when attached, else `nobody`
    struct process_page *nobody;       // private memory
    struct session_page *session;
    _Atomic uint64_t free_slots; // tag << 32 | slot; the tag makes the list safe against reuse
    _Atomic uint32_t slots_used;
    _Atomic uint32_t last_id;
    _Atomic uint32_t highest_descriptor;
    uint64_t control_inode; // of the control page that is mapped; 0: none
    uint64_t pid_namespace; // inode; 0: unknown
    struct pool_range {     // where pools are mapped, in turn: the one before is still being left
        void *base;
        size_t bytes;
    } ranges[2];
    unsigned pools_mapped;
    char directory[400];
};
extern struct shim_state shim;

struct shim_thread {
    uint64_t epoch;       // of its ring's attachment; never 0, so a thread starts as not ready
    uint64_t checked_tsc; // when it last held its count against the kernel's
    struct ring_producer ring;
    uint32_t batch;
    uint16_t batch_position;
    bool busy;    // a record is being written: calls in a signal handler must not write
    bool slow;    // attaching
    bool retired; // the thread is ending
};
extern __thread struct shim_thread shim_thread __attribute__((tls_model("initial-exec")));

// A watched call under way.
struct observation {
    uint64_t entry_tsc;
    struct connection_slot *slot;
    uint32_t connection;
    int fd;
    uint16_t generation;
    uint16_t entry_core;
    bool recording;
    const void *payload;         // where the first bytes lie that it moves, and how many at most
    size_t room;                 // 0: nobody may look there
    const struct sockaddr *peer; // of a datagram: who is at its other end
    socklen_t peer_bytes;        // 0: the program was not told, and did not say
};

struct call_exit {
    uint64_t tsc;
    uint16_t core;
};

// preload_attach.c: a process or thread to a collector; filtered: with no system call but the
// loader's
void shim_attach(void);
void shim_attach_filtered(void);
void shim_observe_slow(struct observation *observation);
void shim_ring_retire(void *unused);

// preload_seccomp.c; the last makes a system call that may install a filter
bool shim_seccomp_present(void);
long shim_filter_call(long number, long a, long b, long c, long d, long e, long f);

// preload_syscall.c
void shim_syscall_start(void);

// preload_socket.c: an address as IPv6 (IPv4 mapped) and a host-order port, false where it is no
// internet address; the cookie, 0 where there is none; and the bytes that a program has taken out
// of a connection and put into it
bool shim_address_read(const struct sockaddr_storage *address, uint8_t out[16], uint16_t *port);
uint64_t shim_cookie(int fd);
struct kernel_counts {
    uint64_t bytes[2]; // by direction
    bool ended;        // each may be 1 too many: it is not known whether a FIN is among them
};
bool shim_count_kernel(int fd, bool outgoing, struct kernel_counts *out);

// preload_identify.c
uint32_t shim_descriptor_identify(int fd);
void shim_rights_received(struct msghdr *message);
void shim_connection_accepted(int fd, const struct sockaddr *peer, socklen_t peer_bytes,
                              struct observation *observation);
void shim_connection_made(int fd, const struct sockaddr *peer, socklen_t peer_bytes,
                          struct observation *observation);

// preload_descriptor.c: around a call that ends a descriptor, makes a copy or a connection
struct ending {
    uint32_t watched;
    struct observation observation;
};
void shim_close_begin(int fd, struct ending *ending);
void shim_close_end(struct ending *ending);
void shim_close_range(unsigned first, unsigned last, int flags);
void shim_replace_begin(int fd, int to, struct ending *ending);
int shim_replace_end(int fd, int to, struct ending *ending, int result);
int shim_descriptor_copied(int fd, int copy);
struct observation shim_connection_begin(void);
void shim_accept_end(struct observation *observation, int fd, const struct sockaddr *address,
                     socklen_t room, const socklen_t *bytes);

// preload_receive.c, preload_send.c: after a call that moved several messages, or rights, or may
// have. observation: NULL where nobody watches
void shim_message_received(struct observation *observation, struct msghdr *message, int flags,
                           long moved);
void shim_messages_received(struct observation *observation, struct mmsghdr *messages, int flags,
                            int filled);
void shim_message_sent(struct observation *observation, const struct msghdr *message, long moved);
void shim_messages_sent(struct observation *observation, struct mmsghdr *messages, int taken);

// preload_datagram.c: the same of datagrams, which have no stream
void shim_datagram_moved(const struct observation *observation, const struct call_exit *exit,
                         enum call_kind kind, uint64_t bytes, uint64_t rx_ns);
socklen_t shim_smallest_room(const struct mmsghdr *messages, unsigned count);

// preload_check.c: the shim's counts against the kernel's
void shim_check_sample(const struct observation *observation, enum direction direction);
void shim_check_end(const struct observation *observation);

// preload_connection.c
void shim_connection_watch(int fd, const struct connection_slot *facts, enum call_kind kind,
                           struct observation *observation);
uint32_t shim_connection_join(int fd, const struct connection_slot *facts);
void shim_connection_release(uint32_t watched, struct observation *observation);
uint32_t shim_descriptor_take(int fd);
uint32_t shim_descriptor_adopt(int fd, uint64_t cookie);
void shim_descriptor_put_back(int fd, uint32_t watched);
void shim_descriptor_alias(int from, int to);
void shim_descriptor_forget(int fd);
void shim_descriptor_is_other(int fd);
bool shim_announce_slow(const struct observation *observation, uint64_t epoch);
bool shim_borrowed_memory(void);

// Around system calls of the shim's own, once it has started. False: the process may have a filter,
// which might kill it for any. A filter waits until no thread is amid such calls.
static inline bool shim_calls_begin(void)
{
    if (!shim.descriptor_limit)
        return false;
    atomic_fetch_add(&shim.session->calling, 1);
    if (likely(__atomic_load_n(&shim.descriptor_limit, __ATOMIC_SEQ_CST)))
        return true;
    atomic_fetch_sub(&shim.session->calling, 1);
    return false;
}

static inline void shim_calls_end(void)
{
    atomic_fetch_sub(&shim.session->calling, 1);
}

// The descriptor table's entry for fd as far as it is known; 0: not watched.
static inline uint32_t shim_known(int fd)
{
    if ((uint32_t)fd >= shim.descriptor_limit)
        return 0;
    uint32_t entry = atomic_load_explicit(&shim.descriptors[fd], memory_order_relaxed);
    return entry == DESCRIPTOR_OTHER ? 0 : entry;
}

// The same for a descriptor that is used: what it is gets known.
static inline uint32_t shim_watched(int fd)
{
    if ((uint32_t)fd >= shim.descriptor_limit)
        return 0;
    uint32_t entry = atomic_load_explicit(&shim.descriptors[fd], memory_order_relaxed);
    if (likely(entry == DESCRIPTOR_OTHER))
        return 0;
    return likely(entry) ? entry : shim_descriptor_identify(fd);
}

// Stamps the entry of a call if it is to be recorded.
static inline void observe_stamp(struct observation *observation)
{
    uint32_t state = atomic_load_explicit(&shim.control->state, memory_order_relaxed);
    bool ready =
        shim_thread.epoch == atomic_load_explicit(&shim.session->epoch, memory_order_relaxed);
    observation->recording = ready && state == CONTROL_ENABLED;
    if (likely(observation->recording))
        observation->entry_tsc = tsc_now_on_core(&observation->entry_core);
    else if (!ready || state != CONTROL_ARMED)
        shim_observe_slow(observation);
}

static inline struct observation observe_begin(int fd, uint32_t watched)
{
    struct observation observation = {
        .slot = &shim.slots[watched & 0xffff],
        .connection = shim.slots[watched & 0xffff].id,
        .fd = fd,
        .generation = (uint16_t)(watched >> 16),
    };
    observe_stamp(&observation);
    return observation;
}

// True when this thread may write into its ring now; then shim_record_end must follow.
static inline bool shim_record_begin(void)
{
    struct shim_thread *thread = &shim_thread;
    if (unlikely(atomic_load_explicit(&shim.control->state, memory_order_relaxed) !=
                     CONTROL_ENABLED ||
                 thread->epoch != atomic_load_explicit(&shim.session->epoch, memory_order_relaxed)))
        return false;
    if (unlikely(thread->busy || !thread->ring.place)) {
        atomic_fetch_add_explicit(&shim.page->without_ring, 1, memory_order_relaxed);
        return false;
    }
    thread->busy = true;
    atomic_signal_fence(memory_order_seq_cst);
    return true;
}

static inline void shim_record_end(void)
{
    atomic_signal_fence(memory_order_seq_cst);
    shim_thread.busy = false;
}

// With which command begins what was received, where the collector wants to know.
static inline uint8_t shim_command(const struct observation *observation, enum call_kind kind,
                                   uint32_t length)
{
    if (likely(!atomic_load_explicit(&shim.control->commands, memory_order_relaxed)) ||
        kind != CALL_RECEIVE || !observation->room || observation->slot->outgoing)
        return 0;
    return command_word_of(observation->payload,
                           length < observation->room ? length : observation->room);
}

static inline void shim_record(const struct observation *observation, const struct call_exit *exit,
                               enum call_kind kind, uint64_t offset, uint32_t length,
                               uint64_t rx_ns)
{
    struct shim_thread *thread = &shim_thread;
    if (!shim_record_begin())
        return;
    union ring_entry *entry = ring_reserve(&thread->ring, exit->tsc);
    if (likely(entry)) {
        entry->call = (struct call){
            .entry_tsc = observation->entry_tsc,
            .exit_tsc = exit->tsc,
            .offset = offset,
            .length = length,
            .connection = observation->connection,
            .process = thread->ring.process,
            .thread = thread->ring.thread,
            .batch = thread->batch,
            .batch_position = thread->batch_position,
            .entry_core = observation->entry_core,
            .exit_core = exit->core,
            .kind = (uint8_t)kind,
            .command = shim_command(observation, kind, length),
            .rx_ns = rx_ns,
        };
        ring_commit(&thread->ring, entry);
    } else {
        atomic_fetch_add_explicit(&shim.page->dropped_full, 1, memory_order_relaxed);
    }
    shim_record_end();
}

// True when the collector knows who the call's connection is, or has now been told.
static inline bool shim_announce(const struct observation *observation)
{
    uint64_t epoch = atomic_load_explicit(&shim.session->epoch, memory_order_relaxed);
    if (likely(atomic_load_explicit(&observation->slot->announced, memory_order_relaxed) == epoch))
        return true;
    return shim_announce_slow(observation, epoch);
}

// Adds bytes to a stream that still belongs to the same connection. Gives the offset of the first.
static inline bool shim_stream_advance(const struct observation *observation,
                                       enum direction direction, uint64_t bytes, uint64_t *offset)
{
    _Atomic uint64_t *counter = &observation->slot->moved[direction];
    uint64_t old = atomic_load_explicit(counter, memory_order_relaxed);
    do {
        if (unlikely(old >> 48 != observation->generation)) {
            atomic_fetch_add_explicit(&shim.page->late, 1, memory_order_relaxed);
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(counter, &old, old + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    *offset = old & 0xffffffffffffULL;
    return true;
}

static inline bool is_of_datagrams(const struct observation *observation)
{
    return observation->slot->protocol == CONNECTION_UDP;
}

// The same with the exit already stamped: calls that move several messages share one.
static inline void observe_moved(struct observation *observation, const struct call_exit *exit,
                                 enum call_kind kind, uint64_t bytes, uint64_t rx_ns)
{
    uint64_t offset;
    enum direction direction = kind == CALL_SEND ? DIRECTION_OUT : DIRECTION_IN;
    if (unlikely(is_of_datagrams(observation))) {
        shim_datagram_moved(observation, exit, kind, bytes, rx_ns);
        return;
    }
    if (!shim_stream_advance(observation, direction, bytes, &offset))
        return;
    if (observation->recording && shim_announce(observation)) {
        shim_record(observation, exit, kind, offset, (uint32_t)bytes, rx_ns);
        if (unlikely(exit->tsc - shim_thread.checked_tsc > CHECK_CYCLES))
            shim_check_sample(observation, direction);
    }
    if (kind == CALL_RECEIVE && shim_thread.batch_position < UINT16_MAX)
        shim_thread.batch_position++;
}

// Ends a call that returned `moved`: errors and zero moved nothing and leave no record.
static inline void observe_end(struct observation *observation, enum call_kind kind, ssize_t moved)
{
    if (moved <= 0)
        return;
    struct call_exit exit = {0};
    if (observation->recording)
        exit.tsc = tsc_now_on_core(&exit.core);
    observe_moved(observation, &exit, kind, (uint64_t)moved, 0);
}

static inline void note_payload(struct observation *observation, const void *payload, size_t room)
{
    observation->payload = payload;
    observation->room = room;
}

// Where a message's first bytes are.
static inline void note_parts(struct observation *observation, const struct msghdr *message)
{
    bool any = message->msg_iov && message->msg_iovlen;
    note_payload(observation, any ? message->msg_iov->iov_base : NULL,
                 any ? message->msg_iov->iov_len : 0);
}

// bytes: of the address, which count as none where there was less room.
static inline void note_peer(struct observation *observation, const void *peer, socklen_t bytes,
                             socklen_t room)
{
    observation->peer = peer;
    observation->peer_bytes = peer && bytes <= room ? bytes : 0;
}

// The body of a function that passes on a call and returns how many bytes it moved: observed when
// its connection is watched (watched: the table's entry of fd, 0 for not).
#define PASS_ON(fd, watched, kind, call) PASS_ON_AS(ssize_t, fd, watched, kind, call)
#define PASS_ON_AS(type, fd, watched, kind, call)                                                  \
    do {                                                                                           \
        const uint32_t entry = (watched);                                                          \
        if (likely(!entry))                                                                        \
            return (type)(call);                                                                   \
        struct observation observation = observe_begin(fd, entry);                                 \
        const type moved = (type)(call);                                                           \
        observe_end(&observation, kind, moved);                                                    \
        return moved;                                                                              \
    } while (0)

// The same of a call that receives; into (buffer): what it puts first, and how many bytes at most.
#define PASS_ON_RECEIVED(type, fd, watched, into, bytes, call)                                     \
    do {                                                                                           \
        const uint32_t entry = (watched);                                                          \
        if (likely(!entry))                                                                        \
            return (type)(call);                                                                   \
        struct observation observation = observe_begin(fd, entry);                                 \
        const type moved = (type)(call);                                                           \
        note_payload(&observation, (into), (bytes));                                               \
        observe_end(&observation, CALL_RECEIVE, moved);                                            \
        return moved;                                                                              \
    } while (0)

// The same of one that receives into several parts.
#define PASS_ON_PARTS(type, fd, watched, parts, count, call)                                       \
    PASS_ON_RECEIVED(type, fd, watched, (count) > 0 ? (parts)->iov_base : NULL,                    \
                     (count) > 0 ? (parts)->iov_len : 0, call)

#endif
