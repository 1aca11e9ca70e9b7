// SPDX-License-Identifier: MIT
#include "analysis/lifetime/join.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/lifetime/joiner.h"

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

// TCP remembers the time of the socket's last segment only: it is this request's if it lies between
// M(n) and M(a). The receiving core was not recorded; since events of the thread's own core were
// missing when the bytes came, it is taken to be that core.
static void take_note_of_processing(struct joiner *joiner, struct lifetime *life)
{
    int64_t processed = joiner->processed_ns[life->request];
    if (lifetime_has(life, STAMP_HANDOFF) || processed == NO_TIME ||
        !lifetime_has(life, STAMP_NIC) || !lifetime_has(life, STAMP_APPLICATION) ||
        processed < life->stamp_ns[STAMP_NIC] || processed > life->stamp_ns[STAMP_APPLICATION])
        return;
    set_stamp(joiner, life, STAMP_HANDOFF, processed, life->stamp_core[STAMP_APPLICATION]);
    life->fallback |= 1u << STAMP_HANDOFF;
    joiner->counts->handoffs_recovered++;
}

// What the server's stamps say among themselves.
static void settle_server(struct joiner *joiner, struct lifetime *life)
{
    // What took the hand-off's record took the segment's as well, if that one came after M(a).
    if (!lifetime_has(life, STAMP_HANDOFF) && lifetime_has(life, STAMP_APPLICATION))
        join_check_segment(joiner, life, life->stamp_ns[STAMP_APPLICATION]);
    take_arrival(joiner, life);
    take_note_of_processing(joiner, life);
}

static void finish_lifetime(struct joiner *joiner, struct lifetime *life)
{
    check_retransmission(joiner, life);
    lifetime_compute_stages(life, joiner->error_ns, &joiner->counts->disorder);
    if (!lifetime_has(life, STAMP_INTENDED) || !lifetime_has(life, STAMP_REPLY_READ) ||
        !lifetime_has(life, STAMP_SEND))
        life->state = LIFETIME_UNANSWERED;
    else if (life->connection == NO_CONNECTION ||
             (joiner->socket_of[life->connection] == NO_CONNECTION &&
              joiner->calls_of[life->connection] == NO_CONNECTION))
        life->state = LIFETIME_NO_CONNECTION;
    else
        life->state = (uint8_t)lifetime_state_of_stamps(life);
}

static int64_t *make_times(size_t count)
{
    int64_t *times = malloc((count + 1) * sizeof *times);
    for (size_t i = 0; times && i < count; i++)
        times[i] = NO_TIME;
    return times;
}

int join_lifetimes(const struct join_input *input, struct lifetime_array *out,
                   struct join_counts *counts, struct error *err)
{
    *out = (struct lifetime_array){0};
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
        joiner.processed_ns = make_times(input->sample_count);
        result = joiner.segment_ns && joiner.arrival_ns && joiner.processed_ns
                     ? join_pile_requests(&joiner)
                     : -1;
    }
    if (result == 0)
        result = join_pile_server(&joiner);
    if (result == 0)
        result = join_match_tables(&joiner);
    if (result == 0) {
        for (size_t c = 0; c < input->client_connection_count; c++)
            join_walk_connection(&joiner, c);
        for (size_t i = 0; i < out->count; i++)
            settle_server(&joiner, &out->items[i]);
        if (input->client_clock)
            result = two_hosts_relate(out->items, out->count, joiner.error_ns, &counts->hosts, err);
        for (size_t i = 0; i < out->count; i++)
            finish_lifetime(&joiner, &out->items[i]);
    }
    piles_free(&joiner.requests);
    for (int kind = 0; kind < PASSAGE_KINDS; kind++)
        piles_free(&joiner.passages[kind]);
    free(joiner.segment_ns);
    free(joiner.arrival_ns);
    free(joiner.processed_ns);
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
