// SPDX-License-Identifier: MIT
//
// Spans, which are made from call stacks (pt_calls.h): one interval for each call of a function,
// interrupt, syscall and gap; and the functions that receive them.
#ifndef ANALYSIS_PT_CALLS_PT_SPAN_H
#define ANALYSIS_PT_CALLS_PT_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "base/map.h"

enum pt_span_kind {
    PT_SPAN_FUNCTION,
    PT_SPAN_SYSCALL,   // the kernel's entry and all it does, where the kernel is traced
    PT_SPAN_INTERRUPT, // the handler of an interrupt or exception and all it does
    PT_SPAN_UNTRACED,  // tracing was off: `function` is an enum pt_untraced
    PT_SPAN_TASK,      // `task` ran
    PT_SPAN_LOST,      // packets were lost or undecodable: nothing is known
};

enum pt_untraced { PT_UNTRACED_SYSCALL = 1, PT_UNTRACED_INTERRUPT, PT_UNTRACED_OTHER };

struct pt_span {
    uint64_t function;   // key (pt_image.h), the address called where no key is known, 0 unknown
    uint64_t begin;      // TSC; where the stream has no time, instructions executed
    uint64_t end;        //
    uint64_t inner;      // how much of it was spent in spans directly inside it
    uint32_t error;      // of begin and end, the larger one, same unit
    uint32_t task;       // PT_NO_TASK unknown
    int32_t level;       // smaller is further out; comparable within one stream only
    uint8_t kind;        // enum pt_span_kind
    bool cut_begin;      // it began earlier: before the trace, or before its task was switched in
    bool cut_end;        // it goes on after `end`
    bool function_known; // function is a key and not an address
};
enum { PT_NO_TASK = 0xffffffff };

// Called when a span ends; spans inside it were reported before.
typedef int pt_span_sink(void *context, const struct pt_span *span, struct error *err);

struct pt_call_counts {
    uint64_t spans;
    uint64_t unwound;      // calls that ended because an outer one did: longjmp, exceptions
    uint64_t tail_calls;   // calls by jump
    uint64_t unmatched;    // returns to where no call on the stack came from
    uint64_t resets;       // stacks that were given up
    uint64_t gaps;         // stretches of lost or undecodable trace
    uint64_t gap_time;     // and the time that these cover
    uint64_t covered_time; // decoded and tracing
    // How precise times are: the number of spans' boundaries by the power of two that exceeds their
    // error.
    uint64_t errors[33];
};

// Receives the spans of a stream and knows its current time.
struct pt_span_writer {
    pt_span_sink *sink; // may be NULL
    void *context;
    uint64_t now;
    uint64_t instructions; // of the previous pieces
    uint32_t now_error;
    bool timed;         // the stream has TSC packets; else instructions are the time
    bool after_syscall; // the previous flow was a loss
    struct pt_call_counts counts;
};

static inline int pt_span_write(struct pt_span_writer *writer, const struct pt_span *span,
                                struct error *err)
{
    writer->counts.spans++;
    return writer->sink ? writer->sink(writer->context, span, err) : 0;
}

// --- order ---------------------------------------------------------------------------------------
// Call stacks (pt_calls.h) deliver spans when they end, inner ones first. Exports want them in the
// order in which they begin, outer ones first. A task's open spans are cut when another task is
// switched in, so the spans from one switch to the next can be put in order at the second: memory
// follows the longest time between two switches, not the length of the trace. Takes linear time.

struct pt_nested_span {
    struct pt_span span;
    uint32_t depth; // 0: outermost, which is a task where tasks are known
};

// Some spans of one stream: an enclosing span before those inside it, else by begin. No span that
// is delivered later begins before the last of these ends.
typedef int pt_nested_sink(void *context, const struct pt_nested_span *spans, size_t count,
                           struct error *err);

struct pt_order {
    pt_nested_sink *sink;
    void *context;
    struct pt_spans ARRAY_OF(struct pt_span) spans; // in the order in which they ended
    struct pt_links ARRAY_OF(struct pt_link) links; // same indices as spans
    struct pt_nested_spans ARRAY_OF(struct pt_nested_span) nested;
};

// A pt_span_sink whose context is a struct pt_order: zeroed, but for its sink and context.
int pt_order_take(void *order, const struct pt_span *span, struct error *err);

// Delivers the remaining spans.
int pt_order_finish(struct pt_order *order, struct error *err);
void pt_order_free(struct pt_order *order);

// --- numbers for names ---------------------------------------------------------------------------
// A hash table from functions (of a caller, where that matters) to small numbers, as the exports
// need it: a name's number, a stack's number.

struct pt_map_key {
    uint64_t function; // of a task: its number
    uint32_t parent;   // 0 where it does not matter
    uint8_t kind;      // enum pt_span_kind
    bool known;        // function is a key
};

struct pt_map_entry {
    struct pt_map_key key;
    uint32_t value;
};
struct pt_map_entries ARRAY_OF(struct pt_map_entry);

struct pt_map {
    struct pt_map_entries entries;
    struct map positions;
};

// What the span's label depends on, and nothing else.
static inline struct pt_map_key pt_map_key_of(const struct pt_span *span, uint32_t parent)
{
    bool task = span->kind == PT_SPAN_TASK, plain = task || span->kind == PT_SPAN_LOST;
    return (struct pt_map_key){.function = task    ? span->task
                                           : plain ? 0
                                                   : span->function,
                               .parent = parent,
                               .kind = span->kind,
                               .known = !plain && span->function_known};
}

// The number of the key, 0 when it is new: then set it. Valid until the next call; NULL: no memory.
uint32_t *pt_map_at(struct pt_map *map, struct pt_map_key key);
void pt_map_free(struct pt_map *map);

#endif
