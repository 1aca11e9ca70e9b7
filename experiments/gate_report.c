// SPDX-License-Identifier: MIT
#include "experiments/gate_report.h"

#include <string.h>

// Which configuration of a matrix or step of a study a result is of stands before its words.
static void name_part(struct gate_result *result, const char *part)
{
    char words[sizeof result->words];
    memcpy(words, result->words, sizeof words);
    snprintf(result->words, sizeof result->words, "%.200s: %.290s", part, words);
}

static int judge(struct gate_report *report, const struct experiment *experiment,
                 const struct run_folder *folder, struct progress *progress, struct error *err)
{
    struct set_comparison comparison;
    struct diagnosis_slice slice;
    int result = diagnosis_slice_parse(experiment->slice, &slice, err);
    if (result < 0)
        return result;
    result = set_comparison_init(&comparison, &experiment->gates, &slice, err);
    if (result == 0)
        result = set_compare(&comparison, NULL, folder->path, progress, err);
    if (result == 0)
        result = gates_judge(&experiment->gates, &comparison, &report->results, err);
    set_comparison_free(&comparison);
    return result;
}

int gate_report_run(struct gate_report *report, const struct experiment *experiment,
                    const struct run_folder *folder, const char *part, struct progress *progress,
                    struct error *err)
{
    struct gate_report mine = {.waiting = 0};
    if (!report)
        return 0;
    for (size_t i = 0; i < experiment->gates.count; i++)
        mine.waiting += experiment->gates.items[i].limit == GATE_MAX_INCREASE;
    int result = 0;
    if (experiment->gates.count > mine.waiting)
        result = judge(&mine, experiment, folder, progress, err);
    if (result == 0 && mine.results.count) {
        json_t *document = json_pack("{s:o}", "gates", gate_results_json(&mine.results));
        result = run_folder_write_json(folder, "gates.json", document, err);
        json_decref(document);
    }
    for (size_t i = 0; i < mine.results.count && result == 0; i++) {
        if (part[0])
            name_part(&mine.results.items[i], part);
        if (array_push(&report->results, mine.results.items[i]) < 0)
            result = error_set(err, ERROR_FAILED, "out of memory for the gates' results");
    }
    report->waiting += mine.waiting;
    gate_report_free(&mine);
    return result;
}

static int write_junit(const struct gate_report *report, const char *path, const char *suite,
                       struct error *err)
{
    FILE *file = fopen(path, "we");
    if (!file)
        return error_set_errno(err, ERROR_INPUT, "--junit: cannot write %s", path);
    gate_results_junit(&report->results, suite, file);
    bool written = ferror(file) == 0;
    if (fclose(file) != 0 || !written)
        return error_set_errno(err, ERROR_FAILED, "--junit: cannot write %s", path);
    return 0;
}

int gate_report_write(const struct gate_report *report, const struct gate_report_options *options,
                      const char *suite, bool json, FILE *out, struct error *err)
{
    if (out)
        gate_results_text(&report->results, out);
    if (out && report->waiting)
        fprintf(out,
                "%zu gate%s of an increase wait%s for a base: taillight compare BASE CANDIDATE\n",
                report->waiting, report->waiting == 1 ? "" : "s", report->waiting == 1 ? "s" : "");
    if (options->annotations)
        gate_results_annotations(&report->results, json ? stderr : stdout);
    return options->junit ? write_junit(report, options->junit, suite, err) : 0;
}

void gate_report_free(struct gate_report *report)
{
    array_free(&report->results);
}
