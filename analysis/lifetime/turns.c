// SPDX-License-Identifier: MIT
#include "analysis/lifetime/turns.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/calls/streams.h"
#include "base/hash.h"
#include "base/map.h"

struct call_of_connection {
    uint32_t connection; // position in the table
    uint32_t call;
    int64_t time_ns; // when it received, or began to send
};

// A message of one direction, by its framing.
struct frame {
    uint32_t connection; // position in the table
    uint8_t flags;       // enum framed_flags
    uint32_t number;
    uint64_t begin, end;
};

// Where a segment that came in ended.
struct segment_end {
    uint32_t connection; // position in the table
    uint64_t end;
};

struct frame_array ARRAY_OF(struct frame);
struct segment_array ARRAY_OF(struct segment_end);
struct call_array ARRAY_OF(struct call_of_connection);

// A turn so far: its message, and where what the client asked in it ends.
struct open_turn {
    struct sample message;
    uint64_t asked_end;
};

// A segment shorter than the least that hosts need take (RFC 9293, 3.7.1) ends what its sender
// wrote.
enum { LEAST_SEGMENT = 536 };

struct finder {
    const struct turns_input *in;
    struct frame_array frames;     // by connection, direction and offset
    struct segment_array segments; // by connection and offset
    struct call_array left;        // of one connection: calls that are in no frame
    struct turns *out;
};

static int by_connection(const void *left, const void *right)
{
    const struct call_of_connection *a = left, *b = right;
    return order_of(a->connection, b->connection) ?:
           order_of(a->time_ns, b->time_ns) ?:
           order_of(a->call, b->call);
}

static int by_receipt(const void *left, const void *right)
{
    const struct sample *a = left, *b = right;
    return order_of(a->intended_tsc, b->intended_tsc) ?:
           order_of(a->connection, b->connection) ?:
           order_of(a->request_end, b->request_end);
}

// The first segment of a connection that ends behind an offset.
static size_t segment_behind(const struct segment_array *segments, uint32_t connection,
                             uint64_t offset)
{
    const struct segment_end *all = segments->items;
    return array_bound(0, segments->count, i,
                       all[i].connection < connection ||
                           (all[i].connection == connection && all[i].end <= offset));
}

// Whether the client wrote again before all that it asked in a turn had been answered.
static bool wrote_again(const struct finder *finder, uint32_t connection,
                        const struct open_turn *turn)
{
    const struct segment_array *all = &finder->segments;
    uint64_t begin = turn->message.request_begin;
    for (size_t i = segment_behind(all, connection, begin); i < all->count; i++) {
        const struct segment_end *segment = &all->items[i];
        if (segment->connection != connection || segment->end >= turn->asked_end)
            break;
        if (segment->end > begin && segment->end - begin < LEAST_SEGMENT) // or it came twice
            return true;
        begin = segment->end;
    }
    return false;
}

static int end_turn(struct finder *finder, uint32_t connection, const struct open_turn *turn)
{
    const struct sample *message = &turn->message;
    if (message->reply_end == 0) {
        finder->out->unanswered += message->request_end != 0;
        return 0;
    }
    if (wrote_again(finder, connection, turn) &&
        array_push(&finder->out->piecewise, (int64_t)message->reply_tsc) < 0)
        return -1;
    return array_push(&finder->out->samples, *message);
}

// Where the first of the segments ended that a call returned: it lay unread for the longest. What
// came behind it meanwhile may be further requests, and if it was more of the same, the server had
// not looked yet all the same.
static uint64_t first_segment_end(const struct finder *finder, uint32_t connection,
                                  const struct application_call *call)
{
    const struct segment_array *all = &finder->segments;
    const uint64_t end = call->offset + call->length;
    size_t next = segment_behind(all, connection, call->offset);
    bool is_known = next < all->count && all->items[next].connection == connection;
    return is_known && all->items[next].end < end ? all->items[next].end : end;
}

static void receive(const struct finder *finder, struct open_turn *turn, uint32_t at,
                    const struct application_call *call)
{
    struct sample *message = &turn->message;
    if (message->request_end == 0)
        *message = (struct sample){.connection = finder->in->connections[at].id,
                                   .request_begin = call->offset};
    message->request_end = first_segment_end(finder, at, call);
    message->intended_tsc = message->send_tsc = message->sent_tsc = (uint64_t)call->exit_ns;
    turn->asked_end = call->offset + call->length;
}

static void answer(struct sample *message, const struct application_call *call)
{
    if (message->reply_end == 0)
        message->reply_begin = call->offset;
    message->reply_end = call->offset + call->length;
    message->reply_tsc = (uint64_t)call->exit_ns;
}

// Along the calls of one connection.
static int take_turns(struct finder *finder, const struct call_of_connection *at, size_t count)
{
    const struct connection *connection = &finder->in->connections[at->connection];
    struct open_turn turn = {0};
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        const struct application_call *call = &finder->in->calls->items[at[i].call];
        if (call->kind == CALL_RECEIVE) {
            if (turn.message.reply_end) {
                result = end_turn(finder, at->connection, &turn);
                turn = (struct open_turn){0};
            }
            receive(finder, &turn, at->connection, call);
        } else if (turn.message.request_end) {
            answer(&turn.message, call);
        } else {
            // What is older than the capture may well have been asked before it.
            finder->out->unasked += connection->opened_time != 0;
        }
    }
    return result < 0 ? result : end_turn(finder, at->connection, &turn);
}

// --- by framing ----------------------------------------------------------------------------------

static bool is_reply(const struct frame *frame)
{
    return frame->flags & FRAMED_REPLY;
}

static int by_offset(const void *left, const void *right)
{
    const struct frame *a = left, *b = right;
    return order_of(a->connection, b->connection) ?:
           order_of(is_reply(a), is_reply(b)) ?:
           order_of(a->end, b->end);
}

static int by_end(const void *left, const void *right)
{
    const struct segment_end *a = left, *b = right;
    return order_of(a->connection, b->connection) ?: order_of(a->end, b->end);
}

static int gather_segment(struct finder *finder, const struct connection_index *index,
                          const struct event *event)
{
    const struct segment_end segment = {connection_index_find(index, event->id), event->payload.a};
    return segment.connection == NO_CONNECTION ? 0 : array_push(&finder->segments, segment);
}

static int gather_events(struct finder *finder, const struct connection_index *index)
{
    for (size_t i = 0; i < finder->in->event_count; i++) {
        const struct event *event = &finder->in->events[i];
        if (event->kind == EVENT_SEGMENT && !(event->flags & EVENT_OF_DATAGRAM) &&
            gather_segment(finder, index, event) < 0)
            return -1;
        if (event->kind != EVENT_FRAMED)
            continue;
        const struct frame frame = {.connection = connection_index_find(index, event->id),
                                    .flags = event->flags,
                                    .number = (uint32_t)event->payload.b,
                                    .begin = event->payload.a - (event->payload.b >> 32),
                                    .end = event->payload.a};
        if (frame.connection != NO_CONNECTION && frame.begin < frame.end &&
            array_push(&finder->frames, frame) < 0)
            return -1;
    }
    array_sort(&finder->frames, by_offset);
    array_sort(&finder->segments, by_end);
    return 0;
}

// The calls of one direction of a connection, and the frames of that.
struct direction {
    const struct finder *finder;
    const struct call_of_connection *calls;
    size_t call_count, call; // the next to look at
    enum call_kind kind;
    const struct frame *frames;
    size_t frame_count, frame;
};

// The next call of that direction that ends behind an offset; NULL: there is none.
static const struct application_call *call_behind(struct direction *direction, uint64_t offset)
{
    for (; direction->call < direction->call_count; direction->call++) {
        const struct application_call *call =
            &direction->finder->in->calls->items[direction->calls[direction->call].call];
        if (call->kind == direction->kind && call->offset + call->length > offset)
            return call;
    }
    return NULL;
}

// The call that moved a frame's last byte.
static const struct application_call *call_of_frame(struct direction *direction,
                                                    const struct frame *frame)
{
    const struct application_call *call = call_behind(direction, frame->end - 1);
    return call && call->offset < frame->end ? call : NULL;
}

static int take_message(struct finder *finder, struct direction directions[2],
                        const struct connection *connection)
{
    const struct frame *request = &directions[0].frames[directions[0].frame],
                       *reply = &directions[1].frames[directions[1].frame];
    const struct application_call *received = call_of_frame(&directions[0], request),
                                  *sent = call_of_frame(&directions[1], reply);
    if (!received || !sent)
        return 0; // its calls were not recorded: before the capture, or lost
    if (request->flags & FRAMED_WAITS)
        return array_push(&finder->out->kept_waiting, sent->exit_ns);
    const struct sample sample = {.connection = connection->id,
                                  .request_begin = request->begin,
                                  .request_end = request->end,
                                  .reply_begin = reply->begin,
                                  .reply_end = reply->end,
                                  .intended_tsc = (uint64_t)received->exit_ns,
                                  .send_tsc = (uint64_t)received->exit_ns,
                                  .sent_tsc = (uint64_t)received->exit_ns,
                                  .reply_tsc = (uint64_t)sent->exit_ns};
    return array_push(&finder->out->samples, sample) < 0 ||
                   array_push(&finder->out->framed, sent->exit_ns) < 0
               ? -1
               : 0;
}

// The request and the reply of the same number; numbers ascend with the offset. A request behind
// which another one was answered, but not it, was passed over: where its reply ended was not seen.
// Its frame says nothing then and is taken out; its calls take turns.
static int match_frames(struct finder *finder, struct direction directions[2],
                        const struct connection *connection, struct frame *requests, size_t *kept)
{
    int result = 0;
    while (directions[0].frame < directions[0].frame_count && result == 0) {
        const struct frame request = directions[0].frames[directions[0].frame];
        bool is_passed_over = false;
        while (directions[1].frame < directions[1].frame_count &&
               directions[1].frames[directions[1].frame].number < request.number)
            directions[1].frame++;
        if (request.flags & FRAMED_UNANSWERED)
            ;
        else if (directions[1].frame == directions[1].frame_count)
            finder->out->unanswered += !(request.flags & FRAMED_WAITS);
        else if (directions[1].frames[directions[1].frame].number == request.number)
            result = take_message(finder, directions, connection);
        else
            is_passed_over = true;
        if (!is_passed_over)
            requests[(*kept)++] = request;
        directions[0].frame++;
    }
    return result;
}

// Whether a call moved bytes of a frame; calls are asked for in the order of their offsets.
static bool is_framed(struct direction *direction, const struct application_call *call)
{
    while (direction->frame < direction->frame_count &&
           direction->frames[direction->frame].end <= call->offset)
        direction->frame++;
    return direction->frame < direction->frame_count &&
           direction->frames[direction->frame].begin < call->offset + call->length;
}

// Along the calls of one connection that has frames. What these do not cover takes turns.
static int take_frames(struct finder *finder, const struct call_of_connection *at, size_t count,
                       struct frame *frames, size_t frame_count)
{
    size_t requests = array_bound(0, frame_count, i, !is_reply(&frames[i])), kept = 0;
    const struct direction begun[2] = {
        {finder, at, count, 0, CALL_RECEIVE, frames, requests, 0},
        {finder, at, count, 0, CALL_SEND, frames + requests, frame_count - requests, 0}};
    struct direction directions[2] = {begun[0], begun[1]};
    int result =
        match_frames(finder, directions, &finder->in->connections[at->connection], frames, &kept);
    directions[0] = begun[0];
    directions[0].frame_count = kept;
    directions[1] = begun[1];
    finder->left.count = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        const struct application_call *call = &finder->in->calls->items[at[i].call];
        if (!is_framed(&directions[call->kind == CALL_SEND], call))
            result = array_push(&finder->left, at[i]);
    }
    return result < 0 || finder->left.count == 0
               ? result
               : take_turns(finder, finder->left.items, finder->left.count);
}

// -------------------------------------------------------------------------------------------------

static struct connection seen_by_client(const struct connection *server)
{
    struct connection client = *server;
    memcpy(client.local, server->peer, sizeof client.local);
    memcpy(client.peer, server->local, sizeof client.peer);
    client.local_port = server->peer_port;
    client.peer_port = server->local_port;
    client.outgoing = 1;
    client.process = 0;
    client.opening_100us = 0; // in place of the server's namespace
    return client;
}

static int take_connection(struct finder *finder, const struct call_of_connection *at, size_t count)
{
    struct frame_array *all = &finder->frames;
    size_t first = array_bound(0, all->count, i, all->items[i].connection < at->connection);
    size_t after = array_bound(first, all->count, i, all->items[i].connection == at->connection);
    return after > first ? take_frames(finder, at, count, all->items + first, after - first)
                         : take_turns(finder, at, count);
}

int turns_find(const struct turns_input *in, struct turns *out)
{
    struct call_array order = {0};
    struct connection_index index = {0};
    struct finder finder = {.in = in, .out = out};
    *out = (struct turns){0};
    int result = connection_index_init(&index, in->connections, in->connection_count);
    if (result == 0)
        result = gather_events(&finder, &index);
    for (size_t i = 0; i < in->calls->count && result == 0; i++) {
        const struct application_call *call = &in->calls->items[i];
        bool moves = (call->kind == CALL_RECEIVE || call->kind == CALL_SEND) && call->length;
        uint32_t at = moves ? connection_index_find(&index, call->connection) : NO_CONNECTION;
        int64_t time_ns = call->kind == CALL_RECEIVE ? call->exit_ns : call->entry_ns;
        if (at != NO_CONNECTION && in->connections[at].protocol == CONNECTION_TCP)
            result = array_push(&order, (struct call_of_connection){at, (uint32_t)i, time_ns});
    }
    array_sort(&order, by_connection);
    for (size_t first = 0, after; first < order.count && result == 0; first = after) {
        const struct call_of_connection *at = &order.items[first];
        for (after = first; after < order.count; after++)
            if (order.items[after].connection != at->connection)
                break;
        const struct connection *server = &in->connections[at->connection];
        result = array_push(&out->connections, seen_by_client(server));
        if (result == 0)
            result =
                array_push(&out->places, (uint32_t)server->local_port << 16 | server->namespace);
        if (result == 0)
            result = take_connection(&finder, at, after - first);
    }
    array_sort(&out->samples, by_receipt);
    connection_index_fini(&index);
    array_free(&order);
    array_free(&finder.frames);
    array_free(&finder.segments);
    array_free(&finder.left);
    return result;
}

static bool is_kept(int64_t answered_ns, int64_t after_ns, int64_t until_ns)
{
    return answered_ns > after_ns && answered_ns <= until_ns;
}

// For each connection the first one of the same server.
static int find_servers(const struct turns *turns, uint32_t *servers)
{
    struct map first = {0};
    const uint32_t *places = turns->places.items;
    int result = 0;
    for (size_t i = 0; i < turns->places.count && result == 0; i++) {
        servers[i] = map_find(&first, hash64(places[i]), at, places[at] == places[i]);
        if (servers[i] == MAP_NONE)
            result = map_add(&first, hash64(places[i]), servers[i] = (uint32_t)i);
    }
    map_free(&first);
    return result;
}

static int keep_earlier(struct turns *turns, int64_t after_ns, int64_t until_ns)
{
    const size_t count = turns->connections.count;
    struct connection_index index = {0};
    size_t *answered = calloc(count + 1, sizeof *answered); // by the server's first connection
    uint32_t *servers = malloc((count + 1) * sizeof *servers);
    int result = answered && servers && find_servers(turns, servers) == 0
                     ? connection_index_init(&index, turns->connections.items, count)
                     : -1;
    for (size_t i = 0; i < turns->samples.count && result == 0; i++)
        if (is_kept((int64_t)turns->samples.items[i].reply_tsc, after_ns, until_ns))
            answered[servers[connection_index_find(&index, turns->samples.items[i].connection)]]++;
    for (size_t i = turns->samples.count; i-- > 0 && result == 0;) {
        const struct sample *one = &turns->samples.items[i];
        if ((int64_t)one->reply_tsc <= after_ns &&
            answered[servers[connection_index_find(&index, one->connection)]]++ < TURNS_ENOUGH)
            result = array_push(&turns->earlier, *one);
    }
    array_sort(&turns->earlier, by_receipt);
    connection_index_fini(&index);
    free(answered);
    free(servers);
    return result;
}

static void keep_times(struct turn_times *times, int64_t after_ns, int64_t until_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < times->count; i++)
        if (is_kept(times->items[i], after_ns, until_ns))
            times->items[kept++] = times->items[i];
    times->count = kept;
}

int turns_keep(struct turns *turns, int64_t after_ns, int64_t until_ns)
{
    size_t kept = 0;
    if (keep_earlier(turns, after_ns, until_ns) < 0)
        return -1;
    for (size_t i = 0; i < turns->samples.count; i++)
        if (is_kept((int64_t)turns->samples.items[i].reply_tsc, after_ns, until_ns))
            turns->samples.items[kept++] = turns->samples.items[i];
    turns->samples.count = kept;
    keep_times(&turns->framed, after_ns, until_ns);
    keep_times(&turns->kept_waiting, after_ns, until_ns);
    keep_times(&turns->piecewise, after_ns, until_ns);
    return 0;
}

void turns_free(struct turns *turns)
{
    array_free(&turns->samples);
    array_free(&turns->earlier);
    array_free(&turns->connections);
    array_free(&turns->places);
    array_free(&turns->framed);
    array_free(&turns->kept_waiting);
    array_free(&turns->piecewise);
}

// --- the order of arrival ------------------------------------------------------------------------

static int by_arrival(const void *left, const void *right)
{
    const struct lifetime *a = left, *b = right;
    return order_of(a->stamp_ns[STAMP_INTENDED], b->stamp_ns[STAMP_INTENDED])
               ?: order_of(a->request, b->request);
}

static int by_request(const void *left, const void *right)
{
    const struct holdup *a = left, *b = right;
    return order_of(a->request, b->request) ?: order_of(a->begin_ns, b->begin_ns);
}

int turns_order(struct turns *turns, struct lifetime_array *lives, struct holdup_array *holdups)
{
    size_t count = turns->samples.count;
    struct sample *before = malloc((count + 1) * sizeof *before);
    uint32_t *place = malloc((count + 1) * sizeof *place); // by what was its number
    if (!before || !place || lives->count != count) {
        free(before);
        free(place);
        return -1;
    }
    memcpy(before, turns->samples.items, count * sizeof *before);
    array_sort(lives, by_arrival);
    for (size_t i = 0; i < count; i++) {
        turns->samples.items[i] = before[lives->items[i].request];
        place[lives->items[i].request] = (uint32_t)i;
        lives->items[i].request = i;
    }
    for (size_t i = 0; i < holdups->count; i++)
        holdups->items[i].request = place[holdups->items[i].request];
    array_sort(holdups, by_request);
    free(before);
    free(place);
    return 0;
}
