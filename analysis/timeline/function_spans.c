// SPDX-License-Identifier: MIT
#include "analysis/timeline/function_spans.h"

struct merging {
    const struct span *contexts, *functions;
    size_t context_count, function_count;
    struct span_array pending; // the other halves of functions that were cut, by begin
    size_t first_pending;
    struct span_array out;
    struct index_array open; // of out: the spans that are open, outermost first
    bool failed;
};

static bool is_function(const struct span *span)
{
    return span->kind == SPAN_FUNCTION;
}

static struct span *innermost(struct merging *merging)
{
    if (merging->open.count == 0)
        return NULL;
    return &merging->out.items[merging->open.items[merging->open.count - 1]];
}

// Brings back the second halves whose time has come; of those cut at the same place the outer ones
// first.
static void postpone(struct merging *merging, struct span half, int64_t cut_ns)
{
    half.begin_ns = cut_ns;
    half.id |= SPAN_ID_CUT;
    if (half.end_ns <= cut_ns)
        return;
    if (array_push(&merging->pending, half) < 0) {
        merging->failed = true;
        return;
    }
    size_t at = merging->pending.count - 1;
    for (; at > merging->first_pending && merging->pending.items[at - 1].begin_ns > cut_ns; at--)
        merging->pending.items[at] = merging->pending.items[at - 1];
    merging->pending.items[at] = half;
}

static void close_ended(struct merging *merging, int64_t time_ns)
{
    while (merging->open.count && innermost(merging)->end_ns <= time_ns)
        merging->open.count--;
}

// A context begins inside functions that end before it does: they are cut where it begins.
static void cut_open_functions(struct merging *merging, const struct span *context)
{
    size_t keep = merging->open.count;
    while (keep > 0) {
        const struct span *open = &merging->out.items[merging->open.items[keep - 1]];
        if (!is_function(open) || open->end_ns >= context->end_ns)
            break;
        keep--;
    }
    for (size_t i = keep; i < merging->open.count; i++) {
        struct span *open = &merging->out.items[merging->open.items[i]];
        postpone(merging, *open, context->begin_ns);
        open->end_ns = context->begin_ns;
        open->id |= SPAN_ID_CUT;
    }
    merging->open.count = keep;
}

static void take(struct merging *merging, struct span span)
{
    close_ended(merging, span.begin_ns);
    if (!is_function(&span))
        cut_open_functions(merging, &span);
    const struct span *outer = innermost(merging);
    if (outer && span.end_ns > outer->end_ns) {
        if (is_function(&span)) {
            postpone(merging, span, outer->end_ns);
            span.id |= SPAN_ID_CUT;
        }
        span.end_ns = outer->end_ns;
    }
    if (is_function(&span) && (span.end_ns <= span.begin_ns || merging->open.count >= UINT8_MAX))
        return;
    span.depth = (uint8_t)merging->open.count;
    if (merging->out.count >= NO_SPAN || array_push(&merging->out, span) < 0 ||
        array_push(&merging->open, (uint32_t)merging->out.count - 1) < 0)
        merging->failed = true;
}

// Of two that begin together the longer one comes first; of equals, the context.
static bool comes_first(const struct span *span, const struct span *other)
{
    if (!other || !span)
        return span != NULL;
    if (span->begin_ns != other->begin_ns)
        return span->begin_ns < other->begin_ns;
    return span->end_ns >= other->end_ns;
}

static bool take_next(struct merging *merging)
{
    const struct span *context = merging->context_count ? merging->contexts : NULL;
    const struct span *function = merging->function_count ? merging->functions : NULL;
    const struct span *half = merging->first_pending < merging->pending.count
                                  ? &merging->pending.items[merging->first_pending]
                                  : NULL;
    bool resumes = half && (!function || half->begin_ns <= function->begin_ns);
    if (comes_first(context, resumes ? half : function)) {
        merging->contexts++;
        merging->context_count--;
        take(merging, *context);
    } else if (resumes) {
        merging->first_pending++;
        take(merging, *half);
    } else if (function) {
        merging->functions++;
        merging->function_count--;
        take(merging, *function);
    } else {
        return false;
    }
    if (merging->first_pending == merging->pending.count)
        merging->first_pending = merging->pending.count = 0;
    return !merging->failed;
}

int core_timeline_add_functions(struct core_timeline *core, const struct span_array *functions,
                                struct error *err)
{
    struct merging merging = {.contexts = core->spans.items,
                              .context_count = core->spans.count,
                              .functions = functions->items,
                              .function_count = functions->count};
    while (take_next(&merging))
        ;
    array_free(&merging.pending);
    array_free(&merging.open);
    if (!merging.failed) {
        array_free(&core->spans);
        core->spans = merging.out;
        merging.failed = core_timeline_link(core) < 0;
    } else {
        array_free(&merging.out);
    }
    return merging.failed
               ? error_set(err, ERROR_FAILED, "no memory for %zu function calls", functions->count)
               : 0;
}
