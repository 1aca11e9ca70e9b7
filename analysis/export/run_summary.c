// SPDX-License-Identifier: MIT
#include "analysis/export/run_summary.h"

#include <math.h>

#include "analysis/export/findings_json.h"
#include "analysis/lifetime/holdups.h"
#include "analysis/run/run_culprits.h"
#include "analysis/run/run_lede.h"
#include "analysis/run/result_fields.h"
#include "base/json_numbers.h"

static json_t *micros(double ns)
{
    return json_number_or_null(ns / 1000);
}

static json_t *count_of(uint64_t count)
{
    return json_integer((json_int_t)count);
}

static json_t *latency_json(const struct latency_summary *latency)
{
    json_t *object = json_object();
    for (int i = 0; i < LATENCY_QUANTILES; i++)
        json_set_percentile(object, latency_quantile_names[i], latency->value_ns[i] / 1000);
    return object;
}

static json_t *intervals_json(const struct latency_summary *latency)
{
    json_t *object = json_object();
    for (int i = 0; i < LATENCY_QUANTILES; i++) {
        const struct quantile_interval *interval = &latency->interval_ns[i];
        json_object_set_new(object, latency_quantile_names[i],
                            interval->known
                                ? json_pack("[o, o]", micros(interval->low), micros(interval->high))
                                : json_null());
    }
    return object;
}

static json_t *causes_json(const struct diagnosis *diagnosis)
{
    json_t *causes = json_array();
    for (size_t i = 0; diagnosis && i < diagnosis->causes.count; i++) {
        json_t *cause = json_object();
        result_put_json(cause, "", cause_fields, &diagnosis->causes.items[i]);
        json_array_append_new(causes, cause);
    }
    return causes;
}

// What made the receive, service and send lifetimes slow, each on its own.
static json_t *lifetimes_json(const struct run_analysis *run, size_t index)
{
    json_t *object = json_object();
    for (int part = PART_WHOLE + 1; part < PARTS; part++) {
        const struct diagnosis *of = run_diagnosis_of(run, index, (enum lifetime_part)part);
        if (!of)
            continue;
        json_t *one = json_pack("{s:s, s:s, s:o, s:o, s:b}", "from",
                                stamp_name(lifetime_part_begin(of->part)), "to",
                                stamp_name(lifetime_part_end(of->part)), "reference_us",
                                of->not_available ? json_null() : micros(of->reference_latency_ns),
                                "causes", causes_json(of), "available", !of->not_available);
        result_put_json(one, "", part_fields, of);
        json_object_set_new(object, lifetime_part_name(of->part), one);
    }
    return object;
}

// --- queues, core contexts and head-of-line blocking ---------------------------------------

static json_t *queue_json(const struct diagnosis_views *views)
{
    json_t *queue = json_array();
    for (int kind = 0; kind < QUEUE_KINDS; kind++) {
        const struct queue_summary *of = &views->queue[kind];
        json_t *one = json_pack("{s:s, s:o}", "kind", queue_kind_name(of->kind),
                                "messages_with_more", count_of(of->more));
        result_put_json(one, "", queue_side_fields, &of->sides[VIEW_SLICE]);
        result_put_json(one, "reference_", queue_side_fields, &of->sides[VIEW_REFERENCE]);
        json_array_append_new(queue, one);
    }
    return queue;
}

static json_t *contexts_json(const struct diagnosis_views *views)
{
    json_t *contexts = json_array();
    for (size_t i = 0; i < views->contexts.count; i++) {
        json_t *one = json_object();
        result_put_json(one, "", context_fields, &views->contexts.items[i]);
        json_array_append_new(contexts, one);
    }
    return contexts;
}

static json_t *scopes_json(const struct diagnosis_views *views)
{
    json_t *scopes = json_array();
    for (int scope = 0; scope < BLOCKING_SCOPES; scope++) {
        json_t *one = json_object();
        result_put_json(one, "", blocking_fields, &views->blocking[scope]);
        result_put_json(one, "", blocking_time_fields, &views->blocking[scope]);
        json_array_append_new(scopes, one);
    }
    return scopes;
}

static json_t *worst_json(const struct run_analysis *run, const struct diagnosis_views *views)
{
    json_t *worst = json_array();
    for (size_t i = 0; i < views->worst.count; i++) {
        const struct named_blocker *one = &views->worst.items[i];
        json_t *object = json_pack("{s:I, s:o}", "messages", (json_int_t)one->messages, "total_us",
                                   json_number_or_null(one->total_ns / 1000));
        char words[160];
        const char *owner =
            run_blocker_owner(run, one->lifetime, one->service, words, sizeof words);
        if (owner) {
            json_object_set_new(object, "owner", json_string(owner));
        } else {
            const struct lifetime *life = &run->lifetimes.all.items[one->lifetime];
            json_object_set_new(object, "request", json_integer((json_int_t)life->request));
            json_object_set_new(object, "operation", json_integer(life->operation));
            json_object_set_new(object, "connection", json_integer(life->connection));
        }
        json_array_append_new(worst, object);
    }
    return worst;
}

static json_t *culprits_json(const struct run_analysis *run, const struct diagnosis_views *views)
{
    json_t *culprits = json_array();
    for (size_t i = 0; i < views->culprits.count && i < WORST_BLOCKERS; i++) {
        const struct culprit *one = &views->culprits.items[i];
        char words[240];
        json_array_append_new(
            culprits, json_pack("{s:s, s:b, s:b, s:I, s:I, s:o, s:o, s:o}", "who",
                                run_culprit_words(run, one, words, sizeof words), "foreign",
                                one->foreign, "heavy", one->heavy, "requests",
                                (json_int_t)one->services, "messages", (json_int_t)one->messages,
                                "each_us", json_number_or_null(one->each_ns / 1000), "total_us",
                                json_number_or_null(one->total_ns / 1000), "slept_us",
                                json_number_or_null(one->slept_ns / 1000)));
    }
    return culprits;
}

static json_t *blocking_json(const struct run_analysis *run, const struct diagnosis_views *views)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:I, s:I}", "by", scopes_json(views), "worst_blockers",
                     worst_json(run, views), "culprits", culprits_json(run, views), "named_us",
                     json_number_or_null(views->blocked_ns / 1000), "slow_themselves",
                     (json_int_t)views->slow_themselves, "slow_behind",
                     (json_int_t)views->slow_behind);
}

void run_summary_add_views(json_t *object, const struct run_analysis *run,
                           const struct diagnosis *diagnosis)
{
    const struct diagnosis_views *views = &diagnosis->views;
    bool has = views->available;
    json_object_set_new(object, "queue", has ? queue_json(views) : json_null());
    json_object_set_new(object, "contexts", has ? contexts_json(views) : json_null());
    json_object_set_new(object, "blocking", has ? blocking_json(run, views) : json_null());
}

// --- diagnoses -----------------------------------------------------------------------------------

static json_t *diagnosis_json(const struct run_analysis *run, size_t index)
{
    const struct diagnosis *diagnosis = &run->findings.diagnoses.items[index];
    const struct diagnosis_slice *slice = &diagnosis->slice;
    bool bounded = slice->from_ns != slice->to_ns;
    double from = bounded ? (double)(slice->from_ns - run->lifetimes.begin_ns) : 0;
    double to =
        (double)((bounded ? slice->to_ns : run->lifetimes.end_ns) - run->lifetimes.begin_ns);
    char words[96];
    json_t *object =
        json_pack("{s:s, s:o, s:f, s:f, s:o, s:o, s:b}", "slice",
                  diagnosis_slice_words(slice, words, sizeof words), "request",
                  slice->one ? count_of(slice->request) : json_null(), "from_s", from / 1e9, "to_s",
                  to / 1e9, "reference_latency_us",
                  diagnosis->not_available ? json_null() : micros(diagnosis->reference_latency_ns),
                  "causes", causes_json(diagnosis), "available", !diagnosis->not_available);
    result_put_json(object, "", diagnosis_fields, diagnosis);
    json_object_set_new(object, "ordinary", ordinary_json(diagnosis));
    json_object_set_new(object, "lifetimes", lifetimes_json(run, index));
    run_summary_add_views(object, run, diagnosis);
    return object;
}

static json_t *windows_json(const struct run_analysis *run)
{
    json_t *windows = json_array();
    for (size_t i = 1; i < run->findings.diagnoses.count; i++)
        json_array_append_new(windows, diagnosis_json(run, i));
    return windows;
}

// Requests without a whole lifetime, by reason.
static json_t *unmatched_json(const struct run_analysis *run)
{
    json_t *object = json_object();
    for (int state = LIFETIME_UNANSWERED; state < LIFETIME_STATES; state++)
        json_object_set_new(object, lifetime_state_name((enum lifetime_state)state),
                            count_of(run->lifetimes.states[state]));
    return object;
}

static json_t *quantiles_json(const double ns[LATENCY_QUANTILES])
{
    json_t *at = json_object();
    for (int q = 0; q < LATENCY_QUANTILES; q++)
        json_object_set_new(at, latency_quantile_names[q], micros(ns[q]));
    return at;
}

static json_t *stages_json(const struct run_analysis *run)
{
    json_t *stages = json_array();
    for (int stage = STAMP_SEND; stage < STAGES; stage++) {
        double mean_ns[LATENCY_QUANTILES];
        for (int q = 0; q < LATENCY_QUANTILES; q++)
            mean_ns[q] = run->lifetimes.stage_at_quantile_ns[q][stage];
        json_t *one =
            json_pack("{s:s, s:s, s:s, s:s, s:o}", "stage",
                      stage_name((enum stamp_kind)stage, join_undivided(&run->lifetimes.join)),
                      "role", role_name(stage_role((enum stamp_kind)stage)), "machine",
                      run_stage_machine(run, (enum stamp_kind)stage), "ends_at",
                      stamp_name((enum stamp_kind)stage), "mean_us", quantiles_json(mean_ns));
        if (stage == STAMP_REPLY)
            json_object_set_new(one, "not_running_us",
                                quantiles_json(run->lifetimes.off_core_at_quantile_ns));
        json_array_append_new(stages, one);
    }
    return stages;
}

// By where they were lost, and of these by what threw them away.
static void put_datagram_losses(json_t *join, const struct datagram_losses *losses)
{
    json_t *lost = json_object(), *thrown = json_object();
    for (unsigned at = 0; at < DATAGRAM_LOSSES; at++) {
        const char *key = datagram_loss_key((enum datagram_loss)at);
        json_t *here = json_object();
        if (losses->at[at])
            json_object_set_new(lost, key, count_of(losses->at[at]));
        for (unsigned by = 1; by < EVENT_LOSSES; by++)
            if (losses->by[at][by])
                json_object_set_new(here, event_loss_name(by), count_of(losses->by[at][by]));
        if (json_object_size(here))
            json_object_set(thrown, key, here);
        json_decref(here);
    }
    json_object_set_new(join, "datagrams_lost", lost);
    json_object_set_new(join, "datagrams_thrown_away", thrown);
}

static json_t *join_json(const struct run_analysis *run)
{
    const struct join_counts *join = &run->lifetimes.join;
    bool of_trace = run_trace_gives_stamps(&run->evidence.trace);
    json_t *object = json_pack("{s:b, s:b}", "events", run_has_server_events(run) && !of_trace,
                               "calls", run->evidence.has_calls);
#define JOIN_COUNT(name, means) json_object_set_new(object, #name, count_of(join->name));
#include "analysis/lifetime/lifetimes.tbl.h"
    put_datagram_losses(object, &join->datagrams_lost);
    json_object_set_new(
        object, "unpaired_records",
        count_of(run->evidence.server.unpaired + run->evidence.server.lost_intervals));
    return object;
}

static json_t *difference_json(const struct call_difference *difference)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "both", count_of(difference->both),
                     "other_bytes", count_of(difference->other_bytes), "shim_only",
                     count_of(difference->shim_only), "kernel_only",
                     count_of(difference->kernel_only), "median_us", micros(difference->median_ns),
                     "p99_us", micros(difference->p99_ns), "least_us", micros(difference->least_ns),
                     "most_us", micros(difference->most_ns));
}

// Who saw the servers' socket calls, and how far the two differ where both did.
static json_t *calls_json(const struct run_evidence *evidence)
{
    const struct call_comparison *both = &evidence->comparison;
    json_t *object = json_pack("{s:o, s:o}", "by_shim", count_of(evidence->calls_by_shim),
                               "by_kernel", count_of(evidence->calls_by_kernel));
    if (both->connections)
        json_object_set_new(object, "shim_minus_kernel",
                            json_pack("{s:o, s:o, s:o}", "connections", count_of(both->connections),
                                      "receives", difference_json(&both->receives), "sends",
                                      difference_json(&both->sends)));
    return object;
}

// For how long, and on which cores, nobody knows what held messages up.
static json_t *unseen_json(const struct unseen_time *unseen)
{
    json_t *cores = json_array();
    for (size_t i = 0; i < unseen->cores.count; i++) {
        const struct unseen_core *core = &unseen->cores.items[i];
        json_array_append_new(cores, json_pack("{s:i, s:s, s:o, s:o}", "core", (int)core->core,
                                               "role", role_name(core->received ? ROLE_R : ROLE_A),
                                               "unrecorded_us", micros((double)core->unrecorded_ns),
                                               "lost_us", micros((double)core->lost_ns)));
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "requests", count_of(unseen->unrecorded),
                     "unrecorded_us", micros((double)unseen->unrecorded_ns), "lost_us",
                     micros((double)unseen->lost_ns), "cores", cores);
}

// How the clocks of the client's machine and the server's relate; null where they are one.
static json_t *hosts_json(const struct two_hosts *hosts)
{
    if (!hosts->apart)
        return json_null();
    bool related = hosts->exchanges > 0;
    json_t *trips = json_object();
    for (int q = 0; q < ROUND_TRIPS; q++)
        json_object_set_new(trips, round_trip_quantile_names[q],
                            related ? micros(hosts->round_trip_ns[q]) : json_null());
    return json_pack("{s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "exchanges",
                     count_of(hosts->exchanges), "round_trip_us", trips, "both_ways",
                     hosts->both_ways, "unknown", count_of(hosts->unknown), "gaps",
                     count_of(hosts->gaps), "negative_trips", count_of(hosts->negative_trips),
                     "offset_ns", json_integer(hosts->offset_ns), "rate_ppm",
                     json_number_or_null(hosts->rate * 1e6), "bound_p50_us",
                     related ? micros(hosts->bound_p50_ns) : json_null(), "bound_p99_us",
                     related ? micros(hosts->bound_p99_ns) : json_null());
}

json_t *run_summary_trace(const struct run_trace *trace)
{
    char words[RUN_TRACE_WORDS];
    const char *lack = run_trace_lack(trace, words);
    if (trace->problem[0])
        return json_pack("{s:s, s:b, s:s}", "problem", trace->problem, "asked", trace->asked,
                         "lack", lack);
    if (!trace->present)
        return json_null();
    return json_pack(
        "{s:b, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o, "
        "s:o, s:o, s:o}",
        "asked", trace->asked, "lack", lack, "overflows", count_of(trace->overflows), "truncated",
        count_of(trace->truncated), "gaps", count_of(trace->gaps), "perf_errors",
        count_of(trace->perf_errors), "perf_lost", count_of(trace->perf_lost), "malformed",
        count_of(trace->malformed), "slow_ns", json_number_or_null(trace->slow_ns),
        "slow_traced_ns", json_number_or_null(trace->slow_traced_ns), "handoffs",
        count_of(trace->handoffs), "handoffs_unknown", count_of(trace->handoffs_unknown), "streams",
        count_of(trace->streams), "bytes", count_of(trace->bytes), "decoded_bytes",
        count_of(trace->decoded), "messages", count_of(trace->messages), "functions",
        count_of(trace->functions), "errors", count_of(trace->errors), "traced_ns",
        json_number_or_null(trace->traced_ns), "granularity_ns",
        json_number_or_null(trace->granularity_ns), "stamps", trace_stamps_json(&trace->stamps));
}

json_t *run_summary_categories(const struct run_analysis *run)
{
    const struct run_categories *categories = &run->findings.categories;
    json_t *list = json_array();
    for (size_t i = 0; i < categories->source_count; i++) {
        const struct category_source *source = &categories->sources[i];
        json_array_append_new(list, json_pack("{s:s, s:o}", "file", source->file, "patterns",
                                              count_of(source->rules)));
    }
    return list;
}

// The loads beside the one that this is about, by their own account.
static json_t *other_loads_json(const struct run_analysis *run)
{
    const struct run_load_array *others = &run->evidence.other_loads;
    json_t *list = json_array();
    for (size_t i = 0; i < others->count; i++) {
        static const char *const keys[] = {"scheduled",     "answered",   "offered_rate",
                                           "achieved_rate", "latency_us", "ci_us",
                                           "verdict"};
        json_t *one = json_pack("{s:s, s:s}", "name", others->items[i].name, "folder",
                                others->items[i].folder);
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            json_object_set(one, keys[k], json_object_get(others->items[i].summary, keys[k]));
        json_array_append_new(list, one);
    }
    return list;
}

json_t *run_summary_json(const struct run_analysis *run)
{
    const struct diagnosis *first =
        run->findings.diagnoses.count ? run->findings.diagnoses.items : NULL;
    const struct run_lifetimes *lives = &run->lifetimes;
    const struct run_evidence *evidence = &run->evidence;
    struct run_lede lede;
    run_lede(run, &lede);
    json_t *summary = json_pack(
        "{s:s, s:s, s:s, s:o, s:s, s:b, s:b}", "run_dir", evidence->run_dir, "name", evidence->name,
        "lede", lede.text, "remedy", lede.remedy[0] ? json_string(lede.remedy) : json_null(),
        "verdict", run->findings.verdict, "verdict_available", run->findings.verdict_available,
        "conclusive", run_is_conclusive(run));
    if (run_load_name(run)) {
        json_object_set_new(summary, "load", json_string(run_load_name(run)));
        json_object_set_new(summary, "other_loads", other_loads_json(run));
    }
    result_put_json(summary, "", run_counts, run);
    result_put_json(summary, "", run_measures, run);
    const struct overhead overhead =
        overhead_of_capture(evidence->capture, evidence->calls_by_shim > 0);
    const struct {
        const char *key;
        json_t *value;
    } parts[] = {
        {"unmatched", unmatched_json(run)},
        {"dropped", json_pack("{s:o, s:o, s:o, s:o}", "events", count_of(evidence->dropped_events),
                              "calls", count_of(evidence->dropped_calls), "samples",
                              count_of(evidence->dropped_samples), "client_events",
                              count_of(evidence->dropped_client_events))},
        {"latency_us", latency_json(&lives->latency)},
        {"latency_ci_us", intervals_json(&lives->latency)},
        {"uncorrected_latency_us", latency_json(&lives->uncorrected_latency)},
        {"uncorrected_latency_ci_us", intervals_json(&lives->uncorrected_latency)},
        {"causes", causes_json(first)},
        {"coverage_median", json_number_or_null(first ? first->coverage_median : NAN)},
        {"stages", stages_json(run)},
        {"hops", run_hops_json(&lives->hops, first)},
        {"join", join_json(run)},
        {"calls", calls_json(evidence)},
        {"hosts", hosts_json(&lives->join.hosts)},
        {"diagnosis", first ? diagnosis_json(run, 0) : json_null()},
        {"windows", windows_json(run)},
        {"categories", run_summary_categories(run)},
        {"overhead_estimate",
         json_pack("{s:f, s:f, s:f}", "record_ns", overhead.record_ns, "packet_ns",
                   overhead.packet_ns, "call_ns", overhead.call_ns)},
        {"shared", shared_traits_json(run)},
        {"time_budget", time_budget_json(&run->findings.budget)},
        {"unseen", unseen_json(&run->lifetimes.unseen)},
        {"trace", run_summary_trace(&evidence->trace)},
        {"functions", run_functions_json(&evidence->functions)},
        {"samples", run_samples_json(&evidence->samples)},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        json_object_set_new(summary, parts[i].key, parts[i].value);
    return summary;
}
