// SPDX-License-Identifier: MIT
//
// What a page carries in little space: compressed (zlib, RFC 1950) and in base64 (RFC 4648), so
// that a browser reads a page of many messages as fast as one of few, shows it, and only then takes
// it apart (page_foot.html). Nothing in it can end the script element that it stands in.
#ifndef ANALYSIS_REPORT_PAGE_PAGE_PACKED_H
#define ANALYSIS_REPORT_PAGE_PAGE_PACKED_H

#include <stdio.h>

// A stream to write to; what comes of it is written to `out`, the last of it when the stream is
// closed. fclose fails where a write to `out` has failed, which shows in ferror(out). NULL: out of
// memory.
FILE *page_packed_open(FILE *out);

#endif
