// SPDX-License-Identifier: MIT
#include "base/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void progress_init(struct progress *progress, bool quiet)
{
    *progress = (struct progress){.quiet = quiet, .terminal = isatty(STDERR_FILENO) == 1};
}

void progress_end(struct progress *progress)
{
    if (progress->open)
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
    if (progress->quiet)
        return;
    progress_end(progress);
    va_start(args, format);
    say("taillight: ", progress->terminal ? "" : "\n", format, args);
    va_end(args);
    progress->open = progress->terminal;
}

void progress_update(struct progress *progress, const char *format, ...)
{
    va_list args;
    if (progress->quiet || !progress->terminal)
        return;
    va_start(args, format);
    say("\r\033[Ktaillight: ", "", format, args);
    va_end(args);
    progress->open = true;
}
