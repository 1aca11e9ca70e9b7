// SPDX-License-Identifier: MIT
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *err, enum error_kind kind, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        err->kind = kind;
        vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
    }
    return -(int)kind;
}

int error_set_errno(struct error *err, enum error_kind kind, const char *format, ...)
{
    int saved = errno;
    if (err) {
        va_list args;
        va_start(args, format);
        err->kind = kind;
        int used = vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
        if (used >= 0 && (size_t)used < sizeof err->text)
            snprintf(err->text + used, sizeof err->text - (size_t)used, ": %s", strerror(saved));
    }
    errno = saved;
    return -(int)kind;
}

int error_prefix(struct error *err, const char *format, ...)
{
    char whole[sizeof err->text + sizeof err->text];
    va_list args;
    va_start(args, format);
    int used = vsnprintf(whole, sizeof whole, format, args);
    va_end(args);
    if (used >= 0 && (size_t)used < sizeof err->text) {
        snprintf(whole + used, sizeof whole - (size_t)used, ": %s", err->text);
        whole[sizeof err->text - 1] = '\0';
        memcpy(err->text, whole, sizeof err->text);
    }
    return -(int)err->kind;
}

int error_report(const struct error *err)
{
    fprintf(stderr, "taillight: %s\n", err->text);
    return (int)err->kind;
}
