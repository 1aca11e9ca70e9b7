// SPDX-License-Identifier: MIT
#include "analysis/samples/sample_profile.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/code/code_build.h"
#include "analysis/code/code_image.h"
#include "analysis/code/symbols.h"
#include "analysis/perf/perf_data.h"
#include "analysis/perf/perf_data_events.h"
#include "analysis/perf/perf_data_maps.h"
#include "analysis/timeline/span.h"
#include "base/array.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/new_file.h"
#include "base/text.h"

// --- what a sample's addresses and its thread are called -----------------------------------------

// A name that a thread had from an instant on.
struct thread_name {
    uint32_t thread;
    uint64_t time;
    const char *name; // in the perf_data
};
struct thread_names ARRAY_OF(struct thread_name); // by thread, then time

struct sample_names {
    const struct perf_data *data;
    struct perf_maps maps;
    struct code_images images;
    struct symbols *symbols;
    struct name_table table;
    struct index_array numbers; // of the symbols' names in the table, plus 1; 0: not met yet
    struct thread_names threads;
};

static int by_thread_and_time(const void *left, const void *right)
{
    const struct thread_name *a = left, *b = right;
    return order_of(a->thread, b->thread) ?: order_of(a->time, b->time);
}

static int collect_threads(struct sample_names *names)
{
    for (size_t i = 0; i < names->data->events.count; i++) {
        const struct perf_event *event = &names->data->events.items[i];
        struct perf_comm comm;
        if (event->type != PERF_COMM)
            continue;
        perf_event_comm(event, &comm);
        if (array_push(&names->threads, (struct thread_name){comm.tid, event->time, comm.name}) < 0)
            return -1;
    }
    array_sort(&names->threads, by_thread_and_time);
    return 0;
}

// *out is filled with the names of functions and threads. The caller calls fini, also after a
// failure.
static int sample_names_init(struct sample_names *names, const struct perf_data *data,
                             const char *path, const char *symfs, struct name_array *out,
                             struct error *err)
{
    const struct code_image_options options = {
        .recording = path, .symfs = symfs, .os_release = data->os_release};
    *names = (struct sample_names){.data = data};
    char *folder = strdup(path);
    int result = folder ? 0 : error_set(err, ERROR_FAILED, "no memory for names of functions");
    if (result == 0)
        result = perf_maps_build(data, 0, &names->maps, err);
    if (result == 0)
        result = code_images_build(&names->maps, &options, &names->images, err);
    if (result == 0) {
        names->symbols = symbols_alloc(data, &names->images, dirname(folder), NULL, err);
        result = names->symbols ? 0 : -ERROR_FAILED;
    }
    if (result == 0 && (name_table_init(&names->table, out) < 0 || collect_threads(names) < 0))
        result = error_set(err, ERROR_FAILED, "no memory for names of functions");
    free(folder);
    return result;
}

static void sample_names_fini(struct sample_names *names)
{
    name_table_fini(&names->table);
    array_free(&names->numbers);
    array_free(&names->threads);
    symbols_free(names->symbols);
    code_images_free(&names->images);
    perf_maps_free(&names->maps);
}

static int number_of(struct sample_names *names, uint32_t symbol, uint32_t *number)
{
    const char *text = name_pool_text(symbols_names(names->symbols), symbol);
    while (names->numbers.count <= symbol)
        if (array_push(&names->numbers, 0u) < 0)
            return -1;
    if (names->numbers.items[symbol] == 0) {
        char *readable = symbol_demangle(text);
        const char *name = readable ? readable : text;
        int result = name_table_intern(&names->table, name, strlen(name), number);
        free(readable);
        if (result < 0)
            return -1;
        names->numbers.items[symbol] = *number + 1;
    }
    *number = names->numbers.items[symbol] - 1;
    return 0;
}

// The number of a function's or thread's name. *known: a symbol covers the address; else the name
// is its file's, or "[unknown]". -1: no memory.
static int sample_names_function(struct sample_names *names, const struct perf_sample *sample,
                                 uint64_t address, uint32_t *number, bool *known)
{
    struct symbol_hit hit;
    *known = symbols_find(names->symbols, sample->pid, sample->time, address, &hit);
    return number_of(names, hit.name, number);
}

// The thread's latest name before the sample; its process's where it has none of its own.
static const char *name_of(const struct sample_names *names, uint32_t thread, uint64_t time)
{
    size_t low = 0, high = names->threads.count;
    const struct thread_name wanted = {.thread = thread, .time = time};
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_thread_and_time(&names->threads.items[middle], &wanted) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && names->threads.items[low - 1].thread == thread
               ? names->threads.items[low - 1].name
               : NULL;
}

static int sample_names_thread(struct sample_names *names, const struct perf_sample *sample,
                               uint32_t *number)
{
    char numbered[32];
    const char *name = sample->tid == 0 ? "idle" : name_of(names, sample->tid, sample->time);
    if (!name)
        name = name_of(names, sample->pid, sample->time);
    if (!name) {
        snprintf(numbered, sizeof numbered, "thread %u", sample->tid);
        name = numbered;
    }
    return name_table_intern(&names->table, name, strlen(name), number);
}

// A recording of an hour on eight cores has 115 million; they cost 16 bytes here, 48 while read.
static const uint64_t most_samples = 200 * 1000 * 1000;

// --- the tree of stacks --------------------------------------------------------------------------

struct tree {
    struct sample_profile *profile;
    struct map numbers; // of nodes, by parent and name; the root is never looked for
};

// The node of a function below another; 0: no memory.
static uint32_t node_below(struct tree *tree, uint32_t parent, uint32_t name)
{
    struct sample_nodes *nodes = &tree->profile->nodes;
    uint64_t hash = hash_pair(parent, name);
    uint32_t node = map_find(&tree->numbers, hash, at,
                             nodes->items[at].parent == parent && nodes->items[at].name == name);
    if (node != MAP_NONE)
        return node;
    if (array_push(nodes, (struct sample_node){.parent = parent, .name = name}) < 0 ||
        map_add(&tree->numbers, hash, nodes->count - 1) < 0)
        return 0;
    return (uint32_t)nodes->count - 1;
}

// --- one sample ----------------------------------------------------------------------------------

static uint64_t frame_at(const struct perf_sample *sample, uint32_t at)
{
    uint64_t frame;
    memcpy(&frame, sample->chain + (size_t)at * sizeof frame, sizeof frame);
    return frame;
}

static int add_sample(struct tree *tree, struct sample_names *names,
                      const struct perf_sample *sample)
{
    struct sample_profile *profile = tree->profile;
    uint32_t name, node;
    bool known = true, caller = false;
    if (sample_names_thread(names, sample, &name) < 0 || !(node = node_below(tree, 0, name)))
        return -1;
    for (uint32_t at = sample->frames; at-- > 0;) {
        uint64_t frame = frame_at(sample, at);
        if (frame >= PERF_CONTEXT_FIRST)
            continue;
        // A caller's frame is where its call returns to: the instruction behind the call.
        bool innermost = at == 0 || (at == 1 && frame_at(sample, 0) >= PERF_CONTEXT_FIRST);
        if (sample_names_function(names, sample, innermost ? frame : frame - 1, &name, &known) < 0)
            return -1;
        caller = true;
        // How many frames without a symbol lie here is unknown where code has no frame pointers:
        // one node stands for all of them.
        if (!known && profile->nodes.items[node].name == name)
            continue;
        if (!(node = node_below(tree, node, name)))
            return -1;
    }
    if (!caller) {
        profile->without_chain++;
        if (sample_names_function(names, sample, sample->address, &name, &known) < 0 ||
            !(node = node_below(tree, node, name)))
            return -1;
    }
    profile->unnamed += !known;
    profile->nodes.items[node].self++;
    return array_push(
        &profile->samples,
        (struct named_sample){.time_ns = (int64_t)sample->time, .core = sample->cpu, .node = node});
}

static int by_core_and_time(const void *left, const void *right)
{
    const struct named_sample *a = left, *b = right;
    return order_of(a->core, b->core) ?: order_of(a->time_ns, b->time_ns);
}

static int add_samples(struct sample_profile *profile, const struct perf_data *data,
                       struct sample_names *names)
{
    struct tree tree = {.profile = profile};
    int result = array_push(&profile->nodes, (struct sample_node){0});
    for (size_t i = 0; result == 0 && i < data->samples.count; i++)
        result = add_sample(&tree, names, &data->samples.items[i]);
    map_free(&tree.numbers);
    struct sample_nodes *nodes = &profile->nodes;
    for (size_t i = nodes->count; i-- > 1;) {
        nodes->items[i].total += nodes->items[i].self;
        nodes->items[nodes->items[i].parent].total += nodes->items[i].total;
    }
    array_sort(&profile->samples, by_core_and_time);
    return result;
}

// --- the whole -----------------------------------------------------------------------------------

static int note(struct sample_profile *profile, const char *text)
{
    char *copy = strdup(text);
    if (copy && array_push(&profile->notes, copy) == 0)
        return 0;
    free(copy);
    return -1;
}

static int take_counts(struct sample_profile *profile, const struct perf_data *data)
{
    int result = 0;
    const struct perf_sample *first = &data->samples.items[0];
    snprintf(profile->event, sizeof profile->event, "%s", data->attrs.items[first->attr].name);
    profile->lost = data->lost_records + data->lost_samples;
    profile->throttled = data->counts[PERF_THROTTLE];
    profile->left_out = data->guest_records + data->samples_over_limit;
    profile->damages = data->complaints.count;
    for (size_t i = 0; result == 0 && i < data->complaints.count; i++)
        result = note(profile, data->complaints.items[i].text);
    return result;
}

static int name_samples(struct sample_profile *profile, const struct perf_data *data,
                        const char *path, const char *symfs, struct error *err)
{
    struct sample_names names;
    int result = sample_names_init(&names, data, path, symfs, &profile->names, err);
    if (result == 0 && (take_counts(profile, data) < 0 || add_samples(profile, data, &names) < 0))
        result = error_set(err, ERROR_FAILED, "no memory for %s samples",
                           TEXT_COUNT(data->samples.count));
    const struct code_complaint_array *missing = &names.images.complaints;
    for (size_t i = 0; result == 0 && i < missing->count; i++)
        if (note(profile, missing->items[i].text) < 0)
            result = error_set(err, ERROR_FAILED, "no memory for what code is missing");
    char unverified[128];
    snprintf(unverified, sizeof unverified, CODE_UNVERIFIED_NOTE, names.images.unverified);
    if (result == 0 && names.images.unverified && note(profile, unverified) < 0)
        result = error_set(err, ERROR_FAILED, "no memory for what code is not verified");
    for (size_t i = 0; result == 0 && i < symbols_complaints(names.symbols)->count; i++)
        if (note(profile, symbols_complaints(names.symbols)->items[i]) < 0)
            result = error_set(err, ERROR_FAILED, "no memory for what names are missing");
    sample_names_fini(&names);
    return result;
}

int sample_profile_load(struct sample_profile *profile, const char *path, const char *symfs,
                        struct error *err)
{
    struct perf_data data;
    struct perf_limits limits = perf_default_limits;
    limits.samples = most_samples;
    *profile = (struct sample_profile){0};
    int result = perf_data_open(path, &limits, &data, err);
    if (result < 0)
        return result;
    result = data.samples.count
                 ? name_samples(profile, &data, path, symfs, err)
                 : error_set(err, ERROR_INPUT,
                             "%s: holds no samples; record some with perf record -a -g", path);
    perf_data_free(&data);
    return result;
}

void sample_profile_free(struct sample_profile *profile)
{
    for (size_t i = 0; i < profile->names.count; i++)
        free(profile->names.items[i]);
    for (size_t i = 0; i < profile->notes.count; i++)
        free(profile->notes.items[i]);
    array_free(&profile->names);
    array_free(&profile->notes);
    array_free(&profile->nodes);
    array_free(&profile->samples);
}

static size_t first_not_before(const struct sample_profile *profile, uint32_t core, int64_t time_ns)
{
    const struct named_sample wanted = {.time_ns = time_ns, .core = core};
    return array_bound(0, profile->samples.count, at,
                       by_core_and_time(&profile->samples.items[at], &wanted) < 0);
}

const struct named_sample *sample_profile_between(const struct sample_profile *profile,
                                                  uint32_t core, int64_t from_ns, int64_t to_ns,
                                                  size_t *count)
{
    size_t first = first_not_before(profile, core, from_ns), after = first;
    while (after < profile->samples.count && profile->samples.items[after].core == core &&
           profile->samples.items[after].time_ns < to_ns)
        after++;
    *count = after - first;
    return profile->samples.items + first;
}

// --- by function ---------------------------------------------------------------------------------

static int most_first(const void *left, const void *right)
{
    const struct sample_function *a = left, *b = right;
    return order_of(b->self, a->self) ?: order_of(b->total, a->total) ?: order_of(a->name, b->name);
}

static bool called_by_itself(const struct sample_nodes *nodes, uint32_t node)
{
    uint32_t name = nodes->items[node].name;
    for (uint32_t at = nodes->items[node].parent; at != 0; at = nodes->items[at].parent)
        if (nodes->items[at].name == name)
            return true;
    return false;
}

int sample_profile_functions(const struct sample_profile *profile, struct sample_functions *out)
{
    const struct sample_nodes *nodes = &profile->nodes;
    for (size_t i = 0; i < profile->names.count; i++)
        if (array_push(out, (struct sample_function){.name = (uint32_t)i}) < 0)
            return -1;
    for (uint32_t i = 1; i < nodes->count; i++) {
        const struct sample_node *node = &nodes->items[i];
        if (node->parent == 0) // a thread's name
            continue;
        out->items[node->name].self += node->self;
        if (!called_by_itself(nodes, i))
            out->items[node->name].total += node->total;
    }
    array_sort(out, most_first);
    while (out->count && out->items[out->count - 1].total == 0)
        out->count--;
    return 0;
}

// --- folded --------------------------------------------------------------------------------------

static void write_stack(const struct sample_profile *profile, uint32_t node, FILE *out)
{
    const struct sample_node *of = &profile->nodes.items[node];
    if (of->parent != 0) {
        write_stack(profile, of->parent, out);
        fputc(';', out);
    }
    for (const char *name = profile->names.items[of->name]; *name; name++)
        fputc(*name == ';' ? ',' : *name, out);
}

int sample_profile_write_folded(const struct sample_profile *profile, const char *path,
                                struct error *err)
{
    struct new_file file;
    if (new_file_open(&file, path, err) < 0)
        return -(int)ERROR_FAILED;
    FILE *out = file.file;
    for (uint32_t i = 1; i < profile->nodes.count; i++) {
        if (profile->nodes.items[i].self == 0)
            continue;
        write_stack(profile, i, out);
        fprintf(out, " %llu\n", (unsigned long long)profile->nodes.items[i].self);
    }
    return new_file_finish(&file, 0, err);
}
