// SPDX-License-Identifier: MIT
#include "analysis/pt/calls/pt_stack.h"

#include "base/text.h"

enum {
    LONGEST_INSTRUCTION = 15,
    PATIENCE = 16, // returns into the unknown before a stack is given up
};

// --- spans -----------------------------------------------------------------------------------

static void count_error(struct pt_span_writer *writer, uint32_t error)
{
    writer->counts.errors[error ? 32 - __builtin_clz(error) : 0]++;
}

static uint8_t span_kind(const struct pt_frame *frame)
{
    switch (frame->kind) {
    case PT_FRAME_SYSCALL:
        return PT_SPAN_SYSCALL;
    case PT_FRAME_INTERRUPT:
        return PT_SPAN_INTERRUPT;
    case PT_FRAME_UNTRACED:
        return PT_SPAN_UNTRACED;
    default:
        return PT_SPAN_FUNCTION;
    }
}

// Ends the span of a frame at that index now. It has all fields at once: the compiler clears one
// that is made bit by bit with an instruction that takes longer than all the rest.
static inline int span_end(struct pt_span_writer *writer, struct pt_stack *stack, size_t index,
                           const struct pt_frame *frame, bool cut_end, struct error *err)
{
    struct pt_span span = {
        .function = frame->function,
        .begin = frame->begin,
        .end = writer->now > frame->begin ? writer->now : frame->begin,
        .inner = frame->inner,
        .error = frame->error > writer->now_error ? frame->error : writer->now_error,
        .task = stack->task,
        .level = stack->outermost + (int32_t)index,
        .kind = span_kind(frame),
        .cut_begin = frame->cut,
        .cut_end = cut_end,
        .function_known = frame->known,
    };
    if (index > 0)
        stack->frames.items[index - 1].inner += span.end - span.begin;
    if (writer->timed && !frame->cut)
        count_error(writer, frame->error);
    if (writer->timed && !cut_end)
        count_error(writer, writer->now_error);
    return pt_span_write(writer, &span, err);
}

// Ends the frame's span now; the frame itself stays.
static int frame_report(struct pt_span_writer *writer, struct pt_stack *stack, size_t index,
                        bool cut_end, struct error *err)
{
    int result = span_end(writer, stack, index, &stack->frames.items[index], cut_end, err);
    stack->frames.items[index].inner = 0;
    return result;
}

static int no_room(const struct pt_stack *stack, struct error *err)
{
    return error_set(err, ERROR_FAILED, "out of memory for a stack of %s calls",
                     TEXT_COUNT(stack->frames.count));
}

static int frame_push(struct pt_span_writer *writer, struct pt_stack *stack,
                      enum pt_frame_kind kind, const struct pt_flow *flow, struct error *err)
{
    struct pt_frame frame = {.function = flow->function ? flow->function : flow->to,
                             .known = flow->function != 0,
                             .begin = writer->now,
                             .error = writer->now_error,
                             .from = flow->from,
                             .kind = (uint8_t)kind,
                             .exact = kind == PT_FRAME_INTERRUPT};
    if (kind == PT_FRAME_ROOT || kind == PT_FRAME_FLOATING) {
        frame.cut = true;
        frame.from = 0;
        if (!frame.known)
            frame.function = 0; // an address inside it does not name a function
    }
    if (array_push(&stack->frames, frame) < 0)
        return no_room(stack, err);
    return 0;
}

// The most frequent kind, written where it stays: a struct that is copied costs as much again.
static int frame_push_call(const struct pt_span_writer *writer, struct pt_stack *stack,
                           const struct pt_flow *flow, struct error *err)
{
    struct pt_frames *frames = &stack->frames;
    if (array_reserve(frames, frames->count + 1) < 0)
        return no_room(stack, err);
    struct pt_frame *frame = &frames->items[frames->count];
    *frame = (struct pt_frame){.function = flow->function ? flow->function : flow->to,
                               .known = flow->function != 0,
                               .begin = writer->now,
                               .error = writer->now_error,
                               .from = flow->from,
                               .kind = PT_FRAME_CALL};
    frames->count++;
    return 0;
}

// Ends the innermost frames until `count` are left.
static int frames_end(struct pt_span_writer *writer, struct pt_stack *stack, size_t count, bool cut,
                      struct error *err)
{
    struct pt_frames *frames = &stack->frames;
    int result = 0;
    while (result == 0 && frames->count > count) {
        result = frame_report(writer, stack, frames->count - 1, cut, err);
        frames->count--;
    }
    return result;
}

// --- finding the frame that control comes back from -------------------------------------------

// Whether the call at `from` comes back to `to`.
static inline bool call_returns_to(uint64_t from, uint64_t to)
{
    return from && to - from - 1 < LONGEST_INSTRUCTION;
}

static bool frame_returns_to(const struct pt_frame *frame, uint64_t to)
{
    return frame->exact ? frame->from && frame->from == to : call_returns_to(frame->from, to);
}

static bool kind_among(const struct pt_frame *frame, unsigned kinds)
{
    return (kinds >> frame->kind & 1) != 0;
}

enum {
    NEAR = 1 << PT_FRAME_CALL,
    FAR = 1 << PT_FRAME_SYSCALL | 1 << PT_FRAME_INTERRUPT | 1 << PT_FRAME_UNTRACED,
    NOT_FOUND = -1,
};

// The innermost frame of these kinds that returns to `to`; none beyond a frame of `barrier` kinds.
static ptrdiff_t frames_find(const struct pt_frames *frames, uint64_t to, unsigned kinds,
                             unsigned barrier)
{
    for (size_t i = frames->count; i-- > 0;) {
        const struct pt_frame *frame = &frames->items[i];
        if (kind_among(frame, kinds) && frame_returns_to(frame, to))
            return (ptrdiff_t)i;
        if (kind_among(frame, barrier))
            break;
    }
    return NOT_FOUND;
}

static int frames_return(struct pt_span_writer *writer, struct pt_stack *stack, size_t index,
                         struct error *err)
{
    writer->counts.unwound += stack->frames.count - 1 - index;
    stack->impatience = 0;
    return frames_end(writer, stack, index, false, err);
}

// The bottom frame returned: its caller has been on the stack since the beginning.
static int reveal_caller(struct pt_span_writer *writer, struct pt_stack *stack,
                         const struct pt_flow *flow, struct error *err)
{
    uint64_t callee_begin = stack->frames.items[0].begin;
    int result = frames_end(writer, stack, 0, false, err);
    stack->outermost--;
    if (result == 0)
        result = frame_push(writer, stack, PT_FRAME_ROOT, flow, err);
    if (result == 0) {
        stack->frames.items[0].begin = stack->since;
        stack->frames.items[0].inner = writer->now - callee_begin;
        stack->frames.items[0].error = stack->since_error;
    }
    return result;
}

static int stack_give_up(struct pt_span_writer *writer, struct pt_stack *stack,
                         const struct pt_flow *flow, struct error *err)
{
    writer->counts.resets++;
    int result = frames_end(writer, stack, 0, true, err);
    stack->since = writer->now;
    stack->since_error = writer->now_error;
    stack->impatience = 0;
    return result < 0 ? result : frame_push(writer, stack, PT_FRAME_ROOT, flow, err);
}

// --- what each flow does -----------------------------------------------------------------------

// "Call the next instruction" reads the instruction pointer; it never returns.
static inline bool call_reads_pointer(const struct pt_flow *flow)
{
    return flow->to - flow->from - 1 < 7 && !flow->at_start;
}

static int on_call(struct pt_span_writer *writer, struct pt_stack *stack,
                   const struct pt_flow *flow, struct error *err)
{
    return call_reads_pointer(flow) ? 0 : frame_push_call(writer, stack, flow, err);
}

// A jump to the start of a function ends the one it leaves; the new one returns to its caller.
static int tail_call(struct pt_span_writer *writer, struct pt_stack *stack,
                     const struct pt_flow *flow, struct error *err)
{
    struct pt_frames *frames = &stack->frames;
    struct pt_frame *top = &frames->items[frames->count - 1];
    if (top->known && top->function == flow->function)
        return 0;
    writer->counts.tail_calls++;
    int result = frame_report(writer, stack, frames->count - 1, false, err);
    top->function = flow->function;
    top->known = true;
    top->begin = writer->now;
    top->error = writer->now_error;
    top->cut = false;
    return result;
}

static int on_return(struct pt_span_writer *writer, struct pt_stack *stack,
                     const struct pt_flow *flow, struct error *err)
{
    struct pt_frames *frames = &stack->frames;
    struct pt_frame *top = &frames->items[frames->count - 1];
    ptrdiff_t found = frames_find(frames, flow->to, NEAR, FAR);
    if (found != NOT_FOUND)
        return frames_return(writer, stack, (size_t)found, err);
    if (!flow->to) // packets were lost right behind it
        return top->kind == PT_FRAME_CALL ? frames_end(writer, stack, frames->count - 1, false, err)
                                          : 0;
    if (flow->at_start && top->kind == PT_FRAME_CALL && frames->count > 1) {
        // A return to an address that the code put onto the stack itself is a jump through a
        // register (retpoline).
        int result = frames_end(writer, stack, frames->count - 1, false, err);
        return result < 0 ? result : tail_call(writer, stack, flow, err);
    }
    if (frames->count == 1 && top->kind == PT_FRAME_ROOT)
        return reveal_caller(writer, stack, flow, err);
    writer->counts.unmatched++;
    if (++stack->impatience > PATIENCE)
        return stack_give_up(writer, stack, flow, err);
    bool replaces = top->kind == PT_FRAME_CALL || top->kind == PT_FRAME_FLOATING;
    int result = frames_end(writer, stack, frames->count - replaces, false, err);
    return result < 0 ? result : frame_push(writer, stack, PT_FRAME_FLOATING, flow, err);
}

static int on_jump(struct pt_span_writer *writer, struct pt_stack *stack,
                   const struct pt_flow *flow, struct error *err)
{
    struct pt_frames *frames = &stack->frames;
    if (!flow->function)
        return 0;
    for (size_t i = frames->count; !flow->at_start && i-- > 0;)
        if (frames->items[i].known && frames->items[i].function == flow->function) {
            writer->counts.unwound += frames->count - 1 - i;
            return frames_end(writer, stack, i + 1, false, err); // longjmp
        }
    return tail_call(writer, stack, flow, err);
}

static int on_far_return(struct pt_span_writer *writer, struct pt_stack *stack,
                         const struct pt_flow *flow, struct error *err)
{
    struct pt_frames *frames = &stack->frames;
    ptrdiff_t found = frames_find(frames, flow->to, FAR, 0);
    if (found != NOT_FOUND)
        return frames_return(writer, stack, (size_t)found, err);
    return frames->count == 1 ? reveal_caller(writer, stack, flow, err)
                              : stack_give_up(writer, stack, flow, err);
}

static int on_disable(struct pt_span_writer *writer, struct pt_stack *stack,
                      const struct pt_flow *flow, struct error *err)
{
    int result = frame_push(writer, stack, PT_FRAME_UNTRACED, flow, err);
    if (result < 0)
        return result;
    struct pt_frame *top = &stack->frames.items[stack->frames.count - 1];
    top->known = true;
    top->exact = flow->asynchronous;
    top->off_call = writer->after_syscall;
    top->function = flow->asynchronous      ? PT_UNTRACED_INTERRUPT
                    : writer->after_syscall ? PT_UNTRACED_SYSCALL
                                            : PT_UNTRACED_OTHER;
    return 0;
}

// Tracing goes on, usually where it stopped.
static int on_enable(struct pt_span_writer *writer, struct pt_stack *stack,
                     const struct pt_flow *flow, struct error *err)
{
    struct pt_frames *frames = &stack->frames;
    ptrdiff_t found = frames_find(frames, flow->to, FAR, 0);
    if (found > 0 && frames->items[found].function == PT_UNTRACED_OTHER &&
        frames->items[found].kind == PT_FRAME_UNTRACED &&
        frames->items[found - 1].kind == PT_FRAME_CALL &&
        frame_returns_to(&frames->items[found - 1], flow->to))
        found--; // a call of code that is not traced returned
    if (found != NOT_FOUND)
        return frames_return(writer, stack, (size_t)found, err);
    if (frames->count == 0)
        return stack_give_up(writer, stack, flow, err);
    struct pt_frame *top = &frames->items[frames->count - 1];
    if (top->kind != PT_FRAME_UNTRACED)
        return stack_give_up(writer, stack, flow, err);
    struct pt_flow handler = *flow;
    handler.from = top->from;
    bool exact = top->exact, off_call = top->off_call;
    int result = frames_end(writer, stack, frames->count - 1, false, err);
    if (result < 0)
        return result;
    if (!off_call && !exact) // left the traced code by a call or jump: it may come back anywhere
        return 0;
    if (frames->count && (flow->at_start || !flow->function)) { // a signal's handler
        result = frame_push(writer, stack, PT_FRAME_INTERRUPT, &handler, err);
        if (result == 0)
            frames->items[frames->count - 1].exact = exact;
        return result;
    }
    return stack_give_up(writer, stack, flow, err);
}

static int on_begin(struct pt_span_writer *writer, struct pt_stack *stack,
                    const struct pt_flow *flow, bool contiguous, struct error *err)
{
    struct pt_frames *frames = &stack->frames;
    if (!contiguous || frames->count == 0)
        return stack_give_up(writer, stack, flow, err);
    if (frames->items[frames->count - 1].kind == PT_FRAME_UNTRACED)
        return on_enable(writer, stack, flow, err);
    return 0;
}

int pt_stack_apply(struct pt_span_writer *writer, struct pt_stack *stack,
                   const struct pt_flow *flow, bool contiguous, struct error *err)
{
    switch (flow->kind) {
    case PT_FLOW_BEGIN:
        return on_begin(writer, stack, flow, contiguous, err);
    case PT_FLOW_CALL:
        return on_call(writer, stack, flow, err);
    case PT_FLOW_RETURN:
        return on_return(writer, stack, flow, err);
    case PT_FLOW_JUMP:
        return on_jump(writer, stack, flow, err);
    case PT_FLOW_FAR_CALL:
        return flow->to ? frame_push(writer, stack, PT_FRAME_SYSCALL, flow, err) : 0;
    case PT_FLOW_FAR_RETURN:
        return flow->to ? on_far_return(writer, stack, flow, err) : 0;
    case PT_FLOW_INTERRUPT:
        return frame_push(writer, stack, PT_FRAME_INTERRUPT, flow, err);
    case PT_FLOW_ENABLE:
        return on_enable(writer, stack, flow, err);
    case PT_FLOW_DISABLE:
        return on_disable(writer, stack, flow, err);
    case PT_FLOW_OVERFLOW:
        return stack_give_up(writer, stack, flow, err);
    default:
        return 0;
    }
}

// --- calls and returns in a row ------------------------------------------------------------------

static inline bool time_is_due(const struct pt_span_writer *writer, const struct pt_flow *flow,
                               uint64_t until)
{
    uint64_t time = pt_span_time(writer, flow);
    return time >= writer->now && time < until;
}

static inline void time_goes_on(struct pt_span_writer *writer, const struct pt_flow *flow)
{
    writer->now = pt_span_time(writer, flow);
    writer->now_error = writer->timed ? flow->error_tsc : 0;
}

// A call, and the return from it with nothing between, which need no frame.
static int call_and_return(struct pt_span_writer *writer, struct pt_stack *stack,
                           const struct pt_flow *call, const struct pt_flow *back,
                           struct error *err)
{
    struct pt_frame frame = {.function = call->function ? call->function : call->to,
                             .begin = writer->now,
                             .error = writer->now_error,
                             .kind = PT_FRAME_CALL,
                             .known = call->function != 0};
    time_goes_on(writer, back);
    stack->impatience = 0;
    return span_end(writer, stack, stack->frames.count, &frame, false, err);
}

int pt_stack_apply_usual(struct pt_span_writer *writer, struct pt_stack *stack,
                         const struct pt_flow **next, const struct pt_flow *end, uint64_t until,
                         struct error *err)
{
    struct pt_frames *frames = &stack->frames;
    const struct pt_flow *flow = *next;
    int result = 0;
    while (result == 0 && frames->count && flow < end && time_is_due(writer, flow, until)) {
        const struct pt_flow *back = flow + 1;
        if (flow->kind == PT_FLOW_CALL && !call_reads_pointer(flow)) {
            time_goes_on(writer, flow);
            bool returns = back < end && back->kind == PT_FLOW_RETURN &&
                           call_returns_to(flow->from, back->to) &&
                           time_is_due(writer, back, until);
            result = returns ? call_and_return(writer, stack, flow, back, err)
                             : frame_push_call(writer, stack, flow, err);
            flow += returns;
        } else if (flow->kind == PT_FLOW_RETURN &&
                   frames->items[frames->count - 1].kind == PT_FRAME_CALL &&
                   call_returns_to(frames->items[frames->count - 1].from, flow->to)) {
            time_goes_on(writer, flow);
            stack->impatience = 0;
            result = frame_report(writer, stack, frames->count - 1, false, err);
            frames->count--;
        } else {
            break;
        }
        writer->after_syscall = false;
        flow++;
    }
    *next = flow;
    return result;
}

// --- the whole stack -----------------------------------------------------------------------------

int pt_stack_begin_unknown(struct pt_span_writer *writer, struct pt_stack *stack, struct error *err)
{
    struct pt_flow unknown = {.kind = PT_FLOW_BEGIN};
    int result = frame_push(writer, stack, PT_FRAME_ROOT, &unknown, err);
    if (result == 0) {
        stack->frames.items[0].begin = stack->since;
        stack->frames.items[0].error = stack->since_error;
    }
    return result;
}

int pt_stack_suspend(struct pt_span_writer *writer, struct pt_stack *stack, struct error *err)
{
    int result = 0;
    for (size_t i = stack->frames.count; result == 0 && i-- > 0;)
        result = frame_report(writer, stack, i, true, err);
    return result;
}

void pt_stack_resume(const struct pt_span_writer *writer, struct pt_stack *stack)
{
    stack->since = writer->now;
    stack->since_error = writer->now_error;
    for (size_t i = 0; i < stack->frames.count; i++) {
        stack->frames.items[i].begin = writer->now;
        stack->frames.items[i].error = writer->now_error;
        stack->frames.items[i].cut = true;
    }
}

int pt_stack_cut(struct pt_span_writer *writer, struct pt_stack *stack, struct error *err)
{
    return frames_end(writer, stack, 0, true, err);
}
