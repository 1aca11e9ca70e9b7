// SPDX-License-Identifier: MIT
//
// The shape in time of what slows requests: whether it comes at regular intervals, all in one
// stretch of the window, or more and more (or less and less) often. Said only when chance would
// make it look so in fewer than one in a thousand runs.
#ifndef ANALYSIS_DIAGNOSIS_RHYTHM_H
#define ANALYSIS_DIAGNOSIS_RHYTHM_H

#include <stddef.h>
#include <stdint.h>

enum rhythm_shape { RHYTHM_NONE, RHYTHM_PERIODIC, RHYTHM_STRETCH, RHYTHM_RISING, RHYTHM_FALLING };

// A slow request: from when to when it was there. Those that overlap were slowed together.
struct rhythm_message {
    int64_t begin_ns, end_ns;
};

struct rhythm {
    enum rhythm_shape shape;
    size_t times;           // how often it came; messages that overlap are one time
    double share;           // of the times: on the beat, or within the stretch
    double period_ns;       // RHYTHM_PERIODIC
    int64_t from_ns, to_ns; // RHYTHM_STRETCH
};

// The messages may come in any order and are sorted by begin; [begin_ns, end_ns) is the window. -1:
// no memory.
int rhythm_find(struct rhythm *out, struct rhythm_message *messages, size_t count, int64_t begin_ns,
                int64_t end_ns);

// "every 20.0 ms (98 % of 51 times)"; "" for RHYTHM_NONE. Times count from begin_ns. Returns out.
char *rhythm_words(const struct rhythm *rhythm, int64_t begin_ns, char *out, size_t out_bytes);

#endif
