// SPDX-License-Identifier: MIT
//
// Where the code of every process of a recording is: its mappings, resolved.
#ifndef ANALYSIS_CODE_CODE_BUILD_H
#define ANALYSIS_CODE_CODE_BUILD_H

#include "analysis/code/code_files.h"
#include "analysis/code/code_image.h"
#include "analysis/perf/perf_data_maps.h"
#include "base/error.h"

// Resolves every mapping. maps NULL: only files named by the user, in one space with pid
// PERF_NO_PID; otherwise those are added to every process's space: pages and ELF files replace
// mappings, core dumps fill the gaps between them (the vdso, JIT code). Files named by the user
// that cannot be read are ERROR_INPUT; everything else is a complaint.
int code_images_build(const struct perf_maps *maps, const struct code_image_options *options,
                      struct code_images *out, struct error *err);

#endif
