// SPDX-License-Identifier: MIT
#include "experiments/servers/server_kind.h"

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

void command_line_add_number(struct command_line *line, const char *option, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    command_line_add(line, option);
    command_line_add_copy(line, text);
}

void command_line_add_all(struct command_line *line, const struct word_array *words)
{
    for (size_t i = 0; i + 1 < words->count; i++)
        command_line_add(line, words->items[i]);
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

int server_needs_no_check(const struct experiment_server *plan, size_t *option, struct error *err)
{
    (void)plan;
    (void)option;
    (void)err;
    return 0;
}

int server_needs_no_program(const struct experiment_server *plan, struct error *err)
{
    (void)plan;
    (void)err;
    return 0;
}

int server_needs_no_files(const struct experiment_server *plan, const struct host *host,
                          const struct run_folder *folder, const char *name, bool to_write,
                          struct error *err)
{
    (void)plan;
    (void)host;
    (void)folder;
    (void)name;
    (void)to_write;
    (void)err;
    return 0;
}
