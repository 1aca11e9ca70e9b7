// SPDX-License-Identifier: MIT
#include "analysis/lifetime/peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/lifetime/peer_questions.h"
#include "analysis/lifetime/told_answers.h"
#include "analysis/calls/streams.h"
#include "analysis/timeline/thread_states.h"
#include "base/connection_text.h"
#include "loadgen/client/sample_log.h"

// The request that a wait is for: where it and its answer end in their streams.
struct asked {
    int64_t sent_ns; // 0: there is none
    uint64_t request_end, reply_begin, reply_end;
    uint32_t connection;
    bool same; // as the wait before this one is for: of another request
};

struct builder {
    const struct peers_input *in;
    struct peers *out;
    struct application_calls calls; // the peers', by thread, then by entry
    struct connection_index index;
    struct peer_questions questions;     // on connections that requests share
    struct ARRAY_OF(struct asked) asked; // by wait, in the order in which they are found
    uint32_t *wait_of_call;              // by call: its wait plus 1; 0: none
};

// --- who they are --------------------------------------------------------------------------------

static void name_peer(const json_t *programs, struct peer *peer)
{
    snprintf(peer->name, sizeof peer->name, "%s", peer->address);
    for (size_t i = 0; i < json_array_size(programs); i++) {
        const json_t *one = json_array_get(programs, i);
        const char *at = json_string_value(json_object_get(one, "address"));
        const char *program = json_string_value(json_object_get(one, "program"));
        json_int_t process = json_integer_value(json_object_get(one, "process"));
        if (!at || !program || !program[0] || strcmp(at, peer->address) != 0)
            continue;
        snprintf(peer->name, sizeof peer->name, "%.15s (%s)", program, peer->address);
        peer->process = process > 0 && process <= INT32_MAX ? (uint32_t)process : 0;
        return;
    }
}

static int64_t find_peer(struct builder *builder, const struct connection *connection)
{
    struct peers *out = builder->out;
    struct peer one = {.process = 0};
    connection_peer_text(connection, one.address);
    for (size_t i = 0; i < out->items.count; i++)
        if (strcmp(out->items.items[i].address, one.address) == 0)
            return (int64_t)i;
    name_peer(builder->in->programs, &one);
    return array_push(&out->items, one) < 0 ? -1 : (int64_t)out->items.count - 1;
}

static int add_connections(struct builder *builder)
{
    for (size_t i = 0; i < builder->in->connection_count; i++) {
        const struct connection *connection = &builder->in->connections[i];
        int64_t peer = find_peer(builder, connection);
        struct peer_connection one = {.peer = (uint32_t)peer,
                                      .process = connection->process,
                                      .open_ns = INT64_MAX,
                                      .close_ns = INT64_MIN};
        if (peer < 0 || array_push(&builder->out->connections, one) < 0)
            return -1;
    }
    return connection_index_init(&builder->index, builder->in->connections,
                                 builder->in->connection_count);
}

// --- whose turn it was on a connection -----------------------------------------------------------

static bool calls_between(const struct application_calls *all, uint32_t thread, int64_t begin_ns,
                          int64_t end_ns, uint32_t but_connection)
{
    size_t count;
    const struct application_call *calls = application_calls_of(all, thread, &count);
    for (size_t i = calls ? application_calls_after(calls, count, begin_ns) : count;
         i < count && calls[i].entry_ns < end_ns; i++)
        if (calls[i].kind != CALL_WAIT && calls[i].connection != but_connection)
            return true;
    return false;
}

static int add_wait(struct builder *builder, const struct numbered_call *at, bool connects,
                    int64_t begin_ns, int64_t end_ns, const struct asked *asked)
{
    const struct application_call *call = &builder->calls.items[at->call];
    struct peer_wait wait = {.begin_ns = begin_ns,
                             .end_ns = end_ns,
                             .thread = call->thread,
                             .connection = at->connection,
                             .life = NO_PEER_LIFE,
                             .request_end = asked->request_end,
                             .connects = connects,
                             .in_vain = call->kind == CALL_CLOSE};
    wait.exclusive =
        !calls_between(builder->in->calls, call->thread, begin_ns, call->entry_ns, 0) &&
        !calls_between(&builder->calls, call->thread, begin_ns, call->entry_ns, call->connection);
    if (end_ns <= begin_ns)
        return 0;
    if (array_push(&builder->out->waits, wait) < 0 || array_push(&builder->asked, *asked) < 0)
        return -1;
    if (!builder->questions.of_call[at->call])
        builder->wait_of_call[at->call] = (uint32_t)builder->out->waits.count;
    return 0;
}

static void note_open(struct peer_connection *connection, const struct application_call *call)
{
    if (call->entry_ns < connection->open_ns)
        connection->open_ns = call->entry_ns;
    if (call->exit_ns > connection->close_ns)
        connection->close_ns = call->exit_ns;
}

// Whether a send goes on with what the one before it, of the same thread, began to ask: nobody else
// has asked it for anything in between, nor anybody answered.
static bool goes_on(const struct builder *builder, const struct numbered_call *before,
                    const struct application_call *call)
{
    const struct application_call *first = &builder->calls.items[before->call];
    return first->kind == CALL_SEND && first->thread == call->thread &&
           !calls_between(builder->in->calls, call->thread, first->exit_ns, call->entry_ns, 0);
}

// Whether a packet ended the last sleep of a thread within [begin_ns, end_ns).
static bool packet_came(const struct builder *builder, uint32_t thread, int64_t begin_ns,
                        int64_t end_ns)
{
    const struct host_timeline *host = builder->in->host;
    size_t count = 0;
    const struct waking *wakings = host ? host_timeline_wakings(host, thread, &count) : NULL;
    size_t after = array_bound(0, count, at, wakings[at].time_ns < end_ns);
    return after > 0 && wakings[after - 1].time_ns >= begin_ns &&
           waker_of(host, &wakings[after - 1]).kind == WAKER_PACKET;
}

// A connection was closed without a question. In vain only where it had not been made.
static int add_unasked(struct builder *builder, const struct numbered_call *close,
                       const struct application_call *connect)
{
    const struct application_call *call = &builder->calls.items[close->call];
    const size_t at = builder->out->waits.count;
    // The call that waits for it returns as it is there. Else that goes on in the background.
    bool made = packet_came(builder, connect->thread, connect->entry_ns, connect->exit_ns);
    bool replied = connect->thread == call->thread &&
                   packet_came(builder, connect->thread, connect->exit_ns, call->entry_ns);
    if (add_wait(builder, close, true, connect->entry_ns, made ? connect->exit_ns : call->entry_ns,
                 &(struct asked){0}) < 0)
        return -1;
    if (builder->out->waits.count == at)
        return 0;
    struct peer_wait *wait = &builder->out->waits.items[at];
    wait->in_vain = !made;
    wait->replied = !made && replied;
    if (made)
        wait->thread = connect->thread;
    return 0;
}

// Along one connection's calls, in order of time. What is closed unanswered was asked in vain, from
// the last that was sent on: of a connection that never gets any answer, as one that takes a log,
// nobody waits for it.
static int walk_connection(struct builder *builder, const struct numbered_call *calls, size_t count)
{
    struct asked asked = {.connection = calls[0].connection};
    int64_t turn_ns = INT64_MIN; // since when it is the peer's turn
    int64_t sent_ns = INT64_MIN; // the latest part of what was asked
    bool fresh = true, connecting = false;
    const struct application_call *connect = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct application_call *call = &builder->calls.items[calls[i].call];
        note_open(&builder->out->connections.items[calls[i].connection], call);
        int result = 0;
        if (call->kind == CALL_CONNECT) {
            turn_ns = call->entry_ns;
            connect = call;
            connecting = true;
        } else if (call->kind == CALL_SEND && fresh) {
            if (connecting)
                result =
                    add_wait(builder, &calls[i], true, turn_ns, call->entry_ns, &(struct asked){0});
            asked.sent_ns = call->entry_ns;
            asked.request_end = call->offset + call->length;
            turn_ns = call->exit_ns;
            fresh = connecting = false;
        } else if (call->kind == CALL_SEND && turn_ns == sent_ns &&
                   goes_on(builder, &calls[i - 1], call)) {
            asked.sent_ns = call->entry_ns;
            asked.request_end = call->offset + call->length;
            turn_ns = call->exit_ns;
        } else if (call->kind == CALL_RECEIVE) {
            asked.reply_begin = call->offset;
            asked.reply_end = call->offset + call->length;
            if (turn_ns != INT64_MIN)
                result = add_wait(builder, &calls[i], false, turn_ns, call->exit_ns, &asked);
            turn_ns = call->exit_ns;
            fresh = true;
            connecting = false;
        } else if (call->kind == CALL_CLOSE && connecting) {
            result = add_unasked(builder, &calls[i], connect);
        } else if (call->kind == CALL_CLOSE && !fresh) {
            result =
                add_wait(builder, &calls[i], false, sent_ns, call->entry_ns, &(struct asked){0});
        }
        if (call->kind == CALL_SEND)
            sent_ns = call->exit_ns;
        if (result < 0)
            return result;
    }
    return 0;
}

// Whether the thread that got an answer replies to a request in the same turn of its event loop, or
// in the next one.
static bool replies_soon(const struct builder *builder, const struct application_call *call,
                         uint32_t request)
{
    size_t count;
    unsigned turns = 0;
    const struct application_call *accepted =
        application_calls_of(builder->in->calls, call->thread, &count);
    size_t i = accepted ? application_calls_after(accepted, count, call->entry_ns) : count;
    for (; i < count && turns < 2; i++) {
        if (accepted[i].kind == CALL_SEND && accepted[i].connection == request)
            return true;
        turns += accepted[i].kind == CALL_WAIT;
    }
    return false;
}

// Whether the thread that asked for a request has replied to it before it gave the answer up.
static bool has_replied(const struct builder *builder, const struct peer_question *question,
                        const struct application_call *close, uint32_t request)
{
    const struct application_call *sent = &builder->calls.items[question->sent];
    size_t count;
    const struct application_call *accepted =
        application_calls_of(builder->in->calls, sent->thread, &count);
    size_t i = accepted ? application_calls_after(accepted, count, sent->entry_ns) : count;
    for (; i < count && accepted[i].entry_ns < close->entry_ns; i++)
        if (accepted[i].kind == CALL_SEND && accepted[i].connection == request)
            return true;
    return false;
}

// For whose requests a question was. Of several for one request the first counts.
static int add_shared_waits(struct builder *builder, const struct numbered_call *at,
                            const struct peer_question *question, size_t first_wait, int64_t end_ns)
{
    const struct application_call *sent = &builder->calls.items[question->sent];
    const struct application_call *call = &builder->calls.items[at->call];
    const bool in_vain = call->kind == CALL_CLOSE;
    struct asked asked = {.sent_ns = in_vain ? 0 : sent->entry_ns,
                          .request_end = question->request_end,
                          .reply_begin = question->reply_begin,
                          .reply_end = question->reply_end,
                          .connection = at->connection};
    enum { NEAR = 32 };
    struct peers *out = builder->out;
    for (uint32_t i = 0; i < question->request_count; i++) {
        const struct asked_for *asked_for =
            &builder->questions.requests.items[question->first_request + i];
        const uint32_t request = asked_for->request;
        const size_t count = out->waits.count;
        size_t before = count > first_wait + NEAR ? count - NEAR : first_wait;
        while (before < count && out->waits.items[before].request != request)
            before++;
        if (before < count || (!asked_for->sure && !replies_soon(builder, call, request)) ||
            (in_vain && has_replied(builder, question, call, request)))
            continue;
        if (add_wait(builder, at, false, sent->exit_ns, end_ns, &asked) < 0)
            return -1;
        if (out->waits.count == count)
            continue;
        struct peer_wait *wait = &out->waits.items[count];
        wait->request = request;
        wait->exclusive = false;
        if (asked_for->thread) {
            wait->taker = wait->thread;
            wait->thread = asked_for->thread;
        }
        asked.same = true;
    }
    return 0;
}

// The same where several requests share the connection.
static int walk_shared(struct builder *builder, const struct numbered_call *calls, size_t count)
{
    const struct peer_questions *questions = &builder->questions;
    int result = 0;
    for (size_t i = 0; result == 0 && i < count; i++) {
        const struct application_call *call = &builder->calls.items[calls[i].call];
        const size_t first_wait = builder->out->waits.count;
        uint32_t question = questions->of_call[calls[i].call];
        note_open(&builder->out->connections.items[calls[i].connection], call);
        const bool closes = call->kind == CALL_CLOSE;
        if (!(closes || call->kind == CALL_RECEIVE) || !question)
            continue;
        for (question--; result == 0 && peer_question_answered(questions, question, calls[i].call);
             question++)
            if (!questions->items.items[question].goes_on)
                result = add_shared_waits(builder, &calls[i], &questions->items.items[question],
                                          first_wait, closes ? call->entry_ns : call->exit_ns);
    }
    return result;
}

static bool is_shared(const struct builder *builder, const struct numbered_call *calls,
                      size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (builder->questions.of_call[calls[i].call])
            return true;
    return false;
}

static int find_waits(struct builder *builder)
{
    struct numbered_call_array order = {0};
    const struct peers_input *in = builder->in;
    const struct question_holds_input holds = {
        .events = in->join.events,
        .event_count = in->join.event_count,
        .clock = in->join.clock,
        .calls = &builder->calls,
        .order = &order,
        .connections = in->connections,
        .connection_count = in->connection_count,
    };
    const struct peer_questions_input input = {
        .accepted = in->calls,
        .made = &builder->calls,
        .order = &order,
        .made_connections = in->connections,
        .accepted_connections = in->join.shim_connections,
        .made_count = in->connection_count,
        .accepted_count = in->join.calls ? in->join.shim_connection_count : 0,
        .events = in->join.events,
        .event_count = in->join.event_count,
        .clock = in->join.clock,
    };
    int result =
        calls_by_connection(&builder->calls, in->connections, in->connection_count, &order);
    if (result == 0)
        result = question_holds_find(&holds, &builder->out->holds);
    if (result == 0)
        result = peer_questions_find(&input, &builder->questions);
    if (result == 0)
        result = told_answers_find(&input, &builder->questions);
    if (result == 0)
        peer_questions_keep_shared(&input, &builder->questions);
    for (size_t first = 0, after; result == 0 && first < order.count; first = after) {
        for (after = first + 1; after < order.count; after++)
            if (order.items[after].connection != order.items[first].connection)
                break;
        const struct numbered_call *calls = order.items + first;
        result = is_shared(builder, calls, after - first)
                     ? walk_shared(builder, calls, after - first)
                     : walk_connection(builder, calls, after - first);
    }
    array_free(&order);
    return result;
}

// --- for whose request ---------------------------------------------------------------------------
// A thread asks for the request that it received last, or for the one whose answer it got, or gave
// up, last, until it replies or waits for events again. What it got before it replies was for that
// reply, if that is the only thing it got. An event loop that got several answers and then sends
// several replies had one for each: what was asked for a reply's connection, as far as that is
// known, else in their order.

struct askers {
    uint32_t *request, *thread; // by connection: the latest request it was used for, and by whom
    uint32_t current;           // the request at hand; 0: not known
    bool received;              // the thread has received any
    uint32_t got[16];           // waits that ended since the thread's latest reply
    unsigned got_count;
};

// One of several answers was for this reply.
static void take_one(struct peers *peers, struct askers *askers, uint32_t connection)
{
    unsigned taken = 0;
    for (unsigned i = askers->got_count; i-- > 0;)
        if (peers->waits.items[askers->got[i]].request == 0)
            taken = i;
    for (unsigned i = askers->got_count; i-- > 0;)
        if (peers->waits.items[askers->got[i]].request == connection)
            taken = i;
    peers->waits.items[askers->got[taken]].request = connection;
    askers->got_count--;
    memmove(&askers->got[taken], &askers->got[taken + 1],
            (askers->got_count - taken) * sizeof askers->got[0]);
}

// more: another reply follows before the thread gets anything else.
static void note_accepted(struct peers *peers, struct askers *askers,
                          const struct application_call *call, bool more)
{
    if (call->kind == CALL_RECEIVE) {
        askers->current = call->connection;
        askers->received = true;
    } else if (call->kind == CALL_WAIT) {
        askers->current = 0;
    } else if (call->kind == CALL_SEND) {
        if (askers->current == call->connection)
            askers->current = 0;
        if (more && askers->got_count > 1) {
            take_one(peers, askers, call->connection);
            return;
        }
        for (unsigned i = 0; i < askers->got_count; i++) {
            struct peer_wait *wait = &peers->waits.items[askers->got[i]];
            if (wait->request == 0 || askers->got_count == 1)
                wait->request = call->connection;
        }
        askers->got_count = 0;
    }
}

// Whether the thread sends another reply, on another connection, right after this one: before
// `until_ns`, when it gets another answer.
static bool replies_again(const struct application_call *calls, size_t count, size_t at,
                          int64_t until_ns)
{
    return at + 1 < count && calls[at].kind == CALL_SEND && calls[at + 1].kind == CALL_SEND &&
           calls[at + 1].connection != calls[at].connection && calls[at + 1].entry_ns < until_ns;
}

// When the thread of a call gets an answer, from that call on.
static int64_t next_answer_ns(const struct application_calls *made, size_t at)
{
    const uint32_t thread = made->items[at].thread;
    for (; at < made->count && made->items[at].thread == thread; at++)
        if (made->items[at].kind == CALL_RECEIVE)
            return made->items[at].entry_ns;
    return INT64_MAX;
}

static uint32_t latest_request(const struct peer_questions *questions, uint32_t question)
{
    const struct peer_question *one = &questions->items.items[question];
    return one->request_count
               ? questions->requests.items[one->first_request + one->request_count - 1].request
               : 0;
}

static void note_made(struct builder *builder, struct askers *askers, uint32_t number)
{
    const struct application_call *call = &builder->calls.items[number];
    uint32_t at = connection_index_find(&builder->index, call->connection);
    uint32_t wait = builder->wait_of_call[number];
    if (at == NO_CONNECTION)
        return;
    if (askers->thread[at] != call->thread) {
        askers->thread[at] = call->thread;
        askers->request[at] = 0;
    }
    if ((call->kind == CALL_CONNECT || call->kind == CALL_SEND) && askers->current)
        askers->request[at] = askers->current;
    if (wait) {
        builder->out->waits.items[wait - 1].request = askers->request[at];
        builder->out->waits.items[wait - 1].unasked = !askers->received;
    }
    const uint32_t question = builder->questions.of_call[number];
    if ((call->kind == CALL_RECEIVE || call->kind == CALL_CLOSE) && question)
        askers->current = latest_request(&builder->questions, question - 1);
    else if (call->kind == CALL_RECEIVE || (call->kind == CALL_CLOSE && wait))
        askers->current = askers->request[at];
    if (call->kind == CALL_RECEIVE && wait &&
        askers->got_count < sizeof askers->got / sizeof *askers->got)
        askers->got[askers->got_count++] = wait - 1;
}

static int find_requests(struct builder *builder)
{
    size_t connections = builder->in->connection_count + 1, count = builder->calls.count;
    struct askers askers = {.request = calloc(connections, sizeof *askers.request),
                            .thread = calloc(connections, sizeof *askers.thread)};
    int result = askers.request && askers.thread ? 0 : -1;
    for (size_t first = 0, after; result == 0 && first < count; first = after) {
        const struct application_call *made = builder->calls.items, *accepted;
        size_t accepted_count, a = 0;
        accepted = application_calls_of(builder->in->calls, made[first].thread, &accepted_count);
        askers.current = askers.got_count = 0;
        askers.received = false;
        for (after = first; after < count && made[after].thread == made[first].thread; after++) {
            for (; a < accepted_count && accepted[a].entry_ns < made[after].entry_ns; a++)
                note_accepted(builder->out, &askers, &accepted[a],
                              askers.got_count > 1 &&
                                  replies_again(accepted, accepted_count, a,
                                                next_answer_ns(&builder->calls, after)));
            note_made(builder, &askers, (uint32_t)after);
        }
        for (; a < accepted_count && askers.got_count; a++)
            note_accepted(builder->out, &askers, &accepted[a],
                          replies_again(accepted, accepted_count, a, INT64_MAX));
    }
    free(askers.request);
    free(askers.thread);
    return result;
}

// --- asked again ---------------------------------------------------------------------------------

struct numbered_wait {
    uint32_t thread, request, wait;
    int64_t begin_ns;
};

static int by_request(const void *left, const void *right)
{
    const struct numbered_wait *a = left, *b = right;
    return order_of(a->thread, b->thread) ?:
           order_of(a->request, b->request) ?:
           order_of(a->begin_ns, b->begin_ns) ?:
           order_of(a->wait, b->wait);
}

static int add_retry(struct builder *builder, uint32_t given_up, uint32_t next)
{
    const struct peers *peers = builder->out;
    const struct peer_wait *from = &peers->waits.items[given_up], *to = &peers->waits.items[next];
    struct peer_wait wait = {.begin_ns = from->end_ns,
                             .end_ns = to->begin_ns,
                             .thread = to->thread,
                             .connection = to->connection,
                             .request = to->request,
                             .life = NO_PEER_LIFE,
                             .again = true};
    if (!from->in_vain || to->request == 0 || from->request != to->request ||
        from->thread != to->thread || wait.end_ns <= wait.begin_ns ||
        peers->connections.items[from->connection].peer !=
            peers->connections.items[to->connection].peer)
        return 0;
    builder->out->waits.items[given_up].replied = false; // with a refusal
    return array_push(&builder->out->waits, wait) ?: array_push(&builder->asked, (struct asked){0});
}

// A thread that asked in vain, and later asks the same peer for the same request, waits meanwhile.
static int find_retries(struct builder *builder)
{
    struct ARRAY_OF(struct numbered_wait) order = {0};
    const size_t count = builder->out->waits.count;
    int result = array_reserve(&order, count + 1);
    for (size_t i = 0; result == 0 && i < count; i++) {
        const struct peer_wait *wait = &builder->out->waits.items[i];
        order.items[order.count++] =
            (struct numbered_wait){wait->thread, wait->request, (uint32_t)i, wait->begin_ns};
    }
    if (result == 0 && count)
        array_sort(&order, by_request);
    for (size_t i = 1; result == 0 && i < count; i++)
        result = add_retry(builder, order.items[i - 1].wait, order.items[i].wait);
    for (size_t i = 0; result == 0 && i < count; i++)
        if (builder->out->waits.items[i].replied)
            builder->out->waits.items[i].in_vain = false;
    array_free(&order);
    return result;
}

// --- what became of them at the peer -------------------------------------------------------------

static bool any_captured(const struct builder *builder)
{
    const struct join_input *join = &builder->in->join;
    for (size_t i = 0; i < builder->in->connection_count; i++)
        for (size_t k = 0; k < join->shim_connection_count; k++)
            if (connection_mirrors(&builder->in->connections[i], &join->shim_connections[k]))
                return true;
    return false;
}

static struct sample sample_of(const struct builder *builder, size_t wait)
{
    const struct asked *asked = &builder->asked.items[wait];
    uint64_t end = (uint64_t)builder->out->waits.items[wait].end_ns;
    return (struct sample){.intended_tsc = (uint64_t)asked->sent_ns,
                           .send_tsc = (uint64_t)asked->sent_ns,
                           .sent_tsc = (uint64_t)asked->sent_ns,
                           .reply_tsc = end,
                           .request_end = asked->request_end,
                           .reply_begin = asked->reply_begin,
                           .reply_end = asked->reply_end,
                           .connection = builder->in->connections[asked->connection].id};
}

static int join_lives(struct builder *builder, struct error *err)
{
    struct peers *out = builder->out;
    struct join_counts counts;
    struct join_input join = builder->in->join;
    struct sample *samples = NULL;
    size_t count = 0;
    if (!join.calls || !any_captured(builder))
        return 0;
    samples = malloc((out->waits.count + 1) * sizeof *samples);
    if (!samples)
        return error_set(err, ERROR_FAILED, "no memory for what servers asked of one another");
    for (size_t i = 0; i < out->waits.count; i++) {
        if (builder->asked.items[i].sent_ns == 0)
            continue;
        if (!builder->asked.items[i].same)
            samples[count++] = sample_of(builder, i);
        out->waits.items[i].life = (uint32_t)count - 1;
    }
    join.samples = samples;
    join.sample_clock = HOST_CLOCK_RAW;
    join.sample_count = count;
    join.client_connections = builder->in->connections;
    join.client_connection_count = builder->in->connection_count;
    join.client_clock = NULL;
    join.without_client = false;
    int result = join_lifetimes(&join, &out->lives, &out->holdups, &counts, err);
    free(samples);
    for (size_t i = 0; result == 0 && i < out->lives.count; i++) {
        struct lifetime *life = &out->lives.items[i];
        life->application = application_of_thread(builder->in->applications, life->thread);
    }
    return result;
}

// Forgets those that were not seen where it counts: in the peer's threads.
static void keep_known_lives(struct peers *peers)
{
    for (size_t i = 0; i < peers->waits.count; i++) {
        struct peer_wait *wait = &peers->waits.items[i];
        const struct lifetime *life =
            wait->life < peers->lives.count ? &peers->lives.items[wait->life] : NULL;
        if (!life || life->thread == 0 || life->application == NO_APPLICATION ||
            !lifetime_has(life, STAMP_APPLICATION) || !lifetime_has(life, STAMP_REPLY))
            wait->life = NO_PEER_LIFE;
    }
}

// --- together ------------------------------------------------------------------------------------

static int by_thread(const void *left, const void *right)
{
    const struct peer_wait *a = left, *b = right;
    return order_of(a->thread, b->thread) ?:
           order_of(a->begin_ns, b->begin_ns) ?:
           order_of(a->end_ns, b->end_ns);
}

static int order_waits(struct peers *peers)
{
    if (peers->waits.count == 0)
        return 0;
    array_sort(&peers->waits, by_thread);
    struct numbered_call_array order = {0};
    int result = array_reserve(&order, peers->waits.count);
    if (result == 0)
        result = array_reserve(&peers->by_connection, peers->waits.count);
    for (size_t i = 0; result == 0 && i < peers->waits.count; i++) {
        struct peer_wait *wait = &peers->waits.items[i];
        bool follows = i > 0 && wait[-1].thread == wait->thread;
        wait->latest_end_ns = follows && wait[-1].latest_end_ns > wait->end_ns
                                  ? wait[-1].latest_end_ns
                                  : wait->end_ns;
        order.items[order.count++] =
            (struct numbered_call){wait->connection, (uint32_t)i, wait->begin_ns};
    }
    if (result == 0)
        array_sort(&order, numbered_call_compare);
    for (size_t i = 0; result == 0 && i < order.count; i++)
        peers->by_connection.items[peers->by_connection.count++] = order.items[i].call;
    array_free(&order);
    return result;
}

int peers_build(const struct peers_input *input, struct peers *out, struct error *err)
{
    struct builder builder = {.in = input, .out = out};
    uint64_t damaged;
    *out = (struct peers){0};
    if (input->connection_count == 0 || input->peer_call_count == 0)
        return 0;
    int result = application_calls_build(input->peer_calls, input->peer_call_count,
                                         &input->join.clock, &builder.calls, &damaged, err);
    builder.wait_of_call = calloc(builder.calls.count + 1, sizeof *builder.wait_of_call);
    if (result == 0 &&
        (!builder.wait_of_call || add_connections(&builder) < 0 || find_waits(&builder) < 0 ||
         find_requests(&builder) < 0 || find_retries(&builder) < 0))
        result = error_set(err, ERROR_FAILED, "no memory for what servers asked of one another");
    if (result == 0)
        result = join_lives(&builder, err);
    if (result == 0) {
        keep_known_lives(out);
        if (order_waits(out) < 0)
            result =
                error_set(err, ERROR_FAILED, "no memory for what servers asked of one another");
    }
    array_free(&builder.calls);
    array_free(&builder.asked);
    peer_questions_free(&builder.questions);
    connection_index_fini(&builder.index);
    free(builder.wait_of_call);
    return result;
}

void peers_free(struct peers *peers)
{
    array_free(&peers->items);
    array_free(&peers->connections);
    array_free(&peers->waits);
    array_free(&peers->by_connection);
    array_free(&peers->lives);
    array_free(&peers->holdups);
    array_free(&peers->holds);
}

void peers_waits_of(const struct peers *peers, uint32_t thread, int64_t begin_ns, int64_t end_ns,
                    size_t *first, size_t *after)
{
    const struct peer_wait *waits = peers->waits.items;
    size_t count = peers->waits.count;
    *after = array_bound(0, count, at,
                         waits[at].thread < thread ||
                             (waits[at].thread == thread && waits[at].begin_ns < end_ns));
    *first = *after;
    while (*first > 0 && waits[*first - 1].thread == thread &&
           waits[*first - 1].latest_end_ns > begin_ns)
        --*first;
}
