// SPDX-License-Identifier: MIT
//
// Slews this machine's clock by +PPM and -PPM in turn, for PERIOD_MS each, until its input ends (a
// minute at most), and puts the clock back however that ends:
//
//     slew PPM PERIOD_MS
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/profiler/clock/clock_disturbance.h"

enum { LONGEST_MS = 60000 };

// Half a period first, so that the clock stays about where it was.
static void slew(long base, long ppm, long period_ms)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    long wait = period_ms / 2, left = LONGEST_MS;
    for (; left > 0 && poll(&input, 1, (int)wait) == 0; left -= wait, ppm = -ppm) {
        set_frequency(base + ppm * 65536); // the kernel stops at 500 ppm
        wait = period_ms;
    }
}

int main(int argc, char **argv)
{
    struct clock_state saved;
    long ppm = argc == 3 ? strtol(argv[1], NULL, 10) : 0;
    long period_ms = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    if (ppm < 1 || ppm > 500 || period_ms < 2 || period_ms > 10000) {
        fputs("usage: slew PPM PERIOD_MS\n", stderr);
        return 2;
    }
    int skipped = clock_state_save(&saved);
    if (skipped)
        return skipped;
    signal(SIGINT, SIG_IGN); // the child ends, the parent restores
    signal(SIGTERM, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGTERM, SIG_DFL);
        slew(saved.frequency, ppm, period_ms);
        _exit(0);
    }
    if (child > 0)
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
    clock_state_restore(&saved);
    return child > 0 ? 0 : 1;
}
