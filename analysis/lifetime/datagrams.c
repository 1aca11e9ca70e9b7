// SPDX-License-Identifier: MIT
#include "analysis/lifetime/datagrams.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/calls/streams.h"
#include "base/datagram_key.h"
#include "base/hash.h"
#include "base/map.h"

// By how much a record may seem to be earlier than its request, beyond the clocks' error: between
// two hosts what is left of their difference. The sends of 65536 requests take far longer.
#define SLACK_NS           INT64_C(10000)
#define SLACK_OF_TWO_HOSTS INT64_C(50000000)
#define UNKNOWN_TIME       INT64_MAX
// No host is up for 70 years: differences of such times cannot overflow.
#define LATEST_NS (INT64_C(1) << 61)

// A client's connection: when it sent each of its requests, and what of it is on record.
struct sender {
    size_t first;          // of its times
    size_t count;          // of its requests
    int64_t first_send_ns; // by the client's clock
    int64_t first_seen_ns; // by the server's: the earliest record of it; UNKNOWN_TIME: none
    uint16_t first_number; // the low bits of that record's
    int64_t ahead_ns;      // of the server's clock
    uint32_t next;         // another with the same ends, which was there earlier; or MAP_NONE
    uint32_t process;      // of the server's that has its socket; 0: not known
    uint64_t opened_time;  // as the shim's connections
};

struct resolver {
    const struct datagrams_input *in;
    struct sender *senders; // by client connection
    int64_t *sends;         // by sender and number
    struct map by_ends;     // to the latest sender with these ends
    struct connection_index connections;
    bool apart;
    int64_t slack_ns;
    struct datagrams *out;
};

static uint64_t ends_hash(uint32_t client, uint16_t port)
{
    return hash_pair(client, port);
}

static bool has_ends(const struct connection *one, uint32_t client, uint16_t port)
{
    return one->protocol == CONNECTION_UDP && one->peer_port == port &&
           datagram_client(one->local, one->local_port) == client;
}

// A time of a damaged record is beyond all others, and stays there.
static int64_t host_ns(const struct time_source *source, enum host_clock clock, uint64_t value)
{
    int64_t time_ns = time_source_to_host(source, clock, value);
    return time_ns > LATEST_NS ? LATEST_NS : time_ns < -LATEST_NS ? -LATEST_NS : time_ns;
}

static int64_t sent_ns(const struct resolver *resolver, const struct sample *sample)
{
    const struct datagrams_input *in = resolver->in;
    return host_ns(in->client_clock ? in->client_clock : &in->clock, HOST_CLOCK_TSC,
                   sample->send_tsc);
}

// The sender of a sample; NULL: it was not sent over UDP. No connection can have sent more than
// there are samples, unless its agent's share is not among them.
static struct sender *sender_of(const struct resolver *resolver, const struct connection_index *ids,
                                const struct sample *sample)
{
    uint32_t client = connection_index_find(ids, sample->connection);
    bool counts = client != NO_CONNECTION &&
                  resolver->in->clients[client].protocol == CONNECTION_UDP && sample->send_tsc &&
                  sample->request_begin < resolver->in->sample_count;
    return counts ? &resolver->senders[client] : NULL;
}

// Notes when each request was sent. What has no sample left with the one before it.
static int note_sends(struct resolver *resolver)
{
    const struct datagrams_input *in = resolver->in;
    struct connection_index ids;
    size_t all = 0;
    int result = connection_index_init(&ids, in->clients, in->client_count);
    for (size_t i = 0; result == 0 && i < in->sample_count; i++) {
        struct sender *sender = sender_of(resolver, &ids, &in->samples[i]);
        if (sender && in->samples[i].request_begin >= sender->count)
            sender->count = (size_t)in->samples[i].request_begin + 1;
    }
    for (size_t c = 0; result == 0 && c < in->client_count; c++) {
        resolver->senders[c].first = all;
        all += resolver->senders[c].count;
    }
    resolver->sends = calloc(all + 1, sizeof *resolver->sends);
    result = resolver->sends ? result : -1;
    for (size_t i = 0; result == 0 && i < all; i++)
        resolver->sends[i] = -LATEST_NS;
    for (size_t i = 0; result == 0 && i < in->sample_count; i++) {
        struct sender *sender = sender_of(resolver, &ids, &in->samples[i]);
        if (sender)
            resolver->sends[sender->first + in->samples[i].request_begin] =
                sent_ns(resolver, &in->samples[i]);
    }
    connection_index_fini(&ids);
    for (size_t c = 0; result == 0 && c < in->client_count; c++) {
        struct sender *sender = &resolver->senders[c];
        int64_t *sends = resolver->sends + sender->first;
        for (size_t n = 1; n < sender->count; n++)
            sends[n] = sends[n] < sends[n - 1] ? sends[n - 1] : sends[n];
        sender->first_send_ns = sender->count ? sends[0] : UNKNOWN_TIME;
    }
    return result;
}

// Chains the senders that had the same ends one after the other.
static int index_senders(struct resolver *resolver)
{
    const struct datagrams_input *in = resolver->in;
    for (size_t c = 0; c < in->client_count; c++) {
        const struct connection *one = &in->clients[c];
        struct sender *sender = &resolver->senders[c];
        *sender = (struct sender){.first_seen_ns = UNKNOWN_TIME, .next = MAP_NONE};
        if (one->protocol != CONNECTION_UDP)
            continue;
        uint32_t client = datagram_client(one->local, one->local_port);
        uint64_t hash = ends_hash(client, one->peer_port);
        uint32_t before = map_find(&resolver->by_ends, hash, at,
                                   has_ends(&in->clients[at], client, one->peer_port));
        if (before == MAP_NONE) {
            if (map_add(&resolver->by_ends, hash, c) < 0)
                return -1;
            continue;
        }
        sender->next = resolver->senders[before].next;
        resolver->senders[before].next = (uint32_t)c;
    }
    return 0;
}

// Which client connection a record of that time belongs to: of those with its ends the one that
// began last before it. MAP_NONE: a stranger's.
static uint32_t find_client(const struct resolver *resolver, uint64_t key, uint16_t port,
                            int64_t time_ns)
{
    const struct connection *clients = resolver->in->clients;
    uint32_t client = datagram_key_client(key);
    uint32_t at = map_find(&resolver->by_ends, ends_hash(client, port), k,
                           has_ends(&clients[k], client, port));
    uint32_t best = at;
    for (; at != MAP_NONE && !resolver->apart; at = resolver->senders[at].next) {
        const struct sender *one = &resolver->senders[at], *than = &resolver->senders[best];
        bool begun = one->first_send_ns <= time_ns + resolver->slack_ns;
        bool best_begun = than->first_send_ns <= time_ns + resolver->slack_ns;
        if (begun && (!best_begun || one->first_send_ns > than->first_send_ns))
            best = at;
    }
    return best;
}

// The number of the latest request with those low bits that was sent before. False: there is none.
static bool find_number(const struct resolver *resolver, const struct sender *sender, uint16_t low,
                        int64_t time_ns, uint64_t *number)
{
    const int64_t *sends = resolver->sends + sender->first;
    int64_t by = time_ns - sender->ahead_ns + resolver->slack_ns;
    size_t sent = array_bound(0, sender->count, n, sends[n] <= by);
    if (sent == 0)
        return false;
    uint64_t latest = sent - 1, back = (uint16_t)((uint16_t)latest - low);
    *number = latest - back;
    return back <= latest;
}

// What a record says of a datagram becomes its client and its number.
static bool resolve(const struct resolver *resolver, uint64_t key, uint16_t port, int64_t time_ns,
                    uint32_t *client, uint64_t *number)
{
    *client = find_client(resolver, key, port, time_ns);
    bool found = *client != MAP_NONE && find_number(resolver, &resolver->senders[*client],
                                                    datagram_key_number(key), time_ns, number);
    resolver->out->strangers += !found;
    return found;
}

// --- the records ---------------------------------------------------------------------------------

static int64_t event_ns(const struct resolver *resolver, const struct event *event)
{
    return host_ns(&resolver->in->clock, HOST_CLOCK_MONOTONIC, event->time);
}

static bool is_of_datagram(const struct event *event)
{
    return (event->flags & EVENT_OF_DATAGRAM) &&
           (event->kind == EVENT_SEGMENT || event->kind == EVENT_HANDOFF ||
            event->kind == EVENT_TRANSMIT || event->kind == EVENT_ARRIVAL ||
            event->kind == EVENT_DROPPED);
}

static bool moves_bytes(const struct call *call)
{
    return call->kind == CALL_RECEIVE || call->kind == CALL_SEND;
}

// The UDP socket that a call is about; NULL: another kind of socket.
static const struct connection *socket_of(const struct resolver *resolver, const struct call *call)
{
    uint32_t at = connection_index_find(&resolver->connections, call->connection);
    const struct connection *socket = at == NO_CONNECTION ? NULL : &resolver->in->connections[at];
    return socket && socket->protocol == CONNECTION_UDP && moves_bytes(call) ? socket : NULL;
}

static void see(struct resolver *resolver, uint64_t key, uint16_t port, int64_t time_ns)
{
    uint32_t client = find_client(resolver, key, port, time_ns);
    struct sender *sender = client == MAP_NONE ? NULL : &resolver->senders[client];
    if (!sender || sender->first_seen_ns <= time_ns)
        return;
    sender->first_seen_ns = time_ns;
    sender->first_number = datagram_key_number(key);
}

// Two hosts' clocks: a client's first datagram on record left at about the time that it was seen.
static void relate_clocks(struct resolver *resolver)
{
    const struct datagrams_input *in = resolver->in;
    for (size_t i = 0; in->events && i < in->event_count; i++)
        if (is_of_datagram(&in->events[i]))
            see(resolver, in->events[i].payload.a, (uint16_t)in->events[i].id,
                event_ns(resolver, &in->events[i]));
    for (size_t i = 0; in->calls && i < in->call_count; i++) {
        const struct connection *socket = socket_of(resolver, &in->calls[i]);
        if (socket)
            see(resolver, in->calls[i].offset, socket->local_port,
                host_ns(&in->clock, HOST_CLOCK_TSC, in->calls[i].exit_tsc));
    }
    for (size_t c = 0; c < in->client_count; c++) {
        struct sender *sender = &resolver->senders[c];
        if (sender->first_seen_ns != UNKNOWN_TIME && sender->first_number < sender->count)
            sender->ahead_ns =
                sender->first_seen_ns - resolver->sends[sender->first + sender->first_number];
    }
}

// By what the server's logs know a client from here on: beyond any cookie's low half, and beyond
// the shim's own numbers.
static uint32_t id_of_client(uint32_t client)
{
    return UINT32_MAX - 1 - client;
}

static int resolve_events(struct resolver *resolver)
{
    const struct datagrams_input *in = resolver->in;
    if (!in->events)
        return 0;
    if (array_reserve(&resolver->out->events, in->event_count) < 0)
        return -1;
    for (size_t i = 0; i < in->event_count; i++) {
        struct event event = in->events[i];
        uint32_t client;
        uint64_t number;
        if (is_of_datagram(&event)) {
            bool known = resolve(resolver, event.payload.a, (uint16_t)event.id,
                                 event_ns(resolver, &event), &client, &number);
            event.id = known ? id_of_client(client) : 0;
            event.payload.a = known ? number + 1 : 1;
            // Where the bytes begin that it is about, as of TCP's.
            if (event.kind == EVENT_HANDOFF)
                event.payload.b = event.payload.a - 1;
            else if (event.kind == EVENT_TRANSMIT)
                event.payload.b = 1;
        }
        resolver->out->events.items[resolver->out->events.count++] = event;
    }
    return 0;
}

static int resolve_calls(struct resolver *resolver)
{
    const struct datagrams_input *in = resolver->in;
    if (!in->calls)
        return 0;
    if (array_reserve(&resolver->out->calls, in->call_count) < 0)
        return -1;
    for (size_t i = 0; i < in->call_count; i++) {
        struct call call = in->calls[i];
        const struct connection *socket = socket_of(resolver, &call);
        uint32_t client;
        uint64_t number;
        int64_t time_ns = socket ? host_ns(&in->clock, HOST_CLOCK_TSC, call.exit_tsc) : 0;
        if (socket &&
            resolve(resolver, call.offset, socket->local_port, time_ns, &client, &number)) {
            struct sender *sender = &resolver->senders[client];
            sender->process = sender->process ?: socket->process;
            sender->opened_time = socket->opened_time;
            call.connection = id_of_client(client);
            call.offset = number;
            call.length = 1;
        }
        resolver->out->calls.items[resolver->out->calls.count++] = call;
    }
    return 0;
}

// The server's view of a client.
static struct connection mirrored(const struct resolver *resolver, size_t client)
{
    const struct connection *one = &resolver->in->clients[client];
    const struct sender *sender = &resolver->senders[client];
    struct connection other = {.id = id_of_client((uint32_t)client),
                               .protocol = CONNECTION_UDP,
                               .local_port = one->peer_port,
                               .peer_port = one->local_port,
                               .process = sender->process,
                               .opened_time = sender->opened_time};
    memcpy(other.local, one->peer, sizeof other.local);
    memcpy(other.peer, one->local, sizeof other.peer);
    return other;
}

static int add_connections(struct resolver *resolver)
{
    const struct datagrams_input *in = resolver->in;
    struct datagrams *out = resolver->out;
    for (size_t i = 0; in->events && i < in->socket_count; i++)
        if (array_push(&out->sockets, in->sockets[i]) < 0)
            return -1;
    for (size_t i = 0; in->calls && i < in->connection_count; i++)
        if (array_push(&out->connections, in->connections[i]) < 0)
            return -1;
    for (size_t c = 0; c < in->client_count; c++) {
        if (in->clients[c].protocol != CONNECTION_UDP)
            continue;
        struct connection other = mirrored(resolver, c);
        if ((in->events && array_push(&out->sockets, other) < 0) ||
            (in->calls && array_push(&out->connections, other) < 0))
            return -1;
    }
    return 0;
}

int datagrams_resolve(const struct datagrams_input *in, struct datagrams *out)
{
    *out = (struct datagrams){0};
    for (size_t c = 0; c < in->client_count && !out->any; c++)
        out->any = in->clients[c].protocol == CONNECTION_UDP;
    // Else they are strangers', and must not be taken for a socket's.
    for (size_t i = 0; in->events && i < in->event_count && !out->any; i++)
        out->any = is_of_datagram(&in->events[i]);
    if (!out->any)
        return 0;
    struct resolver resolver = {.in = in, .out = out, .apart = in->client_clock != NULL};
    resolver.slack_ns =
        resolver.apart ? SLACK_OF_TWO_HOSTS : SLACK_NS + (int64_t)fmin(2 * in->clock.error_ns, 1e9);
    resolver.senders = calloc(in->client_count + 1, sizeof *resolver.senders);
    int result = resolver.senders ? index_senders(&resolver) : -1;
    if (result == 0)
        result = note_sends(&resolver);
    if (result == 0)
        result = connection_index_init(&resolver.connections, in->connections,
                                       in->calls ? in->connection_count : 0);
    if (result == 0 && resolver.apart)
        relate_clocks(&resolver);
    if (result == 0)
        result = resolve_events(&resolver);
    if (result == 0)
        result = resolve_calls(&resolver);
    if (result == 0)
        result = add_connections(&resolver);
    connection_index_fini(&resolver.connections);
    map_free(&resolver.by_ends);
    free(resolver.senders);
    free(resolver.sends);
    return result;
}

void datagrams_free(struct datagrams *datagrams)
{
    array_free(&datagrams->events);
    array_free(&datagrams->sockets);
    array_free(&datagrams->calls);
    array_free(&datagrams->connections);
}
