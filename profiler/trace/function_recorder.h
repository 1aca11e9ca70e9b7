// SPDX-License-Identifier: MIT
//
// The `functions` backend: kernel function calls of the recorded cores from the function_graph
// tracer (profiler/trace/function_tracer.h) into functions.tlog and functions.sym
// (profiler/trace/function_log.h). The kernel's ring pages are read with libtraceevent as they are.
#ifndef PROFILER_TRACE_FUNCTION_RECORDER_H
#define PROFILER_TRACE_FUNCTION_RECORDER_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "profiler/trace/function_tracer.h"

struct function_recorder;

// Sets the tracer up and switches it on; the log begins in out_dir. The caller frees.
int function_recorder_start(const struct function_tracer_settings *settings, const char *out_dir,
                            struct function_recorder **out, struct error *err);

// Records these cores as well from now on.
int function_recorder_follow(struct function_recorder *recorder, const cpu_set_t *cores,
                             struct error *err);

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
