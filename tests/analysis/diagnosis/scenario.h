// SPDX-License-Identifier: MIT
//
// Synthetic runs with known truth: a single-threaded server on core 0, whose receive processing
// runs on core 1, loaded over some connections; and faults of a chosen kind at chosen times. Gives
// the logs exactly as client, capture and shim would write them, in their own clocks, and for every
// request how long the fault held it up. Header-only: each test binary stands alone.
#ifndef TESTS_ANALYSIS_DIAGNOSIS_SCENARIO_H
#define TESTS_ANALYSIS_DIAGNOSIS_SCENARIO_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/timeline/time_source.h"
#include "base/array.h"
#include "base/connection.h"
#include "loadgen/client/sample_log.h"
#include "profiler/bpf/event_log.h"
#include "shim/message_log.h"

// How the scenario's clocks relate to host time.
enum { CYCLES_PER_NS = 2, MONOTONIC_AHEAD_NS = 500 };
#define REALTIME_AHEAD_NS 1700000000000000000LL

enum fault {
    FAULT_NONE,
    FAULT_HOG,       // "yes" has the application's core
    FAULT_WAKE,      // the woken thread is switched in late
    FAULT_LATE,      // the client sends late
    FAULT_NETWORK,   // the segment arrives late
    FAULT_INTERRUPT, // receive processing starts late, its core idle
    FAULT_IRQ,       // a device interrupt during the application's work
    FAULT_BURST,     // many requests at once
    FAULT_SLOW,      // the application takes long over a request
    FAULT_OWN_WORK,  // it works for itself after a reply
    FAULTS
};

struct scenario_options {
    unsigned requests, connections;
    int64_t gap_ns; // mean time between requests
    enum fault fault;
    unsigned faults;       // how many, evenly spread
    int64_t fault_ns;      // how long each
    bool fault_varies;     // of FAULT_HOG and FAULT_LATE: from nothing to that long
    int64_t fault_from_ns; // none before
    unsigned pipelined;    // requests per segment (1: none together)
    bool separate_sends;   // pipelined replies go out one by one
    bool halves;           // a reply goes out in two calls, headers and body
    bool retransmits, fin; // extra records that must not matter
    unsigned lose_every;   // drop every n-th event (0: none)
    uint64_t seed;
};

enum { SERVER_THREAD = 100, HOG_THREAD = 666, SERVER_PROCESS = 99 };
enum { REQUEST_BYTES = 40, REPLY_BYTES = 200, SERVER_PORT = 11211, FIRST_PORT = 40000 };
#define SCENARIO_BEGIN_NS 1000000000LL

struct scenario_request {
    int64_t intended, send, tx, nic, handoff, application, reply, server_tx, client_rx, read;
    int64_t fault_ns; // how long the fault held it up
    uint32_t connection, group;
    uint64_t begin, reply_begin;
};

struct scenario_interval {
    int64_t begin, end;
};

struct scenario {
    struct scenario_options options;
    struct ARRAY_OF(struct scenario_request) requests;
    struct ARRAY_OF(struct scenario_interval) faults; // those that came about
    struct ARRAY_OF(struct sample) samples;
    struct ARRAY_OF(struct event) events;
    struct ARRAY_OF(struct call) calls;
    struct ARRAY_OF(struct connection) client, sockets, shim;
    uint64_t random;
};

static inline uint64_t scenario_random(struct scenario *s)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return s->random;
}

static inline double scenario_uniform(struct scenario *s)
{
    return ((double)(scenario_random(s) >> 11) + 0.5) / 9007199254740992.0;
}

// A service time that varies by a tenth.
static inline int64_t scenario_about(struct scenario *s, int64_t ns)
{
    return ns + (int64_t)((double)ns * 0.2 * (scenario_uniform(s) - 0.5));
}

#define SCENARIO_PUSH(array, ...)                                                                  \
    do {                                                                                           \
        if (array_push((array), __VA_ARGS__) < 0)                                                  \
            abort();                                                                               \
    } while (0)

static inline struct event *scenario_event(struct scenario *s, int64_t time, uint8_t kind,
                                           uint16_t core, uint32_t id)
{
    SCENARIO_PUSH(&s->events, (struct event){.time = (uint64_t)(time + MONOTONIC_AHEAD_NS),
                                             .kind = kind,
                                             .core = core,
                                             .id = id});
    return &s->events.items[s->events.count - 1];
}

static inline void scenario_switch(struct scenario *s, int64_t time, uint16_t core, uint32_t thread,
                                   const char *comm)
{
    struct event *event = scenario_event(s, time, EVENT_SWITCH, core, thread);
    memcpy(event->payload.text, comm, strnlen(comm, sizeof event->payload.text));
}

static inline void scenario_stream(struct scenario *s, int64_t time, uint8_t kind, uint16_t core,
                                   uint32_t socket, uint64_t end, uint64_t other)
{
    struct event *event = scenario_event(s, time, kind, core, socket);
    event->payload.a = end;
    event->payload.b = other;
}

// Has every segment stamped by its NIC, which is what its kernel's stamp was until now; that is so
// long before its record: of the softirq that took it, or of another core's that sent it on.
static inline void scenario_nic_stamps(struct scenario *s, int64_t before_ns)
{
    for (size_t i = 0, count = s->events.count; i < count; i++) {
        struct event segment = s->events.items[i];
        if (segment.kind != EVENT_SEGMENT || segment.payload.b == 0)
            continue;
        int64_t recorded = (int64_t)segment.time - MONOTONIC_AHEAD_NS;
        s->events.items[i].payload.b = (uint64_t)(recorded - before_ns + REALTIME_AHEAD_NS);
        scenario_stream(s, recorded, EVENT_STAMPED, segment.core, segment.id, segment.payload.a,
                        segment.payload.b);
    }
}

static inline void scenario_nested(struct scenario *s, int64_t begin, int64_t end, uint8_t entry,
                                   uint16_t core, uint32_t id, const char *name)
{
    struct event *event = scenario_event(s, begin, entry, core, id);
    memcpy(event->payload.text, name, strnlen(name, sizeof event->payload.text));
    scenario_event(s, end, (uint8_t)(entry + 1), core, id);
}

static inline void scenario_call(struct scenario *s, uint8_t kind, int64_t entry, int64_t exit,
                                 uint32_t connection, uint64_t offset, uint64_t length,
                                 uint32_t batch, unsigned position)
{
    SCENARIO_PUSH(&s->calls, (struct call){.entry_tsc = (uint64_t)entry * CYCLES_PER_NS,
                                           .exit_tsc = (uint64_t)exit * CYCLES_PER_NS,
                                           .offset = offset,
                                           .length = (uint32_t)length,
                                           .connection = connection,
                                           .process = SERVER_PROCESS,
                                           .thread = SERVER_THREAD,
                                           .batch = batch,
                                           .batch_position = (uint16_t)position,
                                           .kind = kind});
}

static inline int64_t scenario_fault_length(struct scenario *s)
{
    double share = s->options.fault_varies ? scenario_uniform(s) : 1;
    return (int64_t)(share * (double)s->options.fault_ns);
}

// --- arrivals ------------------------------------------------------------------------------------

static inline bool scenario_fault_due(const struct scenario *s, int64_t time, unsigned done)
{
    const struct scenario_options *o = &s->options;
    if (o->fault == FAULT_NONE || done >= o->faults)
        return false;
    int64_t span = (int64_t)o->requests / o->pipelined * o->gap_ns - o->fault_from_ns;
    return time >= SCENARIO_BEGIN_NS + o->fault_from_ns +
                       span * (2 * (int64_t)done + 1) / (2 * (int64_t)o->faults);
}

static inline void scenario_arrivals(struct scenario *s)
{
    const struct scenario_options *o = &s->options;
    int64_t now = SCENARIO_BEGIN_NS, *sent = calloc(o->connections, sizeof *sent);
    int64_t *arrived = calloc(o->connections, sizeof *arrived);
    uint64_t *offset = calloc(o->connections, sizeof *offset);
    unsigned faults = 0, burst = 0;
    for (uint32_t group = 0; s->requests.count < o->requests; group++) {
        bool hit = scenario_fault_due(s, now, faults);
        if (hit && (o->fault == FAULT_LATE || o->fault == FAULT_NETWORK || o->fault == FAULT_BURST))
            faults++;
        else
            hit = false;
        if (hit && o->fault == FAULT_BURST)
            burst = 80;
        if (burst > 0)
            burst--;
        else
            now += (int64_t)(-log(scenario_uniform(s)) * (double)o->gap_ns);
        uint32_t c = (uint32_t)(scenario_random(s) % o->connections);
        struct scenario_request r = {.connection = c, .group = group, .intended = now};
        r.send = now + scenario_about(s, 400);
        if (hit && o->fault == FAULT_LATE)
            r.send += scenario_fault_length(s);
        if (r.send <= sent[c]) // streams keep their order
            r.send = sent[c] + 100;
        r.fault_ns = o->fault == FAULT_LATE ? r.send - now : 0;
        sent[c] = r.send;
        r.tx = r.send + scenario_about(s, 2000);
        r.nic = r.tx + scenario_about(s, 3000);
        if (hit && o->fault == FAULT_NETWORK)
            r.nic += o->fault_ns;
        if (r.nic <= arrived[c])
            r.nic = arrived[c] + 100;
        r.fault_ns += o->fault == FAULT_NETWORK ? r.nic - r.tx : 0;
        arrived[c] = r.nic;
        for (unsigned k = 0; k < o->pipelined; k++) {
            r.begin = offset[c] * REQUEST_BYTES;
            r.reply_begin = offset[c] * REPLY_BYTES;
            offset[c]++;
            SCENARIO_PUSH(&s->requests, r);
        }
    }
    free(sent);
    free(arrived);
    free(offset);
}

// --- the receive core ----------------------------------------------------------------------------

static inline int scenario_by_nic(const void *left, const void *right, void *context)
{
    const struct scenario_request *requests = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    if (requests[a].nic != requests[b].nic)
        return requests[a].nic < requests[b].nic ? -1 : 1;
    return a < b ? -1 : a > b;
}

// Every segment in the order it arrived, one softirq for those that wait.
static inline uint32_t *scenario_receive(struct scenario *s)
{
    unsigned k = s->options.pipelined, faults = 0;
    size_t groups = s->requests.count / k;
    uint32_t *order = malloc(groups * sizeof *order);
    for (size_t g = 0; g < groups; g++)
        order[g] = (uint32_t)(g * k);
    qsort_r(order, groups, sizeof *order, scenario_by_nic, s->requests.items);
    scenario_switch(s, SCENARIO_BEGIN_NS - 1000000, 1, 0, "swapper/1");
    for (size_t first = 0; first < groups;) {
        struct scenario_request *head = &s->requests.items[order[first]];
        int64_t now = head->nic + scenario_about(s, 2000);
        if (s->options.fault == FAULT_INTERRUPT && scenario_fault_due(s, head->nic, faults)) {
            faults++;
            now += s->options.fault_ns;
            SCENARIO_PUSH(&s->faults, (struct scenario_interval){head->nic, now});
        }
        scenario_event(s, now, EVENT_SOFTIRQ_ENTRY, 1, 3);
        size_t at = first;
        for (; at < groups && s->requests.items[order[at]].nic <= now; at++) {
            struct scenario_request *r = &s->requests.items[order[at]];
            uint64_t end = r->begin + (uint64_t)k * REQUEST_BYTES;
            scenario_stream(s, now + 1000, EVENT_SEGMENT, 1, r->connection + 500, end,
                            (uint64_t)(r->nic + REALTIME_AHEAD_NS));
            if (s->options.retransmits && scenario_random(s) % 20 == 0)
                scenario_stream(s, now + 1100, EVENT_SEGMENT, 1, r->connection + 500, r->begin,
                                (uint64_t)(r->nic + REALTIME_AHEAD_NS));
            now += scenario_about(s, 3000);
            scenario_stream(s, now, EVENT_HANDOFF, 1, r->connection + 500, end, r->begin);
            for (unsigned i = 0; i < k; i++)
                r[i].handoff = now;
            now += 200;
        }
        scenario_event(s, now, EVENT_SOFTIRQ_EXIT, 1, 3);
        first = at;
        // The next softirq begins after this one, whatever arrived meanwhile.
        if (first < groups && s->requests.items[order[first]].nic < now)
            for (size_t i = first; i < groups && s->requests.items[order[i]].nic < now; i++)
                for (unsigned j = 0; j < k; j++)
                    s->requests.items[order[i] + j].nic = now;
    }
    return order;
}

// --- the application core ------------------------------------------------------------------------

// One group's receive, work and send; returns when the thread turns to the next.
static inline int64_t scenario_serve(struct scenario *s, struct scenario_request *r, int64_t now,
                                     uint32_t batch, unsigned position, unsigned *faults)
{
    const struct scenario_options *o = &s->options;
    unsigned k = o->pipelined;
    int64_t entry = now;
    now += scenario_about(s, 1500);
    scenario_call(s, CALL_RECEIVE, entry, now, r->connection + 7, r->begin,
                  (uint64_t)k * REQUEST_BYTES, batch, position);
    for (unsigned i = 0; i < k; i++)
        r[i].application = now;
    for (unsigned i = 0; i < k; i++) {
        if ((o->fault == FAULT_IRQ || o->fault == FAULT_SLOW) &&
            scenario_fault_due(s, now, *faults)) {
            ++*faults;
            SCENARIO_PUSH(&s->faults,
                          (struct scenario_interval){now + 500, now + 500 + o->fault_ns});
            if (o->fault == FAULT_IRQ)
                scenario_nested(s, now + 500, now + 500 + o->fault_ns, EVENT_IRQ_ENTRY, 0, 27,
                                "virtio1-input.0");
            now += 500 + o->fault_ns;
        }
        now += scenario_about(s, 2000);
        if (!o->separate_sends && i + 1 < k)
            continue;
        unsigned first = o->separate_sends ? i : 0;
        uint64_t length = (uint64_t)(i + 1 - first) * REPLY_BYTES;
        uint64_t headers = o->halves ? REPLY_BYTES / 2 : 0;
        if (headers) {
            int64_t sent = now + scenario_about(s, 1500);
            scenario_call(s, CALL_SEND, now, sent, r->connection + 7, r[first].reply_begin, headers,
                          0, 0);
            now = sent + 500;
        }
        int64_t out = now + scenario_about(s, 2000), exit = out + scenario_about(s, 1500);
        scenario_call(s, CALL_SEND, now, exit, r->connection + 7, r[first].reply_begin + headers,
                      length - headers, 0, 0);
        scenario_stream(s, out, EVENT_TRANSMIT, 0, r->connection + 500,
                        r[first].reply_begin + length, length);
        for (unsigned j = first; j <= i; j++) {
            r[j].reply = now;
            r[j].server_tx = out;
            r[j].client_rx = out + 3000;
            r[j].read = out + 3000 + scenario_about(s, 3000);
        }
        now = exit;
    }
    if (o->fault == FAULT_OWN_WORK && scenario_fault_due(s, now, *faults)) {
        ++*faults;
        SCENARIO_PUSH(&s->faults, (struct scenario_interval){now, now + o->fault_ns});
        now += o->fault_ns;
    }
    return now + 300;
}

// Lets the thread sleep from `now` until data handed off at `ready`; returns when it runs again.
static inline int64_t scenario_sleep(struct scenario *s, int64_t now, int64_t ready,
                                     unsigned *faults)
{
    const struct scenario_options *o = &s->options;
    int64_t wake = ready + 100, run = wake + scenario_about(s, 3000);
    scenario_switch(s, now, 0, 0, "swapper/0");
    scenario_event(s, wake, EVENT_WAKING, 1, SERVER_THREAD); // by the softirq that handed it off
    if (o->fault == FAULT_HOG && scenario_fault_due(s, ready - 2000, *faults)) {
        ++*faults;
        int64_t begin = ready - 2000 > now ? ready - 2000 : now + 1;
        int64_t end = begin + scenario_fault_length(s);
        scenario_switch(s, begin, 0, HOG_THREAD, "yes");
        SCENARIO_PUSH(&s->faults, (struct scenario_interval){begin, end});
        run = end > wake ? end : run;
    } else if (o->fault == FAULT_WAKE && scenario_fault_due(s, wake, *faults)) {
        ++*faults;
        run += o->fault_ns;
        SCENARIO_PUSH(&s->faults, (struct scenario_interval){wake, run});
    }
    scenario_switch(s, run, 0, SERVER_THREAD, "memcached");
    return run;
}

static inline void scenario_application(struct scenario *s, const uint32_t *order)
{
    size_t groups = s->requests.count / s->options.pipelined, next = 0;
    int64_t now = SCENARIO_BEGIN_NS - 500000;
    unsigned faults = 0;
    uint32_t batch = 0;
    scenario_switch(s, now - 1000, 0, SERVER_THREAD, "memcached");
    while (next < groups) {
        int64_t entry = now, ready = s->requests.items[order[next]].handoff;
        now += 300;
        if (ready > now)
            now = scenario_sleep(s, now, ready, &faults);
        now += 500;
        batch++;
        size_t after = next;
        while (after < groups && s->requests.items[order[after]].handoff <= now)
            after++;
        scenario_call(s, CALL_WAIT, entry, now, 0, 0, after - next, batch, 0);
        now += 200;
        for (unsigned position = 0; next < after; next++, position++)
            now = scenario_serve(s, &s->requests.items[order[next]], now, batch, position, &faults);
    }
    scenario_switch(s, now, 0, 0, "swapper/0");
    scenario_switch(s, now + 1000000, 1, SERVER_THREAD + 1, "other");
    scenario_switch(s, now + 1000000, 0, SERVER_THREAD + 1, "other");
}

// --- everything ----------------------------------------------------------------------------------

static inline int scenario_by_time(const void *left, const void *right)
{
    const struct event *a = left, *b = right;
    return a->time < b->time ? -1 : a->time > b->time;
}

static inline int64_t scenario_overlap(int64_t a, int64_t b, int64_t c, int64_t d)
{
    int64_t begin = a > c ? a : c, end = b < d ? b : d;
    return end > begin ? end - begin : 0;
}

static inline void scenario_truth(struct scenario *s)
{
    for (size_t i = 0; i < s->requests.count; i++) {
        struct scenario_request *r = &s->requests.items[i];
        bool receive = s->options.fault == FAULT_INTERRUPT;
        for (size_t f = 0; f < s->faults.count; f++)
            r->fault_ns +=
                scenario_overlap(s->faults.items[f].begin, s->faults.items[f].end,
                                 receive ? r->nic : r->handoff, receive ? r->handoff : r->reply);
    }
}

static inline void scenario_samples(struct scenario *s)
{
    for (size_t i = 0; i < s->requests.count; i++) {
        const struct scenario_request *r = &s->requests.items[i];
        SCENARIO_PUSH(&s->samples,
                      (struct sample){.intended_tsc = (uint64_t)r->intended * CYCLES_PER_NS,
                                      .send_tsc = (uint64_t)r->send * CYCLES_PER_NS,
                                      .sent_tsc = (uint64_t)(r->send + 1000) * CYCLES_PER_NS,
                                      .reply_tsc = (uint64_t)r->read * CYCLES_PER_NS,
                                      .tx_ns = (uint64_t)(r->tx + REALTIME_AHEAD_NS),
                                      .rx_ns = (uint64_t)(r->client_rx + REALTIME_AHEAD_NS),
                                      .request_begin = r->begin,
                                      .request_end = r->begin + REQUEST_BYTES,
                                      .reply_begin = r->reply_begin,
                                      .reply_end = r->reply_begin + REPLY_BYTES,
                                      .connection = r->connection,
                                      .tx_source = STAMP_SOFTWARE,
                                      .rx_source = STAMP_SOFTWARE});
    }
}

static inline struct connection scenario_connection(uint32_t id, uint8_t local, uint16_t local_port,
                                                    uint8_t peer, uint16_t peer_port)
{
    struct connection connection = {
        .id = id, .protocol = CONNECTION_TCP, .local_port = local_port, .peer_port = peer_port};
    const uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff, [12] = 10};
    memcpy(connection.local, mapped, 16);
    memcpy(connection.peer, mapped, 16);
    connection.local[15] = local;
    connection.peer[15] = peer;
    return connection;
}

static inline void scenario_connections(struct scenario *s)
{
    for (uint32_t c = 0; c < s->options.connections; c++) {
        uint16_t port = (uint16_t)(FIRST_PORT + c);
        SCENARIO_PUSH(&s->client, scenario_connection(c, 1, port, 2, SERVER_PORT));
        // The server's tables in another order, with one more that is nobody's.
        uint16_t other = (uint16_t)(FIRST_PORT + s->options.connections - 1 - c);
        uint32_t id = s->options.connections - 1 - c;
        SCENARIO_PUSH(&s->sockets, scenario_connection(id + 500, 2, SERVER_PORT, 1, other));
        SCENARIO_PUSH(&s->shim, scenario_connection(id + 7, 2, SERVER_PORT, 1, other));
    }
    SCENARIO_PUSH(&s->sockets, scenario_connection(9999, 2, SERVER_PORT, 1, 1));
    SCENARIO_PUSH(&s->shim, scenario_connection(9999, 2, SERVER_PORT, 1, 1));
}

static inline void scenario_close(struct scenario *s)
{
    int64_t end = s->requests.items[s->requests.count - 1].read + 100000;
    for (uint32_t c = 0; c < s->options.connections; c++) {
        uint64_t last = 0;
        for (size_t i = 0; i < s->requests.count; i++)
            if (s->requests.items[i].connection == c)
                last = s->requests.items[i].begin + REQUEST_BYTES;
        scenario_stream(s, end, EVENT_SEGMENT, 1, c + 500, last + 1, 0);
        scenario_stream(s, end + 10, EVENT_HANDOFF, 1, c + 500, last + 1, last);
    }
}

static inline void scenario_build(struct scenario *s, const struct scenario_options *options)
{
    *s = (struct scenario){.options = *options,
                           .random = options->seed * 2654435761u + 88172645463325252u};
    if (s->options.pipelined == 0)
        s->options.pipelined = 1;
    for (int i = 0; i < 10; i++)
        scenario_random(s);
    scenario_arrivals(s);
    uint32_t *order = scenario_receive(s);
    scenario_application(s, order);
    free(order);
    scenario_truth(s);
    scenario_samples(s);
    scenario_connections(s);
    if (s->options.fin)
        scenario_close(s);
    // mergesort in glibc: equal times keep their order
    qsort(s->events.items, s->events.count, sizeof *s->events.items, scenario_by_time);
    if (s->options.lose_every) {
        size_t kept = 0;
        for (size_t i = 0; i < s->events.count; i++)
            if (scenario_random(s) % s->options.lose_every)
                s->events.items[kept++] = s->events.items[i];
        s->events.count = kept;
    }
}

static inline void scenario_free(struct scenario *s)
{
    array_free(&s->requests);
    array_free(&s->faults);
    array_free(&s->samples);
    array_free(&s->events);
    array_free(&s->calls);
    array_free(&s->client);
    array_free(&s->sockets);
    array_free(&s->shim);
}

static inline int64_t scenario_convert(const void *context, enum host_clock clock, uint64_t value)
{
    (void)context;
    switch (clock) {
    case HOST_CLOCK_TSC:
        return (int64_t)(value / CYCLES_PER_NS);
    case HOST_CLOCK_MONOTONIC:
        return (int64_t)(value - MONOTONIC_AHEAD_NS);
    case HOST_CLOCK_REALTIME:
        return (int64_t)(value - (uint64_t)REALTIME_AHEAD_NS); // any bits may come
    default:
        return (int64_t)value;
    }
}

static inline struct time_source scenario_clock(void)
{
    return (struct time_source){.convert = scenario_convert, .error_ns = 10};
}

#endif
