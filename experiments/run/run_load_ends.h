// SPDX-License-Identifier: MIT
//
// How the loads of a run end: by themselves, each with its summary; or one of them before its time,
// and then all of them, each with what it measured until then.
#ifndef EXPERIMENTS_RUN_RUN_LOAD_ENDS_H
#define EXPERIMENTS_RUN_RUN_LOAD_ENDS_H

#include "experiments/run/run_phases.h"

enum { LOADER_NAME_BYTES = 80 };

// "the load generator", or that of which load.
char *loader_name(const struct run *run, const struct loader *loader, char out[LOADER_NAME_BYTES]);

// How many requests it is to send; and how long after its duration it may take to end.
double loader_requests(const struct experiment_load *load);
double loader_grace_s(const struct experiment_load *load);

// Takes a line from the begin of what a load has printed.
void loader_drop_line(struct text_buffer *output);

// Takes the lines that come while the load lasts: of slow replies, and of the live view, whose last
// goes to `live`. What is left begins the summary, if there is anything. Returns whether replies
// were slow.
bool loader_take_notices(struct text_buffer *output, char *live, size_t live_bytes);

// The error of a load whose process has ended and should not have.
int loader_end_error(const struct run *run, const struct loader *loader, int status,
                     struct error *err);

// ERROR_FAILED, or ERROR_INPUT, when a load beside the first, which is waited for, has failed. One
// that has ended well is left to loads_end_others.
int loads_check_others(struct run *run, struct error *err);

// What became of the first load, whose process has ended with that status.
int loads_take_end(struct run *run, int status, struct error *err);

// Waits for the loads beside the first, which has ended well, and keeps their summaries. Where one
// fails, those that are left are salvaged.
int loads_end_others(struct run *run, struct error *err);

// Of a run that cannot go on, because the server, the capture or a load is gone: all that still
// load are told to end, and what they measured until then is kept.
void loads_salvage(struct run *run);

#endif
