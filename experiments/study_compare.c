// SPDX-License-Identifier: MIT
#include "experiments/study_compare.h"

#include <stdio.h>

#include "analysis/report/report_compare.h"
#include "experiments/compare_runs.h"
#include "experiments/compare_sets.h"

struct comparison_job {
    const struct study_comparison *one;
    const struct study_results *results;
    const struct run_folder *folder;
    struct progress *progress;
};

// --- the first round's runs, slice by slice ------------------------------------------------------

static int read_slices(const struct study_comparison *one, struct diagnosis_slice_array *out,
                       struct error *err)
{
    for (size_t i = 0; i + 1 < one->slices.count; i++) {
        struct diagnosis_slice slice;
        if (diagnosis_slice_parse(one->slices.items[i], &slice, err) < 0)
            return -ERROR_INPUT;
        if (array_push(out, slice) < 0)
            return error_set(err, ERROR_FAILED, "no memory for a slice");
    }
    return one->slices.count > 1 ? 0 : compare_runs_usual_slices(out, err);
}

static json_t *slices_json(const struct run_comparison *found)
{
    json_t *slices = json_array();
    for (size_t i = 0; i < found->slices.count; i++) {
        const struct slice_comparison *slice = &found->slices.items[i];
        json_array_append_new(slices, json_pack("{s:s,s:s}", "slice", slice->sides[0]->words,
                                                "verdict", slice->verdict));
    }
    return slices;
}

static int compare_slices(const struct comparison_job *job, json_t *object, struct error *err)
{
    const struct study_comparison *one = job->one;
    char page[80], path[RUN_PATH_BYTES + 128], folders[COMPARE_SIDES][RUN_PATH_BYTES + 128];
    struct diagnosis_slice_array slices = {0};
    struct run_comparison found = {0};
    const char *const sides[COMPARE_SIDES] = {
        run_folder_path(job->folder, job->results->steps.items[one->base].folder, folders[0]),
        run_folder_path(job->folder, job->results->steps.items[one->candidate].folder, folders[1])};
    snprintf(page, sizeof page, "compare-%s.html", one->name);
    int status = read_slices(one, &slices, err);
    if (status == 0)
        status = compare_runs(sides, &slices, NULL, job->progress, &found, err);
    if (status == 0)
        status = report_compare_html(&found, run_folder_path(job->folder, page, path), err);
    if (status == 0) {
        json_object_set_new(object, "page", json_string(page));
        json_object_set_new(object, "slices", slices_json(&found));
    }
    run_comparison_free(&found);
    array_free(&slices);
    return status;
}

// --- all rounds: percentiles and gates -----------------------------------------------------------

static json_t *percentiles_json(const struct set_comparison *comparison)
{
    json_t *document = set_comparison_json(comparison);
    json_t *percentiles = json_incref(json_object_get(document, "percentiles"));
    json_decref(document);
    return percentiles;
}

static int compare_rounds(const struct comparison_job *job, struct gate_report *gates,
                          json_t *object, struct error *err)
{
    const struct study *study = job->results->study;
    const struct study_comparison *one = job->one;
    char base[RUN_PATH_BYTES + 128], candidate[RUN_PATH_BYTES + 128];
    struct set_comparison comparison = {.has_base = false};
    struct gate_result_array judged = {0};
    struct diagnosis_slice slice;
    run_folder_path(job->folder, study->steps.items[one->base].name, base);
    run_folder_path(job->folder, study->steps.items[one->candidate].name, candidate);
    int status = compare_sets_slice(candidate, &slice, err);
    if (status == 0)
        status = gates_judge_runs(base, candidate, &one->gates, &slice, job->progress, &comparison,
                                  &judged, err);
    if (status == 0) {
        json_object_set_new(object, "percentiles", percentiles_json(&comparison));
        status = gates ? gate_report_add(gates, &judged, one->name, err) : 0;
    }
    array_free(&judged);
    set_comparison_free(&comparison);
    return status;
}

// --- all of them ---------------------------------------------------------------------------------

static int compare(const struct comparison_job *job, struct study_results *results,
                   struct gate_report *gates, struct error *err)
{
    const struct study *study = results->study;
    const struct study_comparison *one = job->one;
    json_t *object =
        json_pack("{s:s,s:s,s:s}", "name", one->name, "base", study->steps.items[one->base].name,
                  "candidate", study->steps.items[one->candidate].name);
    progress_phase(job->progress, "comparing: %s", one->name);
    int status = object ? compare_slices(job, object, err)
                        : error_set(err, ERROR_FAILED, "out of memory for a comparison");
    if (status == 0 && (study->rounds > 1 || one->gates.count))
        status = compare_rounds(job, gates, object, err);
    progress_end(job->progress);
    if (status == 0 && json_array_append(results->comparisons, object) < 0)
        status = error_set(err, ERROR_FAILED, "out of memory for a comparison");
    json_decref(object);
    return status < 0 ? error_prefix(err, "comparing %s", one->name) : 0;
}

int study_compare_all(struct study_results *results, const struct run_folder *folder,
                      struct gate_report *gates, struct progress *progress, struct error *err)
{
    const struct study *study = results->study;
    int status = 0;
    for (size_t i = 0; i < study->comparisons.count && status == 0; i++) {
        const struct comparison_job job = {&study->comparisons.items[i], results, folder, progress};
        status = compare(&job, results, gates, err);
    }
    return status;
}
