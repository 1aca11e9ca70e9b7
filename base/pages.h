// SPDX-License-Identifier: MIT
//
// Reads a large file through a mapping without keeping all of it in memory: pages that have been
// read are given back to the kernel.
#ifndef BASE_PAGES_H
#define BASE_PAGES_H

#include <stddef.h>
#include <stdint.h>

// Gives pages of a private read-only mapping of a file back to the kernel; `mapping` is where it
// begins. Reading them again reads the file again.
void pages_release(const uint8_t *mapping, const uint8_t *from, size_t bytes);

#endif
