// SPDX-License-Identifier: MIT
//
// Spans: intervals of activity on a core, whatever backend saw them. They nest: a span lies wholly
// inside the span of the next smaller depth that is open at its start. Time is host time (ns).
#ifndef ANALYSIS_TIMELINE_SPAN_H
#define ANALYSIS_TIMELINE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/map.h"

enum span_kind {
#define SPAN_KIND(NAME, number, word, label, colour, ink, means) SPAN_##NAME = number,
#include "analysis/timeline/span_kinds.tbl.h"
};

enum {
    SPAN_KINDS = 0
#define SPAN_KIND(NAME, number, word, label, colour, ink, means) +1
#include "analysis/timeline/span_kinds.tbl.h"
};
#define SPAN_KIND(NAME, number, word, label, colour, ink, means)                                   \
    _Static_assert((number) < SPAN_KINDS, "the kinds are numbered without a gap");
#include "analysis/timeline/span_kinds.tbl.h"
_Static_assert(SPAN_KINDS <= 1 << 3, "a span has three bits for its kind");

// A kind's word: "task", "softirq", "host", ...
const char *span_kind_word(enum span_kind kind);

// The id of a SPAN_FUNCTION.
enum {
    SPAN_ID_KERNEL = 1, // the kernel's code
    SPAN_ID_CUT = 2,    // only a part: it began earlier or ends later (the thread was switched
                        // out, or it was not traced then)
};

enum { SPAN_NAMES = (1 << 21) - 1 }; // the greatest number of a name

// Tens of millions are held at once: 24 bytes each.
struct span {
    int64_t begin_ns;
    int64_t end_ns;
    uint32_t id;
    uint32_t name : 21; // index into host_timeline.names
    enum span_kind kind : 3;
    uint8_t depth; // 0: outermost (task, idle, unknown)
};
enum { NO_SPAN = 0xffffffff };

struct span_array ARRAY_OF(struct span);

struct time_range {
    int64_t begin_ns, end_ns;
};
struct time_range_array ARRAY_OF(struct time_range);

struct name_array ARRAY_OF(char *);

struct index_array ARRAY_OF(uint32_t);
struct time_array ARRAY_OF(int64_t);

// One core's activity: spans ordered by begin, an enclosing span before the ones inside it.
struct core_timeline {
    uint16_t core;
    bool scheduled; // its switches were captured: else what it ran is not known
    // Since when all it did was recorded, host time. 0: since the capture began; INT64_MAX: never,
    // only what concerned messages and wake-ups.
    int64_t recorded_ns;
    struct span_array spans;
    struct index_array enclosing; // of every SPAN_BLOCK-th span the one it lies in, or NO_SPAN;
                                  // only a shortcut for searching: may be left empty
    struct time_array handoffs;   // when data was handed to any socket on this core, ascending
    struct index_array handoff_sockets; // to which socket, by the kernel's id; may be left empty
    struct index_array
        handoff_applications; // for which application (applications.h); empty: there is only one
    struct time_range_array traced; // when its function calls are known, ascending and disjoint:
                                    // outside these there are no SPAN_FUNCTIONs, whatever ran
};

// A thread was made runnable (waking), or ran on a core for a while (stint).
struct waking {
    int64_t time_ns;
    uint32_t thread;
    uint32_t waker; // the thread that woke it, or that was interrupted by what did (0: idle)
    uint16_t core;  // where it was to run
    uint16_t from;  // where it was woken
    uint8_t flags;  // enum waking_flags (profiler/bpf/event_log.h)
};
// How a stint ended.
enum stint_end {
    STINT_CUT,       // not known: records are missing, or the capture ended
    STINT_PREEMPTED, // the thread could have gone on
    STINT_THROTTLED, // so it could, but for its control group's CPU quota
    STINT_SLEEPS,    // it went to sleep; host_timeline.pauses may say in what
    STINT_WAITS,     // it waits for sockets or the like to become ready: epoll_wait, poll, select
    STINT_EXITED,
};
struct thread_stint {
    int64_t begin_ns;
    int64_t end_ns;
    uint32_t thread;
    uint16_t core;
    uint8_t left;     // enum stint_end
    bool interrupted; // the sleep after it, by a stop or the like: the thread then slept on
};
// Something that happened to a thread at one moment.
struct thread_moment {
    int64_t time_ns;
    uint32_t thread;
    uint32_t value;
};
struct thread_moment_array ARRAY_OF(struct thread_moment);
#define MOVE_FORCED 0x80000000u // it had to leave the core that it was on

// It went to sleep in futex, not by its runtime's will: for what, as far as the address tells.
struct futex_wait {
    int64_t time_ns;
    uint32_t thread;
    uint32_t word;     // of its process's memory: the same one, the same thing
    uint32_t limit_us; // for how long at most; 0: for ever; FUTEX_LIMIT_UNKNOWN
};
struct futex_wait_array ARRAY_OF(struct futex_wait);

// It tried to get a lock on a file without waiting for it, had it, or gave it back. Of files of
// which somebody was refused a lock lately only.
struct file_lock_try {
    int64_t time_ns;
    uint32_t thread;
    // That had the lock because of which it was refused, 0: not known; else its own.
    uint32_t process;
    uint32_t holder; // the thread of that process that had it; 0: not known
    uint32_t file;   // its number: the same one, the same file
    uint32_t name;   // of the file, where it was refused; NO_FILE_NAME: not known
    uint8_t how;     // enum file_lock_flags (profiler/bpf/event_log.h)
};
#define NO_FILE_NAME UINT32_MAX
struct file_lock_try_array ARRAY_OF(struct file_lock_try);

// A server asked another one something on a connection that it made, or took the answer, as the
// kernel saw it.
struct server_question {
    int64_t time_ns;
    uint64_t socket;
    uint32_t thread;
    uint8_t address[16]; // of the other one; IPv4 as ::ffff:a.b.c.d
    uint16_t port;
    bool answered;
};
struct question_array ARRAY_OF(struct server_question);

// Of which process a thread is, and by which that one was forked.
struct thread_owner {
    int64_t time_ns; // when it was seen
    uint32_t thread, process, parent;
};
struct thread_owner_array ARRAY_OF(struct thread_owner);

// The value of a pause: the number of the system call that the thread sleeps in, or one of these.
#define PAUSE_STOPPED     UINT32_MAX       // by a signal
#define PAUSE_NO_CALL     (UINT32_MAX - 1) // outside of any, as in a page fault
#define PAUSE_CONDITION   (UINT32_MAX - 2) // in futex, but for a condition variable or the like
#define PAUSE_TRACED      (UINT32_MAX - 3) // stopped by a tracer
#define PAUSE_FROZEN      (UINT32_MAX - 4) // its control group is frozen
#define PAUSE_INTERPRETER (UINT32_MAX - 5) // in futex, for the lock that its interpreter runs with
#define PAUSE_PARKED      (UINT32_MAX - 6) // in futex, by Go's or Erlang's scheduler
#define PAUSE_OTHERS      PAUSE_PARKED     // the least of these

// A request that a disk has completed.
struct disk_request {
    int64_t done_ns;
    int64_t made_ns, issued_ns; // when it was made, when the driver got it; where that is not known
                                // as the stage that follows
    uint32_t disk;              // its number
    uint32_t name;              // of the disk, NO_DISK_NAME: not known
    uint16_t core;              // where it was completed
    uint8_t operation;          // enum disk_operation (profiler/bpf/event_log.h)
};
#define NO_DISK_NAME UINT32_MAX
struct disk_request_array ARRAY_OF(struct disk_request);

// What a thread did for the kernel's memory, or which call it was in (detours.h).
struct detour {
    int64_t begin_ns, end_ns;
    uint32_t thread;
    uint16_t kind; // enum event_detour (profiler/bpf/event_log.h); of a call its number
};
struct detour_array ARRAY_OF(struct detour);

// A collector was at work beside its program (collections.h).
struct collection {
    uint32_t process;
    int64_t begin_ns, end_ns;
};
struct collection_array ARRAY_OF(struct collection);

struct waking_array ARRAY_OF(struct waking);
struct thread_stint_array ARRAY_OF(struct thread_stint);

struct timeline_array ARRAY_OF(struct core_timeline);

// All cores of one host.
struct host_timeline {
    struct timeline_array cores;           // ascending core numbers
    struct name_array names;               // owned; "memcached", "NET_RX", "virtio1-input.0", ...
    struct waking_array wakings;           // by thread, then by time
    struct thread_stint_array stints;      // by thread, then by time
    struct thread_moment_array pauses;     // it went to sleep, but not for lack of work: see above
    struct futex_wait_array futexes;       // those of the pauses that are in futex; by time
    struct futex_wait_array words;         // the same; by word, then by time
    struct question_array questions;       // by time
    struct file_lock_try_array lock_tries; // by thread, then by time
    struct file_lock_try_array lock_turns; // the same; by file, then by time
    struct thread_moment_array files;  // the file that the call of the pause that follows is about;
                                       // value: the number of its name (call_files.h)
    struct thread_moment_array moves;  // the scheduler moved it; value: the core it went to, and
                                       // MOVE_FORCED
    struct thread_moment_array faults; // page faults; value: how long until it had its page, ns (0:
                                       // not known); all three by thread, then by time
    struct thread_moment_array copies; // the same for those that write to a page that is there
    int64_t page_fault_ns;             // what one costs as a rule, as tried there (0: not known)
    int64_t page_fault_before_ns;      // before its handler began, likewise, after a rest
    struct thread_moment_array forks;  // it forked, by thread, then by time
    struct disk_request_array disk_requests; // by when they were completed
    struct detour_array detours;             // by thread, then by time; disjoint
    struct collection_array collections;     // by process, then by time; disjoint
    struct detour_array own_work;            // what the server said it did for no request; the same
    struct detour_array calls;         // system calls that it was seen in more than once; the same
    struct thread_moment_array quotas; // it was throttled; value: the number of the control group's
                                       // name
    struct thread_moment_array limits; // it was at a limit of memory; likewise
    struct thread_moment_array stops;  // of processes, not threads: they were told to stop; value:
                                       // the number of the sender's name
    struct thread_owner_array owners;  // by thread, then by time
    uint64_t damaged;                  // records that are not events
    uint64_t unpaired;                 // exits without entry, or entries without exit: lost records
    uint64_t lost_intervals;           // SPAN_UNKNOWN spans
};

// The timeline of a core, NULL when that core was not captured.
const struct core_timeline *host_timeline_core(const struct host_timeline *host, uint16_t core);
void host_timeline_free(struct host_timeline *host);

// Where to begin reading a core's spans from that time on: the one that is open then and lies in no
// other, or the first after it (their number: there is none).
size_t core_timeline_from(const struct core_timeline *core, int64_t time_ns);

// The stints and the wakings of one thread, in order of time; NULL and 0 when there are none.
const struct thread_stint *host_timeline_stints(const struct host_timeline *host, uint32_t thread,
                                                size_t *count);
const struct waking *host_timeline_wakings(const struct host_timeline *host, uint32_t thread,
                                           size_t *count);

enum { NO_CORE = 0xffff };
// How long a thread ran within [begin_ns, end_ns), on any core (NO_CORE) or on one, by its stints
// from the first on that ends after begin_ns.
double stints_running_ns(const struct thread_stint *stints, size_t count, uint16_t core,
                         int64_t begin_ns, int64_t end_ns);

// How long the thread ran within [begin_ns, end_ns), on any core (NO_CORE) or on one; host may be
// NULL.
double thread_running_ns(const struct host_timeline *host, uint32_t thread, uint16_t core,
                         int64_t begin_ns, int64_t end_ns);

// Those of one thread, in order of time; NULL and 0 when there are none.
const struct thread_moment *thread_moments_of(const struct thread_moment_array *moments,
                                              uint32_t thread, size_t *count);

// The latest that is known of a thread, NULL: nothing.
const struct thread_owner *host_timeline_owner(const struct host_timeline *host, uint32_t thread);

// The process that a thread is of: itself where nobody said so.
uint32_t host_timeline_process(const struct host_timeline *host, uint32_t thread);

// How many of them lie before `time_ns`.
size_t thread_moments_before(const struct thread_moment *moments, size_t count, int64_t time_ns);

// Whether the function calls of that core are known all through [begin_ns, end_ns).
bool core_timeline_traced(const struct core_timeline *timeline, int64_t begin_ns, int64_t end_ns);

// How many hand-offs on that core lie before `time_ns`.
size_t core_timeline_handoffs_before(const struct core_timeline *timeline, int64_t time_ns);

// The span that the one at `index` lies in, or NO_SPAN; found from the order and the depths.
uint32_t core_timeline_parent(const struct core_timeline *timeline, uint32_t index);

// Fills `enclosing`. Without it, searching is slow where one task runs for long. -1: no memory.
enum { SPAN_BLOCK = 64 };
int core_timeline_link(struct core_timeline *timeline);

// Calls `each` for the disjoint pieces that tile [begin_ns, end_ns) on the core, in order of time;
// each piece names the innermost context (any span but a function) that covers it, NULL where none
// does. Allocates nothing.
typedef void span_piece_visitor(const struct span *innermost, int64_t begin_ns, int64_t end_ns,
                                void *context);
void core_timeline_pieces(const struct core_timeline *timeline, int64_t begin_ns, int64_t end_ns,
                          span_piece_visitor *each, void *context);

// The same, and each piece gets all spans that cover it, outermost first (spans nested deeper than
// MAX_OPEN count as their parent's). `open` is valid during the call.
enum { MAX_OPEN = 128 };
typedef void span_stack_visitor(const struct span *const *open, unsigned depth, int64_t begin_ns,
                                int64_t end_ns, void *context);
void core_timeline_stacks(const struct core_timeline *timeline, int64_t begin_ns, int64_t end_ns,
                          span_stack_visitor *each, void *context);

// A table of distinct names, each known by a small number: thousands of spans share one comm.
struct name_table {
    struct name_array *names; // where the names go; the table owns only its index
    struct map numbers;
};

// Names already in *names keep their numbers. -1 when memory runs out.
int name_table_init(struct name_table *table, struct name_array *names);
void name_table_fini(struct name_table *table);

// The number of a name of at most `bytes` bytes (it ends earlier at a NUL), added when it is new.
// Bytes that are not printable ASCII become '?', so that names are safe to print. -1: no memory,
// or no number up to SPAN_NAMES is left.
int name_table_intern(struct name_table *table, const char *text, size_t bytes, uint32_t *number);

#endif
