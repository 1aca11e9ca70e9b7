// SPDX-License-Identifier: MIT
//
// The state of a parse, shared by the readers of all kinds of records: its result, complaints, and
// the attributes that define the layout of records. Used by perf_data_*.c only.
#ifndef ANALYSIS_PERF_PERF_DATA_READER_H
#define ANALYSIS_PERF_PERF_DATA_READER_H

#include "analysis/perf/perf_data.h"
#include "base/pages.h"

// The fields at the end of every kernel record when attr.sample_id_all is set: those that
// attr.sample_type names, in this order, 8 bytes each.
static const uint64_t perf_id_fields = PERF_SAMPLE_HAS_TID | PERF_SAMPLE_HAS_TIME |
                                       PERF_SAMPLE_HAS_ID | PERF_SAMPLE_HAS_STREAM_ID |
                                       PERF_SAMPLE_HAS_CPU | PERF_SAMPLE_HAS_IDENTIFIER;

enum {
    PERF_ATTR_BYTES_NEEDED = 48, // up to and including the flags
    PERF_ATTR_BYTES_MOST = 4096,
};

struct perf_id_entry {
    uint64_t id;
    uint32_t attr;
};
struct perf_id_entry_array ARRAY_OF(struct perf_id_entry);

struct perf_reader {
    struct perf_data *data;
    struct perf_limits limits;
    uint32_t input;    // being read
    uint64_t offset;   // offset of the current record in that input
    uint64_t released; // the input's pages before this offset were given back
    uint64_t switches; // kept in perf_data.switches, over all CPUs
    bool compressed;   // the current record was compressed, so it must be copied to be kept
    struct perf_inflater *inflater; // of the input being read, NULL until needed
    struct perf_id_entry_array ids; // ascending id, once attrs_indexed
    bool attrs_indexed;
    unsigned times_indexed;
    size_t id_count;    // of all attrs
    bool attrs_alike;   // all attrs lay out sample_id the same way
    size_t id_from_end; // position of the id in a record's sample_id, in u64 from the end; 0: none
    bool attr_takes_aux;
    const uint8_t *descriptions; // EVENT_DESC, which a pipe has before the attributes it names
    uint64_t descriptions_bytes;
    bool out_of_memory;
};

// Counts a complaint; keeps the first PERF_COMPLAINTS_KEPT with the current record's place.
void perf_complain(struct perf_reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// A copy of compressed data that lives as long as the perf_data; NULL: no memory.
const uint8_t *perf_copy_record(struct perf_reader *reader, const uint8_t *record, size_t size);

// Gives [from, to) of an input back to the kernel, if that is a mapping.
static inline void perf_release(const struct perf_reader *reader, uint32_t input, uint64_t from,
                                uint64_t to)
{
    const uint8_t *data = reader->data->inputs[input].data;
    if (reader->limits.mapped && from < to)
        pages_release(data, data + from, to - from);
}

// An attribute and its ids, each of u64.
void perf_add_attr(struct perf_reader *reader, const uint8_t *attr, size_t attr_bytes,
                   const uint8_t *ids, size_t id_count);
// Builds the index of ids, and finds what all attributes have in common, unless that was done.
void perf_index_attrs(struct perf_reader *reader);
// The attribute with that id, or NULL.
struct perf_attr *perf_attr_of_id(struct perf_reader *reader, uint64_t id);

// --- context switches of a lean reading, by CPU --------------------------------------------------

// Adds a SWITCH or SWITCH_CPU_WIDE to its CPU's (or thread's) list.
void perf_take_switch(struct perf_reader *reader, const struct perf_event *event);
// Once everything is read: sorts the lists.
void perf_finish_switches(struct perf_data *data);

// --- COMPRESSED and COMPRESSED2 records ----------------------------------------------------------

// Reads the whole records of bytes[0, count). Returns how many bytes they took; *stopped when
// what follows cannot be read. base: their place in the input (not for compressed ones).
typedef size_t perf_records_read(struct perf_reader *reader, const uint8_t *bytes, uint64_t count,
                                 uint64_t base, bool *stopped);

// Decompresses a record and reads the complete records in it with `read_records`.
void perf_read_compressed(struct perf_reader *reader, const uint8_t *record, size_t size,
                          perf_records_read *read_records);
// Ends an input: complains about an incomplete record at its end.
void perf_inflater_end(struct perf_reader *reader);

// --- the readers of the other records ------------------------------------------------------------

// perf_data_samples.c
void perf_read_sample(struct perf_reader *reader, const uint8_t *record, size_t size);
// Once everything is read: sorts them by time.
void perf_sort_samples(struct perf_sample_array *samples);

// perf_data_auxtrace.c
void perf_read_auxtrace_info(struct perf_reader *reader, const uint8_t *record, size_t size);
void perf_read_time_conversion(struct perf_reader *reader, const uint8_t *record, size_t size);
// `available` bytes follow the record.
void perf_read_auxtrace(struct perf_reader *reader, const uint8_t *record, size_t size,
                        const uint8_t *data, uint64_t available);
// Once everything is read: finds how much of each snapshot repeats the previous one.
void perf_finish_streams(struct perf_reader *reader);

// perf_data_features.c
void perf_read_feature(struct perf_reader *reader, uint64_t feature, const uint8_t *bytes,
                       uint64_t count);
void perf_read_build_id(struct perf_reader *reader, const uint8_t *record, size_t size);
void perf_read_event_update(struct perf_reader *reader, const uint8_t *record, size_t size);
// Once everything is read: sets the names of the attributes.
void perf_finish_attrs(struct perf_reader *reader);

#endif
