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

// Requests over UDP without an answer, by where they were lost; and by what threw them away.
struct datagram_losses {
    uint64_t at[DATAGRAM_LOSSES];
    uint64_t by[DATAGRAM_LOSSES][EVENT_LOSSES]; // enum event_loss; 0: not known
};

const char *datagram_loss_key(enum datagram_loss loss);   // "server_socket"
const char *datagram_loss_words(enum datagram_loss loss); // "lost on the way to the server"

// What the kernel threw away of a request and its reply, and why (enum event_loss; 0: not known by
// a name).
struct datagram_drops {
    uint8_t which;
    uint8_t request_by, reply_by;
};

// Adds a drop (EVENT_DROPPED) to those of a request; begin with zeros.
void datagram_drop_note(struct datagram_drops *drops, const struct event *drop);

// Where a request that was sent and has no answer was lost. read_late: its client read the reply
// when it had given the request up; has_events: there is a capture of kernel events; timeout_ns:
// for how long its client waited, 0: not known.
enum datagram_loss datagram_loss_of(const struct lifetime *life, const struct datagram_drops *drops,
                                    bool read_late, bool has_events, uint64_t timeout_ns);

// What threw away there what was lost (enum event_loss); 0: not known, or nothing did.
unsigned datagram_loss_by(enum datagram_loss loss, const struct datagram_drops *drops);

// What threw away those that were lost at a place, " (48 by a queueing discipline (QDISC_DROP))";
// "": nobody knows of any. Returns out.
enum { DATAGRAM_LOSS_WORDS = 400 };
const char *datagram_loss_by_words(const struct datagram_losses *losses, enum datagram_loss at,
                                   char out[DATAGRAM_LOSS_WORDS]);

#endif
