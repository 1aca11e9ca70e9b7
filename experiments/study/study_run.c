// SPDX-License-Identifier: MIT
#include "experiments/study/study_run.h"

#include <stdio.h>
#include <string.h>

#include "analysis/compare/comparison_json.h"
#include "analysis/report/page/report_compare.h"
#include "analysis/report/page/report_set.h"
#include "base/hash.h"
#include "base/json_numbers.h"
#include "experiments/capture/capture_backend.h"
#include "experiments/study/study_results.h"

// A comparison as study.json has it.
static json_t *comparison_object(const struct study *study, const struct study_comparison *one,
                                 const struct comparison *found, const char *page)
{
    const char *load = found->sides[COMPARE_CANDIDATE]->load;
    json_t *slices = json_array();
    for (size_t i = 0; i < found->asked; i++)
        json_array_append_new(slices,
                              json_pack("{s:s,s:s}", "slice", found->shifts.items[i].shift.words,
                                        "verdict", found->shifts.items[i].verdict));
    return json_pack("{s:s,s:s*,s:s,s:s,s:s,s:o,s:o}", "name", one->name, "load",
                     load[0] ? load : NULL, "base", study->steps.items[one->base].name, "candidate",
                     study->steps.items[one->candidate].name, "page", page, "slices", slices,
                     "percentiles", comparison_percentiles_json(found));
}

// The same of a load that only one of the steps has.
static json_t *missing_object(const struct study *study, const struct study_comparison *one,
                              const char *load, const char *side)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:[],s:[]}", "name", one->name, "load", load, "base",
                     study->steps.items[one->base].name, "candidate",
                     study->steps.items[one->candidate].name, "only_in", side, "slices",
                     "percentiles");
}

static int judge_comparison(const struct study_comparison *one, const struct comparison *found,
                            size_t loads, struct gate_report *gates, struct error *err)
{
    struct gate_result_array judged = {0};
    if (!gates)
        return 0;
    int result = gates_judge(&one->gates, found, loads, &judged, err);
    if (result == 0)
        result = gate_report_add(gates, &judged, one->name, err);
    array_free(&judged);
    return result;
}

static int judge_missing(const struct study_comparison *one, const char *load,
                         struct gate_report *gates, struct error *err)
{
    struct gate_result_array judged = {0};
    if (!gates)
        return 0;
    int result = gates_without_base(&one->gates, load, &judged, err);
    if (result == 0)
        result = gate_report_add(gates, &judged, one->name, err);
    array_free(&judged);
    return result;
}

static struct comparison_request request_of(const struct study *study,
                                            const struct study_comparison *one)
{
    const struct study_step *steps = study->steps.items;
    return (struct comparison_request){.base = steps[one->base].name,
                                       .candidate = steps[one->candidate].name,
                                       .slices = &one->parsed,
                                       .gates = &one->gates,
                                       .gate_slice = &steps[one->candidate].experiment.diagnosed};
}

// Has the steps' runs keep what their gates and the comparisons need of them.
static int want_kept(struct study_results *results, const struct gate_report *gates,
                     struct error *err)
{
    const struct study *study = results->study;
    struct study_result *steps = results->steps.items;
    int result = 0;
    for (size_t i = 0; i < study->steps.count && result == 0; i++)
        if (!study->steps.items[i].study)
            result =
                gate_report_want(gates, &study->steps.items[i].experiment, &steps[i].kept, err);
    for (size_t i = 0; i < study->comparisons.count && result == 0; i++) {
        const struct study_comparison *one = &study->comparisons.items[i];
        const struct comparison_request request = request_of(study, one);
        struct run_set_array *base = &steps[one->base].kept, *mine = &steps[one->candidate].kept;
        for (size_t k = 0; k < mine->count && result == 0; k++) {
            struct run_set *other = run_sets_match(base, mine, k);
            if (other)
                result = comparison_want(&request, other, &mine->items[k], err);
        }
    }
    return result;
}

// Compares all rounds of one step with all rounds of the other, looked at from the candidate's load
// of that number.
static int compare_load(struct study_results *results, const struct study_comparison *one,
                        size_t number, const struct run_folder *folder, struct gate_report *gates,
                        struct progress *progress, struct error *err)
{
    const struct study *study = results->study;
    char page[120], path[RUN_PATH_BYTES + 128];
    struct comparison found;
    const struct comparison_request request = request_of(study, one);
    const struct run_set_array *mine = &results->steps.items[one->candidate].kept;
    const struct run_set *set = &mine->items[number],
                         *base =
                             run_sets_match(&results->steps.items[one->base].kept, mine, number);
    if (!base)
        return judge_missing(one, set->load, gates, err) < 0 ||
                       json_array_append_new(results->comparisons,
                                             missing_object(study, one, set->load, "candidate")) < 0
                   ? error_set(err, ERROR_FAILED, "out of memory for a comparison")
                   : 0;
    snprintf(page, sizeof page, "compare-%s%s%s.html", one->name, number ? "-" : "",
             number ? set->load : "");
    progress_phase(progress, "comparing: %s", one->name);
    int result = comparison_of_sets(&found, &request, base, set, err);
    if (result == 0)
        result = report_compare_html(&found, run_folder_path(folder, page, path), err);
    if (result == 0)
        result = judge_comparison(one, &found, mine->count, gates, err);
    if (result == 0 && json_array_append_new(results->comparisons,
                                             comparison_object(study, one, &found, page)) < 0)
        result = error_set(err, ERROR_FAILED, "out of memory for a comparison");
    progress_end(progress);
    comparison_free(&found);
    return result < 0 ? error_prefix(err, "comparing %s", one->name) : 0;
}

// Load by load, and those of the base that the candidate does not have.
static int compare_steps(struct study_results *results, const struct study_comparison *one,
                         const struct run_folder *folder, struct gate_report *gates,
                         struct progress *progress, struct error *err)
{
    const struct run_set_array *base = &results->steps.items[one->base].kept,
                               *mine = &results->steps.items[one->candidate].kept;
    int result = 0;
    for (size_t i = 0; i < mine->count && result == 0; i++)
        result = compare_load(results, one, i, folder, gates, progress, err);
    for (size_t i = 0; i < base->count && result == 0; i++)
        if (!run_sets_match(mine, base, i) &&
            json_array_append_new(
                results->comparisons,
                missing_object(results->study, one, base->items[i].load, "base")) < 0)
            result = error_set(err, ERROR_FAILED, "out of memory for a comparison");
    return result;
}

// Compares after the steps have been run: writes a page compare-NAME.html for each comparison, and
// appends an object for each to results->comparisons. The results of the gates go to the report
// under the comparison's name (NULL: nothing is judged).
static int compare_all(struct study_results *results, const struct run_folder *folder,
                       struct gate_report *gates, struct progress *progress, struct error *err)
{
    const struct study *study = results->study;
    int result = 0;
    for (size_t i = 0; i < study->comparisons.count && result == 0; i++)
        result = compare_steps(results, &study->comparisons.items[i], folder, gates, progress, err);
    return result;
}

struct series {
    struct study *study;
    struct run_folder folder;
    struct study_results results;
    const struct run_settings *settings;
    struct run_results_settings silent;
    bool available;
};

// --- runs ----------------------------------------------------------------------------------------

static int run_one(struct series *series, size_t number, uint64_t round, struct error *err)
{
    struct study_step *step = &series->study->steps.items[number];
    struct study_result *result = &series->results.steps.items[number];
    struct run_folder folder;
    char name[80], path[RUN_PATH_BYTES + 128];
    uint64_t seed = step->experiment.load.seed;
    bool verdict = false;
    snprintf(name, sizeof name, "%s", step->name);
    if (series->study->rounds > 1)
        snprintf(name, sizeof name, "%s/repetition-%llu", step->name,
                 (unsigned long long)round + 1);
    if (round == 0)
        snprintf(result->folder, sizeof result->folder, "%s", name);
    const struct run_settings here = {.folder = run_folder_path(&series->folder, name, path),
                                      .progress = series->settings->progress,
                                      .orders = series->settings->orders};
    progress_end(series->settings->progress);
    if (!series->silent.quiet)
        fprintf(stderr, "%s\n", name);
    int status = experiment_set_seed(&step->experiment,
                                     round ? hash64(seed + round) & 0xffffffff : seed, err);
    if (status < 0)
        return status;
    status = run_experiment(&step->experiment, &here, &folder, err);
    if (status == 0)
        status = run_results_write(&folder, &series->silent, &result->kept, &verdict, err);
    if (status == 0)
        status = study_result_add_run(result, &folder, err);
    struct error ignored;
    experiment_set_seed(&step->experiment, seed,
                        &ignored); // back to the file's; it was valid before
    series->available &= verdict || (!capture_choice_records(step->experiment.backend) &&
                                     study_result_can_be_trusted(result));
    return status < 0 ? error_prefix(err, "%s", name) : 0;
}

static int run_nested(struct series *series, size_t number, struct error *err)
{
    char path[RUN_PATH_BYTES + 128];
    struct study_step *step = &series->study->steps.items[number];
    struct study_result *result = &series->results.steps.items[number];
    const struct run_settings here = {.folder = run_folder_path(&series->folder, step->name, path),
                                      .progress = series->settings->progress,
                                      .orders = series->settings->orders};
    bool available = true;
    snprintf(result->folder, sizeof result->folder, "%s", step->name);
    struct gate_report *gates = series->silent.gates, inner = {.waiting = 0};
    struct run_results_settings results = series->silent;
    results.gates = gates ? &inner : NULL;
    int status = study_run(step->study, &here, &results, &available, err);
    if (status == 0 && gates) {
        status = gate_report_add(gates, &inner.results, step->name, err);
        gates->waiting += inner.waiting;
    }
    gate_report_free(&inner);
    series->available &= available;
    return status < 0 ? error_prefix(err, "%s", step->name) : 0;
}

// Whether a comparison with gates has the step as its candidate. Then gates on an increase need not
// wait for a base.
static bool is_compared(const struct study *study, size_t step)
{
    for (size_t i = 0; i < study->comparisons.count; i++) {
        const struct study_comparison *one = &study->comparisons.items[i];
        if (one->candidate == step && one->gates.count)
            return true;
    }
    return false;
}

// Judges the gates of a step over all its rounds, as those of an experiment over its repetitions.
static int judge_gates(struct series *series, size_t number, struct error *err)
{
    const struct study_step *step = &series->study->steps.items[number];
    struct gate_report *gates = series->silent.gates;
    size_t waiting = gates ? gates->waiting : 0;
    struct run_folder folder;
    int status = run_folder_inside(&series->folder, step->name, &folder, err);
    if (status == 0)
        status = gate_report_runs(gates, &step->experiment, &folder,
                                  &series->results.steps.items[number].kept, step->name, err);
    if (gates && is_compared(series->study, number))
        gates->waiting = waiting;
    return status;
}

static int run_all(struct series *series, struct error *err)
{
    int status = 0;
    for (uint64_t round = 0; round < series->study->rounds; round++)
        for (size_t i = 0; i < series->study->steps.count && status == 0; i++) {
            if (!series->study->steps.items[i].study)
                status = run_one(series, i, round, err);
            else if (round == 0)
                status = run_nested(series, i, err);
        }
    for (size_t i = 0; i < series->study->steps.count && status == 0; i++)
        if (!series->study->steps.items[i].study)
            status = judge_gates(series, i, err);
    return status;
}

// --- the whole -----------------------------------------------------------------------------------

static int prepare_steps(struct series *series, struct error *err)
{
    series->results = (struct study_results){.study = series->study, .comparisons = json_array()};
    for (size_t i = 0; i < series->study->steps.count; i++) {
        const struct study_result result = {.step = &series->study->steps.items[i]};
        if (array_push(&series->results.steps, result) < 0)
            return error_set(err, ERROR_FAILED, "out of memory");
        if (study_result_init(&series->results.steps.items[i], err) < 0)
            return -(int)err->kind;
    }
    int status = run_make_folder(series->study->name, series->settings, &series->folder, err);
    for (size_t i = 0; i < series->results.steps.count && status == 0; i++) {
        struct study_result *one = &series->results.steps.items[i];
        struct run_folder inside;
        status = run_folder_inside(&series->folder, one->step->name, &inside, err);
        if (status == 0)
            status = one->step->study
                         ? 0
                         : run_results_keep(&one->step->experiment, inside.path, &one->kept, err);
    }
    return status == 0 ? want_kept(&series->results, series->silent.gates, err) : status;
}

static int write_gates(struct series *series, struct error *err)
{
    const struct gate_report *report = series->silent.gates;
    if (!report)
        return 0;
    series->results.gates = gate_results_json(&report->results);
    return gate_report_write_json(&report->results, &series->folder, err);
}

static int print_results(const struct series *series, const struct run_results_settings *results,
                         struct error *err)
{
    if (results->silent)
        return 0;
    if (results->json) {
        json_t *document = run_folder_read_json(&series->folder, "study.json", err);
        return document ? json_print_new(document, JSON_FOR_PEOPLE, "the results", err)
                        : -ERROR_FAILED;
    }
    char doubt[REPORT_DOUBT_BYTES];
    json_t *document = report_set_read(series->folder.path, err);
    if (!document)
        return -ERROR_FAILED;
    if (!results->quiet)
        study_results_print(&series->results, stdout);
    if (report_set_doubt(document, doubt)[0])
        fprintf(results->quiet ? stderr : stdout, "%s\n", doubt);
    json_decref(document);
    printf("%s%s/report.html\n", results->quiet ? "" : "Report: ", series->folder.path);
    return fflush(stdout) == EOF ? error_set_errno(err, ERROR_FAILED, "cannot print the results")
                                 : 0;
}

int study_run(struct study *study, const struct run_settings *settings,
              const struct run_results_settings *results, bool *available, struct error *err)
{
    struct series series = {
        .study = study, .settings = settings, .silent = *results, .available = true};
    series.silent.silent = true;
    int status = prepare_steps(&series, err);
    if (status == 0)
        status = run_all(&series, err);
    if (status == 0)
        status =
            compare_all(&series.results, &series.folder, results->gates, settings->progress, err);
    progress_end(settings->progress);
    if (status == 0)
        status = write_gates(&series, err);
    if (status == 0)
        status = study_results_write(&series.results, &series.folder, err);
    if (status == 0)
        status = print_results(&series, results, err);
    *available = series.available;
    study_results_free(&series.results);
    return status;
}
