// SPDX-License-Identifier: MIT
//
// Reading a large file through a mapping without keeping all of it in memory: what was read is
// given back to the kernel.
#ifndef BASE_PAGES_H
#define BASE_PAGES_H

#include <stddef.h>
#include <stdint.h>

// Gives pages of a private read-only mapping of a file, which begins at `mapping`, back to the
// kernel; what is read again comes from the file again.
void pages_release(const uint8_t *mapping, const uint8_t *from, size_t bytes);

#endif
