// SPDX-License-Identifier: MIT
//
// Writes a file of the documentation anew, from stdin to stdout: between "table: NAME;" and "end of
// table" stand the rows of that vocabulary, as the program has them. test_tables.sh compares, `make
// tables` replaces.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/timeline/span.h"
#include "profiler/bpf/event_log.h"

static void print_events(void)
{
    printf("| number | name | when | carries |\n|---|---|---|---|\n");
#define EVENT(NAME, number, name, carries, means)                                                  \
    printf("| %d | `%s` | %s | %s |\n", number, name, means, carries);
#include "profiler/bpf/events.tbl.h"
}

static void print_span_kinds(void)
{
    printf("| number | kind | on the page | what the core does |\n|---|---|---|---|\n");
#define SPAN_KIND(NAME, number, word, label, colour, ink, means)                                   \
    printf("| %d | %s | %s | %s |\n", number, word, label, means);
#include "analysis/timeline/span_kinds.tbl.h"
}

static const struct {
    const char *name;
    void (*print)(void);
} tables[] = {
    {"events", print_events},
    {"span kinds", print_span_kinds},
};

// The table that a line announces, or NULL.
static void (*announced(const char *line))(void)
{
    const char *name = strstr(line, "table: ");
    for (size_t i = 0; name && i < sizeof tables / sizeof *tables; i++)
        if (strlen(tables[i].name) == strcspn(name + 7, ";\n") &&
            strncmp(name + 7, tables[i].name, strlen(tables[i].name)) == 0)
            return tables[i].print;
    return NULL;
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    bool within = false;
    while (getline(&line, &room, stdin) > 0) {
        void (*print)(void) = announced(line);
        within = within && !strstr(line, "end of table");
        if (!within)
            fputs(line, stdout);
        if (print) {
            print();
            within = true;
        }
    }
    free(line);
    return within; // a table without an end
}
