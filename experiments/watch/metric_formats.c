// SPDX-License-Identifier: MIT
#include "experiments/watch/metric_formats.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// How much the header wants the media type: its q, 0 where it is not named.
static double wanted(const char *accept, const char *media_type)
{
    size_t length = strlen(media_type);
    double most = 0;
    while (*accept) {
        accept += strspn(accept, " \t,");
        size_t range = strcspn(accept, ",");
        if (strncasecmp(accept, media_type, length) == 0 && strchr(" \t;,", accept[length])) {
            double q = 1;
            for (size_t at = length; at < range; at++)
                if (accept[at] == ';') {
                    size_t blanks = strspn(accept + at + 1, " \t");
                    if (strncasecmp(accept + at + 1 + blanks, "q=", 2) == 0)
                        q = strtod(accept + at + 3 + blanks, NULL);
                }
            most = q > most ? q : most;
        }
        accept += range;
    }
    return most;
}

const struct metric_format *metric_format_accepted(const char *accept)
{
    static const struct metric_format *const formats[] = {&metric_openmetrics, &metric_protobuf};
    const struct metric_format *best = formats[0];
    double most = 0;
    for (size_t i = 0; accept && i < sizeof formats / sizeof *formats; i++) {
        double q = wanted(accept, formats[i]->media_type);
        if (q > most) {
            most = q;
            best = formats[i];
        }
    }
    return best;
}
