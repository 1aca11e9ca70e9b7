// SPDX-License-Identifier: MIT
#include "analysis/pt/calls/pt_calls.h"

#include <stdlib.h>

#include "analysis/pt/calls/pt_stack.h"

enum {
    TASK_LEVEL = INT32_MIN,
    LOST_LEVEL = INT32_MIN + 1,
};

struct stacks ARRAY_OF(struct pt_stack);

struct pt_calls {
    const struct pt_switches *switches;
    size_t next_switch;
    struct pt_span_writer writer;
    struct stacks stacks; // one for each task seen
    size_t current;       // index into stacks
    uint64_t task_since;
    uint64_t lost_since;    // begin of the gap while `lost`
    uint64_t covered_since; // while `covering`
    bool lost, covering, began;
};

struct pt_calls *pt_calls_alloc(const struct pt_switches *switches, bool timed, pt_span_sink *sink,
                                void *context, struct error *err)
{
    struct pt_calls *calls = calloc(1, sizeof *calls);
    struct pt_stack first = {.task = PT_NO_TASK};
    if (!calls || array_push(&calls->stacks, first) < 0) {
        free(calls);
        error_set(err, ERROR_FAILED, "out of memory for call stacks");
        return NULL;
    }
    calls->switches = switches;
    calls->writer = (struct pt_span_writer){.sink = sink, .context = context, .timed = timed};
    return calls;
}

void pt_calls_free(struct pt_calls *calls)
{
    if (!calls)
        return;
    for (size_t i = 0; i < calls->stacks.count; i++)
        array_free(&calls->stacks.items[i].frames);
    array_free(&calls->stacks);
    free(calls);
}

const struct pt_call_counts *pt_calls_counts(const struct pt_calls *calls)
{
    return &calls->writer.counts;
}

uint64_t pt_calls_granularity(const struct pt_call_counts *counts)
{
    uint64_t all = 0, below = 0;
    for (int i = 0; i < 33; i++)
        all += counts->errors[i];
    if (all == 0)
        return 0;
    for (int i = 0; i < 33; i++) {
        below += counts->errors[i];
        if (below * 10 >= all * 9)
            return (uint64_t)1 << i;
    }
    return UINT64_MAX;
}

static struct pt_stack *current_stack(struct pt_calls *calls)
{
    return &calls->stacks.items[calls->current];
}

// --- what is decoded and what is lost ----------------------------------------------------------

static void stop_covering(struct pt_calls *calls)
{
    if (calls->covering)
        calls->writer.counts.covered_time += calls->writer.now - calls->covered_since;
    calls->covering = false;
}

static int on_loss(struct pt_calls *calls, struct error *err)
{
    int result = pt_stack_cut(&calls->writer, current_stack(calls), err);
    stop_covering(calls);
    if (!calls->lost) {
        calls->lost = true;
        calls->lost_since = calls->writer.now;
        calls->writer.counts.gaps++;
    }
    return result;
}

// The processor reports lost packets only when it continues: they were lost at some time between
// the previous flow and that report.
static int on_overflow(struct pt_calls *calls, const struct pt_flow *flow, struct error *err)
{
    uint64_t gap =
        flow->tsc > calls->writer.now ? flow->tsc - calls->writer.now + flow->error_tsc : 0;
    if (calls->writer.timed && gap > calls->writer.now_error)
        calls->writer.now_error = gap < UINT32_MAX ? (uint32_t)gap : UINT32_MAX;
    return on_loss(calls, err);
}

// Adds a loss to the current task.
static int loss_report(struct pt_calls *calls, struct error *err)
{
    struct pt_span span = {.begin = calls->lost_since,
                           .end = calls->writer.now,
                           .task = current_stack(calls)->task,
                           .level = LOST_LEVEL,
                           .kind = PT_SPAN_LOST};
    calls->writer.counts.gap_time += calls->writer.now - calls->lost_since;
    calls->lost_since = calls->writer.now;
    return pt_span_write(&calls->writer, &span, err);
}

static int end_of_loss(struct pt_calls *calls, struct error *err)
{
    if (!calls->lost)
        return 0;
    calls->lost = false;
    return loss_report(calls, err);
}

// --- tasks -------------------------------------------------------------------------------------

static int task_report(struct pt_calls *calls, struct error *err)
{
    struct pt_span span = {.begin = calls->task_since,
                           .end = calls->writer.now,
                           .error = calls->writer.now_error,
                           .task = current_stack(calls)->task,
                           .level = TASK_LEVEL,
                           .kind = PT_SPAN_TASK};
    if (span.task == PT_NO_TASK || span.end <= span.begin)
        return 0;
    return pt_span_write(&calls->writer, &span, err);
}

static int stack_of(struct pt_calls *calls, uint32_t task, size_t *out, struct error *err)
{
    for (size_t i = 0; i < calls->stacks.count; i++)
        if (calls->stacks.items[i].task == task) {
            *out = i;
            return 0;
        }
    struct pt_stack added = {
        .task = task, .since = calls->writer.now, .since_error = calls->writer.now_error};
    *out = calls->stacks.count;
    if (array_push(&calls->stacks, added) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for call stacks");
    return 0;
}

// Another task runs now. The previous task's open spans are cut here and continue when it comes
// back.
static int switch_task(struct pt_calls *calls, uint32_t task, struct error *err)
{
    struct pt_stack *stack = current_stack(calls);
    if (stack->task == task)
        return 0;
    bool first = stack->task == PT_NO_TASK && calls->stacks.count == 1;
    if (first && stack->frames.count == 0) {
        int reported = calls->lost ? loss_report(calls, err) : 0;
        stack->task = task; // nothing happened before the first switch
        calls->task_since = calls->writer.now;
        return reported;
    }
    int result = pt_stack_suspend(&calls->writer, stack, err);
    if (result == 0 && calls->lost)
        result = loss_report(calls, err);
    if (result == 0)
        result = task_report(calls, err);
    if (result == 0)
        result = stack_of(calls, task, &calls->current, err);
    if (result < 0)
        return result;
    if (calls->lost) // what it does meanwhile is not traced
        current_stack(calls)->frames.count = 0;
    pt_stack_resume(&calls->writer, current_stack(calls));
    calls->task_since = calls->writer.now;
    return 0;
}

static int follow_switches(struct pt_calls *calls, uint64_t until, struct error *err)
{
    int result = 0;
    while (result == 0 && calls->switches && calls->next_switch < calls->switches->count &&
           calls->switches->items[calls->next_switch].tsc <= until) {
        const struct pt_switch *next = &calls->switches->items[calls->next_switch++];
        if (next->tsc > calls->writer.now)
            calls->writer.now = next->tsc;
        calls->writer.now_error = 0; // the kernel took this time itself
        result = switch_task(calls, next->task, err);
    }
    return result;
}

// When one is due.
static uint64_t next_switch(const struct pt_calls *calls)
{
    const struct pt_switches *switches = calls->writer.timed ? calls->switches : NULL;
    return switches && calls->next_switch < switches->count
               ? switches->items[calls->next_switch].tsc
               : UINT64_MAX;
}

// --- the stream --------------------------------------------------------------------------------

static int set_now(struct pt_calls *calls, const struct pt_flow *flow, struct error *err)
{
    uint64_t time = pt_span_time(&calls->writer, flow);
    if (!calls->began) {
        calls->began = true;
        calls->writer.now = calls->task_since = current_stack(calls)->since = time;
    }
    int result = calls->writer.timed ? follow_switches(calls, time, err) : 0;
    calls->writer.now_error = calls->writer.timed ? flow->error_tsc : 0;
    if (time >= calls->writer.now) {
        calls->writer.now = time;
    } else { // the times of pieces and switches may disagree by the error of the trace
        uint64_t behind = calls->writer.now - time;
        if (behind > calls->writer.now_error)
            calls->writer.now_error = behind < UINT32_MAX ? (uint32_t)behind : UINT32_MAX;
    }
    return result;
}

static int take_flow(struct pt_calls *calls, const struct pt_flow *flow, bool contiguous,
                     struct error *err)
{
    int result = 0;
    if (flow->kind == PT_FLOW_OVERFLOW && calls->began)
        result = on_overflow(calls, flow, err);
    if (result == 0)
        result = set_now(calls, flow, err);
    if (result == 0 && flow->kind == PT_FLOW_LOST)
        return on_loss(calls, err);
    if (result < 0 || (flow->kind == PT_FLOW_OVERFLOW && !flow->to))
        return result;
    if (flow->kind == PT_FLOW_PAGING)
        return 0;
    result = end_of_loss(calls, err);
    if (result < 0)
        return result;
    if (flow->kind != PT_FLOW_DISABLE && !calls->covering) {
        calls->covering = true;
        calls->covered_since = calls->writer.now;
    }
    if (current_stack(calls)->frames.count == 0 && flow->kind != PT_FLOW_BEGIN &&
        flow->kind != PT_FLOW_ENABLE &&
        flow->kind != PT_FLOW_OVERFLOW) { // the stack of the task that comes back was lost
        result = pt_stack_begin_unknown(&calls->writer, current_stack(calls), err);
        if (result < 0)
            return result;
    }
    result = pt_stack_apply(&calls->writer, current_stack(calls), flow, contiguous, err);
    if (flow->kind == PT_FLOW_DISABLE)
        stop_covering(calls);
    calls->writer.after_syscall = flow->kind == PT_FLOW_FAR_CALL;
    return result;
}

int pt_calls_take(struct pt_calls *calls, const struct pt_piece *piece, bool contiguous,
                  struct error *err)
{
    int result = 0;
    if (!contiguous && calls->began)
        result = on_loss(calls, err);
    const struct pt_flow *first = piece->flows.items, *flow = first;
    const struct pt_flow *end = first ? first + piece->flows.count : NULL;
    while (result == 0 && flow < end) {
        if (calls->covering && (flow->kind == PT_FLOW_CALL || flow->kind == PT_FLOW_RETURN))
            result = pt_stack_apply_usual(&calls->writer, current_stack(calls), &flow, end,
                                          next_switch(calls), err);
        if (result == 0 && flow < end) {
            result = take_flow(calls, flow, contiguous && flow == first, err);
            flow++;
        }
    }
    calls->writer.instructions += piece->counts.instructions;
    return result;
}

int pt_calls_finish(struct pt_calls *calls, struct error *err)
{
    if (!calls->writer.timed && calls->writer.instructions > calls->writer.now)
        calls->writer.now = calls->writer.instructions;
    stop_covering(calls);
    int result = pt_stack_cut(&calls->writer, current_stack(calls), err);
    if (result == 0)
        result = task_report(calls, err);
    return result;
}
