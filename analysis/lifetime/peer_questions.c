// SPDX-License-Identifier: MIT
#include "analysis/lifetime/peer_questions.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/lifetime/lifetime.h"
#include "analysis/calls/streams.h"

enum { MOST_AT_ONCE = 16 }; // requests that one send asks for

int numbered_call_compare(const void *left, const void *right)
{
    const struct numbered_call *a = left, *b = right;
    return order_of(a->connection, b->connection) ?:
           order_of(a->entry_ns, b->entry_ns) ?:
           order_of(a->call, b->call);
}

int calls_by_connection(const struct application_calls *calls, const struct connection *connections,
                        size_t connection_count, struct numbered_call_array *out)
{
    struct connection_index index;
    int result = connection_index_init(&index, connections, connection_count);
    if (result == 0)
        result = array_reserve(out, calls->count + 1);
    for (size_t i = 0; result == 0 && i < calls->count; i++) {
        uint32_t at = connection_index_find(&index, calls->items[i].connection);
        if (at != NO_CONNECTION)
            out->items[out->count++] =
                (struct numbered_call){at, (uint32_t)i, calls->items[i].entry_ns};
    }
    if (result == 0 && out->count)
        array_sort(out, numbered_call_compare);
    connection_index_fini(&index);
    return result;
}

// The calls on one connection, in order of time.
struct calls_on {
    const struct application_call *calls;
    const struct numbered_call *items;
    size_t count;
};

static const struct application_call *call_at(const struct calls_on *on, size_t at)
{
    return &on->calls[on->items[at].call];
}

static struct calls_on calls_of(const struct application_calls *calls,
                                const struct numbered_call_array *order, uint32_t connection)
{
    size_t count = order->count;
    size_t first = array_bound(0, count, at, order->items[at].connection < connection);
    size_t after = array_bound(first, count, at, order->items[at].connection <= connection);
    return (struct calls_on){calls->items, order->items + first, after - first};
}

static uint64_t end_of(const struct application_call *call)
{
    return call->offset + call->length;
}

// --- what answers what ---------------------------------------------------------------------------

// Whether anything is sent while the answer to what was sent before is not there yet.
static bool overlaps(const struct calls_on *on)
{
    bool waits = false;
    for (size_t i = 0; i < on->count; i++) {
        const uint8_t kind = call_at(on, i)->kind;
        if (kind == CALL_SEND && waits)
            return true;
        waits = kind == CALL_SEND || (waits && kind != CALL_RECEIVE);
    }
    return false;
}

// Whether the thread that asks serves nobody itself: whatever it asks is for other threads.
static bool asks_for_others(const struct peer_questions_input *in, const struct calls_on *on)
{
    size_t count;
    for (size_t i = 0; i < on->count; i++)
        if (call_at(on, i)->kind == CALL_SEND)
            return !application_calls_of(in->accepted, call_at(on, i)->thread, &count);
    return false;
}

// Where an answer stands in the peer's stream: what it sends after a read and before the next.
struct answer {
    size_t at; // the read, in its calls
    bool known, any;
    uint64_t begin, end;
};

// Looks on, from the answer before, for the one to what ends there.
static void next_answer(const struct calls_on *peer, struct answer *answer, uint64_t request_end)
{
    while (answer->at < peer->count && !(call_at(peer, answer->at)->kind == CALL_RECEIVE &&
                                         end_of(call_at(peer, answer->at)) >= request_end)) {
        answer->at++;
        answer->known = false;
    }
    if (answer->known)
        return;
    *answer = (struct answer){.at = answer->at, .known = true};
    for (size_t i = answer->at + 1; i < peer->count; i++) {
        const struct application_call *call = call_at(peer, i);
        if (call->kind == CALL_RECEIVE && answer->any)
            break;
        if (call->kind != CALL_SEND)
            continue;
        if (!answer->any)
            answer->begin = call->offset;
        answer->end = end_of(call);
        answer->any = true;
    }
}

static int add_questions(const struct calls_on *made, const struct calls_on *peer,
                         struct peer_questions *out)
{
    struct answer answer = {0};
    size_t next = 0;
    for (size_t i = 0; i < made->count; i++) {
        const struct application_call *sent = call_at(made, i);
        if (sent->kind != CALL_SEND)
            continue;
        next_answer(peer, &answer, end_of(sent));
        struct peer_question question = {.sent = made->items[i].call,
                                         .received = NO_CALL,
                                         .request_end = end_of(sent),
                                         .reply_begin = answer.begin,
                                         .reply_end = answer.end};
        while (answer.any && next < made->count &&
               !(call_at(made, next)->kind == CALL_RECEIVE &&
                 end_of(call_at(made, next)) >= answer.end))
            next++;
        if (answer.any && next < made->count)
            question.received = made->items[next].call;
        if (array_push(&out->items, question) < 0)
            return -1;
        out->of_call[question.sent] = (uint32_t)out->items.count;
        if (question.received != NO_CALL && !out->of_call[question.received])
            out->of_call[question.received] = (uint32_t)out->items.count;
    }
    return 0;
}

// What was not answered when a connection was closed that had brought answers until then, was asked
// in vain. first: of its questions.
static void close_questions(const struct calls_on *made, size_t first, struct peer_questions *out)
{
    struct peer_question *items = out->items.items;
    size_t last = made->count, tail = out->items.count;
    while (last > 0 && call_at(made, last - 1)->kind != CALL_CLOSE)
        last--;
    while (tail > first && items[tail - 1].received == NO_CALL)
        tail--;
    if (last == 0 || tail == first)
        return;
    const uint32_t close = made->items[last - 1].call;
    for (size_t i = tail; i < out->items.count; i++) {
        if (made->calls[items[i].sent].entry_ns > made->calls[close].entry_ns)
            break;
        items[i].received = close;
        if (i == tail)
            out->of_call[close] = (uint32_t)i + 1;
    }
}

static void first_calls(const struct numbered_call_array *order, size_t count, int64_t *first_ns)
{
    for (size_t i = 0; i < count; i++)
        first_ns[i] = INT64_MAX;
    for (size_t i = order->count; i-- > 0;)
        first_ns[order->items[i].connection] = order->items[i].entry_ns;
}

// The position of each made connection's other end among the accepted ones.
static int match_ends(const struct peer_questions_input *in,
                      const struct numbered_call_array *accepted, uint32_t *other_end)
{
    int64_t *made_ns = malloc((in->made_count + 1) * sizeof *made_ns);
    int64_t *accepted_ns = malloc((in->accepted_count + 1) * sizeof *accepted_ns);
    int result = -1;
    if (made_ns && accepted_ns) {
        first_calls(in->order, in->made_count, made_ns);
        first_calls(accepted, in->accepted_count, accepted_ns);
        result =
            match_connections(in->made_connections, in->made_count, made_ns,
                              in->accepted_connections, in->accepted_count, accepted_ns, other_end);
    }
    free(made_ns);
    free(accepted_ns);
    return result;
}

static int find_answers(const struct peer_questions_input *in, struct peer_questions *out)
{
    struct numbered_call_array accepted = {0};
    uint32_t *other_end = malloc((in->made_count + 1) * sizeof *other_end);
    int result = !other_end ? -1
                            : calls_by_connection(in->accepted, in->accepted_connections,
                                                  in->accepted_count, &accepted);
    if (result == 0)
        result = match_ends(in, &accepted, other_end);
    for (uint32_t i = 0; result == 0 && i < in->made_count; i++) {
        const struct calls_on made = calls_of(in->made, in->order, i);
        if (other_end[i] == NO_CONNECTION || !(overlaps(&made) || asks_for_others(in, &made)))
            continue;
        const struct calls_on peer = calls_of(in->accepted, &accepted, other_end[i]);
        const size_t first = out->items.count;
        result = add_questions(&made, &peer, out);
        if (result == 0)
            close_questions(&made, first, out);
    }
    free(other_end);
    array_free(&accepted);
    return result;
}

// --- for which requests --------------------------------------------------------------------------

// What a thread has to do with: the requests that it has received since it last asked somebody, and
// those whose answer it got, or gave up, until it replies. An event loop may ask one turn later;
// what it has had for that long may as well wait for something else, and what has its answer may
// need no other.
struct at_hand {
    struct asked_for items[MOST_AT_ONCE];
    unsigned count;
    bool asked;    // for all of them: the next one begins anew
    uint32_t last; // the question that was asked last for them, plus 1; 0: none
};

static void at_hand_add(struct at_hand *at_hand, uint32_t request, bool sure)
{
    if (at_hand->asked)
        *at_hand = (struct at_hand){.count = 0};
    unsigned at = 0;
    while (at < at_hand->count && at_hand->items[at].request != request)
        at++;
    if (at == MOST_AT_ONCE)
        return;
    at_hand->items[at] = (struct asked_for){.request = request, .sure = sure};
    at_hand->count += at == at_hand->count;
}

static void at_hand_turn(struct at_hand *at_hand)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < at_hand->count; i++)
        if (at_hand->items[i].sure)
            at_hand->items[kept++] = (struct asked_for){.request = at_hand->items[i].request};
    at_hand->count = kept;
}

static void note_accepted(struct at_hand *at_hand, const struct application_call *call)
{
    if (call->kind == CALL_RECEIVE)
        at_hand_add(at_hand, call->connection, true);
    else if (call->kind == CALL_WAIT)
        at_hand_turn(at_hand);
    for (unsigned i = 0; i < at_hand->count && call->kind == CALL_SEND; i++)
        if (at_hand->items[i].request == call->connection) {
            at_hand->items[i] = at_hand->items[--at_hand->count];
            break;
        }
}

// Whether what is sent next, for the same requests, is answered with what was sent before.
static bool is_answered_with(const struct peer_questions *questions, uint32_t before, uint32_t next)
{
    const struct peer_question *a = &questions->items.items[before];
    const struct peer_question *b = &questions->items.items[next];
    return next == before + 1 && a->received != NO_CALL && a->received == b->received &&
           a->reply_begin == b->reply_begin;
}

static int note_made(struct at_hand *at_hand, uint32_t number, const struct application_call *call,
                     struct peer_questions *out)
{
    const uint32_t first = out->of_call[number];
    if (call->kind == CALL_SEND && first) {
        struct peer_question *question = &out->items.items[first - 1];
        if (at_hand->last && at_hand->count && is_answered_with(out, at_hand->last - 1, first - 1))
            question[-1].goes_on = true;
        at_hand->last = first;
        question->first_request = (uint32_t)out->requests.count;
        question->request_count = at_hand->count;
        for (unsigned i = 0; i < at_hand->count; i++)
            if (array_push(&out->requests, at_hand->items[i]) < 0)
                return -1;
    }
    if (call->kind == CALL_SEND)
        at_hand->asked = true;
    if ((call->kind != CALL_RECEIVE && call->kind != CALL_CLOSE) || !first)
        return 0;
    for (size_t i = first - 1; peer_question_answered(out, i, number); i++) {
        const struct peer_question *question = &out->items.items[i];
        for (uint32_t k = 0; k < question->request_count; k++)
            at_hand_add(at_hand, out->requests.items[question->first_request + k].request, false);
    }
    return 0;
}

static int find_requests(const struct peer_questions_input *in, struct peer_questions *out)
{
    const struct application_call *made = in->made->items;
    const size_t count = in->made->count;
    int result = 0;
    for (size_t i = 0, a = 0; result == 0 && i < count;) {
        const uint32_t thread = made[i].thread;
        struct at_hand at_hand = {.count = 0};
        size_t accepted_count;
        const struct application_call *accepted =
            application_calls_of(in->accepted, thread, &accepted_count);
        for (a = 0; result == 0 && i < count && made[i].thread == thread; i++) {
            for (; a < accepted_count && accepted[a].entry_ns < made[i].entry_ns; a++)
                note_accepted(&at_hand, &accepted[a]);
            result = note_made(&at_hand, (uint32_t)i, &made[i], out);
        }
    }
    return result;
}

// --- of which connections ------------------------------------------------------------------------

static bool same_requests(const struct peer_questions *questions, const struct peer_question *one,
                          const struct peer_question *other)
{
    const struct asked_for *all = questions->requests.items;
    bool same = one->request_count == other->request_count;
    for (uint32_t i = 0; same && i < one->request_count; i++)
        same = all[one->first_request + i].request == all[other->first_request + i].request;
    return same;
}

static void keep_shared(const struct peer_questions_input *in, struct peer_questions *out,
                        const struct calls_on *on)
{
    const struct peer_question *before = NULL;
    const bool at_once = overlaps(on);
    bool shared = false;
    for (size_t i = 0; i < on->count && !shared; i++) {
        const uint32_t number = out->of_call[on->items[i].call];
        if (call_at(on, i)->kind != CALL_SEND || !number)
            continue;
        const struct peer_question *question = &out->items.items[number - 1];
        shared = (question->request_count && out->requests.items[question->first_request].thread) ||
                 (at_once && before && !same_requests(out, before, question) &&
                  (before->received == NO_CALL ||
                   in->made->items[before->received].entry_ns > on->items[i].entry_ns));
        before = question;
    }
    for (size_t i = 0; i < on->count && !shared; i++)
        out->of_call[on->items[i].call] = 0;
}

int peer_questions_find(const struct peer_questions_input *in, struct peer_questions *out)
{
    *out = (struct peer_questions){.of_call = calloc(in->made->count + 1, sizeof *out->of_call)};
    return out->of_call && find_answers(in, out) == 0 && find_requests(in, out) == 0 ? 0 : -1;
}

void peer_questions_keep_shared(const struct peer_questions_input *in, struct peer_questions *out)
{
    for (uint32_t i = 0; out->items.count && i < in->made_count; i++) {
        const struct calls_on on = calls_of(in->made, in->order, i);
        keep_shared(in, out, &on);
    }
}

void peer_questions_free(struct peer_questions *questions)
{
    array_free(&questions->items);
    array_free(&questions->requests);
    free(questions->of_call);
}
