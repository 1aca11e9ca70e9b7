// SPDX-License-Identifier: MIT
//
// Each kind of record is turned into passages ("at this time the stream of that connection had come
// to this offset"), piled by connection in order of time; one way along a connection's requests and
// passages finds each request's stamps.
#include "analysis/lifetime/join.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/lifetime/datagram_losses.h"
#include "analysis/lifetime/passages.h"
#include "analysis/lifetime/spared.h"

struct joiner {
    const struct join_input *in;
    struct lifetime *lives;
    struct join_counts *counts;
    struct piles requests; // samples by client connection, in the order sent
    struct piles replies;  // those that were answered, in the order of their replies
    struct piles passages[PASSAGE_KINDS];
    int64_t *segment_ns;   // by sample: when the record of its segment was written
    int64_t *arrival_ns;   // by sample: M(n) by its arrival; NO_TIME: none
    int64_t *stamped_ns;   // by sample: M(n) by the NIC's clock; NO_TIME: none
    int64_t *processed_ns; // by sample: M(h) by TCP's own note; NO_TIME: none
    uint16_t *received_on; // by connection: the core of its latest recorded hand-off, or NO_CORE
    uint32_t *socket_of;   // by client connection: position in the sockets table
    uint32_t *calls_of;    // by client connection: position in the shim's table
    uint8_t *dropped;      // by sample, over UDP: datagram_drop_note()
    struct spared_times spared;
    double error_ns; // of the difference of two converted times
    bool nic_stamps; // there are any
};

// No host is up for 70 years: such a time is a damaged record, and differences of any others cannot
// overflow.
#define LATEST_NS (INT64_C(1) << 61)
#define NO_TIME   INT64_MIN
// By how much a NIC's stamp may be later than the kernel's own: what reading its clock over a bus
// is off by at most; and no NIC keeps a packet back for so long.
#define NIC_CLOCK_ERROR_NS 2000
#define NIC_DELAY_MOST_NS  INT64_C(1000000000)

static inline int64_t host_time(const struct joiner *joiner, enum host_clock clock, uint64_t value)
{
    return time_source_to_host(&joiner->in->clock, clock, value);
}

static inline int64_t client_time(const struct joiner *joiner, enum host_clock clock,
                                  uint64_t value)
{
    const struct join_input *in = joiner->in;
    return time_source_to_host(in->client_clock ? in->client_clock : &in->clock, clock, value);
}

// A time that cannot be is counted, and not set.
static inline void set_stamp(struct joiner *joiner, struct lifetime *life, enum stamp_kind kind,
                             int64_t time_ns, uint16_t core)
{
    if (time_ns > LATEST_NS || time_ns < -LATEST_NS) {
        joiner->counts->impossible_stamps++;
        return;
    }
    life->stamp_ns[kind] = time_ns;
    life->stamp_core[kind] = core;
    life->present |= (uint16_t)(1u << kind);
}

static bool is_over_udp(const struct joiner *joiner, uint32_t client)
{
    return client != NO_CONNECTION &&
           joiner->in->client_connections[client].protocol == CONNECTION_UDP;
}

// --- one lifetime per sample, with the client's own stamps ---------------------------------------

static void init_lifetime(struct joiner *joiner, size_t index)
{
    const struct sample *sample = &joiner->in->samples[index];
    struct lifetime *life = &joiner->lives[index];
    *life = (struct lifetime){.request = index,
                              .status = sample->status,
                              .operation = sample->operation,
                              .key = sample->key,
                              .in_flight = sample->in_flight,
                              .connection = NO_CONNECTION,
                              .receive_call = NO_CALL,
                              .send_call = NO_CALL,
                              .state = LIFETIME_UNANSWERED};
    for (int kind = 0; kind < STAMP_KINDS; kind++)
        life->stamp_core[kind] = NO_CORE;
    set_stamp(joiner, life, STAMP_INTENDED,
              client_time(joiner, joiner->in->sample_clock, sample->intended_tsc), NO_CORE);
    if (sample->send_tsc)
        set_stamp(joiner, life, STAMP_SEND,
                  client_time(joiner, joiner->in->sample_clock, sample->send_tsc), NO_CORE);
    if (sample->tx_ns && sample->tx_source != STAMP_USER)
        set_stamp(joiner, life, STAMP_CLIENT_TX,
                  client_time(joiner, HOST_CLOCK_REALTIME, sample->tx_ns), NO_CORE);
    if (!sample_is_answered(sample) || !sample->reply_tsc)
        return;
    set_stamp(joiner, life, STAMP_REPLY_READ,
              client_time(joiner, joiner->in->sample_clock, sample->reply_tsc), NO_CORE);
    if (sample->rx_ns && sample->rx_source != STAMP_USER) {
        set_stamp(joiner, life, STAMP_CLIENT_RX,
                  client_time(joiner, HOST_CLOCK_REALTIME, sample->rx_ns), NO_CORE);
        if (sample->flags & SAMPLE_RX_COALESCED) {
            life->fallback |= 1u << STAMP_CLIENT_RX;
            joiner->counts->coalesced_rx++;
        }
    }
}

// Moves the passages of requests to where the replies end, for those that have one.
static int pile_replies(struct joiner *joiner, struct passage *passages)
{
    const struct join_input *in = joiner->in;
    for (size_t i = 0; i < in->sample_count; i++) {
        const struct sample *sample = &in->samples[i];
        passages[i].time_ns = (int64_t)sample->reply_end;
        passages[i].end = sample->reply_end;
        if (sample->reply_end == 0 || sample->reply_end > INT64_MAX || !sample_is_answered(sample))
            passages[i].pile = NO_CONNECTION;
    }
    return piles_build(&joiner->replies, passages, in->sample_count, in->client_connection_count);
}

// Piles the samples by connection. Their "time" is their place in the stream, which is the order
// they were sent in; HTTP/2 may answer them in another.
static int pile_requests(struct joiner *joiner)
{
    const struct join_input *in = joiner->in;
    struct connection_index index;
    struct passage *passages = malloc((in->sample_count ? in->sample_count : 1) * sizeof *passages);
    if (!passages ||
        connection_index_init(&index, in->client_connections, in->client_connection_count) < 0) {
        free(passages);
        return -1;
    }
    for (size_t i = 0; i < in->sample_count; i++) {
        init_lifetime(joiner, i);
        const struct sample *sample = &in->samples[i];
        uint32_t pile = connection_index_find(&index, sample->connection);
        if (pile == NO_CONNECTION)
            joiner->counts->unknown_connections++;
        joiner->lives[i].connection = pile;
        bool sent = sample->send_tsc && sample->request_end <= INT64_MAX;
        passages[i] = (struct passage){.time_ns = (int64_t)sample->request_end,
                                       .end = sample->request_end,
                                       .record = (uint32_t)i,
                                       .pile = sent ? pile : NO_CONNECTION};
    }
    connection_index_fini(&index);
    int result =
        piles_build(&joiner->requests, passages, in->sample_count, in->client_connection_count);
    if (result == 0)
        result = pile_replies(joiner, passages);
    free(passages);
    return result;
}

static int pile_server(struct joiner *joiner)
{
    const struct join_input *in = joiner->in;
    const struct server_records records = {
        .events = in->events,
        .event_count = in->event_count,
        .sockets = in->sockets,
        .socket_count = in->socket_count,
        .calls = in->calls,
        .connections = in->shim_connections,
        .connection_count = in->shim_connection_count,
        .clock = in->clock,
    };
    int result = passages_build(&records, joiner->passages, &joiner->nic_stamps);
    return result == 0 && in->events
               ? spared_times_find(in->events, in->event_count, &in->clock, &joiner->spared)
               : result;
}

// --- which connection is which -------------------------------------------------------------------

// When each connection of a table first did anything, by two kinds of passages.
static int64_t *first_times(const struct piles *one, const struct piles *other, size_t count)
{
    int64_t *first = malloc((count ? count : 1) * sizeof *first);
    for (size_t i = 0; first && i < count; i++) {
        first[i] = INT64_MAX;
        const struct piles *piles[] = {one, other};
        for (int k = 0; k < 2; k++)
            if (piles[k]->starts[i] < piles[k]->starts[i + 1] &&
                piles[k]->items[piles[k]->starts[i]].time_ns < first[i])
                first[i] = piles[k]->items[piles[k]->starts[i]].time_ns;
    }
    return first;
}

static uint32_t *match_table(const struct joiner *joiner, const int64_t *client_first,
                             const struct connection *table, size_t count, const struct piles *one,
                             const struct piles *other)
{
    const struct join_input *in = joiner->in;
    size_t clients = in->client_connection_count;
    uint32_t *other_end = malloc((clients ? clients : 1) * sizeof *other_end);
    for (size_t i = 0; other_end && i < clients; i++)
        other_end[i] = NO_CONNECTION;
    if (!other_end || !table)
        return other_end;
    int64_t *first = first_times(one, other, count);
    match_function *match = in->client_clock ? match_unrelated_connections : match_connections;
    if (!first ||
        match(in->client_connections, clients, client_first, table, count, first, other_end) < 0) {
        free(other_end);
        other_end = NULL;
    }
    free(first);
    return other_end;
}

static int match_tables(struct joiner *joiner)
{
    const struct join_input *in = joiner->in;
    size_t clients = in->client_connection_count;
    int64_t *first = malloc((clients ? clients : 1) * sizeof *first);
    if (!first)
        return -1;
    for (size_t i = 0; i < clients; i++) {
        const struct piles *requests = &joiner->requests;
        first[i] = INT64_MAX;
        if (requests->starts[i] < requests->starts[i + 1]) {
            uint32_t sample = requests->items[requests->starts[i]].record;
            first[i] = joiner->lives[sample].stamp_ns[STAMP_SEND];
        }
    }
    joiner->socket_of =
        match_table(joiner, first, in->events ? in->sockets : NULL, in->socket_count,
                    &joiner->passages[SEGMENTS], &joiner->passages[HANDOFFS]);
    joiner->calls_of = match_table(joiner, first, in->calls ? in->shim_connections : NULL,
                                   in->shim_connection_count, &joiner->passages[RECEIVES],
                                   &joiner->passages[SENDS]);
    free(first);
    return joiner->socket_of && joiner->calls_of ? 0 : -1;
}

// --- the stamps of a connection's requests -------------------------------------------------------
// A request's stamp of a kind is the first passage at or beyond its last byte. Requests of a
// connection are in stream order, its replies in theirs, and so are the passages but for
// retransmits, so one way along both finds all stamps.

// A segment's record says where it ends only. But when it was written after the bytes had gone
// further up, it is of later bytes. Segments and hand-offs are timed by the same clock.
static void check_segment(struct joiner *joiner, struct lifetime *life, int64_t further_up_ns)
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
    if (kind == HANDOFFS)
        check_segment(joiner, life, passage->time_ns);
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

// Of requests that came in parts, when the first was ready and when the thread took it: a client
// can send no more than the server's socket has room for. Those behind wait for the same.
static void note_unread_parts(struct joiner *joiner, size_t client, uint32_t socket, uint32_t calls)
{
    const struct piles *requests = &joiner->requests, *handoffs = &joiner->passages[HANDOFFS],
                       *receives = &joiner->passages[RECEIVES];
    if (socket == NO_CONNECTION || calls == NO_CONNECTION)
        return;
    size_t ready = handoffs->starts[socket], ready_end = handoffs->starts[socket + 1];
    size_t read = receives->starts[calls], read_end = receives->starts[calls + 1];
    const struct lifetime *before = NULL;
    for (size_t m = requests->starts[client]; m < requests->starts[client + 1]; m++) {
        struct lifetime *life = &joiner->lives[requests->items[m].record];
        const uint64_t begin = joiner->in->samples[requests->items[m].record].request_begin;
        while (ready < ready_end && handoffs->items[ready].end <= begin)
            ready++;
        while (read < read_end && receives->items[read].end <= begin)
            read++;
        if (ready == ready_end || read == read_end)
            return;
        int64_t ready_ns = handoffs->items[ready].time_ns;
        int64_t read_ns = joiner->in->calls->items[receives->items[read].record].exit_ns;
        if (handoffs->items[ready].end < requests->items[m].end && ready_ns < read_ns) {
            life->part_ready_ns = ready_ns;
            life->part_read_ns = read_ns;
        } else if (is_behind_parts(joiner, before, life)) {
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

static void walk_connection(struct joiner *joiner, size_t client)
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

// --- the rest of a life --------------------------------------------------------------------------

// A retransmission that left after the client had the bytes: the first transmission was never
// recorded.
static void check_retransmission(struct joiner *joiner, struct lifetime *life)
{
    const uint16_t bit = 1u << STAMP_SERVER_TX;
    if (!(life->fallback & bit) || !lifetime_has(life, STAMP_CLIENT_RX) ||
        (double)(life->stamp_ns[STAMP_SERVER_TX] - life->stamp_ns[STAMP_CLIENT_RX]) <=
            (isfinite(life->hosts_error_ns) ? life->hosts_error_ns : 0))
        return;
    life->present &= (uint16_t)~bit;
    life->fallback &= (uint16_t)~bit;
    joiner->counts->transmits_unseen++;
}

// A request's arrival on a virtual link is its M(n); the segment's stamp comes later there.
static void take_arrival(struct joiner *joiner, struct lifetime *life)
{
    int64_t arrival = joiner->arrival_ns[life->request];
    bool had = lifetime_has(life, STAMP_NIC);
    if (arrival == NO_TIME || (had && arrival > life->stamp_ns[STAMP_NIC]))
        return;
    if (lifetime_has(life, STAMP_APPLICATION) && arrival > life->stamp_ns[STAMP_APPLICATION])
        return; // of later bytes: its own was not recorded
    set_stamp(joiner, life, STAMP_NIC, arrival, NO_CORE);
    life->fallback &= (uint16_t) ~(1u << STAMP_NIC);
    joiner->counts->segments_recovered += !had;
}

// The NIC had the packet before the kernel did; the difference is the NIC's and the interrupt's. A
// stamp that says otherwise, by more than the clocks can be apart, is of another packet or of a
// clock that was set.
static void take_nic_stamp(struct joiner *joiner, struct lifetime *life)
{
    int64_t stamped = joiner->stamped_ns[life->request], told = life->stamp_ns[STAMP_NIC];
    if (!joiner->nic_stamps || !lifetime_has(life, STAMP_NIC))
        return;
    if (stamped == NO_TIME) {
        joiner->counts->without_nic_stamp++;
        return;
    }
    if ((double)(stamped - told) > joiner->error_ns + NIC_CLOCK_ERROR_NS ||
        told - stamped > NIC_DELAY_MOST_NS) {
        joiner->counts->wrong_nic_stamps++;
        return;
    }
    joiner->counts->nic_stamps++;
    life->told_ns = told;
    if (stamped < told)
        life->stamp_ns[STAMP_NIC] = stamped;
}

// TCP remembers the time of the socket's last segment only: it is this request's if it lies between
// M(n) and M(a). The receiving core was not recorded: it is taken to be the one that received for
// the connection before, or else the thread's own.
static void take_note_of_processing(struct joiner *joiner, struct lifetime *life)
{
    int64_t processed = joiner->processed_ns[life->request];
    if (lifetime_has(life, STAMP_HANDOFF) || processed == NO_TIME ||
        !lifetime_has(life, STAMP_NIC) || !lifetime_has(life, STAMP_APPLICATION) ||
        processed < life->stamp_ns[STAMP_NIC] || processed > life->stamp_ns[STAMP_APPLICATION])
        return;
    uint16_t core = joiner->received_on[life->connection];
    set_stamp(joiner, life, STAMP_HANDOFF, processed,
              core != NO_CORE ? core : life->stamp_core[STAMP_APPLICATION]);
    life->fallback |= 1u << STAMP_HANDOFF;
    joiner->counts->handoffs_recovered++;
}

// Where hand-offs are spared: the segment's record, which is written when TCP looks at it, just
// before it hands it over.
static void take_segment_for_handoff(struct joiner *joiner, struct lifetime *life)
{
    const int64_t segment = joiner->segment_ns[life->request];
    if (joiner->spared.count == 0 || segment == NO_TIME || !lifetime_has(life, STAMP_NIC) ||
        !lifetime_has(life, STAMP_APPLICATION) || lifetime_has(life, STAMP_HANDOFF) ||
        !(spared_at(&joiner->spared, segment) ||
          spared_at(&joiner->spared, life->stamp_ns[STAMP_APPLICATION])))
        return;
    set_stamp(joiner, life, STAMP_HANDOFF, segment, life->stamp_core[STAMP_NIC]);
    life->fallback |= 1u << STAMP_HANDOFF;
    joiner->counts->spared++;
}

// Of some kernels only the end of a send call is known (kernel_calls.h), which is later than the
// moment its bytes left.
static void check_reply(const struct joiner *joiner, struct lifetime *life)
{
    if (life->send_call == NO_CALL || !lifetime_has(life, STAMP_SERVER_TX) ||
        life->stamp_ns[STAMP_REPLY] <= life->stamp_ns[STAMP_SERVER_TX])
        return;
    const struct application_call *call = &joiner->in->calls->items[life->send_call];
    if (call->entry_ns != call->exit_ns)
        return;
    life->stamp_ns[STAMP_REPLY] = life->stamp_ns[STAMP_SERVER_TX];
    life->fallback |= 1u << STAMP_REPLY;
}

// Where nobody knows the client, a life is as long as the server's host sees it.
static void take_ends_of_server(struct lifetime *life)
{
    if (lifetime_has(life, STAMP_NIC))
        life->stamp_ns[STAMP_INTENDED] = life->stamp_ns[STAMP_SEND] = life->stamp_ns[STAMP_NIC];
    if (lifetime_has(life, STAMP_SERVER_TX) && lifetime_has(life, STAMP_REPLY_READ))
        life->stamp_ns[STAMP_REPLY_READ] = life->stamp_ns[STAMP_SERVER_TX];
}

// What the server's stamps say among themselves.
static void settle_server(struct joiner *joiner, struct lifetime *life)
{
    // What took the hand-off's record took the segment's as well, if that one came after M(a).
    if (!lifetime_has(life, STAMP_HANDOFF) && lifetime_has(life, STAMP_APPLICATION))
        check_segment(joiner, life, life->stamp_ns[STAMP_APPLICATION]);
    take_arrival(joiner, life);
    take_nic_stamp(joiner, life);
    take_note_of_processing(joiner, life);
    take_segment_for_handoff(joiner, life);
    check_reply(joiner, life);
    if (joiner->in->without_client)
        take_ends_of_server(life);
    if (lifetime_has(life, STAMP_HANDOFF) && life->connection != NO_CONNECTION)
        joiner->received_on[life->connection] = life->stamp_core[STAMP_HANDOFF];
}

// Why a life of a connection that one of the server's logs knows is not whole: where the other does
// not know it, that is the reason, not the stamps that are missing for it.
static enum lifetime_state state_of_known(const struct joiner *joiner, const struct lifetime *life)
{
    enum lifetime_state state = lifetime_state_of_stamps(life);
    bool of_kernel = state == LIFETIME_NO_NIC || state == LIFETIME_NO_HANDOFF;
    bool of_application = state == LIFETIME_NO_APPLICATION || state == LIFETIME_NO_REPLY;
    if (of_kernel && joiner->in->events && joiner->socket_of[life->connection] == NO_CONNECTION)
        return LIFETIME_NO_SOCKET;
    if (of_application && joiner->in->calls && joiner->calls_of[life->connection] == NO_CONNECTION)
        return LIFETIME_NO_CALLS;
    return state;
}

static bool has_own_stack(const struct join_input *in, uint32_t client)
{
    for (size_t i = 0; i < in->own_stack_count; i++)
        if (in->own_stacks[i] == in->client_connections[client].peer_port)
            return true;
    return false;
}

// Of a user-space network stack the kernel sees nothing, unless the packets come to it all the
// same; and of no stack, where its events were not recorded.
static void note_untaken(const struct joiner *joiner, struct lifetime *life)
{
    const struct join_input *in = joiner->in;
    if (in->without_client || life->connection == NO_CONNECTION ||
        (in->events && !has_own_stack(in, life->connection)))
        return;
    life->untaken = 1u << STAMP_HANDOFF | 1u << STAMP_SERVER_TX;
    if (joiner->socket_of[life->connection] == NO_CONNECTION)
        life->untaken |= 1u << STAMP_NIC;
    life->untaken &= (uint16_t)~life->present;
}

// Since when its thread could have it is not known, but by M(a) it did.
static void place_untaken(struct lifetime *life)
{
    if (!lifetime_has(life, STAMP_APPLICATION))
        return;
    for (int kind = STAMP_HANDOFF; kind >= STAMP_NIC; kind--)
        if (life->untaken >> kind & 1)
            life->stamp_ns[kind] = life->stamp_ns[STAMP_APPLICATION];
    if (life->untaken >> STAMP_HANDOFF & 1 && lifetime_has(life, STAMP_NIC))
        life->stamp_ns[STAMP_HANDOFF] = life->stamp_ns[STAMP_NIC]; // its thread fetches it itself
}

static void count_untaken(struct joiner *joiner, const struct lifetime *life)
{
    struct join_counts *counts = joiner->counts;
    if (life->state != LIFETIME_WHOLE)
        return;
    bool arrival = !(life->untaken >> STAMP_NIC & 1);
    counts->without_arrivals += !arrival;
    counts->without_handoffs += arrival && life->untaken >> STAMP_HANDOFF & 1;
    counts->without_departures += life->untaken >> STAMP_SERVER_TX & 1;
}

static void finish_lifetime(struct joiner *joiner, struct lifetime *life)
{
    check_retransmission(joiner, life);
    if (joiner->in->without_client)
        take_ends_of_server(life); // again: what arrived first may not have got through
    note_untaken(joiner, life);
    place_untaken(life);
    lifetime_compute_stages(life, joiner->error_ns, &joiner->counts->disorder);
    if (!lifetime_has(life, STAMP_INTENDED) || !lifetime_has(life, STAMP_REPLY_READ) ||
        !lifetime_has(life, STAMP_SEND))
        life->state = LIFETIME_UNANSWERED;
    else if (life->connection == NO_CONNECTION ||
             (joiner->socket_of[life->connection] == NO_CONNECTION &&
              joiner->calls_of[life->connection] == NO_CONNECTION))
        life->state = LIFETIME_NO_CONNECTION;
    else
        life->state = (uint8_t)state_of_known(joiner, life);
    count_untaken(joiner, life);
    if (life->state == LIFETIME_UNANSWERED && lifetime_has(life, STAMP_SEND) &&
        is_over_udp(joiner, life->connection))
        joiner->counts->datagrams_lost[datagram_loss_of(life, joiner->dropped[life->request],
                                                        joiner->in->events != NULL,
                                                        joiner->in->timeout_ns)]++;
}

unsigned join_undivided(const struct join_counts *counts)
{
    return (counts->hosts.both_ways ? UNDIVIDED_NETWORK : 0u) |
           (counts->without_arrivals ? UNDIVIDED_WAY_IN : 0u) |
           (counts->without_departures ? UNDIVIDED_WAY_BACK : 0u);
}

static uint16_t *make_cores(size_t count)
{
    uint16_t *cores = malloc((count + 1) * sizeof *cores);
    for (size_t i = 0; cores && i < count; i++)
        cores[i] = NO_CORE;
    return cores;
}

// Of what kind of hold-up: sent again to the server, to the client, in the send queue, below it.
static unsigned holdup_group(const struct holdup *holdup)
{
    if (holdup->kind >= HOLDUP_QUEUE)
        return 3;
    if (holdup->kind >= HOLDUP_WINDOW)
        return 2;
    return holdup->kind >= HOLDUP_TIMEOUT_TO_CLIENT ? 1 : 0;
}

static int find_holdups(struct joiner *joiner, struct holdup_array *out)
{
    const struct join_input *in = joiner->in;
    struct join_counts *counts = joiner->counts;
    uint64_t *const groups[] = {&counts->resent_to_server, &counts->resent_to_client,
                                &counts->held_back, &counts->queued};
    const struct holdup_sources from = {
        .samples = in->samples,
        .lives = joiner->lives,
        .calls = in->calls,
        .events = in->events,
        .clock = in->clock,
        .socket_of = joiner->socket_of,
        .requests = &joiner->requests,
        .replies = &joiner->replies,
        .segments = &joiner->passages[SEGMENTS],
        .arrivals = &joiner->passages[ARRIVALS],
        .handoffs = &joiner->passages[HANDOFFS],
        .resends_to_server = &joiner->passages[RESENDS_TO_SERVER],
        .resends_to_client = &joiner->passages[RESENDS_TO_CLIENT],
        .helds = &joiner->passages[HELDS],
        .queues = &joiner->passages[QUEUES],
        .losses_to_server = &joiner->passages[LOSSES_TO_SERVER],
        .losses_to_client = &joiner->passages[LOSSES_TO_CLIENT],
    };
    int result = holdups_find(&from, out);
    for (size_t i = 0; i < out->count; i++) {
        const struct holdup *one = &out->items[i], *before = one - 1;
        if (i == 0 || before->request != one->request || holdup_group(before) != holdup_group(one))
            ++*groups[holdup_group(one)];
    }
    return result;
}

static int64_t *make_times(size_t count)
{
    int64_t *times = malloc((count + 1) * sizeof *times);
    for (size_t i = 0; times && i < count; i++)
        times[i] = NO_TIME;
    return times;
}

int join_lifetimes(const struct join_input *input, struct lifetime_array *out,
                   struct holdup_array *holdups, struct join_counts *counts, struct error *err)
{
    *out = (struct lifetime_array){0};
    *holdups = (struct holdup_array){0};
    *counts = (struct join_counts){0};
    // A stage is the difference of two conversions, each as wrong as the clock map says.
    double worst_ns = input->client_clock
                          ? fmax(input->clock.error_ns, input->client_clock->error_ns)
                          : input->clock.error_ns;
    struct joiner joiner = {.in = input, .counts = counts, .error_ns = 2 * worst_ns};
    bool fits = input->sample_count < NO_CONNECTION && input->event_count < NO_CONNECTION;
    int result = fits ? array_reserve(out, input->sample_count) : -1;
    if (result == 0) {
        joiner.lives = out->items;
        out->count = input->sample_count;
        joiner.segment_ns = make_times(input->sample_count);
        joiner.arrival_ns = make_times(input->sample_count);
        joiner.stamped_ns = make_times(input->sample_count);
        joiner.processed_ns = make_times(input->sample_count);
        joiner.dropped = calloc(input->sample_count + 1, sizeof *joiner.dropped);
        joiner.received_on = make_cores(input->client_connection_count);
        result = joiner.segment_ns && joiner.arrival_ns && joiner.stamped_ns &&
                         joiner.processed_ns && joiner.received_on && joiner.dropped
                     ? pile_requests(&joiner)
                     : -1;
    }
    if (result == 0)
        result = pile_server(&joiner);
    if (result == 0)
        result = match_tables(&joiner);
    if (result == 0) {
        for (size_t c = 0; c < input->client_connection_count; c++)
            walk_connection(&joiner, c);
        for (size_t i = 0; i < out->count; i++)
            settle_server(&joiner, &out->items[i]);
        if (input->client_clock)
            result = two_hosts_relate(out->items, out->count, joiner.error_ns, &counts->hosts, err);
        if (result == 0)
            result = find_holdups(&joiner, holdups);
        for (size_t i = 0; i < out->count; i++)
            finish_lifetime(&joiner, &out->items[i]);
    }
    piles_free(&joiner.requests);
    piles_free(&joiner.replies);
    for (int kind = 0; kind < PASSAGE_KINDS; kind++)
        piles_free(&joiner.passages[kind]);
    array_free(&joiner.spared);
    free(joiner.segment_ns);
    free(joiner.arrival_ns);
    free(joiner.stamped_ns);
    free(joiner.processed_ns);
    free(joiner.received_on);
    free(joiner.dropped);
    free(joiner.socket_of);
    free(joiner.calls_of);
    if (result < 0) {
        array_free(out);
        return error_set(err, ERROR_FAILED,
                         "no memory to join %zu requests with %zu events: analyze a shorter run",
                         input->sample_count, input->event_count);
    }
    return 0;
}
