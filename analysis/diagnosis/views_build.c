// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/views_build.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diagnosis/components.h"
#include "analysis/diagnosis/diagnosis.h"
#include "analysis/diagnosis/views_queue.h"
#include "analysis/lifetime/service_order.h"
#include "base/array.h"
#include "base/quantile.h"

// --- contexts of the messages' cores -------------------------------------------------------------
// Which contexts the messages' cores were in: from M(n) to M(h) the core of the hand-off, and from
// then until the reply was sent the cores on which the message's thread ran (while it did not run:
// the core it ran on next).

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

static void context_sums_free(struct context_sums *sums)
{
    if (!sums)
        return;
    for (size_t i = 0; sums->sums && i < VIEW_SIDES * sums->rows; i++)
        array_free(&sums->sums[i]);
    free(sums->sums);
    component_table_fini(&sums->table);
    free(sums);
}

static struct context_sums *context_sums_new(const struct diagnosis_input *in)
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

static size_t first_stint_after(const struct thread_stint *stints, size_t count, int64_t time_ns)
{
    return array_bound(0, count, at, stints[at].end_ns <= time_ns);
}

static int context_sums_add(struct context_sums *sums, uint64_t lifetime, int side)
{
    const struct lifetime *life = &sums->in->lifetimes[lifetime];
    int64_t at = life->stamp_ns[STAMP_HANDOFF];
    int64_t end = lifetime_has(life, STAMP_SERVER_TX) ? life->stamp_ns[STAMP_SERVER_TX]
                                                      : life->stamp_ns[STAMP_REPLY];
    add_core(sums, side, ROLE_R, life->stamp_core[STAMP_HANDOFF], life->stamp_ns[STAMP_NIC], at);
    size_t count;
    const struct thread_stint *stints =
        host_timeline_stints(sums->in->server, life->thread, &count);
    size_t i = first_stint_after(stints, count, at);
    for (; at < end; i++) {
        bool known = i < count;
        int64_t until = known && stints[i].end_ns < end ? stints[i].end_ns : end;
        add_core(sums, side, ROLE_A, known ? stints[i].core : life->stamp_core[STAMP_APPLICATION],
                 at, until);
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

static int context_sums_take(const struct context_sums *sums, struct diagnosis_views *out)
{
    for (size_t row = 0; row < sums->rows; row++)
        if (take_row(sums, row, out) < 0)
            return -1;
    views_share_contexts(out);
    array_sort(&out->contexts, compare_contexts);
    return 0;
}

// --- the views -----------------------------------------------------------------------------------

// The reference is the one of the causes (reference.h), over all operations. If it has more
// messages than this, an evenly spaced selection of them is used.
enum { MAX_REFERENCES = 5000 };
#define BAND_LOW  0.4
#define BAND_HIGH 0.6

struct ranked {
    double latency_ns;
    uint64_t lifetime;
};

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    return order_of(a->latency_ns, b->latency_ns) ?: order_of(a->lifetime, b->lifetime);
}

// The lifetimes of the reference, moved to the front of *ranked; returns how many.
static size_t pick_references(const struct diagnosis_input *in, const uint64_t *candidates,
                              size_t count, struct ranked *ranked)
{
    for (size_t i = 0; i < count; i++)
        ranked[i] = (struct ranked){in->lifetimes[candidates[i]].latency_ns, candidates[i]};
    qsort(ranked, count, sizeof *ranked, compare_ranked);
    size_t low = (size_t)floor(BAND_LOW * (double)count);
    size_t band = (size_t)ceil(BAND_HIGH * (double)count) - low;
    size_t taken = band < MAX_REFERENCES ? band : MAX_REFERENCES;
    for (size_t i = 0; i < taken; i++)
        ranked[i] = ranked[low + i * band / taken];
    return taken;
}

// The messages of the two sides.
struct builder {
    const struct diagnosis_input *in;
    struct diagnosis *diagnosis;
    struct message_view_array references;
    struct context_sums *contexts;
    struct queue_sums sums;
    struct culprits culprits;
    struct service_times times;
    double *scratch;
};

// Whether a message is slow by itself or because of what was ahead of it.
static void note_slowness(struct builder *builder, const struct diagnosed_message *message,
                          const struct message_view *view)
{
    const struct service_order *order = builder->in->order;
    struct diagnosis_views *views = &builder->diagnosis->views;
    uint32_t own = order->service_of[message->lifetime];
    double blocked = 0, half = message->deviation_ns / 2, itself = 0;
    for (int scope = 0; scope <= BLOCKED_BY_CORE_A; scope++)
        blocked += view->blocked_ns[scope];
    views->blocked_ns += blocked;
    if (own != NOT_SERVED)
        itself = order->services.items[own].running_ns / order->services.items[own].count -
                 builder->culprits.usual_ns;
    views->slow_themselves += half > 0 && itself >= half;
    views->slow_behind += half > 0 && itself < half && blocked >= half;
}

static int read_slice(struct builder *builder)
{
    struct diagnosis *diagnosis = builder->diagnosis;
    struct diagnosis_views *views = &diagnosis->views;
    for (size_t i = 0; i < diagnosis->messages.count; i++) {
        uint64_t lifetime = diagnosis->messages.items[i].lifetime;
        struct message_view view;
        if (view_queue(builder->in, lifetime, &view, &views->blockers, &builder->times,
                       &builder->sums) < 0 ||
            array_push(&views->messages, view) < 0 ||
            context_sums_add(builder->contexts, lifetime, VIEW_SLICE) < 0)
            return -1;
        note_slowness(builder, &diagnosis->messages.items[i], &view);
    }
    return 0;
}

static int read_references(struct builder *builder, const struct ranked *references, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct message_view view;
        if (view_queue(builder->in, references[i].lifetime, &view, NULL, &builder->times, NULL) <
                0 ||
            array_push(&builder->references, view) < 0 ||
            context_sums_add(builder->contexts, references[i].lifetime, VIEW_REFERENCE) < 0)
            return -1;
    }
    builder->diagnosis->views.reference_messages = count;
    return 0;
}

static void summarise_queue(struct builder *builder, enum queue_kind kind)
{
    struct diagnosis_views *views = &builder->diagnosis->views;
    struct queue_summary *summary = &views->queue[kind];
    const struct message_view_array *const sides[VIEW_SIDES] = {&views->messages,
                                                                &builder->references};
    summary->kind = kind;
    for (int side = 0; side < VIEW_SIDES; side++) {
        size_t count = sides[side]->count;
        for (size_t i = 0; i < count; i++)
            builder->scratch[i] = sides[side]->items[i].ahead[kind];
        summary->sides[side].ahead = views_spread(builder->scratch, count);
        for (size_t i = 0; i < count; i++)
            builder->scratch[i] = sides[side]->items[i].ahead_ns[kind];
        summary->sides[side].ns = views_spread(builder->scratch, count);
    }
    for (size_t i = 0; i < views->messages.count; i++)
        summary->more +=
            views->messages.items[i].ahead[kind] > summary->sides[VIEW_REFERENCE].ahead.median;
}

static double mean_blocked(const struct message_view_array *messages, enum blocking_scope scope)
{
    double sum = 0;
    for (size_t i = 0; i < messages->count; i++)
        sum += messages->items[i].blocked_ns[scope];
    return messages->count ? sum / (double)messages->count : (double)NAN;
}

static void summarise_blocking(struct builder *builder, enum blocking_scope scope)
{
    struct diagnosis_views *views = &builder->diagnosis->views;
    struct blocking_summary *summary = &views->blocking[scope];
    summary->scope = scope;
    summary->role = blocking_scope_role(scope);
    for (size_t i = 0; i < views->messages.count; i++) {
        const struct message_view *view = &views->messages.items[i];
        if (view->blocked_by[scope] == 0)
            continue;
        builder->scratch[summary->messages++] = view->blocked_ns[scope];
        summary->total_ns += view->blocked_ns[scope];
    }
    summary->median_ns = views_spread(builder->scratch, summary->messages).median;
    summary->mean_ns[VIEW_SLICE] = mean_blocked(&views->messages, scope);
    summary->mean_ns[VIEW_REFERENCE] = mean_blocked(&builder->references, scope);
}

static int longest_first(const void *left, const void *right)
{
    const struct named_blocker *a = left, *b = right;
    return order_of(b->total_ns, a->total_ns) ?:
           order_of(a->lifetime, b->lifetime) ?:
           order_of(a->service, b->service);
}

static int pick_worst(struct builder *builder)
{
    struct diagnosis_views *views = &builder->diagnosis->views;
    struct named_blocker *named = builder->sums.named;
    size_t count = 0, all = builder->in->lifetime_count + builder->in->order->services.count;
    for (size_t i = 0; i < all; i++)
        if (named[i].messages && named[i].total_ns > 0)
            named[count++] = named[i];
    qsort(named, count, sizeof *named, longest_first);
    for (size_t i = 0; i < count && i < WORST_BLOCKERS; i++)
        if (array_push(&views->worst, named[i]) < 0)
            return -1;
    culprits_finish(&builder->culprits);
    views->culprits = builder->culprits.items;
    builder->culprits.items = (struct culprit_array){0};
    return 0;
}

static int build_views(struct builder *builder, const uint64_t *candidates, size_t count,
                       struct ranked *ranked)
{
    size_t references = pick_references(builder->in, candidates, count, ranked);
    if (read_slice(builder) < 0 || read_references(builder, ranked, references) < 0)
        return -1;
    for (int kind = 0; kind < QUEUE_KINDS; kind++)
        summarise_queue(builder, (enum queue_kind)kind);
    for (int scope = 0; scope < BLOCKING_SCOPES; scope++)
        summarise_blocking(builder, (enum blocking_scope)scope);
    if (context_sums_take(builder->contexts, &builder->diagnosis->views) < 0)
        return -1;
    return pick_worst(builder);
}

int views_build(const struct diagnosis_input *in, const uint64_t *candidates, size_t count,
                struct diagnosis *diagnosis)
{
    if (!in->order || !in->calls || !in->server || count == 0)
        return 0;
    size_t services = in->order->services.count;
    struct builder builder = {.in = in,
                              .diagnosis = diagnosis,
                              .contexts = context_sums_new(in),
                              .times.ns = calloc(services + 1, sizeof(double)),
                              .scratch = malloc((count + 1) * sizeof *builder.scratch)};
    builder.sums = (struct queue_sums){
        .named = calloc(in->lifetime_count + services + 1, sizeof *builder.sums.named),
        .culprits = &builder.culprits};
    struct ranked *ranked = malloc(count * sizeof *ranked);
    int result = culprits_init(&builder.culprits, in->order, in->lifetimes);
    if (!builder.contexts || !builder.times.ns || !builder.sums.named || !builder.scratch ||
        !ranked)
        result = -1;
    if (result == 0)
        result = build_views(&builder, candidates, count, ranked);
    diagnosis->views.available = result == 0;
    context_sums_free(builder.contexts);
    culprits_free(&builder.culprits);
    array_free(&builder.references);
    array_free(&builder.times.touched);
    free(builder.times.ns);
    free(builder.sums.named);
    free(builder.scratch);
    free(ranked);
    return result;
}

void views_free(struct diagnosis_views *views)
{
    array_free(&views->messages);
    array_free(&views->blockers);
    array_free(&views->worst);
    array_free(&views->culprits);
    array_free(&views->contexts);
}
