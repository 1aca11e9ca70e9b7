// SPDX-License-Identifier: MIT
//
// What profiler/doctor/doctor.h finds, on one screen or as a document.
#ifndef PROFILER_DOCTOR_DOCTOR_PRINT_H
#define PROFILER_DOCTOR_DOCTOR_PRINT_H

#include <stdbool.h>

#include "base/error.h"
#include "profiler/doctor/doctor.h"

struct doctor_options {
    bool json;
    bool all;   // the BPF programs one by one, too
    bool quiet; // only what is limited or missing
};

// Examines this host (check_backends: as doctor_examine's) and prints on stdout.
int doctor_print(const struct doctor_options *chosen, doctor_check check_backends,
                 struct error *err);

#endif
