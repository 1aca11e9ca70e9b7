// SPDX-License-Identifier: MIT
//
// What became of requests, counted.
#ifndef LOADGEN_ENGINE_SAMPLE_COUNTS_H
#define LOADGEN_ENGINE_SAMPLE_COUNTS_H

#include <stdint.h>

#include "loadgen/client/sample_log.h"

struct sample_counts {
    uint64_t scheduled, sent, answered, misses, error_replies, unsent, timed_out, lost;
    // answered requests by the source of their stamps; one_way: of software, one is the NIC's
    uint64_t stamps_hardware, stamps_software, stamps_user, stamps_one_way;
    uint64_t tx_missing;     // sent, without a TX stamp
    uint64_t last_reply_tsc; // 0: no reply
};

static inline void sample_counts_note(struct sample_counts *counts, const struct sample *sample)
{
    counts->scheduled++;
    counts->sent += sample->sent_tsc != 0;
    counts->tx_missing += sample_lacks_stamp(sample) != 0;
    if (sample->reply_tsc > counts->last_reply_tsc)
        counts->last_reply_tsc = sample->reply_tsc;
    if (sample->status != SAMPLE_ANSWERED) { // as nearly all are
        counts->misses += sample->status == SAMPLE_MISS;
        counts->error_replies += sample->status == SAMPLE_ERROR_REPLY;
        counts->unsent += sample->status == SAMPLE_UNSENT;
        counts->timed_out += sample->status == SAMPLE_TIMED_OUT;
        counts->lost += sample->status == SAMPLE_LOST;
        if (!sample_is_answered(sample))
            return;
    }
    counts->answered++;
    if (!sample->tx_source && !sample->rx_source) {
        counts->stamps_user++;
        return;
    }
    const int stamped =
        sample->tx_source && sample->tx_source != STAMP_LEFT_OUT && sample->rx_source;
    const int tx = sample->tx_source == STAMP_HARDWARE, rx = sample->rx_source == STAMP_HARDWARE;
    counts->stamps_hardware += tx && rx;
    counts->stamps_one_way += stamped && tx != rx;
    counts->stamps_software += stamped && !(tx && rx);
    counts->stamps_user += !stamped;
}

static inline void sample_counts_add(struct sample_counts *into, const struct sample_counts *more)
{
    into->scheduled += more->scheduled;
    into->sent += more->sent;
    into->answered += more->answered;
    into->misses += more->misses;
    into->error_replies += more->error_replies;
    into->unsent += more->unsent;
    into->timed_out += more->timed_out;
    into->lost += more->lost;
    into->stamps_hardware += more->stamps_hardware;
    into->stamps_software += more->stamps_software;
    into->stamps_user += more->stamps_user;
    into->stamps_one_way += more->stamps_one_way;
    into->tx_missing += more->tx_missing;
    if (more->last_reply_tsc > into->last_reply_tsc)
        into->last_reply_tsc = more->last_reply_tsc;
}

#endif
