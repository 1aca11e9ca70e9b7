// SPDX-License-Identifier: MIT
//
// Makes perf.data files in memory, byte by byte, for the tests of their reader. Header-only.
#ifndef TESTS_ANALYSIS_PERF_PERF_DATA_MAKER_H
#define TESTS_ANALYSIS_PERF_PERF_DATA_MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/perf/perf_data_format.h"

struct maker {
    uint8_t *bytes;
    size_t count, capacity;
    size_t record; // where the record at hand begins
};

static inline size_t make_bytes(struct maker *maker, const void *bytes, size_t count)
{
    size_t at = maker->count;
    if (at + count > maker->capacity) {
        maker->capacity = (at + count) * 2;
        maker->bytes = realloc(maker->bytes, maker->capacity);
        if (!maker->bytes)
            abort();
    }
    if (count)
        memcpy(maker->bytes + at, bytes, count);
    maker->count += count;
    return at;
}

static inline void make_u16(struct maker *maker, uint16_t value)
{
    make_bytes(maker, &value, sizeof value);
}

static inline void make_u32(struct maker *maker, uint32_t value)
{
    make_bytes(maker, &value, sizeof value);
}

static inline void make_u64(struct maker *maker, uint64_t value)
{
    make_bytes(maker, &value, sizeof value);
}

// A string with its NUL, padded to 8 bytes as the kernel does.
static inline void make_text(struct maker *maker, const char *text)
{
    static const char zeros[8];
    size_t length = strlen(text) + 1;
    make_bytes(maker, text, length);
    make_bytes(maker, zeros, (8 - length % 8) % 8);
}

static inline void make_set_u64(struct maker *maker, size_t at, uint64_t value)
{
    memcpy(maker->bytes + at, &value, sizeof value);
}

// --- records -----------------------------------------------------------------------------------

static inline void make_record(struct maker *maker, uint32_t type, uint16_t misc)
{
    maker->record = maker->count;
    make_u32(maker, type);
    make_u16(maker, misc);
    make_u16(maker, 0);
}

static inline void make_record_end(struct maker *maker)
{
    uint16_t size = (uint16_t)(maker->count - maker->record);
    memcpy(maker->bytes + maker->record + 6, &size, sizeof size);
}

enum {
    MAKER_SAMPLE_TYPE = PERF_SAMPLE_HAS_IP | PERF_SAMPLE_HAS_TID | PERF_SAMPLE_HAS_TIME |
                        PERF_SAMPLE_HAS_CPU | PERF_SAMPLE_HAS_IDENTIFIER
};

// The sample_id that MAKER_SAMPLE_TYPE asks for, and the record's end.
static inline void make_sample_id(struct maker *maker, uint32_t pid, uint32_t tid, uint64_t time,
                                  uint32_t cpu, uint64_t id)
{
    make_u32(maker, pid);
    make_u32(maker, tid);
    make_u64(maker, time);
    make_u32(maker, cpu);
    make_u32(maker, 0);
    make_u64(maker, id);
    make_record_end(maker);
}

static inline void make_comm(struct maker *maker, uint32_t pid, const char *name, uint64_t time,
                             bool exec)
{
    make_record(maker, PERF_COMM, exec ? PERF_MISC_COMM_EXEC : 0);
    make_u32(maker, pid);
    make_u32(maker, pid);
    make_text(maker, name);
    make_sample_id(maker, time ? pid : 0, time ? pid : 0, time, 0, time ? 7 : 0);
}

static inline void make_mmap2(struct maker *maker, uint32_t pid, uint64_t address, uint64_t bytes,
                              uint64_t file_offset, const char *path, uint64_t time,
                              uint32_t protection)
{
    make_record(maker, PERF_MMAP2, PERF_MISC_USER);
    make_u32(maker, pid);
    make_u32(maker, pid);
    make_u64(maker, address);
    make_u64(maker, bytes);
    make_u64(maker, file_offset);
    make_u32(maker, 8);  // major
    make_u32(maker, 1);  // minor
    make_u64(maker, 77); // inode
    make_u64(maker, 0);  // its generation
    make_u32(maker, protection);
    make_u32(maker, 2);
    make_text(maker, path);
    make_sample_id(maker, pid, pid, time, 0, 7);
}

static inline void make_task(struct maker *maker, uint32_t type, uint32_t pid, uint32_t parent,
                             uint64_t time)
{
    make_record(maker, type, 0);
    make_u32(maker, pid);
    make_u32(maker, parent);
    make_u32(maker, pid);
    make_u32(maker, parent);
    make_u64(maker, time);
    make_sample_id(maker, parent, parent, time, 1, 7);
}

static inline void make_switch(struct maker *maker, bool out, uint32_t tid, uint32_t other,
                               uint64_t time, uint32_t cpu)
{
    make_record(maker, PERF_SWITCH_CPU_WIDE, out ? PERF_MISC_SWITCH_OUT : 0);
    make_u32(maker, other);
    make_u32(maker, other);
    make_sample_id(maker, tid, tid, time, cpu, 7);
}

static inline void make_text_poke(struct maker *maker, uint64_t address, const void *before,
                                  uint16_t before_bytes, const void *after, uint16_t after_bytes,
                                  uint64_t time)
{
    static const char zeros[8];
    make_record(maker, PERF_TEXT_POKE, PERF_MISC_KERNEL);
    make_u64(maker, address);
    make_u16(maker, before_bytes);
    make_u16(maker, after_bytes);
    make_bytes(maker, before, before_bytes);
    make_bytes(maker, after, after_bytes);
    make_bytes(maker, zeros, (8 - (4u + before_bytes + after_bytes) % 8) % 8);
    make_sample_id(maker, 0, 0, time, 0, 7);
}

static inline void make_auxtrace(struct maker *maker, uint32_t ring, uint32_t cpu, uint64_t offset,
                                 const void *data, size_t bytes)
{
    make_record(maker, PERF_AUXTRACE, 0);
    make_u64(maker, bytes);
    make_u64(maker, offset);
    make_u64(maker, 0x1234);
    make_u32(maker, ring);
    make_u32(maker, 99);
    make_u32(maker, cpu);
    make_u32(maker, 0);
    make_record_end(maker);
    make_bytes(maker, data, bytes);
}

// AUXTRACE_INFO of Intel PT.
static inline void make_pt_info(struct maker *maker, bool snapshot)
{
    const uint64_t values[] = {8, 31,    1789569706, 1000, 1, 0x400, 0x800, 3, snapshot,
                               1, 0x200, 0x3c000,    100,  2, 0x2,   24,    0};
    make_record(maker, PERF_AUXTRACE_INFO, 0);
    make_u32(maker, PERF_AUXTRACE_INTEL_PT);
    make_u32(maker, 0);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        make_u64(maker, values[i]);
    make_record_end(maker);
}

// --- files -------------------------------------------------------------------------------------

enum { MAKER_ATTR_BYTES = 64, MAKER_RECORDS_AT = 104 + MAKER_ATTR_BYTES + 16 + 8 };

static inline void make_attr(struct maker *maker, uint32_t type, uint64_t config,
                             uint64_t sample_type)
{
    make_u32(maker, type);
    make_u32(maker, MAKER_ATTR_BYTES);
    make_u64(maker, config);
    make_u64(maker, 1);
    make_u64(maker, sample_type);
    make_u64(maker, 0);
    make_u64(maker, (uint64_t)1 << PERF_ATTR_SAMPLE_ID_ALL_BIT);
    make_u64(maker, 0);
    make_u64(maker, 0);
}

// A file's header with one attribute (PMU 8, the maker's sample type) whose only id is 7. Records
// follow; make_file_end writes how many.
static inline struct maker make_file(void)
{
    struct maker maker = {0};
    make_bytes(&maker, "PERFILE2", 8);
    make_u64(&maker, 104);
    make_u64(&maker, MAKER_ATTR_BYTES + 16);
    make_u64(&maker, 104);
    make_u64(&maker, MAKER_ATTR_BYTES + 16);
    make_u64(&maker, MAKER_RECORDS_AT);
    for (int i = 0; i < 1 + 2 + 4; i++) // length of the records, event types, features
        make_u64(&maker, 0);
    make_attr(&maker, 8, 0x300e601, MAKER_SAMPLE_TYPE);
    make_u64(&maker, 104 + MAKER_ATTR_BYTES + 16);
    make_u64(&maker, 8);
    make_u64(&maker, 7);
    return maker;
}

static inline void make_file_end(struct maker *maker)
{
    make_set_u64(maker, 48, maker->count - MAKER_RECORDS_AT);
}

// The file's only feature, behind its end.
static inline void make_feature(struct maker *maker, unsigned feature, const struct maker *content)
{
    enum { BITMAP_AT = 72 };
    maker->bytes[BITMAP_AT + feature / 8] |= (uint8_t)(1u << feature % 8);
    make_u64(maker, maker->count + 16);
    make_u64(maker, content->count);
    make_bytes(maker, content->bytes, content->count);
}

// A BPF program of one function, as perf writes it into PERF_FEATURE_BPF_PROGRAMS; the feature
// begins with how many there are.
static inline void make_bpf_program(struct maker *maker, uint32_t id, uint64_t address,
                                    const void *code, uint32_t code_bytes)
{
    enum { INFO_BYTES = 128, ARRAYS = 1 << 0 | 1 << 3 | 1 << 4 };
    uint8_t info[INFO_BYTES] = {0};
    const uint32_t count = 1;
    const uint64_t code_at = 12;
    const uint64_t lengths_at = 8;
    memcpy(info + 4, &id, 4);
    memcpy(info + 16, &code_bytes, 4);
    memcpy(info + 24, &code_at, 8);
    memcpy(info + 104, &count, 4);
    memcpy(info + 108, &count, 4);
    memcpy(info + 120, &lengths_at, 8);
    make_u32(maker, INFO_BYTES);
    make_u32(maker, (uint32_t)code_at + code_bytes);
    make_u64(maker, ARRAYS);
    make_bytes(maker, info, sizeof info);
    make_u64(maker, address);
    make_u32(maker, code_bytes);
    make_bytes(maker, code, code_bytes);
}

static inline void make_bpf_event(struct maker *maker, bool load, uint32_t id, uint64_t time)
{
    make_record(maker, PERF_BPF_EVENT, 0);
    make_u16(maker, load ? 1 : 2);
    make_u16(maker, 0);
    make_u32(maker, id);
    make_u64(maker, 0x1122334455667788); // tag
    make_sample_id(maker, 0, 0, time, 0, 7);
}

static inline void make_ksymbol(struct maker *maker, bool unregister, uint64_t address,
                                uint32_t bytes, const char *name, uint64_t time)
{
    make_record(maker, PERF_KSYMBOL, 0);
    make_u64(maker, address);
    make_u32(maker, bytes);
    make_u16(maker, 1); // BPF
    make_u16(maker, unregister);
    make_text(maker, name);
    make_sample_id(maker, 0, 0, time, 0, 7);
}

#endif
