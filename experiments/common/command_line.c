// SPDX-License-Identifier: MIT
#include "experiments/common/command_line.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void command_line_add(struct command_line *line, const char *word)
{
    line->failed |= array_push(&line->words, word) < 0;
}

// Appends a word that the line owns from now on; NULL: there was no memory for it.
static void add_made(struct command_line *line, char *copy)
{
    if (!copy || array_push(&line->made, copy) < 0) {
        free(copy);
        line->failed = true;
        return;
    }
    command_line_add(line, copy);
}

void command_line_add_copy(struct command_line *line, const char *word)
{
    add_made(line, strdup(word));
}

void command_line_add_list(struct command_line *line, const char *const *words)
{
    for (; words && *words; words++)
        command_line_add(line, *words);
}

void command_line_add_option(struct command_line *line, const char *option, const char *format, ...)
{
    va_list values;
    char *text;
    command_line_add(line, option);
    va_start(values, format);
    add_made(line, vasprintf(&text, format, values) < 0 ? NULL : text);
    va_end(values);
}

void command_line_add_number(struct command_line *line, const char *option, uint64_t number)
{
    command_line_add_option(line, option, "%llu", (unsigned long long)number);
}

void command_line_add_ns(struct command_line *line, const char *option, uint64_t ns)
{
    command_line_add_option(line, option, "%lluns", (unsigned long long)ns);
}

int command_line_result(struct command_line *line, struct error *err)
{
    command_line_add(line, NULL);
    return line->failed ? error_set(err, ERROR_FAILED, "out of memory for a command line") : 0;
}

void command_line_free(struct command_line *line)
{
    for (size_t i = 0; i < line->made.count; i++)
        free(line->made.items[i]);
    array_free(&line->made);
    array_free(&line->words);
}
