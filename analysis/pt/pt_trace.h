// SPDX-License-Identifier: MIT
//
// A whole recording, ready to decode: its streams, the code that ran, the names of functions, and
// how its clock becomes nanoseconds. Three loaders fill it: a bare stream (here), trace.json
// (pt_trace_json.c), perf.data (pt_trace_perf.c); the rest of the program does not know which.
#ifndef ANALYSIS_PT_PT_TRACE_H
#define ANALYSIS_PT_PT_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/perf/perf_data.h"
#include "analysis/pt/calls/pt_calls.h"
#include "analysis/pt/calls/pt_span.h"
#include "analysis/pt/image/pt_code.h"
#include "analysis/pt/image/pt_image.h"
#include "analysis/pt/walk/pt_stream.h"
#include "base/array.h"
#include "base/error.h"

enum { PT_NO_CPU = 0xffffffff };

// One stream with its tasks and switches. Owns everything except the bytes of a perf.data.
struct pt_trace_stream {
    char name[256];                  // for people: the file, or "cpu 3"
    uint32_t cpu;                    // PT_NO_CPU: of one process
    struct pt_stream stream;         // points to the members below
    struct pt_packets packets;       //
    struct pt_space_changes changes; //
    struct pt_switches switches;     // to tasks
    bool timed;
    char *file; // its bytes are a mapping of this file; NULL: the loader owns them
};
struct pt_trace_streams ARRAY_OF(struct pt_trace_stream *);

struct pt_task_name {
    uint32_t task;
    uint32_t process; // 0 unknown
    char name[32];    // "memcached"; "" unknown
};
struct pt_task_names ARRAY_OF(struct pt_task_name);

struct pt_trace {
    struct pt_trace_streams streams;
    struct pt_memory memory;
    struct pt_code code;
    const struct pt_symbols *symbols; // &code.symbols, or NULL: no names
    struct pt_task_names tasks;
    struct {
        bool valid;
        uint64_t multiplier, zero; // ns = zero + tsc * multiplier >> shift
        uint16_t shift;
    } clock;
    const struct perf_data *recording; // of a perf.data; belongs to the keeper. NULL: another kind
    // What the loader keeps for the members above; freed last.
    unsigned threads;  // threads to scan with; set after pt_trace_init; 0: as many as cores
    bool windows_only; // only windows will be decoded, after pt_trace_refine: a glance is enough
                       // where a stream's headers allow it; set after pt_trace_init
    void *keeper;
    void (*keeper_free)(void *keeper);
    uint64_t notes_count;
    struct pt_notes ARRAY_OF(char *) notes; // what was missing or wrong, in sentences; owned
};

// An empty trace; the caller calls pt_trace_free, also after a loader failed.
int pt_trace_init(struct pt_trace *trace, struct error *err);
void pt_trace_free(struct pt_trace *trace);

// Adds an empty stream and returns it; it lives as long as the trace. NULL: out of memory.
struct pt_trace_stream *pt_trace_add(struct pt_trace *trace, struct error *err);

// Maps a file as one stream; its loader scans it with the others.
int pt_trace_add_file(struct pt_trace *trace, const char *path, uint32_t cpu,
                      const struct pt_recorder *recorder, struct error *err);

// Scans the packets of all streams, on all cores; once, when the bytes of all are set. A file in
// which there is no PSB is no trace and fails.
int pt_trace_scan(struct pt_trace *trace, struct error *err);

// Readies the streams to decode only windows, on all cores: their own, or, for streams that have
// none, these (pt_windows_refine).
int pt_trace_refine(struct pt_trace *trace, const struct pt_windows *windows, struct error *err);

// Keeps a sentence for the user. Without memory it is lost, but still counted in notes_count.
void pt_trace_note(struct pt_trace *trace, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// In ns where the clock is known, else unchanged.
uint64_t pt_trace_ns(const struct pt_trace *trace, uint64_t tsc);
// How long that many ticks are.
double pt_trace_duration_ns(const struct pt_trace *trace, uint64_t ticks);

// Adds files named by the user to every address space.
int pt_trace_add_code(struct pt_trace *trace, const struct code_given *given, size_t count,
                      struct error *err);

// --- names for people ----------------------------------------------------------------------------

enum { PT_LABEL_BYTES = 512 };

// The name of a function, where it is (pt_code_locate), an address, or why nothing is known. For
// tasks as pt_label_task. Returns the text, which may be in out. Asks trace->symbols: one thread at
// a time.
const char *pt_label(const struct pt_trace *trace, enum pt_span_kind kind, uint64_t function,
                     bool known, char out[PT_LABEL_BYTES]);

// A thread's name ("" unknown, "idle" for number 0), and its process (the number itself: unknown).
const char *pt_label_task(const struct pt_trace *trace, uint32_t task);
uint32_t pt_label_process(const struct pt_trace *trace, uint32_t task);

// Whether a span's function belongs to the kernel, which the uppermost bit of keys and addresses
// says.
static inline bool pt_label_is_kernel(uint64_t function)
{
    return function >> 63 != 0;
}

// --- loaders (pt_trace_json.c, pt_trace_perf.c) --------------------------------------------------

// trace.json: a list of CPUs with their raw streams and context switches, modules and their
// addresses, and the conversion of time. Paths in it are relative to it.
int pt_trace_load_json(struct pt_trace *trace, const char *path, struct error *err);

// Loads a perf.data that `perf record -e intel_pt//` wrote. options: where to look for code.
int pt_trace_load_perf(struct pt_trace *trace, const char *path,
                       const struct code_image_options *options, struct error *err);

#endif
