// SPDX-License-Identifier: MIT
//
// The outcome of one load, whoever made it (this process's engine, its agents, a point of a curve):
// its JSON document, its files, and whether the command that asked for it succeeded.
#ifndef LOADGEN_LOAD_OUTCOME_H
#define LOADGEN_LOAD_OUTCOME_H

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"
#include "loadgen/engine/engine.h"
#include "loadgen/load_plan.h"
#include "loadgen/method/load_summary.h"
#include "loadgen/method/method.h"
#include "loadgen/method/method_rounds.h"

struct load_outcome {
    struct engine_result result;
    struct load_summary summary; // with the method's reasons
    struct method method;
    json_t *agents; // what each agent did (docs/load-json.md); NULL without agents
};

// What can vary between loads of one plan.
struct load_point {
    double rate; // INFINITY: a closed loop
    uint64_t duration_ns, seed;
    uint64_t memory_bytes; // that its requests may take, being more than fit; 0: all are kept
};

void load_outcome_free(struct load_outcome *outcome);

// How all documents of loads are written.
enum { LOAD_JSON = JSON_INDENT(2) | JSON_REAL_PRECISION(9) };

// The document of `taillight load --json`. The caller owns it; NULL: out of memory.
json_t *load_outcome_json(const struct load_plan *plan, const struct load_point *point,
                          const struct load_outcome *outcome);

// The same for any result with its verdict; rounds are NULL for a load with a duration, agents are
// NULL for a load without agents.
json_t *load_result_json(const struct engine_result *result, const struct load_facts *facts,
                         const struct load_summary *summary, const struct method *method,
                         const struct rounds *rounds, json_t *agents);

// The result of the command: ERROR_FAILED when nothing was answered, ERROR_INCONCLUSIVE with the
// first reason when it cannot be trusted, else 0.
int load_verdict(const struct load_summary *summary, struct error *err);

// Writes samples.tlog and connections.tlog into a folder. In bounded memory the former is there
// already, or the error is why it is not whole.
int load_write_logs(const char *directory, const struct engine_result *result,
                    const struct connection *connections, uint32_t connection_count,
                    struct error *err);

// Writes what the options ask for: the logs (--samples) and the percentiles (--hgrm).
int load_write_files(const struct load_options *options, const struct engine_result *result,
                     const struct connection *connections, uint32_t connection_count,
                     struct error *err);

// Writes the document of a load, or of several, by that name where the options ask for it (--out),
// and prints it where they do (--json), also when it cannot be written: a load is not made twice.
// Takes the document; NULL: there was no memory for it.
int load_document_finish(const struct load_options *options, json_t *document, const char *name,
                         struct error *err);

// Makes the folders that the options name and finds out whether what they ask for can be written
// there: better before a load than after it.
int load_try_files(const struct load_options *options, struct error *err);

// Creates a folder, unless it exists.
int load_make_directory(const char *path, struct error *err);

#endif
