// SPDX-License-Identifier: MIT
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// Texts are put together beside the error: what they are made of may be that error's own text.
static int error_write(struct error *err, const char *format, va_list args)
{
    char text[sizeof err->text] = "";
    int used = vsnprintf(text, sizeof text, format, args);
    memcpy(err->text, text, strlen(text) + 1);
    return used;
}

int error_set(struct error *err, enum error_kind kind, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        err->kind = kind;
        error_write(err, format, args);
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
        int used = error_write(err, format, args);
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
    const bool is_there = used > 0 && strncmp(err->text, whole, (size_t)used) == 0 &&
                          strncmp(err->text + used, ": ", 2) == 0;
    if (used >= 0 && (size_t)used < sizeof err->text && !is_there) {
        snprintf(whole + used, sizeof whole - (size_t)used, ": %s", err->text);
        whole[sizeof err->text - 1] = '\0';
        memcpy(err->text, whole, sizeof err->text);
    }
    return -(int)err->kind;
}

int error_of(struct error *err, enum error_kind kind, const char *who, const char *text)
{
    const bool is_named = strstr(text, who) != NULL;
    return error_set(err, kind, "%s%s%s", is_named ? "" : who, is_named ? "" : ": ", text);
}

// What one of our own commands printed may be in it, which began with our name as well.
static void drop_own_names(char *text)
{
    static const char name[] = "taillight: ";
    const size_t length = sizeof name - 1;
    for (char *at = text; (at = strstr(at, name));)
        if (at == text || (at - text >= 2 && memcmp(at - 2, ": ", 2) == 0))
            memmove(at, at + length, strlen(at + length) + 1);
        else
            at += length;
}

int error_report(const struct error *err)
{
    char text[sizeof err->text];
    memcpy(text, err->text, sizeof text);
    // What a file, a server or another machine said may be in it: nothing of that commands the
    // terminal.
    for (char *at = text; *at; at++)
        if (((unsigned char)*at < ' ' && *at != '\n') || *at == 0x7f)
            *at = '?';
    drop_own_names(text);
    fprintf(stderr, "taillight: %s\n", text);
    return (int)err->kind;
}
