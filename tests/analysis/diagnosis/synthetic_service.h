// SPDX-License-Identifier: MIT
//
// How a random server (synthetic.h) serves what came: its thread on the application's core, from
// the wait for work to the reply, and what happens to it on the way.
#ifndef TESTS_ANALYSIS_DIAGNOSIS_SYNTHETIC_SERVICE_H
#define TESTS_ANALYSIS_DIAGNOSIS_SYNTHETIC_SERVICE_H

#include "tests/analysis/diagnosis/synthetic_tiers.h"

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
        synthetic_spin(s, 0, now + 100, end - 100);
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
        synthetic_spin(s, 0, now + 900, end - 200);
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

// In the middle of its work the thread stops running.
static inline int64_t synthetic_stop(struct synthetic *s, size_t at, int64_t now)
{
    enum { NANOSLEEP = 35, NET_RX = 3 };
    size_t message = s->lives.items[at].request;
    enum synthetic_cause cause = (enum synthetic_cause)(s->hit[message] - 1);
    if (s->hit[message] == 0 || cause < CAUSED_BY_SLEEP || cause > CAUSED_BY_QUOTA)
        return now;
    if (cause >= CAUSED_BY_FAR && cause <= CAUSED_BY_BACKEND_FAR)
        return synthetic_ask(s, at, now);
    if (cause != CAUSED_BY_QUOTA)
        synthetic_call(s, 0, now += 20, NAME_futex_wait);
    if (cause == CAUSED_BY_SLEEP) { // whoever records the switch is the innermost
        synthetic_open(s, 0, now += 20, SPAN_FUNCTION, SPAN_ID_KERNEL, NAME___schedule);
        synthetic_open(s, 0, now += 20, SPAN_FUNCTION, SPAN_ID_KERNEL, NAME_task_pid_nr_ns);
    }
    now += 200;
    int64_t end = now + s->hit_ns[message];
    if (cause == CAUSED_BY_LOCK) {
        synthetic_hold(s, false, now, end);
    } else {
        s->left = cause == CAUSED_BY_QUOTA  ? STINT_THROTTLED
                  : cause == CAUSED_BY_PEER ? STINT_WAITS
                                            : STINT_SLEEPS;
        synthetic_spare(s, now);
    }
    if (cause == CAUSED_BY_SLEEP)
        synthetic_wake(s, end - 200, SYNTHETIC_THREAD, 0, 0);
    if (cause == CAUSED_BY_TIMER) {
        synthetic_block(s, now, SYNTHETIC_THREAD, NANOSLEEP);
        synthetic_interrupt(s, end - 1000, SPAN_VECTOR, VECTOR_LOCAL_TIMER, NAME_local_timer,
                            SYNTHETIC_THREAD);
    }
    if (cause == CAUSED_BY_PEER)
        synthetic_interrupt(s, end - 1000, SPAN_SOFTIRQ, NET_RX, NAME_NET_RX, SYNTHETIC_THREAD);
    synthetic_switch(s, 0, end, SPAN_TASK, SYNTHETIC_THREAD, NAME_memcached, NAME_event_base_loop);
    synthetic_call(s, 0, end, NAME_drive_machine);
    synthetic_delay(s, at, cause, now, end);
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
    if (synthetic_is_hit(s, message, CAUSED_BY_SEND_QUEUE)) {
        life->stamp_ns[STAMP_SERVER_TX] = now + s->hit_ns[message];
        synthetic_held_up(s, message, CAUSED_BY_SEND_QUEUE, now, now + s->hit_ns[message]);
    }
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
    now = synthetic_stop(s, at, now);
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
    s->left = STINT_WAITS;
    synthetic_spare(s, now);
    synthetic_wake(s, wake, SYNTHETIC_THREAD, 0, 1);
    bool other = synthetic_is_hit(s, message, CAUSED_BY_SERVER_A);
    if (other || synthetic_is_hit(s, message, CAUSED_BY_TASK_A)) {
        int64_t begin = wake - 1000 > now ? wake - 1000 : now + 1;
        run = begin + s->hit_ns[message];
        run = run < wake ? wake + 1000 : run;
        synthetic_switch(
            s, 0, begin, SPAN_TASK, other ? SYNTHETIC_OTHER_THREAD : SYNTHETIC_NEIGHBOUR,
            other ? NAME_redis : NAME_nginx, s->options.spins ? NAME_osq_lock : NAME_main_loop);
        synthetic_delay(s, next, other ? CAUSED_BY_SERVER_A : CAUSED_BY_TASK_A, begin, run);
    } else if (s->options.bystander) { // it makes way at once
        synthetic_idle(s, 0, wake);
    }
    if (synthetic_is_hit(s, message, CAUSED_BY_WAKE_UP)) {
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

#endif
