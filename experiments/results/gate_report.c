// SPDX-License-Identifier: MIT
#include "experiments/results/gate_report.h"

#include <stdio.h>

#include "base/new_file.h"
#include "base/text.h"

int gate_report_write_json(const struct gate_result_array *results, const struct run_folder *folder,
                           struct error *err)
{
    if (results->count == 0)
        return 0;
    json_t *document = json_pack("{s:o}", "gates", gate_results_json(results));
    int result = document ? run_folder_write_json(folder, "gates.json", document, err)
                          : error_set(err, ERROR_FAILED, "out of memory for the gates");
    json_decref(document);
    return result;
}

int gate_report_add(struct gate_report *report, const struct gate_result_array *results,
                    const char *part, struct error *err)
{
    for (size_t i = 0; i < results->count; i++) {
        struct gate_result one = results->items[i];
        if (one.part[0])
            snprintf(one.part, sizeof one.part, "%.90s/%.100s", part, results->items[i].part);
        else
            snprintf(one.part, sizeof one.part, "%s", part);
        if (array_push(&report->results, one) < 0)
            return error_set(err, ERROR_FAILED, "out of memory for the gates' results");
    }
    return 0;
}

// How many of the gates wait for a base.
static size_t count_waiting(const struct gate_array *gates)
{
    size_t waiting = 0;
    for (size_t i = 0; i < gates->count; i++)
        waiting += gates->items[i].limit == GATE_MAX_INCREASE;
    return waiting;
}

static struct comparison_request request_of(const struct experiment *experiment)
{
    return (struct comparison_request){.gates = &experiment->gates,
                                       .gate_slice = &experiment->diagnosed};
}

int gate_report_want(const struct gate_report *report, const struct experiment *experiment,
                     struct run_set_array *runs, struct error *err)
{
    const struct comparison_request request = request_of(experiment);
    int result = 0;
    if (!report || experiment->gates.count == count_waiting(&experiment->gates))
        return 0;
    for (size_t i = 0; i < runs->count && result == 0; i++)
        result = comparison_want(&request, NULL, &runs->items[i], err);
    return result;
}

static int judge_load(const struct experiment *experiment, const struct run_set *runs,
                      struct gate_result_array *out, struct error *err)
{
    struct comparison alone;
    const struct comparison_request request = request_of(experiment);
    int result = comparison_of_sets(&alone, &request, NULL, runs, err);
    if (result == 0)
        result =
            gates_judge(&experiment->gates, &alone, experiment_load_count(experiment), out, err);
    comparison_free(&alone);
    return result;
}

int gate_report_runs(struct gate_report *report, const struct experiment *experiment,
                     const struct run_folder *folder, const struct run_set_array *runs,
                     const char *part, struct error *err)
{
    struct gate_result_array mine = {0};
    if (!report)
        return 0;
    size_t waiting = count_waiting(&experiment->gates);
    int result = 0;
    for (size_t i = 0; i < runs->count && result == 0 && experiment->gates.count > waiting; i++)
        result = judge_load(experiment, &runs->items[i], &mine, err);
    if (result == 0)
        result = gate_report_write_json(&mine, folder, err);
    if (result == 0)
        result = gate_report_add(report, &mine, part, err);
    report->waiting += waiting;
    array_free(&mine);
    return result;
}

static int junit_error(struct error *err)
{
    err->kind = ERROR_INPUT;
    return error_prefix(err, "--junit");
}

int gate_report_try(const struct gate_report_options *options, struct error *err)
{
    return options->junit && new_file_try(options->junit, err) < 0 ? junit_error(err) : 0;
}

static int write_junit(const struct gate_report *report, const char *path, const char *suite,
                       struct error *err)
{
    struct new_file out;
    if (new_file_open(&out, path, err) < 0)
        return junit_error(err);
    gate_results_junit(&report->results, suite, out.file);
    return new_file_finish(&out, 0, err) < 0 ? error_prefix(err, "--junit") : 0;
}

int gate_report_write(const struct gate_report *report, const struct gate_report_options *options,
                      const char *suite, bool json, FILE *out, struct error *err)
{
    if (out)
        gate_results_text(&report->results, out);
    if (out && report->waiting)
        fprintf(out,
                "%s gate%s of an increase wait%s for a base: taillight compare BASE CANDIDATE\n",
                TEXT_COUNT(report->waiting), report->waiting == 1 ? "" : "s",
                report->waiting == 1 ? "s" : "");
    if (options->annotations)
        gate_results_annotations(&report->results, json ? stderr : stdout);
    return options->junit ? write_junit(report, options->junit, suite, err) : 0;
}

void gate_report_free(struct gate_report *report)
{
    array_free(&report->results);
}
