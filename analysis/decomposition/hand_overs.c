// SPDX-License-Identifier: MIT
#include "analysis/decomposition/hand_overs.h"

#include "analysis/decomposition/lock_waits.h"
#include "analysis/timeline/pauses.h"
#include "shim/message_log.h"

// What takes less may be the queue's own lock.
enum { AWAITS_NS = 200000 };

struct first_sleep {
    struct thread_period sleep;
    bool found;
};

static void keep_first_sleep(const struct thread_period *period, void *context)
{
    struct first_sleep *first = context;
    if (period->state == THREAD_SLEEPS && !first->found)
        *first = (struct first_sleep){*period, true};
}

static bool awaits_word(const struct host_timeline *host, const struct thread_period *sleep)
{
    uint32_t pause;
    return sleep->before->left == STINT_SLEEPS && pause_after(host, sleep->before, &pause) &&
           pause == PAUSE_CONDITION;
}

// When the thread that had read the message first slept, for what need not have to do with it.
static int64_t first_rest(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                          int64_t end_ns)
{
    struct first_sleep first = {.found = false};
    uint32_t pause;
    thread_periods(host, thread, begin_ns, end_ns, keep_first_sleep, &first);
    const struct thread_stint *before = first.sleep.before;
    return first.found && (before->left == STINT_WAITS ||
                           (pause_after(host, before, &pause) && pause_may_await_work(pause)))
               ? first.sleep.begin_ns
               : end_ns;
}

bool hand_over_find(const struct diagnosis_input *in, const struct lifetime *life, uint32_t replier,
                    int64_t received_ns, int64_t left_ns, int64_t taken_ns, int64_t reply_ns,
                    struct hand_over *over)
{
    const struct host_timeline *host = in->server;
    struct first_sleep first = {.found = false};
    if (!host || replier == life->thread || taken_ns <= received_ns)
        return false;
    thread_periods(host, replier, taken_ns, reply_ns, keep_first_sleep, &first);
    if (!first.found || !first.sleep.waking || !awaits_word(host, &first.sleep) ||
        first.sleep.end_ns - first.sleep.begin_ns < AWAITS_NS)
        return false;
    const struct waker waker = lock_waker(host, first.sleep.waking);
    if (waker.kind == WAKER_UNKNOWN || (waker.kind == WAKER_THREAD && waker.thread == life->thread))
        return false;
    over->sleep = first.sleep;
    over->left_ns = first_rest(host, life->thread, received_ns, left_ns);
    return true;
}

// --- connections in a queue ----------------------------------------------------------------------

// The first of the calls in which the message was read: it may come in several.
static uint32_t first_read(const struct application_calls *calls, uint32_t call)
{
    const struct application_call *items = calls->items;
    while (call > 0 && items[call - 1].thread == items[call].thread &&
           items[call - 1].connection == items[call].connection &&
           items[call - 1].kind == CALL_RECEIVE)
        call--;
    return call;
}

// Whether a thread reads what others found out to be there: of its latest calls before `call` none
// is a wait.
static bool never_waits(const struct application_calls *calls, uint32_t call)
{
    enum { LATEST = 32 };
    const uint32_t thread = calls->items[call].thread;
    for (uint32_t i = 0; i < LATEST && i < call && calls->items[call - 1 - i].thread == thread; i++)
        if (calls->items[call - 1 - i].kind == CALL_WAIT)
            return false;
    return true;
}

// Whether the thread of the call at `last` was at the request of another connection at that time:
// it had read that, and sent its reply later.
static bool was_at_another(const struct application_calls *calls, uint32_t last,
                           uint32_t connection, int64_t time_ns)
{
    const struct application_call *items = calls->items;
    const uint32_t thread = items[last].thread;
    while (last > 0 && items[last].entry_ns > time_ns && items[last - 1].thread == thread)
        last--;
    if (items[last].entry_ns > time_ns || items[last].connection == connection)
        return false;
    const struct application_call *next = &items[last + 1];
    return items[last].exit_ns >= time_ns ||
           (last + 1 < calls->count && items[last].kind == CALL_RECEIVE && next->thread == thread &&
            next->kind == CALL_SEND && next->connection == items[last].connection);
}

// When another thread of the same process was first told of connections that have something, from
// handoff_ns on. INT64_MAX: none was.
static int64_t others_wait_ended(const struct diagnosis_input *in, uint32_t thread,
                                 int64_t handoff_ns)
{
    const struct application_calls *calls = in->calls;
    const uint32_t process = host_timeline_process(in->server, thread);
    int64_t ended_ns = INT64_MAX;
    for (size_t first = 0, after; first < calls->count; first = after) {
        const struct application_call *own = &calls->items[first];
        size_t count;
        own = application_calls_of(calls, own->thread, &count);
        after = first + count;
        if (own->thread == thread || host_timeline_process(in->server, own->thread) != process)
            continue;
        size_t at = application_calls_after(own, count, handoff_ns);
        for (at -= at > 0; at < count && own[at].entry_ns < ended_ns; at++)
            if (own[at].kind == CALL_WAIT && own[at].exit_ns >= handoff_ns) {
                ended_ns = own[at].exit_ns < ended_ns ? own[at].exit_ns : ended_ns;
                break;
            }
    }
    return ended_ns;
}

bool queued_connection_find(const struct diagnosis_input *in, const struct lifetime *life,
                            int64_t handoff_ns, int64_t received_ns, struct queued_connection *out)
{
    const struct application_calls *calls = in->calls;
    if (!in->server || !calls || life->receive_call == NO_CALL)
        return false;
    const uint32_t read = first_read(calls, life->receive_call);
    const struct application_call *items = calls->items;
    // What is read first of a connection lay in the queue of those to be accepted, perhaps.
    if (read == 0 || items[read - 1].thread != items[read].thread ||
        items[read - 1].connection == items[read].connection || items[read].offset == 0)
        return false;
    out->end_ns = items[read - 1].exit_ns < received_ns ? items[read - 1].exit_ns : received_ns;
    if (out->end_ns <= handoff_ns || !never_waits(calls, read))
        return false;
    out->begin_ns = others_wait_ended(in, items[read].thread, handoff_ns);
    return out->begin_ns < out->end_ns &&
           was_at_another(calls, read - 1, items[read].connection, out->begin_ns);
}
