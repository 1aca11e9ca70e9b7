// SPDX-License-Identifier: MIT
#include "analysis/compare/run_set.h"
#include "analysis/run/run_analyze.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4200, FILE_BYTES = PATH_BYTES + 32 };

bool run_set_is_run(const char *path)
{
    char samples[FILE_BYTES];
    snprintf(samples, sizeof samples, "%s/client/samples.tlog", path);
    return access(samples, F_OK) == 0;
}

static char *repetition_path(const char *path, size_t index, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "%s/repetition-%zu", path, index + 1);
    return out;
}

static size_t count_runs(const char *path)
{
    char folder[PATH_BYTES];
    size_t count = 0;
    if (run_set_is_run(path))
        return 1;
    while (run_set_is_run(repetition_path(path, count, folder, sizeof folder)))
        count++;
    return count;
}

char *run_set_folder(const char *path, size_t index, char *out, size_t out_bytes)
{
    if (!run_set_is_run(path))
        return repetition_path(path, index, out, out_bytes);
    snprintf(out, out_bytes, "%s", path);
    return out;
}

static int take_latencies(struct run_set *set, const struct run_analysis *run, struct error *err)
{
    struct latency_run latencies = {0};
    if (array_reserve(&latencies, run->lifetimes.all.count + 1) < 0 ||
        array_push(&set->latencies, latencies) < 0) {
        array_free(&latencies);
        return error_set(err, ERROR_FAILED, "out of memory for %zu requests",
                         run->lifetimes.all.count);
    }
    struct latency_run *all = &set->latencies.items[set->latencies.count - 1];
    for (size_t i = 0; i < run->lifetimes.all.count; i++)
        all->items[all->count++] = run->lifetimes.all.items[i].latency_ns;
    return 0;
}

static void note_load(struct run_set *set, const json_t *load)
{
    const char *verdict = json_string_value(json_object_get(load, "verdict"));
    if (!verdict || strcmp(verdict, "n/a") != 0)
        return;
    const char *reason = json_string_value(json_array_get(json_object_get(load, "reasons"), 0));
    if (set->inconclusive++ == 0)
        snprintf(set->reason, sizeof set->reason, "%s", reason ? reason : "no reason is given");
}

int run_set_own_slice(const char *path, struct diagnosis_slice *out, struct error *err)
{
    char folder[PATH_BYTES], file[FILE_BYTES];
    run_set_folder(path, 0, folder, sizeof folder);
    snprintf(file, sizeof file, "%s/experiment.json", folder);
    json_t *experiment = json_load_file(file, 0, NULL);
    const char *slice =
        json_string_value(json_object_get(json_object_get(experiment, "diagnose"), "slice"));
    int result = diagnosis_slice_parse(slice ? slice : "p99-100", out, err);
    json_decref(experiment);
    return result;
}

int run_set_add(struct run_set *set, const struct run_analysis *run, struct error *err)
{
    int result = take_latencies(set, run, err);
    if (result == 0 && array_push(&set->profiles, (struct run_profile){0}) < 0)
        result = error_set(err, ERROR_FAILED, "out of memory for %s", run->evidence.run_dir);
    if (result == 0)
        result = run_profile_take(run, &set->profiles.items[set->profiles.count - 1], err);
    memcpy(set->name, run->evidence.name, sizeof set->name);
    note_load(set, run->evidence.load);
    double count = (double)set->profiles.count;
    set->offered_rate += (run->lifetimes.offered_rate - set->offered_rate) / count;
    set->achieved_rate += (run->lifetimes.achieved_rate - set->achieved_rate) / count;
    return result;
}

static int read_run(struct run_set *set, const char *folder,
                    const struct diagnosis_slice_array *slices, const char *categories,
                    struct progress *progress, struct error *err)
{
    struct run_analysis run;
    int result = run_analyze(folder, slices->items, slices->count, categories, progress, &run, err);
    if (result < 0)
        return result;
    result = run_set_add(set, &run, err);
    run_analysis_free(&run);
    return result;
}

int run_set_read(const char *path, const struct diagnosis_slice_array *slices,
                 const char *categories, struct progress *progress, struct run_set *out,
                 struct error *err)
{
    *out = (struct run_set){.offered_rate = 0};
    snprintf(out->path, sizeof out->path, "%s", path);
    size_t count = count_runs(path);
    if (count == 0)
        return error_set(err, ERROR_INPUT,
                         "%s is neither a run folder (with client/samples.tlog) nor one of "
                         "repetitions (with repetition-1)",
                         path);
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        char folder[PATH_BYTES];
        run_set_folder(path, i, folder, sizeof folder);
        result = read_run(out, folder, slices, categories, progress, err);
    }
    return result;
}

void run_set_free(struct run_set *set)
{
    for (size_t i = 0; i < set->latencies.count; i++)
        array_free(&set->latencies.items[i]);
    for (size_t i = 0; i < set->profiles.count; i++)
        run_profile_free(&set->profiles.items[i]);
    array_free(&set->latencies);
    array_free(&set->profiles);
}
