// SPDX-License-Identifier: MIT
//
// The commands that are made of all rooms of experiments/. argv[0] is the command's name; all
// return the program's exit code.
#ifndef EXPERIMENTS_COMMANDS_H
#define EXPERIMENTS_COMMANDS_H

// `taillight run EXPERIMENT.yaml`: one experiment, from the file to the report.
int run_command(int argc, char **argv);

// `taillight compare BASE CANDIDATE`: what changed between two builds, by how much, because of
// what. 4 (inconclusive) when nothing could be compared.
int compare_command(int argc, char **argv);

// `taillight doctor [HOST]`: what this host, or one behind ssh, can measure, and what each missing
// thing would take.
int doctor_command(int argc, char **argv);

// `taillight history`: runs over time, and where their latency changed its level.
int history_command(int argc, char **argv);

// `taillight watch`: a server as it runs, interval by interval, until it is told to end.
int watch_command(int argc, char **argv);

#endif
