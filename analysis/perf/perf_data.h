// SPDX-License-Identifier: MIT
//
// Reads what anyone's `perf record` wrote: a file, the output of a pipe, or a directory, compressed
// or not. What was read is here. The parser (perf_data_parse.c) works on bytes and does no I/O;
// perf_data_open.c is the thin layer that maps files for it. Nothing in the input is trusted: what
// is malformed is left out, counted, and complained about with its place; a truncated file gives
// what is readable.
//
// AUX data (the Intel PT trace) is never copied: a stream is a list of extents of the mapped file.
// The other records that matter (the sideband) become one array of events sorted by time, 48 bytes
// each; samples are counted only, unless struct perf_limits asks for them. A lean reading (struct
// perf_limits) holds less. The formats are in analysis/perf/perf_data_format.h.
#ifndef ANALYSIS_PERF_PERF_DATA_H
#define ANALYSIS_PERF_PERF_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/perf/perf_data_format.h"
#include "base/array.h"
#include "base/error.h"

enum { PERF_NO_CPU = 0xffffffff, PERF_NO_PID = 0xffffffff }; // as perf writes -1

// --- input ---------------------------------------------------------------------------------------

// One file's bytes. The first input carries the header; the others (a directory's data.N) only
// records.
struct perf_input {
    const char *name; // for messages
    const uint8_t *data;
    size_t bytes;
};

struct perf_limits {
    uint64_t events;     // sideband events kept
    uint64_t copy_bytes; // of records that have to be copied because they were compressed
    uint64_t decompressed_bytes;
    uint64_t samples; // kept as struct perf_sample; 0: they are counted only
    // Keeps only what decoding needs, and none of the files' pages: AUX, EXIT, LOST and
    // AUXTRACE_ERROR are only counted; a context switch takes 16 bytes (perf_data.switches) and is
    // not kept as an event; other sideband records take their own size and 48 bytes.
    bool lean;
    // The inputs are private read-only mappings of files: pages that were read are given back to
    // the kernel. Set by perf_data_open.
    bool mapped;
};
// 100 million events (4.8 GB), 8 GiB, 1 TiB: what a machine that records can also analyse.
extern const struct perf_limits perf_default_limits;

// --- output --------------------------------------------------------------------------------------

// What was wrong, and where.
struct perf_complaint {
    uint32_t input;  // index into perf_data.inputs
    uint64_t offset; // of the record in that file; for a compressed record, of what held it
    char text[200];
};
struct perf_complaint_array ARRAY_OF(struct perf_complaint);
enum { PERF_COMPLAINTS_KEPT = 64 };

struct perf_attr {
    uint32_t type; // of the PMU; equals perf_intel_pt.pmu_type for the trace itself
    uint64_t config;
    uint64_t sample_type;
    uint64_t read_format;
    uint64_t flags; // the 64 flag bits: disabled, inherit, …
    bool sample_id_all;
    bool exclude_user, exclude_kernel;
    char name[64]; // "" where the file does not say
    uint64_t *ids; // owned
    size_t id_count;
};
struct perf_attr_array ARRAY_OF(struct perf_attr);

// A sample of the recorded events. Sorted by time.
struct perf_sample {
    uint64_t time;    // perf clock, ns; 0: unknown
    uint64_t address; // where the processor was
    const uint8_t
        *chain; // its callers, u64 each, innermost first, with PERF_CONTEXT_* marks between them
    uint32_t frames;   // of the chain; 0: none was recorded
    uint32_t pid, tid; // PERF_NO_PID: unknown
    uint32_t cpu;      // PERF_NO_CPU: unknown
    uint32_t attr;     // index into perf_data.attrs
};
struct perf_sample_array ARRAY_OF(struct perf_sample);

// A sideband record. Sorted by time; those without a time (synthesized by perf: what existed before
// the recording began) come first, in the order of the file.
struct perf_event {
    uint64_t time;         // perf clock, ns; 0: before everything
    const uint8_t *record; // header and body, validated; see perf_data_events.h
    uint64_t offset;       // place in the file, as in struct perf_complaint
    uint32_t type;         // enum perf_record_type
    uint32_t pid, tid;     // from the record's sample_id; PERF_NO_PID: unknown
    uint32_t cpu;          // PERF_NO_CPU where it does not tell
    uint32_t input;
    uint16_t misc;
    uint16_t size;
};
_Static_assert(sizeof(struct perf_event) == 48, "there may be millions of them");
struct perf_event_array ARRAY_OF(struct perf_event);

// A task's stay on a CPU, which begins at `time`.
struct perf_stint {
    uint64_t time; // perf clock, ns
    uint32_t pid, tid;
};
struct perf_stint_array ARRAY_OF(struct perf_stint);

// The context switches of one CPU, or of one thread where recording was per thread. Filled by a
// lean reading.
struct perf_switches {
    uint32_t cpu;     // PERF_NO_CPU: of a thread
    uint32_t thread;  // PERF_NO_PID: of a CPU
    uint64_t records; // SWITCH and SWITCH_CPU_WIDE, in and out
    bool has_before;  // a task was switched out; `before` is the first one, and when
    struct perf_stint before;
    bool disordered;                // only while reading
    struct perf_stint_array stints; // which tasks were switched in; ascending time
};
struct perf_switches_array ARRAY_OF(struct perf_switches);

// One AUXTRACE record's data.
struct perf_aux_extent {
    const uint8_t *data; // in the mapped file
    uint64_t bytes;
    uint64_t stream_offset; // bytes of the stream before it
    uint64_t ring_offset; // where it began in the kernel's AUX ring, counted from the start of the
                          // recording
    uint64_t reference;   // TSC when perf read it
    uint64_t file_offset; // of data
    uint32_t input;
    uint32_t thread;
    bool continues;   // false: bytes are missing between it and its predecessor: resync
    uint64_t overlap; // snapshots: how many of its first bytes repeat the end of its predecessor
};
struct perf_aux_extent_array ARRAY_OF(struct perf_aux_extent);

// All AUX data of one ring buffer: one CPU, or one thread where recording was per thread.
struct perf_aux_stream {
    uint32_t ring;   // perf's idx
    uint32_t cpu;    // PERF_NO_CPU: recorded per thread
    uint32_t thread; // PERF_NO_PID: recorded per CPU
    uint64_t bytes;  // of all extents
    struct perf_aux_extent_array extents;
};
struct perf_aux_stream_array ARRAY_OF(struct perf_aux_stream);

// How perf's clock follows the TSC: ns = zero + tsc * mult >> shift.
struct perf_time_conversion {
    bool valid;
    uint16_t shift;
    uint64_t mult;
    uint64_t zero;
    uint64_t cycles, mask; // a counter narrower than 64 bits; mask 0: not
};

// AUXTRACE_INFO of Intel PT: the meaning of the bits of the PT event's config, and the CPU's
// properties.
struct perf_intel_pt {
    bool present;
    uint32_t pmu_type; // attr.type of the PT event
    uint64_t config;   // of the first PT event
    uint64_t tsc_bit, mtc_bit, cyc_bit, no_return_compression_bit;
    uint64_t mtc_frequency_bits;
    uint64_t tsc_ctc_numerator, tsc_ctc_denominator; // CPUID leaf 15H; 0: unknown
    uint64_t max_non_turbo_ratio;                    // base frequency in units of 100 MHz
    uint64_t switch_tracking; // 0 none, 1 tracepoint, 2 SWITCH, 3 SWITCH_CPU_WIDE
    bool snapshot;
    bool per_cpu; // streams are per CPU
    bool event_trace;
    bool has_tsc, has_mtc, has_cyc, return_compression; // what config says about the bits above
    unsigned mtc_period;                                // the MTCFreq field: 0 … 15
    struct perf_time_conversion time;
    char filter[256]; // address filters, "" for none
};

struct perf_build_id {
    uint8_t bytes[20];
    uint8_t size; // 0 … 20
    bool kernel;  // the range is in the kernel or a module
    uint32_t pid; // PERF_NO_PID for the host's
    const char *path;
};
struct perf_build_id_array ARRAY_OF(struct perf_build_id);

// Code that the kernel made of a BPF program; one program has one or more. Points into the file.
struct perf_bpf_function {
    uint64_t address;
    const uint8_t *code;
    uint32_t bytes;
    uint32_t program; // its id
};
struct perf_bpf_function_array ARRAY_OF(struct perf_bpf_function);

// The CPU and thread for which an event id was opened (ID_INDEX).
struct perf_id_place {
    uint64_t id;
    uint32_t ring, cpu, thread;
};
struct perf_id_place_array ARRAY_OF(struct perf_id_place);

struct perf_cpu_place {
    uint32_t core, socket;
};
struct perf_cpu_place_array ARRAY_OF(struct perf_cpu_place);

enum perf_layout { PERF_LAYOUT_FILE, PERF_LAYOUT_PIPE, PERF_LAYOUT_DIRECTORY };

struct perf_data {
    enum perf_layout layout;
    struct perf_input *inputs; // owned array
    size_t input_count;
    bool inputs_mapped; // names and bytes are owned, too: bytes are mappings. false: the caller's

    struct perf_attr_array attrs;
    struct perf_event_array events;
    struct perf_sample_array samples;     // where limits.samples asks for them
    struct perf_switches_array switches;  // ascending cpu, then thread
    struct perf_aux_stream_array streams; // ascending ring
    struct perf_build_id_array build_ids;
    struct perf_bpf_function_array bpf_functions;
    struct perf_id_place_array id_places;
    struct perf_intel_pt intel_pt;
    struct perf_time_conversion time; // TIME_CONV, or AUXTRACE_INFO's

    // what the header says about the host; "" or 0: nothing
    char hostname[128], os_release[128], arch[64], perf_version[128], cpu_description[128];
    char cpuid[64]; // "GenuineIntel,6,78,3"
    unsigned cpu_family, cpu_model, cpu_stepping;
    char command_line[1024];
    uint32_t cpus_available, cpus_online;
    uint64_t total_memory_kib;
    struct perf_cpu_place_array cpus; // by CPU number, as far as known
    uint64_t first_sample_time, last_sample_time;
    bool has_clock_data; // the perf clock and the wall clock at one instant
    uint32_t clock_id;
    uint64_t clock_wall_ns, clock_perf_ns;

    // what the recording contained
    uint64_t counts[PERF_RECORD_TYPES]; // records by type; of compressed ones, the records inside
    uint64_t unknown_records;           // of types this reader does not know
    uint64_t compressed_bytes, decompressed_bytes;
    uint64_t lost_records;       // sum of LOST
    uint64_t lost_samples;       // sum of LOST_SAMPLES
    uint64_t aux_truncated;      // AUX records that report lost trace
    uint64_t aux_gaps;           // the same of gaps in it, or of another user of the hardware
    uint64_t trace_errors;       // AUXTRACE_ERROR: found by perf, of which AUX records say nothing
    uint64_t aux_bytes;          // over all streams
    uint64_t events_over_limit;  // not kept
    uint64_t samples_over_limit; // the same, when samples are kept
    uint64_t guest_records;      // events inside virtual machines: left out
    uint64_t samples_with_aux;   // --aux-sample: their trace is left out
    uint64_t without_time;       // events that lack the time they should have
    uint64_t complaint_count;    // number of malformed records, including those whose complaint was
                                 // not kept
    struct perf_complaint_array complaints;

    struct perf_arena_block *arena; // copies of records that were compressed, or are kept lean
    uint64_t arena_bytes;
};

void perf_data_free(struct perf_data *data);
// Unmaps its bytes and frees its name.
void perf_input_unmap(struct perf_input *input);

// A copy of the bytes that lives as long as *data; NULL: out of memory. At most 64 KiB.
const uint8_t *perf_data_keep(struct perf_data *data, const uint8_t *bytes, size_t count);

struct bpf_code; // profiler/trace/bpf_code_log.h

// Adds code of BPF programs that was collected beside the recording. Returns how many of the
// records are malformed and left out, or -1: out of memory.
int64_t perf_data_add_bpf_code(struct perf_data *data, const struct bpf_code *records,
                               size_t count);

// The switches of a CPU, or (PERF_NO_CPU) of a thread; NULL: there are none.
struct perf_switches *perf_switches_of(const struct perf_data *data, uint32_t cpu, uint32_t thread);

// --- AUX data ------------------------------------------------------------------------------------

// A pointer to bytes [offset, offset + bytes) of the stream. Points into the file where they lie in
// one extent, otherwise copies them into scratch (of at least `bytes`). The range must lie within
// the stream.
const uint8_t *perf_aux_view(const struct perf_aux_stream *stream, uint64_t offset, size_t bytes,
                             uint8_t *scratch);

// The extent that holds byte `offset` of the stream (offset < stream->bytes).
const struct perf_aux_extent *perf_aux_extent_at(const struct perf_aux_stream *stream,
                                                 uint64_t offset);

// --- time ----------------------------------------------------------------------------------------

// TSC to perf clock (ns) and back; the conversion must be valid.
uint64_t perf_time_of_tsc(const struct perf_time_conversion *conversion, uint64_t tsc);
uint64_t perf_tsc_of_time(const struct perf_time_conversion *conversion, uint64_t ns);

// --- reading (perf_data_open.c, perf_data_parse.c) -----------------------------------------------

// The thin opener: maps a perf.data file, the saved output of `perf record -o -`, a perf.data
// directory, or standard input ("-": copied to an unlinked temporary file first), and parses it.
int perf_data_open(const char *path, const struct perf_limits *limits, struct perf_data *out,
                   struct error *err);

// Parses inputs[0..count). The bytes must stay until perf_data_free. A header that cannot be used
// at all is ERROR_INPUT (file and byte offset named); everything after that is a complaint.
int perf_data_parse(const struct perf_input *inputs, size_t count, const struct perf_limits *limits,
                    struct perf_data *out, struct error *err);

#endif
