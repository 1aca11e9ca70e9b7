// SPDX-License-Identifier: MIT
#include "loadgen/agents/agent_message.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zstd.h>

enum { PIECE_BYTES = 256 << 10, COMPRESSION_LEVEL = 1 };

// --- plans ---------------------------------------------------------------------------------------

json_t *agent_plan_to_json(const struct agent_plan *plan, const struct workload *workload)
{
    const struct agent_spec *spec = &plan->spec;
    char *yaml = workload_to_yaml(workload);
    json_t *json =
        yaml ? json_pack("{s:s,s:s,s:i,s:s,s:s,s:f,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:i,s:f,s:f}",
                         "type", "plan", "name", spec->name, "kind", (int)spec->kind, "server",
                         plan->server, "workload", yaml, "rate", spec->rate, "connections",
                         (json_int_t)spec->connections, "threads", (json_int_t)spec->threads,
                         "depth", (json_int_t)spec->depth, "seed", (json_int_t)spec->seed,
                         "duration_ns", (json_int_t)plan->duration_ns, "timeout_ns",
                         (json_int_t)plan->timeout_ns, "reconnect_ns",
                         (json_int_t)plan->reconnect_ns, "stamps", (int)plan->stamps, "quantile",
                         plan->quantile, "confidence", plan->confidence)
             : NULL;
    free(yaml);
    return json;
}

static int check_plan(const struct agent_plan *plan, int kind, int stamps, struct error *err)
{
    const struct agent_spec *spec = &plan->spec;
    bool right = kind >= 0 && kind <= AGENT_SYMMETRIC && stamps >= 0 &&
                 stamps <= STAMP_MODE_HARDWARE && spec->rate > 0 && spec->connections >= 1 &&
                 spec->connections <= ENGINE_IN_FLIGHT_CAP && spec->depth <= ENGINE_IN_FLIGHT_CAP &&
                 spec->threads >= 1 && spec->threads <= spec->connections &&
                 plan->duration_ns > 0 && plan->quantile > 0 && plan->quantile < 1 &&
                 plan->confidence >= 0.5 && plan->confidence < 1;
    return right ? 0 : error_set(err, ERROR_INPUT, "the plan that came cannot be: a value in it");
}

int agent_plan_from_json(const json_t *json, struct agent_plan *plan, struct workload *workload,
                         struct error *err)
{
    const char *name, *server, *yaml;
    json_int_t connections, threads, depth, seed, duration_ns, timeout_ns, reconnect_ns;
    int kind, stamps;
    json_error_t where;
    *plan = (struct agent_plan){.stamps = STAMP_MODE_AUTO};
    if (json_unpack_ex((json_t *)(uintptr_t)json, &where, 0,
                       "{s:s,s:i,s:s,s:s,s:F,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:i,s:F,s:F}", "name",
                       &name, "kind", &kind, "server", &server, "workload", &yaml, "rate",
                       &plan->spec.rate, "connections", &connections, "threads", &threads, "depth",
                       &depth, "seed", &seed, "duration_ns", &duration_ns, "timeout_ns",
                       &timeout_ns, "reconnect_ns", &reconnect_ns, "stamps", &stamps, "quantile",
                       &plan->quantile, "confidence", &plan->confidence) < 0)
        return error_set(err, ERROR_INPUT, "the plan that came cannot be: %s", where.text);
    snprintf(plan->spec.name, sizeof plan->spec.name, "%s", name);
    snprintf(plan->server, sizeof plan->server, "%s", server);
    plan->spec.connections = (uint64_t)connections;
    plan->spec.threads = (uint64_t)threads;
    plan->spec.depth = (uint64_t)depth;
    plan->spec.seed = (uint64_t)seed;
    plan->duration_ns = (uint64_t)duration_ns;
    plan->timeout_ns = (uint64_t)timeout_ns;
    plan->reconnect_ns = (uint64_t)reconnect_ns;
    if (check_plan(plan, kind, stamps, err) < 0)
        return -ERROR_INPUT;
    plan->spec.kind = (enum agent_kind)kind;
    plan->stamps = (enum stamp_mode)stamps;
    workload_defaults(workload);
    int status = workload_parse("the plan's workload", yaml, strlen(yaml), workload, err);
    if (status < 0)
        workload_free(workload);
    return status;
}

// --- the figures of a result ---------------------------------------------------------------------

// One table is used in both directions.
enum field_type { FIELD_U64, FIELD_U32, FIELD_BOOL, FIELD_DOUBLE, FIELD_ERROR };
struct field {
    const char *key;
    enum field_type type;
    size_t offset;
};
#define FIELD(type, member)                                                                        \
    {                                                                                              \
#member, FIELD_##type, offsetof(struct engine_result, member)                              \
    }
static const struct field fields[] = {
    FIELD(U64, sample_count),
    FIELD(U32, connection_count),
    FIELD(U32, connections_at_once),
    FIELD(U32, thread_count),
    FIELD(U32, depth),
    FIELD(BOOL, depth_is_cap),
    FIELD(BOOL, kernel_stamps),
    FIELD(BOOL, hardware_stamps),
    FIELD(U64, hardware_error_ns),
    FIELD(ERROR, hardware_why),
    FIELD(ERROR, stamps_why),
    FIELD(ERROR, busy_poll_why),
    FIELD(U64, late_tsc),
    FIELD(DOUBLE, tsc_hz),
    FIELD(U64, start_tsc),
    FIELD(U64, end_tsc),
    FIELD(U64, paused_tsc),
    FIELD(U64, delayed_by_depth),
    FIELD(U64, cpu_ns),
    FIELD(U64, spin_tsc),
    FIELD(U64, stamps_missing),
    FIELD(U64, stamps_unknown),
    FIELD(U64, counts.mismatched),
    FIELD(U64, counts.unexpected),
    FIELD(U64, counts.in_flight),
    FIELD(U64, counts.in_flight_max),
    FIELD(U64, counts.ended),
    FIELD(U64, counts.broken),
    FIELD(U64, counts.moved),
    FIELD(U64, counts.repeated),
    FIELD(U64, counts.reconnects),
    FIELD(U64, counts.reconnects_failed),
    FIELD(U64, counts.given_up),
    FIELD(U64, counts.first_end_tsc),
    FIELD(U64, counts.last_reconnect_tsc),
    FIELD(U64, counts.rx_missing),
    FIELD(U64, counts.rx_coalesced),
    FIELD(U64, counts.foreign_errors),
    FIELD(U64, counts.datagrams_refused),
    FIELD(U64, counts.datagrams_malformed),
    FIELD(U64, counts.datagrams_surplus),
    FIELD(U64, counts.datagrams_unassembled),
    FIELD(U64, counts.tx_hardware),
    FIELD(U64, counts.tx_software),
    FIELD(U64, counts.stamps_unknown),
    FIELD(ERROR, counts.first_break),
};
enum { FIELDS = sizeof fields / sizeof *fields };

static json_t *field_to_json(const struct field *field, const void *at)
{
    switch (field->type) {
    case FIELD_U64:
        return json_integer((json_int_t) * (const uint64_t *)at);
    case FIELD_U32:
        return json_integer((json_int_t) * (const uint32_t *)at);
    case FIELD_BOOL:
        return json_boolean(*(const bool *)at);
    case FIELD_DOUBLE:
        return json_real(*(const double *)at);
    case FIELD_ERROR:
        return json_string(((const struct error *)at)->text);
    }
    return NULL;
}

static bool field_from_json(const struct field *field, const json_t *value, void *at)
{
    json_int_t integer = json_integer_value(value);
    switch (field->type) {
    case FIELD_U64:
        *(uint64_t *)at = (uint64_t)integer;
        return json_is_integer(value);
    case FIELD_U32:
        *(uint32_t *)at = (uint32_t)integer;
        return json_is_integer(value) && integer >= 0 && integer <= UINT32_MAX;
    case FIELD_BOOL:
        *(bool *)at = json_is_true(value);
        return json_is_boolean(value);
    case FIELD_DOUBLE:
        *(double *)at = json_number_value(value);
        return json_is_number(value);
    case FIELD_ERROR:
        if (json_string_length(value))
            error_set(at, ERROR_FAILED, "%s", json_string_value(value));
        return json_is_string(value);
    }
    return false;
}

static json_t *counts_to_json(const uint64_t *counts, unsigned count)
{
    json_t *array = json_array();
    for (unsigned i = 0; i < count; i++)
        json_array_append_new(array, json_integer((json_int_t)counts[i]));
    return array;
}

static bool counts_from_json(const json_t *array, uint64_t *counts, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        counts[i] = (uint64_t)json_integer_value(json_array_get(array, i));
    return json_array_size(array) == count;
}

json_t *agent_result_to_json(const struct engine_result *result, bool with_samples)
{
    json_t *json = json_object();
    for (unsigned i = 0; i < FIELDS; i++)
        json_object_set_new(json, fields[i].key,
                            field_to_json(&fields[i], (const char *)result + fields[i].offset));
    json_object_set_new(json, "replies", counts_to_json(result->counts.replies, REPLY_KINDS));
    json_object_set_new(json, "lost", counts_to_json(result->counts.lost, LOSS_REASONS));
    json_object_set_new(json, "end", json_integer(result->end));
    if (!with_samples)
        json_object_set_new(json, "sample_count", json_integer(0));
    return json;
}

// Uses the kind of memory that engine_result_free releases.
static int make_room(struct engine_result *result, struct error *err)
{
    result->sample_bytes = (result->sample_count + 1) * sizeof *result->samples;
    void *memory = mmap(NULL, result->sample_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    result->connections = calloc(result->connection_count + 1u, sizeof *result->connections);
    result->samples = memory == MAP_FAILED ? NULL : memory;
    if (result->samples && result->connections)
        return 0;
    return error_set(err, ERROR_FAILED, "out of memory for %zu samples", result->sample_count);
}

int agent_result_from_json(const json_t *json, size_t most_samples, size_t most_connections,
                           struct engine_result *result, struct error *err)
{
    *result = (struct engine_result){.end = ENGINE_COMPLETE};
    const json_t *end = json_object_get(json, "end");
    struct connection_counts *counts = &result->counts;
    for (unsigned i = 0; i < FIELDS; i++)
        if (!field_from_json(&fields[i], json_object_get(json, fields[i].key),
                             (char *)result + fields[i].offset))
            return error_set(err, ERROR_INPUT, "the result that came has no right \"%s\"",
                             fields[i].key);
    bool right = json_is_integer(end) && json_integer_value(end) >= 0 &&
                 json_integer_value(end) <= ENGINE_INTERRUPTED &&
                 counts_from_json(json_object_get(json, "replies"), counts->replies, REPLY_KINDS) &&
                 counts_from_json(json_object_get(json, "lost"), counts->lost, LOSS_REASONS) &&
                 result->tsc_hz > 1e6 && result->tsc_hz < 1e12 &&
                 result->sample_count <= most_samples &&
                 result->connection_count <= most_connections && result->depth > 0 &&
                 result->thread_count > 0 && result->start_tsc <= result->end_tsc;
    if (!right)
        return error_set(err, ERROR_INPUT, "the result that came cannot be: a value in it");
    result->end = (enum engine_end)json_integer_value(end);
    int status = make_room(result, err);
    if (status < 0)
        engine_result_free(result);
    return status;
}

// --- the arrays of a result ----------------------------------------------------------------------

struct packer {
    ZSTD_CCtx *compressor;
    char *piece;
    agent_piece_fn *take_piece;
    void *context;
};

static int pack_part(const struct packer *packer, const void *bytes, size_t count, bool last,
                     struct error *err)
{
    ZSTD_inBuffer in = {bytes, count, 0};
    size_t left;
    do {
        ZSTD_outBuffer out = {packer->piece, PIECE_BYTES, 0};
        left = ZSTD_compressStream2(packer->compressor, &out, &in,
                                    last ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left))
            return error_set(err, ERROR_FAILED, "cannot compress: %s", ZSTD_getErrorName(left));
        int status = out.pos ? packer->take_piece(packer->context, packer->piece, out.pos, err) : 0;
        if (status < 0)
            return status;
    } while (last ? left != 0 : in.pos < in.size);
    return 0;
}

int agent_pack(const struct engine_result *result, bool with_samples, agent_piece_fn *take_piece,
               void *context, struct error *err)
{
    struct packer packer = {ZSTD_createCCtx(), malloc(PIECE_BYTES), take_piece, context};
    size_t sample_count = with_samples ? result->sample_count : 0;
    int status =
        packer.compressor && packer.piece ? 0 : error_set(err, ERROR_FAILED, "out of memory");
    if (status == 0)
        ZSTD_CCtx_setParameter(packer.compressor, ZSTD_c_compressionLevel, COMPRESSION_LEVEL);
    if (status == 0)
        status = pack_part(&packer, result->connections,
                           result->connection_count * sizeof *result->connections, false, err);
    if (status == 0)
        status =
            pack_part(&packer, result->samples, sample_count * sizeof *result->samples, true, err);
    ZSTD_freeCCtx(packer.compressor);
    free(packer.piece);
    return status;
}

struct agent_unpack {
    ZSTD_DCtx *context;
    struct engine_result *result;
    size_t connection_bytes, sample_bytes; // bytes received so far
};

struct agent_unpack *agent_unpack_new(struct engine_result *result, struct error *err)
{
    struct agent_unpack *unpack = calloc(1, sizeof *unpack);
    if (unpack)
        *unpack = (struct agent_unpack){.context = ZSTD_createDCtx(), .result = result};
    if (unpack && unpack->context)
        return unpack;
    free(unpack);
    error_set(err, ERROR_FAILED, "out of memory for samples");
    return NULL;
}

// Where the next bytes are stored: first the connections, then the samples.
static ZSTD_outBuffer next_room(struct agent_unpack *unpack, size_t **taken)
{
    struct engine_result *result = unpack->result;
    size_t connections = result->connection_count * sizeof *result->connections;
    if (unpack->connection_bytes < connections) {
        *taken = &unpack->connection_bytes;
        return (ZSTD_outBuffer){result->connections, connections, unpack->connection_bytes};
    }
    *taken = &unpack->sample_bytes;
    return (ZSTD_outBuffer){result->samples, result->sample_count * sizeof *result->samples,
                            unpack->sample_bytes};
}

int agent_unpack_feed(struct agent_unpack *unpack, const void *bytes, size_t count,
                      struct error *err)
{
    ZSTD_inBuffer in = {bytes, count, 0};
    for (;;) {
        size_t *taken;
        ZSTD_outBuffer out = next_room(unpack, &taken);
        size_t in_before = in.pos, out_before = out.pos;
        size_t left = ZSTD_decompressStream(unpack->context, &out, &in);
        if (ZSTD_isError(left))
            return error_set(err, ERROR_INPUT, "the samples that came cannot be: %s",
                             ZSTD_getErrorName(left));
        *taken = out.pos;
        if (in.pos == in_before && out.pos == out_before) {
            if (in.pos < in.size)
                return error_set(err, ERROR_INPUT, "more samples came than were announced");
            return 0;
        }
    }
}

static int check_samples(const struct engine_result *result, struct error *err)
{
    for (size_t i = 0; i < result->sample_count; i++) {
        const struct sample *sample = &result->samples[i];
        if (sample->connection > result->connection_count || sample->status > SAMPLE_LOST)
            return error_set(err, ERROR_INPUT, "sample %zu that came cannot be", i);
    }
    return 0;
}

int agent_unpack_end(struct agent_unpack *unpack, struct error *err)
{
    const struct engine_result *result = unpack->result;
    if (unpack->connection_bytes < result->connection_count * sizeof *result->connections ||
        unpack->sample_bytes < result->sample_count * sizeof *result->samples)
        return error_set(err, ERROR_INPUT, "fewer samples came than were announced");
    return check_samples(result, err);
}

void agent_unpack_free(struct agent_unpack *unpack)
{
    if (unpack)
        ZSTD_freeDCtx(unpack->context);
    free(unpack);
}
