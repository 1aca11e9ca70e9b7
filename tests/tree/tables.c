// SPDX-License-Identifier: MIT
//
// Writes a file of the documentation anew, from stdin to stdout: between "table: NAME;" and "end of
// table" stand the rows of that vocabulary, as the program has them. test_tables.sh compares, `make
// tables` replaces.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/decomposition/components.h"
#include "analysis/timeline/span.h"
#include "profiler/bpf/event_log.h"
#include "workloads/protocols/protocols.h"

static void print_events(void)
{
    printf("| number | name | when | carries |\n|---|---|---|---|\n");
#define EVENT(NAME, number, name, becomes, carries, means)                                         \
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

static void print_cause_classes(void)
{
    printf("| class | what the cause is |\n|---|---|\n");
#define CAUSE_CLASS(NAME, name, means) printf("| %s | %s |\n", name, means);
#include "analysis/decomposition/causes.tbl.h"
}

static void print_components(void)
{
    printf(
        "| component | role | class | category | explains | when |\n|---|---|---|---|---|---|\n");
#define COMPONENT(NAME, name, ROLE, CLASS, explains, functions, category, means)                   \
    printf("| %s | %s | %s | %s | %s | %s |\n", name, role_name(ROLE_##ROLE),                      \
           cause_class_name(CAUSE_##CLASS), category, explains ? "yes" : "no", means);
#include "analysis/decomposition/causes.tbl.h"
}

// A clause whose words in braces are a run's own: "*server* was not allowed to run".
static void print_clause(const char *clause)
{
    for (; *clause; clause++)
        putchar(*clause == '{' || *clause == '}' ? '*' : *clause);
}

static void print_remedies(void)
{
    printf("| category | what happened | what helps |\n|---|---|---|\n");
#define REMEDY(category, expected, happened, helps)                                                \
    (printf("| %s | ", category), print_clause(happened), printf(" | %s |\n", helps));
#include "analysis/diagnosis/remedies.tbl.h"
}

static void print_budget_states(void)
{
    printf("| state | the thread |\n|---|---|\n");
#define BUDGET_STATE(NAME, name, busy, colour, means) printf("| %s | %s |\n", name, means);
#include "analysis/diagnosis/time_budget.tbl.h"
}

static void print_join_counts(void)
{
    printf("| key of `join` | counts |\n|---|---|\n");
#define JOIN_COUNT(name, means) printf("| `%s` | %s |\n", #name, means);
#include "analysis/lifetime/lifetimes.tbl.h"
}

static void print_datagram_losses(void)
{
    printf("| key | words | known by |\n|---|---|---|\n");
#define DATAGRAM_LOSS(NAME, key, words, means) printf("| `%s` | %s | %s |\n", key, words, means);
#include "analysis/lifetime/lifetimes.tbl.h"
}

static void print_lifetime_states(void)
{
    printf("| state | when |\n|---|---|\n");
#define LIFETIME_STATE(NAME, words, means) printf("| %s | %s |\n", words, means);
#include "analysis/lifetime/lifetimes.tbl.h"
}

static void print_protocols(void)
{
    static const char *const loaders[] = {[DATASET_NONE] = "none",
                                          [DATASET_MEMCACHED] = "libmemcached, every key",
                                          [DATASET_REDIS] = "hiredis, what the mix reads"};
    printf(
        "| `protocol` | what it is | operations (default weight) | UDP | dataset (`--prepare`) | "
        "what a reply counts as |\n|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < PROTOCOLS; i++) {
        const struct protocol *protocol = protocols[i];
        printf("| `%s` | %s | ", protocol->name, protocol->speaks);
        for (unsigned k = 0; k < protocol->operation_count; k++)
            printf("%s`%s` (%g)", k ? ", " : "", protocol->operations[k].name,
                   protocol->operations[k].weight);
        printf(" | %s | %s | %s |\n", protocol->over_udp ? "yes" : "no", loaders[protocol->dataset],
               protocol->replies);
    }
}

// For a man page, in mdoc.
static void print_protocol_names(void)
{
    for (size_t i = 0; i < PROTOCOLS; i++) {
        printf(".Cm %s\n(", protocols[i]->name);
        for (const char *at = protocols[i]->speaks; *at; at++)
            if (*at != '`')
                putchar(*at);
        printf(")%s\n", i + 2 < PROTOCOLS ? "," : i + 1 < PROTOCOLS ? " or" : ".");
    }
}

static const struct {
    const char *name;
    void (*print)(void);
} tables[] = {
    {"events", print_events},
    {"span kinds", print_span_kinds},
    {"cause classes", print_cause_classes},
    {"components", print_components},
    {"remedies", print_remedies},
    {"budget states", print_budget_states},
    {"join counts", print_join_counts},
    {"datagram losses", print_datagram_losses},
    {"lifetime states", print_lifetime_states},
    {"protocols", print_protocols},
    {"protocol names", print_protocol_names},
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
