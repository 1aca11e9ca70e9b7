// SPDX-License-Identifier: MIT
//
// The checks behind profiler/doctor.h, one file a group, and what they share. Each adds items.
#ifndef PROFILER_DOCTOR_CHECKS_H
#define PROFILER_DOCTOR_CHECKS_H

#include <stdbool.h>
#include <stddef.h>

#include "profiler/doctor.h"

// Appends an item and returns it to be filled in further; NULL without memory.
struct doctor_item *doctor_add(struct doctor_items *items, enum doctor_group group,
                               const char *name, const char *gives);

// Sets the state and what was found.
void doctor_found(struct doctor_item *item, enum doctor_state state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Sets the state, what is missing and how to get it.
void doctor_missing(struct doctor_item *item, enum doctor_state state, const char *how,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

// Reads a file's first line without its newline. False, and "" in out, when there is none.
bool doctor_read_line(const char *path, char *out, size_t out_bytes);

// Copies the value of a "key : value" line, as in /proc/cpuinfo.
bool doctor_read_field(const char *path, const char *key, char *out, size_t out_bytes);

// True when a word is in a list of words with spaces between.
bool doctor_has_word(const char *list, const char *word);

// True, and its path in out, when PATH leads to such a program.
bool doctor_find_program(const char *name, char *out, size_t out_bytes);

void doctor_check_machine(struct doctor_items *items);
void doctor_check_capture(struct doctor_items *items);
void doctor_check_network(struct doctor_items *items);
void doctor_check_programs(struct doctor_items *items);

#endif
