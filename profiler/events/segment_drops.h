// SPDX-License-Identifier: MIT
//
// Why the kernel threw segments of watched connections away, in its own words (enum
// skb_drop_reason, Linux 5.17): NETFILTER_DROP is a firewall, QDISC_DROP a full queue.
#ifndef PROFILER_EVENTS_SEGMENT_DROPS_H
#define PROFILER_EVENTS_SEGMENT_DROPS_H

#include <jansson.h>
#include <stdint.h>

#include "profiler/bpf/event_rings.h"

// The running kernel's, by number; "": there is none, or it is no loss.
struct segment_drop_reasons {
    char names[EVENTS_DROP_REASONS][48];
};

// From the kernel's BTF, which whoever arms has read: to read it takes longer than all else that
// there is to do when a capture ends. A name that does not fit is cut.
struct btf;
void segment_drop_reasons_read(struct segment_drop_reasons *out, const struct btf *btf);

// {"NETFILTER_DROP": 12}, without those that are no loss. The caller frees; NULL: no memory.
json_t *segment_drops_json(const struct segment_drop_reasons *reasons,
                           const uint64_t counts[EVENTS_DROP_REASONS]);

#endif
