// SPDX-License-Identifier: MIT
#include "analysis/calls/call_doubts.h"

#include <stdbool.h>
#include <stdlib.h>

#include "analysis/calls/streams.h"
#include "base/array.h"

enum { RECEIVED, SENT, DIRECTIONS };
enum { ENOUGH_AGREE = 8, ENOUGH_SHORT = 8 };
enum { SLACK_NS = 2000 }; // beyond the clocks' error: a call is longer than what its stamps enclose

// Where the shim says that a call took its bytes from, or put them.
struct placed_call {
    int64_t entry_ns, exit_ns;
    uint64_t begin, end;
    uint32_t index; // in the calls
};

struct doubter {
    struct application_calls *calls;
    const struct call_doubts_input *in;
    int64_t slack_ns;
    int64_t last_ns;                 // nothing was recorded of any call after it
    struct piles events[DIRECTIONS]; // by socket: hand-offs, transmits
    struct piles calls_of[DIRECTIONS];
    struct ARRAY_OF(struct placed_call) placed; // of one socket and direction, by entry
    uint64_t *ready;                            // by socket: the furthest offset that arrived
    bool *taken_out;                            // by call
};

// --- by socket -----------------------------------------------------------------------------------

static bool is_of(const struct event *event, int direction)
{
    return event->kind == (direction == RECEIVED ? EVENT_HANDOFF : EVENT_TRANSMIT);
}

static bool tells_arrival(uint8_t kind)
{
    return kind == EVENT_HANDOFF || kind == EVENT_SEGMENT || kind == EVENT_ARRIVAL ||
           kind == EVENT_TAKEN || kind == EVENT_RECEIVED;
}

static int pile_events(struct doubter *doubter, const struct connection_index *sockets,
                       int direction)
{
    const struct call_doubts_input *in = doubter->in;
    size_t count = 0;
    struct passage *passages = malloc((in->event_count + 1) * sizeof *passages);
    if (!passages)
        return -1;
    for (size_t i = 0; i < in->event_count; i++) {
        const struct event *event = &in->events[i];
        bool wanted = is_of(event, direction), arrival = tells_arrival(event->kind);
        uint32_t socket = wanted || (arrival && direction == RECEIVED)
                              ? connection_index_find(sockets, event->id)
                              : NO_CONNECTION;
        if (socket == NO_CONNECTION)
            continue;
        if (arrival && event->payload.a > doubter->ready[socket])
            doubter->ready[socket] = event->payload.a;
        if (wanted)
            passages[count++] = (struct passage){
                .time_ns = time_source_to_host(&in->clock, HOST_CLOCK_MONOTONIC, event->time),
                .end = direction == RECEIVED ? event->payload.b : event->payload.a,
                .record = (uint32_t)i,
                .pile = socket};
    }
    int result = piles_build(&doubter->events[direction], passages, count, in->socket_count);
    free(passages);
    return result;
}

// socket_of: by connection of the calls.
static int pile_calls(struct doubter *doubter, const struct connection_index *connections,
                      const uint32_t *socket_of, int direction)
{
    const struct application_calls *calls = doubter->calls;
    const uint8_t wanted = direction == RECEIVED ? CALL_RECEIVE : CALL_SEND;
    size_t count = 0;
    struct passage *passages = malloc((calls->count + 1) * sizeof *passages);
    if (!passages)
        return -1;
    for (size_t i = 0; i < calls->count; i++) {
        const struct application_call *call = &calls->items[i];
        if (call->exit_ns > doubter->last_ns)
            doubter->last_ns = call->exit_ns;
        uint32_t connection = call->kind == wanted
                                  ? connection_index_find(connections, call->connection)
                                  : NO_CONNECTION;
        if (connection != NO_CONNECTION && socket_of[connection] != NO_CONNECTION)
            passages[count++] = (struct passage){.time_ns = call->entry_ns,
                                                 .end = call->offset + call->length,
                                                 .record = (uint32_t)i,
                                                 .pile = socket_of[connection]};
    }
    int result =
        piles_build(&doubter->calls_of[direction], passages, count, doubter->in->socket_count);
    free(passages);
    return result;
}

// Of each of the calls' connections its socket: they have the cookie in common.
static uint32_t *match_cookies(const struct call_doubts_input *in,
                               const struct connection_index *sockets)
{
    uint32_t *socket_of = malloc((in->connection_count + 1) * sizeof *socket_of);
    for (size_t i = 0; socket_of && i < in->connection_count; i++)
        socket_of[i] = connection_index_of_cookie(sockets, in->connections[i].cookie);
    return socket_of;
}

static int pile_all(struct doubter *doubter)
{
    const struct call_doubts_input *in = doubter->in;
    struct connection_index sockets = {0}, connections = {0};
    uint32_t *socket_of = NULL;
    int result = -1;
    if (connection_index_init(&sockets, in->sockets, in->socket_count) == 0 &&
        connection_index_init(&connections, in->connections, in->connection_count) == 0) {
        socket_of = match_cookies(in, &sockets);
        result = socket_of ? 0 : -1;
    }
    for (int direction = 0; direction < DIRECTIONS && result == 0; direction++) {
        result = pile_calls(doubter, &connections, socket_of, direction);
        if (result == 0)
            result = pile_events(doubter, &sockets, direction);
    }
    free(socket_of);
    connection_index_fini(&sockets);
    connection_index_fini(&connections);
    return result;
}

// --- one socket, one direction -------------------------------------------------------------------

// How far calls had come that had begun by a time, and those that were over by then.
struct reach {
    size_t next_entered, next_exited;
    uint64_t entered, exited;
};

static void reach_go_on(const struct doubter *doubter, struct reach *reach, int64_t time_ns)
{
    const struct placed_call *calls = doubter->placed.items;
    for (; reach->next_entered < doubter->placed.count &&
           calls[reach->next_entered].entry_ns <= time_ns + doubter->slack_ns;
         reach->next_entered++)
        if (calls[reach->next_entered].end > reach->entered)
            reach->entered = calls[reach->next_entered].end;
    for (; reach->next_exited < doubter->placed.count &&
           calls[reach->next_exited].exit_ns <= time_ns - doubter->slack_ns;
         reach->next_exited++)
        if (calls[reach->next_exited].end > reach->exited)
            reach->exited = calls[reach->next_exited].end;
}

// Bytes too many among those sent contradict no single transmit: it only looks late. But the kernel
// sends what it has, so the last transmit before the next call ends where a call ended, or, where
// the send queue does not empty, anywhere. That it is the same number of bytes short of the calls
// time and again, in the middle of one of them, says that so many were never sent.
struct surplus {
    uint64_t bytes;   // the number that was seen most of late
    unsigned votes;   // for it, less those for others
    uint64_t entered; // as of the last transmit
    uint64_t short_of;
    size_t next_end; // the first call that ends behind it
};

// Whether a transmit ends where a call does.
static bool ends_a_call(const struct doubter *doubter, struct surplus *surplus, uint64_t offset)
{
    const struct placed_call *calls = doubter->placed.items;
    while (surplus->next_end < doubter->placed.count && calls[surplus->next_end].end < offset)
        surplus->next_end++;
    return surplus->next_end < doubter->placed.count && calls[surplus->next_end].end == offset;
}

static void surplus_vote(struct surplus *surplus, uint64_t bytes)
{
    if (surplus->votes == 0)
        surplus->bytes = bytes;
    if (surplus->bytes == bytes)
        surplus->votes++;
    else
        surplus->votes--;
}

static int transmit_judge(const struct doubter *doubter, const struct reach *reach,
                          struct surplus *surplus, uint64_t offset)
{
    if (surplus->short_of && reach->entered > surplus->entered)
        surplus_vote(surplus, surplus->short_of);
    surplus->entered = reach->entered;
    surplus->short_of = reach->entered - offset;
    if (ends_a_call(doubter, surplus, offset)) {
        surplus->votes = 0;
        surplus->short_of = 0;
        return 1;
    }
    return surplus->votes >= ENOUGH_SHORT ? -1 : 0;
}

// Whether an event contradicts the calls (-1), agrees with them (1), or says nothing of them.
static int event_judge(const struct doubter *doubter, const struct reach *reach,
                       struct surplus *surplus, int direction, uint64_t offset, uint64_t before)
{
    if (offset > reach->entered)
        return -1;
    if (direction == SENT) // what is sent again says nothing
        return offset > before ? transmit_judge(doubter, reach, surplus, offset) : 0;
    if (offset < reach->exited)
        return -1;
    return offset == reach->entered || offset == reach->exited;
}

// From when on the calls are not believed; INT64_MAX: they are all. Counts that are off by whole
// replies agree by chance where a transmit comes late: a doubt goes only when many events agree.
static int64_t believed_until(const struct doubter *doubter, size_t socket, int direction)
{
    const struct piles *piles = &doubter->events[direction];
    const struct placed_call *first = doubter->placed.items;
    struct reach reach = {.entered = first->begin, .exited = first->begin};
    struct surplus surplus = {.votes = 0};
    int64_t agreed_ns = INT64_MIN;
    uint64_t before = 0;
    unsigned agreeing = 0; // in a row, since the last that did not
    bool doubtful = false;
    for (size_t i = piles->starts[socket]; i < piles->starts[socket + 1]; i++) {
        const struct passage *event = &piles->items[i];
        if (event->time_ns < first->entry_ns || event->time_ns > doubter->last_ns ||
            event->end >> 48)
            continue;
        reach_go_on(doubter, &reach, event->time_ns);
        int judged = event_judge(doubter, &reach, &surplus, direction, event->end, before);
        agreeing = judged < 0 ? 0 : agreeing + (judged > 0);
        doubtful = judged < 0 || (doubtful && agreeing < ENOUGH_AGREE);
        agreed_ns = judged > 0 && !doubtful ? event->time_ns : agreed_ns;
        before = event->end > before ? event->end : before;
    }
    reach_go_on(doubter, &reach, INT64_MAX / 2);
    if (direction == RECEIVED && doubter->ready[socket] && reach.exited > doubter->ready[socket])
        doubtful = true; // more than ever arrived
    return doubtful ? agreed_ns : INT64_MAX;
}

static int socket_judge(struct doubter *doubter, size_t socket, int direction, bool *doubtful)
{
    const struct piles *piles = &doubter->calls_of[direction];
    doubter->placed.count = 0;
    for (size_t i = piles->starts[socket]; i < piles->starts[socket + 1]; i++) {
        const struct passage *passage = &piles->items[i];
        const struct application_call *call = &doubter->calls->items[passage->record];
        struct placed_call placed = {call->entry_ns, call->exit_ns, call->offset, passage->end,
                                     passage->record};
        if (array_push(&doubter->placed, placed) < 0)
            return -1;
    }
    if (doubter->placed.count == 0)
        return 0;
    int64_t until_ns = believed_until(doubter, socket, direction);
    *doubtful |= until_ns != INT64_MAX;
    for (size_t i = 0; i < doubter->placed.count; i++)
        doubter->taken_out[doubter->placed.items[i].index] |=
            doubter->placed.items[i].entry_ns > until_ns;
    return 0;
}

static void take_out(struct doubter *doubter, struct call_doubts *out)
{
    struct application_calls *calls = doubter->calls;
    size_t kept = 0;
    for (size_t i = 0; i < calls->count; i++)
        if (!doubter->taken_out[i])
            calls->items[kept++] = calls->items[i];
    out->calls = calls->count - kept;
    calls->count = kept;
}

int call_doubts_settle(struct application_calls *calls, const struct call_doubts_input *in,
                       struct call_doubts *out)
{
    struct doubter doubter = {.calls = calls,
                              .in = in,
                              .slack_ns = (int64_t)(2 * in->clock.error_ns) + SLACK_NS,
                              .last_ns = INT64_MIN,
                              .ready = calloc(in->socket_count + 1, sizeof *doubter.ready),
                              .taken_out = calloc(calls->count + 1, sizeof *doubter.taken_out)};
    *out = (struct call_doubts){0};
    bool fits = in->event_count < NO_CONNECTION && calls->count < NO_CONNECTION;
    int result = fits && doubter.ready && doubter.taken_out ? pile_all(&doubter) : -1;
    for (size_t socket = 0; socket < in->socket_count && result == 0; socket++) {
        bool doubtful = false;
        for (int direction = 0; direction < DIRECTIONS && result == 0; direction++)
            result = socket_judge(&doubter, socket, direction, &doubtful);
        out->sockets += doubtful;
    }
    if (result == 0)
        take_out(&doubter, out);
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        piles_free(&doubter.events[direction]);
        piles_free(&doubter.calls_of[direction]);
    }
    array_free(&doubter.placed);
    free(doubter.ready);
    free(doubter.taken_out);
    return result;
}
