// SPDX-License-Identifier: MIT
//
// The samples of a run (server/perf.data, which capture.json's samples.perf_data names): in which
// functions the server's cores were, and what that hints at for the causes of the diagnosis.
#ifndef ANALYSIS_RUN_SAMPLES_H
#define ANALYSIS_RUN_SAMPLES_H

#include <jansson.h>
#include <stdbool.h>

#include "analysis/samples/sample_hints.h"
#include "analysis/samples/sample_profile.h"
#include "profiler/clock/clock_map.h"

struct run_samples {
    bool present;       // there were samples and they could be read
    char problem[400];  // why samples that should be there could not be read; else ""
    unsigned frequency; // samples a second of each core that were asked for; 0: not known
    struct sample_profile profile;
    struct sample_hints hints; // for the first diagnosis
};

// Reads the samples and finds the hints. A recording that cannot be read is not an error:
// out->problem says why. Only lack of memory fails. clock: of the run's time. diagnosis NULL: no
// hints. The caller frees, also after a failure.
int run_samples_add(const char *run_dir, const json_t *capture, const struct clock_map *clock,
                    const struct diagnosis_input *in, const struct diagnosis *diagnosis,
                    struct run_samples *out, struct error *err);
void run_samples_free(struct run_samples *samples);

// null where the capture took none.
json_t *run_samples_json(const struct run_samples *samples);

// For people, of hint number `number`: "yes (A), 512 samples: lab_spin 91 % (12 %), ..." with the
// share of each function in the slice's samples, and (in the reference's); "" where there are too
// few. Behind the last hint: which causes had too few, or why there are no samples; and behind
// that, what of the recording could not be read. Returns out.
char *run_samples_line(const struct run_samples *samples, size_t number, char *out,
                       size_t out_bytes);

#endif
