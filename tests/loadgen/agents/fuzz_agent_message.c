// SPDX-License-Identifier: MIT
//
// Whatever the other end of an agent's link sends: a plan is refused or can be sent on and read
// again; a result is refused or its samples, when all have come, are of its connections.
//
// The input: whether it is a plan, whether its values replace some of a right message or stand
// alone, and whether the samples are yet to be compressed (bits of the first byte); how the samples
// are split; two bytes of the JSON's length; the JSON; the samples.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "loadgen/agents/agent_message.h"
#include "loadgen/client/sample_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { IS_PLAN = 1, ALONE = 2, COMPRESS = 4 };
enum { HEAD_BYTES = 4, SAMPLES_MOST = 64, CONNECTIONS_MOST = 8, COMPRESSED_BYTES = 1 << 16 };

static json_t *right_plan(void)
{
    const struct agent_plan plan = {
        .spec = {.name = "one",
                 .kind = AGENT_SYMMETRIC,
                 .rate = 1000,
                 .connections = 4,
                 .threads = 1,
                 .depth = 8,
                 .seed = 1},
        .server = "127.0.0.1:11211",
        .duration_ns = 1000000000,
        .timeout_ns = 1000000000,
        .quantile = 0.99,
        .confidence = 0.95,
    };
    struct workload workload;
    workload_defaults(&workload);
    json_t *json = agent_plan_to_json(&plan, &workload);
    workload_free(&workload);
    return json;
}

static json_t *right_result(void)
{
    const struct engine_result result = {.sample_count = 2,
                                         .connection_count = 1,
                                         .connections_at_once = 1,
                                         .thread_count = 1,
                                         .depth = 8,
                                         .tsc_hz = 2e9,
                                         .start_tsc = 1,
                                         .end_tsc = 2};
    return agent_result_to_json(&result, true);
}

static void fuzz_plan(const json_t *json)
{
    struct agent_plan plan, again;
    struct workload workload, other;
    struct error err;
    if (agent_plan_from_json(json, &plan, &workload, &err) < 0)
        return;
    json_t *copy = agent_plan_to_json(&plan, &workload);
    if (!copy || agent_plan_from_json(copy, &again, &other, &err) < 0 ||
        strcmp(plan.server, again.server) != 0 || plan.spec.rate != again.spec.rate)
        abort();
    json_decref(copy);
    workload_free(&workload);
    workload_free(&other);
}

static void fuzz_result(const json_t *json, const uint8_t *bytes, size_t count, size_t step)
{
    struct engine_result result;
    struct error err;
    int status = agent_result_from_json(json, SAMPLES_MOST, CONNECTIONS_MOST, &result, &err);
    if (status < 0)
        return;
    struct agent_unpack *unpack = agent_unpack_new(&result, &err);
    if (!unpack)
        abort();
    for (size_t at = 0; at < count && status == 0; at += step)
        status = agent_unpack_feed(unpack, bytes + at, count - at < step ? count - at : step, &err);
    if (status == 0 && agent_unpack_end(unpack, &err) == 0)
        for (size_t i = 0; i < result.sample_count; i++)
            if (result.samples[i].connection > result.connection_count)
                abort();
    agent_unpack_free(unpack);
    engine_result_free(&result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEAD_BYTES)
        return 0;
    size_t left = size - HEAD_BYTES, json_bytes = data[2] | (size_t)data[3] << 8;
    if (json_bytes > left)
        json_bytes = left;
    json_t *json = json_loadb((const char *)data + HEAD_BYTES, json_bytes, 0, NULL);
    if (!(data[0] & ALONE)) {
        json_t *right = data[0] & IS_PLAN ? right_plan() : right_result();
        json_object_update(right, json);
        json_decref(json);
        json = right;
    }
    const uint8_t *samples = data + HEAD_BYTES + json_bytes;
    left -= json_bytes;
    uint8_t *compressed = NULL;
    if (data[0] & COMPRESS && (compressed = malloc(COMPRESSED_BYTES))) {
        left = ZSTD_compress(compressed, COMPRESSED_BYTES, samples, left, 1);
        samples = compressed;
        if (ZSTD_isError(left))
            left = 0;
    }
    if (data[0] & IS_PLAN)
        fuzz_plan(json);
    else
        fuzz_result(json, samples, left, data[1] + 1u);
    free(compressed);
    json_decref(json);
    return 0;
}
