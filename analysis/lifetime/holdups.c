// SPDX-License-Identifier: MIT
#include "analysis/lifetime/holdups.h"

const struct holdup *holdups_of(const struct holdup_array *all, uint64_t request, size_t *count)
{
    size_t first = array_bound(0, all->count, at, all->items[at].request < request);
    size_t after = first;
    while (after < all->count && all->items[after].request == request)
        after++;
    *count = after - first;
    return *count ? &all->items[first] : NULL;
}

const char *event_queue_name(unsigned queue)
{
    switch (queue) {
#define EVENT_QUEUE(NAME, number, name)                                                            \
    case number:                                                                                   \
        return name;
#include "profiler/bpf/events.tbl.h"
    default:
        return "?";
    }
}

const char *event_loss_name(unsigned loss)
{
    switch (loss) {
#define EVENT_LOSS(NAME, number, words)                                                            \
    case number:                                                                                   \
        return words " (" #NAME ")";
#include "profiler/bpf/events.tbl.h"
    default:
        return "?";
    }
}

#define NEVER INT64_MIN

// The message at hand, and its connection's records.
struct held_message {
    const struct holdup_sources *from;
    struct holdup_array *out;
    size_t client;
    uint32_t socket;
    struct lifetime *life;
    const struct sample *sample;
    int64_t resent_ns; // the last time that bytes before its reply were sent again, or the reply
                       // itself, before it was seen to leave; NEVER: none were
    bool out_of_memory;
};

struct pile {
    const struct passage *items;
    size_t count;
};

static struct pile pile_of(const struct held_message *message, const struct piles *piles)
{
    size_t first = piles->starts[message->socket];
    return (struct pile){piles->items + first, piles->starts[message->socket + 1] - first};
}

static const struct event *event_of(const struct held_message *message,
                                    const struct passage *passage)
{
    return &message->from->events[passage->record];
}

static size_t first_after(const struct pile *pile, int64_t time_ns)
{
    return array_bound(0, pile->count, at, pile->items[at].time_ns <= time_ns);
}

static void add_holdup(struct held_message *message, int64_t begin_ns, int64_t end_ns,
                       enum holdup_kind kind, uint8_t by)
{
    const struct holdup one = {.request = message->life->request,
                               .begin_ns = begin_ns,
                               .end_ns = end_ns,
                               .kind = (uint8_t)kind,
                               .by = by};
    if (end_ns > begin_ns && array_push(message->out, one) < 0)
        message->out_of_memory = true;
}

// --- bytes that were sent again ------------------------------------------------------------------

static enum holdup_kind kind_of_resend(const struct event *event)
{
    bool to_server = event->flags & RETRANSMIT_BY_CLIENT;
    if (event->flags & RETRANSMIT_TIMEOUT)
        return to_server ? HOLDUP_TIMEOUT_TO_SERVER : HOLDUP_TIMEOUT_TO_CLIENT;
    if (event->flags & RETRANSMIT_FAST)
        return to_server ? HOLDUP_FAST_TO_SERVER : HOLDUP_FAST_TO_CLIENT;
    return to_server ? HOLDUP_PROBE_TO_SERVER : HOLDUP_PROBE_TO_CLIENT;
}

static uint64_t begin_of_resend(const struct held_message *message, const struct passage *resend)
{
    uint64_t bytes = event_of(message, resend)->payload.b;
    return bytes < resend->end ? resend->end - bytes : 0;
}

// Whether the server had the bytes already: only the acknowledgement was late. Its NIC may have had
// them when nobody else there had.
static bool server_had(const struct held_message *message, const struct passage *resend)
{
    const struct lifetime *life = message->life;
    if (life->told_ns && life->stamp_ns[STAMP_NIC] < resend->time_ns)
        return true;
    struct pile handoffs = pile_of(message, message->from->handoffs);
    size_t after = first_after(&handoffs, resend->time_ns);
    return after > 0 && handoffs.items[after - 1].end >= resend->end;
}

static bool client_had(const struct held_message *message, const struct passage *resend)
{
    const struct holdup_sources *from = message->from;
    const struct piles *replies = from->replies;
    size_t end = replies->starts[message->client + 1];
    size_t owner = array_bound(replies->starts[message->client], end, at,
                               replies->items[at].end < resend->end);
    if (owner == end)
        return false;
    const struct lifetime *life = &from->lives[replies->items[owner].record];
    return lifetime_has(life, STAMP_REPLY_READ) &&
           life->stamp_ns[STAMP_REPLY_READ] < resend->time_ns;
}

// When what was sent again came in; `otherwise_ns` where that was not recorded.
static int64_t arrival_of(const struct held_message *message, const struct passage *resend,
                          int64_t otherwise_ns)
{
    const struct piles *const sources[] = {message->from->arrivals, message->from->segments};
    for (size_t k = 0; k < sizeof sources / sizeof *sources; k++) {
        struct pile pile = pile_of(message, sources[k]);
        for (size_t i = first_after(&pile, resend->time_ns - 1);
             i < pile.count && pile.items[i].time_ns < otherwise_ns; i++)
            if (pile.items[i].end == resend->end)
                return pile.items[i].time_ns;
    }
    return otherwise_ns;
}

// Whether the bytes before `end`, of whose place in the stream the low 32 bits are known, are among
// those of a transmission.
static bool overlaps(uint32_t end, uint32_t bytes, const struct event *transmission)
{
    int32_t behind = (int32_t)(end - (uint32_t)transmission->payload.a);
    return behind < (int64_t)bytes && -(int64_t)behind < (int64_t)transmission->payload.b;
}

// What had thrown away what is sent again here, where the kernel said so, and it was not sent again
// in between: that may have been lost elsewhere. 0: nobody knows.
static uint8_t loss_before(const struct held_message *message, const struct pile *resends,
                           const struct passage *resend)
{
    enum { FURTHEST = 4096 }; // records back: more than a window's segments
    const struct event *again = event_of(message, resend);
    const bool to_server = again->flags & RETRANSMIT_BY_CLIENT;
    struct pile losses = pile_of(message, to_server ? message->from->losses_to_server
                                                    : message->from->losses_to_client);
    size_t last = first_after(&losses, resend->time_ns), at = last;
    const struct event *loss = NULL;
    while (at > 0 && last - at < FURTHEST && !loss) {
        const struct event *one = event_of(message, &losses.items[--at]);
        if (overlaps((uint32_t)one->payload.a, (uint32_t)one->payload.b, again))
            loss = one;
    }
    if (!loss)
        return 0;
    for (const struct passage *other = resend;
         other-- > resends->items && other->time_ns > losses.items[at].time_ns;)
        if (overlaps((uint32_t)loss->payload.a, (uint32_t)loss->payload.b,
                     event_of(message, other)) &&
            overlaps((uint32_t)again->payload.a, (uint32_t)again->payload.b,
                     event_of(message, other)))
            return 0;
    return (uint8_t)(loss->payload.b >> 32);
}

// Whether TCP took bytes that were thrown away for sent: then it sent them again.
static bool sent_again(const struct held_message *message, const struct pile *resends,
                       const struct event *loss, int64_t lost_ns)
{
    for (size_t i = first_after(resends, lost_ns); i < resends->count; i++)
        if (overlaps((uint32_t)loss->payload.a, (uint32_t)loss->payload.b,
                     event_of(message, &resends->items[i])))
            return true;
    return false;
}

// What is thrown away on its way through the sender's own machine, by a firewall or a full queueing
// discipline, TCP does not take for sent. It tries again when it next has a reason to: bytes of the
// stream before `end` that were to leave from `from_ns` on left at `left_ns`.
// Returns when they were thrown away first; left_ns: they were not.
static int64_t hold_up_on_leaving(struct held_message *message, bool to_server, uint64_t end,
                                  int64_t from_ns, int64_t left_ns)
{
    const struct holdup_sources *from = message->from;
    struct pile losses =
        pile_of(message, to_server ? from->losses_to_server : from->losses_to_client);
    struct pile resends =
        pile_of(message, to_server ? from->resends_to_server : from->resends_to_client);
    for (size_t i = first_after(&losses, from_ns - 1);
         i < losses.count && losses.items[i].time_ns < left_ns; i++) {
        const struct event *loss = event_of(message, &losses.items[i]);
        int64_t lost_ns = losses.items[i].time_ns;
        uint32_t begin = (uint32_t)loss->payload.a - (uint32_t)loss->payload.b;
        if ((int32_t)((uint32_t)end - begin) <= 0 || sent_again(message, &resends, loss, lost_ns))
            continue;
        add_holdup(message, lost_ns, left_ns,
                   to_server ? HOLDUP_LOCAL_TO_SERVER : HOLDUP_LOCAL_TO_CLIENT,
                   (uint8_t)(loss->payload.b >> 32));
        return lost_ns;
    }
    return left_ns;
}

static void move_arrival(struct lifetime *life, int64_t arrived_ns)
{
    life->stamp_ns[STAMP_NIC] = arrived_ns;
    life->told_ns = 0;
    life->stamp_core[STAMP_NIC] = NO_CORE;
    life->present |= 1u << STAMP_NIC;
}

// Where the client is on the server's machine: its queueing discipline had the request.
static void hold_up_in_client_queue(struct held_message *message)
{
    const struct lifetime *life = message->life;
    struct pile queues = pile_of(message, message->from->client_queues);
    if (queues.count == 0 || !lifetime_has(life, STAMP_SEND))
        return;
    const int64_t sent = life->stamp_ns[STAMP_SEND];
    const size_t first = first_after(&queues, sent);
    size_t at = first;
    while (at < queues.count && queues.items[at].end < message->sample->request_end)
        at++;
    if (at == queues.count)
        return;
    const struct event *event = event_of(message, &queues.items[at]);
    int64_t entered =
        time_source_to_host(&message->from->clock, HOST_CLOCK_MONOTONIC, event->payload.b);
    if (at > first || entered < sent) // TCP waits while enough of the connection lies there
        entered = sent;
    add_holdup(message, entered, queues.items[at].time_ns, HOLDUP_CLIENT_QUEUE,
               event->flags & QUEUED_IN);
}

static void hold_up_request(struct held_message *message)
{
    struct lifetime *life = message->life;
    const uint64_t end = message->sample->request_end;
    hold_up_in_client_queue(message);
    struct pile resends = pile_of(message, message->from->resends_to_server);
    if (lifetime_has(life, STAMP_SEND) && lifetime_has(life, STAMP_CLIENT_TX))
        hold_up_on_leaving(message, true, end, life->stamp_ns[STAMP_SEND],
                           life->stamp_ns[STAMP_CLIENT_TX]);
    if (resends.count == 0 || !lifetime_has(life, STAMP_SEND) || !lifetime_has(life, STAMP_HANDOFF))
        return;
    const struct passage *last = NULL;
    uint8_t loss = 0; // what had thrown that one away
    int64_t begin = life->stamp_ns[STAMP_SEND], handed = life->stamp_ns[STAMP_HANDOFF];
    for (size_t i = first_after(&resends, begin);
         i < resends.count && resends.items[i].time_ns < handed; i++) {
        const struct passage *resend = &resends.items[i];
        if (begin_of_resend(message, resend) >= end || server_had(message, resend))
            continue;
        if (!last && lifetime_has(life, STAMP_CLIENT_TX) &&
            life->stamp_ns[STAMP_CLIENT_TX] < resend->time_ns)
            begin = life->stamp_ns[STAMP_CLIENT_TX];
        loss = loss_before(message, &resends, resend);
        add_holdup(message, begin, resend->time_ns, kind_of_resend(event_of(message, resend)),
                   loss);
        begin = resend->time_ns;
        last = resend;
    }
    if (!last)
        return;
    if (lifetime_has(life, STAMP_NIC) && life->stamp_ns[STAMP_NIC] >= begin)
        return;
    int64_t arrived = arrival_of(message, last, handed);
    if (last->end >= end) // what had arrived of it before did not get through
        move_arrival(life, arrived);
    else
        add_holdup(message, begin, arrived, kind_of_resend(event_of(message, last)), loss);
}

// When the call that sends the reply returned; the reply stamp where there is none.
static int64_t send_returned(const struct held_message *message)
{
    const struct lifetime *life = message->life;
    return life->send_call == NO_CALL ? life->stamp_ns[STAMP_REPLY]
                                      : message->from->calls->items[life->send_call].exit_ns;
}

static void hold_up_reply(struct held_message *message)
{
    const struct lifetime *life = message->life;
    struct pile resends = pile_of(message, message->from->resends_to_client);
    if (resends.count == 0)
        return;
    int64_t begin = send_returned(message), read = life->stamp_ns[STAMP_REPLY_READ];
    int64_t left = lifetime_has(life, STAMP_SERVER_TX) ? life->stamp_ns[STAMP_SERVER_TX] : read;
    for (size_t i = first_after(&resends, life->stamp_ns[STAMP_REPLY]);
         i < resends.count && resends.items[i].time_ns < read; i++) {
        const struct passage *resend = &resends.items[i];
        if (begin_of_resend(message, resend) >= message->sample->reply_end ||
            client_had(message, resend))
            continue;
        if (left < resend->time_ns && begin < left)
            begin = left; // until then it had not left for other reasons
        add_holdup(message, begin, resend->time_ns, kind_of_resend(event_of(message, resend)),
                   loss_before(message, &resends, resend));
        begin = resend->time_ns;
        if (begin <= left)
            message->resent_ns = begin;
    }
}

// --- what kept a reply from leaving --------------------------------------------------------------

// Returns when TCP handed the reply's last byte down, where a queueing discipline then had it.
static int64_t hold_up_in_queue(struct held_message *message, int64_t from_ns, uint8_t *queue)
{
    int64_t left = message->life->stamp_ns[STAMP_SERVER_TX];
    struct pile queues = pile_of(message, message->from->queues);
    size_t at = array_bound(0, queues.count, i, queues.items[i].time_ns < left);
    while (at < queues.count && queues.items[at].time_ns == left &&
           queues.items[at].end < message->sample->reply_end)
        at++;
    if (at == queues.count || queues.items[at].time_ns != left)
        return left; // its transmission's record was written at the same time
    const struct event *event = event_of(message, &queues.items[at]);
    int64_t entered =
        time_source_to_host(&message->from->clock, HOST_CLOCK_MONOTONIC, event->payload.b);
    entered = entered < from_ns ? from_ns : entered;
    if (entered >= left)
        return left;
    *queue = event->flags;
    add_holdup(message, entered, left, HOLDUP_QUEUE, *queue);
    return entered;
}

static void hold_up_sending(struct held_message *message)
{
    static const enum holdup_kind kinds[HELD_REASONS] = {
        [HELD_OTHER] = HOLDUP_KINDS,
        [HELD_WINDOW] = HOLDUP_WINDOW,
        [HELD_CONGESTION] = HOLDUP_CONGESTION,
        [HELD_NAGLE] = HOLDUP_NAGLE,
        [HELD_CORK] = HOLDUP_CORK,
        [HELD_PACING] = HOLDUP_PACING,
        [HELD_BELOW] = HOLDUP_QUEUE,
    };
    const struct lifetime *life = message->life;
    if (!lifetime_has(life, STAMP_SERVER_TX))
        return;
    int64_t from = send_returned(message);
    if (message->resent_ns > from)
        from = message->resent_ns;
    if (from >= life->stamp_ns[STAMP_SERVER_TX])
        return;
    uint8_t queue = QUEUE_OTHER;
    int64_t until = hold_up_in_queue(message, from, &queue);
    until = hold_up_on_leaving(message, false, message->sample->reply_end,
                               life->stamp_ns[STAMP_REPLY], until);
    struct pile helds = pile_of(message, message->from->helds);
    for (size_t i = first_after(&helds, from); i < helds.count && helds.items[i].time_ns <= until;
         i++) {
        const struct event *event = event_of(message, &helds.items[i]);
        enum holdup_kind kind = event->flags < HELD_REASONS ? kinds[event->flags] : HOLDUP_KINDS;
        if (event->payload.a >= message->sample->reply_end)
            continue;
        if (kind != HOLDUP_KINDS)
            add_holdup(message, from, helds.items[i].time_ns, kind,
                       kind == HOLDUP_QUEUE ? queue : 0);
        from = helds.items[i].time_ns;
    }
}

// --- all of them ---------------------------------------------------------------------------------

static int compare_holdups(const void *a, const void *b)
{
    const struct holdup *x = a, *y = b;
    int order = order_of(x->request, y->request);
    return order ? order : order_of(x->begin_ns, y->begin_ns);
}

static void hold_up_connection(struct held_message *message)
{
    const struct holdup_sources *from = message->from;
    const struct piles *const sources[] = {
        from->resends_to_server, from->resends_to_client, from->helds,           from->queues,
        from->client_queues,     from->losses_to_server,  from->losses_to_client};
    message->socket = from->socket_of[message->client];
    if (message->socket == NO_CONNECTION)
        return;
    size_t records = 0, end = from->requests->starts[message->client + 1];
    for (size_t k = 0; k < sizeof sources / sizeof *sources; k++)
        records += pile_of(message, sources[k]).count;
    for (size_t r = from->requests->starts[message->client]; records > 0 && r < end; r++) {
        message->life = &from->lives[from->requests->items[r].record];
        message->sample = &from->samples[from->requests->items[r].record];
        message->resent_ns = NEVER;
        if (!lifetime_has(message->life, STAMP_REPLY_READ))
            continue;
        hold_up_request(message);
        if (!lifetime_has(message->life, STAMP_REPLY))
            continue;
        hold_up_reply(message);
        hold_up_sending(message);
    }
}

// Bytes may be thrown away on leaving while others before them are sent again: each nanosecond is
// what held the message up first.
static void part_holdups(struct holdup_array *all)
{
    size_t kept = 0;
    for (size_t i = 0; i < all->count; i++) {
        struct holdup one = all->items[i];
        const struct holdup *before = kept ? &all->items[kept - 1] : NULL;
        if (before && before->request == one.request && before->end_ns > one.begin_ns)
            one.begin_ns = before->end_ns;
        if (one.begin_ns < one.end_ns)
            all->items[kept++] = one;
    }
    all->count = kept;
}

int holdups_find(const struct holdup_sources *from, struct holdup_array *out)
{
    struct held_message message = {.from = from, .out = out};
    for (; from->events && message.client < from->requests->pile_count; message.client++)
        hold_up_connection(&message);
    array_sort(out, compare_holdups);
    part_holdups(out);
    return message.out_of_memory ? -1 : 0;
}
