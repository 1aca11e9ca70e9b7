// SPDX-License-Identifier: MIT
#include "analysis/export/pt_folded.h"

#include <inttypes.h>

#include "analysis/pt/pt_trace.h"
#include "base/new_file.h"
#include "base/text.h"

// The node of a stack's innermost function, 0: no memory.
static uint32_t node_at(struct pt_folded *folded, struct pt_map_key key)
{
    uint32_t *number = pt_map_at(&folded->map, key);
    if (!number)
        return 0;
    if (*number == 0) {
        if (folded->nodes.count >= UINT32_MAX - 1 ||
            array_push(&folded->nodes, (struct pt_folded_node){.key = key}) < 0)
            return 0;
        *number = (uint32_t)folded->nodes.count;
    }
    return *number;
}

static int no_memory(const struct pt_folded *folded, struct error *err)
{
    return error_set(err, ERROR_FAILED, "out of memory for %s different stacks",
                     TEXT_COUNT(folded->nodes.count));
}

int pt_folded_take(struct pt_folded *folded, const struct pt_nested_span *spans, size_t count,
                   struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        const struct pt_span *span = &spans[i].span;
        folded->open.count = spans[i].depth;
        uint32_t parent = folded->open.count ? folded->open.items[folded->open.count - 1] : 0;
        uint32_t node = node_at(folded, pt_map_key_of(span, parent));
        if (node == 0 || array_push(&folded->open, node) < 0)
            return no_memory(folded, err);
        if (span->kind == PT_SPAN_TASK)
            continue; // its own time is what was not traced
        uint64_t length = span->end - span->begin;
        folded->nodes.items[node - 1].self += length > span->inner ? length - span->inner : 0;
    }
    return 0;
}

int pt_folded_add(struct pt_folded *folded, const struct pt_folded *other, struct error *err)
{
    struct numbers ARRAY_OF(uint32_t) here = {0}; // of the other's nodes
    int result = array_push(&here, 0);
    for (size_t i = 0; result == 0 && i < other->nodes.count; i++) {
        struct pt_map_key key = other->nodes.items[i].key;
        key.parent = here.items[key.parent];
        uint32_t node = node_at(folded, key);
        if (node == 0 || array_push(&here, node) < 0)
            result = -1;
        else
            folded->nodes.items[node - 1].self += other->nodes.items[i].self;
    }
    array_free(&here);
    return result < 0 ? no_memory(folded, err) : 0;
}

static void write_name(const struct pt_trace *trace, const struct pt_map_key *key, FILE *out)
{
    char text[PT_LABEL_BYTES];
    const char *name =
        pt_label(trace, (enum pt_span_kind)key->kind, key->function, key->known, text);
    for (; *name; name++)
        fputc(*name == ';' ? ',' : (unsigned char)*name < ' ' ? ' ' : *name, out);
}

static void write_line(const struct pt_folded *folded, const struct pt_trace *trace, uint32_t node,
                       struct pt_folded_open *path, FILE *out)
{
    uint64_t self = folded->nodes.items[node - 1].self;
    path->count = 0;
    for (uint32_t at = node; at != 0; at = folded->nodes.items[at - 1].key.parent)
        if (array_push(path, at) < 0)
            return;
    for (size_t i = path->count; i-- > 0;) {
        write_name(trace, &folded->nodes.items[path->items[i] - 1].key, out);
        fputc(i ? ';' : ' ', out);
    }
    fprintf(out, "%.0f\n", pt_trace_duration_ns(trace, self));
}

int pt_folded_write(const struct pt_folded *folded, const struct pt_trace *trace, const char *path,
                    struct error *err)
{
    struct pt_folded_open stack = {0};
    struct new_file file;
    if (new_file_open(&file, path, err) < 0)
        return -(int)ERROR_FAILED;
    FILE *out = file.file;
    for (size_t i = 0; i < folded->nodes.count; i++)
        if (folded->nodes.items[i].self)
            write_line(folded, trace, (uint32_t)i + 1, &stack, out);
    array_free(&stack);
    return new_file_finish(&file, 0, err);
}

void pt_folded_free(struct pt_folded *folded)
{
    pt_map_free(&folded->map);
    array_free(&folded->nodes);
    array_free(&folded->open);
}
