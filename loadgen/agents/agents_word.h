// SPDX-License-Identifier: MIT
//
// What the agents' own reports (docs/load-json.md) say about how well they sent: the part of a
// verdict on their pool that cannot be seen in its samples.
#ifndef LOADGEN_AGENTS_WORD_H
#define LOADGEN_AGENTS_WORD_H

#include <stdbool.h>

#include "loadgen/agents/agent_fleet.h"
#include "loadgen/method/load_summary.h"
#include "loadgen/method/method.h"

// For one round, or all rounds of a pool.
struct agents_word {
    struct load_summary troubles; // reasons, of the last round that had any; ok: none had
    enum method_finding client, arrivals;
};

// Adds the reports of one round. first: the pool's first round.
void agents_hear(struct agents_word *word, const struct fleet_outcome *fleet, bool first);

#endif
