// SPDX-License-Identifier: MIT
//
// What this host can measure, and what is needed for each thing it cannot. Whatever can be tried
// without leaving a trace is tried, rather than guessed from versions.
#ifndef PROFILER_DOCTOR_DOCTOR_H
#define PROFILER_DOCTOR_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "profiler/doctor/doctor_item.h"

// Adds items: what a capture can be made with, which the floor above knows.
typedef void (*doctor_check)(struct doctor_items *items);

// Makes the document of `taillight doctor --facts`, for a run folder's facts.json. What a capture
// can be made with is not tried: the run's own capture is about to, and writes it into its
// capture.json. The caller owns it.
json_t *doctor_facts_json(void);

// --- for people ----------------------------------------------------------------------------------
// What profiler/doctor/doctor.h finds, on one screen or as a document.

struct doctor_options {
    bool json;
    bool facts; // a document as well, of what a run writes down
    bool all;   // the BPF programs one by one, too
    bool quiet; // only what is limited or missing
};

// Examines this host and prints on stdout.
int doctor_print(const struct doctor_options *chosen, doctor_check check_backends,
                 struct error *err);

#endif
