// SPDX-License-Identifier: MIT
//
// What a capture says on stdout to whoever started it: a line of JSON each. It waits for no reader:
// what records must go on, and end, also where nobody reads, or a terminal is stopped.
#ifndef EXPERIMENTS_CAPTURE_CAPTURE_LINES_H
#define EXPERIMENTS_CAPTURE_CAPTURE_LINES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"

// A zeroed one is at the beginning.
struct capture_lines {
    struct ARRAY_OF(char) waiting; // to be read, whole lines but for the first
    uint64_t lost;                 // lines: so much waited already
};

// Takes the document over, and prints it at once where it can be. NULL is an error: no memory.
int capture_lines_say(struct capture_lines *lines, json_t *document, struct error *err);

// Prints what can be printed now; to be called every now and then.
int capture_lines_flush(struct capture_lines *lines, struct error *err);

// Waits until all is read, but no longer than until somebody interrupts; interrupted: who has done
// that already. Says on stderr what nobody has read.
int capture_lines_finish(struct capture_lines *lines, bool interrupted, struct error *err);

void capture_lines_free(struct capture_lines *lines);

#endif
