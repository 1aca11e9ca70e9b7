// SPDX-License-Identifier: MIT
//
// The checks behind profiler/doctor/doctor.h, one file a group. Each adds items.
#ifndef PROFILER_DOCTOR_DOCTOR_CHECKS_H
#define PROFILER_DOCTOR_DOCTOR_CHECKS_H

#include "profiler/doctor/doctor_item.h"

void doctor_check_machine(struct doctor_items *items);
void doctor_check_capture(struct doctor_items *items);
void doctor_check_network(struct doctor_items *items);
void doctor_check_programs(struct doctor_items *items);

// What the backends of a capture need, one check each, for the rows of the table of backends.
void doctor_check_events(struct doctor_items *items);
void doctor_check_functions(struct doctor_items *items);
void doctor_check_samples(struct doctor_items *items);
void doctor_check_processor_trace(struct doctor_items *items);

#endif
