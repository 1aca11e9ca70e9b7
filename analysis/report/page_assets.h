// SPDX-License-Identifier: MIT
//
// The pages' own files, inside the program: templates, their style and their scripts.
#ifndef ANALYSIS_REPORT_PAGE_ASSETS_H
#define ANALYSIS_REPORT_PAGE_ASSETS_H

#include <stddef.h>

struct page_asset {
    const char *name;
    const char *begin, *end;
};

// Ends with a NULL name.
extern const struct page_asset page_assets[];

#endif
