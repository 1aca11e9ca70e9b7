// SPDX-License-Identifier: MIT
#include "experiments/compare_runs.h"
#include "analysis/run/run_analyze.h"

int compare_runs_usual_slices(struct diagnosis_slice_array *out, struct error *err)
{
    static const char *const usual[] = {"p99-100", "p45-55"};
    int result = 0;
    for (size_t i = 0; i < 2 && result == 0; i++) {
        struct diagnosis_slice slice;
        result = diagnosis_slice_parse(usual[i], &slice, err);
        if (result == 0 && array_push(out, slice) < 0)
            result = error_set(err, ERROR_FAILED, "no memory for a slice");
    }
    return result;
}

static int take_run(const char *folder, const struct diagnosis_slice_array *slices,
                    const char *categories, struct progress *progress, struct run_profile *out,
                    struct error *err)
{
    struct run_analysis run;
    int result = run_analyze(folder, slices->items, slices->count, categories, progress, &run, err);
    if (result < 0)
        return result;
    result = run_profile_take(&run, out, err);
    run_analysis_free(&run);
    return result;
}

int compare_runs(const char *const folders[COMPARE_SIDES],
                 const struct diagnosis_slice_array *slices, const char *categories,
                 struct progress *progress, struct run_comparison *out, struct error *err)
{
    int result = 0;
    *out = (struct run_comparison){0};
    for (int side = 0; side < COMPARE_SIDES && result == 0; side++)
        result = take_run(folders[side], slices, categories, progress, &out->runs[side], err);
    return result < 0 ? result : run_compare(out, err);
}

bool compare_runs_any_known(const struct run_comparison *comparison)
{
    for (size_t i = 0; i < comparison->slices.count; i++)
        if (comparison->slices.items[i].available)
            return true;
    return false;
}
