// SPDX-License-Identifier: MIT
//
// Where requests over UDP that were not answered were lost: by their last stamp, and by what the
// kernel says of datagrams that it threw away.
#ifndef ANALYSIS_LIFETIME_DATAGRAM_LOSSES_H
#define ANALYSIS_LIFETIME_DATAGRAM_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/lifetime/lifetime.h"
#include "profiler/bpf/event_log.h"

enum datagram_loss {
#define DATAGRAM_LOSS(NAME, key, words, means) DATAGRAM_LOST_##NAME,
#include "analysis/lifetime/lifetimes.tbl.h"
    DATAGRAM_LOSSES
};

const char *datagram_loss_key(enum datagram_loss loss);   // "server_socket"
const char *datagram_loss_words(enum datagram_loss loss); // "lost on the way to the server"

// Adds a drop (EVENT_DROPPED) to those of a request and its reply; begin with 0.
void datagram_drop_note(uint8_t *drops, const struct event *drop);

// Where a request that was sent and has no answer was lost. has_events: there is a capture of
// kernel events; timeout_ns: for how long its client waited, 0: not known.
enum datagram_loss datagram_loss_of(const struct lifetime *life, uint8_t drops, bool has_events,
                                    uint64_t timeout_ns);

#endif
