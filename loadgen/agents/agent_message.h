// SPDX-License-Identifier: MIT
//
// What a controller and its agents say to one another over a link (base/link.h; docs/formats.md has
// the conversation). Plans and results go both ways through here, so that the two ends agree. What
// comes from the other end is checked before it is believed.
#ifndef LOADGEN_AGENT_MESSAGE_H
#define LOADGEN_AGENT_MESSAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/connection.h"
#include "base/error.h"
#include "loadgen/agents/agent.h"
#include "loadgen/engine/engine.h"
#include "workloads/workload.h"

// What one agent is told to do.
struct agent_plan {
    struct agent_spec spec; // without its place: the controller has put it there
    char server[300];
    uint64_t duration_ns, timeout_ns, reconnect_ns; // as in struct engine_settings
    enum stamp_mode stamps;
    double quantile, confidence; // the target percentile's
};

// The caller owns the JSON; NULL: out of memory.
json_t *agent_plan_to_json(const struct agent_plan *plan, const struct workload *workload);

// ERROR_INPUT where the message is not such a plan. On success the caller frees the workload.
int agent_plan_from_json(const json_t *json, struct agent_plan *plan, struct workload *workload,
                         struct error *err);

// The figures of an engine's run, without the arrays but with their lengths.
json_t *agent_result_to_json(const struct engine_result *result, bool with_samples);

// The same back, and room for the arrays (to be filled by agent_unpack_feed). most: the greatest
// number of requests and of connections that can be right. engine_result_free frees.
int agent_result_from_json(const json_t *json, size_t most_samples, size_t most_connections,
                           struct engine_result *result, struct error *err);

// Takes a piece of what is packed; a negative return ends the packing.
typedef int agent_piece_fn(void *context, const void *bytes, size_t count, struct error *err);

// Packs the connections and then the samples, zstd-compressed, into pieces, each for a FRAME_BYTES.
int agent_pack(const struct engine_result *result, bool with_samples, agent_piece_fn *take_piece,
               void *context, struct error *err);

// Takes them out of such frames.
struct agent_unpack;
struct agent_unpack *agent_unpack_new(struct engine_result *result, struct error *err);
int agent_unpack_feed(struct agent_unpack *unpack, const void *bytes, size_t count,
                      struct error *err);
// ERROR_INPUT: not all has come.
int agent_unpack_end(struct agent_unpack *unpack, struct error *err);
void agent_unpack_free(struct agent_unpack *unpack);

#endif
