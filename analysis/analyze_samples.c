// SPDX-License-Identifier: MIT
#include "analysis/analyze_samples.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/samples/sample_profile.h"
#include "base/array.h"
#include "base/json_numbers.h"

enum { THREADS_LISTED = 10, NOTES_PRINTED = 8 };

// --- sums ----------------------------------------------------------------------------------------

struct sums {
    struct sample_functions functions;
    struct sample_functions threads; // by their name
    uint64_t cores;
    double seconds; // from the first sample to the last
};

static int most_total_first(const void *left, const void *right)
{
    const struct sample_function *a = left, *b = right;
    return (a->total < b->total) - (a->total > b->total);
}

static int add_up(const struct sample_profile *profile, struct sums *sums)
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (size_t i = 0; i < profile->samples.count; i++) {
        const struct named_sample *sample = &profile->samples.items[i];
        first = sample->time_ns < first ? sample->time_ns : first;
        last = sample->time_ns > last ? sample->time_ns : last;
        sums->cores += i == 0 || sample->core != profile->samples.items[i - 1].core;
    }
    sums->seconds = (double)(last - first) / 1e9;
    for (size_t i = 1; i < profile->nodes.count; i++) {
        const struct sample_node *node = &profile->nodes.items[i];
        if (node->parent == 0 &&
            array_push(&sums->threads, (struct sample_function){node->name, 0, node->total}) < 0)
            return -1;
    }
    array_sort(&sums->threads, most_total_first);
    return sample_profile_functions(profile, &sums->functions);
}

// --- output --------------------------------------------------------------------------------------

static int print_json(const struct sample_profile *profile, const struct sums *sums, uint64_t top,
                      struct error *err)
{
    json_t *functions = json_array(), *threads = json_array(), *notes = json_array();
    for (size_t i = 0; i < sums->functions.count && i < top; i++)
        json_array_append_new(functions,
                              json_pack("{s:s, s:I, s:I}", "function",
                                        profile->names.items[sums->functions.items[i].name], "self",
                                        (json_int_t)sums->functions.items[i].self, "total",
                                        (json_int_t)sums->functions.items[i].total));
    for (size_t i = 0; i < sums->threads.count; i++)
        json_array_append_new(threads,
                              json_pack("{s:s, s:I}", "thread",
                                        profile->names.items[sums->threads.items[i].name],
                                        "samples", (json_int_t)sums->threads.items[i].total));
    for (size_t i = 0; i < profile->notes.count; i++)
        json_array_append_new(notes, json_string(profile->notes.items[i]));
    json_t *document = json_pack(
        "{s:s, s:s, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "kind", "samples",
        "event", profile->event, "samples", (json_int_t)profile->samples.count, "cores",
        (json_int_t)sums->cores, "seconds", sums->seconds, "lost", (json_int_t)profile->lost,
        "throttled", (json_int_t)profile->throttled, "unnamed", (json_int_t)profile->unnamed,
        "without_chain", (json_int_t)profile->without_chain, "left_out",
        (json_int_t)profile->left_out, "threads", threads, "functions", functions, "notes", notes);
    return json_print_new(document, JSON_INDENT(2), "the result", err);
}

static double percent(uint64_t part, const struct sample_profile *profile)
{
    return 100 * (double)part / (double)profile->samples.count;
}

static void print(const char *path, const struct sample_profile *profile, const struct sums *sums,
                  uint64_t top)
{
    printf("%s: samples of %s and no processor trace: where the cores were at some instants, "
           "not every call\n",
           path, profile->event[0] ? profile->event : "an event without a name");
    printf("%zu samples in %.3f s on %" PRIu64 " core%s; %" PRIu64 " records lost, %" PRIu64
           " times too many for the kernel\n",
           profile->samples.count, sums->seconds, sums->cores, sums->cores == 1 ? "" : "s",
           profile->lost, profile->throttled);
    if (profile->unnamed || profile->without_chain || profile->left_out)
        printf("%" PRIu64 " in code without symbols, %" PRIu64 " without callers, %" PRIu64
               " left out\n",
               profile->unnamed, profile->without_chain, profile->left_out);
    printf("\n%8s  thread\n", "samples");
    for (size_t i = 0; i < sums->threads.count && i < THREADS_LISTED; i++)
        printf("%6.2f %%  %s\n", percent(sums->threads.items[i].total, profile),
               profile->names.items[sums->threads.items[i].name]);
    printf("\n%8s  %8s  function\n", "itself", "in all");
    for (size_t i = 0; i < sums->functions.count && i < top; i++)
        printf("%6.2f %%  %6.2f %%  %s\n", percent(sums->functions.items[i].self, profile),
               percent(sums->functions.items[i].total, profile),
               profile->names.items[sums->functions.items[i].name]);
    for (size_t i = 0; i < profile->notes.count && i < NOTES_PRINTED; i++)
        printf("%s%s\n", i ? "" : "\n", profile->notes.items[i]);
    if (profile->notes.count > NOTES_PRINTED)
        printf("... and %zu more: --json has all\n", profile->notes.count - NOTES_PRINTED);
}

int samples_analyze(const char *path, const struct samples_analyze_options *options,
                    struct error *err)
{
    struct sample_profile profile;
    struct sums sums = {0};
    int result = sample_profile_load(&profile, path, options->symfs, err);
    if (result == 0 && options->folded)
        result = sample_profile_write_folded(&profile, options->folded, err);
    if (result == 0 && add_up(&profile, &sums) < 0)
        result = error_set(err, ERROR_FAILED, "no memory for the functions of %zu samples",
                           profile.samples.count);
    if (result == 0 && options->json)
        result = print_json(&profile, &sums, options->top, err);
    else if (result == 0)
        print(path, &profile, &sums, options->top);
    array_free(&sums.functions);
    array_free(&sums.threads);
    sample_profile_free(&profile);
    return result;
}
