// SPDX-License-Identifier: MIT
#include "analysis/decomposition/loop_waits.h"

#include "analysis/decomposition/loop_workers.h"
#include "analysis/decomposition/peer_turn.h"
#include "analysis/decomposition/runtime_turns.h"
#include "analysis/decomposition/sleep_names.h"
#include "base/array.h"

// Of the wakings of an event loop from the first on: the last one before it asks another server for
// the message, or replies, if that is a timer's, and it had asked nobody for it before. NULL: not
// so.
static const struct waking *put_off_until(const struct path *path,
                                          const struct thread_period *period,
                                          const struct waking *wakings, size_t first, size_t after)
{
    const struct sweep *sweep = &path->sweep;
    const struct diagnosis_input *in = sweep->decomposer->in;
    int64_t turns_ns;
    if (peer_turn_asks(in, sweep->life, sweep->thread, period->end_ns) ||
        !peer_turn_asks_next(in, sweep->life, sweep->thread, period->end_ns, &turns_ns))
        return NULL;
    size_t last = array_bound(first, after, at, wakings[at].time_ns < turns_ns);
    while (last > first && !loop_wait_ended(in->server, &wakings[last - 1]))
        last--;
    return last > first && waker_of(in->server, &wakings[last - 1]).kind == WAKER_TIMER
               ? &wakings[last - 1]
               : NULL;
}

// Whether another process of the same server did that, as a database's that had a lock. Not where
// another server had been asked for the message, which waits for that one.
static bool colleague_woke(const struct sweep *sweep, const struct waking *waking)
{
    const struct diagnosis_input *in = sweep->decomposer->in;
    const struct waker waker = waker_of(in->server, waking);
    return in->applications && waker.kind == WAKER_THREAD &&
           !sleep_same_process(in->server, waker.thread, waking->thread) &&
           application_of_thread(in->applications, waking->thread) != NO_APPLICATION &&
           application_of_thread(in->applications, waking->thread) ==
               application_of_thread(in->applications, waker.thread) &&
           !peer_turn_asks(in, sweep->life, sweep->thread, waking->time_ns);
}

static bool worker_or_colleague_woke(const struct sweep *sweep, const struct waking *waking)
{
    return loop_worker_woke(sweep->decomposer->in->server, waking) || colleague_woke(sweep, waking);
}

const struct waking *loop_waking_that_counts(const struct path *path,
                                             const struct thread_period *period)
{
    enum { MOST_WAKINGS = 256 }; // beyond, it is the last worker
    const struct sweep *sweep = &path->sweep;
    const struct lifetime *life = sweep->life;
    const struct host_timeline *host = sweep->decomposer->in->server;
    const struct application_calls *calls = sweep->decomposer->in->calls;
    size_t count;
    if (path->wait || sweep->replied || period->before->left != STINT_WAITS ||
        period->begin_ns < life->stamp_ns[STAMP_APPLICATION] || !calls ||
        life->send_call == NO_CALL || calls->items[life->send_call].thread != sweep->thread)
        return NULL;
    const struct waking *wakings = host_timeline_wakings(host, sweep->thread, &count);
    int64_t reply_ns = life->stamp_ns[STAMP_REPLY];
    size_t first = array_bound(0, count, at, wakings[at].time_ns <= period->end_ns);
    size_t last = array_bound(first, count, at, wakings[at].time_ns < reply_ns);
    while (last > first && !loop_wait_ended(host, &wakings[last - 1]))
        last--;
    if (last == first)
        return NULL;
    if (loop_child_woke(host, &wakings[last - 1]))
        return &wakings[last - 1];
    if (!worker_or_colleague_woke(sweep, &wakings[last - 1]))
        return put_off_until(path, period, wakings, first, last);
    for (size_t at = first; at + 1 < last && at < first + MOST_WAKINGS; at++)
        if (loop_wait_ended(host, &wakings[at]) && worker_or_colleague_woke(sweep, &wakings[at]))
            return &wakings[at];
    return &wakings[last - 1];
}

// Whether the first that a thread does with sockets after it was woken is to read a request.
static bool reads_request(const struct application_call *calls, size_t count, int64_t woken_ns)
{
    size_t at = application_calls_after(calls, count, woken_ns);
    while (at < count && calls[at].kind == CALL_RECEIVE && calls[at].length == 0)
        at++;
    return at < count && calls[at].kind == CALL_RECEIVE;
}

// Whether the loop had sent a part of the message's reply, or of one before it, when it turned to
// wait.
static bool replies_in_part(const struct path *path, const struct thread_period *period)
{
    const struct lifetime *life = path->sweep.life;
    return life->in_part_ns && life->in_part_ns <= period->begin_ns;
}

bool loop_waits_for_room(const struct path *path, const struct thread_period *period)
{
    const struct sweep *sweep = &path->sweep;
    return !path->wait && !sweep->replied && period->before->left == STINT_WAITS &&
           sweep->life->batch && replies_in_part(path, period) &&
           !peer_turn_asks(sweep->decomposer->in, sweep->life, sweep->thread,
                           sweep->life->stamp_ns[STAMP_REPLY]) &&
           !loop_waking_that_counts(path, period);
}

// Whether the last that had the loop turn to the message was a packet that brought no request: it
// waited for that all the time, as for a resolver's answer by UDP.
static bool got_answer_at_last(const struct path *path, const struct thread_period *period)
{
    const struct sweep *sweep = &path->sweep;
    const struct diagnosis_input *in = sweep->decomposer->in;
    size_t count, call_count = 0;
    int64_t turns_ns;
    const struct waking *wakings = host_timeline_wakings(in->server, sweep->thread, &count);
    peer_turn_asks_next(in, sweep->life, sweep->thread, period->end_ns, &turns_ns);
    size_t last = array_bound(0, count, at, wakings[at].time_ns < turns_ns);
    while (last > 0 && !loop_wait_ended(in->server, &wakings[last - 1]))
        last--;
    if (last == 0 || wakings[last - 1].time_ns <= period->end_ns ||
        waker_of(in->server, &wakings[last - 1]).kind != WAKER_PACKET)
        return false;
    const struct application_call *calls =
        application_calls_of(in->calls, sweep->thread, &call_count);
    size_t at = calls ? application_calls_after(calls, call_count, wakings[last - 1].time_ns) : 0;
    while (at < call_count && calls[at].entry_ns < turns_ns &&
           (calls[at].kind != CALL_RECEIVE || calls[at].length == 0))
        at++;
    return at < call_count && calls[at].entry_ns >= turns_ns;
}

bool loop_puts_off(const struct path *path, const struct thread_period *period)
{
    const struct sweep *sweep = &path->sweep;
    const struct lifetime *life = sweep->life;
    const struct application_calls *all = sweep->decomposer->in->calls;
    size_t count = 0;
    if (path->wait || sweep->replied || period->before->left != STINT_WAITS || !all ||
        sweep->thread != life->thread ||
        peer_turn_asks(sweep->decomposer->in, life, sweep->thread, period->end_ns) ||
        replies_in_part(path, period) || period->begin_ns < life->stamp_ns[STAMP_APPLICATION])
        return false;
    const struct application_call *calls = application_calls_of(all, sweep->thread, &count);
    return calls && reads_request(calls, count, period->end_ns) &&
           !go_schedules(sweep->decomposer->in->server, sweep->thread, period->begin_ns) &&
           !got_answer_at_last(path, period);
}

bool loop_has_not_accepted(const struct path *path, const struct thread_period *period)
{
    const struct sweep *sweep = &path->sweep;
    const struct lifetime *life = sweep->life;
    const struct application_calls *calls = sweep->decomposer->in->calls;
    if (path->wait || !life->unaccepted || !calls || life->receive_call == NO_CALL ||
        sweep->thread != life->thread || period->begin_ns >= life->stamp_ns[STAMP_APPLICATION] ||
        !sleep_awaits_socket(sweep->decomposer->in->server, period->before))
        return false;
    uint32_t connection = calls->items[life->receive_call].connection;
    for (size_t at = life->receive_call; at > 0; at--) {
        const struct application_call *call = &calls->items[at - 1];
        if (call->thread != life->thread || call->entry_ns < life->stamp_ns[STAMP_HANDOFF])
            break;
        if (call->kind == CALL_ACCEPT && call->connection == connection)
            return call->entry_ns >= period->end_ns;
    }
    return true;
}
