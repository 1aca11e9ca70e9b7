// SPDX-License-Identifier: MIT
//
// Random servers with known truth, as spans: messages that come in over core 1 (interrupt, softirq,
// hand-off) and are served by a thread on core 0, every function call of it known; one to three
// causes at once, at chosen messages, in noise. For every message: how long each cause held it up.
// What the analysis gets is what it would have rebuilt: lifetimes, spans and socket calls.
#ifndef TESTS_ANALYSIS_SYNTHETIC_H
#define TESTS_ANALYSIS_SYNTHETIC_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diagnosis.h"
#include "analysis/span.h"

enum synthetic_cause {
    CAUSED_BY_TASK_A,       // a busy neighbour has the application's core
    CAUSED_BY_IRQ_A,        // a device interrupt during the service
    CAUSED_BY_SOFTIRQ_A,    // a softirq during the service
    CAUSED_BY_WAKE_UP,      // the woken thread is switched in late
    CAUSED_BY_SLEEP,        // the thread sleeps in the middle of the service
    CAUSED_BY_DELIVERY,     // the interrupt comes late
    CAUSED_BY_TASK_R,       // a task keeps the softirq from its core
    CAUSED_BY_SLOW_USER,    // a leaf of the application is slow
    CAUSED_BY_SLOW_SEND,    // the kernel is slow to send
    CAUSED_BY_SLOW_RECEIVE, // the kernel is slow to receive
    CAUSED_BY_MORE_CALLS,   // the application calls a function many times
    CAUSED_BY_UNEXPECTED,   // a page fault, with all that it calls
    CAUSED_BY_CLIENT_QUEUE,
    CAUSED_BY_CLIENT_STACK,
    CAUSED_BY_NETWORK,
    CAUSED_BY_CLIENT_RECEIVE,
    CAUSED_BY_SERVER_A, // another server of the same capture has the application's core
    CAUSED_BY_SERVER_R, // another server's packets are ahead
    CAUSED_BY_BURST,    // many messages at once: the ones ahead, on either core
    SYNTHETIC_CHOSEN,   // the above are chosen; what follows comes about
    CAUSED_BY_AHEAD_A = SYNTHETIC_CHOSEN,
    CAUSED_BY_AHEAD_SAME, // on the same connection
    CAUSED_BY_AHEAD_R,
    SYNTHETIC_CAUSES
};

static const struct synthetic_name {
    const char *name;
    enum core_role role;
} synthetic_names[SYNTHETIC_CAUSES] = {
    [CAUSED_BY_TASK_A] = {"nginx", ROLE_A},
    [CAUSED_BY_IRQ_A] = {"nvme0q1 interrupt", ROLE_A},
    [CAUSED_BY_SOFTIRQ_A] = {"BLOCK softirq", ROLE_A},
    [CAUSED_BY_WAKE_UP] = {"wake-up latency", ROLE_A},
    [CAUSED_BY_SLEEP] = {"idle gap in futex_wait", ROLE_A},
    [CAUSED_BY_DELIVERY] = {"interrupt delivery", ROLE_R},
    [CAUSED_BY_TASK_R] = {"backup", ROLE_R},
    [CAUSED_BY_SLOW_USER] = {"assoc_find slower", ROLE_A},
    [CAUSED_BY_SLOW_SEND] = {"tcp_write_xmit slower", ROLE_A},
    [CAUSED_BY_SLOW_RECEIVE] = {"tcp_rcv_established slower", ROLE_R},
    [CAUSED_BY_MORE_CALLS] = {"item_get called more often", ROLE_A},
    [CAUSED_BY_UNEXPECTED] = {"unexpected asm_exc_page_fault", ROLE_A},
    [CAUSED_BY_SERVER_A] = {"redis", ROLE_A},
    [CAUSED_BY_SERVER_R] = {"redis", ROLE_R},
    [CAUSED_BY_CLIENT_QUEUE] = {"client queue", ROLE_CLIENT},
    [CAUSED_BY_CLIENT_STACK] = {"client stack", ROLE_CLIENT},
    [CAUSED_BY_NETWORK] = {"network to server", ROLE_NETWORK},
    [CAUSED_BY_CLIENT_RECEIVE] = {"client receive", ROLE_CLIENT},
    [CAUSED_BY_AHEAD_A] = {"head-of-line blocking", ROLE_A},
    [CAUSED_BY_AHEAD_SAME] = {"head-of-line blocking (same connection)", ROLE_A},
    [CAUSED_BY_AHEAD_R] = {"head-of-line blocking", ROLE_R},
};

#define SYNTHETIC_NAMES(X)                                                                         \
    X(idle)                                                                                        \
    X(memcached)                                                                                   \
    X(nginx)                                                                                       \
    X(backup)                                                                                      \
    X(redis)                                                                                       \
    X(eth0)                                                                                        \
    X(nvme0q1)                                                                                     \
    X(NET_RX)                                                                                      \
    X(BLOCK)                                                                                       \
    X(do_idle)                                                                                     \
    X(event_base_loop)                                                                             \
    X(main_loop)                                                                                   \
    X(asm_common_interrupt) X(handle_irq) X(handle_softirqs) X(net_rx_action) X(napi_poll)         \
        X(napi_gro_receive) X(ip_rcv) X(tcp_v4_rcv) X(tcp_rcv_established) X(tcp_ack)              \
            X(sock_def_readable) X(blk_complete_reqs) X(epoll_wait) X(do_epoll_wait)               \
                X(drive_machine) X(recvmsg) X(sock_recvmsg) X(tcp_recvmsg)                         \
                    X(skb_copy_datagram_iter) X(process_command) X(tokenize_command) X(assoc_find) \
                        X(item_get) X(memcmp) X(futex_wait) X(asm_exc_page_fault)                  \
                            X(handle_mm_fault) X(clear_page) X(sendmsg) X(sock_sendmsg)            \
                                X(tcp_sendmsg) X(tcp_write_xmit) X(ip_queue_xmit)                  \
                                    X(dev_queue_xmit)
#define SYNTHETIC_ENUM(name) NAME_##name,
enum synthetic_function { SYNTHETIC_NAMES(SYNTHETIC_ENUM) SYNTHETIC_NAME_COUNT };

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
};

enum { SYNTHETIC_CORES = 2, SYNTHETIC_THREAD = 100, SYNTHETIC_NEIGHBOUR = 666 };
enum { SYNTHETIC_OTHER_THREAD = 200, SYNTHETIC_OTHER = 1 }; // the other server: application 1
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
    struct application_calls calls;
    struct synthetic_truth *truth; // by message
    struct ARRAY_OF(struct synthetic_hindrance) hindrances;
    int64_t *hit_ns;              // by message: how long the chosen cause lasts
    uint8_t *hit;                 // by message: the chosen cause plus 1, 0 none
    uint32_t *connection;         // by message
    struct synthetic_turn *turns; // in order of arrival
    uint32_t open[SYNTHETIC_CORES][SYNTHETIC_DEEPEST];
    unsigned depth[SYNTHETIC_CORES];
    uint64_t offset[SYNTHETIC_CONNECTIONS];
    uint64_t random;
};

// Whether there is another server beside.
static inline bool synthetic_has_other(const struct synthetic_options *options)
{
    return (options->causes & (1u << CAUSED_BY_SERVER_A | 1u << CAUSED_BY_SERVER_R)) != 0;
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

// Another task's turn: ends what is open and begins it, with its outermost function.
static inline void synthetic_switch(struct synthetic *s, unsigned core, int64_t time,
                                    enum span_kind kind, uint32_t id, enum synthetic_function name,
                                    enum synthetic_function function)
{
    const struct span *spans = s->server.cores.items[core].spans.items;
    if (core == 0 && s->depth[0] && spans[s->open[0][0]].id == SYNTHETIC_THREAD)
        SYNTHETIC_PUSH(&s->server.runs,
                       (struct thread_run){.begin_ns = spans[s->open[0][0]].begin_ns,
                                           .end_ns = time,
                                           .thread = SYNTHETIC_THREAD,
                                           .core = 0});
    while (s->depth[core])
        synthetic_close(s, core, time);
    synthetic_open(s, core, time, kind, id, name);
    synthetic_call(s, core, time, function);
}

static inline void synthetic_idle(struct synthetic *s, unsigned core, int64_t time)
{
    synthetic_switch(s, core, time, SPAN_IDLE, 0, NAME_idle, NAME_do_idle);
}

static inline void synthetic_socket(struct synthetic *s, uint8_t kind, int64_t entry, int64_t exit,
                                    uint32_t connection, uint64_t offset)
{
    SYNTHETIC_PUSH(&s->calls, (struct application_call){.entry_ns = entry,
                                                        .exit_ns = exit,
                                                        .offset = offset,
                                                        .length = SYNTHETIC_REQUEST_BYTES,
                                                        .connection = connection,
                                                        .thread = SYNTHETIC_THREAD,
                                                        .kind = kind});
}

// --- causes --------------------------------------------------------------------------------------

static inline bool synthetic_is_hit(const struct synthetic *s, size_t message,
                                    enum synthetic_cause cause)
{
    return s->hit[message] == cause + 1;
}

static inline void synthetic_held_up(struct synthetic *s, size_t message,
                                     enum synthetic_cause cause, int64_t begin, int64_t end)
{
    if (s->truth && end > begin)
        SYNTHETIC_PUSH(&s->hindrances,
                       (struct synthetic_hindrance){begin, end, (uint32_t)message, (uint8_t)cause});
}

// Chooses the messages each cause comes about at, well apart, and how long it lasts.
static inline void synthetic_choose(struct synthetic *s)
{
    const struct synthetic_options *o = &s->options;
    unsigned causes = (unsigned)__builtin_popcount(o->causes), total = causes * o->hits, at = 0;
    unsigned turn = 0;
    double size[SYNTHETIC_CHOSEN] = {0};
    double scale = 60000 + synthetic_uniform(s) * 400000;
    for (int cause = 0; cause < SYNTHETIC_CHOSEN; cause++)
        if (o->causes >> cause & 1) {
            size[cause] = scale;
            scale *= 0.35 + 0.3 * synthetic_uniform(s);
        }
    for (; at < total; at++) {
        do
            turn = (turn + 1) % SYNTHETIC_CHOSEN;
        while (!(o->causes >> turn & 1));
        unsigned spacing = o->messages / total;
        unsigned message = at * spacing + spacing / 4 + (unsigned)synthetic_below(s, spacing / 2);
        s->hit[message] = (uint8_t)(turn + 1);
        s->hit_ns[message] = (int64_t)(size[turn] * (0.8 + 0.4 * synthetic_uniform(s)));
    }
}

// --- the client ----------------------------------------------------------------------------------

static inline int64_t synthetic_stage(struct synthetic *s, size_t message, int64_t from, double ns,
                                      enum synthetic_cause cause)
{
    int64_t extra = synthetic_is_hit(s, message, cause) ? s->hit_ns[message] : 0;
    synthetic_held_up(s, message, cause, from, from + extra);
    return from + synthetic_about(s, ns) + extra;
}

static inline int synthetic_by_nic(const void *left, const void *right)
{
    const struct lifetime *a = left, *b = right;
    if (a->stamp_ns[STAMP_NIC] != b->stamp_ns[STAMP_NIC])
        return a->stamp_ns[STAMP_NIC] < b->stamp_ns[STAMP_NIC] ? -1 : 1;
    return a->request < b->request ? -1 : a->request > b->request;
}

// Stamps up to M(n). Afterwards messages are in the order in which they reached the server; what
// goes by message goes by its place in the order in which they were due.
static inline void synthetic_send(struct synthetic *s)
{
    const struct synthetic_options *o = &s->options;
    int64_t now = SYNTHETIC_BEGIN_NS;
    unsigned burst = 0;
    for (unsigned i = 0; i < o->messages; i++) {
        if (synthetic_is_hit(s, i, CAUSED_BY_BURST))
            burst = 4 + (unsigned)(s->hit_ns[i] / 20000);
        double gap = o->regular ? (double)o->gap_ns * (0.9 + 0.2 * synthetic_uniform(s))
                                : -log(synthetic_uniform(s)) * (double)o->gap_ns;
        if (burst > 0)
            burst--;
        else
            now += (int64_t)gap;
        struct lifetime life = {.request = i,
                                .state = LIFETIME_WHOLE,
                                .present = (1 << STAMP_KINDS) - 1,
                                .thread = SYNTHETIC_THREAD,
                                .sharing = 1};
        int64_t *at = life.stamp_ns;
        at[STAMP_INTENDED] = now;
        at[STAMP_SEND] = synthetic_stage(s, i, now, 400, CAUSED_BY_CLIENT_QUEUE);
        at[STAMP_CLIENT_TX] = synthetic_stage(s, i, at[STAMP_SEND], 2000, CAUSED_BY_CLIENT_STACK);
        at[STAMP_NIC] = synthetic_stage(s, i, at[STAMP_CLIENT_TX], 3000, CAUSED_BY_NETWORK);
        s->connection[i] = (uint32_t)synthetic_below(s, SYNTHETIC_CONNECTIONS);
        SYNTHETIC_PUSH(&s->lives, life);
    }
    qsort(s->lives.items, s->lives.count, sizeof *s->lives.items, synthetic_by_nic);
}

// --- the receive core ----------------------------------------------------------------------------

static inline void synthetic_handoff(struct synthetic *s, int64_t now, uint32_t application)
{
    struct core_timeline *core = &s->server.cores.items[1];
    SYNTHETIC_PUSH(&core->handoffs, now);
    if (synthetic_has_other(&s->options))
        SYNTHETIC_PUSH(&core->handoff_applications, application);
}

// Packets for the other server, ahead of the message's; returns when they are handed over.
static inline int64_t synthetic_foreign_packets(struct synthetic *s, size_t next, int64_t now)
{
    size_t message = s->lives.items[next].request;
    int64_t begin = now, end = now + s->hit_ns[message];
    if (!synthetic_is_hit(s, message, CAUSED_BY_SERVER_R))
        return now;
    while (now < end) {
        int64_t left = end - now < 6000 ? end - now : 3000;
        synthetic_call(s, 1, now, NAME_napi_poll);
        synthetic_call(s, 1, now, NAME_tcp_v4_rcv);
        now += left;
        synthetic_handoff(s, now, SYNTHETIC_OTHER);
        synthetic_return(s, 1, now);
        synthetic_return(s, 1, now);
    }
    for (size_t i = next; i < s->lives.count && s->lives.items[i].stamp_ns[STAMP_NIC] < now; i++) {
        int64_t nic = s->lives.items[i].stamp_ns[STAMP_NIC];
        synthetic_held_up(s, s->lives.items[i].request, CAUSED_BY_SERVER_R,
                          nic > begin ? nic : begin, now);
    }
    return now;
}

// One packet; returns when the softirq turns to the next.
static inline int64_t synthetic_packet(struct synthetic *s, struct lifetime *life, int64_t now)
{
    size_t message = life->request;
    synthetic_call(s, 1, now, NAME_napi_poll);
    now = synthetic_leaf(s, 1, now + synthetic_about(s, 300), 400, NAME_napi_gro_receive);
    synthetic_call(s, 1, now, NAME_ip_rcv);
    now += synthetic_about(s, 300);
    synthetic_call(s, 1, now, NAME_tcp_v4_rcv);
    now += synthetic_about(s, 300);
    synthetic_call(s, 1, now, NAME_tcp_rcv_established);
    now = synthetic_leaf(s, 1, now + synthetic_about(s, 400), 300, NAME_tcp_ack);
    if (synthetic_is_hit(s, message, CAUSED_BY_SLOW_RECEIVE)) {
        now += s->hit_ns[message];
        synthetic_held_up(s, message, CAUSED_BY_SLOW_RECEIVE, now - s->hit_ns[message], now);
    }
    life->stamp_ns[STAMP_HANDOFF] = now;
    life->stamp_core[STAMP_HANDOFF] = 1;
    synthetic_handoff(s, now, 0);
    now = synthetic_leaf(s, 1, now, 300, NAME_sock_def_readable);
    for (int i = 0; i < 4; i++) // tcp_rcv_established ... napi_poll
        synthetic_return(s, 1, now += 20 + i);
    return now;
}

static inline void synthetic_receive(struct synthetic *s)
{
    synthetic_idle(s, 1, SYNTHETIC_BEGIN_NS - 1000000);
    int64_t now = 0;
    for (size_t next = 0; next < s->lives.count;) {
        struct lifetime *head = &s->lives.items[next];
        size_t message = head->request;
        if (now > head->stamp_ns[STAMP_NIC]) // the ring is read when the softirq before has ended
            for (size_t i = next; i < s->lives.count && s->lives.items[i].stamp_ns[STAMP_NIC] < now;
                 i++)
                s->lives.items[i].stamp_ns[STAMP_NIC] = now;
        now = head->stamp_ns[STAMP_NIC] + synthetic_about(s, 1500);
        if (synthetic_is_hit(s, message, CAUSED_BY_DELIVERY) ||
            synthetic_is_hit(s, message, CAUSED_BY_TASK_R)) {
            bool task = synthetic_is_hit(s, message, CAUSED_BY_TASK_R);
            int64_t begin = now;
            if (task)
                synthetic_switch(s, 1, now, SPAN_TASK, SYNTHETIC_NEIGHBOUR, NAME_backup,
                                 NAME_main_loop);
            now += s->hit_ns[message];
            if (task)
                synthetic_idle(s, 1, now);
            now += 100;
            for (size_t i = next; i < s->lives.count && s->lives.items[i].stamp_ns[STAMP_NIC] < now;
                 i++) {
                int64_t nic = s->lives.items[i].stamp_ns[STAMP_NIC];
                synthetic_held_up(s, s->lives.items[i].request,
                                  task ? CAUSED_BY_TASK_R : CAUSED_BY_DELIVERY,
                                  nic > begin ? nic : begin, now - 100);
            }
        }
        synthetic_open(s, 1, now, SPAN_IRQ, 25, NAME_eth0);
        synthetic_call(s, 1, now, NAME_asm_common_interrupt);
        now = synthetic_leaf(s, 1, now + 100, 600, NAME_handle_irq) + 50;
        synthetic_return(s, 1, now);
        synthetic_close(s, 1, now);
        synthetic_open(s, 1, now, SPAN_SOFTIRQ, 3, NAME_NET_RX);
        synthetic_call(s, 1, now, NAME_handle_softirqs);
        synthetic_call(s, 1, now += 100, NAME_net_rx_action);
        now = synthetic_foreign_packets(s, next, now);
        int64_t first = 0;
        for (; next < s->lives.count && s->lives.items[next].stamp_ns[STAMP_NIC] <= now; next++) {
            struct lifetime *life = &s->lives.items[next];
            int64_t before = first ? s->lives.items[next - 1].stamp_ns[STAMP_HANDOFF] : 0;
            int64_t since = life->stamp_ns[STAMP_NIC] > first ? life->stamp_ns[STAMP_NIC] : first;
            if (before > since)
                synthetic_held_up(s, life->request, CAUSED_BY_AHEAD_R, since, before);
            if (!first)
                first = now;
            now = synthetic_packet(s, life, now);
        }
        synthetic_return(s, 1, now += 50);
        synthetic_return(s, 1, now += 50);
        synthetic_close(s, 1, now);
    }
    while (s->depth[1])
        synthetic_close(s, 1, now + 1000);
}

// --- the application's core ----------------------------------------------------------------------

// What holds up whoever waits for the thread during [begin, end).
static inline void synthetic_delay(struct synthetic *s, size_t served, enum synthetic_cause cause,
                                   int64_t begin, int64_t end)
{
    if (!s->truth)
        return;
    for (size_t i = served; i < s->lives.count && s->lives.items[i].stamp_ns[STAMP_HANDOFF] < end;
         i++) {
        int64_t from = s->lives.items[i].stamp_ns[STAMP_HANDOFF];
        synthetic_held_up(s, s->lives.items[i].request, cause, from > begin ? from : begin, end);
    }
    s->turns[served].stopped = begin;
    s->turns[served].resumed = end;
}

// Whatever happens in the middle of the work for a message. Returns when the work goes on.
static inline int64_t synthetic_mishap(struct synthetic *s, size_t at, int64_t now)
{
    size_t message = s->lives.items[at].request;
    int64_t end = now + s->hit_ns[message];
    if (synthetic_is_hit(s, message, CAUSED_BY_IRQ_A) ||
        synthetic_is_hit(s, message, CAUSED_BY_SOFTIRQ_A)) {
        bool irq = synthetic_is_hit(s, message, CAUSED_BY_IRQ_A);
        synthetic_open(s, 0, now, irq ? SPAN_IRQ : SPAN_SOFTIRQ, irq ? 40 : 4,
                       irq ? NAME_nvme0q1 : NAME_BLOCK);
        synthetic_call(s, 0, now, irq ? NAME_asm_common_interrupt : NAME_handle_softirqs);
        synthetic_call(s, 0, now + 100, irq ? NAME_handle_irq : NAME_blk_complete_reqs);
        synthetic_return(s, 0, end - 100);
        synthetic_return(s, 0, end);
        synthetic_close(s, 0, end);
        synthetic_delay(s, at, irq ? CAUSED_BY_IRQ_A : CAUSED_BY_SOFTIRQ_A, now, end);
        return end;
    }
    if (synthetic_is_hit(s, message, CAUSED_BY_UNEXPECTED)) {
        synthetic_call(s, 0, now, NAME_asm_exc_page_fault);
        synthetic_call(s, 0, now + 200, NAME_handle_mm_fault);
        synthetic_call(s, 0, now + 900, NAME_clear_page);
        for (int i = 0; i < 3; i++)
            synthetic_return(s, 0, end - 200 + 100 * i);
        synthetic_held_up(s, message, CAUSED_BY_UNEXPECTED, now, end);
        return end;
    }
    return now;
}

// The work itself: tokenize, look up, get.
static inline int64_t synthetic_command(struct synthetic *s, size_t at, int64_t now)
{
    size_t message = s->lives.items[at].request;
    synthetic_call(s, 0, now, NAME_process_command);
    now = synthetic_leaf(s, 0, now + synthetic_about(s, 200), 300, NAME_tokenize_command);
    for (unsigned i = 0; i < s->options.leaves; i++)
        now = synthetic_leaf(s, 0, now + 10, 60, NAME_memcmp);
    now = synthetic_mishap(s, at, now + 50);
    synthetic_call(s, 0, now, NAME_assoc_find);
    now += synthetic_about(s, 500);
    for (int i = 0; i < 4; i++)
        now = synthetic_leaf(s, 0, now + 20, 100, NAME_memcmp);
    if (synthetic_is_hit(s, message, CAUSED_BY_SLOW_USER)) {
        now += s->hit_ns[message];
        synthetic_held_up(s, message, CAUSED_BY_SLOW_USER, now - s->hit_ns[message], now);
    }
    synthetic_return(s, 0, now);
    int64_t more = synthetic_is_hit(s, message, CAUSED_BY_MORE_CALLS) ? s->hit_ns[message] : 0;
    int64_t extra_from = 0;
    for (int i = 0; i < 2 || now - extra_from < more; i++) {
        if (i == 2)
            extra_from = now;
        synthetic_call(s, 0, now += 10, NAME_item_get);
        now = synthetic_leaf(s, 0, now + synthetic_about(s, 250), 80, NAME_memcmp);
        synthetic_return(s, 0, now += 40);
        if (i < 2)
            extra_from = now;
    }
    if (more)
        synthetic_held_up(s, message, CAUSED_BY_MORE_CALLS, extra_from, now);
    synthetic_return(s, 0, now += 30);
    return now;
}

// In the middle of its work the thread waits for a lock.
static inline int64_t synthetic_lock(struct synthetic *s, size_t at, int64_t now)
{
    size_t message = s->lives.items[at].request;
    if (!synthetic_is_hit(s, message, CAUSED_BY_SLEEP))
        return now;
    synthetic_call(s, 0, now += 20, NAME_futex_wait);
    now += 200;
    int64_t end = now + s->hit_ns[message];
    synthetic_idle(s, 0, now);
    SYNTHETIC_PUSH(&s->server.wakings,
                   (struct waking){.time_ns = end - 200, .thread = SYNTHETIC_THREAD});
    synthetic_switch(s, 0, end, SPAN_TASK, SYNTHETIC_THREAD, NAME_memcached, NAME_event_base_loop);
    synthetic_call(s, 0, end, NAME_drive_machine);
    synthetic_delay(s, at, CAUSED_BY_SLEEP, now, end);
    return end;
}

static inline int64_t synthetic_reply(struct synthetic *s, size_t at, int64_t now)
{
    struct lifetime *life = &s->lives.items[at];
    size_t message = life->request;
    int64_t entry = now;
    life->stamp_ns[STAMP_REPLY] = now;
    life->stamp_core[STAMP_REPLY] = 0;
    synthetic_call(s, 0, now, NAME_sendmsg);
    synthetic_call(s, 0, now += synthetic_about(s, 200), NAME_sock_sendmsg);
    synthetic_call(s, 0, now += synthetic_about(s, 150), NAME_tcp_sendmsg);
    synthetic_call(s, 0, now += synthetic_about(s, 400), NAME_tcp_write_xmit);
    now += synthetic_about(s, 300);
    if (synthetic_is_hit(s, message, CAUSED_BY_SLOW_SEND)) {
        now += s->hit_ns[message];
        synthetic_held_up(s, message, CAUSED_BY_SLOW_SEND, now - s->hit_ns[message], now);
    }
    synthetic_call(s, 0, now, NAME_ip_queue_xmit);
    now = synthetic_leaf(s, 0, now + synthetic_about(s, 200), 700, NAME_dev_queue_xmit);
    life->stamp_ns[STAMP_SERVER_TX] = now;
    for (int i = 0; i < 5; i++) // ip_queue_xmit ... sendmsg
        synthetic_return(s, 0, now += 30);
    life->send_call = (uint32_t)s->calls.count;
    uint32_t connection = s->connection[message];
    synthetic_socket(s, CALL_SEND, entry, now, connection, s->offset[connection]);
    s->offset[connection] += SYNTHETIC_REQUEST_BYTES;
    life->stamp_ns[STAMP_CLIENT_RX] = life->stamp_ns[STAMP_SERVER_TX] + synthetic_about(s, 3000);
    life->stamp_ns[STAMP_REPLY_READ] = synthetic_stage(s, message, life->stamp_ns[STAMP_CLIENT_RX],
                                                       3000, CAUSED_BY_CLIENT_RECEIVE);
    return now;
}

// One message's turn; returns when the thread turns to the next.
static inline int64_t synthetic_serve(struct synthetic *s, size_t at, int64_t now)
{
    struct lifetime *life = &s->lives.items[at];
    uint32_t connection = s->connection[life->request];
    int64_t entry = now;
    if (s->truth)
        s->turns[at].begin = now;
    synthetic_call(s, 0, now, NAME_drive_machine);
    synthetic_call(s, 0, now += 50, NAME_recvmsg);
    synthetic_call(s, 0, now += synthetic_about(s, 200), NAME_sock_recvmsg);
    synthetic_call(s, 0, now += synthetic_about(s, 150), NAME_tcp_recvmsg);
    now = synthetic_leaf(s, 0, now + synthetic_about(s, 250), 300, NAME_skb_copy_datagram_iter);
    for (int i = 0; i < 3; i++)
        synthetic_return(s, 0, now += 30);
    life->receive_call = (uint32_t)s->calls.count;
    synthetic_socket(s, CALL_RECEIVE, entry + 50, now, connection, s->offset[connection]);
    life->stamp_ns[STAMP_APPLICATION] = now;
    life->stamp_core[STAMP_APPLICATION] = 0;
    now = synthetic_command(s, at, now + 100);
    now = synthetic_lock(s, at, now);
    now = synthetic_reply(s, at, now + 100);
    synthetic_return(s, 0, now += 50); // drive_machine
    if (s->truth)
        s->turns[at].end = now;
    return now;
}

// The thread waits for data; returns when it runs again.
static inline int64_t synthetic_wait(struct synthetic *s, size_t next, int64_t now)
{
    const struct lifetime *life = &s->lives.items[next];
    size_t message = life->request;
    int64_t wake = life->stamp_ns[STAMP_HANDOFF] + 100, run = wake + synthetic_about(s, 2500);
    synthetic_idle(s, 0, now);
    SYNTHETIC_PUSH(&s->server.wakings,
                   (struct waking){.time_ns = wake, .thread = SYNTHETIC_THREAD});
    bool other = synthetic_is_hit(s, message, CAUSED_BY_SERVER_A);
    if (other || synthetic_is_hit(s, message, CAUSED_BY_TASK_A)) {
        int64_t begin = wake - 1000 > now ? wake - 1000 : now + 1;
        run = begin + s->hit_ns[message];
        run = run < wake ? wake + 1000 : run;
        synthetic_switch(s, 0, begin, SPAN_TASK,
                         other ? SYNTHETIC_OTHER_THREAD : SYNTHETIC_NEIGHBOUR,
                         other ? NAME_redis : NAME_nginx, NAME_main_loop);
        synthetic_delay(s, next, other ? CAUSED_BY_SERVER_A : CAUSED_BY_TASK_A, begin, run);
    } else if (synthetic_is_hit(s, message, CAUSED_BY_WAKE_UP)) {
        synthetic_delay(s, next, CAUSED_BY_WAKE_UP, run, run + s->hit_ns[message]);
        run += s->hit_ns[message];
    }
    synthetic_switch(s, 0, run, SPAN_TASK, SYNTHETIC_THREAD, NAME_memcached, NAME_event_base_loop);
    return run;
}

static inline void synthetic_application(struct synthetic *s)
{
    int64_t now = SYNTHETIC_BEGIN_NS - 500000;
    synthetic_switch(s, 0, now, SPAN_TASK, SYNTHETIC_THREAD, NAME_memcached, NAME_event_base_loop);
    for (size_t next = 0; next < s->lives.count;) {
        int64_t entry = now += 100;
        synthetic_call(s, 0, now, NAME_epoll_wait);
        synthetic_call(s, 0, now += 100, NAME_do_epoll_wait);
        now += 200;
        if (s->lives.items[next].stamp_ns[STAMP_HANDOFF] > now) {
            now = synthetic_wait(s, next, now);
            synthetic_call(s, 0, now, NAME_epoll_wait);
            synthetic_call(s, 0, now, NAME_do_epoll_wait);
        }
        now += synthetic_about(s, 300);
        synthetic_return(s, 0, now);
        synthetic_return(s, 0, now += 50);
        synthetic_socket(s, CALL_WAIT, entry, now, 0, 0);
        size_t end = next;
        while (end < s->lives.count && s->lives.items[end].stamp_ns[STAMP_HANDOFF] <= now)
            end++;
        for (now += 100; next < end; next++)
            now = synthetic_serve(s, next, now);
    }
    synthetic_idle(s, 0, now);
    while (s->depth[0])
        synthetic_close(s, 0, now + 1000);
}

// --- everything ----------------------------------------------------------------------------------

static inline int64_t synthetic_overlap(int64_t begin, int64_t end, int64_t from, int64_t to)
{
    int64_t low = begin > from ? begin : from, high = end < to ? end : to;
    return high > low ? high - low : 0;
}

// The turns of the messages ahead, as far as a message waited for them.
static inline void synthetic_ahead(struct synthetic *s)
{
    for (size_t i = 0; s->truth && i < s->lives.count; i++) {
        const struct lifetime *life = &s->lives.items[i];
        int64_t since = life->stamp_ns[STAMP_HANDOFF];
        for (size_t k = i; k-- > 0 && s->turns[k].end > since;) {
            const struct synthetic_turn *turn = &s->turns[k];
            bool same = s->connection[s->lives.items[k].request] == s->connection[life->request];
            int64_t from = since > turn->begin ? since : turn->begin;
            enum synthetic_cause cause = same ? CAUSED_BY_AHEAD_SAME : CAUSED_BY_AHEAD_A;
            synthetic_held_up(s, life->request, cause, from, turn->stopped);
            synthetic_held_up(s, life->request, cause, from > turn->resumed ? from : turn->resumed,
                              turn->end);
        }
    }
}

// Adds up what held the messages up, in all and in each of their lifetimes.
static inline void synthetic_sum(struct synthetic *s)
{
    uint32_t *place = calloc(s->lives.count + 1, sizeof *place);
    if (!place)
        abort();
    for (size_t i = 0; i < s->lives.count; i++)
        place[s->lives.items[i].request] = (uint32_t)i;
    for (size_t i = 0; i < s->hindrances.count; i++) {
        const struct synthetic_hindrance *one = &s->hindrances.items[i];
        const struct lifetime *life = &s->lives.items[place[one->message]];
        struct synthetic_truth *truth = &s->truth[one->message];
        truth->ns[PART_WHOLE][one->cause] += (float)(one->end - one->begin);
        for (int part = PART_WHOLE + 1; part < PARTS; part++)
            truth->ns[part][one->cause] += (float)synthetic_overlap(
                one->begin, one->end, life->stamp_ns[lifetime_part_begin((enum lifetime_part)part)],
                life->stamp_ns[lifetime_part_end((enum lifetime_part)part)]);
    }
    free(place);
}

static inline void synthetic_build(struct synthetic *s, const struct synthetic_options *options)
{
    static const char *const names[] = {
#define SYNTHETIC_TEXT(name) #name,
        SYNTHETIC_NAMES(SYNTHETIC_TEXT)};
    *s = (struct synthetic){.options = *options,
                            .random = options->seed * 2654435761u + 88172645463325252u};
    for (int i = 0; i < 10; i++)
        synthetic_uniform(s);
    size_t count = options->messages;
    s->hit = calloc(count, sizeof *s->hit);
    s->hit_ns = calloc(count, sizeof *s->hit_ns);
    s->connection = calloc(count, sizeof *s->connection);
    s->truth = options->truth ? calloc(count, sizeof *s->truth) : NULL;
    s->turns = options->truth ? calloc(count, sizeof *s->turns) : NULL;
    if (!s->hit || !s->hit_ns || !s->connection || (options->truth && (!s->truth || !s->turns)))
        abort();
    for (size_t i = 0; i < SYNTHETIC_NAME_COUNT; i++)
        SYNTHETIC_PUSH(&s->server.names, strdup(names[i]));
    for (uint16_t core = 0; core < SYNTHETIC_CORES; core++)
        SYNTHETIC_PUSH(&s->server.cores, (struct core_timeline){.core = core});
    if (options->causes)
        synthetic_choose(s);
    synthetic_send(s);
    synthetic_receive(s);
    synthetic_application(s);
    synthetic_ahead(s);
    struct disorder disorder = {0};
    for (size_t i = 0; i < s->lives.count; i++)
        lifetime_compute_stages(&s->lives.items[i], 0, &disorder);
    synthetic_sum(s);
    for (size_t c = 0; c < SYNTHETIC_CORES; c++) {
        struct core_timeline *core = &s->server.cores.items[c];
        if (core_timeline_link(core) < 0)
            abort();
        struct time_range all = {core->spans.items[0].begin_ns, INT64_MAX};
        if (options->functions)
            SYNTHETIC_PUSH(&core->traced, all);
    }
}

// Frees what only building needed.
static inline void synthetic_trim(struct synthetic *s)
{
    free(s->turns);
    free(s->hit);
    free(s->hit_ns);
    free(s->connection);
    s->turns = NULL;
    s->hit = NULL;
    s->hit_ns = NULL;
    s->connection = NULL;
}

static inline void synthetic_free(struct synthetic *s)
{
    synthetic_trim(s);
    array_free(&s->lives);
    host_timeline_free(&s->server);
    array_free(&s->calls);
    free(s->truth);
    array_free(&s->hindrances);
}

static inline struct diagnosis_input synthetic_input(const struct synthetic *s)
{
    static const uint32_t threads[] = {SYNTHETIC_THREAD, SYNTHETIC_OTHER_THREAD};
    static struct application servers[] = {{.name = "memcached"}, {.name = "redis"}};
    static struct application_member members[] = {{SYNTHETIC_THREAD, 0},
                                                  {SYNTHETIC_OTHER_THREAD, SYNTHETIC_OTHER}};
    static const struct applications both = {.items = {.items = servers, .count = 2},
                                             .threads = {.items = members, .count = 2}};
    bool other = synthetic_has_other(&s->options);
    return (struct diagnosis_input){.lifetimes = s->lives.items,
                                    .lifetime_count = s->lives.count,
                                    .server = &s->server,
                                    .application_threads = threads,
                                    .application_thread_count = other ? 2 : 1,
                                    .applications = other ? &both : NULL,
                                    .granularity_ns = 500,
                                    .calls = &s->calls};
}

#endif
