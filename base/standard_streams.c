// SPDX-License-Identifier: MIT
#include "base/standard_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"

void standard_streams_open(void)
{
    int opened;
    do
        opened = open("/dev/null", O_RDWR); // the lowest number that is free
    while (opened >= 0 && opened <= STDERR_FILENO);
    if (opened >= 0)
        close(opened);
}

static bool reader_left(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO};
    return poll(&output, 1, 0) == 1 && output.revents & POLLERR;
}

int standard_output_end(int status)
{
    struct error err;
    errno = 0;
    const bool failed = fflush(stdout) == EOF, lost = failed || ferror(stdout);
    if (!lost || status == ERROR_FAILED || errno == EPIPE || reader_left())
        return status;
    if (failed)
        error_set_errno(&err, ERROR_FAILED, "not all that was printed could be written");
    else
        error_set(&err, ERROR_FAILED, "not all that was printed could be written");
    return error_report(&err);
}
