// SPDX-License-Identifier: MIT
#include "analysis/pt/pt_calls.h"

#include <stdlib.h>

enum {
    LONGEST_INSTRUCTION = 15,
    PATIENCE = 16, // returns into the unknown before a stack is given up
    TASK_LEVEL = INT32_MIN,
    LOST_LEVEL = INT32_MIN + 1,
};

enum frame_kind {
    FRAME_CALL,
    FRAME_SYSCALL,
    FRAME_INTERRUPT,
    FRAME_UNTRACED,
    FRAME_ROOT,     // at the bottom: what was running when the trace began
    FRAME_FLOATING, // a return came here from a call that is not on the stack
};

struct frame {
    uint64_t function;
    uint64_t begin;
    uint64_t inner; // time in frames above it that ended since
    uint64_t from;  // the call, or the instruction that was interrupted; 0 unknown
    uint32_t error; // of begin
    int32_t level;
    uint8_t kind;  // enum frame_kind
    bool known;    // function is a key
    bool cut;      // it began before `begin`
    bool exact;    // control comes back to `from` itself, not behind it
    bool off_call; // UNTRACED: by a syscall
};
struct frames ARRAY_OF(struct frame);

struct stack {
    uint32_t task;
    uint32_t impatience; // returns into the unknown in a row
    uint64_t since;      // it is known since then
    uint32_t since_error;
    int32_t outermost; // level of the bottom frame
    struct frames frames;
};
struct stacks ARRAY_OF(struct stack);

struct pt_calls {
    const struct pt_switches *switches;
    size_t next_switch;
    bool timed;
    pt_span_sink *sink;
    void *context;
    struct stacks stacks; // one for each task seen
    size_t current;       // index into stacks
    uint64_t now;
    uint32_t now_error;
    uint64_t task_since;
    uint64_t lost_since;    // begin of a gap, while `lost`
    uint64_t instructions;  // of the pieces before
    uint64_t covered_since; // while `covering`
    bool lost, covering, finished, began;
    bool far_call; // the flow before was a syscall
    struct pt_call_counts counts;
};

struct pt_calls *pt_calls_alloc(const struct pt_switches *switches, bool timed, pt_span_sink *sink,
                                void *context, struct error *err)
{
    struct pt_calls *calls = calloc(1, sizeof *calls);
    struct stack first = {.task = PT_NO_TASK};
    if (!calls || array_push(&calls->stacks, first) < 0) {
        free(calls);
        error_set(err, ERROR_FAILED, "out of memory for call stacks");
        return NULL;
    }
    calls->switches = switches;
    calls->timed = timed;
    calls->sink = sink;
    calls->context = context;
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
    return &calls->counts;
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

// --- spans -----------------------------------------------------------------------------------

static struct stack *current(struct pt_calls *calls)
{
    return &calls->stacks.items[calls->current];
}

static void count_error(struct pt_calls *calls, uint32_t error)
{
    calls->counts.errors[error ? 32 - __builtin_clz(error) : 0]++;
}

static uint8_t span_kind(const struct frame *frame)
{
    switch (frame->kind) {
    case FRAME_SYSCALL:
        return PT_SPAN_SYSCALL;
    case FRAME_INTERRUPT:
        return PT_SPAN_INTERRUPT;
    case FRAME_UNTRACED:
        return PT_SPAN_UNTRACED;
    default:
        return PT_SPAN_FUNCTION;
    }
}

static int report(struct pt_calls *calls, const struct pt_span *span, struct error *err)
{
    calls->counts.spans++;
    return calls->sink ? calls->sink(calls->context, span, err) : 0;
}

// The frame's span ends now; the frame itself stays.
static int frame_report(struct pt_calls *calls, size_t index, bool cut_end, struct error *err)
{
    struct frames *frames = &current(calls)->frames;
    struct frame *frame = &frames->items[index];
    struct pt_span span = {
        .function = frame->function,
        .begin = frame->begin,
        .end = calls->now > frame->begin ? calls->now : frame->begin,
        .inner = frame->inner,
        .error = frame->error > calls->now_error ? frame->error : calls->now_error,
        .task = current(calls)->task,
        .level = frame->level,
        .kind = span_kind(frame),
        .cut_begin = frame->cut,
        .cut_end = cut_end,
        .function_known = frame->known,
    };
    frame->inner = 0;
    if (index > 0)
        frames->items[index - 1].inner += span.end - span.begin;
    if (calls->timed && !frame->cut)
        count_error(calls, frame->error);
    if (calls->timed && !cut_end)
        count_error(calls, calls->now_error);
    return report(calls, &span, err);
}

static int frame_push(struct pt_calls *calls, enum frame_kind kind, const struct pt_flow *flow,
                      struct error *err)
{
    struct stack *stack = current(calls);
    struct frame frame = {.function = flow->function ? flow->function : flow->to,
                          .known = flow->function != 0,
                          .begin = calls->now,
                          .error = calls->now_error,
                          .from = flow->from,
                          .kind = (uint8_t)kind,
                          .exact = kind == FRAME_INTERRUPT};
    if (kind == FRAME_ROOT || kind == FRAME_FLOATING) {
        frame.cut = true;
        frame.from = 0;
        if (!frame.known)
            frame.function = 0; // an address inside it does not name a function
    }
    frame.level = stack->frames.count ? stack->frames.items[stack->frames.count - 1].level + 1
                                      : stack->outermost;
    if (array_push(&stack->frames, frame) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for a stack of %zu calls",
                         stack->frames.count);
    return 0;
}

// Ends frames until `count` are left.
static int frames_end(struct pt_calls *calls, size_t count, bool cut, struct error *err)
{
    struct frames *frames = &current(calls)->frames;
    int result = 0;
    while (result == 0 && frames->count > count) {
        result = frame_report(calls, frames->count - 1, cut, err);
        frames->count--;
    }
    return result;
}

// --- finding the frame that control comes back from -------------------------------------------

static bool frame_returns_to(const struct frame *frame, uint64_t to)
{
    if (!frame->from)
        return false;
    if (frame->exact && frame->from == to)
        return true;
    return !frame->exact && to > frame->from && to - frame->from <= LONGEST_INSTRUCTION;
}

static bool kind_among(const struct frame *frame, unsigned kinds)
{
    return (kinds >> frame->kind & 1) != 0;
}

enum {
    NEAR = 1 << FRAME_CALL,
    FAR = 1 << FRAME_SYSCALL | 1 << FRAME_INTERRUPT | 1 << FRAME_UNTRACED,
    NOT_FOUND = -1,
};

// The innermost frame of these kinds that returns to `to`; none beyond a frame of `barrier` kinds.
static ptrdiff_t frames_find(const struct frames *frames, uint64_t to, unsigned kinds,
                             unsigned barrier)
{
    for (size_t i = frames->count; i-- > 0;) {
        const struct frame *frame = &frames->items[i];
        if (kind_among(frame, kinds) && frame_returns_to(frame, to))
            return (ptrdiff_t)i;
        if (kind_among(frame, barrier))
            break;
    }
    return NOT_FOUND;
}

static int frames_return(struct pt_calls *calls, size_t index, struct error *err)
{
    struct stack *stack = current(calls);
    calls->counts.unwound += stack->frames.count - 1 - index;
    stack->impatience = 0;
    return frames_end(calls, index, false, err);
}

// The bottom frame returned: its caller was there all along.
static int reveal_caller(struct pt_calls *calls, const struct pt_flow *flow, struct error *err)
{
    struct stack *stack = current(calls);
    uint64_t callee_begin = stack->frames.items[0].begin;
    int result = frames_end(calls, 0, false, err);
    stack->outermost--;
    if (result == 0)
        result = frame_push(calls, FRAME_ROOT, flow, err);
    if (result == 0) {
        stack->frames.items[0].begin = stack->since;
        stack->frames.items[0].inner = calls->now - callee_begin;
        stack->frames.items[0].error = stack->since_error;
    }
    return result;
}

static int reset(struct pt_calls *calls, const struct pt_flow *flow, struct error *err)
{
    struct stack *stack = current(calls);
    calls->counts.resets++;
    int result = frames_end(calls, 0, true, err);
    stack->since = calls->now;
    stack->since_error = calls->now_error;
    stack->impatience = 0;
    return result < 0 ? result : frame_push(calls, FRAME_ROOT, flow, err);
}

// --- what each flow does -----------------------------------------------------------------------

static int on_call(struct pt_calls *calls, const struct pt_flow *flow, struct error *err)
{
    // "call the next instruction" reads the instruction pointer; it never returns.
    if (flow->to > flow->from && flow->to - flow->from <= 7 && !flow->at_start)
        return 0;
    return frame_push(calls, FRAME_CALL, flow, err);
}

// A jump to the start of a function ends the one it leaves; the new one returns to its caller.
static int tail_call(struct pt_calls *calls, const struct pt_flow *flow, struct error *err)
{
    struct frames *frames = &current(calls)->frames;
    struct frame *top = &frames->items[frames->count - 1];
    if (top->known && top->function == flow->function)
        return 0;
    calls->counts.tail_calls++;
    int result = frame_report(calls, frames->count - 1, false, err);
    top->function = flow->function;
    top->known = true;
    top->begin = calls->now;
    top->error = calls->now_error;
    top->cut = false;
    return result;
}

static int on_return(struct pt_calls *calls, const struct pt_flow *flow, struct error *err)
{
    struct stack *stack = current(calls);
    struct frames *frames = &stack->frames;
    ptrdiff_t found = frames_find(frames, flow->to, NEAR, FAR);
    if (found != NOT_FOUND)
        return frames_return(calls, (size_t)found, err);
    struct frame *top = &frames->items[frames->count - 1];
    if (!flow->to) // packets were lost right behind it
        return top->kind == FRAME_CALL ? frames_end(calls, frames->count - 1, false, err) : 0;
    if (flow->at_start && top->kind == FRAME_CALL && frames->count > 1) {
        // A return that was given an address is a jump through a register (retpoline).
        int result = frames_end(calls, frames->count - 1, false, err);
        return result < 0 ? result : tail_call(calls, flow, err);
    }
    if (frames->count == 1 && top->kind == FRAME_ROOT)
        return reveal_caller(calls, flow, err);
    calls->counts.unmatched++;
    if (++stack->impatience > PATIENCE)
        return reset(calls, flow, err);
    bool replaces = top->kind == FRAME_CALL || top->kind == FRAME_FLOATING;
    int result = frames_end(calls, frames->count - replaces, false, err);
    return result < 0 ? result : frame_push(calls, FRAME_FLOATING, flow, err);
}

static int on_jump(struct pt_calls *calls, const struct pt_flow *flow, struct error *err)
{
    struct frames *frames = &current(calls)->frames;
    if (!flow->function)
        return 0;
    for (size_t i = frames->count; !flow->at_start && i-- > 0;)
        if (frames->items[i].known && frames->items[i].function == flow->function) {
            calls->counts.unwound += frames->count - 1 - i;
            return frames_end(calls, i + 1, false, err); // longjmp
        }
    return tail_call(calls, flow, err);
}

static int on_far_return(struct pt_calls *calls, const struct pt_flow *flow, struct error *err)
{
    struct frames *frames = &current(calls)->frames;
    ptrdiff_t found = frames_find(frames, flow->to, FAR, 0);
    if (found != NOT_FOUND)
        return frames_return(calls, (size_t)found, err);
    return frames->count == 1 ? reveal_caller(calls, flow, err) : reset(calls, flow, err);
}

static int on_disable(struct pt_calls *calls, const struct pt_flow *flow, struct error *err)
{
    struct stack *stack = current(calls);
    int result = frame_push(calls, FRAME_UNTRACED, flow, err);
    if (result < 0)
        return result;
    struct frame *top = &stack->frames.items[stack->frames.count - 1];
    top->known = true;
    top->exact = flow->asynchronous;
    top->off_call = calls->far_call;
    top->function = flow->asynchronous ? PT_UNTRACED_INTERRUPT
                    : calls->far_call  ? PT_UNTRACED_SYSCALL
                                       : PT_UNTRACED_OTHER;
    if (calls->covering)
        calls->counts.covered_time += calls->now - calls->covered_since;
    calls->covering = false;
    return 0;
}

// Tracing goes on, in the simplest case where it stopped.
static int on_enable(struct pt_calls *calls, const struct pt_flow *flow, struct error *err)
{
    struct frames *frames = &current(calls)->frames;
    ptrdiff_t found = frames_find(frames, flow->to, FAR, 0);
    if (found > 0 && frames->items[found].function == PT_UNTRACED_OTHER &&
        frames->items[found].kind == FRAME_UNTRACED &&
        frames->items[found - 1].kind == FRAME_CALL &&
        frame_returns_to(&frames->items[found - 1], flow->to))
        found--; // a call of code that is not traced returned
    if (found != NOT_FOUND)
        return frames_return(calls, (size_t)found, err);
    if (frames->count == 0)
        return reset(calls, flow, err);
    struct frame *top = &frames->items[frames->count - 1];
    if (top->kind != FRAME_UNTRACED)
        return reset(calls, flow, err);
    struct pt_flow handler = *flow;
    handler.from = top->from;
    bool exact = top->exact, off_call = top->off_call;
    int result = frames_end(calls, frames->count - 1, false, err);
    if (result < 0)
        return result;
    if (!off_call && !exact) // left the traced code by a call or jump: it may come back anywhere
        return 0;
    if (frames->count && (flow->at_start || !flow->function)) { // a signal's handler
        result = frame_push(calls, FRAME_INTERRUPT, &handler, err);
        if (result == 0)
            frames->items[frames->count - 1].exact = exact;
        return result;
    }
    return reset(calls, flow, err);
}

static int on_loss(struct pt_calls *calls, struct error *err)
{
    int result = frames_end(calls, 0, true, err);
    if (calls->covering)
        calls->counts.covered_time += calls->now - calls->covered_since;
    calls->covering = false;
    if (!calls->lost) {
        calls->lost = true;
        calls->lost_since = calls->now;
        calls->counts.gaps++;
    }
    return result;
}

// The processor tells of lost packets only when it goes on: they were lost at some time between the
// flow before and that.
static int on_overflow(struct pt_calls *calls, const struct pt_flow *flow, struct error *err)
{
    uint64_t gap = flow->tsc > calls->now ? flow->tsc - calls->now : 0;
    if (calls->timed && gap > calls->now_error)
        calls->now_error = gap < UINT32_MAX ? (uint32_t)gap : UINT32_MAX;
    return on_loss(calls, err);
}

static int end_of_loss(struct pt_calls *calls, struct error *err)
{
    if (!calls->lost)
        return 0;
    calls->lost = false;
    calls->counts.gap_time += calls->now - calls->lost_since;
    struct pt_span span = {.begin = calls->lost_since,
                           .end = calls->now,
                           .task = current(calls)->task,
                           .level = LOST_LEVEL,
                           .kind = PT_SPAN_LOST};
    return report(calls, &span, err);
}

static int on_begin(struct pt_calls *calls, const struct pt_flow *flow, bool contiguous,
                    struct error *err)
{
    struct frames *frames = &current(calls)->frames;
    if (!contiguous || frames->count == 0)
        return reset(calls, flow, err);
    if (frames->items[frames->count - 1].kind == FRAME_UNTRACED)
        return on_enable(calls, flow, err);
    return 0;
}

static int flow_apply(struct pt_calls *calls, const struct pt_flow *flow, bool contiguous,
                      struct error *err)
{
    switch (flow->kind) {
    case PT_FLOW_BEGIN:
        return on_begin(calls, flow, contiguous, err);
    case PT_FLOW_CALL:
        return on_call(calls, flow, err);
    case PT_FLOW_RETURN:
        return on_return(calls, flow, err);
    case PT_FLOW_JUMP:
        return on_jump(calls, flow, err);
    case PT_FLOW_FAR_CALL:
        return flow->to ? frame_push(calls, FRAME_SYSCALL, flow, err) : 0;
    case PT_FLOW_FAR_RETURN:
        return flow->to ? on_far_return(calls, flow, err) : 0;
    case PT_FLOW_INTERRUPT:
        return frame_push(calls, FRAME_INTERRUPT, flow, err);
    case PT_FLOW_ENABLE:
        return on_enable(calls, flow, err);
    case PT_FLOW_DISABLE:
        return on_disable(calls, flow, err);
    case PT_FLOW_OVERFLOW:
        return reset(calls, flow, err);
    default:
        return 0;
    }
}

// --- tasks -------------------------------------------------------------------------------------

static int task_report(struct pt_calls *calls, struct error *err)
{
    struct pt_span span = {.begin = calls->task_since,
                           .end = calls->now,
                           .error = calls->now_error,
                           .task = current(calls)->task,
                           .level = TASK_LEVEL,
                           .kind = PT_SPAN_TASK};
    if (span.task == PT_NO_TASK || span.end <= span.begin)
        return 0;
    return report(calls, &span, err);
}

static int stack_of(struct pt_calls *calls, uint32_t task, size_t *out, struct error *err)
{
    for (size_t i = 0; i < calls->stacks.count; i++)
        if (calls->stacks.items[i].task == task) {
            *out = i;
            return 0;
        }
    struct stack added = {.task = task, .since = calls->now, .since_error = calls->now_error};
    *out = calls->stacks.count;
    if (array_push(&calls->stacks, added) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for call stacks");
    return 0;
}

// Another task runs. What the one before had open is cut here and goes on when it comes back.
static int switch_task(struct pt_calls *calls, uint32_t task, struct error *err)
{
    struct stack *stack = current(calls);
    if (stack->task == task)
        return 0;
    int result = 0;
    bool first = stack->task == PT_NO_TASK && calls->stacks.count == 1;
    if (first && stack->frames.count == 0) {
        stack->task = task; // nothing happened before the first switch
        calls->task_since = calls->now;
        return 0;
    }
    for (size_t i = stack->frames.count; result == 0 && i-- > 0;)
        result = frame_report(calls, i, true, err);
    if (result == 0)
        result = task_report(calls, err);
    if (result == 0)
        result = stack_of(calls, task, &calls->current, err);
    if (result < 0)
        return result;
    stack = current(calls);
    stack->since = calls->now;
    stack->since_error = calls->now_error;
    for (size_t i = 0; i < stack->frames.count; i++) {
        stack->frames.items[i].begin = calls->now;
        stack->frames.items[i].error = calls->now_error;
        stack->frames.items[i].cut = true;
    }
    calls->task_since = calls->now;
    return 0;
}

static int follow_switches(struct pt_calls *calls, uint64_t until, struct error *err)
{
    int result = 0;
    while (result == 0 && calls->switches && calls->next_switch < calls->switches->count &&
           calls->switches->items[calls->next_switch].tsc <= until) {
        const struct pt_switch *next = &calls->switches->items[calls->next_switch++];
        if (next->tsc > calls->now)
            calls->now = next->tsc;
        calls->now_error = 0; // the kernel took this time itself
        result = switch_task(calls, next->task, err);
    }
    return result;
}

// --- the stream --------------------------------------------------------------------------------

static int set_now(struct pt_calls *calls, const struct pt_flow *flow, struct error *err)
{
    uint64_t time = calls->timed ? flow->tsc : calls->instructions + flow->instruction;
    if (!calls->began) {
        calls->began = true;
        calls->now = calls->task_since = current(calls)->since = time;
    }
    int result = calls->timed ? follow_switches(calls, time, err) : 0;
    calls->now_error = calls->timed ? flow->error_tsc : 0;
    if (time >= calls->now) {
        calls->now = time;
    } else { // pieces and switches may disagree within the error of the trace
        uint64_t behind = calls->now - time;
        if (behind > calls->now_error)
            calls->now_error = behind < UINT32_MAX ? (uint32_t)behind : UINT32_MAX;
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
        calls->covered_since = calls->now;
    }
    if (current(calls)->frames.count == 0 && flow->kind != PT_FLOW_BEGIN &&
        flow->kind != PT_FLOW_ENABLE &&
        flow->kind != PT_FLOW_OVERFLOW) { // a task comes back whose stack was lost
        struct pt_flow unknown = {.kind = PT_FLOW_BEGIN};
        result = frame_push(calls, FRAME_ROOT, &unknown, err);
        if (result < 0)
            return result;
    }
    result = flow_apply(calls, flow, contiguous, err);
    calls->far_call = flow->kind == PT_FLOW_FAR_CALL;
    return result;
}

int pt_calls_take(struct pt_calls *calls, const struct pt_piece *piece, bool contiguous,
                  struct error *err)
{
    int result = 0;
    if (!contiguous && calls->began)
        result = on_loss(calls, err);
    for (size_t i = 0; result == 0 && i < piece->flows.count; i++)
        result = take_flow(calls, &piece->flows.items[i], contiguous && i == 0, err);
    calls->instructions += piece->counts.instructions;
    return result;
}

int pt_calls_finish(struct pt_calls *calls, struct error *err)
{
    if (!calls->timed && calls->instructions > calls->now)
        calls->now = calls->instructions;
    if (calls->covering)
        calls->counts.covered_time += calls->now - calls->covered_since;
    calls->covering = false;
    int result = frames_end(calls, 0, true, err);
    if (result == 0)
        result = task_report(calls, err);
    return result;
}
