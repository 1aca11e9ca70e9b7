// SPDX-License-Identifier: MIT
//
// Between which hops requests over UDP were lost. Of a stream what was lost is sent again, and over
// UDP it is not: the hop that saw a request's datagram last, or its reply's, is the one behind
// which it was lost.
#ifndef ANALYSIS_HOPS_HOP_LOSSES_H
#define ANALYSIS_HOPS_HOP_LOSSES_H

#include <stdint.h>

#include "analysis/hops/hop_sightings.h"
#include "analysis/hops/hop_stays.h"
#include "base/array.h"

// Requests over UDP without an answer, by which hop saw their datagram, or the reply's, last.
struct hop_loss {
    enum hop_way way;
    uint8_t after, before; // that hop, and the one that follows it; HOPS_MAX: none does
    uint64_t requests;
};

struct hop_losses {
    struct ARRAY_OF(struct hop_loss) places; // by way and hop
    uint64_t unseen;                         // of the same: by no hop
};

// `order` is of those that were answered (hop_stays_find). The caller frees with hop_losses_free,
// also after an error: -1, no memory.
int hop_losses_find(const struct hop_sightings *sightings, const struct hop_order *order,
                    struct hop_losses *out);
void hop_losses_free(struct hop_losses *losses);

#endif
