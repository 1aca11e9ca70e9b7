// SPDX-License-Identifier: MIT
//
// A run's figures as JSON (docs/load-json.md) and for people.
#include <math.h>

#include "base/json_numbers.h"
#include "base/json_rows.h"
#include "base/text.h"
#include "base/units.h"
#include "loadgen/method/load_bounds.h"
#include "loadgen/method/load_summary.h"
#include "loadgen/method/logical_requests.h"

typedef unsigned long long count_type; // what printf's %llu takes

// --- JSON ----------------------------------------------------------------------------------------

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

// Those that came to no end: the load ended before.
static uint64_t fills_unfinished(const struct fill_counts *fills)
{
    return fills->begun - fills->stored.count - fills->refused - fills->failed - fills->lost;
}

// null: nothing was set after a miss.
static json_t *fills_json(const struct fill_counts *fills)
{
    return !fills->begun ? json_null()
                         : json_pack("{s:I,s:o,s:I,s:I,s:I,s:I,s:I}", "begun",
                                     (json_int_t)fills->begun, "stored", timed_json(&fills->stored),
                                     "refused", (json_int_t)fills->refused, "failed",
                                     (json_int_t)fills->failed, "lost", (json_int_t)fills->lost,
                                     "unfinished", (json_int_t)fills_unfinished(fills), "left_out",
                                     (json_int_t)fills->left_out);
}

static void print_fills(const struct fill_counts *fills, FILE *out)
{
    if (!fills->begun)
        return;
    fprintf(out, "  fills      %llu set%s after a miss: %llu stored", (count_type)fills->begun,
            text_plural((double)fills->begun), (count_type)fills->stored.count);
    if (fills->stored.count)
        fprintf(out, " in %.0f us each, %.0f us at most",
                (double)fills->stored.sum_ns / (double)fills->stored.count / 1e3,
                (double)fills->stored.max_ns / 1e3);
    fprintf(out, ", %llu refused, %llu failed, %llu lost, %llu unfinished; %llu left out\n",
            (count_type)fills->refused, (count_type)fills->failed, (count_type)fills->lost,
            (count_type)fills_unfinished(fills), (count_type)fills->left_out);
}

// null: no such reply came.
static json_t *multigets_json(const struct multiget_counts *multigets)
{
    return !multigets->answered
               ? json_null()
               : json_pack("{s:I,s:I,s:I}", "answered", (json_int_t)multigets->answered, "keys",
                           (json_int_t)multigets->keys, "missing", (json_int_t)multigets->missing);
}

static void print_multigets(const struct multiget_counts *multigets, FILE *out)
{
    if (multigets->answered)
        fprintf(out, "  multigets  %llu answered, of %llu keys; %llu of the keys %s not there\n",
                (count_type)multigets->answered, (count_type)multigets->keys,
                (count_type)multigets->missing, text_were((double)multigets->missing));
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

static void print_batches(const struct batch_counts *batches, const struct load_facts *facts,
                          FILE *out)
{
    const struct timed_count *waited = &batches->waited;
    if (!(facts->batch_us > 0) || !batches->calls)
        return;
    fprintf(out,
            "  batches    of what is due within %.10g us: %.1f requests a send call, %llu at most; "
            "each waited %.1f us\n             for others on average, %.1f us at most (in all "
            "latencies, and allowed for in the arrivals)\n",
            facts->batch_us, (double)waited->count / (double)batches->calls,
            (count_type)batches->largest, (double)waited->sum_ns / (double)waited->count / 1e3,
            (double)waited->max_ns / 1e3);
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

// When the first of them was, from the load's start.
static double failover_seconds(const struct engine_result *result)
{
    const uint64_t tsc = result->counts.redirections.first_failover_tsc;
    return (double)(int64_t)(tsc - result->start_tsc) / result->tsc_hz;
}

// null: there was one server.
static json_t *nodes_json(const struct engine_result *result)
{
    const struct redirection_counts *counts = &result->counts.redirections;
    if (!result->nodes)
        return json_null();
    json_t *nodes = json_pack(
        "{s:I,s:o,s:o}", "known", (json_int_t)result->nodes, "failovers",
        timed_json(&counts->failovers), "first_failover_s",
        json_number_or_null(counts->failovers.count ? failover_seconds(result) : (double)NAN));
    return json_rows_set(nodes, node_rows, counts);
}

static void print_nodes(const struct engine_result *result, FILE *out)
{
    const struct redirection_counts *counts = &result->counts.redirections;
    if (!result->nodes)
        return;
    fprintf(out,
            "  nodes      %u; %llu request%s moved, %llu asked elsewhere once, %llu tried later, "
            "%llu given up, %llu out of reach; the map read again %llu time%s\n",
            result->nodes, (count_type)counts->moved, text_plural((double)counts->moved),
            (count_type)counts->asked, (count_type)counts->retried, (count_type)counts->given_up,
            (count_type)counts->unreachable, (count_type)counts->map_reads,
            text_plural((double)counts->map_reads));
    if (counts->failovers.count)
        fprintf(out,
                "  failovers  %llu, the first %.3f s after the start; %.3f s at most without a "
                "master\n",
                (count_type)counts->failovers.count, failover_seconds(result),
                (double)counts->failovers.max_ns / 1e9);
}

static void print_handshakes(const struct timed_count *counts, const char *what, FILE *out)
{
    if (counts->count)
        fprintf(out, "; %llu %s, %.0f us each, %.0f us at most", (count_type)counts->count, what,
                (double)counts->sum_ns / (double)counts->count / 1e3, (double)counts->max_ns / 1e3);
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
    COUNTS("connections_ended", ended),
    COUNTS("reconnects", reconnects),
    COUNTS("reconnects_failed", reconnects_failed),
    COUNTS("connections_given_up", given_up),
};
static const struct json_row lateness_rows[] = {SUMMARY("p50", lateness_p50_us),
                                                SUMMARY("p99", lateness_p99_us)};
static const struct json_row cpu_rows[] = {SUMMARY("cpu_us_per_request", cpu_us_per_request),
                                           SUMMARY("spin_fraction", spin_fraction)};
static const struct json_row stamp_rows[] = {
    SUMMARY("hw", stamps_hardware), SUMMARY("sw", stamps_software), SUMMARY("user", stamps_user),
    SUMMARY("hw_one_way", stamps_one_way)};

json_t *load_summary_json(const struct load_summary *summary, const struct engine_result *result,
                          const struct load_facts *facts)
{
    const struct connection_counts *counts = &result->counts;
    json_t *json = json_object();
    if (!json)
        return NULL;
    json_object_set_new(json, "verdict", json_string(summary->ok ? "ok" : "n/a"));
    json_object_set_new(json, "reasons", reasons_json(summary));
    json_object_set_new(json, "doubts", doubts_json(summary));
    if (facts->warning && facts->warning[0])
        json_object_set_new(json, "warnings", json_pack("[s]", facts->warning));
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
    json_rows_set(json, request_rows, summary);
    json_object_set_new(json, "lost_by", lost_json(counts));
    json_rows_set(json, connection_rows, counts);
    json_object_set_new(json, "nodes", nodes_json(result));
    json_object_set_new(json, "tls", tls_json(counts));
    json_object_set_new(json, "fills", fills_json(&counts->fills));
    json_object_set_new(json, "multigets", multigets_json(&counts->multigets));
    json_object_set_new(json, "batches", batches_json(&counts->batches, facts));
    json_object_set_new(json, "errors", errors_json(summary, result));
    json_object_set_new(json, "latency_us", percentiles_json(&summary->latency));
    json_object_set_new(json, "uncorrected_latency_us", percentiles_json(&summary->uncorrected));
    json_object_set_new(json, "ci_us", intervals_json(&summary->latency));
    json_object_set_new(json, "network_us", percentiles_json(&summary->network));
    json_object_set_new(json, "lateness_us", json_rows_set(json_object(), lateness_rows, summary));
    set_count(json, "in_flight_max", counts->in_flight_max);
    set_count(json, "delayed_by_depth", result->delayed_by_depth);
    json_rows_set(json, cpu_rows, summary);
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
    json_object_set_new(json, "bounded", load_bounds_json(result, facts->protocol));
    json_object_set_new(json, "method",
                        json_pack("{s:s,s:f,s:f}", "stop", "duration", "confidence",
                                  summary_confidence, "rate_tolerance", summary_rate_tolerance));
    return json;
}

// --- for people ----------------------------------------------------------------------------------

static void print_us(FILE *out, double us)
{
    if (isnan(us))
        fprintf(out, " %10s", "-");
    else if (isinf(us))
        fprintf(out, " %10s", "inf");
    else
        fprintf(out, " %10.1f", us);
}

static void print_row(FILE *out, const char *name, const struct load_percentiles *percentiles)
{
    fprintf(out, "  %-26s", name);
    for (unsigned i = 0; i < SUMMARY_QUANTILES; i++)
        print_us(out, percentiles->us[i]);
    fputc('\n', out);
}

static void print_intervals(FILE *out, const struct load_percentiles *percentiles)
{
    for (int high = 0; high < 2; high++) {
        fprintf(out, "  %-26s", high ? "  95 % interval, to" : "  95 % interval, from");
        for (unsigned i = 0; i < SUMMARY_QUANTILES; i++) {
            const struct quantile_interval *interval = &percentiles->interval[i];
            print_us(out, !interval->known ? NAN : high ? interval->high : interval->low);
        }
        fputc('\n', out);
    }
}

static void print_small(FILE *out, const char *before, double value, const char *after)
{
    if (isnan(value))
        fprintf(out, "%s-%s", before, after);
    else
        fprintf(out, "%s%.1f%s", before, value, after);
}

// In plain words first, then what helps, then each reason with its figures.
static void print_verdict(const struct load_summary *summary, FILE *out)
{
    enum load_doubt first = LOAD_DOUBTS;
    for (unsigned i = 0; i < summary->reason_count; i++)
        first = summary->doubts[i] < first ? summary->doubts[i] : first;
    const struct load_doubt_words known = load_doubt_words(first);
    fprintf(out, "verdict: %s%s%s\n", summary->ok ? "ok" : "n/a", known.words ? ": " : "",
            known.words ? known.words : "");
    if (known.helps)
        fprintf(out, "  -> %s\n", known.helps);
    for (unsigned i = 0; i < summary->reason_count; i++)
        fprintf(out, "  - %s\n", summary->reasons[i]);
}

void load_summary_print(const struct load_summary *summary, const struct engine_result *result,
                        const struct load_facts *facts, FILE *out)
{
    const struct connection_counts *counts = &result->counts;
    const uint32_t fanout = fanout_of(result);
    const bool logical = fanout > 1;
    fprintf(out, "%s: %s at ", facts->server, facts->protocol->name);
    if (result->closed_loop)
        fprintf(out, "as many requests/s as are answered (closed loop");
    else if (logical)
        fprintf(out, "%.0f logical request%s/s of %u requests each (%s arrivals", facts->rate,
                text_plural(facts->rate), fanout, facts->arrivals);
    else
        fprintf(out, "%.0f request%s/s (%s arrivals", facts->rate, text_plural(facts->rate),
                facts->arrivals);
    fprintf(out, ", seed %llu) for %.3g s on %u connection%s\n", (count_type)facts->seed,
            summary->duration_s, result->connections_at_once,
            text_plural(result->connections_at_once));
    print_verdict(summary, out);
    if (facts->warning && facts->warning[0])
        fprintf(out, "  - %s\n", facts->warning);
    if (result->closed_loop && facts->think)
        fprintf(
            out,
            "  closed loop of users who think (%s), as asked for: the rate is what %u connection%s "
            "with %u in\n  flight on each bring%s about, fewer while the server is slow, and "
            "the latency that of\n  requests which wait for replies\n",
            facts->think, result->connections_at_once, text_plural(result->connections_at_once),
            result->depth, result->connections_at_once == 1 ? "s" : "");
    else if (result->closed_loop)
        fprintf(out,
                "  closed loop, as asked for: the rate is the most that %u connection%s with %u in "
                "flight on each\n  bring%s about, and the latency that of requests which wait for "
                "replies\n",
                result->connections_at_once, text_plural(result->connections_at_once),
                result->depth, result->connections_at_once == 1 ? "s" : "");
    fprintf(out, "\n  %-26s", "us");
    for (unsigned i = 0; i < SUMMARY_QUANTILES; i++)
        fprintf(out, " %10s", summary_quantile_names[i]);
    fputc('\n', out);
    print_row(out, logical ? "logical (from intended)" : "latency (from intended)",
              &summary->latency);
    print_intervals(out, &summary->latency);
    print_row(out, logical ? "logical (from first send)" : "uncorrected (from send)",
              &summary->uncorrected);
    if (logical)
        print_row(out, "each request by itself", &summary->each);
    if (summary->network.count)
        print_row(out, "network (RX - TX stamp)", &summary->network);
    char offered[TEXT_NUMBER_BYTES], achieved[TEXT_NUMBER_BYTES];
    fprintf(out, "\n  rate       offered %s/s, achieved %s/s",
            text_rate(summary->offered_rate, offered), text_rate(summary->achieved_rate, achieved));
    if (logical)
        fprintf(out,
                " (logical requests, of %u requests each: %llu, of which %llu had all their "
                "replies)",
                fanout, (count_type)summary->logical_scheduled,
                (count_type)summary->logical_answered);
    fputc('\n', out);
    fprintf(out,
            "  requests   %llu scheduled, %llu sent, %llu answered (%llu miss%s, %llu error%s), "
            "%llu unsent, %llu timed out, %llu lost",
            (count_type)summary->scheduled, (count_type)summary->sent,
            (count_type)summary->answered, (count_type)summary->misses,
            summary->misses == 1 ? "" : "es", (count_type)summary->error_replies,
            text_plural((double)summary->error_replies), (count_type)summary->unsent,
            (count_type)summary->timed_out, (count_type)summary->lost);
    if (counts->unexpected)
        fprintf(out, "; %llu repl%s to no request", (count_type)counts->unexpected,
                counts->unexpected == 1 ? "y" : "ies");
    fputc('\n', out);
    if (counts->ended)
        fprintf(
            out,
            "  ends       %llu connection%s ended, %llu opened again, %llu attempt%s failed, %llu "
            "given up; %llu request%s moved, %llu repeated\n",
            (count_type)counts->ended, text_plural((double)counts->ended),
            (count_type)counts->reconnects, (count_type)counts->reconnects_failed,
            text_plural((double)counts->reconnects_failed), (count_type)counts->given_up,
            (count_type)counts->moved, text_plural((double)counts->moved),
            (count_type)counts->repeated);
    print_nodes(result, out);
    print_fills(&counts->fills, out);
    print_multigets(&counts->multigets, out);
    print_batches(&counts->batches, facts, out);
    if (counts->tls_suite[0]) {
        fprintf(out, "  tls        %s", counts->tls_suite);
        print_handshakes(&counts->handshakes, "handshakes", out);
        print_handshakes(&counts->resumed, "resumed", out);
        fputc('\n', out);
    }
    fprintf(out, "  in flight  at most %llu; %llu request%s waited for a connection with room",
            (count_type)counts->in_flight_max, (count_type)result->delayed_by_depth,
            text_plural((double)result->delayed_by_depth));
    print_small(out, "\n  lateness   p50 ", summary->lateness_p50_us, " us");
    print_small(out, ", p99 ", summary->lateness_p99_us, " us");
    if (CPU_COUNT(&result->cores) > 1) {
        char cores[200];
        fprintf(out, "\n  threads    %u, one on each of the cores %s", result->thread_count,
                units_format_cores(&result->cores, cores, sizeof cores));
    }
    print_small(out, "\n  client     ", summary->cpu_us_per_request, " us of CPU a request");
    print_small(out, ", ", summary->spin_fraction * 100, " % of the time idle (spinning)\n");
    if (result->kernel_stamps)
        fprintf(out,
                "  stamps     %llu by the NIC, %llu by the kernel, %llu by this program; TX "
                "missing %llu, "
                "late %llu, double %llu, unknown %llu, RX missing %llu, coalesced %llu\n",
                (count_type)summary->stamps_hardware, (count_type)summary->stamps_software,
                (count_type)summary->stamps_user, (count_type)result->stamps_missing,
                (count_type)counts->stamps_late, (count_type)counts->stamps_double,
                (count_type)counts->stamps_unknown, (count_type)counts->rx_missing,
                (count_type)counts->rx_coalesced);
    if (result->kernel_stamps && result->thinned_tsc)
        fprintf(out,
                "             from %.3f s on TX stamps of one send call in %u only, drawn by lot: "
                "the client had no time for more (--stamps sw: all, whatever they cost)\n",
                (double)(result->thinned_tsc - result->start_tsc) / result->tsc_hz,
                result->stamps_every);
    else if (result->kernel_stamps && result->stamps_every)
        fprintf(out, "             TX stamps of one send call in %u, drawn by lot\n",
                result->stamps_every);
    if (!result->kernel_stamps)
        fprintf(out, "  stamps     by this program only%s%s\n", result->stamps_why.kind ? ": " : "",
                result->stamps_why.text);
    load_bounds_print(result, out);
}
