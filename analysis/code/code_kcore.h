// SPDX-License-Identifier: MIT
//
// The kernel's code as it was when it ran: a copy of /proc/kcore.
#ifndef ANALYSIS_CODE_CODE_KCORE_H
#define ANALYSIS_CODE_CODE_KCORE_H

#include "analysis/code/code_files.h"

// Adds its sections to `kernel`, where there is one for the recording; names kallsyms and modules
// beside it in the images. A kcore that the user named and that cannot be read is ERROR_INPUT.
int code_add_kcore(struct code_finder *finder, const struct perf_maps *maps,
                   struct code_section_array *kernel, struct error *err);

#endif
