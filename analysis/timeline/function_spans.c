// SPDX-License-Identifier: MIT
#include "analysis/timeline/function_spans.h"

#include "base/array.h"
#include "base/text.h"

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
    return merging.failed ? error_set(err, ERROR_FAILED, "no memory for %s function calls",
                                      TEXT_COUNT(functions->count))
                          : 0;
}

// --- from the shim's function log ----------------------------------------------------------------

// A call that is open.
struct open_call {
    uint64_t address;
    int64_t begin_ns;
};

struct builder {
    struct function_log_spans *out;
    const struct time_source *clock;
    const struct function_names *names;
    uint32_t unnamed;
    struct open_calls ARRAY_OF(struct open_call) open; // of the thread that runs
    bool watched, running;
    uint32_t thread;
    int64_t watched_ns, stint_ns,
        last_ns; // of the log's known part; of the thread's time on the core; of the last record
};

static uint32_t name_of(const struct builder *builder, uint64_t address)
{
    const struct function_name *names = builder->names->items;
    size_t low = array_bound(0, builder->names->count, at, names[at].address < address);
    return low < builder->names->count && names[low].address == address ? names[low].name
                                                                        : builder->unnamed;
}

static int emit(struct builder *builder, uint64_t address, int64_t begin_ns, int64_t end_ns,
                bool cut)
{
    return array_push(&builder->out->functions,
                      (struct span){.begin_ns = begin_ns,
                                    .end_ns = end_ns,
                                    .id = (uint32_t)SPAN_ID_KERNEL | (cut ? SPAN_ID_CUT : 0u),
                                    .name = name_of(builder, address) & SPAN_NAMES,
                                    .kind = SPAN_FUNCTION});
}

// The thread left the core, as far as is known: its open calls are cut there.
static int end_stint(struct builder *builder, int64_t at_ns)
{
    while (builder->open.count) {
        const struct open_call *call = &builder->open.items[--builder->open.count];
        if (emit(builder, call->address, call->begin_ns, at_ns, true) < 0)
            return -1;
    }
    builder->running = false;
    return 0;
}

static int end_watch(struct builder *builder, int64_t at_ns)
{
    if (end_stint(builder, at_ns) < 0)
        return -1;
    if (!builder->watched || at_ns <= builder->watched_ns)
        return 0;
    return array_push(&builder->out->traced, (struct time_range){builder->watched_ns, at_ns});
}

static void begin_watch(struct builder *builder, int64_t at_ns)
{
    builder->watched = true;
    builder->watched_ns = builder->stint_ns = builder->last_ns = at_ns;
}

// Ends the open call of this address, and the calls inside it whose ends are missing. If no such
// call is open, it began before the thread came to this core.
static int take_exit(struct builder *builder, uint64_t address, int64_t at_ns)
{
    size_t depth = builder->open.count;
    while (depth > 0 && builder->open.items[depth - 1].address != address)
        depth--;
    if (depth == 0 && builder->open.count) {
        builder->out->unpaired++;
        return 0;
    }
    if (depth == 0)
        return emit(builder, address, builder->stint_ns, at_ns, true);
    while (builder->open.count >= depth) {
        bool inner = builder->open.count > depth;
        const struct open_call *call = &builder->open.items[--builder->open.count];
        builder->out->unpaired += inner;
        if (emit(builder, call->address, call->begin_ns, at_ns, inner) < 0)
            return -1;
    }
    return 0;
}

static int take_call(struct builder *builder, const struct function_event *event, int64_t at_ns)
{
    if (builder->running && event->thread != builder->thread) {
        if (end_stint(builder, at_ns) < 0)
            return -1;
        builder->stint_ns = at_ns;
    }
    builder->running = true;
    builder->thread = event->thread;
    if (event->kind == FUNCTION_EXIT)
        return take_exit(builder, event->address, at_ns);
    return array_push(&builder->open, (struct open_call){event->address, at_ns});
}

static int take_record(struct builder *builder, const struct function_event *event)
{
    int64_t at_ns = time_source_to_host(builder->clock, HOST_CLOCK_RAW, event->time);
    int result = 0;
    if (event->kind == FUNCTION_WATCHED) {
        if (!builder->watched)
            begin_watch(builder, at_ns > builder->last_ns ? at_ns : builder->last_ns);
        return 0;
    }
    // Marks are made a little after or before the tracer is switched.
    if (at_ns < builder->last_ns) {
        builder->out->damaged += event->kind <= FUNCTION_EXIT && at_ns >= builder->watched_ns;
        at_ns = builder->last_ns;
    }
    switch (event->kind) {
    case FUNCTION_ENTER:
    case FUNCTION_EXIT:
        if (!builder->watched)
            begin_watch(builder, at_ns);
        result = take_call(builder, event, at_ns);
        break;
    case FUNCTION_UNWATCHED:
        result = end_watch(builder, at_ns);
        builder->watched = false;
        break;
    case FUNCTION_LOST:
        builder->out->lost++;
        result = end_watch(builder, builder->last_ns);
        begin_watch(builder, at_ns);
        break;
    default:
        builder->out->damaged++;
        return 0;
    }
    builder->last_ns = at_ns;
    return result;
}

static int compare_spans(const void *left, const void *right)
{
    const struct span *a = left, *b = right;
    return order_of(a->begin_ns, b->begin_ns) ?: order_of(b->end_ns, a->end_ns);
}

int function_log_spans_build(const struct function_event *events, size_t count, uint16_t core,
                             const struct time_source *clock, const struct function_names *names,
                             uint32_t unnamed, struct function_log_spans *out)
{
    struct builder builder = {
        .out = out, .clock = clock, .names = names, .unnamed = unnamed, .last_ns = INT64_MIN};
    int result = 0;
    *out = (struct function_log_spans){0};
    for (size_t i = 0; i < count && result == 0; i++)
        if (events[i].core == core)
            result = take_record(&builder, &events[i]);
    if (result == 0)
        result = end_watch(&builder, builder.last_ns);
    array_free(&builder.open);
    array_sort(&out->functions, compare_spans);
    return result;
}

void function_log_spans_free(struct function_log_spans *spans)
{
    array_free(&spans->functions);
    array_free(&spans->traced);
}
