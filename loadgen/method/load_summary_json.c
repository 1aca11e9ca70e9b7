// SPDX-License-Identifier: MIT
//
// A load's figures as JSON (docs/load-json.md).
#include <math.h>

#include "base/json_numbers.h"
#include "base/json_rows.h"
#include "loadgen/method/load_bounds.h"
#include "loadgen/method/load_summary.h"
#include "loadgen/method/logical_requests.h"

static json_t *percentiles_json(const struct load_percentiles *percentiles)
{
    json_t *object = json_object();
    for (unsigned i = 0; i < SUMMARY_QUANTILES; i++)
        json_set_percentile(object, summary_quantile_names[i], percentiles->us[i]);
    return object;
}

static json_t *intervals_json(const struct load_percentiles *percentiles)
{
    json_t *object = json_object();
    for (unsigned i = 0; i + 1 < SUMMARY_QUANTILES; i++) // the maximum has none
        json_object_set_new(object, summary_quantile_names[i],
                            json_interval_or_null(&percentiles->interval[i]));
    return object;
}

static void set_count(json_t *object, const char *key, uint64_t count)
{
    json_object_set_new(object, key, json_integer((json_int_t)count));
}

static json_t *timed_json(const struct timed_count *counts)
{
    return json_pack(
        "{s:I,s:o,s:o}", "count", (json_int_t)counts->count, "mean_us",
        json_number_or_null((double)counts->sum_ns / (double)counts->count / 1e3), "max_us",
        json_number_or_null(counts->count ? (double)counts->max_ns / 1e3 : (double)NAN));
}

// null: without TLS.
static json_t *tls_json(const struct connection_counts *counts)
{
    return !counts->tls_suite[0] ? json_null()
                                 : json_pack("{s:s,s:o,s:o}", "suite", counts->tls_suite,
                                             "handshakes", timed_json(&counts->handshakes),
                                             "resumed", timed_json(&counts->resumed));
}

// null: each request is for itself.
static json_t *fanout_json(const struct load_summary *summary, const struct engine_result *result)
{
    const uint32_t fanout = fanout_of(result);
    return fanout == 1 ? json_null()
                       : json_pack("{s:I,s:I,s:I,s:o,s:o}", "requests", (json_int_t)fanout,
                                   "scheduled", (json_int_t)summary->logical_scheduled, "answered",
                                   (json_int_t)summary->logical_answered, "request_latency_us",
                                   percentiles_json(&summary->each), "request_ci_us",
                                   intervals_json(&summary->each));
}

// null: nothing was set after a miss.
static json_t *fills_json(const struct fill_counts *fills)
{
    return !fills->begun ? json_null()
                         : json_pack("{s:I,s:o,s:I,s:I,s:I,s:I,s:I}", "begun",
                                     (json_int_t)fills->begun, "stored", timed_json(&fills->stored),
                                     "refused", (json_int_t)fills->refused, "failed",
                                     (json_int_t)fills->failed, "lost", (json_int_t)fills->lost,
                                     "unfinished", (json_int_t)fill_counts_unfinished(fills),
                                     "left_out", (json_int_t)fills->left_out);
}

// null: no such reply came.
static json_t *multigets_json(const struct multiget_counts *multigets)
{
    return !multigets->answered
               ? json_null()
               : json_pack("{s:I,s:I,s:I}", "answered", (json_int_t)multigets->answered, "keys",
                           (json_int_t)multigets->keys, "missing", (json_int_t)multigets->missing);
}

// null: each request left when it was due.
static json_t *batches_json(const struct batch_counts *batches, const struct load_facts *facts)
{
    return !(facts->batch_us > 0)
               ? json_null()
               : json_pack("{s:f,s:I,s:I,s:I,s:o}", "within_us", facts->batch_us, "calls",
                           (json_int_t)batches->calls, "requests",
                           (json_int_t)batches->waited.count, "largest",
                           (json_int_t)batches->largest, "waited", timed_json(&batches->waited));
}

static json_t *sessions_json(const struct session_counts *sessions, const struct load_facts *facts)
{
    return !facts->session
               ? json_null()
               : json_pack("{s:I,s:I,s:o}", "requests", (json_int_t)facts->session, "ended",
                           (json_int_t)sessions->ended, "opening", timed_json(&sessions->opening));
}

#define NODES(key, member) JSON_ROW(key, struct redirection_counts, member)

static const struct json_row node_rows[] = {
    NODES("moved", moved),
    NODES("asked", asked),
    NODES("retried", retried),
    NODES("to_unknown", unknown),
    NODES("given_up", given_up),
    NODES("unreachable", unreachable),
    NODES("connections_opened", connections),
    NODES("map_reads", map_reads),
    NODES("map_failures", map_failures),
};

// null: there was one server.
static json_t *nodes_json(const struct engine_result *result)
{
    const struct redirection_counts *counts = &result->counts.redirections;
    if (!result->nodes)
        return json_null();
    json_t *nodes = json_pack("{s:I,s:o,s:o}", "known", (json_int_t)result->nodes, "failovers",
                              timed_json(&counts->failovers), "first_failover_s",
                              json_number_or_null(counts->failovers.count
                                                      ? engine_result_first_failover_s(result)
                                                      : (double)NAN));
    return json_rows_set(nodes, node_rows, counts);
}

// Only the counts that are not 0: an empty object is a clean load.
static json_t *errors_json(const struct load_summary *summary, const struct engine_result *result)
{
    const struct connection_counts *counts = &result->counts;
    json_t *object = json_object();
    for (unsigned kind = REPLY_NOT_STORED; kind < REPLY_KINDS; kind++)
        if (counts->replies[kind])
            set_count(object, reply_kind_names[kind], counts->replies[kind]);
    const struct {
        const char *name;
        uint64_t count;
    } others[] = {{"mismatched", counts->mismatched},
                  {"wrong_value", counts->wrong_values},
                  {"unexpected", counts->unexpected},
                  {"unsent", summary->unsent},
                  {"lost", summary->lost},
                  {"timed_out", summary->timed_out},
                  {"connections_broken", counts->broken},
                  {"datagrams_refused", counts->datagrams_refused},
                  {"datagrams_malformed", counts->datagrams_malformed},
                  {"datagrams_surplus", counts->datagrams_surplus},
                  {"datagrams_late", counts->datagrams_late},
                  {"datagrams_overrun", counts->datagrams_overrun},
                  {"datagrams_unassembled", counts->datagrams_unassembled}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].count)
            set_count(object, others[i].name, others[i].count);
    return object;
}

// Lost requests by why their connection ended; only counts that are not 0.
static json_t *lost_json(const struct connection_counts *counts)
{
    json_t *object = json_object();
    for (unsigned reason = 0; reason < LOSS_REASONS; reason++)
        if (counts->lost[reason])
            set_count(object, connection_loss_names[reason], counts->lost[reason]);
    return object;
}

static json_t *reasons_json(const struct load_summary *summary)
{
    json_t *array = json_array();
    for (unsigned i = 0; i < summary->reason_count; i++)
        json_array_append_new(array, json_string(summary->reasons[i]));
    return array;
}

// What each of the reasons is about; null: nothing that has a name.
static json_t *doubts_json(const struct load_summary *summary)
{
    json_t *array = json_array();
    for (unsigned i = 0; i < summary->reason_count; i++) {
        const char *key = load_doubt_words(summary->doubts[i]).key;
        json_array_append_new(array, key ? json_string(key) : json_null());
    }
    return array;
}

// Those that the threads were pinned to, in the order of the threads.
static json_t *cores_json(const struct engine_result *result)
{
    json_t *array = json_array();
    for (unsigned core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &result->cores))
            json_array_append_new(array, json_integer(core));
    return array;
}

#define SUMMARY(key, member) JSON_ROW(key, struct load_summary, member)
#define COUNTS(key, member)  JSON_ROW(key, struct connection_counts, member)

static const struct json_row request_rows[] = {
    SUMMARY("duration_s", duration_s),
    SUMMARY("offered_rate", offered_rate),
    SUMMARY("achieved_rate", achieved_rate),
    SUMMARY("scheduled", scheduled),
    SUMMARY("sent", sent),
    SUMMARY("answered", answered),
    SUMMARY("misses", misses),
    SUMMARY("unsent", unsent),
    SUMMARY("timed_out", timed_out),
    SUMMARY("lost", lost),
};
static const struct json_row connection_rows[] = {
    COUNTS("moved", moved),
    COUNTS("repeated", repeated),
    COUNTS("spelled_out", spelled_out),
    COUNTS("connections_ended", ended),
    COUNTS("reconnects", reconnects),
    COUNTS("reconnects_failed", reconnects_failed),
    COUNTS("connections_given_up", given_up),
};
static const struct json_row lateness_rows[] = {SUMMARY("p50", lateness_p50_us),
                                                SUMMARY("p99", lateness_p99_us)};
static const struct json_row cpu_rows[] = {SUMMARY("cpu_us_per_request", cpu_us_per_request),
                                           SUMMARY("spin_fraction", spin_fraction),
                                           SUMMARY("asleep_fraction", asleep_fraction)};
static const struct json_row stamp_rows[] = {
    SUMMARY("hw", stamps_hardware), SUMMARY("sw", stamps_software), SUMMARY("user", stamps_user),
    SUMMARY("hw_one_way", stamps_one_way)};

// What was asked for, and of whom.
static void set_settings(json_t *json, const struct load_summary *summary,
                         const struct engine_result *result, const struct load_facts *facts)
{
    json_object_set_new(json, "server", json_string(facts->server));
    json_object_set_new(json, "protocol", json_string(facts->protocol->name));
    json_object_set_new(json, "workload",
                        facts->workload ? json_string(facts->workload) : json_null());
    json_object_set_new(json, "rate",
                        isinf(facts->rate) ? json_string("max") : json_real(facts->rate));
    json_object_set_new(json, "loop", json_string(result->closed_loop ? "closed" : "open"));
    json_object_set_new(json, "think", facts->think ? json_string(facts->think) : json_null());
    json_object_set_new(json, "fanout", fanout_json(summary, result));
    json_object_set_new(json, "arrivals", json_string(facts->arrivals));
    json_object_set_new(json, "pattern", json_string(facts->pattern ? facts->pattern : "constant"));
    set_count(json, "seed", facts->seed);
    set_count(json, "connections", result->connections_at_once);
    set_count(json, "threads", result->thread_count);
    json_object_set_new(json, "cores", cores_json(result));
    json_object_set_new(json, "depth",
                        result->depth_is_cap ? json_null() : json_integer(result->depth));
    json_object_set_new(json, "tsc_hz", json_real(result->tsc_hz));
}

// What became of the requests.
static void set_outcome(json_t *json, const struct load_summary *summary,
                        const struct engine_result *result, const struct load_facts *facts)
{
    const struct connection_counts *counts = &result->counts;
    json_rows_set(json, request_rows, summary);
    json_object_set_new(json, "lost_by", lost_json(counts));
    json_rows_set(json, connection_rows, counts);
    json_object_set_new(json, "nodes", nodes_json(result));
    json_object_set_new(json, "tls", tls_json(counts));
    json_object_set_new(json, "fills", fills_json(&counts->fills));
    json_object_set_new(json, "multigets", multigets_json(&counts->multigets));
    json_object_set_new(json, "batches", batches_json(&counts->batches, facts));
    json_object_set_new(json, "sessions", sessions_json(&counts->sessions, facts));
    json_object_set_new(json, "errors", errors_json(summary, result));
}

static void set_latencies(json_t *json, const struct load_summary *summary)
{
    json_object_set_new(json, "latency_us", percentiles_json(&summary->latency));
    json_object_set_new(json, "uncorrected_latency_us", percentiles_json(&summary->uncorrected));
    json_object_set_new(json, "ci_us", intervals_json(&summary->latency));
    json_object_set_new(json, "network_us", percentiles_json(&summary->network));
    json_object_set_new(json, "lateness_us", json_rows_set(json_object(), lateness_rows, summary));
}

// Whose stamps they are, and which did not come as they should.
static void set_stamps(json_t *json, const struct load_summary *summary,
                       const struct engine_result *result)
{
    const struct connection_counts *counts = &result->counts;
    json_object_set_new(json, "stamps", json_rows_set(json_object(), stamp_rows, summary));
    if (!result->kernel_stamps && result->stamps_why.kind)
        json_object_set_new(json, "no_kernel_stamps", json_string(result->stamps_why.text));
    json_object_set_new(
        json, "hardware_stamps",
        json_pack("{s:b,s:o,s:s*}", "on", result->hardware_stamps, "error_us",
                  result->hardware_stamps ? json_real((double)result->hardware_error_ns / 1e3)
                                          : json_null(),
                  "why", result->hardware_why.kind ? result->hardware_why.text : NULL));
    if (result->stamps_every)
        json_object_set_new(
            json, "stamps_thinned",
            json_pack("{s:i,s:f}", "every", (int)result->stamps_every, "from_s",
                      result->thinned_tsc
                          ? (double)(result->thinned_tsc - result->start_tsc) / result->tsc_hz
                          : 0.0));
    set_count(json, "unmatched_stamps",
              result->stamps_missing + counts->stamps_unknown + counts->stamps_late +
                  counts->stamps_double + counts->rx_missing);
    set_count(json, "tx_stamps_missing", result->stamps_missing);
    set_count(json, "tx_stamps_unknown", counts->stamps_unknown);
    set_count(json, "tx_stamps_late", counts->stamps_late);
    set_count(json, "tx_stamps_double", counts->stamps_double);
    set_count(json, "rx_stamps_missing", counts->rx_missing);
    set_count(json, "rx_coalesced", counts->rx_coalesced);
}

static json_t *standstill_json(const struct engine_result *result)
{
    const struct standstill *longest = &result->standstill;
    if (!longest->lasted_tsc)
        return json_null();
    return json_pack("{s:f,s:f}", "lasted_us", 1e6 * (double)longest->lasted_tsc / result->tsc_hz,
                     "after_s",
                     (double)(int64_t)(longest->at_tsc - result->start_tsc) / result->tsc_hz);
}

static json_t *silences_json(const struct silences *found)
{
    if (!found->count)
        return json_null();
    return json_pack("{s:I,s:f,s:f,s:f,s:I}", "count", (json_int_t)found->count, "lasted_us",
                     1e6 * found->lasted_s, "longest_us", 1e6 * found->longest_s, "after_s",
                     found->after_s, "connections", (json_int_t)found->longest_awaited_on);
}

json_t *load_summary_json(const struct load_summary *summary, const struct engine_result *result,
                          const struct load_facts *facts)
{
    json_t *json = json_object();
    if (!json)
        return NULL;
    json_object_set_new(json, "verdict", json_string(summary->ok ? "ok" : "n/a"));
    json_object_set_new(json, "reasons", reasons_json(summary));
    json_object_set_new(json, "doubts", doubts_json(summary));
    if (facts->warning && facts->warning[0])
        json_object_set_new(json, "warnings", json_pack("[s]", facts->warning));
    set_settings(json, summary, result, facts);
    set_outcome(json, summary, result, facts);
    set_latencies(json, summary);
    set_count(json, "in_flight_max", result->counts.in_flight_max);
    set_count(json, "delayed_by_depth", result->delayed_by_depth);
    json_object_set_new(json, "standstill", standstill_json(result));
    json_object_set_new(json, "silences", silences_json(&summary->silences));
    json_rows_set(json, cpu_rows, summary);
    set_stamps(json, summary, result);
    json_object_set_new(json, "bounded", load_bounds_json(result, facts->protocol));
    json_object_set_new(json, "method",
                        json_pack("{s:s,s:f,s:f}", "stop", "duration", "confidence",
                                  summary_confidence, "rate_tolerance", summary_rate_tolerance));
    return json;
}
