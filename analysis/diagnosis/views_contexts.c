// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/views_contexts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/decomposition/components.h"
#include "analysis/diagnosis/views_calls.h"
#include "base/quantile.h"

enum { CORE_ROLES = 2 };

struct component_sums ARRAY_OF(double);

// How long one message of the slice was in a context, whose number is not yet known.
struct placed_time {
    size_t row, component;
    double ns;
};
struct placed_time_array ARRAY_OF(struct placed_time);
struct size_array ARRAY_OF(size_t);

struct context_sums {
    const struct diagnosis_input *in;
    struct component_table table; // contexts by name
    size_t rows;                  // per side: R then A, by core in the host's order
    struct component_sums *sums;
    struct call_tree calls;
    struct placed_time_array times; // of the slice's messages, one after the other
    struct size_array first;        // where each message's begin
    // While a message is added.
    int side;
    size_t row;
    enum core_role role;
    bool out_of_memory;
};

void context_sums_free(struct context_sums *sums)
{
    if (!sums)
        return;
    for (size_t i = 0; sums->sums && i < VIEW_SIDES * sums->rows; i++)
        array_free(&sums->sums[i]);
    free(sums->sums);
    array_free(&sums->times);
    array_free(&sums->first);
    component_table_fini(&sums->table);
    call_tree_free(&sums->calls);
    free(sums);
}

struct context_sums *context_sums_new(const struct diagnosis_input *in)
{
    struct context_sums *sums = calloc(1, sizeof *sums);
    if (!sums)
        return NULL;
    sums->in = in;
    sums->rows = CORE_ROLES * (in->server ? in->server->cores.count : 0);
    sums->sums = calloc(VIEW_SIDES * sums->rows + 1, sizeof *sums->sums);
    if (component_table_init(&sums->table, in->server, NULL, NULL) < 0 || !sums->sums) {
        context_sums_free(sums);
        return NULL;
    }
    return sums;
}

static int64_t component_of_piece(struct context_sums *sums, const struct span *context)
{
    bool receive = sums->role == ROLE_R;
    if (!context || context->kind == SPAN_UNKNOWN)
        return receive ? COMPONENT_UNKNOWN_R : COMPONENT_UNKNOWN_A;
    if (context->kind == SPAN_IDLE)
        return receive ? COMPONENT_IDLE_R : COMPONENT_IDLE_A;
    return component_of_context(&sums->table, context, sums->role);
}

// Of the message that is being added.
static int add_own(struct context_sums *sums, size_t component, double ns)
{
    size_t first = sums->first.items[sums->first.count - 1];
    for (size_t i = first; i < sums->times.count; i++)
        if (sums->times.items[i].row == sums->row && sums->times.items[i].component == component) {
            sums->times.items[i].ns += ns;
            return 0;
        }
    return array_push(&sums->times, ((struct placed_time){sums->row, component, ns}));
}

static int add_time(struct context_sums *sums, int64_t component, double ns)
{
    struct component_sums *row = &sums->sums[(size_t)sums->side * sums->rows + sums->row];
    if (component < 0 || array_reserve(row, (size_t)component + 1) < 0)
        return -1;
    while (row->count <= (size_t)component)
        row->items[row->count++] = 0;
    row->items[component] += ns;
    return sums->side == VIEW_SLICE && ns > 0 ? add_own(sums, (size_t)component, ns) : 0;
}

static void add_piece(const struct span *innermost, int64_t begin_ns, int64_t end_ns, void *opaque)
{
    struct context_sums *sums = opaque;
    int64_t component = component_of_piece(sums, innermost);
    if (add_time(sums, component, (double)(end_ns - begin_ns)) < 0)
        sums->out_of_memory = true;
}

static void add_core(struct context_sums *sums, enum core_role role, uint16_t number,
                     int64_t begin_ns, int64_t end_ns)
{
    const struct core_timeline *core = host_timeline_core(sums->in->server, number);
    if (!core || end_ns <= begin_ns)
        return;
    size_t row = (size_t)(core - sums->in->server->cores.items);
    sums->row = (role == ROLE_A ? sums->rows / CORE_ROLES : 0) + row;
    sums->role = role;
    core_timeline_pieces(core, begin_ns, end_ns, add_piece, sums);
    if (call_tree_add(&sums->calls, core, begin_ns, end_ns, sums->side) < 0)
        sums->out_of_memory = true;
}

static size_t first_stint_after(const struct thread_stint *stints, size_t count, int64_t time_ns)
{
    return array_bound(0, count, at, stints[at].end_ns <= time_ns);
}

int context_sums_add(struct context_sums *sums, uint64_t lifetime, int side)
{
    const struct lifetime *life = &sums->in->lifetimes[lifetime];
    int64_t at = life->stamp_ns[STAMP_HANDOFF];
    int64_t end = lifetime_stamp_ns(life, STAMP_SERVER_TX, STAMP_REPLY);
    sums->side = side;
    if (side == VIEW_SLICE && array_push(&sums->first, sums->times.count) < 0)
        return -1;
    add_core(sums, ROLE_R, life->stamp_core[STAMP_HANDOFF], life->stamp_ns[STAMP_NIC], at);
    size_t count;
    const struct thread_stint *stints =
        host_timeline_stints(sums->in->server, life->thread, &count);
    size_t i = first_stint_after(stints, count, at);
    for (; at < end; i++) {
        bool known = i < count;
        int64_t until = known && stints[i].end_ns < end ? stints[i].end_ns : end;
        add_core(sums, ROLE_A, known ? stints[i].core : life->stamp_core[STAMP_APPLICATION], at,
                 until);
        at = until;
    }
    return sums->out_of_memory ? -1 : 0;
}

static int compare_contexts(const void *left, const void *right)
{
    const struct core_context *a = left, *b = right;
    return order_of(a->role, b->role) ?:
           order_of(a->core, b->core) ?:
           order_of(b->ns[VIEW_SLICE], a->ns[VIEW_SLICE]) ?:
           order_of(b->ns[VIEW_REFERENCE], a->ns[VIEW_REFERENCE]) ?:
           strcmp(a->name, b->name);
}

static double sum_at(const struct component_sums *row, size_t component)
{
    return component < row->count ? row->items[component] : 0;
}

static int take_row(const struct context_sums *sums, size_t row, struct diagnosis_views *out)
{
    const struct component_sums *slice = &sums->sums[row],
                                *reference = &sums->sums[sums->rows + row];
    size_t cores = sums->rows / CORE_ROLES;
    for (size_t c = 0; c < sums->table.components.count; c++) {
        struct core_context context = {.role = row < cores ? ROLE_R : ROLE_A,
                                       .core = sums->in->server->cores.items[row % cores].core,
                                       .place = row * sums->table.components.count + c,
                                       .ns = {sum_at(slice, c), sum_at(reference, c)}};
        if (context.ns[VIEW_SLICE] <= 0 && context.ns[VIEW_REFERENCE] <= 0)
            continue;
        bool idle = c == COMPONENT_IDLE_R || c == COMPONENT_IDLE_A;
        snprintf(context.name, sizeof context.name, "%s",
                 idle ? "idle" : sums->table.components.items[c].name);
        for (int side = 0; side < VIEW_SIDES; side++)
            out->context_ns[side] += context.ns[side];
        if (array_push(&out->contexts, context) < 0)
            return -1;
    }
    return 0;
}

// Each message's times, by the contexts' numbers, which are known now.
static int take_times(const struct context_sums *sums, struct diagnosis_views *out)
{
    size_t components = sums->table.components.count;
    uint32_t *number = calloc(sums->rows * components + 1, sizeof *number);
    int status = number ? array_reserve(&out->context_times, sums->times.count) : -1;
    for (size_t i = 0; status == 0 && i < out->contexts.count; i++)
        number[out->contexts.items[i].place] = (uint32_t)i;
    for (size_t i = 0; status == 0 && i < sums->times.count; i++) {
        const struct placed_time *one = &sums->times.items[i];
        out->context_times.items[out->context_times.count++] =
            (struct context_time){number[one->row * components + one->component], (float)one->ns};
    }
    free(number);
    for (size_t i = 0; status == 0 && i < out->messages.count; i++) {
        size_t first = sums->first.items[i],
               last = i + 1 < sums->first.count ? sums->first.items[i + 1] : sums->times.count;
        out->messages.items[i].first_context = first;
        out->messages.items[i].contexts = (uint32_t)(last - first);
    }
    return status;
}

int context_sums_take(struct context_sums *sums, struct diagnosis_views *out)
{
    out->calls = sums->calls.nodes;
    sums->calls.nodes = (struct call_node_array){0};
    for (size_t row = 0; row < sums->rows; row++)
        if (take_row(sums, row, out) < 0)
            return -1;
    views_share_contexts(out);
    array_sort(&out->contexts, compare_contexts);
    return take_times(sums, out);
}
