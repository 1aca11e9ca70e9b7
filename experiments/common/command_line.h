// SPDX-License-Identifier: MIT
//
// A command line that is made word by word: of servers, loads, captures, and of what runs behind
// ssh.
#ifndef EXPERIMENTS_COMMON_COMMAND_LINE_H
#define EXPERIMENTS_COMMON_COMMAND_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "base/fields.h"

// The words, and the memory of those that had to be made. Zeroed: an empty one.
struct command_line {
    struct word_array words; // NULL-terminated once command_line_result has returned 0
    struct ARRAY_OF(char *) made;
    bool failed; // there was no memory for a word
};

// Appends a word, which must outlive the line; a copy of a word; all words of a NULL-terminated
// list (NULL: none).
void command_line_add(struct command_line *line, const char *word);
void command_line_add_copy(struct command_line *line, const char *word);
void command_line_add_list(struct command_line *line, const char *const *words);

// Appends an option and its value.
void command_line_add_option(struct command_line *line, const char *option, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void command_line_add_number(struct command_line *line, const char *option, uint64_t number);
void command_line_add_ns(struct command_line *line, const char *option, uint64_t ns);

// Ends the line, and reports a failure on the way. ERROR_FAILED: not all words are there.
int command_line_result(struct command_line *line, struct error *err);

void command_line_free(struct command_line *line);

#endif
