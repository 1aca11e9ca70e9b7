// SPDX-License-Identifier: MIT
#include "experiments/common/command_log.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/input_file.h"
#include "base/new_file.h"

int command_log_open(struct command_log *log, const char *path, struct error *err)
{
    int fd = new_file_create(path, err);
    log->file = fd >= 0 ? fdopen(fd, "w") : NULL;
    return fd < 0 ? fd : log->file ? 0 : error_set_errno(err, ERROR_FAILED, "cannot open %s", path);
}

void command_log_write(struct command_log *log, const char *place, const char *format, ...)
{
    struct timespec now;
    struct tm utc;
    char when[40];
    if (!log->file)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(when, sizeof when, "%FT%T", &utc);
    if (!log->dry)
        fprintf(log->file, "%s.%03ldZ ", when, now.tv_nsec / 1000000);
    fprintf(log->file, "%s: ", place);
    va_list args;
    va_start(args, format);
    vfprintf(log->file, format, args);
    va_end(args);
    fputc('\n', log->file);
    fflush(log->file);
}

void command_log_close(struct command_log *log)
{
    if (log->file && !log->dry)
        fclose(log->file);
    log->file = NULL;
}

char *command_log_last_line(const char *path, char *out, size_t out_bytes)
{
    char tail[2048];
    ssize_t got = 0;
    out[0] = '\0';
    int fd = input_open(path, NULL);
    if (fd >= 0) {
        off_t end = lseek(fd, 0, SEEK_END),
              from = end > (off_t)sizeof tail - 1 ? end - (off_t)sizeof tail + 1 : 0;
        got = pread(fd, tail, sizeof tail - 1, from);
        close(fd);
    }
    while (got > 0 && (tail[got - 1] == '\0' || isspace((unsigned char)tail[got - 1])))
        got--;
    tail[got > 0 ? got : 0] = '\0';
    const char *line = strrchr(tail, '\n');
    snprintf(out, out_bytes, "%s", line ? line + 1 : tail);
    for (char *at = out; *at; at++)
        if (iscntrl((unsigned char)*at))
            *at = ' ';
    return out;
}
