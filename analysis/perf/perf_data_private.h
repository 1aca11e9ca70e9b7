// SPDX-License-Identifier: MIT
//
// What the parts of the perf.data reader share: the state of a parse, complaints, and checked
// access to bytes. Nothing outside analysis/perf_data*.c includes this.
#ifndef ANALYSIS_PERF_DATA_PRIVATE_H
#define ANALYSIS_PERF_DATA_PRIVATE_H

#include <string.h>

#include "analysis/perf/perf_data.h"
#include "base/pages.h"

struct perf_arena_block {
    struct perf_arena_block *next;
    size_t used, capacity;
    uint8_t bytes[];
};

struct perf_data_private {
    struct perf_arena_block *arena; // copies of records that were compressed
    uint64_t arena_bytes;
    struct perf_input *mapped; // by perf_data_open: unmapped and freed at the end
    size_t mapped_count;
};

struct perf_id_entry {
    uint64_t id;
    uint32_t attr;
};
struct perf_id_entry_array ARRAY_OF(struct perf_id_entry);

struct perf_inflater; // perf_data_compressed.c

struct perf_reader {
    struct perf_data *data;
    struct perf_limits limits;
    uint32_t input;                 // being read
    uint64_t offset;                // of the record at hand in that input
    uint64_t released;              // what lies before it in that input was given back
    uint64_t switches;              // kept apart, of all CPUs
    bool compressed;                // the record at hand was, so it must be copied to be kept
    struct perf_inflater *inflater; // of the input being read, NULL until needed
    struct perf_id_entry_array ids; // ascending id, once attrs_indexed
    bool attrs_indexed;
    unsigned times_indexed;
    size_t id_count;    // of all attrs
    bool attrs_alike;   // all attrs lay out sample_id the same way
    size_t id_from_end; // where the id stands in a record's sample_id, in u64 from the end; 0: not
    bool attr_takes_aux;
    const uint8_t *descriptions; // EVENT_DESC, which a pipe has before the attributes it names
    uint64_t descriptions_bytes;
    bool out_of_memory;
};

static inline uint16_t perf_u16(const uint8_t *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline uint32_t perf_u32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline uint64_t perf_u64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline struct perf_record_header perf_header_at(const uint8_t *record)
{
    return (struct perf_record_header){perf_u32(record), perf_u16(record + 4),
                                       perf_u16(record + 6)};
}

// Counts, and keeps the first PERF_COMPLAINTS_KEPT with the place of the record at hand.
void perf_complain(struct perf_reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// perf_data_header.c
// Reads the header of inputs[0]; *begin and *end: where its records lie.
int perf_read_header(struct perf_reader *reader, uint64_t *begin, uint64_t *end, struct error *err);
// Once everything is read: the names of the attributes.
void perf_finish_attrs(struct perf_reader *reader);
// An attribute and its ids, each of u64.
void perf_add_attr(struct perf_reader *reader, const uint8_t *attr, size_t attr_bytes,
                   const uint8_t *ids, size_t id_count);
void perf_read_feature(struct perf_reader *reader, uint64_t feature, const uint8_t *bytes,
                       uint64_t count);
void perf_read_build_id(struct perf_reader *reader, const uint8_t *record, size_t size);
void perf_read_event_update(struct perf_reader *reader, const uint8_t *record, size_t size);

// perf_data_bpf.c
void perf_read_bpf_programs(struct perf_reader *reader, const uint8_t *bytes, uint64_t count);

// perf_data_auxtrace.c
void perf_read_auxtrace_info(struct perf_reader *reader, const uint8_t *record, size_t size);
void perf_read_time_conversion(struct perf_reader *reader, const uint8_t *record, size_t size);
// `available` bytes follow the record.
void perf_read_auxtrace(struct perf_reader *reader, const uint8_t *record, size_t size,
                        const uint8_t *data, uint64_t available);
// Once everything is read: finds what of a snapshot repeats the one before.
void perf_finish_streams(struct perf_reader *reader);

// perf_data_events.c
// Checks a kernel record, takes its sample_id and keeps it as an event.
void perf_read_sideband(struct perf_reader *reader, const uint8_t *record, size_t size);
// The attribute with that id, or NULL.
struct perf_attr *perf_attr_of_id(struct perf_reader *reader, uint64_t id);
// Makes the ids and what all attributes have in common known; does nothing when they are.
void perf_index_attrs(struct perf_reader *reader);
// A copy that lives as long as the perf_data, for what was compressed; NULL: no memory.
const uint8_t *perf_copy_record(struct perf_reader *reader, const uint8_t *record, size_t size);

// perf_data_samples.c
void perf_read_sample(struct perf_reader *reader, const uint8_t *record, size_t size);
// Once everything is read: by time.
void perf_sort_samples(struct perf_sample_array *samples);

// perf_data_switches.c
void perf_take_switch(struct perf_reader *reader, const struct perf_event *event);
void perf_finish_switches(struct perf_data *data);

// perf_data_order.c
int perf_sort_events(struct perf_event_array *events);

// perf_data_records.c
// Reads the whole records of bytes[0, count). Returns how many bytes they took; *stopped when
// what follows cannot be read. base: their place in the input (not for compressed ones).
size_t perf_walk(struct perf_reader *reader, const uint8_t *bytes, uint64_t count, uint64_t base,
                 bool *stopped);

// Gives [from, to) of an input back to the kernel, if that is a mapping.
static inline void perf_release(const struct perf_reader *reader, uint32_t input, uint64_t from,
                                uint64_t to)
{
    const uint8_t *data = reader->data->inputs[input].data;
    if (reader->limits.mapped && from < to)
        pages_release(data, data + from, to - from);
}

// perf_data_compressed.c
void perf_inflate(struct perf_reader *reader, const uint8_t *bytes, size_t count);
// Ends an input: complains about half a record left over.
void perf_inflater_end(struct perf_reader *reader);

#endif
