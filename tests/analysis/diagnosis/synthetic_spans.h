// SPDX-License-Identifier: MIT
//
// A random server (synthetic.h) while it is made: what is known of it so far, its random numbers,
// and the spans, switches and socket calls that are appended to it.
#ifndef TESTS_ANALYSIS_DIAGNOSIS_SYNTHETIC_SPANS_H
#define TESTS_ANALYSIS_DIAGNOSIS_SYNTHETIC_SPANS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diagnosis/diagnosis.h"
#include "analysis/timeline/span.h"
#include "profiler/bpf/event_log.h"
#include "tests/analysis/diagnosis/synthetic_causes.h"

struct synthetic_options {
    uint64_t seed;
    unsigned messages;
    int64_t gap_ns;  // mean time between messages
    bool regular;    // they come one by one, never two at once
    unsigned causes; // bit per chosen synthetic_cause
    unsigned hits;   // how often each comes about
    double noise;    // standard deviation of the logarithm of each duration
    unsigned leaves; // more calls in the work for each message
    bool functions;  // else as the events backend sees it
    bool truth;      // keep it
    bool spins;      // for a lock: CAUSED_BY_SOFTIRQ_A, _UNEXPECTED, _SLOW_RECEIVE and _TASK_A
    bool bystander;  // a program that wants nothing but what is left of the application's core
};

_Static_assert(SYNTHETIC_CHOSEN <= 32, "each has a bit of synthetic_options.causes");

enum { SYNTHETIC_CORES = 2, SYNTHETIC_THREAD = 100, SYNTHETIC_NEIGHBOUR = 666 };
enum { SYNTHETIC_OTHER_THREAD = 200, SYNTHETIC_OTHER = 1 }; // the other server: application 1
enum { SYNTHETIC_HOLDER = 101, SYNTHETIC_OTHER_HOLDER = 201, SYNTHETIC_BYSTANDER = 900 };
enum { SYNTHETIC_CONNECTIONS = 64, SYNTHETIC_DEEPEST = 32, SYNTHETIC_REQUEST_BYTES = 40 };
#define SYNTHETIC_BEGIN_NS 1000000000LL

// A message's turn on the application's core, and the part of it that was no work for it.
struct synthetic_turn {
    int64_t begin, end;
    int64_t stopped, resumed;
};

struct synthetic_truth {
    float ns[PARTS][SYNTHETIC_CAUSES]; // of the whole life, and of each lifetime on the server
};

// A cause held a message up from then to then.
struct synthetic_hindrance {
    int64_t begin, end;
    uint32_t message;
    uint8_t cause;
};

struct synthetic {
    struct synthetic_options options;
    struct lifetime_array lives; // in order of arrival at the server
    struct host_timeline server;
    struct application_calls calls, backend_calls; // the latter's go behind the former
    struct peers peers;                            // what its thread asked of other servers
    struct synthetic_truth *truth;                 // by message
    struct ARRAY_OF(struct synthetic_hindrance) hindrances;
    int64_t *hit_ns;              // by message: how long the chosen cause lasts
    uint8_t *hit;                 // by message: the chosen cause plus 1, 0 none
    uint32_t *connection;         // by message
    struct synthetic_turn *turns; // in order of arrival
    uint32_t open[SYNTHETIC_CORES][SYNTHETIC_DEEPEST];
    unsigned depth[SYNTHETIC_CORES];
    enum stint_end left; // how whoever has the application's core will leave it; 0: asleep
    uint64_t offset[SYNTHETIC_CONNECTIONS];
    uint64_t random;
};

// Whether there is another server beside.
static inline bool synthetic_has_other(const struct synthetic_options *options)
{
    enum { SERVERS = 1u << CAUSED_BY_SERVER_A | 1u << CAUSED_BY_SERVER_R };
    const unsigned asked = (2u << CAUSED_BY_BACKEND_FAR) - (1u << CAUSED_BY_BACKEND);
    return (options->causes & (SERVERS | asked)) != 0;
}

static inline double synthetic_uniform(struct synthetic *s)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return ((double)(s->random >> 11) + 0.5) / 9007199254740992.0;
}

static inline uint64_t synthetic_below(struct synthetic *s, uint64_t bound)
{
    return (uint64_t)(synthetic_uniform(s) * (double)bound);
}

// A duration in noise: lognormal, the sum of twelve uniform numbers for the normal one.
static inline int64_t synthetic_about(struct synthetic *s, double ns)
{
    double normal = -6;
    for (int i = 0; i < 12; i++)
        normal += synthetic_uniform(s);
    return (int64_t)(ns * exp(s->options.noise * normal)) + 1;
}

#define SYNTHETIC_PUSH(array, ...)                                                                 \
    do {                                                                                           \
        if (array_push((array), __VA_ARGS__) < 0)                                                  \
            abort();                                                                               \
    } while (0)

// --- spans ---------------------------------------------------------------------------------------

static inline void synthetic_open(struct synthetic *s, unsigned core, int64_t time,
                                  enum span_kind kind, uint32_t id, enum synthetic_function name)
{
    struct span_array *spans = &s->server.cores.items[core].spans;
    if (kind == SPAN_FUNCTION && !s->options.functions)
        return;
    s->open[core][s->depth[core]] = (uint32_t)spans->count;
    SYNTHETIC_PUSH(spans, (struct span){.begin_ns = time,
                                        .end_ns = INT64_MAX,
                                        .id = id,
                                        .name = (uint32_t)name & SPAN_NAMES,
                                        .kind = kind,
                                        .depth = (uint8_t)s->depth[core]});
    s->depth[core]++;
}

static inline void synthetic_close(struct synthetic *s, unsigned core, int64_t time)
{
    struct span *spans = s->server.cores.items[core].spans.items;
    spans[s->open[core][--s->depth[core]]].end_ns = time;
}

static inline void synthetic_call(struct synthetic *s, unsigned core, int64_t time,
                                  enum synthetic_function name)
{
    synthetic_open(s, core, time, SPAN_FUNCTION, 0, name);
}

static inline void synthetic_return(struct synthetic *s, unsigned core, int64_t time)
{
    if (s->options.functions)
        synthetic_close(s, core, time);
}

// A call that calls nothing. Returns its end.
static inline int64_t synthetic_leaf(struct synthetic *s, unsigned core, int64_t time, double ns,
                                     enum synthetic_function name)
{
    int64_t end = time + synthetic_about(s, ns);
    synthetic_call(s, core, time, name);
    synthetic_return(s, core, end);
    return end;
}

// The function at hand asks for a lock that another core holds until `end`.
static inline void synthetic_spin(struct synthetic *s, unsigned core, int64_t time, int64_t end)
{
    if (!s->options.spins)
        return;
    synthetic_call(s, core, time, NAME__raw_spin_lock);
    synthetic_call(s, core, time, NAME_native_queued_spin_lock_slowpath);
    synthetic_return(s, core, end);
    synthetic_return(s, core, end);
}

// Another task's turn: ends what is open and begins it, with its outermost function.
static inline void synthetic_switch(struct synthetic *s, unsigned core, int64_t time,
                                    enum span_kind kind, uint32_t id, enum synthetic_function name,
                                    enum synthetic_function function)
{
    const struct span *spans = s->server.cores.items[core].spans.items;
    if (core == 0 && s->depth[0] && spans[s->open[0][0]].kind == SPAN_TASK)
        SYNTHETIC_PUSH(&s->server.stints,
                       (struct thread_stint){.begin_ns = spans[s->open[0][0]].begin_ns,
                                             .end_ns = time,
                                             .thread = spans[s->open[0][0]].id,
                                             .core = 0,
                                             .left = (uint8_t)(s->left ? s->left : STINT_SLEEPS)});
    if (core == 0)
        s->left = STINT_CUT;
    while (s->depth[core])
        synthetic_close(s, core, time);
    synthetic_open(s, core, time, kind, id, name);
    synthetic_call(s, core, time, function);
}

static inline void synthetic_idle(struct synthetic *s, unsigned core, int64_t time)
{
    synthetic_switch(s, core, time, SPAN_IDLE, 0, NAME_idle, NAME_do_idle);
}

// Nobody who matters has the application's core from now on.
static inline void synthetic_spare(struct synthetic *s, int64_t time)
{
    if (s->options.bystander)
        synthetic_switch(s, 0, time, SPAN_TASK, SYNTHETIC_BYSTANDER, NAME_bystander,
                         NAME_main_loop);
    else
        synthetic_idle(s, 0, time);
}

// waker: 0 where the core was interrupted while it idled.
static inline void synthetic_wake(struct synthetic *s, int64_t time, uint32_t thread,
                                  uint32_t waker, uint16_t from)
{
    SYNTHETIC_PUSH(
        &s->server.wakings,
        (struct waking){.time_ns = time, .thread = thread, .waker = waker, .from = from});
}

// A system call in which the thread will leave its core.
static inline void synthetic_block(struct synthetic *s, int64_t time, uint32_t thread,
                                   uint32_t call)
{
    SYNTHETIC_PUSH(&s->server.pauses,
                   (struct thread_moment){.time_ns = time, .thread = thread, .value = call});
}

// A call of a thread of the server, or of the one that it asks.
static inline void synthetic_socket_of(struct synthetic *s, uint32_t thread, uint8_t kind,
                                       int64_t entry, int64_t exit, uint32_t connection,
                                       uint64_t offset)
{
    SYNTHETIC_PUSH(thread == SYNTHETIC_THREAD ? &s->calls : &s->backend_calls,
                   (struct application_call){.entry_ns = entry,
                                             .exit_ns = exit,
                                             .offset = offset,
                                             .length = SYNTHETIC_REQUEST_BYTES,
                                             .connection = connection,
                                             .thread = thread,
                                             .kind = kind});
}

static inline void synthetic_socket(struct synthetic *s, uint8_t kind, int64_t entry, int64_t exit,
                                    uint32_t connection, uint64_t offset)
{
    synthetic_socket_of(s, SYNTHETIC_THREAD, kind, entry, exit, connection, offset);
}

#endif
