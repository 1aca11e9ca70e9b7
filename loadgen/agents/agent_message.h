// SPDX-License-Identifier: MIT
//
// The messages that a controller and its agents exchange over a link (base/link.h; docs/formats.md
// has the conversation). Plans and results are converted here in both directions, so that both ends
// agree. Everything from the other end is checked before it is used.
#ifndef LOADGEN_AGENT_MESSAGE_H
#define LOADGEN_AGENT_MESSAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/connection.h"
#include "base/error.h"
#include "loadgen/agents/agent.h"
#include "loadgen/client/tls_settings.h"
#include "loadgen/engine/engine.h"
#include "workloads/protocols/login.h"
#include "workloads/protocols/redis_cluster.h"
#include "workloads/workload.h"

// What the controller tells one agent to do.
struct agent_plan {
    struct agent_spec spec; // without its place: the controller has already put it there
    char server[300];
    bool cluster;                       // as in struct engine_settings; so is
    char sentinel[SENTINEL_NAME_BYTES]; // empty: none
    struct login login;
    struct tls_settings tls;
    uint64_t duration_ns, timeout_ns, reconnect_ns, session; // as in struct engine_settings
    enum stamp_mode stamps;
    double quantile, confidence; // the target percentile's
};

// The caller owns the JSON; NULL: out of memory.
json_t *agent_plan_to_json(const struct agent_plan *plan, const struct workload *workload);

// ERROR_INPUT if the message is not a valid plan. On success the caller frees the workload.
int agent_plan_from_json(const json_t *json, struct agent_plan *plan, struct workload *workload,
                         struct error *err);

// The figures of an engine's result: not its arrays, but their lengths.
json_t *agent_result_to_json(const struct engine_result *result, bool with_samples);

// The reverse: reads the figures and allocates the arrays (to be filled by agent_unpack_feed).
// most: the greatest number of requests and of connections that is plausible. engine_result_free
// frees.
int agent_result_from_json(const json_t *json, size_t most_samples, size_t most_connections,
                           struct engine_result *result, struct error *err);

// Receives one chunk of the packed bytes; a negative return stops the packing.
typedef int agent_piece_fn(void *context, const void *bytes, size_t count, struct error *err);

// Packs the connections and then the samples, zstd-compressed, into chunks for one FRAME_BYTES
// each.
int agent_pack(const struct engine_result *result, bool with_samples, agent_piece_fn *take_piece,
               void *context, struct error *err);

// Unpacks such frames again.
struct agent_unpack;
struct agent_unpack *agent_unpack_new(struct engine_result *result, struct error *err);
int agent_unpack_feed(struct agent_unpack *unpack, const void *bytes, size_t count,
                      struct error *err);
// ERROR_INPUT: not everything has arrived.
int agent_unpack_end(struct agent_unpack *unpack, struct error *err);
void agent_unpack_free(struct agent_unpack *unpack);

#endif
