// SPDX-License-Identifier: MIT
//
// Work that cannot be left midway, such as a system call that takes seconds, and a person who does
// not want to wait for it.
#ifndef BASE_PATIENCE_H
#define BASE_PATIENCE_H

#include <stdbool.h>

#include "base/error.h"

typedef int patience_fn(void *context);

// Calls the function in a thread of its own and waits until it returns or somebody interrupts
// (process_is_interrupted), before or meanwhile. True: it has returned *result. False: nobody waits
// for it any more. Then it may still be at work until the process ends, which should be soon, and
// what it uses must stay.
bool patience_call(patience_fn *function, void *context, int *result);

#endif
