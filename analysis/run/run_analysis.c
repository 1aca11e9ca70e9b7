// SPDX-License-Identifier: MIT
#include "analysis/run/run_analysis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/diagnosis/reference.h"
#include "analysis/lifetime/off_core.h"
#include "base/array.h"
#include "base/text.h"
#include "loadgen/method/method_interval.h"

// Smaller differences mean nothing even with perfect clocks: a record is taken some time after what
// it records, and that time varies (NSight measured 322 ns).
#define SMALLEST_GRANULARITY_NS 500.0
#define NEARLY_ALL              0.8           // of the extra time is explained
enum { FEW_ORDINARY = 4 * REFERENCE_SAMPLE }; // for who asks for an answer soon and often

const double latency_quantiles[LATENCY_QUANTILES] = {0.5, 0.9, 0.99, 0.999, 0.9999, 1};
const char *const latency_quantile_names[LATENCY_QUANTILES] = {"p50",   "p90",    "p99",
                                                               "p99.9", "p99.99", "max"};

const struct diagnosis *run_diagnosis_of(const struct run_analysis *run, size_t number,
                                         enum lifetime_part part)
{
    const struct diagnosis_array *all =
        part ? &run->findings.part_diagnoses : &run->findings.diagnoses;
    size_t at = part ? number * (PARTS - 1) + part - 1 : number;
    return at < all->count ? &all->items[at] : NULL;
}

// A server that stood still while everybody waited is what the run was made to find: where it is
// known why, there is no doubt left. Latency counts from the intended send time, so that requests
// that had to wait for room on their connection meanwhile have all of it.
static bool silence_is_explained(const struct run_analysis *run)
{
    const struct diagnosis_array *all = &run->findings.diagnoses;
    return all->count && !all->items->not_available && all->items->coverage_total >= NEARLY_ALL;
}

// Which of the load's reasons is the one to begin with: its place among them, and its kind. Older
// loads have them in the order in which they were found. False: all of them are explained.
static bool first_reason(const struct run_analysis *run, size_t *first, enum load_doubt *kind)
{
    size_t i;
    json_t *key, *keys = json_object_get(run->evidence.load, "doubts");
    bool any = json_array_size(keys) == 0;
    *first = 0;
    *kind = LOAD_DOUBTS;
    json_array_foreach(keys, i, key)
    {
        enum load_doubt one = load_doubt_named(json_string_value(key));
        if (one == DOUBT_SILENT && silence_is_explained(run))
            continue;
        if (!any || one < *kind) {
            *first = i;
            *kind = one;
        }
        any = true;
    }
    return any;
}

const char *run_load_doubt(const struct run_analysis *run)
{
    size_t first;
    enum load_doubt kind;
    const char *verdict = json_string_value(json_object_get(run->evidence.load, "verdict"));
    if (run->evidence.missing.load[0])
        return run->evidence.missing.load;
    if (!verdict || strcmp(verdict, "n/a") != 0 || !first_reason(run, &first, &kind))
        return NULL;
    const char *reason =
        json_string_value(json_array_get(json_object_get(run->evidence.load, "reasons"), first));
    return reason ? reason : "the load says so, and gives no reason";
}

enum load_doubt run_load_doubt_kind(const struct run_analysis *run)
{
    size_t first;
    enum load_doubt kind = LOAD_DOUBTS;
    if (run_load_doubt(run))
        first_reason(run, &first, &kind);
    return kind;
}

struct load_doubt_words run_load_doubt_words(const struct run_analysis *run)
{
    return load_doubt_words(run_load_doubt_kind(run));
}

bool run_is_conclusive(const struct run_analysis *run)
{
    char words[RUN_TRACE_WORDS];
    const struct run_trace *trace = &run->evidence.trace;
    return run->findings.verdict_available && !run_load_doubt(run) &&
           !(trace->asked && run_trace_lack(trace, words)[0]);
}

double run_diagnosis_extra_ns(const struct diagnosis *diagnosis)
{
    double sum = 0;
    for (size_t i = 0; i < diagnosis->messages.count; i++)
        if (isfinite(diagnosis->messages.items[i].deviation_ns))
            sum += fmax(diagnosis->messages.items[i].deviation_ns, 0);
    return sum;
}

void run_diagnosis_input(const struct run_analysis *run, struct diagnosis_input *out)
{
    *out = (struct diagnosis_input){
        .lifetimes = run->lifetimes.all.items,
        .lifetime_count = run->lifetimes.all.count + run->lifetimes.beside,
        .holdups = &run->lifetimes.holdups,
        .hops = run->lifetimes.hops.present ? &run->lifetimes.hops.stays : NULL,
        .hop_places = run->lifetimes.hops.places,
        .peers = &run->lifetimes.peers,
        .server = run_has_server_events(run) ? &run->evidence.server : NULL,
        .client = !run->evidence.has_client_events   ? NULL
                  : run->evidence.has_client_capture ? &run->evidence.client
                                                     : &run->evidence.server,
        .client_turns = &run->lifetimes.client_turns,
        .openings = &run->lifetimes.openings,
        .application_threads = run->evidence.application_threads,
        .application_thread_count = run->evidence.application_thread_count,
        .applications = &run->lifetimes.applications,
        .granularity_ns =
            fmax(SMALLEST_GRANULARITY_NS,
                 fmax(run->evidence.clock_error_ns, run_trace_apart_ns(&run->evidence.trace))),
        .reference_most = run->findings.whole_alone ? FEW_ORDINARY : 0,
        .without_views = run->findings.whole_alone,
        .without_client = run->evidence.without_client,
        .calls = run->evidence.has_calls ? &run->evidence.calls : NULL,
        .order = &run->lifetimes.order,
        .categories =
            run->findings.categories.table.rules.count ? &run->findings.categories.table : NULL,
        .overhead = overhead_of_capture(run->evidence.capture, run->evidence.calls_by_shim > 0),
        .dropped_share = run->evidence.dropped_share,
    };
}

// Turns a window that counts from the first intended time into host time, no longer than the run.
static void place_window(const struct run_analysis *run, struct diagnosis_slice *slice)
{
    int64_t length = run->lifetimes.end_ns - run->lifetimes.begin_ns + 1;
    int64_t to = slice->to_ns < length ? slice->to_ns : length;
    int64_t from = slice->from_ns < length ? slice->from_ns : length;
    slice->from_ns = run->lifetimes.begin_ns + from;
    slice->to_ns =
        from < to ? run->lifetimes.begin_ns + to : slice->from_ns + 1; // beyond the end: empty
    slice->relative = false;
}

int run_check_request(const struct diagnosis_slice *slice, uint64_t requests, const char *run_dir,
                      struct error *err)
{
    if (!slice->one || slice->request < requests)
        return 0;
    return error_set(err, ERROR_INPUT,
                     "there is no request %llu in %s: its %s requests are numbered from 0",
                     (unsigned long long)slice->request, run_dir, TEXT_COUNT(requests));
}

int run_place_slice(const struct run_analysis *run, struct diagnosis_slice *slice,
                    struct error *err)
{
    if (run_check_request(slice, run->lifetimes.all.count, run->evidence.run_dir, err) < 0)
        return -ERROR_INPUT;
    if (slice->relative && slice->from_ns != slice->to_ns)
        place_window(run, slice);
    return 0;
}

static const char *name_or(const json_t *name, const char *otherwise)
{
    return json_string_length(name) > 0 ? json_string_value(name) : otherwise;
}

const char *run_host_name(const struct run_analysis *run, bool client)
{
    const json_t *load = json_object_get(run->evidence.experiment, "load");
    if (client)
        return name_or(json_object_get(load, "from"), "client");
    const char *server = json_string_value(json_object_get(load, "to"));
    const json_t *servers = json_object_get(run->evidence.experiment, "servers");
    const json_t *one = server ? json_object_get(servers, server) : NULL;
    return name_or(json_object_get(one, "host"), "server");
}

bool run_shows_stamp(const struct run_analysis *run, const struct lifetime *life,
                     enum stamp_kind kind)
{
    return lifetime_has(life, kind) &&
           !(run->evidence.without_client && stage_role(kind) == ROLE_CLIENT);
}

const char *run_stage_machine(const struct run_analysis *run, enum stamp_kind ends_at)
{
    enum core_role role = stage_role(ends_at);
    if (!run->lifetimes.join.hosts.apart || role == ROLE_NETWORK)
        return "";
    return run_host_name(run, role == ROLE_CLIENT);
}

const char *run_load_name(const struct run_analysis *run)
{
    const json_t *load = json_object_get(run->evidence.experiment, "load");
    return run->evidence.other_loads.count ? json_string_value(json_object_get(load, "name"))
                                           : NULL;
}

const char *run_other_load_name(const struct run_analysis *run, unsigned load)
{
    const struct run_load_array *others = &run->evidence.other_loads;
    return load > 0 && load <= others->count ? others->items[load - 1].name : "?";
}

char *run_title(const struct run_analysis *run, char *out, size_t out_bytes)
{
    const char *load = run_load_name(run);
    snprintf(out, out_bytes, "%s%s%s%s", run->evidence.name, load ? ", load `" : "",
             load ? load : "", load ? "`" : "");
    return out;
}

// What was asked for by a load, as by run_operation_name.
static const json_t *workload_of(const struct run_analysis *run, unsigned load)
{
    const json_t *experiment = run->evidence.experiment;
    if (load)
        experiment =
            json_object_get(json_object_get(experiment, "loads"), run_other_load_name(run, load));
    return json_object_get(experiment, "workload");
}

const char *run_operation_name(const struct run_analysis *run, unsigned load, uint64_t operation)
{
    const json_t *mix = json_object_get(workload_of(run, load), "mix");
    void *at = json_object_iter((json_t *)(uintptr_t)mix);
    while (at && operation--)
        at = json_object_iter_next((json_t *)(uintptr_t)mix, at);
    return at ? json_object_iter_key(at) : NULL;
}

void run_analysis_free(struct run_analysis *analysis)
{
    categories_free(&analysis->findings.categories.table);
    json_decref(analysis->evidence.experiment);
    json_decref(analysis->evidence.load);
    run_loads_free(&analysis->evidence.other_loads);
    json_decref(analysis->evidence.capture);
    json_decref(analysis->evidence.facts);
    array_free(&analysis->lifetimes.all);
    array_free(&analysis->lifetimes.holdups);
    run_hops_free(&analysis->lifetimes.hops);
    peers_free(&analysis->lifetimes.peers);
    host_timeline_free(&analysis->evidence.server);
    host_timeline_free(&analysis->evidence.client);
    client_turns_free(&analysis->lifetimes.client_turns);
    openings_free(&analysis->lifetimes.openings);
    run_samples_free(&analysis->evidence.samples);
    array_free(&analysis->evidence.calls);
    service_order_free(&analysis->lifetimes.order);
    unseen_time_free(&analysis->lifetimes.unseen);
    applications_free(&analysis->lifetimes.applications);
    array_free(&analysis->evidence.connections);
    free(analysis->evidence.application_threads);
    for (size_t i = 0; i < analysis->findings.diagnoses.count; i++)
        diagnosis_free(&analysis->findings.diagnoses.items[i]);
    for (size_t i = 0; i < analysis->findings.part_diagnoses.count; i++)
        diagnosis_free(&analysis->findings.part_diagnoses.items[i]);
    array_free(&analysis->findings.diagnoses);
    array_free(&analysis->findings.part_diagnoses);
    time_budget_free(&analysis->findings.budget);
    array_free(&analysis->findings.shared);
    memset(analysis, 0, sizeof *analysis);
}

// --- statistics ----------------------------------------------------------------------------------

#define CONFIDENCE 0.95

static void count_requests(struct run_analysis *run)
{
    run->lifetimes.scheduled = run->lifetimes.all.count;
    for (size_t i = 0; i < run->lifetimes.all.count; i++) {
        const struct lifetime *life = &run->lifetimes.all.items[i];
        run->lifetimes.states[life->state]++;
        run->lifetimes.sent += lifetime_has(life, STAMP_SEND);
        run->lifetimes.answered += life->status <= SAMPLE_ERROR_REPLY;
        run->lifetimes.unsent += life->status == SAMPLE_UNSENT;
        run->lifetimes.timed_out += life->status == SAMPLE_TIMED_OUT;
        run->lifetimes.lost += life->status == SAMPLE_LOST;
    }
}

// Requests per second: what the schedule asked for, and what was answered until the last reply.
static void compute_rates(struct run_analysis *run)
{
    int64_t last_reply = INT64_MIN;
    run->lifetimes.begin_ns = INT64_MAX;
    run->lifetimes.end_ns = INT64_MIN;
    for (size_t i = 0; i < run->lifetimes.all.count; i++) {
        const struct lifetime *life = &run->lifetimes.all.items[i];
        int64_t intended = life->stamp_ns[STAMP_INTENDED];
        if (!lifetime_has(life, STAMP_INTENDED))
            continue;
        run->lifetimes.begin_ns =
            intended < run->lifetimes.begin_ns ? intended : run->lifetimes.begin_ns;
        run->lifetimes.end_ns = intended > run->lifetimes.end_ns ? intended : run->lifetimes.end_ns;
        if (lifetime_has(life, STAMP_REPLY_READ) && life->stamp_ns[STAMP_REPLY_READ] > last_reply)
            last_reply = life->stamp_ns[STAMP_REPLY_READ];
    }
    if (run->lifetimes.begin_ns > run->lifetimes.end_ns) // no usable stamp at all
        run->lifetimes.begin_ns = run->lifetimes.end_ns = 0;
    double scheduled_s = (double)(run->lifetimes.end_ns - run->lifetimes.begin_ns) / 1e9;
    run->lifetimes.offered_rate =
        scheduled_s > 0 ? (double)(run->lifetimes.scheduled - 1) / scheduled_s : (double)NAN;
    int64_t until = last_reply > run->lifetimes.end_ns ? last_reply : run->lifetimes.end_ns;
    double whole_s = (double)(until - run->lifetimes.begin_ns) / 1e9;
    run->lifetimes.achieved_rate =
        whole_s > 0 ? (double)run->lifetimes.answered / whole_s : (double)NAN;
}

// Where the rate changed by plan, a percentile is one of a mix of loads, and has no interval.
static bool rate_is_constant(const json_t *load)
{
    const char *pattern = json_string_value(json_object_get(load, "pattern"));
    const char *arrivals = json_string_value(json_object_get(load, "arrivals"));
    return (!pattern || strcmp(pattern, "constant") == 0) &&
           (!arrivals || strncmp(arrivals, "replay:", strlen("replay:")) != 0);
}

// Of values in the order in which their requests were to be sent.
static int summarise(const double *values, size_t count, const json_t *load,
                     struct latency_summary *out, struct error *err)
{
    int result = percentile_intervals_take(values, count, latency_quantiles, LATENCY_QUANTILES,
                                           CONFIDENCE, out->value_ns, out->interval_ns, err);
    for (int i = 0; i < LATENCY_QUANTILES && result == 0; i++) {
        out->value_ns[i] = quantile_if_seen(out->value_ns[i], count, latency_quantiles[i]);
        if (!rate_is_constant(load))
            out->interval_ns[i] = (struct quantile_interval){false, NAN, NAN};
    }
    return result;
}

int latency_summarise(const double *values_ns, size_t count, struct latency_summary *out,
                      struct error *err)
{
    return summarise(values_ns, count, NULL, out, err);
}

static int summarise_latencies(struct run_analysis *run, double *values, struct error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < run->lifetimes.all.count; i++)
        values[count++] = run->lifetimes.all.items[i].latency_ns;
    int result = summarise(values, count, run->evidence.load, &run->lifetimes.latency, err);
    if (result < 0)
        return result;
    count = 0;
    for (size_t i = 0; i < run->lifetimes.all.count; i++)
        if (!isnan(run->lifetimes.all.items[i].uncorrected_latency_ns))
            values[count++] = run->lifetimes.all.items[i].uncorrected_latency_ns;
    result = summarise(values, count, run->evidence.load, &run->lifetimes.uncorrected_latency, err);
    if (result < 0)
        return result;
    count = 0;
    for (size_t i = 0; i < run->lifetimes.all.count; i++) {
        const struct lifetime *life = &run->lifetimes.all.items[i];
        if (lifetime_has(life, STAMP_SEND) && lifetime_has(life, STAMP_INTENDED))
            values[count++] = (double)(life->stamp_ns[STAMP_SEND] - life->stamp_ns[STAMP_INTENDED]);
    }
    quantile_sort(values, count);
    run->lifetimes.lateness_p50_ns = quantile_sorted(values, count, 0.5);
    run->lifetimes.lateness_p99_ns = quantile_sorted(values, count, 0.99);
    return 0;
}

int run_latency_of_application(const struct run_analysis *run, uint16_t application,
                               struct latency_summary *out, struct error *err)
{
    size_t count = 0;
    double *values = malloc((run->lifetimes.all.count + 1) * sizeof *values);
    if (!values)
        return error_set(err, ERROR_FAILED, "no memory for a server's latency");
    for (size_t i = 0; i < run->lifetimes.all.count; i++)
        if (run->lifetimes.all.items[i].application == application)
            values[count++] = run->lifetimes.all.items[i].latency_ns;
    int result = summarise(values, count, run->evidence.load, out, err);
    free(values);
    return result;
}

static int by_latency(const void *left, const void *right)
{
    const struct lifetime *a = *(const struct lifetime *const *)left;
    const struct lifetime *b = *(const struct lifetime *const *)right;
    if (a->latency_ns < b->latency_ns || a->latency_ns > b->latency_ns)
        return a->latency_ns < b->latency_ns ? -1 : 1;
    return order_of(a->request, b->request);
}

// How many messages on either side of the quantile to average: a tenth of those beyond it, but at
// least five, because fewer would show chance rather than the quantile. The maximum is one message.
static void band_around(double quantile, size_t count, size_t *low, size_t *high)
{
    double rank = quantile * (double)count;
    double beyond = fmin(quantile, 1 - quantile) * (double)count;
    double half = quantile < 1 ? fmax(5, beyond / 10) : 1;
    *low = rank - half > 0 ? (size_t)(rank - half) : 0;
    *high = rank + half < (double)count ? (size_t)(rank + half) : count;
}

// The requests whose stages count: those with every stamp, or all that were answered.
static size_t select_lifetimes(const struct run_analysis *run, bool whole,
                               const struct lifetime **out)
{
    size_t count = 0;
    for (size_t i = 0; i < run->lifetimes.all.count; i++) {
        const struct lifetime *life = &run->lifetimes.all.items[i];
        if (life->state == LIFETIME_WHOLE || (!whole && isfinite(life->latency_ns)))
            out[count++] = life;
    }
    return count;
}

double run_off_core_ns(const struct run_analysis *run, const struct lifetime *life)
{
    // The stage's length allows for clock errors, the thread's records do not.
    return fmin(off_core_ns(&run->evidence.server, &run->evidence.calls, life),
                life->stage_ns[STAMP_REPLY]);
}

// Of the stage's mean that share which those had whose threads' records were looked at: where
// thousands wait at once, each has thousands of records.
static double mean_off_core_ns(const struct run_analysis *run, const struct lifetime *const *lives,
                               size_t count)
{
    enum { LOOKED_AT = 1000 };
    double off = 0, looked_at = 0, all = 0;
    for (size_t i = 0; i < count; i++) {
        all += lives[i]->stage_ns[STAMP_REPLY];
        if (i % (count / LOOKED_AT + 1) != 0)
            continue;
        off += run_off_core_ns(run, lives[i]);
        looked_at += lives[i]->stage_ns[STAMP_REPLY];
    }
    return looked_at > 0 ? off / looked_at * all / (double)count : count ? 0 : NAN;
}

// Means, because they add up: a quantile's stages together are the mean latency of its band.
static int compute_stages(struct run_analysis *run)
{
    const struct lifetime **lives = malloc((run->lifetimes.all.count + 1) * sizeof *lives);
    if (!lives)
        return -1;
    size_t count = select_lifetimes(run, true, lives);
    if (count == 0) // a source was not captured at all: use the stages that are known, merged
        count = select_lifetimes(run, false, lives);
    qsort(lives, count, sizeof *lives, by_latency);
    for (int q = 0; q < LATENCY_QUANTILES; q++) {
        size_t low, high;
        band_around(latency_quantiles[q], count, &low, &high);
        if (!quantile_is_seen(count, latency_quantiles[q]))
            low = high; // nobody knows its latency, nor of what that consists
        for (int stage = 0; stage < STAGES; stage++) {
            double sum = 0;
            for (size_t i = low; i < high; i++)
                sum += lives[i]->stage_ns[stage];
            run->lifetimes.stage_at_quantile_ns[q][stage] =
                high > low ? sum / (double)(high - low) : NAN;
        }
        run->lifetimes.off_core_at_quantile_ns[q] = mean_off_core_ns(run, lives + low, high - low);
    }
    free(lives);
    return 0;
}

static void check_stage_sums(struct run_analysis *run)
{
    for (size_t i = 0; i < run->lifetimes.all.count; i++) {
        const struct lifetime *life = &run->lifetimes.all.items[i];
        if (!isfinite(life->latency_ns))
            continue;
        double sum = 0;
        for (int stage = 0; stage < STAGES; stage++)
            sum += life->stage_ns[stage];
        double error = fabs(sum - life->latency_ns);
        if (error > run->lifetimes.worst_stage_sum_error_ns)
            run->lifetimes.worst_stage_sum_error_ns = error;
    }
}

int run_statistics(struct run_analysis *run)
{
    double *values = malloc((run->lifetimes.all.count + 1) * sizeof *values);
    if (!values)
        return -1;
    count_requests(run);
    compute_rates(run);
    struct error ignored; // the caller says that there is no memory
    int result = summarise_latencies(run, values, &ignored);
    check_stage_sums(run);
    if (result == 0)
        result = compute_stages(run);
    free(values);
    return result;
}

// --- categories ----------------------------------------------------------------------------------

// Adds a file, which takes precedence over those added before.
static int read_source(struct run_categories *categories, const char *path, struct error *err)
{
    size_t before = categories->table.rules.count;
    int result = categories_add_file(&categories->table, path, err);
    if (result < 0)
        return result;
    categories->sources[1] = categories->sources[0];
    snprintf(categories->sources[0].file, sizeof categories->sources[0].file, "%s", path);
    categories->sources[0].rules = categories->table.rules.count - before;
    categories->source_count++;
    return 0;
}

int run_categories_read(struct run_categories *categories, const char *run_dir, const char *asked,
                        struct error *err)
{
    char own[4200];
    snprintf(own, sizeof own, "%s/%s", run_dir, RUN_CATEGORIES_FILE);
    *categories = (struct run_categories){.source_count = 0};
    int result = categories_init(&categories->table, err);
    if (result == 0 && access(own, F_OK) == 0)
        result = read_source(categories, own, err);
    if (result == 0 && asked)
        result = read_source(categories, asked, err);
    return result;
}
