// SPDX-License-Identifier: MIT
#include "analysis/timeline/function_log_spans.h"
#include "base/array.h"

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

static int take(struct builder *builder, const struct function_event *event)
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
            result = take(&builder, &events[i]);
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
