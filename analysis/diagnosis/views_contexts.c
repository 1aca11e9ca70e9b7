// SPDX-License-Identifier: MIT
//
// Which contexts the messages' cores were in: from M(n) to M(h) the core of the hand-off, and from
// then until the reply was sent the cores on which the message's thread ran (while it did not run:
// the core it ran on next).
#include "analysis/diagnosis/views_contexts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diagnosis/components.h"
#include "base/array.h"

enum { CORE_ROLES = 2 };

struct component_sums ARRAY_OF(double);

struct context_sums {
    const struct diagnosis_input *in;
    struct component_table table; // contexts by name
    size_t rows;                  // per side: R then A, by core in the host's order
    struct component_sums *sums;
    // While a message is added.
    struct component_sums *row;
    enum core_role role;
    bool out_of_memory;
};

struct context_sums *context_sums_new(const struct diagnosis_input *in)
{
    struct context_sums *sums = calloc(1, sizeof *sums);
    if (!sums)
        return NULL;
    sums->in = in;
    sums->rows = CORE_ROLES * (in->server ? in->server->cores.count : 0);
    sums->sums = calloc(VIEW_SIDES * sums->rows + 1, sizeof *sums->sums);
    if (component_table_init(&sums->table, in->server, NULL) < 0 || !sums->sums) {
        context_sums_free(sums);
        return NULL;
    }
    return sums;
}

void context_sums_free(struct context_sums *sums)
{
    if (!sums)
        return;
    for (size_t i = 0; sums->sums && i < VIEW_SIDES * sums->rows; i++)
        array_free(&sums->sums[i]);
    free(sums->sums);
    component_table_fini(&sums->table);
    free(sums);
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

static void add_piece(const struct span *innermost, int64_t begin_ns, int64_t end_ns, void *opaque)
{
    struct context_sums *sums = opaque;
    int64_t component = component_of_piece(sums, innermost);
    if (component < 0 || array_reserve(sums->row, (size_t)component + 1) < 0) {
        sums->out_of_memory = true;
        return;
    }
    while (sums->row->count <= (size_t)component)
        sums->row->items[sums->row->count++] = 0;
    sums->row->items[component] += (double)(end_ns - begin_ns);
}

static void add_core(struct context_sums *sums, int side, enum core_role role, uint16_t number,
                     int64_t begin_ns, int64_t end_ns)
{
    const struct core_timeline *core = host_timeline_core(sums->in->server, number);
    if (!core || end_ns <= begin_ns)
        return;
    size_t row = (size_t)(core - sums->in->server->cores.items);
    size_t at = (size_t)side * sums->rows + (role == ROLE_A ? sums->rows / CORE_ROLES : 0) + row;
    sums->row = &sums->sums[at];
    sums->role = role;
    core_timeline_pieces(core, begin_ns, end_ns, add_piece, sums);
}

static size_t first_stretch_after(const struct thread_stretch *stretches, size_t count,
                                  int64_t time_ns)
{
    return array_bound(0, count, at, stretches[at].end_ns <= time_ns);
}

int context_sums_add(struct context_sums *sums, uint64_t lifetime, int side)
{
    const struct lifetime *life = &sums->in->lifetimes[lifetime];
    int64_t at = life->stamp_ns[STAMP_HANDOFF];
    int64_t end = lifetime_has(life, STAMP_SERVER_TX) ? life->stamp_ns[STAMP_SERVER_TX]
                                                      : life->stamp_ns[STAMP_REPLY];
    add_core(sums, side, ROLE_R, life->stamp_core[STAMP_HANDOFF], life->stamp_ns[STAMP_NIC], at);
    size_t count;
    const struct thread_stretch *stretches =
        host_timeline_stretches(sums->in->server, life->thread, &count);
    size_t i = first_stretch_after(stretches, count, at);
    for (; at < end; i++) {
        bool known = i < count;
        int64_t until = known && stretches[i].end_ns < end ? stretches[i].end_ns : end;
        add_core(sums, side, ROLE_A,
                 known ? stretches[i].core : life->stamp_core[STAMP_APPLICATION], at, until);
        at = until;
    }
    return sums->out_of_memory ? -1 : 0;
}

static int compare_contexts(const void *left, const void *right)
{
    const struct core_context *a = left, *b = right;
    if (a->role != b->role)
        return a->role < b->role ? -1 : 1;
    if (a->core != b->core)
        return a->core < b->core ? -1 : 1;
    for (int side = 0; side < VIEW_SIDES; side++)
        if (a->ns[side] < b->ns[side] || a->ns[side] > b->ns[side])
            return a->ns[side] > b->ns[side] ? -1 : 1;
    return strcmp(a->name, b->name);
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

int context_sums_take(const struct context_sums *sums, struct diagnosis_views *out)
{
    for (size_t row = 0; row < sums->rows; row++)
        if (take_row(sums, row, out) < 0)
            return -1;
    array_sort(&out->contexts, compare_contexts);
    return 0;
}
