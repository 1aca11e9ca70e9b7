// SPDX-License-Identifier: MIT
//
// The protocols whose messages can be told apart by their framing (workloads/framing/framing.h).
#ifndef WORKLOADS_FRAMING_FRAMING_PROTOCOLS_H
#define WORKLOADS_FRAMING_FRAMING_PROTOCOLS_H

#include "workloads/framing/framing.h"

// By its name; NULL: there is none.
const struct framing_grammar *framing_find(const char *name);

// The i-th name; NULL behind the last.
const char *framing_name(size_t i);

#endif
