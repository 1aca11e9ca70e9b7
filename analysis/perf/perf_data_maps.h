// SPDX-License-Identifier: MIT
//
// Which file was mapped where, in which process, when: the MMAP, MMAP2, COMM and FORK events of a
// perf.data replayed into address spaces. An address space is one process between two moments at
// which the meaning of an address changed: an exec, or a mapping that replaced another. Mappings
// that are merely added belong to the space from its beginning, so few spaces are needed.
#ifndef ANALYSIS_PERF_PERF_DATA_MAPS_H
#define ANALYSIS_PERF_PERF_DATA_MAPS_H

#include "analysis/perf/perf_data.h"
#include "base/error.h"

struct perf_mapping {
    uint64_t begin, end;     // addresses
    uint64_t file_offset;    // of begin
    const char *path;        // as the process (or kernel) saw it; lives in the perf_data
    const uint8_t *build_id; // NULL: not told
    uint8_t build_id_size;
    uint64_t inode; // 0: not told
};
struct perf_mapping_array ARRAY_OF(struct perf_mapping);

struct perf_address_space {
    uint32_t pid;      // PERF_NO_PID: the kernel's, which is in every process
    uint64_t from, to; // perf clock, [from, to); from 0: since before the recording
    struct perf_mapping_array mappings; // executable ones, by address, disjoint
};
struct perf_address_space_array ARRAY_OF(struct perf_address_space);

struct perf_maps {
    struct perf_address_space_array spaces; // by pid, then time
    uint64_t over_limit;                    // mappings left out because there were too many
};

// Replays the events. mapping_limit bounds the mappings held in all spaces together (0: 16
// million).
int perf_maps_build(const struct perf_data *data, uint64_t mapping_limit, struct perf_maps *out,
                    struct error *err);
void perf_maps_free(struct perf_maps *maps);

// The address space of a process at a time; NULL when nothing is known about it. pid PERF_NO_PID:
// the kernel's.
const struct perf_address_space *perf_maps_at(const struct perf_maps *maps, uint32_t pid,
                                              uint64_t time);

// The mapping that covers the address, or NULL.
const struct perf_mapping *perf_address_space_find(const struct perf_address_space *space,
                                                   uint64_t address);

#endif
