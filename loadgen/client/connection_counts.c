// SPDX-License-Identifier: MIT
#include "loadgen/client/connection_counts.h"

#include <string.h>

const char *const connection_loss_names[LOSS_REASONS] = {
    [LOSS_CLOSED] = "closed",         [LOSS_RESET] = "reset", [LOSS_MALFORMED] = "malformed",
    [LOSS_UNANSWERED] = "unanswered", [LOSS_OTHER] = "other",
};

static uint64_t time_earlier(uint64_t a, uint64_t b)
{
    return !a || (b && b < a) ? b : a;
}

static void add_fills(struct fill_counts *all, const struct fill_counts *more)
{
    all->begun += more->begun;
    timed_count_add(&all->stored, &more->stored);
    all->refused += more->refused;
    all->failed += more->failed;
    all->lost += more->lost;
    all->left_out += more->left_out;
}

static void add_batches(struct batch_counts *all, const struct batch_counts *more)
{
    all->calls += more->calls;
    all->largest = more->largest > all->largest ? more->largest : all->largest;
    timed_count_add(&all->waited, &more->waited);
}

static void add_redirections(struct redirection_counts *all, const struct redirection_counts *more)
{
    all->moved += more->moved;
    all->asked += more->asked;
    all->retried += more->retried;
    all->unknown += more->unknown;
    all->given_up += more->given_up;
    all->unreachable += more->unreachable;
    all->connections += more->connections;
    timed_count_add(&all->failovers, &more->failovers);
    all->first_failover_tsc = time_earlier(all->first_failover_tsc, more->first_failover_tsc);
    all->map_reads += more->map_reads;
    all->map_failures += more->map_failures;
}

void connection_counts_add(struct connection_counts *all, const struct connection_counts *more)
{
    for (unsigned kind = 0; kind < REPLY_KINDS; kind++)
        all->replies[kind] += more->replies[kind];
    for (unsigned reason = 0; reason < LOSS_REASONS; reason++)
        all->lost[reason] += more->lost[reason];
    all->moved += more->moved;
    all->repeated += more->repeated;
    all->spelled_out += more->spelled_out;
    all->mismatched += more->mismatched;
    all->wrong_values += more->wrong_values;
    all->unexpected += more->unexpected;
    all->in_flight += more->in_flight;
    all->broken_elsewhere += more->broken_elsewhere;
    if (more->broken && !all->broken) {
        all->first_break = more->first_break;
        memcpy(all->broken_at, more->broken_at, sizeof all->broken_at);
    } else if (strcmp(all->broken_at, more->broken_at) != 0) {
        all->broken_elsewhere += more->broken - more->broken_elsewhere;
    }
    if (!all->first_fault.kind)
        all->first_fault = more->first_fault;
    if (!all->first_refusal.kind)
        all->first_refusal = more->first_refusal;
    if (!all->first_failure.kind)
        all->first_failure = more->first_failure;
    all->ended += more->ended;
    all->broken += more->broken;
    all->reconnects += more->reconnects;
    all->reconnects_failed += more->reconnects_failed;
    all->portless += more->portless;
    all->given_up += more->given_up;
    all->first_end_tsc = time_earlier(all->first_end_tsc, more->first_end_tsc);
    if (more->last_reconnect_tsc > all->last_reconnect_tsc)
        all->last_reconnect_tsc = more->last_reconnect_tsc;
    all->windows_shut += more->windows_shut;
    all->streams_spent += more->streams_spent;
    all->ends_awaited += more->ends_awaited;
    all->rx_missing += more->rx_missing;
    all->rx_coalesced += more->rx_coalesced;
    all->foreign_errors += more->foreign_errors;
    all->datagrams_refused += more->datagrams_refused;
    all->datagrams_malformed += more->datagrams_malformed;
    all->datagrams_surplus += more->datagrams_surplus;
    all->datagrams_late += more->datagrams_late;
    all->datagrams_overrun += more->datagrams_overrun;
    all->datagrams_unassembled += more->datagrams_unassembled;
    all->tx_hardware += more->tx_hardware;
    all->tx_software += more->tx_software;
    all->stamps_unknown += more->stamps_unknown;
    all->stamps_late += more->stamps_late;
    all->stamps_double += more->stamps_double;
    add_fills(&all->fills, &more->fills);
    all->multigets.answered += more->multigets.answered;
    all->multigets.keys += more->multigets.keys;
    all->multigets.missing += more->multigets.missing;
    add_batches(&all->batches, &more->batches);
    all->sessions.ended += more->sessions.ended;
    timed_count_add(&all->sessions.opening, &more->sessions.opening);
    add_redirections(&all->redirections, &more->redirections);
    timed_count_add(&all->handshakes, &more->handshakes);
    timed_count_add(&all->resumed, &more->resumed);
    if (!all->tls_suite[0])
        memcpy(all->tls_suite, more->tls_suite, sizeof all->tls_suite);
}
