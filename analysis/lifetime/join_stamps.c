// SPDX-License-Identifier: MIT
#include "analysis/lifetime/join_stamps.h"

#include "analysis/lifetime/datagram_losses.h"
#include "analysis/lifetime/joiner.h"

// --- the stamps of a connection's requests -------------------------------------------------------
// A request's stamp of a kind is the first passage at or beyond its last byte. Requests of a
// connection are in stream order, its replies in theirs, and so are the passages but for
// retransmits, so one way along both finds all stamps.

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
static bool is_of_later_bytes(struct joiner *joiner, const struct lifetime *life,
                              const struct passage *passage, enum passage_kind kind,
                              uint64_t offset)
{
    struct join_counts *counts = joiner->counts;
    if (begin_of(joiner, passage, kind) < offset)
        return false;
    if ((kind == HANDOFFS || kind == TRANSMITS) &&
        spared_at(&joiner->spared, life->stamp_ns[STAMP_SEND]))
        return true; // nobody wanted it
    if (kind == HANDOFFS)
        counts->handoffs_unseen++;
    else if (kind == TRANSMITS)
        counts->transmits_unseen++;
    else
        counts->calls_unseen++;
    return true;
}

static void note_time(struct joiner *joiner, const struct lifetime *life, enum passage_kind kind,
                      const struct passage *passage)
{
    const struct event *event = &joiner->in->events[passage->record];
    if (kind == ARRIVALS)
        joiner->arrival_ns[life->request] = passage->time_ns;
    else if (kind == NIC_STAMPS)
        joiner->stamped_ns[life->request] =
            event->flags & STAMPED_MERGED
                ? NO_TIME
                : host_time(joiner, HOST_CLOCK_REALTIME, event->payload.b);
    else
        joiner->processed_ns[life->request] =
            host_time(joiner, HOST_CLOCK_MONOTONIC, event->payload.b);
}

static void stamp_by_passage(struct joiner *joiner, struct lifetime *life, enum passage_kind kind,
                             enum stamp_kind stamp, const struct passage *passage)
{
    if (kind == ARRIVALS || kind == NIC_STAMPS || kind == TAKES) {
        note_time(joiner, life, kind, passage);
        return;
    }
    if (kind == SEGMENTS)
        joiner->segment_ns[life->request] = passage->time_ns;
    if (kind == HANDOFFS) {
        join_check_segment(joiner, life, passage->time_ns);
        life->unaccepted = (joiner->in->events[passage->record].flags & HANDOFF_UNACCEPTED) != 0;
    }
    if (kind == RECEIVES || kind == SENDS)
        stamp_by_call(joiner, life, stamp, passage);
    else
        stamp_by_event(joiner, life, stamp, passage);
}

static void stamp_pile(struct joiner *joiner, size_t client, uint32_t server,
                       enum passage_kind kind, enum stamp_kind stamp)
{
    const bool of_replies = kind == TRANSMITS || kind == SENDS;
    const struct piles *messages = of_replies ? &joiner->replies : &joiner->requests;
    const struct piles *piles = &joiner->passages[kind];
    if (server == NO_CONNECTION)
        return;
    size_t at = piles->starts[server], end = piles->starts[server + 1];
    for (size_t m = messages->starts[client]; m < messages->starts[client + 1]; m++) {
        struct lifetime *life = &joiner->lives[messages->items[m].record];
        const uint64_t offset = messages->items[m].end;
        while (at < end && piles->items[at].end < offset)
            at++;
        if (at == end)
            return;
        bool noted = kind == ARRIVALS || kind == NIC_STAMPS || kind == TAKES;
        if (noted || !is_of_later_bytes(joiner, life, &piles->items[at], kind, offset))
            stamp_by_passage(joiner, life, kind, stamp, &piles->items[at]);
    }
}

// Of replies that took several send calls, when the first of these returned; those behind wait for
// the rest of them, too.
static void note_parts(struct joiner *joiner, size_t client, uint32_t server)
{
    const struct piles *replies = &joiner->replies, *sends = &joiner->passages[SENDS];
    if (server == NO_CONNECTION)
        return;
    size_t at = sends->starts[server], end = sends->starts[server + 1];
    const struct lifetime *before = NULL;
    for (size_t m = replies->starts[client]; m < replies->starts[client + 1]; m++) {
        struct lifetime *life = &joiner->lives[replies->items[m].record];
        const uint64_t begin = joiner->in->samples[replies->items[m].record].reply_begin;
        while (at < end && sends->items[at].end <= begin)
            at++;
        if (at == end)
            return;
        const struct application_call *first = &joiner->in->calls->items[sends->items[at].record];
        if (life->send_call == NO_CALL || !lifetime_has(life, STAMP_APPLICATION))
            continue;
        int64_t received_ns = life->stamp_ns[STAMP_APPLICATION];
        if (before && before->in_part_ns && lifetime_has(before, STAMP_REPLY) &&
            before->stamp_ns[STAMP_REPLY] > received_ns)
            life->in_part_ns = before->in_part_ns > received_ns ? before->in_part_ns : received_ns;
        else if (sends->items[at].record != life->send_call && first->entry_ns >= received_ns)
            life->in_part_ns = first->exit_ns;
        before = life;
    }
}

// Whether a request was due while the one before it on its connection was on its way in parts.
static bool is_behind_parts(const struct joiner *joiner, const struct lifetime *before,
                            const struct lifetime *life)
{
    return before && !joiner->in->client_clock && before->part_read_ns > before->part_ready_ns &&
           lifetime_has(before, STAMP_SEND) &&
           before->stamp_ns[STAMP_SEND] > life->stamp_ns[STAMP_INTENDED];
}

// What was handed over of a connection's bytes, and what was read of them.
struct taken_bytes {
    const struct passage *ready, *ready_end;
    const struct passage *read, *read_end;
};

// Keeps the longest time in which some of the bytes [begin, end) lay unread, while the last of them
// was not there.
static void find_unread(struct taken_bytes bytes, uint64_t begin, uint64_t end,
                        struct lifetime *life)
{
    uint64_t came = begin, taken = begin;
    int64_t since_ns = 0;
    for (; bytes.read < bytes.read_end && taken < end; bytes.read++) {
        int64_t read_ns = bytes.read->time_ns;
        for (; bytes.ready < bytes.ready_end && bytes.ready->end < end &&
               bytes.ready->time_ns < read_ns;
             bytes.ready++) {
            if (bytes.ready->end <= came)
                continue;
            if (came <= taken)
                since_ns = bytes.ready->time_ns;
            came = bytes.ready->end;
        }
        if (came > taken && came <= bytes.read->end &&
            read_ns - since_ns > life->part_read_ns - life->part_ready_ns) {
            life->part_ready_ns = since_ns;
            life->part_read_ns = read_ns;
        }
        taken = bytes.read->end;
    }
}

// Of requests that came in parts, when one was ready and when the thread took it: a client can send
// no more than the server's socket has room for. Those behind wait for the same.
static void note_unread_parts(struct joiner *joiner, size_t client, uint32_t socket, uint32_t calls)
{
    const struct piles *requests = &joiner->requests, *handoffs = &joiner->passages[HANDOFFS],
                       *receives = &joiner->passages[RECEIVES];
    if (socket == NO_CONNECTION || calls == NO_CONNECTION)
        return;
    struct taken_bytes bytes = {.ready = handoffs->items + handoffs->starts[socket],
                                .ready_end = handoffs->items + handoffs->starts[socket + 1],
                                .read = receives->items + receives->starts[calls],
                                .read_end = receives->items + receives->starts[calls + 1]};
    const struct lifetime *before = NULL;
    uint64_t end = 0;
    for (size_t m = requests->starts[client]; m < requests->starts[client + 1]; m++) {
        struct lifetime *life = &joiner->lives[requests->items[m].record];
        uint64_t begin = joiner->in->samples[requests->items[m].record].request_begin;
        if (before && requests->items[m].end == end) { // in the same record of TLS
            life->part_ready_ns = before->part_ready_ns;
            life->part_read_ns = before->part_read_ns;
            continue;
        }
        begin = begin > end ? begin : end;
        end = requests->items[m].end;
        while (bytes.ready < bytes.ready_end && bytes.ready->end <= begin)
            bytes.ready++;
        while (bytes.read < bytes.read_end && bytes.read->end <= begin)
            bytes.read++;
        if (bytes.ready == bytes.ready_end || bytes.read == bytes.read_end)
            return;
        find_unread(bytes, begin, end, life);
        if (life->part_read_ns == life->part_ready_ns && is_behind_parts(joiner, before, life)) {
            life->part_ready_ns = before->part_ready_ns;
            life->part_read_ns = before->part_read_ns;
        }
        before = life;
    }
}

// --- the stamps of a client's datagrams ----------------------------------------------------------
// Their records lie by number (datagrams.h): a request's are those of its own number, in order of
// time. Of a request that came twice the first one counts; a reply may take several datagrams, of
// which the last one counts that the client can have waited for.

static const struct passage *reply_passage(const struct joiner *joiner, const struct lifetime *life,
                                           const struct passage *first, size_t count)
{
    size_t last = 0;
    bool read = lifetime_has(life, STAMP_REPLY_READ) && !joiner->in->client_clock;
    int64_t until_ns = read ? life->stamp_ns[STAMP_REPLY_READ] : INT64_MAX;
    while (last + 1 < count && first[last + 1].time_ns <= until_ns)
        last++;
    return &first[last];
}

// The passages of a request's own datagrams, among those from *at on; *count of them.
static const struct passage *passages_of(const struct piles *piles, uint32_t server,
                                         uint64_t number, size_t *at, size_t *count)
{
    size_t end = piles->starts[server + 1];
    while (*at < end && piles->items[*at].end < number)
        ++*at;
    for (*count = 0; *at + *count < end && piles->items[*at + *count].end == number;)
        ++*count;
    return &piles->items[*at];
}

static void stamp_datagrams(struct joiner *joiner, size_t client, uint32_t server,
                            enum passage_kind kind, enum stamp_kind stamp)
{
    const struct piles *requests = &joiner->requests, *piles = &joiner->passages[kind];
    if (server == NO_CONNECTION)
        return;
    size_t at = piles->starts[server], count;
    for (size_t r = requests->starts[client]; r < requests->starts[client + 1]; r++) {
        struct lifetime *life = &joiner->lives[requests->items[r].record];
        const struct passage *one = passages_of(piles, server, requests->items[r].end, &at, &count);
        if (count && (kind == TRANSMITS || kind == SENDS))
            one = reply_passage(joiner, life, one, count);
        if (count)
            stamp_by_passage(joiner, life, kind, stamp, one);
    }
}

static void note_drops(struct joiner *joiner, size_t client, uint32_t server)
{
    const struct piles *requests = &joiner->requests, *piles = &joiner->passages[DROPS];
    if (server == NO_CONNECTION)
        return;
    size_t at = piles->starts[server], count;
    for (size_t r = requests->starts[client]; r < requests->starts[client + 1]; r++) {
        const struct passage *drops =
            passages_of(piles, server, requests->items[r].end, &at, &count);
        for (size_t i = 0; i < count; i++)
            datagram_drop_note(&joiner->dropped[requests->items[r].record],
                               &joiner->in->events[drops[i].record]);
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

void join_stamp_connection(struct joiner *joiner, size_t client)
{
    if (joiner->requests.starts[client] == joiner->requests.starts[client + 1])
        return;
    uint32_t socket = joiner->socket_of[client], calls = joiner->calls_of[client];
    bool datagrams = is_over_udp(joiner, (uint32_t)client);
    void (*stamp)(struct joiner *, size_t, uint32_t, enum passage_kind, enum stamp_kind) =
        datagrams ? stamp_datagrams : stamp_pile;
    joiner->counts->connections++;
    joiner->counts->connections_without_socket += socket == NO_CONNECTION;
    joiner->counts->connections_without_calls += calls == NO_CONNECTION;
    stamp(joiner, client, socket, SEGMENTS, STAMP_NIC);
    stamp(joiner, client, socket, HANDOFFS, STAMP_HANDOFF);
    stamp(joiner, client, socket, TRANSMITS, STAMP_SERVER_TX);
    stamp(joiner, client, socket, ARRIVALS, STAMP_NIC);
    stamp(joiner, client, socket, NIC_STAMPS, STAMP_NIC);
    stamp(joiner, client, socket, TAKES, STAMP_HANDOFF);
    if (datagrams)
        note_drops(joiner, client, socket);
    stamp(joiner, client, calls, RECEIVES, STAMP_APPLICATION);
    stamp(joiner, client, calls, SENDS, STAMP_REPLY);
    if (!datagrams) {
        note_parts(joiner, client, calls);
        note_unread_parts(joiner, client, socket, calls);
    }
    if (socket != NO_CONNECTION)
        count_segments(joiner, socket);
    count_sharing(joiner, client);
}
