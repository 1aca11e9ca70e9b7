// SPDX-License-Identifier: MIT
//
// What agents say of how they sent, out of their reports (docs/load-json.md): the part of a verdict
// on their pool that its samples do not show.
#ifndef LOADGEN_AGENTS_WORD_H
#define LOADGEN_AGENTS_WORD_H

#include <stdbool.h>

#include "loadgen/agents/agent_fleet.h"
#include "loadgen/method/load_summary.h"
#include "loadgen/method/method.h"

// Of one run or the rounds of a pool.
struct agents_word {
    struct load_summary troubles; // reasons, of the last run that had any; ok: none had
    enum method_finding client, arrivals;
};

// Adds what they say of a run. first: of the pool's first.
void agents_hear(struct agents_word *word, const struct fleet_outcome *fleet, bool first);

#endif
