// SPDX-License-Identifier: MIT
#include "base/progress.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void progress_init(struct progress *progress, bool quiet)
{
    *progress = (struct progress){.quiet = quiet, .terminal = isatty(STDERR_FILENO) == 1};
}

bool progress_is_heard(void)
{
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1;
}

void progress_end(struct progress *progress)
{
    if (progress->open && progress_is_heard())
        fputc('\n', stderr);
    progress->open = false;
}

__attribute__((format(printf, 3, 0), nonnull)) static void
say(const char *before, const char *after, const char *format, va_list args)
{
    fputs(before, stderr);
    vfprintf(stderr, format, args);
    fputs(after, stderr);
    fflush(stderr);
}

void progress_phase(struct progress *progress, const char *format, ...)
{
    va_list args;
    if (progress->quiet || !progress_is_heard())
        return;
    progress_end(progress);
    va_start(args, format);
    say("taillight: ", progress->terminal ? "" : "\n", format, args);
    va_end(args);
    progress->open = progress->terminal;
}

// A line longer than the terminal is wide would wrap, and could not be rewritten.
static void cut_to_width(char *line)
{
    struct winsize size;
    unsigned columns = 0;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
        return;
    for (; *line; line++) {
        bool begins = (*line & 0xc0) != 0x80; // a character, in UTF-8
        if (begins && ++columns >= size.ws_col) {
            *line = '\0';
            return;
        }
    }
}

void progress_update(struct progress *progress, const char *format, ...)
{
    va_list args;
    char line[600] = "taillight: ";
    const size_t prefix = strlen(line);
    if (progress->quiet || !progress->terminal || !progress_is_heard())
        return;
    va_start(args, format);
    vsnprintf(line + prefix, sizeof line - prefix, format, args);
    va_end(args);
    cut_to_width(line);
    fprintf(stderr, "\r\033[K%s", line);
    fflush(stderr);
    progress->open = true;
}
