// SPDX-License-Identifier: MIT
//
// A command line, built word by word. A failure on the way is reported by command_line_result.
#ifndef EXPERIMENTS_SERVERS_COMMAND_LINE_H
#define EXPERIMENTS_SERVERS_COMMAND_LINE_H

#include <stdbool.h>

#include "base/error.h"
#include "experiments/plan/experiment.h"

// The words, and the memory of those that had to be made. Zeroed: an empty one.
struct command_line {
    struct word_array words; // NULL-terminated once command_line_result has returned 0
    struct ARRAY_OF(char *) made;
    bool failed; // there was no memory for a word
};

// Appends a word, which must outlive the line; a copy of a word; an option and its number; all of a
// NULL-terminated list.
void command_line_add(struct command_line *line, const char *word);
void command_line_add_copy(struct command_line *line, const char *word);
void command_line_add_number(struct command_line *line, const char *option, uint64_t number);
void command_line_add_all(struct command_line *line, const struct word_array *words);

// Ends the line. ERROR_FAILED: not all words are there.
int command_line_result(struct command_line *line, struct error *err);

void command_line_free(struct command_line *line);

#endif
