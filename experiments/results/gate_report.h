// SPDX-License-Identifier: MIT
//
// What the gates of `taillight run` and `taillight compare` came to, and where it goes: lines on
// the terminal, JUnit XML, annotations of a build, the exit code.
#ifndef EXPERIMENTS_RESULTS_GATE_REPORT_H
#define EXPERIMENTS_RESULTS_GATE_REPORT_H

#include "analysis/compare/gate_output.h"
#include "base/options.h"
#include "base/progress.h"
#include "experiments/plan/experiment.h"
#include "experiments/common/run_folder.h"

struct gate_report {
    struct gate_result_array results;
    size_t waiting; // gates of an increase, which a run alone cannot judge
};

struct gate_report_options {
    const char *junit;
    bool annotations;
};

// For the table of a command whose options struct holds a struct gate_report_options as `member`.
#define GATE_REPORT_OPTIONS(type, member)                                                          \
    OPTION_STRING("junit", 0, "FILE", type, member.junit,                                          \
                  "write the gates there as JUnit XML, one test case each"),                       \
        OPTION_FLAG("annotations", 0, type, member.annotations,                                    \
                    "print failed gates as ::error and ::warning lines of GitHub Actions")

// Appends results as those of a part of the experiment ("": the whole); what is a part already is
// one of that: "long/second".
int gate_report_add(struct gate_report *report, const struct gate_result_array *results,
                    const char *part, struct error *err);

// Writes gates.json (docs/gates.md) into a folder, where there are any.
int gate_report_write_json(const struct gate_result_array *results, const struct run_folder *folder,
                           struct error *err);

// Judges what of the experiment's gates needs no base, from the folder of its run or repetitions;
// writes gates.json there and appends to the report (NULL: nothing is judged) as
// results of that part.
int gate_report_run(struct gate_report *report, const struct experiment *experiment,
                    const struct run_folder *folder, const char *part, struct progress *progress,
                    struct error *err);

// Prints the lines (out NULL: none) and writes what the options ask for. Annotations go to stdout,
// with json to stderr.
int gate_report_write(const struct gate_report *report, const struct gate_report_options *options,
                      const char *suite, bool json, FILE *out, struct error *err);
void gate_report_free(struct gate_report *report);

#endif
