// SPDX-License-Identifier: MIT
//
// A random server (synthetic.h) as Intel PT records it: its function calls are written through
// libipt's encoder, decoded again, and put into the contexts that the events know. Every function
// is the same few instructions: return if the branch says so; call through a register; again.
#ifndef TESTS_ANALYSIS_DIAGNOSIS_SYNTHETIC_PT_H
#define TESTS_ANALYSIS_DIAGNOSIS_SYNTHETIC_PT_H

#include "analysis/pt/calls/pt_calls.h"
#include "analysis/pt/calls/pt_span.h"
#include "analysis/pt/pt_segments.h"
#include "analysis/timeline/function_spans.h"
#include "tests/analysis/diagnosis/synthetic.h"
#include "tests/analysis/pt/pt_writer.h"

enum {
    SYNTHETIC_ROOT = SYNTHETIC_NAME_COUNT, // on every core, calls all the others
    SYNTHETIC_FUNCTIONS,
    SYNTHETIC_FUNCTION_BYTES = 8,
    SYNTHETIC_BEHIND_CALL = 4,
    SYNTHETIC_PSB_BYTES = 4096,
};

static inline uint64_t synthetic_address(uint32_t function)
{
    return USER_BASE + (uint64_t)function * SYNTHETIC_FUNCTION_BYTES;
}

static inline bool synthetic_find(void *context, uint32_t space, uint64_t address,
                                  struct pt_function *out)
{
    (void)context;
    (void)space;
    if (address < USER_BASE || address >= synthetic_address(SYNTHETIC_FUNCTIONS))
        return false;
    uint64_t low = address - (address - USER_BASE) % SYNTHETIC_FUNCTION_BYTES;
    *out = (struct pt_function){low, low + SYNTHETIC_FUNCTION_BYTES, low, true};
    return true;
}

// --- writing -------------------------------------------------------------------------------------

struct synthetic_flow {
    struct writer writer;
    const struct span *open[SYNTHETIC_DEEPEST]; // functions only; below them the root
    unsigned depth;
};

static inline void synthetic_step(struct synthetic_flow *flow, int64_t time, bool back, uint64_t to)
{
    writer_pass(&flow->writer, (uint64_t)time - flow->writer.now);
    write_branch(&flow->writer, back);
    write_address(&flow->writer, ppt_tip, to);
    if (writer_offset(&flow->writer) - flow->writer.last_psb > SYNTHETIC_PSB_BYTES)
        write_psb(&flow->writer, to);
}

// Returns from what has ended by `time`.
static inline void synthetic_leave(struct synthetic_flow *flow, int64_t time)
{
    while (flow->depth && flow->open[flow->depth - 1]->end_ns <= time) {
        int64_t end = flow->open[--flow->depth]->end_ns;
        uint32_t caller = flow->depth ? flow->open[flow->depth - 1]->name : SYNTHETIC_ROOT;
        synthetic_step(flow, end, true, synthetic_address(caller) + SYNTHETIC_BEHIND_CALL);
    }
}

static inline void synthetic_write(struct synthetic_flow *flow, const struct span_array *spans)
{
    struct pt_config config;
    *flow = (struct synthetic_flow){0};
    flow->writer.capacity = spans->count * 64 + 65536;
    flow->writer.timing = TIMING_CYC;
    flow->writer.ratio = NOMINAL_RATIO;
    flow->writer.data = malloc(flow->writer.capacity);
    pt_config_init(&config);
    config.begin = flow->writer.data;
    config.end = config.begin + flow->writer.capacity;
    flow->writer.encoder = flow->writer.data ? pt_alloc_encoder(&config) : NULL;
    if (!flow->writer.encoder)
        abort();
    flow->writer.now = (uint64_t)spans->items[0].begin_ns - 1000;
    write_psb(&flow->writer, synthetic_address(SYNTHETIC_ROOT));
    for (size_t i = 0; i < spans->count; i++) {
        const struct span *span = &spans->items[i];
        if (span->kind != SPAN_FUNCTION)
            continue;
        synthetic_leave(flow, span->begin_ns);
        synthetic_step(flow, span->begin_ns, false, synthetic_address(span->name));
        flow->open[flow->depth++] = span;
    }
    synthetic_leave(flow, INT64_MAX);
    write_tsc(&flow->writer);
    if (flow->writer.failed)
        abort();
}

// --- reading -------------------------------------------------------------------------------------

struct synthetic_reader {
    struct pt_packets packets;
    struct pt_calls *calls;
    struct pt_order order;
    struct span_array functions;
    uint64_t errors;
};

static inline int synthetic_take_spans(void *context, const struct pt_nested_span *spans,
                                       size_t count, struct error *err)
{
    struct synthetic_reader *reader = context;
    (void)err;
    for (size_t i = 0; i < count; i++) {
        const struct pt_span *span = &spans[i].span;
        uint64_t function = (span->function - USER_BASE) / SYNTHETIC_FUNCTION_BYTES;
        if (span->kind == PT_SPAN_FUNCTION && function < SYNTHETIC_ROOT)
            SYNTHETIC_PUSH(&reader->functions,
                           (struct span){.begin_ns = (int64_t)span->begin,
                                         .end_ns = (int64_t)span->end,
                                         .name = (uint32_t)function & SPAN_NAMES,
                                         .kind = SPAN_FUNCTION});
        else if (span->kind != PT_SPAN_FUNCTION)
            reader->errors += span->kind == PT_SPAN_LOST;
    }
    return 0;
}

static inline int synthetic_take_piece(void *context, size_t stream, const struct pt_piece *piece,
                                       bool contiguous, struct error *err)
{
    struct synthetic_reader *reader = (struct synthetic_reader *)context + stream;
    reader->errors += piece->errors.count;
    return pt_calls_take(reader->calls, piece, contiguous, err);
}

// Leaves a core its contexts, and adds the functions that were decoded.
static inline int synthetic_merge(struct core_timeline *core, const struct span_array *functions,
                                  struct error *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < core->spans.count; i++) {
        struct span *span = &core->spans.items[i];
        if (span->kind == SPAN_FUNCTION)
            continue;
        span->depth = span->depth > 0; // interrupts and softirqs, one deep in a task
        core->spans.items[kept++] = *span;
    }
    core->spans.count = kept;
    return core_timeline_add_functions(core, functions, err);
}

// Replaces the functions of the server's spans by what a decoder makes of them as Intel PT.
// *errors: what it could not decode. -1: failed.
static inline int synthetic_through_pt(struct synthetic *s, uint64_t *errors, struct error *err)
{
    static const uint8_t code[SYNTHETIC_FUNCTION_BYTES] = {0x74, 0x04, 0xff, 0xd0,
                                                           0xeb, 0xfa, 0xc3, 0x90};
    uint8_t program[SYNTHETIC_FUNCTIONS * SYNTHETIC_FUNCTION_BYTES];
    struct synthetic_flow flows[SYNTHETIC_CORES];
    struct synthetic_reader readers[SYNTHETIC_CORES] = {0};
    struct pt_stream streams[SYNTHETIC_CORES] = {0};
    struct pt_symbols symbols = {.find = synthetic_find};
    struct pt_memory memory = {0};
    const struct pt_decode_options options = {0};
    for (size_t i = 0; i < SYNTHETIC_FUNCTIONS; i++)
        memcpy(program + i * sizeof code, code, sizeof code);
    int result =
        pt_memory_add_bytes(&memory, program, sizeof program, USER_BASE, PT_SPACE_ALL, err);
    for (size_t c = 0; c < SYNTHETIC_CORES; c++) {
        synthetic_write(&flows[c], &s->server.cores.items[c].spans);
        readers[c].order = (struct pt_order){.sink = synthetic_take_spans, .context = &readers[c]};
        streams[c].bytes = (struct pt_bytes){.bytes = writer_offset(&flows[c].writer),
                                             .data = flows[c].writer.data};
        streams[c].packets = &readers[c].packets;
        streams[c].recorder.nominal_ratio = NOMINAL_RATIO;
        if (result == 0)
            result = pt_packets_scan(&streams[c].bytes, &readers[c].packets, err);
        readers[c].calls = pt_calls_alloc(NULL, true, pt_order_take, &readers[c].order, err);
    }
    if (result == 0)
        result = pt_decode(&memory, &symbols, streams, SYNTHETIC_CORES, &options,
                           synthetic_take_piece, readers, err);
    *errors = 0;
    for (size_t c = 0; c < SYNTHETIC_CORES; c++) {
        if (result == 0)
            result = pt_calls_finish(readers[c].calls, err);
        if (result == 0)
            result = pt_order_finish(&readers[c].order, err);
        if (result == 0)
            result = synthetic_merge(&s->server.cores.items[c], &readers[c].functions, err);
        *errors += readers[c].errors;
        pt_calls_free(readers[c].calls);
        pt_order_free(&readers[c].order);
        pt_packets_free(&readers[c].packets);
        array_free(&readers[c].functions);
        pt_free_encoder(flows[c].writer.encoder);
        free(flows[c].writer.data);
    }
    pt_memory_free(&memory);
    return result;
}

#endif
