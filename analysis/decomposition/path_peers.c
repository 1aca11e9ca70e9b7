// SPDX-License-Identifier: MIT
#include "analysis/decomposition/path_peers.h"

#include <stdio.h>

#include "analysis/timeline/pauses.h"
#include "base/array.h"
#include "base/text.h"

enum { MOST_TIERS = 6 };

// All connections to another server were taken, so many; in_vain: until the time was out.
static void add_taken(struct path *path, const struct peer_wait *wait, unsigned count, bool in_vain,
                      int64_t begin_ns, int64_t end_ns)
{
    static const char pool[] = "waiting for a free connection", out[] = ", timed out";
    char form[96];
    if (count == 1)
        snprintf(form, sizeof form, "%s%s: the only one waits for %%s", pool, in_vain ? out : "");
    else
        snprintf(form, sizeof form, "%s%s: all %u wait for %%s", pool, in_vain ? out : "", count);
    path->sweep.decomposer->core = NO_CORE;
    path_add_waiting_for(path, wait, form, begin_ns, end_ns);
}

// Whether a timer had the thread turn to the message for the last time before it asked another
// server for it, or replied.
static bool timer_ended_it(const struct path *path, int64_t turns_ns)
{
    const struct sweep *sweep = &path->sweep;
    const struct host_timeline *host = sweep->decomposer->in->server;
    size_t count;
    const struct waking *wakings = host_timeline_wakings(host, sweep->thread, &count);
    size_t after = array_bound(0, count, at, wakings[at].time_ns < turns_ns);
    return after > 0 && waker_of(host, &wakings[after - 1]).kind == WAKER_TIMER;
}

// The same where an event loop kept the message until one was free, or for as long as it would. Not
// where a timer has it ask at last: then it had been put off until that.
static bool add_queue(struct path *path, const struct peer_wait *wait, int64_t begin_ns,
                      int64_t end_ns)
{
    const struct sweep *sweep = &path->sweep;
    const struct diagnosis_input *in = sweep->decomposer->in;
    int64_t turns_ns, reply_ns = sweep->life->stamp_ns[STAMP_REPLY];
    if (!peer_turn_asks_next(in, sweep->life, sweep->thread, end_ns, &turns_ns))
        turns_ns = reply_ns;
    bool in_vain = timer_ended_it(path, turns_ns);
    if (in_vain && turns_ns < reply_ns)
        return false;
    unsigned count = peer_turn_queue(in, sweep->life, wait, begin_ns, end_ns, &in_vain);
    if (count)
        add_taken(path, wait, count, in_vain, begin_ns, end_ns);
    return count > 0;
}

// What was asked lay in the asker's own send queue.
static void add_held(struct path *path, const struct peer_turn *turn,
                     const struct question_hold *hold)
{
    struct component_table *table = path->sweep.decomposer->table;
    const char *whom = peer_turn_name(path->sweep.decomposer->in, turn->wait);
    bool of_others = !turn->own && !path->helper && !path->wait;
    int64_t component = component_of_held_question(table, hold->why, whom, of_others);
    path->sweep.decomposer->core = NO_CORE;
    if (path->wait && component >= 0) {
        char after[CAUSE_NAME_BYTES] = "";
        text_append(after, sizeof after, ", %s", table->components.items[component].name);
        path_add_wait(path, after, turn->begin_ns, turn->end_ns);
    } else {
        sweep_add(&path->sweep, component, turn->begin_ns, turn->end_ns);
    }
}

// The part of a turn in which the other server had what was asked, or all that is known is that it
// did not answer.
static void add_turn(struct path *path, const struct peer_turn *turn, answerer_follower *follow)
{
    static const char whom[] = "waiting for %s", behind[] = "head-of-line blocking: waiting for %s";
    struct decomposer *decomposer = path->sweep.decomposer;
    char after[CAUSE_NAME_BYTES];
    decomposer->core = NO_CORE;
    if (path->wait && follow(path, turn, ", waiting for %s"))
        return;
    if (path->wait) {
        char what[PEER_TURN_BYTES];
        peer_turn_what(decomposer->in, turn->wait, what, sizeof what);
        snprintf(after, sizeof after, ", waiting for %s", what);
        path_add_wait(path, after, turn->begin_ns, turn->end_ns);
    } else if (!turn->own && !path->helper && turn->loops &&
               add_queue(path, turn->wait, turn->begin_ns, turn->end_ns)) {
        return;
    } else if (!turn->own && !path->helper) {
        if (!follow(path, turn, behind))
            path_add_waiting_for(path, turn->wait, behind, turn->begin_ns, turn->end_ns);
    } else if (turn->wait->life != NO_PEER_LIFE && decomposer->tiers < MOST_TIERS) {
        decomposer->follow(decomposer, turn->wait, turn->begin_ns, turn->end_ns);
    } else if (turn->wait->life != NO_PEER_LIFE || !follow(path, turn, whom)) {
        path_add_waiting_for(path, turn->wait, whom, turn->begin_ns, turn->end_ns);
    }
}

void path_add_peer_turn(struct path *path, const struct peer_turn *turn, answerer_follower *follow)
{
    const struct peers *peers = path->sweep.decomposer->in->peers;
    const struct peer_wait *wait = turn->wait;
    struct peer_turn part = *turn;
    for (; part.begin_ns < turn->end_ns; part.begin_ns = part.end_ns) {
        const struct question_hold *hold = question_held(
            &peers->holds, wait->connection, wait->request_end, part.begin_ns, turn->end_ns);
        const bool held = hold && hold->begin_ns <= part.begin_ns;
        part.end_ns = !hold ? turn->end_ns : held ? hold->end_ns : hold->begin_ns;
        if (part.end_ns > turn->end_ns)
            part.end_ns = turn->end_ns;
        if (held)
            add_held(path, &part, hold);
        else
            add_turn(path, &part, follow);
    }
}

bool path_add_pool_wait(struct path *path, const struct thread_period *period,
                        const struct waker *waker, const struct waker *at_last, int64_t woken_ns)
{
    const struct diagnosis_input *in = path->sweep.decomposer->in;
    int64_t begin_ns = period->begin_ns, end_ns = period->end_ns;
    const struct peer_wait *wait;
    uint32_t pause;
    unsigned count = 0;
    bool in_vain = false;
    if (path->wait || period->before->left == STINT_WAITS)
        return false;
    if (at_last->kind == WAKER_THREAD)
        count = peer_turn_pool(in, at_last->thread, begin_ns, end_ns, woken_ns, &wait);
    if (count == 0 && waker->kind == WAKER_TIMER &&
        pause_after(in->server, period->before, &pause) && pause_awaits_thread(pause)) {
        in_vain = true;
        count = peer_turn_pool_in_vain(in, path->sweep.thread, begin_ns, end_ns, &wait);
    }
    if (count)
        add_taken(path, wait, count, in_vain, begin_ns, end_ns);
    return count > 0;
}

bool path_add_only_peer(struct path *path, const struct thread_period *period,
                        answerer_follower *follow)
{
    static const char whom[] = "waiting for %s";
    const struct sweep *sweep = &path->sweep;
    if (path->wait || sweep->replied || period->before->left != STINT_WAITS ||
        period->begin_ns < sweep->life->stamp_ns[STAMP_APPLICATION])
        return false;
    const struct peer_wait *wait =
        peer_turn_only(sweep->decomposer->in, sweep->thread, period->begin_ns, period->end_ns);
    if (!wait)
        return false;
    if (add_queue(path, wait, period->begin_ns, period->end_ns))
        return true;
    const struct peer_turn turn = {
        .wait = wait, .begin_ns = period->begin_ns, .end_ns = period->end_ns, .loops = true};
    path->sweep.decomposer->core = NO_CORE;
    if (!follow(path, &turn, whom))
        path_add_waiting_for(path, wait, whom, period->begin_ns, period->end_ns);
    return true;
}

bool path_add_asked_again(struct path *path, const struct thread_period *period)
{
    const struct diagnosis_input *in = path->sweep.decomposer->in;
    const struct peer_wait *again = path->wait || path->sweep.replied
                                        ? NULL
                                        : peer_turn_asked_again(in, path->sweep.life, period);
    if (!again)
        return false;
    char name[CAUSE_NAME_BYTES];
    snprintf(name, sizeof name, "sleeping (timer) between questions to %s",
             peer_turn_name(in, again));
    path->sweep.decomposer->core = NO_CORE;
    path_add_wait(path, name, period->begin_ns, period->end_ns);
    return true;
}
