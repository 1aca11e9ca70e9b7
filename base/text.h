// SPDX-License-Identifier: MIT
//
// Text for people: sentences piece by piece, counts and signed numbers as they read them, and names
// made safe to show (a process is called whatever its owner wrote into it).
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/units.h"

enum { TEXT_NUMBER_BYTES = 40 };

// Appends; what does not fit is cut.
void text_append(char *text, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// A fraction as "+4.2" or "-38": in percent, with a decimal below ten. Returns out.
char *text_percent(double fraction, char out[TEXT_NUMBER_BYTES]);

// "+4.2 us". Returns out.
char *text_signed_ns(double ns, char out[TEXT_NUMBER_BYTES]);

// Copies text as valid UTF-8 that shows what it is: control characters become their visible
// pictures (U+2400 ff.), invalid bytes, other controls and bidirectional overrides become U+FFFD.
// ascii: everything outside printable ASCII becomes '?'. Cut at a character's end to fit. Returns
// out, always NUL-terminated.
char *text_clean(const char *text, bool ascii, char *out, size_t out_bytes);

// How many columns of a terminal UTF-8 text takes, of characters that take one each.
int text_columns(const char *text);

// How many columns a page of text has: those of the terminal, between 80 and 100; 100 where the
// stream is none.
int text_width(FILE *stream);

// Prints text in lines of at most width columns, broken at spaces, but not between a number and its
// unit, and ends the last. The first begins where the caller is, in column indent; the others are
// indented by as much. A word longer than a line is not broken.
void text_wrap(FILE *out, const char *text, int indent, int width);

// A share in whole percent, as every sentence and bar has it: never rounded up to all, nor down to
// nothing.
int text_whole_percent(double part, double whole);

// A share where whole percents do not tell enough, as in tables: "60.9 %", "9.53 %", three digits
// and never rounded up to all or down to nothing, as the report's page writes it; "-" of no whole.
const char *text_share(double part, double whole, char out[32]);

// So many a second, whole from 100 on: "0.5", "99.9", "20,000". Returns out.
char *text_rate(double rate, char out[TEXT_NUMBER_BYTES]);

// What so many things end in: "" for one, else "s".
static inline const char *text_plural(double count)
{
    return count == 1 ? "" : "s";
}

// And the verb that goes with so many.
static inline const char *text_were(double count)
{
    return count == 1 ? "was" : "were";
}

// An instant of a run: "3 s", "12.345 s", to the millisecond where it is not a whole second, as on
// the report's page. Returns out.
char *text_instant(double ns, char out[TEXT_NUMBER_BYTES]);

// 1234567 as "1,234,567". Returns out, which needs 32 bytes.
char *text_count(uint64_t count, char out[32]);

// The same in memory of the block where it stands, for the arguments of a sentence: every count in
// one is written so.
#define TEXT_COUNT(count) text_count((uint64_t)(count), (char[32]){""})
// A duration (units_format_ns), of nanoseconds or of microseconds, and an instant in such memory.
// Nothing writes a time that was measured in another way (tests/tree/test_times.sh).
#define TEXT_NS(ns)      units_format_ns((ns), (char[TEXT_NUMBER_BYTES]){""}, TEXT_NUMBER_BYTES)
#define TEXT_US(us)      TEXT_NS(1e3 * (us))
#define TEXT_INSTANT(ns) text_instant((ns), (char[TEXT_NUMBER_BYTES]){""})
// A rate in such memory: what is in front of "/s" is written so (tests/tree/test_times.sh).
#define TEXT_RATE(rate) text_rate((rate), (char[TEXT_NUMBER_BYTES]){""})
// A share in such memory.
#define TEXT_SHARE(part, whole) text_share((part), (whole), (char[32]){""})

#endif
