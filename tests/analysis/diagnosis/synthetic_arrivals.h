// SPDX-License-Identifier: MIT
//
// How messages come to a random server (synthetic.h): what the client and the network do, and the
// receive core up to the hand-off.
#ifndef TESTS_ANALYSIS_DIAGNOSIS_SYNTHETIC_ARRIVALS_H
#define TESTS_ANALYSIS_DIAGNOSIS_SYNTHETIC_ARRIVALS_H

#include "tests/analysis/diagnosis/synthetic_truth.h"

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
        synthetic_spin(s, 1, now, now + s->hit_ns[message]);
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

#endif
