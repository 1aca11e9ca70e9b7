// SPDX-License-Identifier: MIT
//
// The page's own files, inside the program: the template, its style and its script.
#ifndef ANALYSIS_REPORT_PAGE_ASSETS_H
#define ANALYSIS_REPORT_PAGE_ASSETS_H

#include <stddef.h>

struct page_asset {
    const char *name;
    const char *begin, *end;
};

// In the order in which the scripts must stand; ends with a NULL name.
extern const struct page_asset page_assets[];

#endif
