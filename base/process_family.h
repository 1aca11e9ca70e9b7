// SPDX-License-Identifier: MIT
//
// The processes that one run of this program consists of. Other runs of it, of whomever, have the
// same names: only the tree of processes tells them apart.
#ifndef BASE_PROCESS_FAMILY_H
#define BASE_PROCESS_FAMILY_H

#include <stdint.h>

#include "base/array.h"

struct process_family ARRAY_OF(uint32_t);

// Appends the process numbers of this process, of its farthest ancestor that runs the same program,
// and of all that descend from that one now. None where the numbers are not those that the kernel
// records: in a PID namespace of its own, or without /proc. The caller frees with array_free.
// -1: no memory.
int process_family_read(struct process_family *family);

#endif
