// SPDX-License-Identifier: MIT
#include "loadgen/agents/agent_message.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/json_rows.h"

enum { PIECE_BYTES = 256 << 10, COMPRESSION_LEVEL = 1, KNOTS_MOST = 4096 };

// --- plans ---------------------------------------------------------------------------------------

#define PLAN(key, member) JSON_ROW(key, struct agent_plan, member)
static const struct json_row plan_rows[] = {
    PLAN("name", spec.name),
    PLAN("kind", spec.kind),
    PLAN("server", server),
    PLAN("cluster", cluster),
    PLAN("sentinel", sentinel),
    PLAN("user", login.user),
    PLAN("password", login.password),
    PLAN("database", login.database),
    PLAN("tls", tls.on),
    PLAN("tls_insecure", tls.insecure),
    PLAN("tls_full_handshakes", tls.full_handshakes),
    PLAN("tls_ca", tls.ca),
    PLAN("tls_cert", tls.certificate),
    PLAN("tls_key", tls.key),
    PLAN("rate", spec.rate),
    PLAN("connections", spec.connections),
    PLAN("threads", spec.threads),
    PLAN("depth", spec.depth),
    PLAN("seed", spec.seed),
    PLAN("duration_ns", duration_ns),
    PLAN("timeout_ns", timeout_ns),
    PLAN("reconnect_ns", reconnect_ns),
    PLAN("session", session),
    PLAN("stamps", stamps),
    PLAN("quantile", quantile),
    PLAN("confidence", confidence),
};

json_t *agent_plan_to_json(const struct agent_plan *plan, const struct workload *workload)
{
    char *yaml = workload_to_yaml(workload);
    json_t *json = yaml ? json_pack("{s:s,s:s}", "type", "plan", "workload", yaml) : NULL;
    free(yaml);
    if (json)
        json_rows_set(json, plan_rows, plan);
    return json;
}

static int check_plan(const struct agent_plan *plan, struct error *err)
{
    const struct agent_spec *spec = &plan->spec;
    bool right = spec->kind <= AGENT_SYMMETRIC && plan->stamps <= STAMP_MODE_HARDWARE &&
                 spec->rate > 0 && spec->connections >= 1 &&
                 spec->connections <= ENGINE_IN_FLIGHT_CAP && spec->depth <= ENGINE_IN_FLIGHT_CAP &&
                 spec->threads >= 1 && spec->threads <= spec->connections &&
                 plan->duration_ns > 0 && plan->quantile > 0 && plan->quantile < 1 &&
                 plan->confidence >= 0.5 && plan->confidence < 1;
    return right ? 0 : error_set(err, ERROR_INPUT, "the plan that came cannot be: a value in it");
}

int agent_plan_from_json(const json_t *json, struct agent_plan *plan, struct workload *workload,
                         struct error *err)
{
    const char *yaml = json_string_value(json_object_get(json, "workload"));
    *plan = (struct agent_plan){.stamps = STAMP_MODE_AUTO};
    const char *wrong = json_rows_read(json, plan_rows, plan);
    if (wrong || !yaml)
        return error_set(err, ERROR_INPUT, "the plan that came has no right \"%s\"",
                         wrong ? wrong : "workload");
    if (check_plan(plan, err) < 0)
        return -ERROR_INPUT;
    workload_defaults(workload);
    int status = workload_parse("the plan's workload", yaml, strlen(yaml), workload, err);
    if (status < 0)
        workload_free(workload);
    return status;
}

// --- the figures of a result ---------------------------------------------------------------------

#define FIGURE(member) JSON_ROW(#member, struct engine_result, member)
static const struct json_row figures[] = {
    FIGURE(sample_count),
    FIGURE(fanout),
    FIGURE(connection_count),
    FIGURE(connections_at_once),
    FIGURE(thread_count),
    FIGURE(depth),
    FIGURE(depth_is_cap),
    FIGURE(kernel_stamps),
    FIGURE(hardware_stamps),
    FIGURE(hardware_error_ns),
    FIGURE(hardware_why),
    FIGURE(stamps_why),
    FIGURE(busy_poll_why),
    FIGURE(late_tsc),
    FIGURE(tsc_hz),
    FIGURE(start_tsc),
    FIGURE(end_tsc),
    FIGURE(paused_tsc),
    FIGURE(delayed_by_depth),
    FIGURE(cpu_ns),
    FIGURE(spin_tsc),
    FIGURE(asleep_tsc),
    FIGURE(standstill.lasted_tsc),
    FIGURE(standstill.at_tsc),
    FIGURE(stamps_missing),
    FIGURE(counts.mismatched),
    FIGURE(counts.wrong_values),
    FIGURE(counts.unexpected),
    FIGURE(counts.in_flight),
    FIGURE(counts.in_flight_max),
    FIGURE(counts.ended),
    FIGURE(counts.broken),
    FIGURE(counts.broken_at),
    FIGURE(counts.broken_elsewhere),
    FIGURE(counts.moved),
    FIGURE(counts.repeated),
    FIGURE(counts.spelled_out),
    FIGURE(counts.reconnects),
    FIGURE(counts.reconnects_failed),
    FIGURE(counts.portless),
    FIGURE(counts.given_up),
    FIGURE(counts.first_end_tsc),
    FIGURE(counts.last_reconnect_tsc),
    FIGURE(counts.rx_missing),
    FIGURE(counts.rx_coalesced),
    FIGURE(counts.foreign_errors),
    FIGURE(counts.datagrams_refused),
    FIGURE(counts.datagrams_malformed),
    FIGURE(counts.datagrams_surplus),
    FIGURE(counts.datagrams_late),
    FIGURE(counts.datagrams_overrun),
    FIGURE(counts.datagrams_unassembled),
    FIGURE(counts.tx_hardware),
    FIGURE(counts.tx_software),
    FIGURE(counts.stamps_unknown),
    FIGURE(counts.stamps_late),
    FIGURE(counts.stamps_double),
    FIGURE(counts.first_break),
    FIGURE(counts.first_fault),
    FIGURE(counts.first_failure),
    FIGURE(counts.first_refusal),
    FIGURE(counts.fills.begun),
    FIGURE(counts.fills.stored.count),
    FIGURE(counts.fills.stored.sum_ns),
    FIGURE(counts.fills.stored.max_ns),
    FIGURE(counts.fills.refused),
    FIGURE(counts.fills.failed),
    FIGURE(counts.fills.lost),
    FIGURE(counts.fills.left_out),
    FIGURE(counts.multigets.answered),
    FIGURE(counts.multigets.keys),
    FIGURE(counts.multigets.missing),
    FIGURE(counts.sessions.ended),
    FIGURE(counts.sessions.opening.count),
    FIGURE(counts.sessions.opening.sum_ns),
    FIGURE(counts.sessions.opening.max_ns),
    FIGURE(nodes),
    FIGURE(counts.redirections.moved),
    FIGURE(counts.redirections.asked),
    FIGURE(counts.redirections.retried),
    FIGURE(counts.redirections.unknown),
    FIGURE(counts.redirections.given_up),
    FIGURE(counts.redirections.unreachable),
    FIGURE(counts.redirections.connections),
    FIGURE(counts.redirections.failovers.count),
    FIGURE(counts.redirections.failovers.sum_ns),
    FIGURE(counts.redirections.failovers.max_ns),
    FIGURE(counts.redirections.first_failover_tsc),
    FIGURE(counts.redirections.map_reads),
    FIGURE(counts.redirections.map_failures),
    FIGURE(counts.handshakes.count),
    FIGURE(counts.handshakes.sum_ns),
    FIGURE(counts.handshakes.max_ns),
    FIGURE(counts.resumed.count),
    FIGURE(counts.resumed.sum_ns),
    FIGURE(counts.resumed.max_ns),
    FIGURE(counts.tls_suite),
};
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

// The agent's clock: [from, to, from, to, ...], thinned out so that any load's fits into a message.
static json_t *knots_to_json(const struct clock_knot_array *knots)
{
    json_t *array = json_array();
    size_t step = knots->count / KNOTS_MOST + 1;
    for (size_t i = 0; i < knots->count; i++) {
        if (i % step && i + 1 < knots->count)
            continue;
        json_array_append_new(array, json_integer(knots->items[i].from));
        json_array_append_new(array, json_integer(knots->items[i].to));
    }
    return array;
}

static int knots_from_json(const json_t *array, struct clock_knot_array *knots, struct error *err)
{
    size_t count = json_array_size(array);
    if (count % 2 || count > 2 * (KNOTS_MOST + 1))
        return error_set(err, ERROR_INPUT, "the clock that came cannot be");
    for (size_t i = 0; i < count; i += 2) {
        struct clock_knot knot = {json_integer_value(json_array_get(array, i)),
                                  json_integer_value(json_array_get(array, i + 1)), 0};
        const struct clock_knot *before = i ? &knots->items[knots->count - 1] : NULL;
        if (knot.from <= 0 || knot.to <= 0 || (before && knot.to <= before->to))
            return error_set(err, ERROR_INPUT, "the clock that came cannot be");
        if (array_push(knots, knot) < 0)
            return error_set(err, ERROR_FAILED, "out of memory for an agent's clock");
    }
    return 0;
}

json_t *agent_result_to_json(const struct engine_result *result, bool with_samples)
{
    json_t *json = json_rows_set(json_object(), figures, result);
    json_object_set_new(json, "replies", counts_to_json(result->counts.replies, REPLY_KINDS));
    json_object_set_new(json, "lost", counts_to_json(result->counts.lost, LOSS_REASONS));
    json_object_set_new(json, "end", json_integer(result->end));
    json_object_set_new(json, "clock", knots_to_json(&result->clock));
    if (!with_samples)
        json_object_set_new(json, "sample_count", json_integer(0));
    return json;
}

int agent_result_from_json(const json_t *json, size_t most_samples, size_t most_connections,
                           struct engine_result *result, struct error *err)
{
    *result = (struct engine_result){.end = ENGINE_COMPLETE};
    const json_t *end = json_object_get(json, "end");
    struct connection_counts *counts = &result->counts;
    const char *wrong = json_rows_read(json, figures, result);
    if (wrong)
        return error_set(err, ERROR_INPUT, "the result that came has no right \"%s\"", wrong);
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
    int status = knots_from_json(json_object_get(json, "clock"), &result->clock, err);
    if (status == 0)
        result->connections = calloc(result->connection_count + 1u, sizeof *result->connections);
    if (status == 0)
        status = result->connections
                     ? engine_result_take_samples(result, result->sample_count, err)
                     : error_set(err, ERROR_FAILED, "out of memory for the connections");
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
        if (sample->connection > result->connection_count || sample->status > SAMPLE_LOST ||
            sample->tx_source > STAMP_LEFT_OUT || sample->rx_source > STAMP_USER)
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
