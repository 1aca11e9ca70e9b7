// SPDX-License-Identifier: MIT
#include "experiments/spec/experiment_values.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "base/suggestion.h"
#include "experiments/hosts/host_kind.h"

int out_of_memory(const struct resolver *r)
{
    return error_set(r->err, ERROR_FAILED, "%s: out of memory", r->experiment->path);
}

int misread(const struct resolver *r, int parent, const char *key, const struct error *inner)
{
    int node = yaml_child(r->source, parent, key);
    return yaml_error(r->source, node ? node : parent, r->err, "%s: %s", key, inner->text);
}

int resolve_count(const struct resolver *r, int parent, const char *key, const char *text,
                  uint64_t low, uint64_t high, uint64_t *value)
{
    struct error inner;
    if (!text)
        return 0;
    if (units_parse_count(text, value, &inner) < 0)
        return misread(r, parent, key, &inner);
    if (*value < low || *value > high)
        return yaml_error(r->source, yaml_child(r->source, parent, key), r->err,
                          "%s: %s is outside %llu to %llu", key, text, (unsigned long long)low,
                          (unsigned long long)high);
    return 0;
}

int resolve_duration(const struct resolver *r, int parent, const char *key, const char *text,
                     uint64_t *value)
{
    struct error inner;
    if (text && units_parse_duration_ns(text, value, &inner) < 0)
        return misread(r, parent, key, &inner);
    return 0;
}

int resolve_bytes(const struct resolver *r, int parent, const char *key, const char *text,
                  uint64_t low, uint64_t *value)
{
    struct error inner;
    if (!text)
        return 0;
    if (units_parse_bytes(text, value, &inner) < 0)
        return misread(r, parent, key, &inner);
    if (*value < low)
        return yaml_error(r->source, yaml_child(r->source, parent, key), r->err,
                          "%s: %s is less than the least, %llu bytes", key, text,
                          (unsigned long long)low);
    return 0;
}

int resolve_word(const struct resolver *r, int parent, const char *key, const char *text,
                 const char *const *words, size_t count, const char **word)
{
    char hint[200];
    if (!text)
        return 0;
    for (size_t i = 0; i < count; i++)
        if (strcmp(words[i], text) == 0) {
            *word = words[i];
            return 0;
        }
    return yaml_error(r->source, yaml_child(r->source, parent, key), r->err,
                      "%s: `%s` is not known here%s", key, text,
                      suggestion_write(text, words, count, hint, sizeof hint));
}

int check_name(const struct resolver *r, int node, const char *name, size_t longest)
{
    size_t length = strlen(name);
    bool plain = length > 0 && length <= longest && isalnum((unsigned char)name[0]);
    for (size_t i = 0; plain && i < length; i++)
        plain = isalnum((unsigned char)name[i]) || strchr("-_.", name[i]);
    if (plain)
        return 0;
    return yaml_error(r->source, node, r->err,
                      "`%s` is not a name: a letter or digit, then letters, digits, `-`, `_`, `.`, "
                      "%zu at most",
                      name, longest);
}

int resolve_cores(const struct resolver *r, int parent, const struct experiment_host *host,
                  char *const *texts, size_t count, cpu_set_t *cores)
{
    struct error inner;
    char have[200], lack[200];
    int list = yaml_child(r->source, parent, "cores");
    if (!texts)
        return 0; // as set by the caller
    if (count == 0)
        return yaml_error(r->source, list, r->err, "cores: name one at least, or leave it out");
    CPU_ZERO(cores);
    for (size_t i = 0; i < count; i++) {
        cpu_set_t some, missing;
        int node = yaml_entry(r->source, list, i);
        if (units_parse_cores(texts[i], &some, &inner) < 0)
            return yaml_error(r->source, node, r->err, "cores: %s", inner.text);
        CPU_AND(&missing, &some, &r->machine);
        CPU_XOR(&missing, &missing, &some);
        // What another machine has shows when it is asked (experiments/remote/far_host.h).
        if (CPU_COUNT(&missing) && !host->kind->is_elsewhere)
            return yaml_error(r->source, node, r->err,
                              "cores: this machine has no core %s for us, only %s; name cores of "
                              "these, or leave `cores` out",
                              units_format_cores(&missing, lack, sizeof lack),
                              units_format_cores(&r->machine, have, sizeof have));
        CPU_OR(cores, cores, &some);
    }
    return 0;
}

int resolve_words(const struct resolver *r, char *const *texts, size_t count,
                  struct word_array *words)
{
    for (size_t i = 0; i < count; i++)
        if (array_push(words, texts[i]) < 0)
            return out_of_memory(r);
    return array_push(words, NULL) < 0 ? out_of_memory(r) : 0;
}

int resolve_host_name(const struct resolver *r, int parent, const char *key, const char *text,
                      const char *fallback, size_t *index)
{
    const char *names[64];
    char hint[400];
    const struct experiment_host_array *hosts = &r->experiment->hosts;
    const char *wanted = text ? text : fallback;
    for (size_t i = 0; i < hosts->count; i++) {
        names[i] = hosts->items[i].name;
        if (strcmp(names[i], wanted) == 0) {
            *index = i;
            return 0;
        }
    }
    int node = yaml_child(r->source, parent, key);
    suggestion_write(wanted, names, hosts->count, hint, sizeof hint);
    if (!text)
        return yaml_error(r->source, parent, r->err,
                          "`%s` is missing, and there is no host called `%s` to stand in%s", key,
                          fallback, hint);
    return yaml_error(r->source, node, r->err, "%s: no host is called `%s`%s", key, text, hint);
}

int resolve_rate(const struct resolver *r, int parent, const char *text, double *rate)
{
    struct error inner;
    if (!text)
        return 0;
    if (units_parse_number(text, rate, &inner) < 0)
        return misread(r, parent, "rate", &inner);
    if (!(*rate > 0 && *rate <= 1e8))
        return yaml_error(r->source, yaml_child(r->source, parent, "rate"), r->err,
                          "rate: %s is not between 0 and 100M requests per second", text);
    return 0;
}

int resolve_nice(const struct resolver *r, int parent, const char *text, int *nice)
{
    int end = 0;
    if (!text)
        return 0;
    if (sscanf(text, "%3d%n", nice, &end) != 1 || text[end] || *nice < -20 || *nice > 19)
        return yaml_error(r->source, yaml_child(r->source, parent, "nice"), r->err,
                          "nice: `%s` is not a priority, -20 (first) to 19 (last)", text);
    return 0;
}
