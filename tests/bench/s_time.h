// SPDX-License-Identifier: MIT
//
// What `openssl s_time -www` says of a run, as a number of connections. It marks each of them: `r`
// a resumed session, `*` a full handshake, whatever it was asked for (over TLS 1.3 -reuse resumes
// nothing without -www, since tickets come behind the handshake); a run of other handshakes than
// those asked for is none to compare with. The seconds that it prints are whole ones, a second too
// long at most: a rate is the caller's to find.
#ifndef TESTS_BENCH_S_TIME_H
#define TESTS_BENCH_S_TIME_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

static inline int s_time_read(const char *output, bool resumed, double *connections,
                              struct error *err)
{
    double bytes;
    const char *said = strstr(output, " connections in "), *mark;
    while (said && said > output && said[-1] != '\n')
        said--;
    if (!said || said - output < 3 || said[-2] != '\n' ||
        sscanf(said, "%lf connections in %*fs; %*s connections/user sec, bytes read %lf",
               connections, &bytes) != 2)
        return error_set(err, ERROR_INPUT, "openssl s_time did not print its result");
    for (mark = said - 3; mark > output && *mark == (resumed ? 'r' : '*');)
        mark--;
    const double marked = (double)(said - 3 - mark);
    if (marked == 0 || marked < *connections)
        return error_set(err, ERROR_INPUT, "openssl s_time: %.0f of %.0f handshakes were %s",
                         marked, *connections, resumed ? "resumed" : "full");
    if (bytes == 0)
        return error_set(err, ERROR_INPUT, "openssl s_time: no page came");
    return 0;
}

#endif
