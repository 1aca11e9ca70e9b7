// SPDX-License-Identifier: MIT
//
// How loads of several processes begin at the same instant (`--hold`): each says on stdout that it
// could begin, and whoever started them answers on stdin when to.
#ifndef LOADGEN_LOAD_HOLD_H
#define LOADGEN_LOAD_HOLD_H

#include <stdint.h>

// Prints {"ready_ns": NOW, "needs_ns": N} and waits for a line with the CLOCK_MONOTONIC instant to
// begin at, N from NOW at least. 0: do not begin, since the input ended without such a line or a
// signal that ends the load is pending. As engine_settings.agree; context: NULL.
uint64_t load_hold(void *context, uint64_t needs_ns);

#endif
