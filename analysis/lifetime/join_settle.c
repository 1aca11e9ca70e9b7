// SPDX-License-Identifier: MIT
#include "analysis/lifetime/join_settle.h"

#include <math.h>

#include "analysis/lifetime/datagram_losses.h"
#include "analysis/lifetime/join_stamps.h"
#include "analysis/lifetime/joiner.h"

// By how much a NIC's stamp may be later than the kernel's own: what reading its clock over a bus
// is off by at most; and no NIC keeps a packet back for so long.
#define NIC_CLOCK_ERROR_NS 2000
#define NIC_DELAY_MOST_NS  INT64_C(1000000000)

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

void join_settle_server(struct joiner *joiner, struct lifetime *life)
{
    // What took the hand-off's record took the segment's as well, if that one came after M(a).
    if (!lifetime_has(life, STAMP_HANDOFF) && lifetime_has(life, STAMP_APPLICATION))
        join_check_segment(joiner, life, life->stamp_ns[STAMP_APPLICATION]);
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
// same; of no stack, where its events were not recorded; and of some requests, where a trace stands
// in for these.
static void note_untaken(const struct joiner *joiner, struct lifetime *life)
{
    const struct join_input *in = joiner->in;
    if (in->without_client || life->connection == NO_CONNECTION ||
        (in->events && !in->traced && !has_own_stack(in, life->connection)))
        return;
    life->untaken = 1u << STAMP_HANDOFF | 1u << STAMP_SERVER_TX;
    if (in->traced || joiner->socket_of[life->connection] == NO_CONNECTION)
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

static void count_datagram(struct joiner *joiner, const struct lifetime *life)
{
    struct datagram_losses *lost = &joiner->counts->datagrams_lost;
    const struct datagram_drops *drops = &joiner->dropped[life->request];
    const bool read_late = joiner->in->samples[life->request].sender_high & SAMPLE_READ_LATE;
    enum datagram_loss at = datagram_loss_of(life, drops, read_late, joiner->in->events != NULL,
                                             joiner->in->timeout_ns);
    lost->at[at]++;
    lost->by[at][datagram_loss_by(at, drops)]++;
}

void join_finish_lifetime(struct joiner *joiner, struct lifetime *life)
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
        count_datagram(joiner, life);
}
