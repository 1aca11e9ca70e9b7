// SPDX-License-Identifier: MIT
//
// One load run from its plan to its result: drawn, loaded, summed up and judged; for a given time,
// or in rounds until the method is satisfied. What stands above one run (a sweep, a search) calls
// load_run_once for each of its own.
#ifndef LOADGEN_LOAD_RUN_H
#define LOADGEN_LOAD_RUN_H

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "loadgen/engine.h"
#include "loadgen/load_plan.h"
#include "loadgen/load_summary.h"
#include "loadgen/method.h"

struct load_outcome {
    struct engine_result result;
    struct load_summary summary; // with the method's reasons
    struct method method;
    json_t *agents; // what each agent did (docs/load-json.md); NULL: there were none
};

// What a run may differ in from its plan.
struct load_point {
    double rate; // INFINITY: a closed loop
    uint64_t duration_ns, seed;
};

// Loads once for a given time and judges. Fails only when the load could not begin, or out of
// memory. The caller frees the outcome, also after an error.
int load_run_once(const struct load_plan *plan, const struct load_point *point,
                  struct load_outcome *outcome, struct error *err);
void load_outcome_free(struct load_outcome *outcome);

// Refuses so many requests in one run that their samples would not fit into memory, before the
// kernel's out-of-memory killer does. `lower`: the options that make it less.
int load_check_memory(const struct load_plan *plan, double rate, uint64_t duration_ns,
                      const char *lower, struct error *err);

// What `taillight load --json` says of a run. The caller owns it; NULL: out of memory.
json_t *load_outcome_json(const struct load_plan *plan, const struct load_point *point,
                          const struct load_outcome *outcome);

// The command's end: ERROR_FAILED when nothing was answered, ERROR_INCONCLUSIVE with the first
// reason when it cannot be trusted, else 0.
int load_verdict(const struct load_summary *summary, struct error *err);

// Writes samples.tlog and connections.tlog into a folder.
int load_write_logs(const char *directory, const struct engine_result *result,
                    const struct connection *connections, uint32_t connection_count,
                    struct error *err);

// Creates a folder, unless it is there.
int load_make_directory(const char *path, struct error *err);

// The whole of the command: a run as the plan has it, its files and its report.
int load_run(struct load_plan *plan, struct error *err);

// Prints a document on stdout and releases it; NULL is out of memory.
int load_print_json(json_t *json, struct error *err);

#endif
