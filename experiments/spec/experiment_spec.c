// SPDX-License-Identifier: MIT
//
// An experiment file's document bound to its struct by libcyaml; and, where that does not succeed,
// what is wrong in the file's own terms. libcyaml only logs its complaints, with a way through
// fields and entries, which is followed here to the place in the file.
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/spec/experiment_schema.h"
#include "experiments/spec/experiment_table.h"
#include "base/suggestion.h"

// --- keys the design has and this version has not ------------------------------------------------

static const char *const later_keys[] = {
    "load/steps",
};

static const char *kind_name(enum yaml_kind kind)
{
    return kind == YAML_KIND_MAPPING    ? "keys with values"
           : kind == YAML_KIND_SEQUENCE ? "a list"
                                        : "a single value";
}

// What libcyaml cannot tell: keys of later versions, and named mappings that are none.
static int check_keys(const struct yaml_source *source, int node, const char *path,
                      struct error *err)
{
    const char *last = strrchr(path, '/');
    if (experiment_table_is_named(path) && yaml_kind(source, node) != YAML_KIND_MAPPING)
        return yaml_error(source, node, err, "`%s` takes names: {a: ..., b: ...}, not %s",
                          last ? last + 1 : path, kind_name(yaml_kind(source, node)));
    for (size_t i = 0; i < yaml_count(source, node); i++) {
        char inside[512], number[24];
        int key = yaml_entry_key(source, node, i);
        snprintf(number, sizeof number, "%zu", i);
        snprintf(inside, sizeof inside, "%s%s%s", path, *path ? "/" : "",
                 key ? yaml_text(source, key) : number);
        for (size_t k = 0; key && k < sizeof later_keys / sizeof *later_keys; k++)
            if (fnmatch(later_keys[k], inside, FNM_PATHNAME) == 0)
                return yaml_error(source, key, err, "`%s` is not in this version; take it out",
                                  yaml_text(source, key));
        int result = check_keys(source, yaml_entry(source, node, i), inside, err);
        if (result < 0)
            return result;
    }
    return 0;
}

// --- what libcyaml says, and where ---------------------------------------------------------------

enum { DEEPEST_TRACE = 40 };

// Its log: one message, then the way from the innermost value outwards.
struct complaint {
    char text[600];
    int depth;
    struct {
        bool is_field;
        unsigned entry; // from 1
        char field[100];
    } trace[DEEPEST_TRACE];
};

static void take_log(cyaml_log_t level, void *context, const char *format, va_list args)
{
    struct complaint *complaint = context;
    char line[600];
    (void)level;
    vsnprintf(line, sizeof line, format, args);
    line[strcspn(line, "\n")] = '\0';
    if (!complaint->text[0]) {
        const char *text = strncmp(line, "Load: ", 6) == 0 ? line + 6 : line;
        snprintf(complaint->text, sizeof complaint->text, "%s", text);
        return;
    }
    if (complaint->depth >= DEEPEST_TRACE)
        return;
    unsigned entry;
    char *field = complaint->trace[complaint->depth].field;
    if (sscanf(line, " in mapping field '%99[^']'", field) == 1) {
        complaint->trace[complaint->depth++].is_field = true;
    } else if (sscanf(line, " in sequence entry '%u'", &entry) == 1) {
        complaint->trace[complaint->depth].is_field = false;
        complaint->trace[complaint->depth++].entry = entry;
    }
}

// Follows the trace from the root, undoing the {name, value} form of named mappings. Fills `fields`
// with the table of the mapping it ends in, if any, and `label` with what it ends in.
static int follow(const struct yaml_source *source, const struct complaint *complaint,
                  int innermost, const cyaml_schema_field_t **fields, char label[120])
{
    snprintf(label, 120, "the document");
    int node = yaml_root(source);
    bool in_pair = false;
    const cyaml_schema_value_t *value = &experiment_table;
    for (int i = complaint->depth - 1; i >= innermost; i--) {
        const char *field = complaint->trace[i].field;
        unsigned entry = complaint->trace[i].entry;
        if (!complaint->trace[i].is_field) {
            in_pair = yaml_kind(source, node) == YAML_KIND_MAPPING;
            const char *key = yaml_text(source, yaml_entry_key(source, node, entry - 1));
            if (in_pair && key)
                snprintf(label, 120, "`%.100s`", key);
            node = yaml_entry(source, node, entry - 1);
            bool list =
                value && (value->type == CYAML_SEQUENCE || value->type == CYAML_SEQUENCE_FIXED);
            value = list ? value->sequence.entry : NULL;
            continue;
        }
        const cyaml_schema_field_t *found = NULL;
        if (value && value->type == CYAML_MAPPING)
            for (found = value->mapping.fields; found->key && strcmp(found->key, field) != 0;)
                found++;
        value = found && found->key ? &found->value : NULL;
        if (!in_pair) {
            node = yaml_child(source, node, field);
            snprintf(label, 120, "`%s`", field);
        }
        in_pair = false;
    }
    *fields = value && value->type == CYAML_MAPPING ? value->mapping.fields : NULL;
    return node;
}

static int refuse_key(const struct yaml_source *source, int node, const char *key,
                      const cyaml_schema_field_t *fields, struct error *err)
{
    const char *known[64];
    size_t count = 0;
    char hint[400];
    for (; fields && fields->key && count < 64; fields++)
        known[count++] = fields->key;
    int at = yaml_key(source, node, key);
    return yaml_error(source, at ? at : node, err, "unknown key `%s`%s", key,
                      suggestion_write(key, known, count, hint, sizeof hint));
}

static int refuse_word(const struct yaml_source *source, int node, const char *word,
                       const cyaml_schema_value_t *value, struct error *err)
{
    const char *known[64];
    size_t count = 0;
    char hint[400];
    for (; value && count < value->enumeration.count && count < 64; count++)
        known[count] = value->enumeration.strings[count].str;
    return yaml_error(source, node, err, "`%s` is not known here%s", word,
                      suggestion_write(word, known, count, hint, sizeof hint));
}

// The schema of the enum the trace ends in.
static const cyaml_schema_value_t *find_enum(const struct yaml_source *source,
                                             const struct complaint *complaint)
{
    const cyaml_schema_field_t *fields;
    char label[120];
    follow(source, complaint, 1, &fields, label);
    for (; fields && fields->key; fields++)
        if (complaint->depth > 0 && strcmp(fields->key, complaint->trace[0].field) == 0 &&
            fields->value.type == CYAML_ENUM)
            return &fields->value;
    return NULL;
}

static int explain(const struct yaml_source *source, const struct complaint *complaint,
                   struct error *err)
{
    char word[200], wanted[40], label[120];
    const cyaml_schema_field_t *fields;
    int node = follow(source, complaint, 0, &fields, label);
    if (sscanf(complaint->text, "Unexpected key: %199[^\n]", word) == 1)
        return refuse_key(source, node, word, fields, err);
    if (sscanf(complaint->text, "Invalid ENUM value: %199[^\n]", word) == 1)
        return refuse_word(source, node, word, find_enum(source, complaint), err);
    if (sscanf(complaint->text, "Expecting %39[^,]", wanted) == 1) {
        const char *form = strcmp(wanted, "SEQUENCE") == 0  ? "a list: [a, b]"
                           : strcmp(wanted, "MAPPING") == 0 ? "keys with values"
                                                            : "a single value";
        return yaml_error(source, node, err, "%s takes %s, not %s", label, form,
                          kind_name(yaml_kind(source, node)));
    }
    return yaml_error(source, node, err, "%s", complaint->text[0] ? complaint->text : "not valid");
}

// --- loading -------------------------------------------------------------------------------------

static cyaml_config_t configuration(struct complaint *complaint)
{
    return (cyaml_config_t){.log_fn = take_log,
                            .log_ctx = complaint,
                            .mem_fn = cyaml_mem,
                            .log_level = CYAML_LOG_WARNING};
}

int experiment_spec_load(const struct yaml_source *source, struct experiment_spec **out,
                         struct error *err)
{
    struct complaint complaint = {.depth = 0};
    cyaml_config_t config = configuration(&complaint);
    char *text;
    size_t bytes;
    *out = NULL;
    if (yaml_kind(source, yaml_root(source)) != YAML_KIND_MAPPING)
        return yaml_error(source, yaml_root(source), err,
                          "an experiment is keys with values: name, hosts, servers, load, ...");
    int result = check_keys(source, yaml_root(source), "", err);
    if (result == 0)
        result =
            yaml_write(source, yaml_root(source), experiment_table_is_named, &text, &bytes, err);
    if (result < 0)
        return result;
    cyaml_err_t loaded = cyaml_load_data((const uint8_t *)text, bytes, &config, &experiment_table,
                                         (cyaml_data_t **)out, NULL);
    free(text);
    if (loaded != CYAML_OK)
        return explain(source, &complaint, err);
    return 0;
}

void experiment_spec_free(struct experiment_spec *spec)
{
    struct complaint complaint = {.depth = 0};
    cyaml_config_t config = configuration(&complaint);
    if (spec)
        cyaml_free(&config, &experiment_table, spec, 0);
}
