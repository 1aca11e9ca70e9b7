// SPDX-License-Identifier: MIT
#include "experiments/gates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "base/suggestion.h"

static const char *const example = "e.g. `{percentile: p99, max_increase: 5%}` or `{cause: "
                                   "\"head-of-line blocking (A)\", max: 10us}`";

static int check_keys(const struct yaml_source *source, int node, struct error *err)
{
    static const char *const known[] = {"percentile", "cause", "max", "max_increase"};
    for (size_t i = 0; i < yaml_count(source, node); i++) {
        int key = yaml_entry_key(source, node, i);
        const char *text = yaml_text(source, key);
        char hint[200];
        bool found = false;
        for (size_t k = 0; text && k < 4; k++)
            found = found || strcmp(text, known[k]) == 0;
        if (!found)
            return yaml_error(source, key, err, "unknown key `%s`%s", text ? text : "",
                              suggestion_write(text ? text : "", known, 4, hint, sizeof hint));
        if (!yaml_text(source, yaml_entry(source, node, i)))
            return yaml_error(source, key, err, "`%s` takes a single value", text);
    }
    return 0;
}

static int read_percentile(const struct yaml_source *source, int node, struct gate *gate,
                           struct error *err)
{
    const char *text = yaml_text(source, node);
    double percentile;
    int end = 0;
    if (sscanf(text, "p%lf%n", &percentile, &end) != 1 || text[end] || !(percentile > 0) ||
        !(percentile < 100) || (size_t)end >= sizeof gate->name)
        return yaml_error(source, node, err, "percentile: `%s` is not a percentile, like p99.9",
                          text);
    gate->quantile = percentile / 100;
    memcpy(gate->name, text, (size_t)end + 1);
    return 0;
}

static int read_cause(const struct yaml_source *source, int node, struct gate *gate,
                      struct error *err)
{
    const char *text = yaml_text(source, node);
    size_t length = strlen(text);
    if (length < 4 || length >= sizeof gate->name || text[length - 1] != ')' || !strchr(text, '('))
        return yaml_error(source, node, err,
                          "cause: `%s` is not a cause with its role, as the summary and the "
                          "comparison name them, like \"nginx (A)\"",
                          text);
    memcpy(gate->name, text, length + 1);
    return 0;
}

// "5%", more than 0.
static int read_share(const struct yaml_source *source, int node, struct gate *gate,
                      struct error *err)
{
    double percent;
    int end = 0;
    if (sscanf(gate->text, "%lf %%%n", &percent, &end) != 1 || end == 0 || gate->text[end] ||
        !(percent > 0) || !isfinite(percent))
        return yaml_error(source, node, err,
                          "max_increase: `%s` is not a share above 0, like 5%%; that nothing at "
                          "all was added cannot be shown",
                          gate->text);
    gate->value = percent / 100;
    return 0;
}

static int read_limit(const struct yaml_source *source, int node, const char *key,
                      struct gate *gate, struct error *err)
{
    struct error inner;
    uint64_t ns;
    const char *text = yaml_text(source, node);
    if (strlen(text) >= sizeof gate->text)
        return yaml_error(source, node, err, "%s: `%.40s...` is too long for a limit", key, text);
    strcpy(gate->text, text);
    if (gate->subject == GATE_PERCENTILE && gate->limit == GATE_MAX_INCREASE)
        return read_share(source, node, gate, err);
    if (units_parse_duration_ns(text, &ns, &inner) < 0)
        return yaml_error(source, node, err, "%s: %s", key, inner.text);
    if (ns == 0)
        return yaml_error(source, node, err, "%s: a limit of 0 cannot be kept", key);
    gate->value = (double)ns;
    return 0;
}

static int read_gate(const struct yaml_source *source, int node, struct gate *gate,
                     struct error *err)
{
    if (yaml_kind(source, node) != YAML_KIND_MAPPING)
        return yaml_error(source, node, err, "a gate is keys with values, %s", example);
    int result = check_keys(source, node, err);
    if (result < 0)
        return result;
    int percentile = yaml_child(source, node, "percentile"),
        cause = yaml_child(source, node, "cause"), max = yaml_child(source, node, "max"),
        increase = yaml_child(source, node, "max_increase");
    if (!percentile == !cause)
        return yaml_error(source, node, err, "a gate is of a `percentile` or of a `cause`, %s",
                          example);
    if (!max == !increase)
        return yaml_error(source, node, err,
                          "a gate has `max` or `max_increase`, one of them; write two gates for "
                          "both");
    gate->subject = cause ? GATE_CAUSE : GATE_PERCENTILE;
    gate->limit = increase ? GATE_MAX_INCREASE : GATE_MAX;
    result = cause ? read_cause(source, cause, gate, err)
                   : read_percentile(source, percentile, gate, err);
    if (result == 0)
        result = read_limit(source, max ? max : increase, max ? "max" : "max_increase", gate, err);
    return result;
}

int gates_read(const struct yaml_source *source, int node, struct gate_array *out,
               struct error *err)
{
    if (node && yaml_kind(source, node) != YAML_KIND_SEQUENCE)
        return yaml_error(source, node, err, "`gates` takes a list: [{...}, {...}]");
    for (size_t i = 0; i < yaml_count(source, node); i++) {
        struct gate gate = {.name = ""};
        int result = read_gate(source, yaml_entry(source, node, i), &gate, err);
        if (result < 0)
            return result;
        if (array_push(out, gate) < 0)
            return error_set(err, ERROR_FAILED, "out of memory for the gates");
    }
    return 0;
}

int gates_load(const char *path, bool needed, struct gate_array *out, struct error *err)
{
    struct yaml_source *source;
    int result = yaml_source_open(path, &source, err);
    if (result < 0)
        return result;
    result = gates_read(source, yaml_child(source, yaml_root(source), "gates"), out, err);
    if (result == 0 && needed && out->count == 0)
        result =
            yaml_error(source, 0, err, "there are no gates in it: `gates: [{...}]`, %s", example);
    yaml_source_close(source);
    return result;
}

json_t *gates_json(const struct gate_array *gates)
{
    json_t *list = json_array();
    for (size_t i = 0; i < gates->count; i++) {
        const struct gate *gate = &gates->items[i];
        json_array_append_new(
            list,
            json_pack("{s:s, s:s}", gate->subject == GATE_CAUSE ? "cause" : "percentile",
                      gate->name, gate->limit == GATE_MAX ? "max" : "max_increase", gate->text));
    }
    return list;
}
