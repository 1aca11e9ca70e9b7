// SPDX-License-Identifier: MIT
//
// Any bytes as a YAML document, what follows the first zero byte as one that is laid over it: read,
// merged and bound, or refused with a place, never a crash.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/fields.h"

struct part {
    char name[FIELD_NAME_BYTES];
    uint64_t bytes, time_ns;
    struct word_array words;
};

struct whole {
    const char *text;
    double number;
    int nice;
    struct ARRAY_OF(struct part) map, list;
};

static const struct field part_rows[] = {
    {"bytes", FIELD_BYTES, "1", INTO(struct part, bytes), .low = "1", .help = "b"},
    {"time", FIELD_DURATION, "1s", INTO(struct part, time_ns), .help = "t"},
    {"words", FIELD_TEXTS, INTO(struct part, words), .high = "9", .help = "w"},
};
static const struct fields part_fields = FIELDS(part_rows, struct part);

static const struct field whole_rows[] = {
    {"text", FIELD_TEXT, INTO(struct whole, text), .help = "t"},
    {"number", FIELD_NUMBER, INTO(struct whole, number), .low = "1", .high = "9", .help = "n"},
    {"nice", FIELD_INTEGER, INTO(struct whole, nice), .low = "-20", .high = "19", .help = "n"},
    {"map", FIELD_MAP, .fields = &part_fields, INTO(struct whole, map), .help = "m"},
    {"list", FIELD_LIST, .fields = &part_fields, INTO(struct whole, list), .help = "l"},
    {"steps", FIELD_MAP_LISTS, .fields = &part_fields, .help = "s"},
};
static const struct fields whole_fields = FIELDS(whole_rows, struct whole);

static void check(int result, const struct error *err)
{
    if (result < 0 && (err->kind != ERROR_INPUT || strncmp(err->text, "fuzz.yaml:", 10) != 0))
        abort();
}

static void bind(const struct document *document)
{
    struct error err = {0};
    struct whole whole = {.text = NULL};
    struct binding binding = {.document = document, .root = &whole_fields, .err = &err};
    fields_set_defaults(&whole_fields, &whole);
    check(fields_read(&binding, &whole_fields, document_root(document), &whole), &err);
    fields_free(&whole_fields, &whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = {0};
    struct document *base, *over = NULL, *made = NULL;
    const char *text = (const char *)data, *zero = size ? memchr(data, 0, size) : NULL;
    size_t bytes = zero ? (size_t)(zero - text) : size;
    int result = document_parse("fuzz.yaml", text, bytes, &base, &err);
    check(result, &err);
    if (result < 0)
        return 0;
    bind(base);
    if (zero && document_parse("fuzz.yaml", zero + 1, size - bytes - 1, &over, &err) == 0) {
        const struct node *root = document_root(over), *key = node_entry_key(root, 0);
        result = document_merge(document_root(base), root, NULL, &made, &err);
        check(result, &err);
        if (result == 0)
            bind(made);
        document_free(made);
        result = key ? document_nest(key, node_entry(root, 0), &made, &err) : -1;
        if (key)
            check(result, &err);
        if (result == 0)
            document_free(made);
    }
    document_free(over);
    document_free(base);
    return 0;
}
