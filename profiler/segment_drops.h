// SPDX-License-Identifier: MIT
//
// Why the kernel threw segments of watched connections away, in its own words (enum
// skb_drop_reason, Linux 5.17): NETFILTER_DROP is a firewall, QDISC_DROP a full queue.
#ifndef PROFILER_SEGMENT_DROPS_H
#define PROFILER_SEGMENT_DROPS_H

#include <jansson.h>
#include <stdint.h>

#include "profiler/bpf/event_rings.h"

// {"NETFILTER_DROP": 12} of the running kernel's reasons; those that are no loss are left out. The
// caller frees; NULL: no memory.
json_t *segment_drops_json(const uint64_t counts[EVENTS_DROP_REASONS]);

#endif
