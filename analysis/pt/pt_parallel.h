// SPDX-License-Identifier: MIT
//
// Does the same work for each of many streams, on all cores. It guarantees no order of the results;
// decoding, which needs one, has threads of its own (pt_segments.h).
#ifndef ANALYSIS_PT_PT_PARALLEL_H
#define ANALYSIS_PT_PT_PARALLEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { PT_MOST_THREADS = 256 };

// How many threads to use: `asked`, or, for 0, as many as this process has cores; at least 1, at
// most PT_MOST_THREADS.
unsigned pt_parallel_threads(unsigned asked);

// The same for work on that many bytes: with `asked` 0 no more than have `bytes_a_thread` each, for
// which one more thread brings what starting it costs; at least 1.
unsigned pt_parallel_worth(unsigned asked, uint64_t bytes, uint64_t bytes_a_thread);

// Called by several threads, but once for each index. Returns a negative error with *err set when
// it fails.
typedef int pt_parallel_work(void *context, size_t index, struct error *err);

// Does the work for each of [0, count) and returns when all is done. Indices are begun in ascending
// order; after a failure no more are begun, and of several failures the first index's is returned.
int pt_parallel(size_t count, unsigned threads, pt_parallel_work *work, void *context,
                struct error *err);

#endif
