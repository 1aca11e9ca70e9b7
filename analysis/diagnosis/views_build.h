// SPDX-License-Identifier: MIT
//
// Makes the views (views.h) of a diagnosis.
#ifndef ANALYSIS_DIAGNOSIS_VIEWS_BUILD_H
#define ANALYSIS_DIAGNOSIS_VIEWS_BUILD_H

#include "analysis/diagnosis/diagnosis.h"

// Fills diagnosis->views. candidates: the window's whole lifetimes, of which those around the
// median are the reference. -1: no memory.
int views_build(const struct diagnosis_input *in, const uint64_t *candidates, size_t count,
                struct diagnosis *diagnosis);
void views_free(struct diagnosis_views *views);

#endif
