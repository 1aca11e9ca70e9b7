// SPDX-License-Identifier: MIT
//
// What long work tells the person who waits: one line on a terminal, rewritten in place; on
// anything else one plain line per phase, so that logs stay readable. Always on stderr.
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

#include <stdbool.h>

struct progress {
    bool quiet;
    bool terminal;
    bool open; // a line on the terminal awaits its end
};

// Looks at stderr once. quiet: say nothing at all.
void progress_init(struct progress *progress, bool quiet);

// Ends the line before and begins a new phase: "loading 10 s at 20000 requests/s".
void progress_phase(struct progress *progress, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Rewrites what follows the phase's text on a terminal; nothing elsewhere.
void progress_update(struct progress *progress, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void progress_end(struct progress *progress);

#endif
