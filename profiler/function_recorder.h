// SPDX-License-Identifier: MIT
//
// The `functions` backend: kernel function calls of the recorded cores from the function_graph
// tracer (profiler/function_tracer.h) into functions.tlog and functions.sym
// (profiler/function_log.h). The kernel's ring pages are read with libtraceevent as they are.
#ifndef PROFILER_FUNCTION_RECORDER_H
#define PROFILER_FUNCTION_RECORDER_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "base/map.h"
#include "profiler/function_tracer.h"

// --- symbols -------------------------------------------------------------------------------------
// The set of kernel addresses that were seen, and their names (/proc/kallsyms): the file
// functions.sym beside a function log.

// A set of addresses; zeroed: empty.
struct address_array ARRAY_OF(uint64_t);
struct function_symbols {
    struct address_array met;
    struct map known; // where in it
};

// -1: no memory.
int function_symbols_note(struct function_symbols *symbols, uint64_t address);

// Writes a line "<address> <name>" for each address with a name, ascending; the function is the one
// that begins at or nearest before the address. *named: how many.
int function_symbols_write(const struct function_symbols *symbols, const char *path, size_t *named,
                           struct error *err);
void function_symbols_free(struct function_symbols *symbols);

struct function_recorder;

// Sets the tracer up and switches it on; the log begins in out_dir. The caller frees.
int function_recorder_start(const struct function_tracer_settings *settings, const char *out_dir,
                            struct function_recorder **out, struct error *err);

// Reads what is in the kernel's buffers.
int function_recorder_poll(struct function_recorder *recorder, struct error *err);

// Switches the tracer off, so that it costs nothing any more.
int function_recorder_disable(struct function_recorder *recorder, struct error *err);

// Reads the rest, restores the tracer and writes both files. *document becomes the part of
// capture.json about it, owned by the caller:
//   {"log": "functions.tlog", "records", "dropped", "symbols", "unnamed"}
int function_recorder_stop(struct function_recorder *recorder, json_t **document,
                           struct error *err);

// Also restores the tracer, if that is still to be done. Harmless on NULL.
void function_recorder_free(struct function_recorder *recorder);

#endif
