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

#endif
