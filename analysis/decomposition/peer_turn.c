// SPDX-License-Identifier: MIT
#include "analysis/decomposition/peer_turn.h"

#include <stdio.h>
#include <string.h>

#include "analysis/decomposition/loop_workers.h"
#include "analysis/decomposition/sleep_names.h"
#include "analysis/lifetime/peer_pools.h"
#include "analysis/timeline/pauses.h"
#include "analysis/timeline/thread_states.h"
#include "base/array.h"

const char *peer_turn_name(const struct diagnosis_input *in, const struct peer_wait *wait)
{
    return in->peers->items.items[in->peers->connections.items[wait->connection].peer].name;
}

void peer_turn_what(const struct diagnosis_input *in, const struct peer_wait *wait, char *out,
                    size_t bytes)
{
    snprintf(out, bytes, "%s%s%s",
             wait->again      ? "another try at "
             : wait->connects ? "a connection to "
                              : "",
             peer_turn_name(in, wait), wait->in_vain ? ", in vain" : "");
}

const char *peer_turn_category(const struct peer_wait *wait)
{
    if (wait->again)
        return "retries";
    if (wait->connects)
        return "connections to servers";
    return wait->in_vain ? "no answer" : "another host or server";
}

const char *peer_turn_tier(const struct diagnosis_input *in, const struct peer_wait *wait)
{
    if (wait->life == NO_PEER_LIFE)
        return peer_turn_name(in, wait);
    return in->applications->items.items[in->peers->lives.items[wait->life].application].name;
}

// --- who answers ---------------------------------------------------------------------------------

// Whether a thread is of that process, or of a child that does the work for who listens.
static bool works_for(const struct thread_owner *owner, uint32_t process)
{
    return owner && (owner->process == process || owner->parent == process);
}

// Of a process and its children.
static uint32_t find_only_thread(const struct host_timeline *host, uint32_t process)
{
    uint32_t only = 0;
    for (size_t i = 0; i < host->owners.count; i++) {
        const struct thread_owner *owner = &host->owners.items[i];
        if (!works_for(owner, process))
            continue;
        if (only && only != owner->thread)
            return 0;
        only = owner->thread;
    }
    return only;
}

static uint32_t only_thread_of(struct decomposer *decomposer, uint32_t process)
{
    struct only_thread *kept = &decomposer->only[process % ONLY_THREADS];
    if (kept->process != process)
        *kept = (struct only_thread){process, find_only_thread(decomposer->in->server, process)};
    return kept->thread;
}

bool peer_turn_answerer(struct decomposer *decomposer, uint32_t thread,
                        const struct peer_turn *turn, uint32_t *answerer)
{
    const struct peers *peers = decomposer->in->peers;
    const struct host_timeline *host = decomposer->in->server;
    const struct peer_wait *wait = turn->wait;
    const uint32_t process =
        peers->items.items[peers->connections.items[wait->connection].peer].process;
    // A connection is its kernel's to open, and to who gives up nobody answers.
    if (process == 0 || wait->connects || wait->in_vain || wait->again)
        return false;
    size_t count;
    const struct waking *wakings = host_timeline_wakings(host, thread, &count);
    size_t after = array_bound(0, count, at, wakings[at].time_ns <= turn->end_ns);
    if (after > 0 && wakings[after - 1].time_ns > turn->begin_ns &&
        works_for(host_timeline_owner(host, wakings[after - 1].waker), process))
        *answerer = wakings[after - 1].waker;
    else // the answer came while the thread was awake, or to be
        *answerer = only_thread_of(decomposer, process);
    return *answerer && thread_is_known(host, *answerer, turn->begin_ns, turn->end_ns);
}

// --- when it is the peer's turn ------------------------------------------------------------------

struct last_sleep {
    const struct host_timeline *host;
    int64_t end_ns;
    bool loops;
    bool exclusive; // the thread has to do with nobody else
};

// Whether the thread slept until another one told it that something had come: one that waits for
// sockets, and that a packet had woken a moment before.
static bool was_told(const struct host_timeline *host, const struct thread_period *period)
{
    enum { MOMENT_NS = 1000000 };
    uint32_t pause;
    size_t count;
    if (!period->waking || !period->before || !pause_after(host, period->before, &pause) ||
        !pause_awaits_thread(pause))
        return false;
    struct waker teller = waker_of(host, period->waking);
    if (teller.kind != WAKER_THREAD)
        return false;
    const struct waking *wakings = host_timeline_wakings(host, teller.thread, &count);
    size_t after = array_bound(0, count, at, wakings[at].time_ns < period->waking->time_ns);
    return after > 0 && period->waking->time_ns - wakings[after - 1].time_ns < MOMENT_NS &&
           loop_wait_ended(host, &wakings[after - 1]) &&
           waker_of(host, &wakings[after - 1]).kind == WAKER_PACKET;
}

static void note_sleep(const struct thread_period *period, void *opaque)
{
    struct last_sleep *last = opaque;
    if (period->state != THREAD_SLEEPS || !(sleep_awaits_socket(last->host, period->before) ||
                                            (last->exclusive && was_told(last->host, period))))
        return;
    last->end_ns = period->end_ns;
    last->loops &= period->before && period->before->left == STINT_WAITS;
}

// The accepted connection that the message came on; 0: not known.
static uint32_t connection_of(const struct diagnosis_input *in, const struct lifetime *life)
{
    return in->calls && life->receive_call != NO_CALL
               ? in->calls->items[life->receive_call].connection
               : 0;
}

// Whether the message has to do with a wait, and whether that was for it. What a thread asks before
// it has received anything, as one that connects to a database for each client that it serves, is
// for nobody else.
static bool concerns(const struct diagnosis_input *in, const struct lifetime *life,
                     const struct peer_wait *wait, bool *own)
{
    uint32_t connection = connection_of(in, life);
    bool later = wait->begin_ns >= life->stamp_ns[STAMP_APPLICATION];
    bool same = wait->request == connection || wait->request == 0;
    *own = same && (later || wait->unasked);
    return wait->exclusive || (later && connection && wait->request == connection);
}

// Where the peer was captured it is known when it had the request and when its answer left: so it
// is its turn also while the thread, which could do nothing, was ready to run.
static void widen_turn(const struct diagnosis_input *in, struct peer_turn *turn, int64_t begin_ns,
                       int64_t end_ns)
{
    if (turn->wait->life == NO_PEER_LIFE)
        return;
    const struct lifetime *life = &in->peers->lives.items[turn->wait->life];
    int64_t came = life->stamp_ns[STAMP_NIC];
    int64_t left = lifetime_stamp_ns(life, STAMP_SERVER_TX, STAMP_REPLY);
    if (lifetime_has(life, STAMP_NIC) && came < turn->begin_ns)
        turn->begin_ns = came > begin_ns ? came : begin_ns;
    if (left > turn->end_ns)
        turn->end_ns = left < end_ns ? left : end_ns;
}

static void note_asleep(const struct thread_period *period, void *opaque)
{
    int64_t *since_ns = opaque;
    *since_ns = period->state == THREAD_SLEEPS ? period->begin_ns : period->end_ns;
}

// Since when a thread that another one will tell of an answer sleeps until end_ns, if it does:
// until then it had something else to do.
static int64_t sleeps_since_ns(const struct diagnosis_input *in, uint32_t thread, int64_t begin_ns,
                               int64_t end_ns)
{
    int64_t since_ns = end_ns;
    thread_periods(in->server, thread, begin_ns, end_ns, note_asleep, &since_ns);
    return since_ns;
}

bool peer_turn_next(const struct diagnosis_input *in, const struct lifetime *life, uint32_t thread,
                    int64_t begin_ns, int64_t end_ns, struct peer_turn *turn)
{
    size_t at, after;
    if (!in->peers || !in->server)
        return false;
    peers_waits_of(in->peers, thread, begin_ns, end_ns, &at, &after);
    for (; at < after; at++) {
        const struct peer_wait *wait = &in->peers->waits.items[at];
        int64_t from = wait->begin_ns > begin_ns ? wait->begin_ns : begin_ns;
        int64_t to = wait->end_ns < end_ns ? wait->end_ns : end_ns;
        struct last_sleep last = {in->server, from, true, wait->exclusive};
        *turn = (struct peer_turn){.wait = wait};
        if (to <= from || !concerns(in, life, wait, &turn->own))
            continue;
        if (wait->taker)
            from = last.end_ns = sleeps_since_ns(in, thread, from, to);
        if (from == to)
            continue;
        turn->begin_ns = from;
        thread_periods(in->server, wait->taker ? wait->taker : thread, from, to, note_sleep, &last);
        turn->end_ns = last.end_ns;
        turn->loops = last.loops && !wait->taker;
        widen_turn(in, turn, wait->taker ? from : begin_ns, to);
        if (turn->end_ns > from)
            return true;
    }
    return false;
}

static uint32_t peer_of(const struct diagnosis_input *in, const struct peer_wait *wait)
{
    return in->peers->connections.items[wait->connection].peer;
}

const struct peer_wait *peer_turn_only(const struct diagnosis_input *in, uint32_t thread,
                                       int64_t begin_ns, int64_t end_ns)
{
    size_t at, after;
    const struct peer_wait *only = NULL;
    if (!in->peers)
        return NULL;
    peers_waits_of(in->peers, thread, begin_ns, end_ns, &at, &after);
    for (; at < after; at++) {
        const struct peer_wait *wait = &in->peers->waits.items[at];
        if (wait->begin_ns > begin_ns || wait->end_ns < end_ns)
            continue;
        if (only && peer_of(in, only) != peer_of(in, wait))
            return NULL;
        if (!only || only->connects) // of several, one that the peer has
            only = wait;
    }
    return only;
}

// How many bytes a question had. 0: not known.
static uint64_t question_bytes(const struct diagnosis_input *in, const struct peer_wait *wait)
{
    const struct peers *peers = in->peers;
    const struct peer_wait *waits = peers->waits.items;
    const uint32_t *order = peers->by_connection.items;
    size_t count = peers->by_connection.count;
    size_t at = array_bound(0, count, i,
                            waits[order[i]].connection < wait->connection ||
                                (waits[order[i]].connection == wait->connection &&
                                 waits[order[i]].begin_ns < wait->begin_ns));
    const struct peer_wait *before = at > 0 ? &waits[order[at - 1]] : wait;
    if (at == 0 || before->connection != wait->connection)
        return wait->request_end; // its first
    return before->request_end < wait->request_end ? wait->request_end - before->request_end : 0;
}

// Whether a thread slept so long between two moments that it may have waited for something else.
static bool sleeps_between(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                           int64_t end_ns)
{
    enum { MOMENT_NS = 1000000 };
    return begin_ns < end_ns && (double)(end_ns - begin_ns) -
                                        thread_running_ns(host, thread, NO_CORE, begin_ns, end_ns) >
                                    MOMENT_NS;
}

const struct peer_wait *peer_turn_asked_again(const struct diagnosis_input *in,
                                              const struct lifetime *life,
                                              const struct thread_period *period)
{
    const uint32_t thread = period->before->thread;
    const struct peer_wait *last = NULL, *next = NULL;
    size_t at, after;
    if (!in->peers || !lifetime_has(life, STAMP_APPLICATION) || !lifetime_has(life, STAMP_REPLY))
        return NULL;
    peers_waits_of(in->peers, thread, life->stamp_ns[STAMP_APPLICATION],
                   life->stamp_ns[STAMP_REPLY], &at, &after);
    for (; at < after; at++) {
        const struct peer_wait *wait = &in->peers->waits.items[at];
        if (wait->end_ns <= period->begin_ns && wait->begin_ns > life->stamp_ns[STAMP_APPLICATION])
            last = wait;
        else if (wait->begin_ns >= period->end_ns && !next)
            next = wait;
    }
    if (!last || !next || last->connection != next->connection || last->in_vain || next->in_vain ||
        last->connects || next->connects || last->request != next->request ||
        sleeps_between(in->server, thread, last->end_ns, period->begin_ns) ||
        sleeps_between(in->server, thread, period->end_ns, next->begin_ns))
        return NULL;
    const uint64_t bytes = question_bytes(in, last);
    return bytes && bytes == question_bytes(in, next) ? last : NULL;
}

bool peer_turn_asks(const struct diagnosis_input *in, const struct lifetime *life, uint32_t thread,
                    int64_t until_ns)
{
    size_t at, after;
    uint32_t connection = connection_of(in, life);
    if (!in->peers)
        return false;
    peers_waits_of(in->peers, thread, life->stamp_ns[STAMP_APPLICATION], until_ns, &at, &after);
    for (; at < after; at++) {
        uint32_t request = in->peers->waits.items[at].request;
        if (request == 0 || connection == 0 || request == connection)
            return true;
    }
    return false;
}

bool peer_turn_asks_next(const struct diagnosis_input *in, const struct lifetime *life,
                         uint32_t thread, int64_t since_ns, int64_t *at_ns)
{
    size_t at, after;
    uint32_t connection = connection_of(in, life);
    *at_ns = life->stamp_ns[STAMP_REPLY];
    if (!in->peers)
        return true;
    peers_waits_of(in->peers, thread, since_ns, *at_ns, &at, &after);
    for (; at < after; at++) {
        const struct peer_wait *wait = &in->peers->waits.items[at];
        if (wait->begin_ns < since_ns)
            continue;
        bool unknown = wait->request == 0 || connection == 0;
        if (unknown || wait->request == connection) {
            *at_ns = wait->begin_ns;
            return !unknown;
        }
    }
    return true;
}

#define ANY_PEER UINT32_MAX

// Whether the message asks a peer at a time or later.
static bool asks_later(const struct diagnosis_input *in, const struct lifetime *life, uint32_t peer,
                       int64_t begin_ns)
{
    size_t at, after;
    uint32_t connection = connection_of(in, life);
    peers_waits_of(in->peers, life->thread, begin_ns, life->stamp_ns[STAMP_REPLY], &at, &after);
    for (; at < after && connection; at++) {
        const struct peer_wait *one = &in->peers->waits.items[at];
        if (one->begin_ns >= begin_ns && one->request == connection &&
            (peer == ANY_PEER || peer_of(in, one) == peer))
            return true;
    }
    return false;
}

unsigned peer_turn_queue(const struct diagnosis_input *in, const struct lifetime *life,
                         const struct peer_wait *wait, int64_t begin_ns, int64_t end_ns,
                         bool *in_vain)
{
    const struct peer_connection *connection = &in->peers->connections.items[wait->connection];
    int64_t since_ns = life->stamp_ns[STAMP_APPLICATION];
    *in_vain &= connection_of(in, life) && !asks_later(in, life, ANY_PEER, since_ns);
    if (begin_ns < since_ns || (!*in_vain && !asks_later(in, life, connection->peer, begin_ns)))
        return 0;
    if (*in_vain)
        end_ns = life->stamp_ns[STAMP_REPLY];
    return peers_all_taken(in->peers, connection->process, connection->peer, begin_ns, end_ns);
}

unsigned peer_turn_pool(const struct diagnosis_input *in, uint32_t waker, int64_t begin_ns,
                        int64_t end_ns, int64_t woken_ns, const struct peer_wait **wait)
{
    size_t at, after;
    *wait = NULL;
    if (!in->peers)
        return 0;
    peers_waits_of(in->peers, waker, begin_ns, woken_ns, &at, &after);
    for (; at < after; at++) {
        const struct peer_wait *one = &in->peers->waits.items[at];
        if (one->end_ns > begin_ns && one->end_ns <= woken_ns)
            *wait = one;
    }
    if (!*wait)
        return 0;
    const struct peer_connection *connection = &in->peers->connections.items[(*wait)->connection];
    return peers_all_taken(in->peers, connection->process, connection->peer, begin_ns, end_ns);
}

unsigned peer_turn_pool_in_vain(const struct diagnosis_input *in, uint32_t thread, int64_t begin_ns,
                                int64_t end_ns, const struct peer_wait **wait)
{
    const struct thread_owner *owner = host_timeline_owner(in->server, thread);
    return in->peers ? peers_pool_taken(in->peers, owner ? owner->process : thread, begin_ns,
                                        end_ns, wait)
                     : 0;
}

// --- a peer that has the message's core ----------------------------------------------------------

// Whether that task may be a thread of the peer. One that was not captured is known by its name.
static bool is_peer(const struct diagnosis_input *in, const struct peer_wait *wait,
                    const struct span *task)
{
    if (wait->life != NO_PEER_LIFE)
        return in->peers->lives.items[wait->life].thread == task->id;
    if (application_of_thread(in->applications, task->id) != NO_APPLICATION)
        return false;
    const char *name = in->server->names.items[task->name], *peer = peer_turn_name(in, wait);
    size_t length = strcspn(peer, " ");
    return peer[length] && strcspn(name, ":") == length && strncmp(name, peer, length) == 0;
}

// When the peer had the request, as far as that is known.
static void working_time(const struct diagnosis_input *in, const struct peer_wait *wait,
                         int64_t *begin_ns, int64_t *end_ns)
{
    *begin_ns = wait->begin_ns;
    *end_ns = wait->end_ns;
    if (wait->life == NO_PEER_LIFE)
        return;
    const struct lifetime *life = &in->peers->lives.items[wait->life];
    *begin_ns = lifetime_stamp_ns(life, STAMP_HANDOFF, STAMP_APPLICATION);
    *end_ns = lifetime_stamp_ns(life, STAMP_SERVER_TX, STAMP_REPLY);
}

bool peer_turn_works(const struct diagnosis_input *in, const struct lifetime *life,
                     const struct span *task, int64_t begin_ns, int64_t end_ns,
                     struct peer_turn *turn)
{
    enum { MOST_THREADS = 256 };
    *turn = (struct peer_turn){.begin_ns = end_ns, .end_ns = end_ns};
    if (!in->peers || in->peers->waits.count == 0 || !in->applications)
        return false;
    for (size_t i = 0; i < in->applications->threads.count && i < MOST_THREADS; i++) {
        const struct application_member *thread = &in->applications->threads.items[i];
        size_t at, after;
        if (thread->application != life->application)
            continue;
        peers_waits_of(in->peers, thread->member, begin_ns, end_ns, &at, &after);
        for (; at < after; at++) {
            const struct peer_wait *wait = &in->peers->waits.items[at];
            int64_t from, to;
            working_time(in, wait, &from, &to);
            from = from > begin_ns ? from : begin_ns;
            to = to < end_ns ? to : end_ns;
            if (to > from && from < turn->begin_ns && is_peer(in, wait, task))
                *turn = (struct peer_turn){.wait = wait, .begin_ns = from, .end_ns = to};
        }
    }
    if (turn->wait)
        (void)concerns(in, life, turn->wait, &turn->own);
    return turn->wait != NULL;
}
