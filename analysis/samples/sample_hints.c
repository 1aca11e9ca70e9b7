// SPDX-License-Identifier: MIT
#include "analysis/samples/sample_hints.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/decomposition/decompose.h"

enum side { SLICE, REFERENCE, SIDES };

struct finder {
    const struct sample_profile *profile;
    struct component_table table;
    struct decomposer decomposer;
    struct sample_hints *out;
    struct index_array hints; // by component: the hint's number plus 1; 0: not looked up yet
    enum side side;
    uint8_t *seen;    // by sample: bit per hint that has counted it, on this side
    bool *taken;      // by sample: it is counted for its node, on this side
    uint64_t *counts; // by side, hint and name
    bool out_of_memory;
};

static uint64_t *count_of(const struct finder *finder, enum side side, size_t hint, uint32_t name)
{
    size_t names = finder->profile->names.count;
    return &finder->counts[((size_t)side * SAMPLE_HINTS_MOST + hint) * names + name];
}

// --- which causes --------------------------------------------------------------------------------

static bool runs(enum cause_class class)
{
    return class == CAUSE_CONTEXT || class == CAUSE_BLOCKING || class == CAUSE_UNEXPLAINED;
}

static void add_hint(struct sample_hints *out, const char *cause, enum core_role role)
{
    struct sample_hint *hint = &out->items[out->count++];
    *hint = (struct sample_hint){.role = role};
    snprintf(hint->cause, sizeof hint->cause, "%s", cause);
}

static void choose_causes(const struct finder *finder, const struct diagnosis *diagnosis)
{
    struct sample_hints *out = finder->out;
    const struct component *own = &finder->table.components.items[COMPONENT_APPLICATION];
    bool application = false;
    for (size_t i = 0; i < diagnosis->causes.count; i++) {
        const struct cause *cause = &diagnosis->causes.items[i];
        if (!runs(cause->class) ||
            out->count >= (application ? SAMPLE_HINTS_MOST : SAMPLE_HINTS_MOST - 1))
            continue;
        application |= cause->role == own->role && strcmp(cause->name, own->name) == 0;
        add_hint(out, cause->name, cause->role);
    }
    if (!application)
        add_hint(out, own->name, own->role);
}

// The number of the component's hint plus 1; SAMPLE_HINTS_MOST + 1: it has none.
static uint32_t hint_of(struct finder *finder, uint32_t component)
{
    while (finder->hints.count <= component)
        if (array_push(&finder->hints, 0u) < 0) {
            finder->out_of_memory = true;
            return SAMPLE_HINTS_MOST + 1;
        }
    uint32_t *hint = &finder->hints.items[component];
    const struct component *of = &finder->table.components.items[component];
    for (size_t i = 0; *hint == 0 && i < finder->out->count; i++)
        if (finder->out->items[i].role == of->role &&
            strcmp(finder->out->items[i].cause, of->name) == 0)
            *hint = (uint32_t)i + 1;
    if (*hint == 0)
        *hint = SAMPLE_HINTS_MOST + 1;
    return *hint;
}

// --- counting ------------------------------------------------------------------------------------

static void take_nodes(struct finder *finder, const struct named_sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool *taken = &finder->taken[samples + i - finder->profile->samples.items];
        struct node_samples *node = &finder->out->nodes[samples[i].node];
        if (!*taken)
            ++*(finder->side == SLICE ? &node->slice : &node->reference);
        *taken = true;
    }
}

// Adds to each node what it called: children have greater numbers.
static void sum_nodes(const struct sample_profile *profile, struct node_samples *nodes)
{
    for (size_t i = profile->nodes.count; i-- > 1;) {
        struct node_samples *parent = &nodes[profile->nodes.items[i].parent];
        parent->slice += nodes[i].slice;
        parent->reference += nodes[i].reference;
    }
}

static void take_piece(uint32_t component, uint16_t core, int64_t begin_ns, int64_t end_ns,
                       void *context)
{
    struct finder *finder = context;
    const struct sample_profile *profile = finder->profile;
    uint32_t hint = hint_of(finder, component) - 1;
    size_t count = 0;
    if (core == NO_CORE)
        return;
    const struct named_sample *samples =
        sample_profile_between(profile, core, begin_ns, end_ns, &count);
    take_nodes(finder, samples, count);
    for (size_t i = 0; i < count && hint < SAMPLE_HINTS_MOST; i++) {
        uint8_t *seen = &finder->seen[samples + i - profile->samples.items];
        uint32_t name = profile->nodes.items[samples[i].node].name;
        if (*seen & 1u << hint)
            continue;
        *seen |= (uint8_t)(1u << hint);
        ++*count_of(finder, finder->side, hint, name);
        struct sample_hint *of = &finder->out->items[hint];
        ++*(finder->side == SLICE ? &of->slice : &of->reference);
    }
}

static int take_messages(struct finder *finder, const struct diagnosed_array *messages,
                         enum side side, uint64_t *looked_at)
{
    struct component_share_array shares = {0};
    double step = (double)messages->count / SAMPLE_HINT_MESSAGES;
    int result = 0;
    finder->side = side;
    memset(finder->seen, 0, finder->profile->samples.count);
    memset(finder->taken, 0, finder->profile->samples.count * sizeof *finder->taken);
    step = step > 1 ? step : 1;
    for (double at = 0; result == 0 && at < (double)messages->count; at += step) {
        shares.count = 0;
        ++*looked_at;
        result =
            decompose(&finder->decomposer, messages->items[(size_t)at].lifetime, &shares, NULL);
    }
    array_free(&shares);
    return finder->out_of_memory ? -1 : result;
}

// The messages around the median latency, whatever their operation.
static int take_reference(struct finder *finder, const struct diagnosis *diagnosis)
{
    const struct diagnosis_slice middle = {.low = 0.4,
                                           .high = 0.6,
                                           .from_ns = diagnosis->slice.from_ns,
                                           .to_ns = diagnosis->slice.to_ns};
    struct lifetime_indices candidates = {0};
    struct diagnosis picked;
    struct error err;
    int result = diagnosis_pick(finder->decomposer.in, &middle, &picked, &candidates, &err);
    if (result == 0)
        result =
            take_messages(finder, &picked.messages, REFERENCE, &finder->out->reference_messages);
    array_free(&candidates);
    diagnosis_free(&picked);
    return result;
}

// --- the functions that lead ---------------------------------------------------------------------

static void name_functions(const struct finder *finder, size_t number)
{
    struct sample_hint *hint = &finder->out->items[number];
    for (uint32_t name = 0; name < finder->profile->names.count; name++) {
        struct hint_function function = {.name = name,
                                         .slice = *count_of(finder, SLICE, number, name),
                                         .reference = *count_of(finder, REFERENCE, number, name)};
        size_t at = hint->function_count;
        while (at > 0 && hint->functions[at - 1].slice < function.slice)
            at--;
        if (function.slice == 0 || at == SAMPLE_HINT_FUNCTIONS)
            continue;
        hint->function_count += hint->function_count < SAMPLE_HINT_FUNCTIONS;
        memmove(&hint->functions[at + 1], &hint->functions[at],
                (hint->function_count - at - 1) * sizeof function);
        hint->functions[at] = function;
    }
}

static int find(struct finder *finder, const struct diagnosis *diagnosis)
{
    finder->counts = calloc((size_t)SIDES * SAMPLE_HINTS_MOST * finder->profile->names.count + 1,
                            sizeof *finder->counts);
    finder->seen = calloc(finder->profile->samples.count + 1, sizeof *finder->seen);
    finder->taken = calloc(finder->profile->samples.count + 1, sizeof *finder->taken);
    finder->out->nodes = calloc(finder->profile->nodes.count + 1, sizeof *finder->out->nodes);
    if (!finder->counts || !finder->seen || !finder->taken || !finder->out->nodes)
        return -1;
    choose_causes(finder, diagnosis);
    int result = take_messages(finder, &diagnosis->messages, SLICE, &finder->out->slice_messages);
    if (result == 0)
        result = take_reference(finder, diagnosis);
    sum_nodes(finder->profile, finder->out->nodes);
    for (size_t i = 0; result == 0 && i < finder->out->count; i++)
        name_functions(finder, i);
    return result;
}

int sample_hints_find(const struct sample_profile *profile, const struct diagnosis_input *in,
                      const struct diagnosis *diagnosis, struct sample_hints *out)
{
    struct finder finder = {.profile = profile, .out = out};
    *out = (struct sample_hints){0};
    if (diagnosis->not_available || !in->server)
        return 0;
    int result = component_table_init(&finder.table, in->server, in->client, in->categories);
    decomposer_init(&finder.decomposer, in, &finder.table);
    finder.decomposer.piece = take_piece;
    finder.decomposer.piece_context = &finder;
    if (result == 0)
        result = find(&finder, diagnosis);
    decomposer_fini(&finder.decomposer);
    component_table_fini(&finder.table);
    array_free(&finder.hints);
    free(finder.counts);
    free(finder.seen);
    free(finder.taken);
    return result;
}

void sample_hints_free(struct sample_hints *hints)
{
    free(hints->nodes);
    *hints = (struct sample_hints){0};
}

// --- instants ------------------------------------------------------------------------------------

static void find_interrupt(const struct span *const *open, unsigned depth, int64_t begin_ns,
                           int64_t end_ns, void *context)
{
    const struct span **found = context;
    (void)begin_ns;
    (void)end_ns;
    for (unsigned at = depth; at-- > 0 && !*found;)
        if (open[at]->kind == SPAN_VECTOR)
            *found = open[at];
}

void sample_instants_settle(struct sample_profile *profile, const struct host_timeline *host)
{
    if (strncmp(profile->event, "cpu-clock", 9) != 0 &&
        strncmp(profile->event, "task-clock", 10) != 0)
        return; // perf may have added a modifier, as in "cpu-clock:ppp"
    for (size_t i = 0; i < profile->samples.count; i++) {
        struct named_sample *sample = &profile->samples.items[i];
        const struct core_timeline *core =
            sample->core < NO_CORE ? host_timeline_core(host, (uint16_t)sample->core) : NULL;
        const struct span *interrupt = NULL;
        if (core)
            core_timeline_stacks(core, sample->time_ns, sample->time_ns + 1, find_interrupt,
                                 &interrupt);
        if (interrupt)
            sample->time_ns = interrupt->begin_ns - 1;
    }
}
