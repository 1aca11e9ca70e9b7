// SPDX-License-Identifier: MIT
#include "loadgen/load_hold.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

enum { LOOK_AGAIN_MS = 50 }; // whether a signal came, which the engine holds back meanwhile

static bool is_told_to_end(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1);
}

// Reads up to the line's end; false: there is none.
static bool read_line(char *line, size_t bytes)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    for (size_t used = 0; used + 1 < bytes;) {
        const int ready = poll(&input, 1, LOOK_AGAIN_MS);
        if (is_told_to_end())
            return false;
        if (ready == 0)
            continue;
        if (ready < 0 || read(STDIN_FILENO, line + used, 1) != 1)
            return false;
        if (line[used] == '\n') {
            line[used] = '\0';
            return true;
        }
        used++;
    }
    return false;
}

uint64_t load_hold(void *context, uint64_t needs_ns)
{
    char line[40], *end;
    (void)context;
    printf("{\"ready_ns\": %lld, \"needs_ns\": %llu}\n", (long long)monotonic_ns(),
           (unsigned long long)needs_ns);
    fflush(stdout);
    if (!read_line(line, sizeof line))
        return 0;
    const uint64_t begin_ns = strtoull(line, &end, 10);
    return end > line && *end == '\0' ? begin_ns : 0;
}
