// SPDX-License-Identifier: MIT
#include "analysis/decomposition/critical_path.h"

#include <stdio.h>
#include <string.h>

#include "analysis/decomposition/dispatchers.h"
#include "analysis/decomposition/lock_tries.h"
#include "analysis/decomposition/lock_waits.h"
#include "analysis/decomposition/loop_releases.h"
#include "analysis/decomposition/loop_waits.h"
#include "analysis/decomposition/loop_workers.h"
#include "analysis/decomposition/path_core.h"
#include "analysis/decomposition/path_disk.h"
#include "analysis/decomposition/path_peers.h"
#include "analysis/decomposition/path_walk.h"
#include "analysis/decomposition/peer_turn.h"
#include "analysis/decomposition/questions.h"
#include "analysis/decomposition/sleep_names.h"
#include "analysis/decomposition/tracers.h"
#include "analysis/decomposition/vain_waits.h"
#include "analysis/timeline/detours.h"
#include "analysis/timeline/pauses.h"
#include "analysis/timeline/thread_states.h"
#include "base/array.h"
#include "base/text.h"

enum {
    MOST_HOPS = 6,   // from waker to waker
    MOST_AHEAD = 64, // for one lock on a file
};

// --- asleep --------------------------------------------------------------------------------------

// Whether a call of an event loop says nothing of what the loop has to do with: it waited for
// events, or read what was not there.
static bool takes_nothing(const struct application_call *call)
{
    return call->kind == CALL_WAIT || (call->kind == CALL_RECEIVE && call->length == 0);
}

// Whether the thread that receives the message was waiting for any at all: it has answered the one
// before, and sleeps in a call in which one waits for work, not in one that writes a log.
static bool waits_for_work(const struct path *path, const struct thread_period *period)
{
    enum { MOST_CALLS = 1024 };
    const struct sweep *sweep = &path->sweep;
    const struct application_calls *all = sweep->decomposer->in->calls;
    size_t count = 0;
    uint32_t pause;
    if (period->before->left != STINT_WAITS &&
        pause_after(sweep->decomposer->in->server, period->before, &pause) &&
        !pause_may_await_work(pause))
        return false;
    if (!all || path->wait || sweep->thread != sweep->life->thread ||
        period->before->end_ns > sweep->life->stamp_ns[STAMP_HANDOFF])
        return false;
    const struct application_call *calls = application_calls_of(all, sweep->thread, &count);
    size_t next = calls ? application_calls_after(calls, count, period->before->end_ns) : 0;
    for (unsigned i = 0; i < MOST_CALLS && next > 0 && takes_nothing(&calls[next - 1]); i++)
        next--;
    return next == 0 || calls[next - 1].kind != CALL_RECEIVE;
}

// --- stopped by a tracer -------------------------------------------------------------------------

struct tracer_time {
    struct path *path;
    const char *stop; // "stopped by a tracer (strace)"
};

// The tracer works, or waits for what comes next; only where it cannot write down what it has seen
// that is told.
static void visit_tracer_period(const struct thread_period *period, void *opaque)
{
    const struct tracer_time *time = opaque;
    const struct host_timeline *host = time->path->sweep.decomposer->in->server;
    char name[CAUSE_NAME_BYTES] = "", call[CAUSE_NAME_BYTES];
    uint32_t pause;
    text_append(name, sizeof name, "%s", time->stop);
    if (period->state == THREAD_SLEEPS && pause_after(host, period->before, &pause) &&
        pause_may_send(pause) && sleep_call_name(host, period->before, call))
        text_append(name, sizeof name, ", %s", call);
    path_add_wait(time->path, name, period->begin_ns, period->end_ns);
}

// --- asleep until another one wakes it -----------------------------------------------------------

// The thread that waits for sockets was woken by one that had asked another server: it had handed
// the request over.
static bool asked_meanwhile(const struct path *path, const struct thread_period *period,
                            uint32_t waker)
{
    struct peer_turn turn;
    return period->before->left == STINT_WAITS &&
           peer_turn_next(path->sweep.decomposer->in, path->sweep.life, waker, period->begin_ns,
                          period->end_ns, &turn);
}

// Whether the thread belongs to the server that has the message.
static bool serves_too(const struct path *path)
{
    const struct applications *all = path->sweep.decomposer->in->applications;
    uint16_t own = all ? application_of_thread(all, path->sweep.life->thread) : NO_APPLICATION;
    return own != NO_APPLICATION && own == application_of_thread(all, path->sweep.thread);
}

// Whether a thread that another one waits for sleeps until it gets the lock on the file that this
// one wants, too, or until there is room in the pipe into which both write for their server, or
// until it may change the file that this one wants to change, too, or the memory that they share:
// it was only ahead of it.
static bool wants_the_same(const struct path *path, const struct thread_period *period,
                           const char *sleep)
{
    uint32_t pause;
    if (!path->wait || !pause_after(path->sweep.decomposer->in->server, period->before, &pause))
        return false;
    if (sleep_is_for_memory(sleep) && sleep_is_for_memory(path->sleep))
        return serves_too(path);
    return strcmp(sleep, path->sleep) == 0 &&
           (pause_locks_file(pause) ||
            ((pause_may_send(pause) || pause_changes_file(pause)) && serves_too(path)));
}

// Whether it sleeps in a call that says where to look: it writes to somebody, or wants a lock on
// another file.
static bool says_where(const struct path *path, const struct thread_period *period,
                       const char *sleep)
{
    const struct host_timeline *host = path->sweep.decomposer->in->server;
    uint32_t pause;
    return path->wait && !path->outer && period->before->left == STINT_SLEEPS &&
           pause_after(host, period->before, &pause) &&
           (pause_may_send(pause) || pause_locks_file(pause) || lock_try_before(host, period)) &&
           !wants_the_same(path, period, sleep);
}

// The time of a thread that another one, `sleeper`, waits for until it wakes that. Of one that
// tells others of their jobs only what its last word was about.
static void follow_until_word(struct path *path, uint32_t sleeper, int64_t begin_ns, int64_t end_ns)
{
    struct thread_period sleep;
    enum dispatched how =
        path->wait ? dispatcher_word(path->sweep.decomposer->in->server, path->sweep.thread,
                                     sleeper, begin_ns, end_ns, &sleep)
                   : DISPATCHED_NOT;
    if (how == DISPATCHED_NOT) {
        path_follow(path, begin_ns, end_ns);
        return;
    }
    path->sweep.decomposer->core = NO_CORE;
    if (how == DISPATCHED_SEVERAL)
        path_add_wait(path, "", begin_ns, sleep.end_ns);
    else
        path_sleep(path, &sleep);
    path_follow(path, sleep.end_ns, end_ns);
}

// The time of the thread that woke this one, as long as it kept it waiting.
static void follow_waker(struct path *path, const struct thread_period *period,
                         const struct waker *waker, const char *sleep)
{
    char who[CAUSE_NAME_BYTES];
    sleep_waker_name(&path->sweep, waker, period->before, who);
    if (sleep_stops_the_world(who))
        sleep_name_inspector(path->sweep.decomposer->in->server, waker->thread,
                             period->waking ? period->waking->time_ns : period->end_ns, who);
    char wait[CAUSE_NAME_BYTES];
    bool ahead = wants_the_same(path, period, sleep);
    struct path other = {.sweep = {.decomposer = path->sweep.decomposer,
                                   .life = path->sweep.life,
                                   .role = ROLE_A,
                                   .thread = waker->thread,
                                   .replied = path->sweep.replied},
                         .peer = path->peer,
                         .asker = path->sweep.thread,
                         .hops = path->hops + !ahead,
                         .ahead = path->ahead + ahead};
    bool receiver = waker->thread == path->sweep.life->thread && !path->sweep.replied;
    // Who had the runtime's turn did not hand anything on to this thread, which woke by itself.
    bool had_turn =
        sleep_is_parked(sleep) && period->waking && period->waking->waker != waker->thread;
    other.helper = !receiver && !path->wait && !had_turn && !sleep_stops_the_world(who) &&
                   (path->helper || waits_for_work(path, period) ||
                    asked_meanwhile(path, period, waker->thread));
    if (!receiver && !other.helper) {
        // Of several holders behind one another the last one counts.
        char ended[CAUSE_NAME_BYTES];
        bool says = says_where(path, period, sleep);
        other.outer = says ? path->wait : path->outer;
        other.sleep = path->wait && !path->peer && !says ? path->sleep : sleep;
        sleep_ended_name(other.sleep, WAKER_THREAD, who, ended);
        wait[0] = '\0';
        if (other.outer)
            text_append(wait, sizeof wait, "%s, ", other.outer);
        text_append(wait, sizeof wait, "%s", ended);
        other.wait = wait;
    }
    follow_until_word(&other, path->sweep.thread, period->begin_ns, period->end_ns);
}

// The same of a lock that came through many hands until it woke the thread at woken_ns: the time of
// each as long as it had it. Not of one that had asked another server: whoever told it of the
// answer is no hand.
static void follow_hands(struct path *path, const struct thread_period *period,
                         const struct waker *waker, const char *sleep, int64_t woken_ns,
                         unsigned most)
{
    struct thread_period part = *period;
    struct waker before;
    struct peer_turn turn;
    int64_t since_ns;
    bool receiver = waker->thread == path->sweep.life->thread;
    if (most > 0 && !receiver &&
        !peer_turn_next(path->sweep.decomposer->in, path->sweep.life, waker->thread,
                        period->begin_ns, woken_ns, &turn) &&
        lock_passed_on(path->sweep.decomposer->in->server, period->before, waker->thread,
                       period->begin_ns, woken_ns, &before, &since_ns) &&
        before.thread != path->sweep.thread) {
        part.end_ns = since_ns < period->end_ns ? since_ns : period->end_ns;
        follow_hands(path, &part, &before, sleep, since_ns, most - 1);
        part.begin_ns = part.end_ns;
        part.end_ns = period->end_ns;
    }
    if (part.begin_ns < part.end_ns)
        follow_waker(path, &part, waker, sleep);
}

static void follow_wakers(struct path *path, const struct thread_period *period,
                          const struct waker *waker, const char *sleep, int64_t woken_ns)
{
    enum { MOST_HANDS = 64 };
    uint32_t pause;
    bool woke =
        woken_ns > period->end_ns || (period->waking && period->waking->waker == waker->thread);
    if (woke && pause_after(path->sweep.decomposer->in->server, period->before, &pause) &&
        pause_awaits_thread(pause))
        follow_hands(path, period, waker, sleep, woken_ns, MOST_HANDS);
    else
        follow_waker(path, period, waker, sleep);
}

// --- what ended a sleep --------------------------------------------------------------------------

// What ended a sleep; if that was a stop, what ended the rest of it. kind WAKER_UNKNOWN: not seen.
static struct waker waker_of_sleep(const struct path *path, const struct thread_period *period)
{
    const struct host_timeline *host = path->sweep.decomposer->in->server;
    const struct waking *waking = period->waking;
    uint32_t pause;
    if (waking && period->before->interrupted) {
        size_t count, waking_count;
        const struct thread_stint *stints = host_timeline_stints(host, path->sweep.thread, &count);
        const struct waking *all = host_timeline_wakings(host, path->sweep.thread, &waking_count);
        size_t at = (size_t)(period->before - stints);
        while (at + 1 < count && (stints[at].interrupted || stints[at].left == STINT_PREEMPTED ||
                                  stints[at].left == STINT_THROTTLED ||
                                  (pause_after(host, &stints[at], &pause) && pause_is_stop(pause))))
            at++;
        size_t ends = array_bound(0, waking_count, i, all[i].time_ns < stints[at].end_ns);
        waking = ends < waking_count ? &all[ends] : NULL;
    }
    const struct waker waker =
        waking ? waker_of(host, waking) : (struct waker){.kind = WAKER_UNKNOWN};
    if (!pause_after(host, period->before, &pause))
        return waker;
    if ((waker.kind == WAKER_THREAD || waker.kind == WAKER_UNKNOWN) && pause_is_for_time(pause))
        return (struct waker){.kind = WAKER_TIMER}; // if it was a thread, with a signal before that
    return waking && pause_awaits_thread(pause) ? lock_waker(host, waking) : waker;
}

// What ended a sleep, as far as the message is concerned.
static struct waker waker_for_message(const struct path *path, const struct thread_period *period)
{
    const struct host_timeline *host = path->sweep.decomposer->in->server;
    struct waker waker = waker_of_sleep(path, period);
    if (path->wait && path->asker && waker.kind == WAKER_THREAD && waker.thread == path->asker &&
        period->before->left == STINT_WAITS && period->waking && !path->sweep.replied) {
        const struct waking *word = loop_word_of_another(host, period->waking, path->asker,
                                                         path->sweep.life->stamp_ns[STAMP_REPLY]);
        return word ? waker_of(host, word) : waker;
    }
    bool by_child = period->waking && loop_child_woke(host, period->waking);
    if (waker.kind != WAKER_PACKET && waker.kind != WAKER_TIMER && !by_child)
        return waker;
    const struct waking *counts = loop_waking_that_counts(path, period);
    if (counts)
        return waker_of(host, counts);
    // A worker that is done while the loop is awake wakes nobody: whoever works meanwhile has it.
    if (waker.kind == WAKER_PACKET && loop_puts_off(path, period))
        loop_worker_meanwhile(host, path->sweep.thread, period->begin_ns, period->end_ns, &waker);
    return waker;
}

// The time of a thread of another program that the wait called `name` is for, behind what the path
// waits for already.
static void follow_other(struct path *path, uint32_t thread, const char *name,
                         const struct peer_wait *peer, int64_t begin_ns, int64_t end_ns)
{
    char wait[CAUSE_NAME_BYTES] = "";
    struct path other = {.sweep = {.decomposer = path->sweep.decomposer,
                                   .life = path->sweep.life,
                                   .role = ROLE_A,
                                   .thread = thread,
                                   .replied = path->sweep.replied},
                         .wait = wait,
                         .sleep = "",
                         .peer = path->wait ? path->peer : peer,
                         .outer = wait,
                         .hops = path->hops + 1};
    text_append(wait, sizeof wait, "%s%s", path->wait ? path->wait : "", name);
    path_follow(&other, begin_ns, end_ns);
}

// A packet ended a wait, which is called `name`. Where it is known whose packets were waited for,
// and a program of this host sent that one, what its thread did is told.
static void add_awaited_packet(struct path *path, const struct thread_period *period,
                               const char *name, int64_t begin_ns, int64_t end_ns)
{
    static const char from[] = " a packet from ";
    const struct host_timeline *host = path->sweep.decomposer->in->server;
    const uint32_t sender = period->waking ? waking_sender(host, period->waking) : 0;
    const char *whom = strstr(name, from);
    const struct span *span = sender ? thread_span_before(host, sender, end_ns) : NULL;
    if (!whom || !span || path->hops >= MOST_HOPS || !host_timeline_owner(host, sender) ||
        sleep_same_process(host, sender, path->sweep.thread) ||
        !thread_is_known(host, sender, begin_ns, end_ns)) {
        path_add_wait(path, name, begin_ns, end_ns);
        return;
    }
    const char *program = host->names.items[span->name];
    char named[CAUSE_NAME_BYTES] = "";
    whom += sizeof from - 1;
    text_append(named, sizeof named, "%.*s%.*s (%s)", (int)(whom - name), name,
                component_family_length(program), program, whom);
    follow_other(path, sender, named, NULL, begin_ns, end_ns);
}

// A packet ended a wait: for as long as another server had been asked for the message, and had not
// answered, it was that one's; so it was if the thread, which did not put it off, had asked nobody
// else.
static void add_packet_wait(struct path *path, const struct thread_period *period, const char *name,
                            bool is_put_off, int64_t begin_ns, int64_t end_ns)
{
    const struct diagnosis_input *in = path->sweep.decomposer->in;
    const struct lifetime *life = path->sweep.life;
    struct asked_time asked;
    char from[CAUSE_NAME_BYTES];
    while (begin_ns < end_ns && (question_for(in, life, begin_ns, end_ns, &asked) ||
                                 (!is_put_off && question_only(in, life, path->sweep.thread,
                                                               begin_ns, end_ns, &asked)))) {
        snprintf(from, sizeof from, "waiting for a packet from %s", asked.whom);
        path_add_wait(path, name, begin_ns, asked.begin_ns);
        // What wakes an event loop may be anybody's.
        if (asked.end_ns == end_ns && period->before->left == STINT_SLEEPS)
            add_awaited_packet(path, period, from, asked.begin_ns, asked.end_ns);
        else
            path_add_wait(path, from, asked.begin_ns, asked.end_ns);
        begin_ns = asked.end_ns;
    }
    add_awaited_packet(path, period, name, begin_ns, end_ns);
}

// The peer whose turn it is does something itself meanwhile.
static bool follow_answerer(struct path *path, const struct peer_turn *turn, const char *form)
{
    struct decomposer *decomposer = path->sweep.decomposer;
    char what[PEER_TURN_BYTES], name[CAUSE_NAME_BYTES];
    uint32_t answerer;
    if (path->hops >= MOST_HOPS ||
        !peer_turn_answerer(decomposer, path->sweep.thread, turn, &answerer))
        return false;
    peer_turn_what(decomposer->in, turn->wait, what, sizeof what);
    snprintf(name, sizeof name, form, what);
    follow_other(path, answerer, name, turn->wait, turn->begin_ns, turn->end_ns);
    return true;
}

// The time between two tries to get a lock on a file was that of whoever had it; what is slept for
// after that is the thread's own.
static void add_time_between_tries(struct path *path, const struct thread_period *period,
                                   const struct file_lock_try *refused)
{
    const struct host_timeline *host = path->sweep.decomposer->in->server;
    struct thread_period part = *period;
    char sleep[CAUSE_NAME_BYTES], name[CAUSE_NAME_BYTES];
    lock_try_name(host, refused, sleep);
    for (; part.begin_ns < period->end_ns; part.begin_ns = part.end_ns) {
        const struct lock_turn turn = lock_turn_at(host, refused, part.begin_ns, period->end_ns);
        struct waker holder = {.kind = WAKER_THREAD, .thread = turn.thread};
        part.end_ns = turn.end_ns;
        if (turn.process)
            holder.span = thread_span_before(host, turn.thread, turn.end_ns);
        if (holder.span && turn.thread != path->sweep.thread && path->hops < MOST_HOPS) {
            follow_waker(path, &part, &holder, sleep);
            continue;
        }
        name[0] = '\0';
        text_append(name, sizeof name, path->wait ? ", " : "");
        if (turn.process)
            text_append(name, sizeof name, "%s: held by process %u", sleep, turn.process);
        else if (turn.taken)
            text_append(name, sizeof name, "%s", sleep);
        else
            text_append(name, sizeof name, "sleeping (timer), free: %s", sleep);
        path->sweep.decomposer->core = NO_CORE;
        path_add_wait(path, name, part.begin_ns, part.end_ns);
    }
}

// The time until somebody else's request had an event loop answer the message was that one's.
static bool add_until_released(struct path *path, const struct thread_period *period)
{
    const struct host_timeline *host = path->sweep.decomposer->in->server;
    const uint32_t releaser = loop_releaser(path, period);
    const struct span *span = releaser ? thread_span_before(host, releaser, period->end_ns) : NULL;
    char name[CAUSE_NAME_BYTES] = "";
    if (!span)
        return false;
    const char *program = host->names.items[span->name];
    text_append(name, sizeof name, "put off until %.*s asks", component_family_length(program),
                program);
    follow_other(path, releaser, name, NULL, period->begin_ns, period->end_ns);
    return true;
}

void path_sleep(struct path *path, const struct thread_period *period)
{
    char sleep[CAUSE_NAME_BYTES] = "", who[CAUSE_NAME_BYTES], name[CAUSE_NAME_BYTES];
    struct sweep *sweep = &path->sweep;
    int64_t begin_ns = period->begin_ns, end_ns = period->end_ns, woken_ns;
    if (sweep->replied && !path->wait && period->before->left == STINT_WAITS) {
        sweep->decomposer->core = NO_CORE;
        sweep_add(sweep, COMPONENT_SEND_QUEUE, begin_ns, end_ns);
        return;
    }
    int64_t until;
    const struct detour *detour =
        detour_at(sweep->decomposer->in->server, sweep->thread, begin_ns, &until);
    if (detour)
        detour_name(sweep->decomposer->in->server, detour, sleep, sizeof sleep);
    else
        sleep_name(sweep, period->before, sleep);
    if (path_add_disk_wait(path, period, sleep))
        return;
    if (detour) {
        sweep->decomposer->core = NO_CORE;
        path_add_detour(path, detour, begin_ns, end_ns);
        return;
    }
    const struct waker first = waker_of_sleep(path, period);
    if (first.kind != WAKER_THREAD && loop_has_not_accepted(path, period)) {
        sweep->decomposer->core = NO_CORE;
        sweep_add(sweep, COMPONENT_UNACCEPTED, begin_ns, end_ns);
        return;
    }
    const struct file_lock_try *refused =
        first.kind == WAKER_TIMER ? lock_try_before(sweep->decomposer->in->server, period) : NULL;
    if (refused) {
        add_time_between_tries(path, period, refused);
        return;
    }
    if (first.kind == WAKER_TIMER && path_add_asked_again(path, period))
        return;
    if (first.kind != WAKER_THREAD && add_until_released(path, period))
        return;
    if (first.kind != WAKER_THREAD && path_add_only_peer(path, period, follow_answerer))
        return;
    struct waker waker = lock_waker_at_last(sweep->decomposer, sweep->thread, period,
                                            waker_for_message(path, period), &woken_ns);
    if (path_add_pool_wait(path, period, &first, &waker, woken_ns))
        return;
    if (waker.kind == WAKER_TIMER &&
        vain_wait_giver(sweep->decomposer->in->server, period, &waker, &woken_ns))
        text_append(sleep, sizeof sleep, ", timed out");
    sleep_waker_name(sweep, &waker, period->before, who);
    bool follows = waker.kind == WAKER_THREAD && waker.thread != sweep->thread &&
                   !sleep_is_stop(sleep) && path->hops < MOST_HOPS && path->ahead < MOST_AHEAD &&
                   (sleep_serves_disks(sweep->decomposer->table, who)
                        ? sleep[0] || path->wait
                        : !sleep_is_kernel_thread(sweep->decomposer->table, who));
    if (follows) {
        follow_wakers(path, period, &waker, sleep, woken_ns);
        return;
    }
    if (waker.kind > WAKER_THREAD && waker.span && waker.span->begin_ns < end_ns && !path->wait)
        end_ns = waker.span->begin_ns > begin_ns ? waker.span->begin_ns : begin_ns;
    if (waker.kind == WAKER_UNKNOWN && !sleep[0] && !path->wait && period->next) {
        path_unended(path, period->next->core, begin_ns, end_ns);
        return;
    }
    bool is_put_off = false;
    bool unmeant = waker.kind == WAKER_PACKET || waker.kind == WAKER_TIMER;
    if (sleep_polled_name(sweep->decomposer->in->server, period->before, first.kind, name) ||
        sleep_client_name(sweep, period->before, waker.kind, path->wait != NULL, name))
        ;
    else if (unmeant && loop_waits_for_room(path, period))
        snprintf(name, sizeof name, "waiting for room to send");
    else if (waker.kind == WAKER_PACKET && (is_put_off = loop_puts_off(path, period)))
        snprintf(name, sizeof name, "put off by its event loop");
    else if (waker.kind != WAKER_THREAD && sleep_sends(sweep, period->before))
        sleep_room_name(sleep, waker.kind, name);
    else
        sleep_ended_name(sleep, waker.kind, who, name);
    char after[CAUSE_NAME_BYTES + 2];
    snprintf(after, sizeof after, "%s%s", path->wait ? ", " : "", name);
    sweep->decomposer->core = NO_CORE;
    if (waker.kind == WAKER_THREAD && tracer_stopped(sweep->decomposer->in->server, period->before))
        thread_periods(sweep->decomposer->in->server, waker.thread, begin_ns, end_ns,
                       visit_tracer_period, &(struct tracer_time){path, after});
    else if (waker.kind == WAKER_PACKET && !path->wait && !sweep->replied)
        add_packet_wait(path, period, after, is_put_off, begin_ns, end_ns);
    else if (waker.kind == WAKER_PACKET)
        add_awaited_packet(path, period, after, begin_ns, end_ns);
    else
        path_add_wait(path, after, begin_ns, end_ns);
    sweep->begin_ns = end_ns;
    path_being_woken(path, period->waking ? period->waking->from : NO_CORE, end_ns, period->end_ns);
}

// --- not there yet -------------------------------------------------------------------------------

// Before a thread was made, or was first seen to be woken, whoever did that had the message.
static bool follow_maker(struct path *path, const struct thread_period *period)
{
    const struct sweep *sweep = &path->sweep;
    const struct host_timeline *host = sweep->decomposer->in->server;
    size_t count;
    const struct waking *wakings = host_timeline_wakings(host, sweep->thread, &count);
    bool dead = period->before && period->before->left == STINT_EXITED;
    int64_t since_ns = dead ? period->before->end_ns : INT64_MIN;
    size_t first = array_bound(0, count, at, wakings[at].time_ns < since_ns);
    if ((period->before && !dead) || !period->next || path->hops >= MOST_HOPS || first == count ||
        wakings[first].time_ns < period->end_ns || wakings[first].time_ns > period->next->begin_ns)
        return false;
    struct waker maker = lock_waker(host, &wakings[first]);
    struct path other = {.sweep = {.decomposer = sweep->decomposer,
                                   .life = sweep->life,
                                   .role = ROLE_A,
                                   .thread = maker.thread,
                                   .replied = sweep->replied},
                         .wait = path->wait,
                         .sleep = path->sleep,
                         .outer = path->outer,
                         .helper = !path->wait,
                         .hops = path->hops + 1};
    if (maker.kind != WAKER_THREAD || maker.thread == sweep->thread)
        return false;
    path_follow(&other, period->begin_ns, period->end_ns);
    return true;
}

// --- along a thread ------------------------------------------------------------------------------

// The thread sleeps that woke another one which Go's scheduler had parked. Both are there for any
// goroutine: what this one slept for is what the message waited for.
static void sweep_sleep_of_go(struct path *path, const struct thread_period *period)
{
    struct path own = *path;
    own.wait = NULL;
    own.helper = true;
    path_sleep(&own, period);
    path->sweep = own.sweep;
}

static void visit_period(const struct thread_period *period, void *opaque)
{
    struct path *path = opaque;
    struct sweep *sweep = &path->sweep;
    bool runs = period->state == THREAD_RUNS;
    if (!runs || !path->in_gap)
        sweep->begin_ns = period->begin_ns;
    path->in_gap = !runs;
    sweep->before = period->before;
    const struct thread_stint *near = period->next ? period->next : period->before;
    switch (period->state) {
    case THREAD_RUNS:
        path_running(path, period->next->core, period->begin_ns, period->end_ns);
        break;
    case THREAD_READY:
        path_ready(path, period);
        break;
    case THREAD_THROTTLED:
        sweep->decomposer->core = NO_CORE;
        path_add_throttled(path, period->begin_ns, period->end_ns);
        break;
    case THREAD_SLEEPS:
        if (path->wait && sleep_is_parked(path->sleep))
            sweep_sleep_of_go(path, period);
        else
            path_sleep(path, period);
        break;
    case THREAD_UNKNOWN:
        if (follow_maker(path, period))
            break;
        path_unknown(path, near ? near->core : sweep->life->stamp_core[STAMP_APPLICATION],
                     period->begin_ns, period->end_ns);
        break;
    }
}

void path_follow(struct path *path, int64_t begin_ns, int64_t end_ns)
{
    const struct sweep *sweep = &path->sweep;
    const struct diagnosis_input *in = sweep->decomposer->in;
    while (begin_ns < end_ns) {
        struct peer_turn turn;
        bool found = !sweep->replied &&
                     peer_turn_next(in, sweep->life, sweep->thread, begin_ns, end_ns, &turn);
        int64_t until = found ? turn.begin_ns : end_ns;
        if (until > begin_ns)
            thread_periods(in->server, sweep->thread, begin_ns, until, visit_period, path);
        if (found)
            path_add_peer_turn(path, &turn, follow_answerer);
        begin_ns = found ? turn.end_ns : end_ns;
    }
}

// A worker that is not free because it has no core, or not its runtime's turn, lacks that: more
// workers would have none either.
static bool lacks_turn(const struct host_timeline *host, const struct thread_period *period)
{
    uint32_t pause;
    return period->state == THREAD_READY || period->state == THREAD_THROTTLED ||
           (period->state == THREAD_SLEEPS && pause_after(host, period->before, &pause) &&
            (pause == PAUSE_INTERPRETER || pause == PAUSE_PARKED));
}

// A worker that sleeps in the midst of its work, not for more of that: for a time, a disk, a file.
static bool sleeps_at_work(const struct host_timeline *host, const struct thread_period *period)
{
    uint32_t pause;
    return period->state == THREAD_SLEEPS && pause_after(host, period->before, &pause) &&
           (pause_is_for_time(pause) || !pause_may_await_work(pause));
}

// Nor would they work while this one does something for the kernel's memory, or its runtime's.
static void visit_worker_period(const struct thread_period *period, void *opaque)
{
    struct path *path = opaque;
    struct decomposer *decomposer = path->sweep.decomposer;
    const struct host_timeline *host = decomposer->in->server;
    if (lacks_turn(host, period)) {
        visit_period(period, path);
        return;
    }
    if (sleeps_at_work(host, period) || (path->has_work && period->state == THREAD_SLEEPS)) {
        path->wait = path->sleep = "waiting for a free worker";
        visit_period(period, path);
        path->wait = path->sleep = NULL;
        return;
    }
    decomposer->core = NO_CORE;
    for (int64_t at = period->begin_ns, until; at < period->end_ns; at = until) {
        const struct detour *detour = detour_at(host, path->sweep.thread, at, &until);
        until = until < period->end_ns ? until : period->end_ns;
        if (detour)
            path_add_detour(path, detour, at, until);
        else
            decomposer_add(decomposer, COMPONENT_FREE_WORKER, (double)(until - at));
    }
}

void critical_path_free_worker(struct decomposer *decomposer, const struct lifetime *life,
                               uint32_t thread, int64_t begin_ns, int64_t end_ns, bool has_work)
{
    const struct host_timeline *host = decomposer->in->server;
    struct path path = {
        .sweep = {.decomposer = decomposer, .life = life, .role = ROLE_A, .thread = thread},
        .has_work = has_work};
    while (begin_ns < end_ns) {
        struct peer_turn turn;
        bool found = peer_turn_next(decomposer->in, life, thread, begin_ns, end_ns, &turn);
        int64_t until = found ? turn.begin_ns : end_ns;
        decomposer->core = NO_CORE;
        if (until > begin_ns && host)
            thread_periods(host, thread, begin_ns, until, visit_worker_period, &path);
        else if (until > begin_ns)
            decomposer_add(decomposer, COMPONENT_FREE_WORKER, (double)(until - begin_ns));
        decomposer->core = NO_CORE;
        if (found)
            path_add_waiting_for(&path, turn.wait, "waiting for a free worker, which waits for %s",
                                 turn.begin_ns, turn.end_ns);
        begin_ns = found ? turn.end_ns : end_ns;
    }
}

void critical_path_given(struct decomposer *decomposer, const struct lifetime *life,
                         const struct thread_period *sleep, int64_t begin_ns, int64_t end_ns)
{
    const struct host_timeline *host = decomposer->in->server;
    const struct waker giver = lock_waker(host, sleep->waking);
    struct thread_period before = *sleep;
    struct path path = {.sweep = {.decomposer = decomposer,
                                  .life = life,
                                  .role = ROLE_A,
                                  .thread = sleep->before->thread,
                                  .before = sleep->before}};
    char in_call[CAUSE_NAME_BYTES], who[CAUSE_NAME_BYTES], name[CAUSE_NAME_BYTES];
    before.begin_ns = path.sweep.begin_ns = begin_ns;
    before.end_ns = end_ns;
    sleep_name(&path.sweep, sleep->before, in_call);
    if (giver.kind == WAKER_THREAD) {
        follow_waker(&path, &before, &giver, in_call);
        return;
    }
    sleep_waker_name(&path.sweep, &giver, sleep->before, who);
    sleep_ended_name(in_call, giver.kind, who, name);
    decomposer->core = NO_CORE;
    path_add_wait(&path, name, begin_ns, end_ns);
}

void critical_path_sweep(struct decomposer *decomposer, const struct lifetime *life,
                         uint32_t thread, int64_t begin_ns, int64_t end_ns, bool replied)
{
    struct path path = {.sweep = {.decomposer = decomposer,
                                  .life = life,
                                  .role = ROLE_A,
                                  .thread = thread,
                                  .replied = replied}};
    if (decomposer->in->server)
        path_follow(&path, begin_ns, end_ns);
    else
        sweep_add(&path.sweep, COMPONENT_UNKNOWN_A, begin_ns, end_ns);
}
