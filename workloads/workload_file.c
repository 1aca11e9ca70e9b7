// SPDX-License-Identifier: MIT
//
// Reads a workload from a YAML file. libcyaml binds the text to the struct but says little about
// places (for an unknown key it names the mapping around it, for a value's meaning nothing), so
// libyaml's own tree of the file is kept beside it: errors name line and column of the very key.
#include "workloads/workload.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { FILE_BYTES_MAX = 1 << 20, DEPTH_MAX = 20 };

static const cyaml_schema_value_t workload_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct workload_text, workload_text_fields),
};

static int read_file(const char *path, char **text, size_t *bytes, struct error *err)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set_errno(err, ERROR_INPUT, "cannot open the workload %s", path);
    int result = 0;
    *text = malloc(FILE_BYTES_MAX + 1);
    *bytes = *text ? fread(*text, 1, FILE_BYTES_MAX + 1, file) : 0;
    if (!*text)
        result = error_set(err, ERROR_FAILED, "%s: out of memory", path);
    else if (ferror(file))
        result = error_set_errno(err, ERROR_INPUT, "cannot read the workload %s", path);
    else if (*bytes > FILE_BYTES_MAX)
        result = error_set(err, ERROR_INPUT, "%s: longer than 1 MiB: not a workload", path);
    fclose(file);
    if (result < 0) {
        free(*text);
        *text = NULL;
    }
    return result;
}

struct source {
    const char *path;
    yaml_document_t document;
};

static int error_at(const char *path, yaml_mark_t mark, struct error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int error_at(const char *path, yaml_mark_t mark, struct error *err, const char *format, ...)
{
    char text[800];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return error_set(err, ERROR_INPUT, "%s:%zu:%zu: %s", path, mark.line + 1, mark.column + 1,
                     text);
}

static int parse_document(struct source *source, const char *text, size_t bytes, struct error *err)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return error_set(err, ERROR_FAILED, "%s: out of memory", source->path);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, bytes);
    int result = 0;
    if (!yaml_parser_load(&parser, &source->document))
        result = error_at(source->path, parser.problem_mark, err, "not YAML: %s",
                          parser.problem ? parser.problem : "cannot be parsed");
    yaml_parser_delete(&parser);
    return result;
}

static const cyaml_schema_field_t *find_field(const cyaml_schema_field_t *fields, const char *key)
{
    for (; fields->key; fields++)
        if (strcmp(fields->key, key) == 0)
            return fields;
    return NULL;
}

static void list_fields(const cyaml_schema_field_t *fields, char *out, size_t out_bytes)
{
    size_t used = 0;
    for (; fields->key && used < out_bytes; fields++)
        used +=
            (size_t)snprintf(out + used, out_bytes - used, "%s%s", used ? ", " : "", fields->key);
}

static const char *kind_name(yaml_node_type_t type)
{
    return type == YAML_MAPPING_NODE    ? "a mapping ({key: value})"
           : type == YAML_SEQUENCE_NODE ? "a list ([a, b])"
                                        : "a single value";
}

static yaml_node_type_t expected_kind(const cyaml_schema_value_t *schema)
{
    return schema->type == CYAML_MAPPING ? YAML_MAPPING_NODE
           : schema->type == CYAML_SEQUENCE_FIXED || schema->type == CYAML_SEQUENCE
               ? YAML_SEQUENCE_NODE
               : YAML_SCALAR_NODE;
}

static int check_value(struct source *source, yaml_node_t *node, const char *name,
                       const cyaml_schema_value_t *schema, unsigned depth, struct error *err);

static int check_mapping(struct source *source, yaml_node_t *node,
                         const cyaml_schema_field_t *fields, unsigned depth, struct error *err)
{
    yaml_node_pair_t *begin = node->data.mapping.pairs.start, *end = node->data.mapping.pairs.top;
    for (yaml_node_pair_t *pair = begin; pair < end; pair++) {
        yaml_node_t *key = yaml_document_get_node(&source->document, pair->key);
        const char *name = key->type == YAML_SCALAR_NODE ? (char *)key->data.scalar.value : "?";
        const cyaml_schema_field_t *field = find_field(fields, name);
        if (!field) {
            char known[200];
            list_fields(fields, known, sizeof known);
            return error_at(source->path, key->start_mark, err,
                            "unknown key \"%s\"; known here: %s", name, known);
        }
        for (yaml_node_pair_t *other = begin; other < pair; other++) {
            yaml_node_t *before = yaml_document_get_node(&source->document, other->key);
            if (strcmp((char *)before->data.scalar.value, name) == 0)
                return error_at(source->path, key->start_mark, err, "\"%s\" stands here twice",
                                name);
        }
        int result = check_value(source, yaml_document_get_node(&source->document, pair->value),
                                 name, &field->value, depth + 1, err);
        if (result < 0)
            return result;
    }
    return 0;
}

// Holds the tree against the schema: what libcyaml would refuse is refused here, with its place.
static int check_value(struct source *source, yaml_node_t *node, const char *name,
                       const cyaml_schema_value_t *schema, unsigned depth, struct error *err)
{
    if (depth > DEPTH_MAX)
        return error_at(source->path, node->start_mark, err, "%s: nested too deeply", name);
    if (node->type != expected_kind(schema))
        return error_at(source->path, node->start_mark, err, "%s must be %s, not %s", name,
                        kind_name(expected_kind(schema)), kind_name(node->type));
    if (schema->type == CYAML_MAPPING)
        return check_mapping(source, node, schema->mapping.fields, depth, err);
    if (node->type != YAML_SEQUENCE_NODE)
        return 0;
    yaml_node_item_t *begin = node->data.sequence.items.start, *end = node->data.sequence.items.top;
    if (end - begin < (ptrdiff_t)schema->sequence.min ||
        end - begin > (ptrdiff_t)schema->sequence.max)
        return error_at(source->path, node->start_mark, err, "%s must have %s%u values, not %td",
                        name, schema->sequence.min < schema->sequence.max ? "1 to " : "",
                        schema->sequence.max, end - begin);
    for (yaml_node_item_t *item = begin; item < end; item++) {
        int result = check_value(source, yaml_document_get_node(&source->document, *item), name,
                                 schema->sequence.entry, depth + 1, err);
        if (result < 0)
            return result;
    }
    return 0;
}

// Where the key at the end of a dotted path stands, or the nearest mapping above it that exists.
static yaml_mark_t place_of(struct source *source, const char *path, size_t path_bytes)
{
    yaml_node_t *node = yaml_document_get_root_node(&source->document);
    yaml_mark_t mark = node->start_mark;
    while (path_bytes && node->type == YAML_MAPPING_NODE) {
        const char *dot = memchr(path, '.', path_bytes);
        size_t part = dot ? (size_t)(dot - path) : path_bytes;
        yaml_node_t *next = NULL;
        yaml_node_pair_t *end = node->data.mapping.pairs.top;
        for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < end && !next; pair++) {
            yaml_node_t *key = yaml_document_get_node(&source->document, pair->key);
            if (key->data.scalar.length == part &&
                memcmp(key->data.scalar.value, path, part) == 0) {
                next = yaml_document_get_node(&source->document, pair->value);
                mark = key->start_mark;
            }
        }
        if (!next)
            break;
        node = next;
        path += part + (dot != NULL);
        path_bytes -= part + (dot != NULL);
    }
    return mark;
}

// libcyaml says what it dislikes to this callback, bit by bit; keep the first error.
static void keep_first_error(cyaml_log_t level, void *context, const char *format, va_list args)
{
    struct error *err = context;
    if (level < CYAML_LOG_ERROR || err->kind != ERROR_NONE)
        return;
    err->kind = ERROR_INPUT;
    vsnprintf(err->text, sizeof err->text, format, args);
    err->text[strcspn(err->text, "\n")] = '\0';
}

static int bind_and_resolve(struct source *source, const char *text, size_t bytes,
                            struct workload *workload, struct error *err)
{
    struct error said = {0};
    const cyaml_config_t config = {.log_fn = keep_first_error,
                                   .log_ctx = &said,
                                   .log_level = CYAML_LOG_ERROR,
                                   .mem_fn = cyaml_mem};
    struct workload_text *bound = NULL;
    cyaml_err_t status = cyaml_load_data((const uint8_t *)text, bytes, &config, &workload_schema,
                                         (cyaml_data_t **)&bound, NULL);
    if (status != CYAML_OK)
        return error_set(err, ERROR_INPUT, "%s: %s", source->path,
                         said.kind ? said.text : cyaml_strerror(status));
    int result = workload_resolve(bound, workload, &said);
    if (result < 0)
        error_at(source->path, place_of(source, said.text, strcspn(said.text, ":")), err, "%s",
                 said.text);
    cyaml_free(&config, &workload_schema, bound, 0);
    return result;
}

int workload_parse(const char *path, const char *text, size_t bytes, struct workload *workload,
                   struct error *err)
{
    struct source source = {.path = path};
    int result = parse_document(&source, text, bytes, err);
    if (result < 0)
        return result;
    yaml_node_t *root = yaml_document_get_root_node(&source.document);
    if (!root)
        result = error_set(err, ERROR_INPUT, "%s:1:1: the file is empty", path);
    else
        result = check_value(&source, root, "a workload", &workload_schema, 0, err);
    if (result == 0)
        result = bind_and_resolve(&source, text, bytes, workload, err);
    yaml_document_delete(&source.document);
    return result;
}

int workload_load_preset(const char *name, struct workload *workload, struct error *err)
{
    size_t bytes;
    const char *text = workload_preset(name, &bytes);
    if (!text)
        return error_set(err, ERROR_INPUT, "there is no preset \"%s\"; there are %s", name,
                         workload_preset_names());
    return workload_parse(name, text, bytes, workload, err);
}

int workload_load_file(const char *path, struct workload *workload, struct error *err)
{
    size_t bytes;
    char *text = NULL;
    if (workload_preset(path, &bytes))
        return workload_load_preset(path, workload, err);
    int result = read_file(path, &text, &bytes, err);
    if (result == 0)
        result = workload_parse(path, text, bytes, workload, err);
    free(text);
    return result;
}
