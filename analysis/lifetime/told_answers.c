// SPDX-License-Identifier: MIT
#include "analysis/lifetime/told_answers.h"

#include "analysis/lifetime/lifetime.h"

// That a thread woke another one.
struct telling {
    uint32_t teller, told;
    int64_t time_ns;
};
struct telling_array ARRAY_OF(struct telling);

static int by_teller(const void *left, const void *right)
{
    const struct telling *a = left, *b = right;
    return order_of(a->teller, b->teller) ?:
           order_of(a->time_ns, b->time_ns) ?:
           order_of(a->told, b->told);
}

static int find_tellings(const struct peer_questions_input *in, struct telling_array *out)
{
    for (size_t i = 0; i < in->event_count; i++) {
        const struct event *event = &in->events[i];
        const struct telling one = {
            .teller = (uint32_t)event->payload.b,
            .told = event->id,
            .time_ns = time_source_to_host(&in->clock, HOST_CLOCK_MONOTONIC, event->time)};
        size_t told_calls, calls;
        if (event->kind == EVENT_WAKING && one.teller && one.teller != one.told &&
            application_calls_of(in->made, one.teller, &calls) &&
            application_calls_of(in->accepted, one.told, &told_calls) && array_push(out, one) < 0)
            return -1;
    }
    if (out->count)
        array_sort(out, by_teller);
    return 0;
}

// The questions that one call brought the answers to, from the next one on that may be somebody's.
struct answered {
    const struct peer_questions_input *in;
    struct peer_questions *questions;
    size_t first, next, after;
};

// Whether that request has an answer among these already: its thread was woken more than once.
static bool is_told(const struct answered *answered, uint32_t request)
{
    for (size_t i = answered->first; i < answered->next; i++) {
        const struct peer_question *one = &answered->questions->items.items[i];
        if (one->request_count &&
            answered->questions->requests.items[one->first_request].request == request)
            return true;
    }
    return false;
}

// When the thread had received what it replies to by that call. INT64_MAX: not seen.
static int64_t received_ns(const struct application_call *calls, size_t reply)
{
    enum { FURTHEST = 256 };
    for (size_t i = reply; i-- > 0 && reply - i < FURTHEST;)
        if (calls[i].connection == calls[reply].connection)
            return calls[i].kind == CALL_RECEIVE ? calls[i].exit_ns : INT64_MAX;
    return INT64_MAX;
}

// The next answer was for that reply: the first to what was asked after its request had come.
static int add_told(struct answered *answered, const struct application_call *calls, size_t reply)
{
    const struct application_call *made = answered->in->made->items;
    struct peer_question *items = answered->questions->items.items;
    const struct asked_for asked_for = {calls[reply].connection, true, calls[reply].thread};
    const int64_t since_ns = received_ns(calls, reply);
    if (since_ns == INT64_MAX || is_told(answered, asked_for.request))
        return 0;
    while (answered->next < answered->after && made[items[answered->next].sent].exit_ns < since_ns)
        answered->next++;
    if (answered->next == answered->after)
        return 0;
    struct peer_question *question = &items[answered->next++];
    question->first_request = (uint32_t)answered->questions->requests.count;
    question->request_count = 1;
    return array_push(&answered->questions->requests, asked_for);
}

// When a thread makes a call on a connection of its own to others.
static int64_t asks_itself_ns(const struct application_calls *made, uint32_t thread,
                              int64_t since_ns)
{
    size_t count;
    const struct application_call *calls = application_calls_of(made, thread, &count);
    size_t at = calls ? application_calls_after(calls, count, since_ns) : 0;
    return calls && at < count ? calls[at].entry_ns : INT64_MAX;
}

// What a thread that was told something replies next, to one or, an event loop, to several. Not
// what it asks for itself after that: it may have been told that a connection is free.
static int add_replies(struct answered *answered, const struct telling *telling)
{
    size_t count;
    const struct application_call *calls =
        application_calls_of(answered->in->accepted, telling->told, &count);
    size_t at = application_calls_after(calls, count, telling->time_ns);
    const int64_t until_ns = asks_itself_ns(answered->in->made, telling->told, telling->time_ns);
    for (; at < count && calls[at].kind == CALL_SEND && calls[at].entry_ns < until_ns &&
           answered->next < answered->after;
         at++)
        if (add_told(answered, calls, at) < 0)
            return -1;
    return 0;
}

// When the thread of a call takes something again.
static int64_t takes_again_ns(const struct application_calls *made, uint32_t call)
{
    const uint32_t thread = made->items[call].thread;
    for (size_t i = call + 1; i < made->count && made->items[i].thread == thread; i++)
        if (made->items[i].kind == CALL_RECEIVE && made->items[i].length)
            return made->items[i].entry_ns;
    return INT64_MAX;
}

static int add_answered(struct answered *answered, const struct telling_array *tellings)
{
    const uint32_t received = answered->questions->items.items[answered->first].received;
    const struct application_call *call = &answered->in->made->items[received];
    const int64_t until_ns = takes_again_ns(answered->in->made, received);
    const struct telling *items = tellings->items;
    size_t at = array_bound(0, tellings->count, i,
                            items[i].teller < call->thread || (items[i].teller == call->thread &&
                                                               items[i].time_ns < call->entry_ns));
    for (; at < tellings->count && items[at].teller == call->thread &&
           items[at].time_ns < until_ns && answered->next < answered->after;
         at++)
        if (add_replies(answered, &items[at]) < 0)
            return -1;
    return 0;
}

int told_answers_find(const struct peer_questions_input *in, struct peer_questions *questions)
{
    const struct peer_question *items = questions->items.items;
    const size_t count = questions->items.count;
    struct telling_array tellings = {0};
    int result = count && in->events ? find_tellings(in, &tellings) : 0;
    for (size_t first = 0, after; result == 0 && first < count; first = after) {
        bool known = items[first].received == NO_CALL;
        for (after = first; after < count && items[after].received == items[first].received;
             after++)
            known |= items[after].request_count > 0;
        struct answered answered = {in, questions, first, first, after};
        if (!known)
            result = add_answered(&answered, &tellings);
    }
    array_free(&tellings);
    return result;
}
