// SPDX-License-Identifier: MIT
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/spec/yaml_source.h"

enum { MAX_FILE_BYTES = 1 << 20, MAX_PATH_BYTES = 512 };

// libyaml's accessors want a document that is not const, though they only read.
yaml_node_t *yaml_source_node(const struct yaml_source *source, int node)
{
    yaml_document_t *document = (yaml_document_t *)(uintptr_t)&source->document;
    return node > 0 ? yaml_document_get_node(document, node) : NULL;
}

const char *yaml_source_file(const struct yaml_source *source, int node)
{
    size_t at = (size_t)node;
    return node > 0 && at < source->file_of.count ? source->files.items[source->file_of.items[at]]
                                                  : source->name;
}

size_t yaml_size(const struct yaml_source *source)
{
    return (size_t)(source->document.nodes.top - source->document.nodes.start);
}

int yaml_root(const struct yaml_source *source)
{
    return yaml_source_node(source, 1) ? 1 : 0;
}

enum yaml_kind yaml_kind(const struct yaml_source *source, int node)
{
    const yaml_node_t *found = yaml_source_node(source, node);
    if (!found || found->type == YAML_NO_NODE)
        return YAML_KIND_NONE;
    return found->type == YAML_SCALAR_NODE     ? YAML_KIND_SCALAR
           : found->type == YAML_SEQUENCE_NODE ? YAML_KIND_SEQUENCE
                                               : YAML_KIND_MAPPING;
}

const char *yaml_text(const struct yaml_source *source, int node)
{
    const yaml_node_t *found = yaml_source_node(source, node);
    return found && found->type == YAML_SCALAR_NODE ? (const char *)found->data.scalar.value : NULL;
}

size_t yaml_count(const struct yaml_source *source, int node)
{
    const yaml_node_t *found = yaml_source_node(source, node);
    if (found && found->type == YAML_MAPPING_NODE)
        return (size_t)(found->data.mapping.pairs.top - found->data.mapping.pairs.start);
    if (found && found->type == YAML_SEQUENCE_NODE)
        return (size_t)(found->data.sequence.items.top - found->data.sequence.items.start);
    return 0;
}

int yaml_entry(const struct yaml_source *source, int node, size_t index)
{
    const yaml_node_t *found = yaml_source_node(source, node);
    if (index >= yaml_count(source, node))
        return 0;
    return found->type == YAML_MAPPING_NODE ? found->data.mapping.pairs.start[index].value
                                            : found->data.sequence.items.start[index];
}

int yaml_entry_key(const struct yaml_source *source, int node, size_t index)
{
    const yaml_node_t *found = yaml_source_node(source, node);
    if (index >= yaml_count(source, node) || found->type != YAML_MAPPING_NODE)
        return 0;
    return found->data.mapping.pairs.start[index].key;
}

// Index of a key in a mapping, or the number of its entries.
static size_t find_key(const struct yaml_source *source, int node, const char *key)
{
    size_t count = yaml_count(source, node), i;
    if (yaml_kind(source, node) != YAML_KIND_MAPPING)
        return count;
    for (i = 0; i < count; i++) {
        const char *text = yaml_text(source, yaml_entry_key(source, node, i));
        if (text && strcmp(text, key) == 0)
            break;
    }
    return i;
}

int yaml_child(const struct yaml_source *source, int node, const char *key)
{
    return yaml_entry(source, node, find_key(source, node, key));
}

int yaml_key(const struct yaml_source *source, int node, const char *key)
{
    return yaml_entry_key(source, node, find_key(source, node, key));
}

void yaml_place(const struct yaml_source *source, int node, unsigned *line, unsigned *column)
{
    const yaml_node_t *found = yaml_source_node(source, node);
    *line = found ? (unsigned)found->start_mark.line + 1 : 1;
    *column = found ? (unsigned)found->start_mark.column + 1 : 1;
}

int yaml_error(const struct yaml_source *source, int node, struct error *err, const char *format,
               ...)
{
    struct error local;
    if (!err)
        err = &local;
    va_list args;
    va_start(args, format);
    err->kind = ERROR_INPUT;
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    unsigned line, column;
    yaml_place(source, node, &line, &column);
    return error_prefix(err, "%s:%u:%u", yaml_source_file(source, node), line, column);
}

// --- what a document must be before anything reads it --------------------------------------------

static int check_node(const struct yaml_source *source, int node, int depth, int *nodes,
                      struct error *err);

static int check_key(const struct yaml_source *source, int node, size_t index, struct error *err)
{
    int key = yaml_entry_key(source, node, index);
    const char *text = yaml_text(source, key);
    if (!text)
        return yaml_error(source, key, err, "a key must be a plain word");
    if (find_key(source, node, text) != index)
        return yaml_error(source, key, err, "key `%s` is given twice", text);
    return 0;
}

static int check_entries(const struct yaml_source *source, int node, int depth, int *nodes,
                         struct error *err)
{
    size_t count = yaml_count(source, node);
    bool mapping = yaml_kind(source, node) == YAML_KIND_MAPPING;
    for (size_t i = 0; i < count; i++) {
        int result =
            mapping ? check_node(source, yaml_entry_key(source, node, i), depth + 1, nodes, err)
                    : 0;
        if (result == 0 && mapping)
            result = check_key(source, node, i, err);
        if (result == 0)
            result = check_node(source, yaml_entry(source, node, i), depth + 1, nodes, err);
        if (result < 0)
            return result;
    }
    return 0;
}

static int check_node(const struct yaml_source *source, int node, int depth, int *nodes,
                      struct error *err)
{
    const yaml_node_t *found = yaml_source_node(source, node);
    if (depth > YAML_MAX_DEPTH)
        return yaml_error(source, node, err, "nested deeper than %d levels", YAML_MAX_DEPTH);
    if (++*nodes > YAML_MAX_NODES)
        return yaml_error(source, node, err, "the document has more than %d nodes", YAML_MAX_NODES);
    if (found && found->type == YAML_SCALAR_NODE &&
        memchr(found->data.scalar.value, '\0', found->data.scalar.length))
        return yaml_error(source, node, err, "a value must not contain a NUL byte");
    return check_entries(source, node, depth, nodes, err);
}

int yaml_source_check(const struct yaml_source *source, struct error *err)
{
    int nodes = 0;
    return check_node(source, yaml_root(source), 0, &nodes, err);
}

// --- reading -------------------------------------------------------------------------------------

static int parse_error(const char *name, const yaml_parser_t *parser, struct error *err)
{
    const char *problem = parser->problem ? parser->problem : "out of memory";
    if (parser->error == YAML_READER_ERROR)
        return error_set(err, ERROR_INPUT, "%s: byte %zu: %s", name, parser->problem_offset,
                         problem);
    return error_set(err, ERROR_INPUT, "%s:%zu:%zu: %s%s%s", name, parser->problem_mark.line + 1,
                     parser->problem_mark.column + 1, problem, parser->context ? " " : "",
                     parser->context ? parser->context : "");
}

// libyaml's tree loader is recursive in places and quadratic in flow depth: a cheap look at the
// events first keeps hostile nesting away from it.
static int check_depth(const char *name, const char *text, size_t bytes, struct error *err)
{
    yaml_parser_t parser;
    int depth = 0, result = 0;
    bool more = true;
    if (!yaml_parser_initialize(&parser))
        return error_set(err, ERROR_FAILED, "%s: out of memory", name);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, bytes);
    while (more && result == 0) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            result = parse_error(name, &parser, err);
            break;
        }
        depth += event.type == YAML_SEQUENCE_START_EVENT || event.type == YAML_MAPPING_START_EVENT;
        depth -= event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT;
        if (depth > YAML_MAX_DEPTH)
            result =
                error_set(err, ERROR_INPUT, "%s:%zu:%zu: nested deeper than %d levels", name,
                          event.start_mark.line + 1, event.start_mark.column + 1, YAML_MAX_DEPTH);
        more = event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return result;
}

static int check_single(const char *name, yaml_parser_t *parser, struct error *err)
{
    yaml_document_t second;
    if (!yaml_parser_load(parser, &second))
        return parse_error(name, parser, err);
    const yaml_node_t *root = yaml_document_get_root_node(&second);
    int result = 0;
    if (root)
        result =
            error_set(err, ERROR_INPUT, "%s:%zu:%zu: a second document begins here; one is all",
                      name, root->start_mark.line + 1, root->start_mark.column + 1);
    yaml_document_delete(&second);
    return result;
}

int yaml_source_parse(const char *name, const char *text, size_t bytes, struct yaml_source **out,
                      struct error *err)
{
    yaml_parser_t parser;
    *out = NULL;
    int result = check_depth(name, text, bytes, err);
    if (result < 0)
        return result;
    struct yaml_source *source = calloc(1, sizeof *source);
    if (!source || !(source->name = strdup(name)) || !yaml_parser_initialize(&parser)) {
        yaml_source_close(source);
        return error_set(err, ERROR_FAILED, "%s: out of memory", name);
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, bytes);
    if (!yaml_parser_load(&parser, &source->document))
        result = parse_error(name, &parser, err);
    else if (!yaml_root(source))
        result = error_set(err, ERROR_INPUT, "%s:1:1: the file is empty", name);
    else
        result = check_single(name, &parser, err);
    yaml_parser_delete(&parser);
    if (result == 0)
        result = yaml_source_check(source, err);
    if (result == 0)
        *out = source;
    else
        yaml_source_close(source);
    return result;
}

int yaml_source_open(const char *path, struct yaml_source **out, struct error *err)
{
    *out = NULL;
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set_errno(err, ERROR_INPUT, "cannot read %s", path);
    char *text = malloc(MAX_FILE_BYTES + 1);
    if (!text) {
        fclose(file);
        return error_set(err, ERROR_FAILED, "%s: out of memory", path);
    }
    size_t bytes = fread(text, 1, MAX_FILE_BYTES + 1, file);
    int result;
    if (ferror(file))
        result = error_set_errno(err, ERROR_INPUT, "cannot read %s", path);
    else if (bytes > MAX_FILE_BYTES)
        result = error_set(err, ERROR_INPUT, "%s: larger than %d bytes", path, MAX_FILE_BYTES);
    else
        result = yaml_source_parse(path, text, bytes, out, err);
    fclose(file);
    free(text);
    return result;
}

void yaml_source_close(struct yaml_source *source)
{
    if (!source)
        return;
    yaml_document_delete(&source->document);
    for (size_t i = 0; i < source->files.count; i++)
        free(source->files.items[i]);
    array_free(&source->files);
    array_free(&source->file_of);
    free(source->name);
    free(source);
}

// --- writing -------------------------------------------------------------------------------------

struct copy {
    const struct yaml_source *from;
    yaml_document_t to;
    bool (*named)(const char *path);
    char path[MAX_PATH_BYTES];
};

static int copy_node(struct copy *copy, int node);

static int add_scalar(struct copy *copy, const char *text, yaml_scalar_style_t style)
{
    return yaml_document_add_scalar(&copy->to, NULL, (const yaml_char_t *)text, (int)strlen(text),
                                    style);
}

// Copies one entry of a collection, with its name at the end of the path meanwhile.
static int copy_entry(struct copy *copy, int node, const char *name)
{
    size_t before = strlen(copy->path);
    int used =
        snprintf(copy->path + before, sizeof copy->path - before, "%s%s", before ? "/" : "", name);
    if (used < 0 || (size_t)used >= sizeof copy->path - before) {
        copy->path[before] = '\0';
        return 0;
    }
    int made = copy_node(copy, node);
    copy->path[before] = '\0';
    return made;
}

static int copy_named(struct copy *copy, int node, int list)
{
    for (size_t i = 0; i < yaml_count(copy->from, node); i++) {
        const char *key = yaml_text(copy->from, yaml_entry_key(copy->from, node, i));
        int pair = yaml_document_add_mapping(&copy->to, NULL, YAML_ANY_MAPPING_STYLE);
        int value = copy_entry(copy, yaml_entry(copy->from, node, i), key);
        int name_key = add_scalar(copy, "name", YAML_ANY_SCALAR_STYLE);
        int name = add_scalar(copy, key, YAML_DOUBLE_QUOTED_SCALAR_STYLE);
        int value_key = add_scalar(copy, "value", YAML_ANY_SCALAR_STYLE);
        if (!pair || !value || !name_key || !name || !value_key ||
            !yaml_document_append_mapping_pair(&copy->to, pair, name_key, name) ||
            !yaml_document_append_mapping_pair(&copy->to, pair, value_key, value) ||
            !yaml_document_append_sequence_item(&copy->to, list, pair))
            return 0;
    }
    return list;
}

static int copy_mapping(struct copy *copy, int node)
{
    if (copy->named && copy->named(copy->path)) {
        int list = yaml_document_add_sequence(&copy->to, NULL, YAML_ANY_SEQUENCE_STYLE);
        return list ? copy_named(copy, node, list) : 0;
    }
    int made = yaml_document_add_mapping(&copy->to, NULL, YAML_ANY_MAPPING_STYLE);
    for (size_t i = 0; made && i < yaml_count(copy->from, node); i++) {
        const char *key = yaml_text(copy->from, yaml_entry_key(copy->from, node, i));
        int new_key = add_scalar(copy, key, YAML_ANY_SCALAR_STYLE);
        int value = copy_entry(copy, yaml_entry(copy->from, node, i), key);
        if (!new_key || !value ||
            !yaml_document_append_mapping_pair(&copy->to, made, new_key, value))
            return 0;
    }
    return made;
}

static int copy_sequence(struct copy *copy, int node)
{
    int made = yaml_document_add_sequence(&copy->to, NULL, YAML_ANY_SEQUENCE_STYLE);
    for (size_t i = 0; made && i < yaml_count(copy->from, node); i++) {
        char name[24];
        snprintf(name, sizeof name, "%zu", i);
        int value = copy_entry(copy, yaml_entry(copy->from, node, i), name);
        if (!value || !yaml_document_append_sequence_item(&copy->to, made, value))
            return 0;
    }
    return made;
}

// Returns the new node, 0 when memory or the path's room ran out.
static int copy_node(struct copy *copy, int node)
{
    const yaml_node_t *from = yaml_source_node(copy->from, node);
    switch (yaml_kind(copy->from, node)) {
    case YAML_KIND_SCALAR:
        return add_scalar(copy, (const char *)from->data.scalar.value, from->data.scalar.style);
    case YAML_KIND_SEQUENCE:
        return copy_sequence(copy, node);
    case YAML_KIND_MAPPING:
        return copy_mapping(copy, node);
    case YAML_KIND_NONE:
        break;
    }
    return 0;
}

static int write_to_stream(void *stream, unsigned char *buffer, size_t size)
{
    return fwrite(buffer, 1, size, stream) == size;
}

int yaml_write(const struct yaml_source *source, int node, bool (*named)(const char *path),
               char **text, size_t *bytes, struct error *err)
{
    struct copy copy = {.from = source, .named = named};
    yaml_emitter_t emitter;
    int dumped = 0;
    *text = NULL;
    *bytes = 0;
    if (!yaml_document_initialize(&copy.to, NULL, NULL, NULL, 1, 1))
        return error_set(err, ERROR_FAILED, "%s: out of memory", source->name);
    // The emitter takes the first node for the root, so the copy of the root must be made first;
    // collections are added before what they hold.
    int made = copy_node(&copy, node);
    FILE *stream = open_memstream(text, bytes);
    if (stream && made == 1 && yaml_emitter_initialize(&emitter)) {
        yaml_emitter_set_unicode(&emitter, 1);
        yaml_emitter_set_output(&emitter, write_to_stream, stream);
        dumped = yaml_emitter_dump(&emitter, &copy.to); // takes the document
        yaml_emitter_delete(&emitter);
    } else {
        yaml_document_delete(&copy.to);
    }
    bool closed = stream && fclose(stream) == 0;
    if (dumped && closed)
        return 0;
    free(*text);
    *text = NULL;
    return yaml_error(source, node, err, "cannot write this part of the document out again");
}
