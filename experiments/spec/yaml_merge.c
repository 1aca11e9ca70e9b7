// SPDX-License-Identifier: MIT
#include "experiments/spec/yaml_merge.h"

#include <stdlib.h>
#include <string.h>

#include "experiments/spec/yaml_source.h"

// --- nodes of a new document ---------------------------------------------------------------------

// Which of the new document's files is that one; -1: no memory, or more than can be counted.
static int file_index(struct yaml_source *to, const char *file)
{
    for (size_t i = 0; i < to->files.count; i++)
        if (strcmp(to->files.items[i], file) == 0)
            return (int)i;
    char *copy = to->files.count < 255 ? strdup(file) : NULL;
    if (!copy || array_push(&to->files, copy) < 0) {
        free(copy);
        return -1;
    }
    return (int)to->files.count - 1;
}

// Gives a node just made the place of another. Returns it, 0: no memory.
static int place(struct yaml_source *to, int made, struct yaml_part from)
{
    yaml_node_t *node = yaml_source_node(to, made);
    const yaml_node_t *old = yaml_source_node(from.source, from.node);
    int file = file_index(to, yaml_source_file(from.source, from.node));
    if (!node || file < 0)
        return 0;
    while (to->file_of.count <= (size_t)made)
        if (array_push(&to->file_of, (unsigned char)file) < 0)
            return 0;
    to->file_of.items[made] = (unsigned char)file;
    if (old)
        node->start_mark = old->start_mark;
    return made;
}

static int add_text(struct yaml_source *to, const char *text, size_t bytes,
                    yaml_scalar_style_t style, struct yaml_part from)
{
    int made =
        yaml_document_add_scalar(&to->document, NULL, (const yaml_char_t *)text, (int)bytes, style);
    return made ? place(to, made, from) : 0;
}

static int add_mapping(struct yaml_source *to, struct yaml_part from)
{
    int made = yaml_document_add_mapping(&to->document, NULL, YAML_ANY_MAPPING_STYLE);
    return made ? place(to, made, from) : 0;
}

static bool add_pair(struct yaml_source *to, int mapping, int key, int value)
{
    return key && value &&
           yaml_document_append_mapping_pair(&to->document, mapping, key, value) != 0;
}

static struct yaml_part key_of(struct yaml_part part, size_t i)
{
    return (struct yaml_part){part.source, yaml_entry_key(part.source, part.node, i)};
}

static struct yaml_part entry_of(struct yaml_part part, size_t i)
{
    return (struct yaml_part){part.source, yaml_entry(part.source, part.node, i)};
}

// Returns the copy, 0: no memory.
static int copy(struct yaml_source *to, struct yaml_part from)
{
    enum yaml_kind kind = yaml_kind(from.source, from.node);
    if (kind == YAML_KIND_SCALAR) {
        const yaml_node_t *node = yaml_source_node(from.source, from.node);
        return add_text(to, (const char *)node->data.scalar.value, node->data.scalar.length,
                        node->data.scalar.style, from);
    }
    if (kind == YAML_KIND_NONE)
        return 0;
    int made;
    if (kind == YAML_KIND_MAPPING) {
        made = add_mapping(to, from);
    } else {
        made = yaml_document_add_sequence(&to->document, NULL, YAML_ANY_SEQUENCE_STYLE);
        made = made ? place(to, made, from) : 0;
    }
    for (size_t i = 0; made && i < yaml_count(from.source, from.node); i++) {
        int value = copy(to, entry_of(from, i));
        bool added =
            kind == YAML_KIND_MAPPING
                ? add_pair(to, made, copy(to, key_of(from, i)), value)
                : value && yaml_document_append_sequence_item(&to->document, made, value) != 0;
        if (!added)
            return 0;
    }
    return made;
}

// --- merging -------------------------------------------------------------------------------------

static bool is_dropped(const char *key, const char *const *dropped)
{
    for (; dropped && *dropped; dropped++)
        if (strcmp(key, *dropped) == 0)
            return true;
    return false;
}

static bool is_mapping(struct yaml_part part)
{
    return yaml_kind(part.source, part.node) == YAML_KIND_MAPPING;
}

static int merge(struct yaml_source *to, struct yaml_part base, struct yaml_part over,
                 const char *const *dropped)
{
    if (!is_mapping(base) || !is_mapping(over))
        return copy(to, over);
    int made = add_mapping(to, over);
    for (size_t i = 0; made && i < yaml_count(base.source, base.node); i++) {
        struct yaml_part key = key_of(base, i), value = entry_of(base, i);
        const char *text = yaml_text(key.source, key.node);
        struct yaml_part own_key = {over.source, yaml_key(over.source, over.node, text)};
        struct yaml_part own = {over.source, yaml_child(over.source, over.node, text)};
        if (is_dropped(text, dropped))
            continue;
        if (!add_pair(to, made, copy(to, own_key.node ? own_key : key),
                      own.node ? merge(to, value, own, NULL) : copy(to, value)))
            return 0;
    }
    for (size_t i = 0; made && i < yaml_count(over.source, over.node); i++) {
        const char *text = yaml_text(over.source, key_of(over, i).node);
        if (is_dropped(text, dropped) || yaml_key(base.source, base.node, text))
            continue;
        if (!add_pair(to, made, copy(to, key_of(over, i)), copy(to, entry_of(over, i))))
            return 0;
    }
    return made;
}

static struct yaml_source *begin(const char *name)
{
    struct yaml_source *source = calloc(1, sizeof *source);
    if (source && (source->name = strdup(name)) &&
        yaml_document_initialize(&source->document, NULL, NULL, NULL, 1, 1))
        return source;
    yaml_source_close(source);
    return NULL;
}

// Hands it out when it is whole and within the limits, else closes it.
static int finish(struct yaml_source *source, bool whole, struct yaml_source **out,
                  struct error *err)
{
    int result = whole ? yaml_source_check(source, err)
                       : error_set(err, ERROR_FAILED, "out of memory for a merged document");
    if (result == 0)
        *out = source;
    else
        yaml_source_close(source);
    return result;
}

int yaml_merge(struct yaml_part base, struct yaml_part over, const char *const *dropped,
               struct yaml_source **out, struct error *err)
{
    struct yaml_source *to = begin(yaml_source_file(over.source, over.node));
    *out = NULL;
    // A document's first node is its root; a mapping is made before what it holds.
    return finish(to, to && merge(to, base, over, dropped) == 1, out, err);
}

int yaml_nest(struct yaml_part key, struct yaml_part value, struct yaml_source **out,
              struct error *err)
{
    struct yaml_source *to = begin(yaml_source_file(key.source, key.node));
    const char *text = yaml_text(key.source, key.node);
    int mapping = to ? add_mapping(to, key) : 0, depth = 0;
    bool whole = mapping != 0;
    *out = NULL;
    for (; whole; text += strcspn(text, ".") + 1) {
        size_t bytes = strcspn(text, ".");
        bool last = !text[bytes] || ++depth > YAML_MAX_DEPTH;
        int name = add_text(to, text, bytes, YAML_ANY_SCALAR_STYLE, key);
        int inside = last ? copy(to, value) : add_mapping(to, key);
        whole = add_pair(to, mapping, name, inside);
        mapping = inside;
        if (last)
            break;
    }
    return finish(to, whole, out, err);
}
