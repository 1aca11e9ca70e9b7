// SPDX-License-Identifier: MIT
//
// One load by several agents, from its plan to the same figures as for one process: pooled,
// summarised, and judged both as a pool and agent by agent.
#ifndef LOADGEN_LOAD_AGENTS_H
#define LOADGEN_LOAD_AGENTS_H

#include <jansson.h>
#include <stdio.h>

#include "base/error.h"
#include "loadgen/load_outcome.h"
#include "loadgen/load_plan.h"
#include "loadgen/method/load_saturation.h"
#include "loadgen/method/method_rounds.h"

// As load_run_once, for a plan with agents. outcome->agents is the member "agents" of
// docs/load-json.md. Fails when the load could not begin or no measuring agent finished it.
int load_agents_once(const struct load_plan *plan, const struct load_point *point,
                     struct load_outcome *outcome, struct error *err);

// Loads with agents until the method is satisfied, as rounds_run does with this process's engine.
// *agents is the document above for the last round; the caller owns it and frees the rounds.
int load_agents_rounds(const struct load_plan *plan, struct rounds *rounds, json_t **agents,
                       struct error *err);

// What a point of a curve says beside what was measured: rates and counts of all agents, also those
// that only load, and who was saturated, by their own reports: the server to any of them, else any
// of them. Sets these members of `summary`.
void load_agents_point(const json_t *agents, struct load_summary *summary,
                       struct load_saturation *saturation);

// Prints that document for people.
void load_agents_print(const json_t *agents, FILE *out);

#endif
