// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/views_build.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/diagnosis/diagnosis.h"
#include "analysis/diagnosis/views_contexts.h"
#include "analysis/diagnosis/views_queue.h"
#include "analysis/diagnosis/walk_budget.h"
#include "analysis/lifetime/service_order.h"
#include "base/array.h"
#include "base/quantile.h"

// The reference is the one of the causes (reference.h), over all operations. If it has more
// messages than this, or than can be walked along (walk_budget.h), an evenly spaced selection of
// them is used.
#define MOST_PIECES 1e7
enum { MAX_REFERENCES = 5000, LEAST_WALKED = 100 };
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
    double ns = 0;
    for (size_t i = 0; i < taken; i++)
        ns += ranked[low + i * band / taken].latency_ns;
    taken = walk_budget(in, MOST_PIECES, ns, taken, LEAST_WALKED);
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
    if (culprits_finish(&builder->culprits) < 0)
        return -1;
    for (size_t i = 0; i < views->blockers.count; i++) {
        struct blocker *one = &views->blockers.items[i];
        one->culprit =
            one->service == NOT_SERVED ? NOT_SERVED : builder->culprits.of_service[one->service];
    }
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
                              .times.of = calloc(services + 1, sizeof(struct service_time)),
                              .scratch = malloc((count + 1) * sizeof *builder.scratch)};
    builder.sums = (struct queue_sums){
        .named = calloc(in->lifetime_count + services + 1, sizeof *builder.sums.named),
        .culprits = &builder.culprits};
    struct ranked *ranked = malloc(count * sizeof *ranked);
    int result = culprits_init(&builder.culprits, in->order, in->lifetimes, in->without_client);
    if (!builder.contexts || !builder.times.of || !builder.sums.named || !builder.scratch ||
        !ranked)
        result = -1;
    if (result == 0)
        result = build_views(&builder, candidates, count, ranked);
    diagnosis->views.available = result == 0;
    context_sums_free(builder.contexts);
    culprits_free(&builder.culprits);
    array_free(&builder.references);
    array_free(&builder.times.touched);
    free(builder.times.of);
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
    array_free(&views->context_times);
    array_free(&views->calls);
}
