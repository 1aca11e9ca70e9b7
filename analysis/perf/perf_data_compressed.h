// SPDX-License-Identifier: MIT
//
// COMPRESSED and COMPRESSED2 records.
#ifndef ANALYSIS_PERF_PERF_DATA_COMPRESSED_H
#define ANALYSIS_PERF_PERF_DATA_COMPRESSED_H

#include "analysis/perf/perf_data_reader.h"

// Reads the whole records of bytes[0, count). Returns how many bytes they took; *stopped when
// what follows cannot be read. base: their place in the input (not for compressed ones).
typedef size_t perf_records_read(struct perf_reader *reader, const uint8_t *bytes, uint64_t count,
                                 uint64_t base, bool *stopped);

// Decompresses a record and reads the complete records in it with `read_records`.
void perf_read_compressed(struct perf_reader *reader, const uint8_t *record, size_t size,
                          perf_records_read *read_records);
// Ends an input: complains about an incomplete record at its end.
void perf_inflater_end(struct perf_reader *reader);

#endif
