// SPDX-License-Identifier: MIT
#include "experiments/compare_sets.h"

#include <stdio.h>
#include <unistd.h>

#include "experiments/definition/gates.h"

enum { PATH_BYTES = 4300 };

static char *experiment_path(const char *candidate, char path[PATH_BYTES])
{
    char folder[4200];
    run_set_folder(candidate, 0, folder, sizeof folder);
    snprintf(path, PATH_BYTES, "%s/experiment.json", folder);
    return path;
}

int compare_sets_gates(const char *file, const char *candidate, struct gate_array *out,
                       struct error *err)
{
    char path[PATH_BYTES];
    *out = (struct gate_array){0};
    if (file)
        return gates_load(file, true, out, err);
    if (access(experiment_path(candidate, path), F_OK) != 0)
        return 0;
    return gates_load(path, false, out, err);
}

int compare_sets_slice(const char *candidate, struct diagnosis_slice *out, struct error *err)
{
    char path[PATH_BYTES];
    json_t *experiment = json_load_file(experiment_path(candidate, path), 0, NULL);
    const char *slice =
        json_string_value(json_object_get(json_object_get(experiment, "diagnose"), "slice"));
    int result = diagnosis_slice_parse(slice ? slice : "p99-100", out, err);
    json_decref(experiment);
    return result;
}

// Whether anything at all could be compared.
static bool any_known(const struct set_comparison *comparison)
{
    for (size_t i = 0; i < comparison->percentiles.count; i++)
        if (comparison->percentiles.items[i].shift.known)
            return true;
    return false;
}

static int report(const struct set_comparison *comparison, const struct gate_report *gates,
                  const struct compare_sets_options *options, json_t **document, struct error *err)
{
    if (options->json) {
        *document = options->gates_only ? json_object() : set_comparison_json(comparison);
        if (!*document ||
            json_object_set_new(*document, "gates", gate_results_json(&gates->results)) < 0)
            return error_set(err, ERROR_FAILED, "out of memory for the comparison");
    } else if (!options->gates_only) {
        set_comparison_text(comparison, stdout);
    }
    if (!options->json && gates->results.count)
        putchar('\n');
    return gate_report_write(gates, &options->report, comparison->sides[COMPARE_CANDIDATE].name,
                             options->json, options->json ? NULL : stdout, err);
}

int compare_sets(char *const folders[COMPARE_SIDES], const struct gate_array *gates,
                 const struct compare_sets_options *options, json_t **document, struct error *err)
{
    struct set_comparison comparison = {.has_base = false};
    struct gate_report judged = {.waiting = 0};
    struct diagnosis_slice slice;
    struct progress progress;
    progress_init(&progress, options->quiet);
    *document = NULL;
    int result = 0;
    if (options->slice)
        slice = *options->slice;
    else
        result = compare_sets_slice(folders[COMPARE_CANDIDATE], &slice, err);
    if (result < 0)
        return result;
    result = gates_judge_runs(folders[COMPARE_BASE], folders[COMPARE_CANDIDATE], gates, &slice,
                              &progress, &comparison, &judged.results, err);
    if (result == 0)
        result = report(&comparison, &judged, options, document, err);
    if (result == 0)
        result = gate_results_exit_code(&judged.results);
    if (result == 0 && !any_known(&comparison))
        result = ERROR_INCONCLUSIVE;
    gate_report_free(&judged);
    set_comparison_free(&comparison);
    return result;
}
