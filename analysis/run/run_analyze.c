// SPDX-License-Identifier: MIT
#include "analysis/run/run_analyze.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/run/run_functions.h"
#include "analysis/run/input/run_counted.h"
#include "analysis/run/input/run_input_open.h"
#include "analysis/run/run_lifetimes.h"
#include "analysis/run/run_trace.h"
#include "analysis/run/run_verdict.h"
#include "base/array.h"
#include "base/input_file.h"
#include "base/new_file.h"
#include "base/text.h"

#define DEFAULT_SLICE "p99-100"

static int diagnose_into(struct diagnosis_array *out, const struct diagnosis_input *in,
                         const struct diagnosis_slice *slice, struct error *err)
{
    struct diagnosis diagnosis;
    int result = diagnose(in, slice, &diagnosis, err);
    if (result < 0)
        return result;
    if (array_push(out, diagnosis) < 0) {
        diagnosis_free(&diagnosis);
        return error_set(err, ERROR_FAILED, "no memory for the diagnosis");
    }
    return 0;
}

static int diagnose_all(struct run_analysis *run, const struct diagnosis_slice_array *slices,
                        bool parts, struct error *err)
{
    struct diagnosis_input in;
    int result = 0;
    run_diagnosis_input(run, &in);
    for (size_t i = 0; i < slices->count && result == 0; i++)
        result = diagnose_into(&run->findings.diagnoses, &in, &slices->items[i], err);
    for (size_t i = 0; parts && i < (PARTS - 1) * slices->count && result == 0; i++) {
        in.part = (enum lifetime_part)(PART_WHOLE + 1 + i % (PARTS - 1));
        result =
            diagnose_into(&run->findings.part_diagnoses, &in, &slices->items[i / (PARTS - 1)], err);
    }
    return result;
}

// The servers' threads over the window of the run's slice, or from the first intended time to the
// last reply.
static int account_for_threads(struct run_analysis *run, struct error *err)
{
    const struct diagnosis_slice *slice =
        run->findings.diagnoses.count ? &run->findings.diagnoses.items[0].slice : NULL;
    struct time_budget_input in = {.host = &run->evidence.server,
                                   .threads = run->evidence.application_threads,
                                   .thread_count = run->evidence.application_thread_count,
                                   .applications = &run->lifetimes.applications,
                                   .begin_ns = run->lifetimes.begin_ns,
                                   .end_ns = run->lifetimes.end_ns};
    struct busy_time_array busy = {0};
    if (!run->evidence.has_events)
        return 0;
    for (size_t i = 0; i < run->lifetimes.all.count; i++) {
        const struct lifetime *life = &run->lifetimes.all.items[i];
        int64_t read_ns = life->stamp_ns[STAMP_REPLY_READ];
        if (lifetime_has(life, STAMP_REPLY_READ) && read_ns > in.end_ns)
            in.end_ns = read_ns;
    }
    if (slice && slice->from_ns != slice->to_ns)
        in.begin_ns = slice->from_ns, in.end_ns = slice->to_ns;
    int result = 0;
    if (run->evidence.has_calls) {
        in.busy = &busy;
        in.order = &run->lifetimes.order;
        result = busy_times_build(&busy, &run->evidence.calls, run->lifetimes.all.items,
                                  run->lifetimes.all.count + run->lifetimes.beside);
    }
    if (result == 0)
        result = time_budget_build(&run->findings.budget, &in);
    array_free(&busy);
    return result < 0 ? error_set(err, ERROR_FAILED, "no memory for the server's time budget") : 0;
}

// Over UDP a sample counts datagrams, not bytes.
static bool counts_bytes(const struct run_input *input)
{
    const struct connection *first = input->client_connections.records;
    return input->client_connections.count && first->protocol == CONNECTION_TCP;
}

// A request of the run's slice, or one never answered, is slow.
static struct trait_request trait_request_of(const struct lifetime *life,
                                             const struct sample *sample, bool bytes,
                                             double slow_ns)
{
    return (struct trait_request){
        .values = {[TRAIT_OPERATION] = sample->operation,
                   [TRAIT_KEY] = sample->key,
                   [TRAIT_CONNECTION] = sample->connection,
                   [TRAIT_SENDER] = sample_sender(sample),
                   [TRAIT_REQUEST] = bytes ? sample->request_end - sample->request_begin : 0,
                   [TRAIT_REPLY] = bytes ? sample->reply_end - sample->reply_begin : 0},
        .latency_ns = life->latency_ns,
        .slow = life->latency_ns >= slow_ns};
}

// What the slow requests of the run's slice share.
static int find_shared_traits(struct run_analysis *run, const struct run_input *input,
                              struct error *err)
{
    const struct diagnosis *first =
        run->findings.diagnoses.count ? run->findings.diagnoses.items : NULL;
    const struct sample *samples = input->samples.records;
    bool bytes = counts_bytes(input);
    size_t count = 0;
    if (!first || first->slice.one || first->slice.high < 1 || !(first->slice_low_ns > 0))
        return 0;
    struct trait_request *requests = malloc((run->lifetimes.all.count + 1) * sizeof *requests);
    for (size_t i = 0; requests && i < run->lifetimes.all.count; i++) {
        const struct lifetime *life = &run->lifetimes.all.items[i];
        int64_t at = life->stamp_ns[STAMP_INTENDED];
        bool within = first->slice.from_ns == first->slice.to_ns ||
                      (at >= first->slice.from_ns && at < first->slice.to_ns);
        if (within && lifetime_has(life, STAMP_SEND) && life->request < input->samples.count)
            requests[count++] =
                trait_request_of(life, &samples[life->request], bytes, first->slice_low_ns);
    }
    int result = requests ? shared_traits_find(&run->findings.shared, requests, count) : -1;
    free(requests);
    return result < 0 ? error_set(err, ERROR_FAILED, "no memory for what %s requests share",
                                  TEXT_COUNT(count))
                      : 0;
}

static int read_window(const json_t *window, size_t index, struct diagnosis_slice *slice,
                       struct error *err)
{
    json_t *from = json_object_get(window, "from_ns"), *to = json_object_get(window, "to_ns");
    if (!json_is_integer(from) || !json_is_integer(to) || json_integer_value(from) < 0 ||
        json_integer_value(to) <= json_integer_value(from))
        return error_set(err, ERROR_INPUT,
                         "diagnose.windows[%zu]: from_ns and to_ns must be whole numbers with "
                         "0 <= from_ns < to_ns",
                         index);
    slice->from_ns = json_integer_value(from);
    slice->to_ns = json_integer_value(to);
    slice->relative = true;
    return 0;
}

static int add_slice(const struct run_analysis *run, struct diagnosis_slice slice,
                     struct diagnosis_slice_array *out, struct error *err)
{
    int result = run_place_slice(run, &slice, err);
    if (result == 0 && array_push(out, slice) < 0)
        result = error_set(err, ERROR_FAILED, "no memory for slices");
    return result;
}

// The slice of the whole run first, then the same slice of each window.
static int slices_of_experiment(const struct run_analysis *run, struct diagnosis_slice_array *out,
                                struct error *err)
{
    const json_t *settings = json_object_get(run->evidence.experiment, "diagnose");
    const json_t *text = json_object_get(settings, "slice");
    const json_t *windows = json_object_get(settings, "windows");
    struct diagnosis_slice slice;
    if (text && !json_is_string(text))
        return error_set(err, ERROR_INPUT, "diagnose.slice must be a string");
    if (windows && !json_is_array(windows))
        return error_set(err, ERROR_INPUT, "diagnose.windows must be an array");
    int result = diagnosis_slice_parse(text ? json_string_value(text) : DEFAULT_SLICE, &slice, err);
    if (result < 0)
        return error_prefix(err, "diagnose");
    result = add_slice(run, slice, out, err);
    for (size_t i = 0; result == 0 && i < json_array_size(windows); i++) {
        result = read_window(json_array_get(windows, i), i, &slice, err);
        if (result == 0)
            result = add_slice(run, slice, out, err);
    }
    return result;
}

// Whether what was asked for is in a run of that many requests, due in so long a time.
static int check_asked(const struct diagnosis_slice_array *asked, uint64_t requests,
                       int64_t length_ns, const char *run_dir, struct error *err)
{
    int result = 0;
    for (size_t i = 0; asked && i < asked->count && result == 0; i++) {
        const struct diagnosis_slice *slice = &asked->items[i];
        result = run_check_request(slice, requests, run_dir, err);
        if (result == 0 && slice->relative && slice->from_ns > length_ns)
            result = error_set(err, ERROR_INPUT,
                               "--from %s: %s ends before that, its requests were due from 0 to %s",
                               TEXT_INSTANT((double)slice->from_ns), run_dir,
                               TEXT_INSTANT((double)length_ns));
    }
    return result;
}

// By the load's own log, before anything is analyzed. Without one, the server's logs show it later.
static int check_asked_early(const struct run_request *request, const struct run_input *input,
                             struct error *err)
{
    const struct sample *samples = input->samples.records;
    const size_t count = input->samples.count;
    const struct time_source *clock = input->apart ? &input->client_clock : &input->clock;
    if (input->without_client || count == 0)
        return 0;
    const int64_t length_ns =
        time_source_to_host(clock, HOST_CLOCK_TSC, samples[count - 1].intended_tsc) -
        time_source_to_host(clock, HOST_CLOCK_TSC, samples[0].intended_tsc);
    return check_asked(request->slices, count, length_ns, request->run_dir, err);
}

static int add_slices(const struct run_analysis *run, const struct diagnosis_slice_array *asked,
                      struct diagnosis_slice_array *out, struct error *err)
{
    int result =
        check_asked(asked, run->lifetimes.all.count,
                    run->lifetimes.end_ns - run->lifetimes.begin_ns, run->evidence.run_dir, err);
    for (size_t i = 0; asked && i < asked->count && result == 0; i++)
        result = add_slice(run, asked->items[i], out, err);
    return result;
}

// What the capture says of its trace. One that was asked for by name has to show something.
static void take_trace_facts(struct run_evidence *evidence)
{
    const json_t *recorded = json_object_get(evidence->capture, "intel_pt");
    const json_t *asked = json_object_get(evidence->capture, "asked");
    const char *name = json_string_value(
        asked ? asked : json_object_get(evidence->capture, "backend")); // captures before `asked`
    struct run_trace *trace = &evidence->trace;
    if (!json_is_object(recorded))
        return;
    trace->asked = name && strcmp(name, "intel_pt") == 0;
    trace->truncated = (uint64_t)json_integer_value(json_object_get(recorded, "truncated"));
    if (!evidence->has_events && !trace->problem[0])
        snprintf(trace->problem, sizeof trace->problem,
                 "there is no log of kernel events, and the processor's trace shows no hand-off "
                 "to the server in its place");
}

// Adds functions to the timeline where they were traced.
static int add_functions(struct run_analysis *run, const struct run_input *input,
                         const struct diagnosis_input *in,
                         const struct diagnosis_slice_array *slices, struct progress *progress,
                         struct error *err)
{
    const struct run_trace_input trace = {.run_dir = run->evidence.run_dir,
                                          .capture = run->evidence.capture,
                                          .clock_map = input->clock_map,
                                          .clock = input->clock,
                                          .diagnosis = in,
                                          .slices = slices->items,
                                          .slice_count = slices->count};
    take_trace_facts(&run->evidence);
    if (!run->evidence.has_events)
        return 0;
    if (json_is_object(json_object_get(run->evidence.capture, "intel_pt")))
        progress_phase(progress, "decoding what these messages need of the trace");
    int result = run_trace_add(&trace, &run->evidence.server, &run->evidence.trace, err);
    return result < 0
               ? result
               : run_functions_add(run->evidence.run_dir, run->evidence.capture, &input->clock,
                                   &run->evidence.server, &run->evidence.functions, err);
}

// Diagnoses each slice, with the functions of these and of those to be profiled.
static int explain(struct run_analysis *run, const struct run_input *input,
                   const struct run_request *request, struct progress *progress, struct error *err)
{
    struct diagnosis_slice_array slices = {0};
    struct diagnosis_input in;
    run_diagnosis_input(run, &in);
    int result = request->slices && request->slices->count
                     ? add_slices(run, request->slices, &slices, err)
                     : slices_of_experiment(run, &slices, err);
    if (result == -ERROR_INPUT && !(request->slices && request->slices->count)) {
        error_prefix(err, "%s/experiment.json", run->evidence.run_dir);
        text_append(err->text, sizeof err->text, "; " INPUT_COPY_AGAIN);
    }
    size_t diagnosed = slices.count;
    if (result == 0)
        result = add_slices(run, request->profiled, &slices, err);
    if (result == 0)
        result = add_functions(run, input, &in, &slices, progress, err);
    slices.count = diagnosed;
    progress_phase(progress, "diagnosing");
    if (result == 0)
        result = diagnose_all(run, &slices, !request->whole_alone, err);
    if (result == 0 && !request->whole_alone)
        result = account_for_threads(run, err);
    if (result == 0 && !request->whole_alone)
        result = find_shared_traits(run, input, err);
    if (result == 0)
        result =
            run_samples_add(run->evidence.run_dir, run->evidence.capture, input->clock_map, &in,
                            run->findings.diagnoses.count ? run->findings.diagnoses.items : NULL,
                            &run->evidence.samples, err);
    array_free(&slices);
    return result;
}

static void take_documents(struct run_analysis *run, struct run_input *input)
{
    if (input->segments.any)
        run_counted_within(input->capture, input->segments.from_ns, input->segments.until_ns);
    memcpy(run->evidence.ends, input->ends, sizeof run->evidence.ends);
    run->evidence.missing = input->missing;
    run->evidence.experiment = input->experiment;
    run->evidence.load = input->load;
    run->evidence.capture = input->capture;
    run->evidence.facts = input->facts;
    input->experiment = input->load = input->capture = input->facts = NULL;
    snprintf(run->evidence.result_suffix, sizeof run->evidence.result_suffix, "%s",
             input->folder + strlen("client"));
    run->evidence.other_loads = input->other_loads;
    input->other_loads = (struct run_load_array){0};
    const char *name = json_string_value(json_object_get(run->evidence.experiment, "name"));
    snprintf(run->evidence.name, sizeof run->evidence.name, "%s", name ? name : "");
}

int run_analyze(const struct run_request *request, struct progress *progress,
                struct run_analysis *out, struct error *err)
{
    const char *run_dir = request->run_dir;
    struct run_input input = {0};
    struct run_stand_ins stand_ins = {.answered_after_ns = request->answered_after_ns,
                                      .answered_until_ns = request->answered_until_ns};
    memset(out, 0, sizeof *out);
    if (strlen(run_dir) >= sizeof out->evidence.run_dir)
        return error_set(err, ERROR_INPUT, "%.80s...: the run folder's path is too long", run_dir);
    strcpy(out->evidence.run_dir, run_dir);
    out->findings.whole_alone = request->whole_alone;
    new_file_sweep(run_dir);
    int result = run_input_open(&input, run_dir, request->load, request->segments, progress, err);
    if (result == 0)
        result = run_categories_read(&out->findings.categories, run_dir, request->categories, err);
    if (result == 0)
        result = check_asked_early(request, &input, err);
    if (result < 0)
        goto done;
    take_documents(out, &input);
    result = run_lifetimes_build(out, &input, &stand_ins, progress, err);
    if (result < 0)
        goto done;
    if (run_statistics(out) < 0) {
        result = error_set(err, ERROR_FAILED, "no memory for the statistics of %s requests",
                           TEXT_COUNT(out->lifetimes.all.count));
        goto done;
    }
    result = explain(out, &input, request, progress, err);
    if (result == 0)
        run_verdict(out);
done:
    run_input_close(&input);
    run_stand_ins_free(&stand_ins);
    progress_end(progress);
    if (result < 0)
        run_analysis_free(out);
    return result;
}
