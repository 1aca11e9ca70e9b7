// SPDX-License-Identifier: MIT
#include "analysis/compare/run_profile.h"

#include <assert.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/decomposition/components.h"
#include "analysis/decomposition/decompose.h"
#include "analysis/run/run_analysis.h"
#include "analysis/run/run_analyze.h"
#include "base/input_file.h"
#include "base/text.h"
#include "loadgen/method/load_doubts.h"

int64_t slice_profile_find(const struct slice_profile *slice, const char *name, enum core_role role)
{
    for (size_t i = 0; i < slice->components.count; i++)
        if (slice->components.items[i].role == role &&
            strcmp(slice->components.items[i].name, name) == 0)
            return (int64_t)i;
    return -1;
}

// --- functions -----------------------------------------------------------------------------------

// How long each function took itself, without its callees, so that a message's functions add up to
// its time in functions. Zeroed but for its decomposer.
struct function_profiler {
    const struct decomposer *decomposer;
    uint32_t *by_name; // (name, role) to function plus 1; 0: not met yet
    double *own;       // by path, of the message at hand; 0 between messages
    double *sums;      // by function, the same
    size_t path_capacity, sum_capacity;
};

static void function_profiler_free(struct function_profiler *profiler)
{
    free(profiler->by_name);
    free(profiler->own);
    free(profiler->sums);
    *profiler = (struct function_profiler){.by_name = NULL};
}

// Makes room for `wanted` numbers, the new ones 0.
static int numbers_grow(double **items, size_t *capacity, size_t wanted)
{
    if (wanted <= *capacity)
        return 0;
    double *grown = realloc(*items, 2 * wanted * sizeof *grown);
    if (!grown)
        return -1;
    memset(grown + *capacity, 0, (2 * wanted - *capacity) * sizeof *grown);
    *items = grown;
    *capacity = 2 * wanted;
    return 0;
}

// The profile's function of a path. Names that are equal once cut to their maximal length count as
// one. -1: no memory.
static int64_t function_of(struct function_profiler *profiler, const struct path_node *node,
                           struct slice_profile *out)
{
    const struct component_table *table = profiler->decomposer->table;
    enum core_role role = table->components.items[node->component].role;
    size_t names = table->host->names.count;
    if (!profiler->by_name)
        profiler->by_name = calloc(names * ROLES + 1, sizeof *profiler->by_name);
    if (!profiler->by_name)
        return -1;
    uint32_t *known = &profiler->by_name[node->name * ROLES + role];
    if (*known)
        return *known - 1;
    struct profile_component function = {.role = role, .explains = true};
    snprintf(function.name, sizeof function.name, "%s", table->host->names.items[node->name]);
    const char *category = categories_of_function(table->categories, function.name, node->kernel);
    snprintf(function.category, sizeof function.category, "%s",
             category       ? category
             : node->kernel ? "kernel"
                            : "application");
    int64_t at = slice_profile_find(out, function.name, role);
    if (at < 0 && array_push(&out->components, function) < 0)
        return -1;
    *known = at < 0 ? (uint32_t)out->components.count : (uint32_t)at + 1;
    return *known - 1;
}

// Adds the time in functions of the message that the decomposer has just decomposed; out is a
// profile of functions. -1: no memory.
static int function_profiler_add(struct function_profiler *profiler,
                                 const struct path_share_array *paths, uint32_t block,
                                 struct slice_profile *out)
{
    const struct path_node *nodes = profiler->decomposer->paths.nodes.items;
    if (numbers_grow(&profiler->own, &profiler->path_capacity,
                     profiler->decomposer->paths.nodes.count) < 0)
        return -1;
    for (size_t i = 0; i < paths->count; i++) {
        const struct path_share *share = &paths->items[i];
        profiler->own[share->path] += share->ns;
        if (nodes[share->path].parent != NO_PATH)
            profiler->own[nodes[share->path].parent] -= share->ns;
    }
    int result = 0;
    for (size_t i = 0; i < paths->count; i++) {
        uint32_t path = paths->items[i].path;
        int64_t function = result < 0 ? -1 : function_of(profiler, &nodes[path], out);
        if (function < 0 ||
            numbers_grow(&profiler->sums, &profiler->sum_capacity, out->components.count) < 0)
            result = -1;
        else
            profiler->sums[function] += profiler->own[path];
        profiler->own[path] = 0;
    }
    for (uint32_t f = 0; f < out->components.count && f < profiler->sum_capacity; f++) {
        double ns = profiler->sums[f];
        profiler->sums[f] = 0;
        if (ns < 0.5) // only a rounding error
            continue;
        if (result == 0)
            result =
                array_push(&out->values,
                           (struct profile_value){.component = f, .block = block, .ns = (float)ns});
        out->block_latency_ns[block] += ns;
    }
    out->messages++;
    out->block_messages[block]++;
    return result;
}

// --- messages ------------------------------------------------------------------------------------

static uint32_t block_of(const struct diagnosis_slice *slice, const struct run_analysis *run,
                         const struct lifetime *life)
{
    bool window = slice->from_ns != slice->to_ns;
    double from = (double)(window ? slice->from_ns : run->lifetimes.begin_ns);
    double to =
        (double)(window && slice->to_ns <= run->lifetimes.end_ns ? slice->to_ns
                                                                 : run->lifetimes.end_ns + 1);
    double at = ((double)life->stamp_ns[STAMP_INTENDED] - from) / (to - from);
    int block = (int)(at * RESAMPLE_BLOCKS);
    return (uint32_t)(block < 0 ? 0 : block >= RESAMPLE_BLOCKS ? RESAMPLE_BLOCKS - 1 : block);
}

// The functions of the message just decomposed, where they are known.
static int take_functions(struct slice_profile *out, struct function_profiler *profiler,
                          const struct path_share_array *paths, uint32_t block)
{
    if (!profiler->decomposer->traced)
        return 0;
    if (!out->functions)
        out->functions = calloc(1, sizeof *out->functions);
    if (!out->functions)
        return -1;
    out->functions->granularity_ns = out->granularity_ns;
    return function_profiler_add(profiler, paths, block, out->functions);
}

static int take_message(struct slice_profile *out, const struct run_analysis *run,
                        const struct lifetime *life, uint32_t block)
{
    out->block_messages[block]++;
    out->block_latency_ns[block] += life->latency_ns;
    struct profile_message message = {
        .request = life->request,
        .at_ns = (double)(life->stamp_ns[STAMP_INTENDED] - run->lifetimes.begin_ns),
        .latency_ns = life->latency_ns,
        .first = out->values.count};
    return array_push(&out->each, message);
}

// What is a part of another component is that one's, as in the diagnosis (cause_parts.h), so that
// a cause costs in a comparison, and for a gate, what the report says that it did.
static void fold_parts(struct component_share_array *shares,
                       const struct component_array *components)
{
    size_t kept = 0;
    for (size_t i = 0; i < shares->count; i++) {
        struct component_share share = shares->items[i];
        const uint32_t whole = components->items[share.component].whole;
        share.component = whole ? whole - 1 : share.component;
        size_t at = 0;
        while (at < kept && shares->items[at].component != share.component)
            at++;
        if (at == kept)
            shares->items[kept++] = share;
        else
            shares->items[at].ns += share.ns;
    }
    shares->count = kept;
}

static int take_values(struct slice_profile *out, struct decomposer *decomposer,
                       const struct run_analysis *run, const struct diagnosis *diagnosis)
{
    struct component_share_array shares = {0};
    struct path_share_array paths = {0};
    struct function_profiler functions = {.decomposer = decomposer};
    int result = 0;
    for (size_t i = 0; i < diagnosis->messages.count && result == 0; i++) {
        uint64_t lifetime = diagnosis->messages.items[i].lifetime;
        const struct lifetime *life = &run->lifetimes.all.items[lifetime];
        uint32_t block = block_of(&diagnosis->slice, run, life);
        out->mean_ns += life->latency_ns / (double)diagnosis->messages.count;
        shares.count = paths.count = 0;
        result = take_message(out, run, life, block);
        if (result == 0)
            result = decompose(decomposer, lifetime, &shares, &paths);
        fold_parts(&shares, &decomposer->table->components);
        for (size_t s = 0; s < shares.count && result == 0; s++)
            result = array_push(&out->values,
                                (struct profile_value){.component = shares.items[s].component,
                                                       .block = block,
                                                       .ns = (float)shares.items[s].ns});
        if (result == 0)
            result = take_functions(out, &functions, &paths, block);
    }
    array_free(&shares);
    array_free(&paths);
    function_profiler_free(&functions);
    return result;
}

static int take_components(struct slice_profile *out, const struct component_array *components)
{
    for (size_t i = 0; i < components->count; i++) {
        const struct component *from = &components->items[i];
        struct profile_component component = {.role = from->role, .explains = from->explains};
        memcpy(component.name, from->name, sizeof component.name);
        snprintf(component.category, sizeof component.category, "%s",
                 from->category ? from->category : "other");
        if (array_push(&out->components, component) < 0)
            return -1;
    }
    return 0;
}

static int take_views(struct slice_profile *out, const struct diagnosis_views *views)
{
    out->has_views = views->available;
    memcpy(out->queue, views->queue, sizeof out->queue);
    memcpy(out->blocking, views->blocking, sizeof out->blocking);
    out->context_ns = views->context_ns[VIEW_SLICE];
    for (size_t i = 0; i < views->contexts.count; i++)
        if (array_push(&out->contexts, views->contexts.items[i]) < 0)
            return -1;
    return 0;
}

static int take_slice(const struct run_analysis *run, const struct diagnosis *diagnosis,
                      struct slice_profile *out)
{
    struct diagnosis_input in;
    struct component_table table;
    struct decomposer decomposer;
    diagnosis_slice_words(&diagnosis->slice, out->words, sizeof out->words);
    out->available = !diagnosis->not_available;
    memcpy(out->reason, diagnosis->reason, sizeof out->reason);
    out->messages = diagnosis->messages.count;
    out->low_ns = diagnosis->slice_low_ns;
    out->high_ns = diagnosis->slice_high_ns;
    out->granularity_ns = diagnosis->granularity_ns;
    if (!out->available)
        return 0;
    run_diagnosis_input(run, &in);
    int result = component_table_init(&table, in.server, in.client, in.categories);
    decomposer_init(&decomposer, &in, &table);
    if (result == 0)
        result = take_values(out, &decomposer, run, diagnosis);
    if (result == 0)
        result = take_components(out, &table.components);
    if (result == 0)
        result = take_views(out, &diagnosis->views);
    decomposer_fini(&decomposer);
    component_table_fini(&table);
    return result;
}

// The profile of a slice, from the run's own diagnosis of it or one made for the purpose.
static int profile_slice(const struct run_analysis *run, struct diagnosis_slice slice,
                         struct slice_profile *out, struct error *err)
{
    struct diagnosis made;
    const struct diagnosis *found = NULL;
    int result = run_place_slice(run, &slice, err);
    if (result < 0)
        return result;
    for (size_t i = 0; i < run->findings.diagnoses.count && !found; i++)
        if (diagnosis_slice_is_same(&run->findings.diagnoses.items[i].slice, &slice))
            found = &run->findings.diagnoses.items[i];
    if (!found) {
        struct diagnosis_input in;
        run_diagnosis_input(run, &in);
        if ((result = diagnose(&in, &slice, &made, err)) < 0)
            return result;
    }
    if (take_slice(run, found ? found : &made, out) < 0)
        result = error_set(err, ERROR_FAILED, "no memory to compare %s", run->evidence.run_dir);
    if (!found)
        diagnosis_free(&made);
    return result;
}

static int take_profile(const struct run_analysis *run, const struct diagnosis_slice_array *slices,
                        struct run_profile *out, struct error *err)
{
    int result = 0;
    *out = (struct run_profile){.scheduled = run->lifetimes.scheduled,
                                .answered = run->lifetimes.answered,
                                .joined = run->lifetimes.states[LIFETIME_WHOLE]};
    for (size_t i = 0; i < slices->count && result == 0; i++)
        result =
            array_push(&out->slices, (struct slice_profile){0}) < 0
                ? error_set(err, ERROR_FAILED, "no memory to compare %s", run->evidence.run_dir)
                : profile_slice(run, slices->items[i], &out->slices.items[i], err);
    return result;
}

static void slice_profile_free(struct slice_profile *slice)
{
    array_free(&slice->components);
    array_free(&slice->values);
    array_free(&slice->each);
    array_free(&slice->contexts);
    if (slice->functions)
        slice_profile_free(slice->functions);
    free(slice->functions);
}

static void run_profile_free(struct run_profile *profile)
{
    for (size_t i = 0; i < profile->slices.count; i++)
        slice_profile_free(&profile->slices.items[i]);
    array_free(&profile->slices);
}

// --- the runs of one build -----------------------------------------------------------------------

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

// How many repetitions a folder had once: by repetitions.json, which is written when all have
// ended, or by the highest number of those that are there.
static size_t count_expected(const char *path)
{
    char name[FILE_BYTES], folder[PATH_BYTES];
    snprintf(name, sizeof name, "%s/repetitions.json", path);
    json_t *document = input_json(name, NULL);
    const json_int_t said = json_integer_value(json_object_get(document, "count"));
    size_t most = said > 0 ? (size_t)said : 0;
    json_decref(document);
    const struct dirent *entry;
    DIR *entries = opendir(path);
    while (entries && (entry = readdir(entries))) {
        unsigned number, length = 0;
        if (sscanf(entry->d_name, "repetition-%8u%n", &number, &length) == 1 &&
            entry->d_name[length] == '\0' && number > most &&
            run_set_is_run(repetition_path(path, number - 1, folder, sizeof folder)))
            most = number;
    }
    if (entries)
        closedir(entries);
    return most;
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
        return error_set(err, ERROR_FAILED, "out of memory for %s requests",
                         TEXT_COUNT(run->lifetimes.all.count));
    }
    struct latency_run *all = &set->latencies.items[set->latencies.count - 1];
    for (size_t i = 0; i < run->lifetimes.all.count; i++)
        all->items[all->count++] = run->lifetimes.all.items[i].latency_ns;
    return 0;
}

static void note_load(struct run_set *set, const struct run_analysis *run)
{
    const char *doubt = run_load_doubt(run), *plain = run_load_doubt_words(run).words;
    if (doubt && set->inconclusive++ == 0)
        snprintf(set->reason, sizeof set->reason, "%s", plain ? plain : doubt);
}

int run_set_own_slice(const char *path, struct diagnosis_slice *out, struct error *err)
{
    char folder[PATH_BYTES], file[FILE_BYTES];
    run_set_folder(path, 0, folder, sizeof folder);
    snprintf(file, sizeof file, "%s/experiment.json", folder);
    json_t *experiment = input_json(file, NULL);
    const char *slice =
        json_string_value(json_object_get(json_object_get(experiment, "diagnose"), "slice"));
    int result = diagnosis_slice_parse(slice ? slice : "p99-100", out, err);
    json_decref(experiment);
    return result;
}

int run_set_want(struct run_set *set, const struct diagnosis_slice_array *slices, struct error *err)
{
    for (size_t i = 0; i < slices->count; i++)
        if (diagnosis_slice_add(&set->slices, &slices->items[i]) < 0)
            return error_set(err, ERROR_FAILED, "out of memory for slices");
    return 0;
}

const struct slice_profile *run_set_profile(const struct run_set *set, size_t run,
                                            const struct diagnosis_slice *slice)
{
    size_t at = 0;
    while (at < set->slices.count && !diagnosis_slice_is_same(&set->slices.items[at], slice))
        at++;
    assert(at < set->slices.count);
    return &set->profiles.items[run].slices.items[at];
}

int run_set_add(struct run_set *set, const struct run_analysis *run, struct error *err)
{
    int result = take_latencies(set, run, err);
    if (result == 0 && array_push(&set->profiles, (struct run_profile){0}) < 0)
        result = error_set(err, ERROR_FAILED, "out of memory for %s", run->evidence.run_dir);
    if (result == 0)
        result =
            take_profile(run, &set->slices, &set->profiles.items[set->profiles.count - 1], err);
    if (result == 0 && sample_stacks_add(&set->stacks, 0, &run->evidence.samples.profile) < 0)
        result = error_set(err, ERROR_FAILED, "out of memory for the samples of %s",
                           run->evidence.run_dir);
    memcpy(set->name, run->evidence.name, sizeof set->name);
    const json_t *asked = json_object_get(run->evidence.experiment, "repetitions");
    set->asked = (size_t)json_integer_value(json_object_get(asked, "count"));
    note_load(set, run);
    double count = (double)set->profiles.count;
    set->offered_rate += (run->lifetimes.offered_rate - set->offered_rate) / count;
    set->achieved_rate += (run->lifetimes.achieved_rate - set->achieved_rate) / count;
    return result;
}

int run_set_check(const char *path, struct error *err)
{
    const size_t there = count_runs(path),
                 expected = run_set_is_run(path) ? 1 : count_expected(path);
    if (there > 0 && there >= expected)
        return 0;
    if (expected > 0)
        return error_set(err, ERROR_INPUT,
                         "%s: repetition-%zu of %s is missing, or has no client/samples.tlog: copy "
                         "it from where it was",
                         path, there + 1, TEXT_COUNT(expected));
    return error_set(err, ERROR_INPUT,
                     "%s is neither a run folder (with client/samples.tlog) nor one of "
                     "repetitions (with repetition-1)",
                     path);
}

// Two runs never have the same latencies, to the nanosecond.
static int check_for_copies(const struct run_set *set, const char *path, struct error *err)
{
    const size_t last = set->latencies.count - 1;
    const struct latency_run *latest = &set->latencies.items[last];
    for (size_t i = 0; i < last; i++) {
        const struct latency_run *old = &set->latencies.items[i];
        if (latest->count && latest->count == old->count &&
            memcmp(latest->items, old->items, latest->count * sizeof *latest->items) == 0)
            return error_set(err, ERROR_INPUT,
                             "%s: repetition-%zu has the same requests as repetition-%zu: one was "
                             "copied over the other; copy both again from where they were",
                             path, last + 1, i + 1);
    }
    return 0;
}

int run_set_read(struct run_set *set, const char *path, const char *categories,
                 struct progress *progress, struct error *err)
{
    snprintf(set->path, sizeof set->path, "%s", path);
    size_t count = count_runs(path);
    int result = run_set_check(path, err);
    for (size_t i = 0; i < count && result == 0; i++) {
        char folder[PATH_BYTES];
        struct run_analysis run;
        const struct run_request request = {.run_dir =
                                                run_set_folder(path, i, folder, sizeof folder),
                                            .load = set->load[0] ? set->load : NULL,
                                            .slices = &set->slices,
                                            .categories = categories};
        result = run_analyze(&request, progress, &run, err);
        if (result < 0)
            break;
        result = run_set_add(set, &run, err);
        run_analysis_free(&run);
        if (result == 0)
            result = check_for_copies(set, path, err);
    }
    if (run_set_is_run(path)) // one of them was meant
        set->asked = 0;
    return result;
}

void run_set_free(struct run_set *set)
{
    for (size_t i = 0; i < set->latencies.count; i++)
        array_free(&set->latencies.items[i]);
    for (size_t i = 0; i < set->profiles.count; i++)
        run_profile_free(&set->profiles.items[i]);
    sample_stacks_free(&set->stacks);
    array_free(&set->latencies);
    array_free(&set->profiles);
    array_free(&set->slices);
}

struct run_set *run_sets_match(const struct run_set_array *sets, const struct run_set_array *others,
                               size_t index)
{
    const char *load = others->items[index].load;
    if (index == 0 && sets->count > 0 && (!load[0] || !sets->items[0].load[0]))
        return &sets->items[0];
    for (size_t i = 0; i < sets->count; i++)
        if (strcmp(sets->items[i].load, load) == 0)
            return &sets->items[i];
    return NULL;
}

static int add_named(struct run_set_array *out, const char *name, struct error *err)
{
    struct run_set set = {.path = ""};
    snprintf(set.load, sizeof set.load, "%s", name ? name : "");
    return array_push(out, set) < 0 ? error_set(err, ERROR_FAILED, "out of memory for loads") : 0;
}

int run_sets_list(const char *path, struct run_set_array *out, struct error *err)
{
    char folder[PATH_BYTES], file[FILE_BYTES];
    run_set_folder(path, 0, folder, sizeof folder);
    snprintf(file, sizeof file, "%s/experiment.json", folder);
    json_t *load, *experiment = input_json(file, NULL);
    const char *name;
    int result = add_named(
        out, json_string_value(json_object_get(json_object_get(experiment, "load"), "name")), err);
    json_object_foreach(json_object_get(experiment, "loads"), name, load)
    {
        if (result == 0)
            result = add_named(out, name, err);
    }
    json_decref(experiment);
    return result;
}

void run_sets_free(struct run_set_array *sets)
{
    for (size_t i = 0; i < sets->count; i++)
        run_set_free(&sets->items[i]);
    array_free(sets);
}
