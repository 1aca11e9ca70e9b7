// SPDX-License-Identifier: MIT
//
// Head-of-line blocking: which request a running thread works for while a message waits for it.
#ifndef ANALYSIS_DIAGNOSIS_BLOCKING_H
#define ANALYSIS_DIAGNOSIS_BLOCKING_H

#include "analysis/diagnosis/decomposer.h"

// Divides the running time [begin_ns, end_ns) of the message's thread between work for the message
// and work for requests ahead of it.
void decompose_thread_time(struct decomposer *decomposer, const struct lifetime *life,
                           uint32_t thread, int64_t begin_ns, int64_t end_ns);

#endif
