// SPDX-License-Identifier: MIT
#include "analysis/lifetime/answer_times.h"

#include "base/hash.h"

enum {
    UNREAD = 16,      // segments of a connection, at most; later ones count as received on arrival
    REMEMBERED = 4096 // connections that nothing is asked on
};

struct unread_segment {
    uint64_t end; // stream offset
    int64_t arrived_ns;
};

struct conversation {
    uint32_t id;
    bool asked, answered;
    bool left;   // the answer's last byte was seen to leave
    bool silent; // nothing came in the latest records
    int64_t arrived_ns;
    uint64_t answer_end, answer_time;
    uint64_t left_end, left_time; // the latest departure
    unsigned unread_count;
    struct unread_segment unread[UNREAD];
};

static bool concerns_answers(const struct event *event)
{
    const uint64_t kinds = UINT64_C(1) << EVENT_SEGMENT | UINT64_C(1) << EVENT_ARRIVAL |
                           UINT64_C(1) << EVENT_TRANSMIT | UINT64_C(1) << EVENT_RECEIVED |
                           UINT64_C(1) << EVENT_SENT;
    return event->kind < 64 && (kinds >> event->kind & 1) && !(event->flags & EVENT_OF_DATAGRAM);
}

static int by_time(const void *left, const void *right)
{
    const struct event *a = *(const struct event *const *)left,
                       *b = *(const struct event *const *)right;
    return order_of(a->time, b->time);
}

static int64_t host_time(const struct time_source *clock, uint64_t time)
{
    return time_source_to_host(clock, HOST_CLOCK_MONOTONIC, time);
}

// NULL: no memory.
static struct conversation *conversation_of(struct answer_times *times, uint32_t id)
{
    const uint64_t hash = hash64(id);
    uint32_t found = map_find(&times->by_id, hash, at, times->conversations.items[at].id == id);
    if (found == MAP_NONE) {
        found = (uint32_t)times->conversations.count;
        if (array_push(&times->conversations, (struct conversation){.id = id}) < 0)
            return NULL;
        if (map_add(&times->by_id, hash, found) < 0) {
            times->conversations.count--;
            return NULL;
        }
    }
    return &times->conversations.items[found];
}

// A segment that its link has told of before it came to TCP arrived then.
static void arrive(struct conversation *one, uint64_t end, int64_t arrived_ns)
{
    const bool is_new = !one->unread_count || one->unread[one->unread_count - 1].end < end;
    if (is_new && one->unread_count < UNREAD)
        one->unread[one->unread_count++] = (struct unread_segment){end, arrived_ns};
}

// When the first of the segments arrived that a call took bytes of (turns.c: it lay unread for the
// longest).
static void receive(struct conversation *one, const struct event *event,
                    const struct time_source *clock)
{
    const uint64_t end = event->payload.a, begin = end - (event->payload.b >> 32);
    unsigned first = 0, left = 0;
    while (first < one->unread_count && one->unread[first].end <= begin)
        first++;
    one->asked = true;
    one->arrived_ns =
        first < one->unread_count ? one->unread[first].arrived_ns : host_time(clock, event->time);
    for (unsigned i = first; i < one->unread_count; i++)
        if (one->unread[i].end > end)
            one->unread[left++] = one->unread[i];
    one->unread_count = left;
}

static int end_turn(struct conversation *one, const struct time_source *clock,
                    struct answer_array *out)
{
    const bool answered = one->asked && one->answered;
    const struct answer answer = {one->arrived_ns, host_time(clock, one->answer_time),
                                  one->answer_time};
    if (answered)
        one->asked = one->answered = one->left = false;
    return answered ? array_push(out, answer) : 0;
}

static void answer(struct conversation *one, const struct event *event)
{
    if (!one->asked)
        return;
    one->answered = true;
    one->answer_end = event->payload.a;
    one->left = one->left_end >= one->answer_end;
    one->answer_time = one->left ? one->left_time : event->time;
}

static void leave(struct conversation *one, const struct event *event)
{
    if (event->flags & TRANSMIT_AGAIN)
        return;
    one->left_end = event->payload.a;
    one->left_time = event->time;
    if (one->answered && !one->left && one->left_end >= one->answer_end) {
        one->left = true;
        one->answer_time = event->time;
    }
}

static int take(struct answer_times *times, const struct event *event,
                const struct time_source *clock, struct answer_array *out)
{
    struct conversation *one = conversation_of(times, event->id);
    int result = 0;
    if (!one)
        return -1;
    one->silent = false;
    switch (event->kind) {
    case EVENT_ARRIVAL:
        arrive(one, event->payload.a, host_time(clock, event->time));
        break;
    case EVENT_SEGMENT:
        arrive(one, event->payload.a,
               event->payload.b ? time_source_to_host(clock, HOST_CLOCK_REALTIME, event->payload.b)
                                : host_time(clock, event->time));
        break;
    case EVENT_RECEIVED:
        result = end_turn(one, clock, out);
        receive(one, event, clock);
        break;
    case EVENT_SENT:
        answer(one, event);
        break;
    default:
        leave(one, event);
    }
    return result;
}

// What is answered is told, though more of the answer may come in the next records. Of many
// connections those are forgotten on which nothing is asked and nothing came.
static int end_records(struct answer_times *times, const struct time_source *clock,
                       struct answer_array *out)
{
    const bool many = times->conversations.count > REMEMBERED;
    size_t kept = 0;
    for (size_t i = 0; i < times->conversations.count; i++) {
        struct conversation *one = &times->conversations.items[i];
        if (end_turn(one, clock, out) < 0)
            return -1;
        const bool forgotten = many && one->silent && !one->asked && !one->unread_count;
        one->silent = true;
        if (!forgotten)
            times->conversations.items[kept++] = *one;
    }
    if (kept == times->conversations.count)
        return 0;
    times->conversations.count = kept;
    map_free(&times->by_id);
    times->by_id = (struct map){0};
    for (size_t i = 0; i < kept; i++)
        if (map_add(&times->by_id, hash64(times->conversations.items[i].id), (uint32_t)i) < 0)
            return -1;
    return 0;
}

static int by_answer(const void *left, const void *right)
{
    const struct answer *a = left, *b = right;
    return order_of(a->answered_ns, b->answered_ns);
}

int answer_times_add(struct answer_times *times, const struct event *events, size_t count,
                     const struct time_source *clock, struct answer_array *out)
{
    int result = 0;
    times->records.count = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        times->framed |= events[i].kind == EVENT_FRAMED;
        if (concerns_answers(&events[i]))
            result = array_push(&times->records, &events[i]);
    }
    array_sort(&times->records, by_time);
    for (size_t i = 0; i < times->records.count && result == 0; i++)
        result = take(times, times->records.items[i], clock, out);
    if (result == 0)
        result = end_records(times, clock, out);
    array_sort(out, by_answer);
    return result;
}

void answer_times_free(struct answer_times *times)
{
    array_free(&times->conversations);
    map_free(&times->by_id);
    array_free(&times->records);
    *times = (struct answer_times){0};
}
