// SPDX-License-Identifier: MIT
//
// What the thread of a random server (synthetic.h) asks of other servers: one that was captured,
// too, and works on the same core while the thread sleeps, and one far away, of which nothing is
// known but when it was its turn.
#ifndef TESTS_ANALYSIS_DIAGNOSIS_SYNTHETIC_TIERS_H
#define TESTS_ANALYSIS_DIAGNOSIS_SYNTHETIC_TIERS_H

#include <stdio.h>

#include "tests/analysis/diagnosis/synthetic_truth.h"

enum { SYNTHETIC_RECVFROM = 45, SYNTHETIC_NET_RX = 3 };

// What holds up those behind the message that the thread serves, during [begin, end).
static inline void synthetic_delay_others(struct synthetic *s, size_t served,
                                          enum synthetic_cause cause, int64_t begin, int64_t end)
{
    if (!s->truth)
        return;
    for (size_t i = served + 1;
         i < s->lives.count && s->lives.items[i].stamp_ns[STAMP_HANDOFF] < end; i++) {
        int64_t from = s->lives.items[i].stamp_ns[STAMP_HANDOFF];
        synthetic_held_up(s, s->lives.items[i].request, cause, from > begin ? from : begin, end);
    }
    s->turns[served].stopped = begin;
    s->turns[served].resumed = end;
}

static inline void synthetic_delay(struct synthetic *s, size_t served, enum synthetic_cause cause,
                                   int64_t begin, int64_t end)
{
    const struct lifetime *life = &s->lives.items[served];
    int64_t from = life->stamp_ns[STAMP_HANDOFF];
    synthetic_held_up(s, life->request, cause, from > begin ? from : begin, end);
    synthetic_delay_others(s, served, cause, begin, end);
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

// A server's thread waits for a lock. Its holder had to write something first.
static inline void synthetic_hold(struct synthetic *s, bool backend, int64_t now, int64_t end)
{
    enum { FUTEX = 202, FSYNC = 74, NVME = 40 };
    const uint32_t thread = backend ? SYNTHETIC_OTHER_THREAD : SYNTHETIC_THREAD;
    const uint32_t holder = backend ? SYNTHETIC_OTHER_HOLDER : SYNTHETIC_HOLDER;
    const enum synthetic_function name = backend ? NAME_writer : NAME_holder;
    synthetic_block(s, now, thread, FUTEX);
    synthetic_wake(s, now - 100, holder, thread, 0);
    synthetic_switch(s, 0, now, SPAN_TASK, holder, name, NAME_main_loop);
    synthetic_block(s, now + 1000, holder, FSYNC);
    synthetic_spare(s, now + 1000);
    synthetic_interrupt(s, end - 4000, SPAN_IRQ, NVME, NAME_nvme0q1, holder);
    synthetic_switch(s, 0, end - 2000, SPAN_TASK, holder, name, NAME_main_loop);
    synthetic_wake(s, end - 300, thread, holder, 0);
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

// What became of the question at the captured server, which has it from `begin` to `end` and takes
// it up at `taken`. Its calls are counted from the first of that server's.
static inline uint32_t synthetic_peer_life(struct synthetic *s, int64_t begin, int64_t taken,
                                           int64_t end)
{
    enum { CONNECTION = SYNTHETIC_CONNECTIONS };
    const uint64_t offset = s->peers.lives.count * SYNTHETIC_REQUEST_BYTES;
    struct disorder disorder = {0};
    struct lifetime life = {.request = s->peers.lives.count,
                            .state = LIFETIME_WHOLE,
                            .present = (1 << STAMP_KINDS) - 1,
                            .thread = SYNTHETIC_OTHER_THREAD,
                            .application = SYNTHETIC_OTHER,
                            .receive_call = (uint32_t)s->backend_calls.count,
                            .send_call = (uint32_t)s->backend_calls.count + 1,
                            .sharing = 1};
    for (int kind = 0; kind < STAMP_KINDS; kind++)
        life.stamp_ns[kind] = kind < STAMP_APPLICATION    ? begin
                              : kind == STAMP_APPLICATION ? taken
                              : kind == STAMP_REPLY       ? end - 500
                                                          : end;
    synthetic_socket_of(s, SYNTHETIC_OTHER_THREAD, CALL_RECEIVE, taken - 100, taken, CONNECTION,
                        offset);
    synthetic_socket_of(s, SYNTHETIC_OTHER_THREAD, CALL_SEND, end - 500, end - 100, CONNECTION,
                        offset);
    lifetime_compute_stages(&life, 0, &disorder);
    SYNTHETIC_PUSH(&s->peers.lives, life);
    return (uint32_t)s->peers.lives.count - 1;
}

// Puts the captured server's calls behind those of who asks it.
static inline void synthetic_join_calls(struct synthetic *s)
{
    for (size_t i = 0; i < s->peers.lives.count; i++) {
        s->peers.lives.items[i].receive_call += (uint32_t)s->calls.count;
        s->peers.lives.items[i].send_call += (uint32_t)s->calls.count;
    }
    for (size_t i = 0; i < s->backend_calls.count; i++)
        SYNTHETIC_PUSH(&s->calls, s->backend_calls.items[i]);
    array_free(&s->backend_calls);
}

// The far server has the question of a thread until `end`.
static inline void synthetic_ask_far(struct synthetic *s, uint32_t thread, int64_t sleeps,
                                     int64_t end)
{
    synthetic_block(s, sleeps, thread, SYNTHETIC_RECVFROM);
    s->left = STINT_SLEEPS;
    synthetic_spare(s, sleeps);
    synthetic_interrupt(s, end - 1000, SPAN_SOFTIRQ, SYNTHETIC_NET_RX, NAME_NET_RX, thread);
}

static inline void synthetic_peer_wait(struct synthetic *s, uint32_t thread, uint32_t connection,
                                       int64_t begin, int64_t end, uint32_t request, uint32_t life)
{
    SYNTHETIC_PUSH(&s->peers.waits, (struct peer_wait){.begin_ns = begin,
                                                       .end_ns = end,
                                                       .latest_end_ns = end,
                                                       .thread = thread,
                                                       .connection = connection,
                                                       .request = request,
                                                       .life = life,
                                                       .exclusive = true});
}

// What keeps the captured server from the message during [begin, end); it goes on at the end.
static inline void synthetic_backend_stop(struct synthetic *s, enum synthetic_cause cause,
                                          int64_t begin, int64_t end)
{
    enum { NANOSLEEP = 35, CONNECTION = SYNTHETIC_CONNECTIONS + 1 };
    if (cause == CAUSED_BY_BACKEND_BUSY) {
        synthetic_socket_of(s, SYNTHETIC_OTHER_THREAD, CALL_RECEIVE, begin, begin + 200, CONNECTION,
                            0);
        synthetic_socket_of(s, SYNTHETIC_OTHER_THREAD, CALL_SEND, end - 400, end, CONNECTION, 0);
        return;
    }
    if (cause == CAUSED_BY_BACKEND_LOCK)
        synthetic_hold(s, true, begin, end);
    if (cause == CAUSED_BY_BACKEND_FAR) {
        synthetic_ask_far(s, SYNTHETIC_OTHER_THREAD, begin, end);
        synthetic_peer_wait(s, SYNTHETIC_OTHER_THREAD, 0, begin - 200, end + 100, 0, NO_PEER_LIFE);
    }
    if (cause == CAUSED_BY_BACKEND_TASK) {
        s->left = STINT_PREEMPTED;
        synthetic_switch(s, 0, begin, SPAN_TASK, SYNTHETIC_NEIGHBOUR, NAME_nginx, NAME_main_loop);
    }
    if (cause == CAUSED_BY_BACKEND_QUOTA) {
        s->left = STINT_THROTTLED;
        synthetic_spare(s, begin);
    }
    if (cause == CAUSED_BY_BACKEND_TIMER) {
        synthetic_block(s, begin, SYNTHETIC_OTHER_THREAD, NANOSLEEP);
        synthetic_spare(s, begin);
        synthetic_interrupt(s, end - 1000, SPAN_VECTOR, VECTOR_LOCAL_TIMER, NAME_local_timer,
                            SYNTHETIC_OTHER_THREAD);
    }
    synthetic_switch(s, 0, end, SPAN_TASK, SYNTHETIC_OTHER_THREAD, NAME_redis, NAME_main_loop);
}

// The captured server has the question from `asked` until `end`, and the core of who asked. Returns
// its life there.
static inline uint32_t synthetic_ask_backend(struct synthetic *s, size_t at, int64_t asked,
                                             int64_t sleeps, int64_t end)
{
    enum { WORKS = 1500, TAKES = 300 };
    size_t message = s->lives.items[at].request;
    enum synthetic_cause cause = (enum synthetic_cause)(s->hit[message] - 1);
    const bool busy = cause == CAUSED_BY_BACKEND_BUSY;
    int64_t from = asked, to = end;
    synthetic_wake(s, asked + 50, SYNTHETIC_OTHER_THREAD, SYNTHETIC_THREAD, 0);
    synthetic_block(s, sleeps, SYNTHETIC_THREAD, SYNTHETIC_RECVFROM);
    s->left = STINT_SLEEPS;
    synthetic_switch(s, 0, sleeps, SPAN_TASK, SYNTHETIC_OTHER_THREAD, NAME_redis, NAME_main_loop);
    if (cause != CAUSED_BY_BACKEND) {
        from = sleeps + (busy ? 0 : WORKS);
        to = end - WORKS;
        synthetic_backend_stop(s, cause, from, to);
    }
    synthetic_wake(s, end, SYNTHETIC_THREAD, SYNTHETIC_OTHER_THREAD, 0);
    s->left = STINT_WAITS;
    synthetic_held_up(s, message, cause == CAUSED_BY_BACKEND_FAR ? CAUSED_BY_FAR : cause, from, to);
    synthetic_delay_others(s, at, CAUSED_BY_AHEAD_BACKEND, asked, end);
    return synthetic_peer_life(s, asked + 40, (busy ? to : sleeps) + TAKES, end);
}

// The thread asks another server and sleeps until it has the answer. Returns when it runs again.
static inline int64_t synthetic_ask(struct synthetic *s, size_t at, int64_t now)
{
    size_t message = s->lives.items[at].request;
    bool far = synthetic_is_hit(s, message, CAUSED_BY_FAR);
    int64_t asked = now, sleeps = now + 200, end = sleeps + s->hit_ns[message];
    uint32_t life = NO_PEER_LIFE;
    synthetic_call(s, 0, now, NAME_recvmsg);
    if (far) {
        synthetic_ask_far(s, SYNTHETIC_THREAD, sleeps, end);
        synthetic_held_up(s, message, CAUSED_BY_FAR, asked, end - 400);
        synthetic_delay_others(s, at, CAUSED_BY_AHEAD_FAR, asked, end - 400);
    } else {
        life = synthetic_ask_backend(s, at, asked, sleeps, end - 400);
    }
    synthetic_switch(s, 0, end, SPAN_TASK, SYNTHETIC_THREAD, NAME_memcached, NAME_event_base_loop);
    synthetic_call(s, 0, end, NAME_drive_machine);
    synthetic_peer_wait(s, SYNTHETIC_THREAD, far ? 0 : 1, asked, end + 100, s->connection[message],
                        life);
    return end + 100;
}

#endif
