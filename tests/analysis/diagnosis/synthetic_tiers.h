// SPDX-License-Identifier: MIT
//
// What the thread of a random server (synthetic.h) asks of other servers: one that was captured,
// too, and works on the same core while the thread sleeps, and one far away, of which nothing is
// known but when it was its turn.
#ifndef TESTS_ANALYSIS_DIAGNOSIS_SYNTHETIC_TIERS_H
#define TESTS_ANALYSIS_DIAGNOSIS_SYNTHETIC_TIERS_H

#include <stdio.h>

#include "tests/analysis/diagnosis/synthetic_truth.h"

// What holds up whoever waits for the thread during [begin, end), the one being served (`cause`)
// and those behind it.
static inline void synthetic_delay_behind(struct synthetic *s, size_t served,
                                          enum synthetic_cause cause, enum synthetic_cause behind,
                                          int64_t begin, int64_t end)
{
    if (!s->truth)
        return;
    for (size_t i = served; i < s->lives.count && s->lives.items[i].stamp_ns[STAMP_HANDOFF] < end;
         i++) {
        int64_t from = s->lives.items[i].stamp_ns[STAMP_HANDOFF];
        synthetic_held_up(s, s->lives.items[i].request, i == served ? cause : behind,
                          from > begin ? from : begin, end);
    }
    s->turns[served].stopped = begin;
    s->turns[served].resumed = end;
}

static inline void synthetic_delay(struct synthetic *s, size_t served, enum synthetic_cause cause,
                                   int64_t begin, int64_t end)
{
    synthetic_delay_behind(s, served, cause, cause, begin, end);
}

// Something interrupts whoever has the application's core, and wakes a thread.
static inline void synthetic_interrupt(struct synthetic *s, int64_t begin, enum span_kind kind,
                                       uint32_t id, enum synthetic_function name, uint32_t thread)
{
    synthetic_open(s, 0, begin, kind, id, name);
    synthetic_call(s, 0, begin, NAME_asm_common_interrupt);
    synthetic_wake(s, begin + 600, thread, s->options.bystander ? SYNTHETIC_BYSTANDER : 0, 0);
    synthetic_return(s, 0, begin + 900);
    synthetic_close(s, 0, begin + 900);
}

static inline void synthetic_name_peers(struct synthetic *s)
{
    static const char *const names[] = {"postgres (10.0.0.9:5432)", "redis (127.0.0.1:6379)"};
    for (uint32_t i = 0; i < 2; i++) {
        struct peer peer = {0};
        snprintf(peer.name, sizeof peer.name, "%s", names[i]);
        SYNTHETIC_PUSH(&s->peers.items, peer);
        SYNTHETIC_PUSH(&s->peers.connections, (struct peer_connection){.peer = i});
    }
}

// What became of the question at the captured server, which has it from `begin` to `end`.
static inline uint32_t synthetic_peer_life(struct synthetic *s, int64_t begin, int64_t end)
{
    struct disorder disorder = {0};
    struct lifetime life = {.request = s->peers.lives.count,
                            .state = LIFETIME_WHOLE,
                            .present = (1 << STAMP_KINDS) - 1,
                            .thread = SYNTHETIC_OTHER_THREAD,
                            .application = SYNTHETIC_OTHER,
                            .receive_call = NO_CALL,
                            .send_call = NO_CALL,
                            .sharing = 1};
    for (int kind = 0; kind < STAMP_KINDS; kind++)
        life.stamp_ns[kind] = kind < STAMP_APPLICATION    ? begin
                              : kind == STAMP_APPLICATION ? begin + 300
                              : kind == STAMP_REPLY       ? end - 500
                                                          : end;
    lifetime_compute_stages(&life, 0, &disorder);
    SYNTHETIC_PUSH(&s->peers.lives, life);
    return (uint32_t)s->peers.lives.count - 1;
}

// The thread asks another server and sleeps until it has the answer. Returns when it runs again.
static inline int64_t synthetic_ask(struct synthetic *s, size_t at, int64_t now)
{
    enum { RECVFROM = 45, NET_RX = 3 };
    size_t message = s->lives.items[at].request;
    bool far = synthetic_is_hit(s, message, CAUSED_BY_FAR);
    int64_t asked = now, sleeps = now + 200, end = sleeps + s->hit_ns[message];
    struct peer_wait wait = {.begin_ns = asked,
                             .end_ns = end + 100,
                             .latest_end_ns = end + 100,
                             .thread = SYNTHETIC_THREAD,
                             .connection = far ? 0 : 1,
                             .request = s->connection[message],
                             .life = NO_PEER_LIFE,
                             .exclusive = true};
    synthetic_call(s, 0, now, NAME_recvmsg);
    synthetic_block(s, sleeps, SYNTHETIC_THREAD, RECVFROM);
    s->left = STINT_SLEEPS;
    if (far) {
        synthetic_spare(s, sleeps);
        synthetic_interrupt(s, end - 1000, SPAN_SOFTIRQ, NET_RX, NAME_NET_RX, SYNTHETIC_THREAD);
        synthetic_delay_behind(s, at, CAUSED_BY_FAR, CAUSED_BY_AHEAD_FAR, asked, end - 400);
    } else {
        synthetic_wake(s, asked + 50, SYNTHETIC_OTHER_THREAD, SYNTHETIC_THREAD, 0);
        synthetic_switch(s, 0, sleeps, SPAN_TASK, SYNTHETIC_OTHER_THREAD, NAME_redis,
                         NAME_main_loop);
        wait.life = synthetic_peer_life(s, asked + 40, end - 400);
        synthetic_wake(s, end - 400, SYNTHETIC_THREAD, SYNTHETIC_OTHER_THREAD, 0);
        s->left = STINT_WAITS;
        synthetic_delay_behind(s, at, CAUSED_BY_BACKEND, CAUSED_BY_AHEAD_BACKEND, asked, end - 400);
    }
    synthetic_switch(s, 0, end, SPAN_TASK, SYNTHETIC_THREAD, NAME_memcached, NAME_event_base_loop);
    synthetic_call(s, 0, end, NAME_drive_machine);
    SYNTHETIC_PUSH(&s->peers.waits, wait);
    return end + 100;
}

#endif
