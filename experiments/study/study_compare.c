// SPDX-License-Identifier: MIT
#include "experiments/study/study_compare.h"

#include <stdio.h>

#include "analysis/compare/comparison_json.h"
#include "analysis/report/report_compare.h"

static int read_slices(const struct study_comparison *one, struct diagnosis_slice_array *out,
                       struct error *err)
{
    int result = 0;
    for (size_t i = 0; i + 1 < one->slices.count && result == 0; i++) {
        struct diagnosis_slice slice;
        result = diagnosis_slice_parse(one->slices.items[i], &slice, err);
        if (result == 0 && array_push(out, slice) < 0)
            result = error_set(err, ERROR_FAILED, "no memory for a slice");
    }
    return result;
}

// A comparison as study.json has it.
static json_t *comparison_object(const struct study *study, const struct study_comparison *one,
                                 const struct comparison *found, const char *page)
{
    json_t *slices = json_array();
    for (size_t i = 0; i < found->asked; i++)
        json_array_append_new(slices,
                              json_pack("{s:s,s:s}", "slice", found->shifts.items[i].shift.words,
                                        "verdict", found->shifts.items[i].verdict));
    return json_pack("{s:s,s:s,s:s,s:s,s:o,s:o}", "name", one->name, "base",
                     study->steps.items[one->base].name, "candidate",
                     study->steps.items[one->candidate].name, "page", page, "slices", slices,
                     "percentiles", comparison_percentiles_json(found));
}

static int judge_gates(const struct study_comparison *one, const struct comparison *found,
                       struct gate_report *gates, struct error *err)
{
    struct gate_result_array judged = {0};
    if (!gates)
        return 0;
    int result = gates_judge(&one->gates, found, &judged, err);
    if (result == 0)
        result = gate_report_add(gates, &judged, one->name, err);
    array_free(&judged);
    return result;
}

// Compares all rounds of one step with all rounds of the other.
static int compare_steps(struct study_results *results, const struct study_comparison *one,
                         const struct run_folder *folder, struct gate_report *gates,
                         struct progress *progress, struct error *err)
{
    const struct study *study = results->study;
    char page[80], path[RUN_PATH_BYTES + 128], base[RUN_PATH_BYTES + 128],
        candidate[RUN_PATH_BYTES + 128];
    struct diagnosis_slice_array slices = {0};
    struct comparison found = {.has_base = true};
    const struct comparison_request request = {
        .base = run_folder_path(folder, study->steps.items[one->base].name, base),
        .candidate = run_folder_path(folder, study->steps.items[one->candidate].name, candidate),
        .slices = &slices,
        .gates = &one->gates};
    snprintf(page, sizeof page, "compare-%s.html", one->name);
    progress_phase(progress, "comparing: %s", one->name);
    int result = read_slices(one, &slices, err);
    if (result == 0)
        result = comparison_make(&found, &request, progress, err);
    if (result == 0)
        result = report_compare_html(&found, run_folder_path(folder, page, path), err);
    if (result == 0)
        result = judge_gates(one, &found, gates, err);
    if (result == 0 && json_array_append_new(results->comparisons,
                                             comparison_object(study, one, &found, page)) < 0)
        result = error_set(err, ERROR_FAILED, "out of memory for a comparison");
    progress_end(progress);
    comparison_free(&found);
    array_free(&slices);
    return result < 0 ? error_prefix(err, "comparing %s", one->name) : 0;
}

int study_compare_all(struct study_results *results, const struct run_folder *folder,
                      struct gate_report *gates, struct progress *progress, struct error *err)
{
    const struct study *study = results->study;
    int result = 0;
    for (size_t i = 0; i < study->comparisons.count && result == 0; i++)
        result = compare_steps(results, &study->comparisons.items[i], folder, gates, progress, err);
    return result;
}
