// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <string.h>

#include "base/suggestion.h"
#include "base/units.h"
#include "experiments/definition/tables.h"
#include "experiments/hosts/host_kind.h"

enum { NAMES_MAX = 64 };

int read_cores(const struct binding *binding, const struct node *mapping,
               const struct experiment_host *host, cpu_set_t *cores)
{
    const struct reading *reading = binding->context;
    const struct node *list = node_child(mapping, "cores");
    char have[200], lack[200];
    struct error inner;
    if (!list)
        return 0;
    if (node_count(list) == 0)
        return document_error(binding->document, list, binding->err,
                              "cores: name one at least, or leave it out");
    CPU_ZERO(cores);
    for (size_t i = 0; i < node_count(list); i++) {
        cpu_set_t some, missing;
        const struct node *node = node_entry(list, i);
        if (units_parse_cores(node_text(node), &some, &inner) < 0)
            return document_error(binding->document, node, binding->err, "cores: %s", inner.text);
        CPU_AND(&missing, &some, &reading->machine);
        CPU_XOR(&missing, &missing, &some);
        // Another machine's cores are checked once it is reached (experiments/remote/far_host.h).
        if (CPU_COUNT(&missing) && !host->kind->is_elsewhere)
            return document_error(binding->document, node, binding->err,
                                  "cores: this machine has no core %s for us, only %s; name cores "
                                  "of these, or leave `cores` out",
                                  units_format_cores(&missing, lack, sizeof lack),
                                  units_format_cores(&reading->machine, have, sizeof have));
        CPU_OR(cores, cores, &some);
    }
    return 0;
}

// Finds the index of a name; -1, with a suggestion in `hint`, where there is none.
static int find_name(const char *name, const void *items, size_t size, size_t count, char *hint,
                     size_t hint_bytes)
{
    const char *names[NAMES_MAX];
    for (size_t i = 0; i < count && i < NAMES_MAX; i++) {
        names[i] = (const char *)items + i * size;
        if (strcmp(names[i], name) == 0)
            return (int)i;
    }
    suggestion_write(name, names, count < NAMES_MAX ? count : NAMES_MAX, hint, hint_bytes);
    return -1;
}

int find_named(const struct binding *binding, const struct node *node, const char *what,
               const char *name, const void *items, size_t size, size_t count, size_t *index)
{
    char hint[400];
    int found = find_name(name, items, size, count, hint, sizeof hint);
    if (found < 0)
        return document_error(binding->document, node, binding->err, "%s is called `%s`%s", what,
                              name, hint);
    *index = (size_t)found;
    return 0;
}

int read_host(const struct binding *binding, const struct node *mapping, const char *key,
              const char *fallback, size_t *index)
{
    char hint[400];
    const struct reading *reading = binding->context;
    const struct experiment_host_array *hosts = &reading->experiment->hosts;
    const struct node *node = node_child(mapping, key);
    int found = find_name(node ? node_text(node) : fallback, hosts->items, sizeof *hosts->items,
                          hosts->count, hint, sizeof hint);
    if (found < 0 && !node)
        return document_error(binding->document, mapping, binding->err,
                              "`%s` is missing, and there is no host called `%s` to stand in%s",
                              key, fallback, hint);
    if (found < 0)
        return document_error(binding->document, node, binding->err, "%s: no host is called `%s`%s",
                              key, node_text(node), hint);
    *index = (size_t)found;
    return 0;
}

unsigned read_kind(const struct node *mapping, const char *(*word)(unsigned index))
{
    const struct node *node = node_child(mapping, "kind");
    unsigned kind = 0;
    while (node && strcmp(word(kind), node_text(node)) != 0)
        kind++;
    return kind;
}

bool has_key(const char *const *keys, const char *key)
{
    while (*keys && strcmp(*keys, key) != 0)
        keys++;
    return *keys != NULL;
}

const struct node *find_key_of_another(const struct node *mapping,
                                       const char *const *(*keys)(unsigned index), unsigned kind,
                                       unsigned *other)
{
    for (*other = 0; keys(*other); ++*other)
        for (const char *const *key = keys(*other); *key; key++)
            if (node_key(mapping, *key) && !has_key(keys(kind), *key))
                return node_key(mapping, *key);
    return NULL;
}
