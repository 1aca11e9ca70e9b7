// SPDX-License-Identifier: MIT
//
// Errors are values. The function that meets a failure fills a struct error with a sentence that
// says what failed, on what, why, and what to do about it; everyone above passes it on unchanged,
// and the command prints it once. The kind doubles as the program's exit code.
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdbool.h>

enum error_kind {
    ERROR_NONE = 0,
    ERROR_FAILED = 1,       // the work could not be done
    ERROR_INPUT = 2,        // bad usage or input: the message names the file, line or host
    ERROR_GATE = 3,         // a gate failed: regression, SLO missed
    ERROR_INCONCLUSIVE = 4, // "N/A": not enough evidence for a verdict
};

struct error {
    enum error_kind kind;
    char text[1000]; // one sentence, no trailing newline
};

// Fills *err (when not NULL) and returns -kind, so that callers can `return error_set(...)`.
int error_set(struct error *err, enum error_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// The same, with ": <strerror(errno)>" appended. Preserves errno.
int error_set_errno(struct error *err, enum error_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Puts "<context>: " in front of the text of an error that is already set. Returns -err->kind.
int error_prefix(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

// What was said by or of somebody: "WHO: TEXT", or the text alone where it names them already.
// Returns -kind.
int error_of(struct error *err, enum error_kind kind, const char *who, const char *text);

// Prints "taillight: <text>" to stderr and returns the exit code that belongs to the error.
int error_report(const struct error *err);

#endif
