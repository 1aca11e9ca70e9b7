// SPDX-License-Identifier: MIT
#include "experiments/definition/gates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

#define EXAMPLE                                                                                    \
    "e.g. `{percentile: p99, max_increase: 5%}` or `{cause: \"head-of-line blocking (A)\", max: "  \
    "10us}`"

static int read_percentile(const struct binding *binding, const struct node *node,
                           struct gate *gate)
{
    const char *text = node_text(node);
    double percentile;
    int end = 0;
    if (sscanf(text, "p%lf%n", &percentile, &end) != 1 || text[end] || !(percentile > 0) ||
        !(percentile < 100) || (size_t)end >= sizeof gate->name)
        return document_error(binding->document, node, binding->err,
                              "percentile: `%s` is not a percentile, like p99.9", text);
    gate->quantile = percentile / 100;
    memcpy(gate->name, text, (size_t)end + 1);
    return 0;
}

static int read_cause(const struct binding *binding, const struct node *node, struct gate *gate)
{
    const char *text = node_text(node);
    size_t length = strlen(text);
    if (length < 4 || length >= sizeof gate->name || text[length - 1] != ')' || !strchr(text, '('))
        return document_error(binding->document, node, binding->err,
                              "cause: `%s` is not a cause with its role, as the summary and the "
                              "comparison name them, like \"nginx (A)\"",
                              text);
    memcpy(gate->name, text, length + 1);
    return 0;
}

// Reads a share such as "5%", which must be more than 0.
static int read_share(const struct binding *binding, const struct node *node, struct gate *gate)
{
    double percent;
    int end = 0;
    if (sscanf(gate->text, "%lf %%%n", &percent, &end) != 1 || end == 0 || gate->text[end] ||
        !(percent > 0) || !isfinite(percent))
        return document_error(
            binding->document, node, binding->err,
            "max_increase: `%s` is not a share above 0, like 5%%; that nothing at "
            "all was added cannot be shown",
            gate->text);
    gate->value = percent / 100;
    return 0;
}

static int read_limit(const struct binding *binding, const struct node *node, const char *key,
                      struct gate *gate)
{
    struct error inner;
    uint64_t ns;
    const char *text = node_text(node);
    if (strlen(text) >= sizeof gate->text)
        return document_error(binding->document, node, binding->err,
                              "%s: `%.40s...` is too long for a limit", key, text);
    strcpy(gate->text, text);
    if (gate->subject == GATE_PERCENTILE && gate->limit == GATE_MAX_INCREASE)
        return read_share(binding, node, gate);
    if (units_parse_duration_ns(text, &ns, &inner) < 0)
        return document_error(binding->document, node, binding->err, "%s: %s", key, inner.text);
    if (ns == 0)
        return document_error(binding->document, node, binding->err,
                              "%s: a limit of 0 cannot be kept", key);
    gate->value = (double)ns;
    return 0;
}

static int read_gate(const struct binding *binding, const struct node *node, void *object)
{
    struct gate *gate = object;
    const struct node *percentile = node_child(node, "percentile"),
                      *cause = node_child(node, "cause"), *max = node_child(node, "max"),
                      *increase = node_child(node, "max_increase");
    if (!percentile == !cause)
        return document_error(binding->document, node, binding->err,
                              "a gate is of a `percentile` or of a `cause`, %s", EXAMPLE);
    if (!max == !increase)
        return document_error(binding->document, node, binding->err,
                              "a gate has `max` or `max_increase`, one of them; write two gates "
                              "for both");
    gate->subject = cause ? GATE_CAUSE : GATE_PERCENTILE;
    gate->limit = increase ? GATE_MAX_INCREASE : GATE_MAX;
    int result =
        cause ? read_cause(binding, cause, gate) : read_percentile(binding, percentile, gate);
    if (result == 0)
        result = read_limit(binding, max ? max : increase, max ? "max" : "max_increase", gate);
    return result;
}

static const struct field gate_rows[] = {
    {"percentile", FIELD_TEXT, .help = "p99.9, or"},
    {"cause", FIELD_TEXT, .help = "one with its role: nginx (A)"},
    {"max", FIELD_TEXT, .help = "at most so long: 200us, or"},
    {"max_increase", FIELD_TEXT, .help = "so much more than the base: 5%, of a cause 10us"},
};
const struct fields gate_fields =
    FIELDS(gate_rows, struct gate, .example = EXAMPLE, .check = read_gate);

int gates_read(const struct document *document, const struct node *node, struct gate_array *out,
               struct error *err)
{
    static const struct field list = {
        .key = "gates", .kind = FIELD_LIST, .fields = &gate_fields, .size = sizeof *out};
    const struct binding binding = {.document = document, .err = err};
    return field_read(&binding, &list, node, out);
}

int gates_load(const char *path, bool needed, struct gate_array *out, struct error *err)
{
    struct document *document;
    int result = document_open(path, &document, err);
    if (result < 0)
        return result;
    result = gates_read(document, node_child(document_root(document), "gates"), out, err);
    if (result == 0 && needed && out->count == 0)
        result = document_error(document, NULL, err,
                                "there are no gates in it: `gates: [{...}]`, %s", EXAMPLE);
    document_free(document);
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
