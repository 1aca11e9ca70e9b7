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

#endif
