// SPDX-License-Identifier: MIT
//
// Progress of long work: one line on a terminal, rewritten in place; on anything else one plain
// line per phase, so that logs stay readable. Always on stderr.
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

#include <stdbool.h>

struct progress {
    bool quiet;
    bool terminal;
    bool open; // the current line on the terminal is not ended yet
};

// Looks at stderr once. quiet: print nothing at all.
void progress_init(struct progress *progress, bool quiet);

// Ends the current line and begins a new phase: "loading 10 s at 20,000 requests/s".
void progress_phase(struct progress *progress, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// On a terminal, rewrites the line, cut to its width; elsewhere does nothing.
void progress_update(struct progress *progress, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void progress_end(struct progress *progress);

// Whether stderr takes a line now. A full pipe and a stopped terminal take none: who wrote to them
// would wait for a reader, perhaps for ever. Progress is not said then.
bool progress_is_heard(void);

#endif
