// SPDX-License-Identifier: MIT
//
// `taillight doctor [HOST]`: what a host can measure, this one or one behind ssh, and what each
// missing thing would take.
#ifndef EXPERIMENTS_DOCTOR_COMMAND_H
#define EXPERIMENTS_DOCTOR_COMMAND_H

int doctor_command(int argc, char **argv);

#endif
