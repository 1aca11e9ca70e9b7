// SPDX-License-Identifier: MIT
#include "analysis/words.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

void words_add(char *text, size_t bytes, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, bytes - used, format, args);
    va_end(args);
}

char *words_percent(double fraction, char out[WORDS_NUMBER_BYTES])
{
    double percent = 100 * fraction;
    if (fabs(percent) >= 1e6)
        snprintf(out, WORDS_NUMBER_BYTES, "%+.3g", percent);
    else
        snprintf(out, WORDS_NUMBER_BYTES, "%+.*f", fabs(percent) < 9.95 ? 1 : 0, percent);
    return out;
}

char *words_signed_ns(double ns, char out[WORDS_NUMBER_BYTES])
{
    out[0] = ns < 0 ? '-' : '+';
    units_format_ns(fabs(ns), out + 1, WORDS_NUMBER_BYTES - 1);
    return out;
}
