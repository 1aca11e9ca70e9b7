// SPDX-License-Identifier: MIT
//
// The results of the gates of `taillight run` and `taillight compare`, and where they are written:
// lines on the terminal, JUnit XML, annotations of a build, the exit code.
#ifndef EXPERIMENTS_RESULTS_GATE_REPORT_H
#define EXPERIMENTS_RESULTS_GATE_REPORT_H

#include "analysis/compare/gate_output.h"
#include "base/options.h"
#include "experiments/plan/experiment.h"
#include "experiments/common/run_folder.h"

struct gate_report {
    struct gate_result_array results;
    size_t waiting; // gates on an increase, which need a base to compare with
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

// Appends results under the name of a part of the experiment ("": the whole). A result that has a
// part already gets both names: "long/second".
int gate_report_add(struct gate_report *report, const struct gate_result_array *results,
                    const char *part, struct error *err);

// Writes gates.json (docs/gates.md) into a folder; no file when there are no results.
int gate_report_write_json(const struct gate_result_array *results, const struct run_folder *folder,
                           struct error *err);

// Has the runs of each load of the experiment keep what those of its gates that need no base are
// judged on. To be called before they are analyzed. report NULL: nothing will be judged.
int gate_report_want(const struct gate_report *report, const struct experiment *experiment,
                     struct run_set_array *runs, struct error *err);

// Judges those gates on all runs of the experiment, load by load; writes gates.json into its folder
// and appends the results to the report under that part. report NULL: nothing is judged.
int gate_report_runs(struct gate_report *report, const struct experiment *experiment,
                     const struct run_folder *folder, const struct run_set_array *runs,
                     const char *part, struct error *err);

// Whether what the options ask for could be written now, for who is to work long for it.
int gate_report_try(const struct gate_report_options *options, struct error *err);

// Prints a line for each gate to `out` (NULL: none) and writes what the options ask for.
// Annotations go to stdout, or, with json, to stderr.
int gate_report_write(const struct gate_report *report, const struct gate_report_options *options,
                      const char *suite, bool json, FILE *out, struct error *err);
void gate_report_free(struct gate_report *report);

#endif
