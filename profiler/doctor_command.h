// SPDX-License-Identifier: MIT
//
// `taillight doctor [--json]`: what profiler/doctor.h finds, on one screen or as a document.
#ifndef PROFILER_DOCTOR_COMMAND_H
#define PROFILER_DOCTOR_COMMAND_H

int doctor_command(int argc, char **argv);

#endif
