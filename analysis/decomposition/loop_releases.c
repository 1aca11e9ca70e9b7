// SPDX-License-Identifier: MIT
#include "analysis/decomposition/loop_releases.h"

#include "analysis/decomposition/loop_workers.h"
#include "analysis/decomposition/peer_turn.h"
#include "analysis/decomposition/sleep_names.h"
#include "analysis/timeline/thread_states.h"
#include "base/array.h"

static bool takes(const struct application_call *call)
{
    return call->kind == CALL_RECEIVE && call->length > 0;
}

// Whether the calls of a turn, which begins at index `at`, read from one connection other than the
// message's own before the reply, and answer, until they read again, nobody but these two.
static bool one_let_it_go(const struct application_call *calls, size_t count, size_t at,
                          uint32_t own, int64_t reply_ns)
{
    uint32_t other = 0;
    for (; at < count && calls[at].entry_ns < reply_ns; at++) {
        if (!takes(&calls[at]))
            continue;
        if (calls[at].connection == own || (other && calls[at].connection != other))
            return false;
        other = calls[at].connection;
    }
    for (; at < count && !takes(&calls[at]); at++)
        if (calls[at].kind == CALL_SEND && calls[at].connection != own &&
            calls[at].connection != other)
            return false;
    return other != 0;
}

// Whether that is whoever asked, the load or the thread of another server: it did not keep itself
// waiting.
static bool asked_itself(const struct path *path, uint32_t thread)
{
    const struct decomposer *decomposer = path->sweep.decomposer;
    const struct diagnosis_input *in = decomposer->in;
    if (decomposer->asker)
        return sleep_same_process(in->server, thread, decomposer->asker);
    return in->client_turns && client_turns_has(in->client_turns, thread);
}

uint32_t loop_releaser(const struct path *path, const struct thread_period *period)
{
    const struct sweep *sweep = &path->sweep;
    const struct lifetime *life = sweep->life;
    const struct diagnosis_input *in = sweep->decomposer->in;
    const int64_t reply_ns = life->stamp_ns[STAMP_REPLY],
                  came_ns = life->stamp_ns[STAMP_APPLICATION];
    size_t waking_count, count = 0;
    if (path->wait || sweep->replied || period->before->left != STINT_WAITS || !in->calls ||
        sweep->thread != life->thread || life->receive_call == NO_CALL ||
        period->begin_ns < came_ns || peer_turn_asks(in, life, sweep->thread, reply_ns))
        return 0;
    const struct application_call *calls = application_calls_of(in->calls, sweep->thread, &count);
    const struct waking *wakings = host_timeline_wakings(in->server, sweep->thread, &waking_count);
    size_t last = array_bound(0, waking_count, at, wakings[at].time_ns < reply_ns);
    while (last > 0 && !loop_wait_ended(in->server, &wakings[last - 1]))
        last--;
    if (!calls || last == 0 || wakings[last - 1].time_ns <= came_ns)
        return 0;
    const int64_t turns_ns = wakings[last - 1].time_ns;
    const uint32_t sender = waking_sender(in->server, &wakings[last - 1]);
    return sender && host_timeline_owner(in->server, sender) &&
                   !sleep_same_process(in->server, sender, sweep->thread) &&
                   !asked_itself(path, sender) &&
                   thread_is_known(in->server, sender, period->begin_ns, period->end_ns) &&
                   one_let_it_go(calls, count, application_calls_after(calls, count, turns_ns),
                                 in->calls->items[life->receive_call].connection, reply_ns)
               ? sender
               : 0;
}
