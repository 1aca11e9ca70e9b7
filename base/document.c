// SPDX-License-Identifier: MIT
#include "base/document.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/array.h"
#include "base/input_file.h"
#include "base/text.h"

enum { FILE_BYTES_MAX = 1 << 20, DEPTH_MAX = 30, NODES_MAX = 20000 };

struct entry {
    const struct node *key; // of a mapping
    const struct node *value;
};

struct node {
    enum node_kind kind;
    unsigned line, column;
    const char *file;
    char *text;
    yaml_scalar_style_t style; // of a text: how it was quoted
    struct ARRAY_OF(struct entry) entries;
    unsigned depth; // levels of collections below it, itself included; 0 for a single text
    size_t size;    // nodes in its subtree, itself included; an alias counts every time it is used
};

struct document {
    const char *name;
    const struct node *root;
    struct ARRAY_OF(struct node *) nodes; // owned
    struct ARRAY_OF(char *) files;        // owned; nodes point at these
    bool placeless;                       // of no file
};

// --- looking things up ---------------------------------------------------------------------------

const struct node *document_root(const struct document *document)
{
    return document->root;
}

size_t document_size(const struct document *document)
{
    return document->root ? document->root->size : 0;
}

enum node_kind node_kind(const struct node *node)
{
    return node ? node->kind : NODE_NONE;
}

const char *node_text(const struct node *node)
{
    return node ? node->text : NULL;
}

size_t node_count(const struct node *node)
{
    return node ? node->entries.count : 0;
}

const struct node *node_entry(const struct node *node, size_t index)
{
    return index < node_count(node) ? node->entries.items[index].value : NULL;
}

const struct node *node_entry_key(const struct node *node, size_t index)
{
    return index < node_count(node) ? node->entries.items[index].key : NULL;
}

static const struct entry *find_entry(const struct node *node, const char *key)
{
    for (size_t i = 0; node_kind(node) == NODE_MAPPING && i < node->entries.count; i++)
        if (strcmp(node->entries.items[i].key->text, key) == 0)
            return &node->entries.items[i];
    return NULL;
}

const struct node *node_child(const struct node *node, const char *key)
{
    const struct entry *entry = find_entry(node, key);
    return entry ? entry->value : NULL;
}

const struct node *node_key(const struct node *node, const char *key)
{
    const struct entry *entry = find_entry(node, key);
    return entry ? entry->key : NULL;
}

void node_place(const struct node *node, unsigned *line, unsigned *column)
{
    *line = node ? node->line : 1;
    *column = node ? node->column : 1;
}

int document_error(const struct document *document, const struct node *node, struct error *err,
                   const char *format, ...)
{
    struct error local;
    unsigned line, column;
    va_list args;
    err = err ? err : &local;
    va_start(args, format);
    err->kind = ERROR_INPUT;
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    const char *file = node ? node->file : document->name;
    node_place(node, &line, &column);
    if (line == 0 || (!node && document->placeless))
        return error_prefix(err, "%s", file);
    return error_prefix(err, "%s:%u:%u", file, line, column);
}

// --- making documents ----------------------------------------------------------------------------

static const char *intern_file(struct document *document, const char *file)
{
    for (size_t i = 0; i < document->files.count; i++)
        if (strcmp(document->files.items[i], file) == 0)
            return document->files.items[i];
    char *copy = strdup(file);
    if (!copy || array_push(&document->files, copy) < 0) {
        free(copy);
        return NULL;
    }
    return copy;
}

// NULL: no memory.
static struct document *document_alloc(const char *name)
{
    struct document *document = calloc(1, sizeof *document);
    if (document && (document->name = intern_file(document, name)))
        return document;
    document_free(document);
    return NULL;
}

void document_free(struct document *document)
{
    if (!document)
        return;
    for (size_t i = 0; i < document->nodes.count; i++) {
        free(document->nodes.items[i]->text);
        array_free(&document->nodes.items[i]->entries);
        free(document->nodes.items[i]);
    }
    for (size_t i = 0; i < document->files.count; i++)
        free(document->files.items[i]);
    array_free(&document->nodes);
    array_free(&document->files);
    free(document);
}

// A node of the document without content. NULL: no memory.
static struct node *add_node(struct document *document, enum node_kind kind, const char *file,
                             unsigned line, unsigned column)
{
    struct node *node = calloc(1, sizeof *node);
    const char *own_file = intern_file(document, file);
    if (!node || !own_file || array_push(&document->nodes, node) < 0) {
        free(node);
        return NULL;
    }
    *node =
        (struct node){.kind = kind, .line = line, .column = column, .file = own_file, .size = 1};
    node->depth = kind != NODE_TEXT;
    return node;
}

static struct node *add_node_like(struct document *document, enum node_kind kind,
                                  const struct node *place)
{
    return add_node(document, kind, place->file, place->line, place->column);
}

static struct node *add_text(struct document *document, const char *text, size_t bytes,
                             yaml_scalar_style_t style, const struct node *place)
{
    struct node *node = add_node_like(document, NODE_TEXT, place);
    if (node)
        node->style = style;
    return node && (node->text = strndup(text, bytes)) ? node : NULL;
}

// False: no memory, or one of them is missing for lack of it.
static bool add_entry(struct node *node, const struct node *key, const struct node *value)
{
    if (!value || (node->kind == NODE_MAPPING && !key) ||
        array_push(&node->entries, (struct entry){key, value}) < 0)
        return false;
    node->size += value->size + (key != NULL);
    if (node->depth <= value->depth)
        node->depth = value->depth + 1;
    return true;
}

// --- reading -------------------------------------------------------------------------------------

struct anchor {
    char *name;
    const struct node *node;
    bool open; // its node is not complete yet
};

struct reader {
    yaml_parser_t parser;
    struct document *document;
    struct ARRAY_OF(struct anchor) anchors;
    struct error *err;
};

static int prefix_place(const struct reader *reader, yaml_mark_t mark)
{
    const char *name = reader->document->name;
    return reader->document->placeless
               ? error_prefix(reader->err, "%s", name)
               : error_prefix(reader->err, "%s:%zu:%zu", name, mark.line + 1, mark.column + 1);
}

static int parser_error(struct reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    const char *name = reader->document->name;
    const char *problem = parser->problem ? parser->problem : "out of memory";
    if (parser->error == YAML_READER_ERROR)
        return error_set(reader->err, ERROR_INPUT, "%s: byte %zu: %s", name, parser->problem_offset,
                         problem);
    error_set(reader->err, ERROR_INPUT, "%s%s%s", problem, parser->context ? " " : "",
              parser->context ? parser->context : "");
    return prefix_place(reader, parser->problem_mark);
}

static int out_of_memory(struct reader *reader)
{
    return error_set(reader->err, ERROR_FAILED, "%s: out of memory", reader->document->name);
}

static int mark_error(struct reader *reader, yaml_mark_t mark, const char *text)
{
    error_set(reader->err, ERROR_INPUT, "%s", text);
    return prefix_place(reader, mark);
}

static int next_event(struct reader *reader, yaml_event_t *event)
{
    return yaml_parser_parse(&reader->parser, event) ? 0 : parser_error(reader);
}

static int check_limits(const struct document *document, const struct node *node, unsigned outside,
                        struct error *err)
{
    if (outside + node->depth > DEPTH_MAX)
        return document_error(document, node, err, "nested deeper than %d levels", DEPTH_MAX);
    if (node->size > NODES_MAX)
        return document_error(document, node, err, "the document has more than %s nodes",
                              TEXT_COUNT(NODES_MAX));
    return 0;
}

static int read_alias(struct reader *reader, const yaml_event_t *event, unsigned outside,
                      const struct node **out)
{
    const char *name = (const char *)event->data.alias.anchor;
    for (size_t i = reader->anchors.count; i-- > 0;) {
        const struct anchor *anchor = &reader->anchors.items[i];
        if (strcmp(anchor->name, name) != 0)
            continue;
        *out = anchor->node;
        if (anchor->open)
            return document_error(reader->document, anchor->node, reader->err,
                                  "nested deeper than %d levels: `*%s` is inside of what it names",
                                  DEPTH_MAX, name);
        return check_limits(reader->document, anchor->node, outside, reader->err);
    }
    return mark_error(reader, event->start_mark, "found undefined alias");
}

static int remember_anchor(struct reader *reader, const yaml_char_t *name, const struct node *node)
{
    char *copy = name ? strdup((const char *)name) : NULL;
    if (!name)
        return 0;
    if (copy && array_push(&reader->anchors, (struct anchor){copy, node, true}) == 0)
        return 0;
    free(copy);
    return out_of_memory(reader);
}

static int read_node(struct reader *reader, const yaml_event_t *event, unsigned outside,
                     const struct node **out);

// The value of a key that was read, into the mapping.
static int read_pair(struct reader *reader, struct node *mapping, const yaml_event_t *key_event,
                     unsigned outside)
{
    yaml_event_t event;
    const struct node *key, *value = NULL;
    int result = read_node(reader, key_event, outside, &key);
    if (result < 0)
        return result;
    if (key->kind != NODE_TEXT)
        return document_error(reader->document, key, reader->err, "a key must be a plain word");
    if (find_entry(mapping, key->text))
        return document_error(reader->document, key, reader->err, "key `%s` is given twice",
                              key->text);
    if ((result = next_event(reader, &event)) < 0)
        return result;
    result = read_node(reader, &event, outside, &value);
    yaml_event_delete(&event);
    return result < 0 ? result : add_entry(mapping, key, value) ? 0 : out_of_memory(reader);
}

// Reads the entries of a list or a mapping, up to its end.
static int read_entries(struct reader *reader, struct node *node, unsigned outside)
{
    for (;;) {
        yaml_event_t event;
        const struct node *value = NULL;
        int result = next_event(reader, &event);
        if (result < 0)
            return result;
        bool ends = event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT;
        if (!ends && node->kind == NODE_MAPPING)
            result = read_pair(reader, node, &event, outside);
        else if (!ends && (result = read_node(reader, &event, outside, &value)) == 0)
            result = add_entry(node, NULL, value) ? 0 : out_of_memory(reader);
        yaml_event_delete(&event);
        if (result == 0)
            result = check_limits(reader->document, node, 0, reader->err);
        if (result < 0 || ends)
            return result;
    }
}

static int read_text(struct reader *reader, const yaml_event_t *event, struct node *node)
{
    size_t bytes = event->data.scalar.length;
    const char *text = (const char *)event->data.scalar.value;
    if (memchr(text, '\0', bytes))
        return document_error(reader->document, node, reader->err,
                              "a value must not contain a NUL byte");
    node->text = strndup(text, bytes);
    node->style = event->data.scalar.style;
    return node->text ? 0 : out_of_memory(reader);
}

// Makes the node that an event begins. `outside`: how many collections enclose it.
static int read_node(struct reader *reader, const yaml_event_t *event, unsigned outside,
                     const struct node **out)
{
    if (event->type == YAML_ALIAS_EVENT)
        return read_alias(reader, event, outside, out);
    bool is_text = event->type == YAML_SCALAR_EVENT,
         is_list = event->type == YAML_SEQUENCE_START_EVENT, placed = !reader->document->placeless;
    struct node *node =
        add_node(reader->document,
                 is_text   ? NODE_TEXT
                 : is_list ? NODE_LIST
                           : NODE_MAPPING,
                 reader->document->name, placed ? (unsigned)event->start_mark.line + 1 : 0,
                 placed ? (unsigned)event->start_mark.column + 1 : 0);
    if (!node)
        return out_of_memory(reader);
    *out = node;
    size_t anchor = reader->anchors.count;
    int result = remember_anchor(reader,
                                 is_text   ? event->data.scalar.anchor
                                 : is_list ? event->data.sequence_start.anchor
                                           : event->data.mapping_start.anchor,
                                 node);
    if (result == 0)
        result = is_text ? read_text(reader, event, node)
                         : check_limits(reader->document, node, outside, reader->err);
    if (result == 0 && !is_text)
        result = read_entries(reader, node, outside + 1);
    if (result == 0 && anchor < reader->anchors.count)
        reader->anchors.items[anchor].open = false;
    return result;
}

// Reads from the stream's start to its end, which must hold exactly one document.
static int read_stream(struct reader *reader)
{
    yaml_event_t event;
    for (;;) {
        int result = next_event(reader, &event);
        if (result < 0)
            return result;
        yaml_event_type_t type = event.type;
        bool begins = type != YAML_STREAM_START_EVENT && type != YAML_DOCUMENT_START_EVENT &&
                      type != YAML_DOCUMENT_END_EVENT && type != YAML_STREAM_END_EVENT;
        if (begins && reader->document->root)
            result =
                mark_error(reader, event.start_mark, "a second document begins here; one is all");
        else if (begins)
            result = read_node(reader, &event, 0, &reader->document->root);
        yaml_event_delete(&event);
        if (result < 0)
            return result;
        if (type == YAML_STREAM_END_EVENT)
            break;
    }
    return reader->document->root ? 0
                                  : error_set(reader->err, ERROR_INPUT, "%s:1:1: the file is empty",
                                              reader->document->name);
}

static int parse(const char *name, const char *text, size_t bytes, bool placeless,
                 struct document **out, struct error *err)
{
    struct reader reader = {.document = document_alloc(name), .err = err};
    *out = NULL;
    if (!reader.document || !yaml_parser_initialize(&reader.parser)) {
        document_free(reader.document);
        return error_set(err, ERROR_FAILED, "%s: out of memory", name);
    }
    reader.document->placeless = placeless;
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, bytes);
    int result = read_stream(&reader);
    for (size_t i = 0; i < reader.anchors.count; i++)
        free(reader.anchors.items[i].name);
    array_free(&reader.anchors);
    yaml_parser_delete(&reader.parser);
    if (result == 0)
        *out = reader.document;
    else
        document_free(reader.document);
    return result;
}

int document_parse(const char *name, const char *text, size_t bytes, struct document **out,
                   struct error *err)
{
    return parse(name, text, bytes, false, out, err);
}

int document_parse_argument(const char *name, const char *text, size_t bytes, struct document **out,
                            struct error *err)
{
    return parse(name, text, bytes, true, out, err);
}

static int is_document_name(const struct dirent *entry)
{
    const char *end = strrchr(entry->d_name, '.');
    return end && (strcmp(end, ".yaml") == 0 || strcmp(end, ".yml") == 0);
}

// A folder where a document is to be: which are in it.
static int refuse_folder(const char *path, struct error *err)
{
    enum { SHOWN = 6 };
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, is_document_name, alphasort);
    error_set(err, ERROR_INPUT, "%s is a folder where a YAML file is to be; %s", path,
              count > 0 ? "in it:" : "there is none in it");
    for (int i = 0; i < count; i++) {
        if (i < SHOWN)
            text_append(err->text, sizeof err->text, "%s %s", i ? "," : "", entries[i]->d_name);
        free(entries[i]);
    }
    if (count > SHOWN)
        text_append(err->text, sizeof err->text, " and %s more", TEXT_COUNT(count - SHOWN));
    free(entries);
    return -(int)ERROR_INPUT;
}

int document_open(const char *path, struct document **out, struct error *err)
{
    *out = NULL;
    FILE *file = input_stream_any(path, err);
    if (!file)
        return errno == EISDIR ? refuse_folder(path, err) : -(int)ERROR_INPUT;
    char *text = malloc(FILE_BYTES_MAX + 1);
    size_t bytes = text ? fread(text, 1, FILE_BYTES_MAX + 1, file) : 0;
    int result;
    if (!text)
        result = error_set(err, ERROR_FAILED, "%s: out of memory", path);
    else if (ferror(file))
        result = error_set_errno(err, ERROR_INPUT, "cannot read %s", path);
    else if (bytes > FILE_BYTES_MAX)
        result = error_set(err, ERROR_INPUT, "%s: larger than %d bytes", path, FILE_BYTES_MAX);
    else
        result = document_parse(path, text, bytes, out, err);
    fclose(file);
    free(text);
    return result;
}

// --- documents made of others --------------------------------------------------------------------

// NULL: no memory.
static const struct node *copy_node(struct document *to, const struct node *from)
{
    if (!from)
        return NULL;
    if (from->kind == NODE_TEXT)
        return add_text(to, from->text, strlen(from->text), from->style, from);
    struct node *node = add_node_like(to, from->kind, from);
    for (size_t i = 0; node && i < from->entries.count; i++)
        if (!add_entry(node, copy_node(to, from->entries.items[i].key),
                       copy_node(to, from->entries.items[i].value)))
            return NULL;
    return node;
}

static bool is_dropped(const char *key, const char *const *dropped)
{
    for (; dropped && *dropped; dropped++)
        if (strcmp(key, *dropped) == 0)
            return true;
    return false;
}

// NULL: no memory.
static const struct node *merge_nodes(struct document *to, const struct node *base,
                                      const struct node *over, const char *const *dropped)
{
    if (base->kind != NODE_MAPPING || over->kind != NODE_MAPPING)
        return copy_node(to, over);
    struct node *node = add_node_like(to, NODE_MAPPING, over);
    for (size_t i = 0; node && i < base->entries.count; i++) {
        const struct entry *entry = &base->entries.items[i];
        const struct entry *own = find_entry(over, entry->key->text);
        if (is_dropped(entry->key->text, dropped))
            continue;
        if (!add_entry(node, copy_node(to, own ? own->key : entry->key),
                       own ? merge_nodes(to, entry->value, own->value, NULL)
                           : copy_node(to, entry->value)))
            return NULL;
    }
    for (size_t i = 0; node && i < over->entries.count; i++) {
        const struct entry *entry = &over->entries.items[i];
        if (is_dropped(entry->key->text, dropped) || find_entry(base, entry->key->text))
            continue;
        if (!add_entry(node, copy_node(to, entry->key), copy_node(to, entry->value)))
            return NULL;
    }
    return node;
}

// Returns the document if it is whole and within the limits, else frees it.
static int finish_document(struct document *document, const struct node *root,
                           struct document **out, struct error *err)
{
    int result = root ? check_limits(document, root, 0, err)
                      : error_set(err, ERROR_FAILED, "out of memory for a merged document");
    *out = NULL;
    if (result < 0) {
        document_free(document);
        return result;
    }
    document->root = root;
    *out = document;
    return 0;
}

int document_merge(const struct node *base, const struct node *over, const char *const *dropped,
                   struct document **out, struct error *err)
{
    struct document *to = document_alloc(over->file);
    return finish_document(to, to ? merge_nodes(to, base, over, dropped) : NULL, out, err);
}

// The mapping for the rest of a dotted key. NULL: no memory, or deeper than a document may be.
static const struct node *document_nest_key(struct document *to, const struct node *key,
                                            const char *path, const struct node *value,
                                            unsigned depth)
{
    size_t bytes = strcspn(path, ".");
    struct node *mapping = depth < DEPTH_MAX ? add_node_like(to, NODE_MAPPING, key) : NULL;
    if (!mapping ||
        !add_entry(mapping, add_text(to, path, bytes, YAML_ANY_SCALAR_STYLE, key),
                   path[bytes] ? document_nest_key(to, key, path + bytes + 1, value, depth + 1)
                               : copy_node(to, value)))
        return NULL;
    return mapping;
}

int document_nest(const struct node *key, const struct node *value, struct document **out,
                  struct error *err)
{
    struct document *to = document_alloc(key->file);
    unsigned dots = 0;
    for (const char *at = key->text; *at; at++)
        dots += *at == '.';
    if (to && dots >= DEPTH_MAX) {
        document_free(to);
        return document_error(NULL, key, err, "nested deeper than %d levels", DEPTH_MAX);
    }
    return finish_document(to, to ? document_nest_key(to, key, key->text, value, 0) : NULL, out,
                           err);
}

// --- writing -------------------------------------------------------------------------------------

static int write_to_stream(void *stream, unsigned char *buffer, size_t size)
{
    return fwrite(buffer, 1, size, stream) == size;
}

static bool emit_node(yaml_emitter_t *emitter, const struct node *node)
{
    yaml_event_t event;
    bool is_map = node->kind == NODE_MAPPING;
    if (node->kind == NODE_TEXT)
        return yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)node->text,
                                            (int)strlen(node->text), 1, 1, node->style) &&
               yaml_emitter_emit(emitter, &event);
    if (!(is_map
              ? yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_ANY_MAPPING_STYLE)
              : yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
                                                     YAML_ANY_SEQUENCE_STYLE)) ||
        !yaml_emitter_emit(emitter, &event))
        return false;
    for (size_t i = 0; i < node->entries.count; i++)
        if ((is_map && !emit_node(emitter, node->entries.items[i].key)) ||
            !emit_node(emitter, node->entries.items[i].value))
            return false;
    return (is_map ? yaml_mapping_end_event_initialize(&event)
                   : yaml_sequence_end_event_initialize(&event)) &&
           yaml_emitter_emit(emitter, &event);
}

static bool emit_document(yaml_emitter_t *emitter, const struct document *document)
{
    yaml_event_t event;
    return yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING) &&
           yaml_emitter_emit(emitter, &event) &&
           yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1) &&
           yaml_emitter_emit(emitter, &event) && emit_node(emitter, document->root) &&
           yaml_document_end_event_initialize(&event, 1) && yaml_emitter_emit(emitter, &event) &&
           yaml_stream_end_event_initialize(&event) && yaml_emitter_emit(emitter, &event);
}

int document_write(const struct document *document, char **text, size_t *bytes, struct error *err)
{
    yaml_emitter_t emitter;
    bool written = false;
    *text = NULL;
    *bytes = 0;
    FILE *stream = open_memstream(text, bytes);
    if (stream && yaml_emitter_initialize(&emitter)) {
        yaml_emitter_set_unicode(&emitter, 1);
        yaml_emitter_set_output(&emitter, write_to_stream, stream);
        written = emit_document(&emitter, document);
        yaml_emitter_delete(&emitter);
    }
    bool closed = stream && fclose(stream) == 0;
    if (written && closed)
        return 0;
    free(*text);
    *text = NULL;
    return error_set(err, ERROR_FAILED, "%s: cannot write the document out again", document->name);
}
