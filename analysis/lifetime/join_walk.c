// SPDX-License-Identifier: MIT
//
// A request's stamp of a kind is the first passage at or beyond its last byte. Requests of a
// connection are in stream order and so are the passages but for retransmits, so one way along both
// finds all stamps.
#include "analysis/lifetime/joiner.h"

void join_check_segment(struct joiner *joiner, struct lifetime *life, int64_t further_up_ns)
{
    if (!lifetime_has(life, STAMP_NIC) || joiner->segment_ns[life->request] <= further_up_ns)
        return;
    life->present &= (uint16_t) ~(1u << STAMP_NIC);
    joiner->counts->segments_unseen++;
}

static void stamp_by_event(struct joiner *joiner, struct lifetime *life, enum stamp_kind kind,
                           const struct passage *passage)
{
    const struct event *event = &joiner->in->events[passage->record];
    int64_t time = passage->time_ns;
    if (kind == STAMP_NIC) {
        if (event->payload.b)
            time = host_time(joiner, HOST_CLOCK_REALTIME, event->payload.b);
        else
            life->fallback |= 1u << STAMP_NIC;
    }
    if (kind == STAMP_SERVER_TX && (event->flags & TRANSMIT_AGAIN))
        life->fallback |= 1u << STAMP_SERVER_TX;
    set_stamp(joiner, life, kind, time, event->core);
}

static void stamp_by_call(struct joiner *joiner, struct lifetime *life, enum stamp_kind kind,
                          const struct passage *passage)
{
    const struct application_call *call = &joiner->in->calls->items[passage->record];
    if (kind == STAMP_REPLY) {
        set_stamp(joiner, life, kind, call->entry_ns, call->entry_core);
        life->send_call = passage->record;
        return;
    }
    set_stamp(joiner, life, kind, call->exit_ns, call->exit_core);
    life->receive_call = passage->record;
    life->thread = call->thread;
    life->batch = call->batch;
    life->batch_position = call->batch_position;
}

// Where the bytes begin that a record is about; 0 where it does not say. A hand-off says up to
// where the application had read by then, a transmit how many bytes it carries, a call where it
// began.
static uint64_t begin_of(const struct joiner *joiner, const struct passage *passage,
                         enum passage_kind kind)
{
    if (kind == RECEIVES || kind == SENDS)
        return joiner->in->calls->items[passage->record].offset;
    const struct event *event = &joiner->in->events[passage->record];
    if (kind == HANDOFFS)
        return event->payload.b;
    return kind == TRANSMITS && event->payload.b < passage->end ? passage->end - event->payload.b
                                                                : 0;
}

// True when the first record that reaches a request's last byte begins beyond that byte: then the
// request's own record was never written, which is known without looking at the order of stamps.
static bool is_of_later_bytes(struct joiner *joiner, const struct passage *passage,
                              enum passage_kind kind, uint64_t offset)
{
    struct join_counts *counts = joiner->counts;
    if (begin_of(joiner, passage, kind) < offset)
        return false;
    if (kind == HANDOFFS)
        counts->handoffs_unseen++;
    else if (kind == TRANSMITS)
        counts->transmits_unseen++;
    else
        counts->calls_unseen++;
    return true;
}

// The offset of a request's last byte in the direction that a kind of passage lies in.
static uint64_t wanted_offset(const struct sample *sample, enum passage_kind kind)
{
    return kind == TRANSMITS || kind == SENDS ? sample->reply_end : sample->request_end;
}

static void note_time(struct joiner *joiner, const struct lifetime *life, enum passage_kind kind,
                      const struct passage *passage)
{
    if (kind == ARRIVALS)
        joiner->arrival_ns[life->request] = passage->time_ns;
    else
        joiner->processed_ns[life->request] =
            host_time(joiner, HOST_CLOCK_MONOTONIC, joiner->in->events[passage->record].payload.b);
}

static void stamp_pile(struct joiner *joiner, size_t client, uint32_t server,
                       enum passage_kind kind, enum stamp_kind stamp)
{
    const struct piles *requests = &joiner->requests, *piles = &joiner->passages[kind];
    if (server == NO_CONNECTION)
        return;
    size_t at = piles->starts[server], end = piles->starts[server + 1];
    for (size_t r = requests->starts[client]; r < requests->starts[client + 1]; r++) {
        const struct sample *sample = &joiner->in->samples[requests->items[r].record];
        struct lifetime *life = &joiner->lives[requests->items[r].record];
        uint64_t offset = wanted_offset(sample, kind);
        bool replies = kind == TRANSMITS || kind == SENDS;
        if (replies && (sample->reply_end == 0 || !sample_is_answered(sample)))
            continue;
        while (at < end && piles->items[at].end < offset)
            at++;
        if (at == end)
            return;
        if (kind == ARRIVALS || kind == TAKES) {
            note_time(joiner, life, kind, &piles->items[at]);
            continue;
        }
        if (is_of_later_bytes(joiner, &piles->items[at], kind, offset))
            continue;
        if (kind == SEGMENTS)
            joiner->segment_ns[life->request] = piles->items[at].time_ns;
        if (kind == HANDOFFS)
            join_check_segment(joiner, life, piles->items[at].time_ns);
        if (kind == RECEIVES || kind == SENDS)
            stamp_by_call(joiner, life, stamp, &piles->items[at]);
        else
            stamp_by_event(joiner, life, stamp, &piles->items[at]);
    }
}

// Segments that did not get the stream any further, and those without a stamp of their own.
static void count_segments(struct joiner *joiner, uint32_t socket)
{
    const struct piles *segments = &joiner->passages[SEGMENTS];
    uint64_t reached = 0;
    for (size_t i = segments->starts[socket]; i < segments->starts[socket + 1]; i++) {
        const struct passage *segment = &segments->items[i];
        if (segment->end < reached)
            joiner->counts->segments_repeated++;
        else
            reached = segment->end;
        if (joiner->in->events[segment->record].payload.b == 0)
            joiner->counts->segments_without_stamp++;
    }
}

// Requests next to one another in the stream that share both their calls.
static void count_sharing(struct joiner *joiner, size_t client)
{
    const struct piles *requests = &joiner->requests;
    size_t end = requests->starts[client + 1];
    for (size_t first = requests->starts[client]; first < end;) {
        const struct lifetime *head = &joiner->lives[requests->items[first].record];
        size_t after = first + 1;
        for (; after < end; after++) {
            const struct lifetime *life = &joiner->lives[requests->items[after].record];
            if (head->receive_call == NO_CALL || life->receive_call != head->receive_call ||
                life->send_call != head->send_call)
                break;
        }
        for (size_t i = first; i < after; i++)
            joiner->lives[requests->items[i].record].sharing = (uint32_t)(after - first);
        first = after;
    }
}

void join_walk_connection(struct joiner *joiner, size_t client)
{
    if (joiner->requests.starts[client] == joiner->requests.starts[client + 1])
        return;
    uint32_t socket = joiner->socket_of[client], calls = joiner->calls_of[client];
    joiner->counts->connections++;
    joiner->counts->connections_without_socket += socket == NO_CONNECTION;
    joiner->counts->connections_without_calls += calls == NO_CONNECTION;
    stamp_pile(joiner, client, socket, SEGMENTS, STAMP_NIC);
    stamp_pile(joiner, client, socket, HANDOFFS, STAMP_HANDOFF);
    stamp_pile(joiner, client, socket, TRANSMITS, STAMP_SERVER_TX);
    stamp_pile(joiner, client, socket, ARRIVALS, STAMP_NIC);
    stamp_pile(joiner, client, socket, TAKES, STAMP_HANDOFF);
    stamp_pile(joiner, client, calls, RECEIVES, STAMP_APPLICATION);
    stamp_pile(joiner, client, calls, SENDS, STAMP_REPLY);
    if (socket != NO_CONNECTION)
        count_segments(joiner, socket);
    count_sharing(joiner, client);
}
