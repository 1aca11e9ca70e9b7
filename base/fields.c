// SPDX-License-Identifier: MIT
#include "base/fields.h"

#include <assert.h>
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggestion.h"
#include "base/text.h"
#include "base/units.h"

enum { KEYS_MAX = 64, ENTRIES_MAX = 64, PATH_BYTES = 200 };

// The memory layout that every ARRAY_OF has.
struct raw_array {
    void *items;
    size_t count, capacity;
};

static void *field_member(const struct field *field, void *object)
{
    return (char *)object + field->offset;
}

int field_out_of_memory(const struct binding *binding)
{
    return error_set(binding->err, ERROR_FAILED, "out of memory for what the document says");
}

int field_misread(const struct binding *binding, const struct node *mapping, const char *key,
                  const struct error *inner)
{
    const struct node *node = node_child(mapping, key);
    return document_error(binding->document, node ? node : mapping, binding->err, "%s: %s", key,
                          inner->text);
}

int field_check_name(const struct binding *binding, const struct node *node, const char *name,
                     size_t bytes)
{
    size_t length = strlen(name);
    bool plain = length > 0 && length < bytes && isalnum((unsigned char)name[0]);
    for (size_t i = 0; plain && i < length; i++)
        plain = isalnum((unsigned char)name[i]) || strchr("-_.", name[i]);
    if (plain)
        return 0;
    return document_error(binding->document, node, binding->err,
                          "`%s` is not a name: a letter or digit, then letters, digits, `-`, `_`, "
                          "`.`, %zu at most",
                          name, bytes - 1);
}

// --- forms ---------------------------------------------------------------------------------------

static const char *const switch_words[] = {"true", "false", "yes", "no", "on", "off"};
enum { SWITCH_WORDS = 6 };

static const char *kind_words(enum node_kind kind)
{
    return kind == NODE_MAPPING ? "keys with values"
           : kind == NODE_LIST  ? "a list"
                                : "a single value";
}

// The words a field accepts, as an array; 0: any word.
static size_t list_words(const struct field *field, const char *words[KEYS_MAX])
{
    size_t count = 0;
    if (field->kind == FIELD_SWITCH)
        for (; count < SWITCH_WORDS; count++)
            words[count] = switch_words[count];
    for (; field->word && count < KEYS_MAX && field->word((unsigned)count); count++)
        words[count] = field->word((unsigned)count);
    return count;
}

static int check_form(const struct binding *binding, const struct field *field, const char *label,
                      const struct node *node);

// Finds a near key elsewhere in the document for what was written.
struct elsewhere {
    const char *written;
    char path[PATH_BYTES];
    unsigned distance, depth;
};

static void search_elsewhere(const struct fields *fields, const char *inside, unsigned depth,
                             struct elsewhere *best)
{
    for (size_t i = 0; i < fields->count; i++) {
        const struct field *field = &fields->rows[i];
        unsigned distance = suggestion_distance(best->written, field->key);
        char path[PATH_BYTES];
        int used = snprintf(path, sizeof path, "%s%s", inside, field->key);
        if (used < 0 || (size_t)used >= sizeof path - 8)
            continue;
        if (distance < best->distance ||
            (distance == best->distance && distance < SUGGESTION_FAR && depth < best->depth)) {
            best->distance = distance;
            best->depth = depth;
            strcpy(best->path, path);
        }
        strcat(path, field->kind == FIELD_LIST        ? "[]."
                     : field->kind == FIELD_MAP       ? ".NAME."
                     : field->kind == FIELD_MAP_LISTS ? ".NAME[]."
                                                      : ".");
        if (field->fields)
            search_elsewhere(field->fields, path, depth + 1, best);
    }
}

// The keys outside of this one that stand where it does, for it was written with dots: "load.".
static bool find_dotted(const struct node *in, const struct node *key, char path[PATH_BYTES])
{
    for (size_t i = 0; i < node_count(in); i++) {
        const struct node *outer = node_entry_key(in, i);
        unsigned line, column, outer_line, outer_column;
        char inner[PATH_BYTES];
        if (outer == key)
            return true;
        if (!find_dotted(node_entry(in, i), key, path))
            continue;
        node_place(key, &line, &column);
        node_place(outer, &outer_line, &outer_column);
        if (outer && line == outer_line && column == outer_column) {
            snprintf(inner, sizeof inner, "%s", path);
            snprintf(path, PATH_BYTES, "%.90s.%.100s", node_text(outer), inner);
        }
        return true;
    }
    return false;
}

static int refuse_key(const struct binding *binding, const struct fields *fields,
                      const struct node *key)
{
    const char *known[KEYS_MAX], *written = node_text(key);
    char hint[400], dotted[PATH_BYTES] = "";
    size_t count = 0;
    for (; count < fields->count && count < KEYS_MAX; count++)
        known[count] = fields->rows[count].key;
    const char *near = suggestion_nearest(written, known, count);
    find_dotted(document_root(binding->document), key, dotted);
    struct elsewhere found = {.written = written, .distance = SUGGESTION_FAR};
    if (binding->root && !near)
        search_elsewhere(binding->root, "", 0, &found);
    if (found.distance < SUGGESTION_FAR)
        snprintf(hint, sizeof hint, "; did you mean `%s`%s?", found.path,
                 found.depth || *dotted ? "" : " of the whole file");
    else if (near)
        snprintf(hint, sizeof hint, "; did you mean `%s%s`?", dotted, near);
    else
        suggestion_write(written, known, count, hint, sizeof hint);
    return document_error(binding->document, key, binding->err, "unknown key `%s%s`%s", dotted,
                          written, hint);
}

static const struct field *find_field(const struct fields *fields, const char *key)
{
    for (size_t i = 0; i < fields->count; i++)
        if (strcmp(fields->rows[i].key, key) == 0)
            return &fields->rows[i];
    return NULL;
}

static int check_keys(const struct binding *binding, const struct fields *fields, const char *label,
                      const struct node *node)
{
    int result = 0;
    if (node_kind(node) != NODE_MAPPING)
        return document_error(binding->document, node, binding->err,
                              "%s%s%s takes keys with values, not %s%s%s", label ? "`" : "",
                              label ? label : "the document", label ? "`" : "",
                              kind_words(node_kind(node)), fields->example ? ", " : "",
                              fields->example ? fields->example : "");
    for (size_t i = 0; i < node_count(node) && result == 0; i++) {
        const struct node *key = node_entry_key(node, i);
        const struct field *field = find_field(fields, node_text(key));
        result = field ? check_form(binding, field, field->key, node_entry(node, i))
                       : refuse_key(binding, fields, key);
    }
    return result;
}

static int check_kind(const struct binding *binding, const char *label, const struct node *node,
                      enum node_kind wanted, const char *form)
{
    if (node_kind(node) == wanted)
        return 0;
    return document_error(binding->document, node, binding->err, "`%s` takes %s, not %s", label,
                          form, kind_words(node_kind(node)));
}

static int check_text(const struct binding *binding, const struct field *field, const char *label,
                      const struct node *node)
{
    const char *words[KEYS_MAX];
    char hint[400];
    size_t count = list_words(field, words);
    int result = check_kind(binding, label, node, NODE_TEXT, "a single value");
    for (size_t i = 0; i < count && result == 0; i++)
        if (strcmp(words[i], node_text(node)) == 0)
            return 0;
    if (result < 0 || count == 0)
        return result;
    return document_error(binding->document, node, binding->err, "`%s` is not known here%s",
                          node_text(node),
                          suggestion_write(node_text(node), words, count, hint, sizeof hint));
}

// A row of texts may state how many entries it takes; other lists and maps take ENTRIES_MAX.
static int check_entry_count(const struct binding *binding, const struct field *field,
                             const char *label, const struct node *node)
{
    bool is_texts = field->kind == FIELD_TEXTS;
    size_t least = is_texts && field->low ? strtoul(field->low, NULL, 10) : 0,
           most = is_texts && field->high ? strtoul(field->high, NULL, 10) : ENTRIES_MAX;
    char from[30] = "";
    if (node_count(node) >= least && node_count(node) <= most)
        return 0;
    if (least < most)
        snprintf(from, sizeof from, "%zu to ", least);
    return document_error(binding->document, node, binding->err, "`%s` takes %s%s values, not %s",
                          label, from, TEXT_COUNT(most), TEXT_COUNT(node_count(node)));
}

static int check_list(const struct binding *binding, const struct field *field, const char *label,
                      const struct node *node)
{
    int result = check_kind(binding, label, node, NODE_LIST,
                            field->fields ? "a list: [{...}, {...}]" : "a list: [a, b]");
    for (size_t i = 0; i < node_count(node) && result == 0; i++)
        result = field->fields ? check_keys(binding, field->fields, label, node_entry(node, i))
                               : check_kind(binding, label, node_entry(node, i), NODE_TEXT,
                                            "single values in its list");
    return result == 0 ? check_entry_count(binding, field, label, node) : result;
}

static int check_map(const struct binding *binding, const struct field *field, const char *label,
                     const struct node *node)
{
    int result = check_kind(binding, label, node, NODE_MAPPING, "names: {a: ..., b: ...}");
    for (size_t i = 0; i < node_count(node) && result == 0; i++) {
        const struct node *entry = node_entry(node, i);
        const char *name = node_text(node_entry_key(node, i));
        result = field->kind == FIELD_MAP_LISTS ? check_list(binding, field, name, entry)
                 : field->fields                ? check_keys(binding, field->fields, name, entry)
                                 : check_kind(binding, name, entry, NODE_TEXT, "a single value");
    }
    return result == 0 ? check_entry_count(binding, field, label, node) : result;
}

static int check_form(const struct binding *binding, const struct field *field, const char *label,
                      const struct node *node)
{
    switch (field->kind) {
    case FIELD_ANYTHING:
        return 0;
    case FIELD_GROUP:
        return check_keys(binding, field->fields, label, node);
    case FIELD_LIST:
    case FIELD_TEXTS:
        return check_list(binding, field, label, node);
    case FIELD_MAP:
    case FIELD_MAP_LISTS:
        return check_map(binding, field, label, node);
    default:
        return check_text(binding, field, label, node);
    }
}

// --- values --------------------------------------------------------------------------------------

// A quantity in the unit that its kind stores.
static int parse_quantity(enum field_kind kind, const char *text, double *number, uint64_t *whole,
                          struct error *err)
{
    int result;
    if (kind == FIELD_NUMBER)
        return units_parse_number(text, number, err);
    if (kind == FIELD_INTEGER) {
        char *end;
        *number = (double)strtol(text, &end, 10);
        return end == text || *end ? error_set(err, ERROR_INPUT, "`%s` is not a number", text) : 0;
    }
    result = kind == FIELD_DURATION ? units_parse_duration_ns(text, whole, err)
             : kind == FIELD_BYTES  ? units_parse_bytes(text, whole, err)
                                    : units_parse_count(text, whole, err);
    *number = (double)*whole;
    return result;
}

static bool is_within(const struct field *field, double number)
{
    double low = 0, high = 0;
    uint64_t whole = 0;
    if (field->low && parse_quantity(field->kind, field->low, &low, &whole, NULL) == 0 &&
        (number < low || (field->low_excluded && number <= low)))
        return false;
    return !field->high || parse_quantity(field->kind, field->high, &high, &whole, NULL) < 0 ||
           number < high || (number <= high && !field->high_excluded);
}

static int refuse_range(const struct field *field, const char *text, struct error *err)
{
    const char *low = field->low ? field->low : "0";
    const char *quote = field->kind == FIELD_INTEGER ? "`" : "";
    if (field->outside)
        return error_set(err, ERROR_INPUT, "%s%s%s %s", quote, text, quote, field->outside);
    if (!field->high)
        return error_set(err, ERROR_INPUT, "%s is less than %s", text, low);
    return error_set(err, ERROR_INPUT, "%s is outside %s to %s", text, low, field->high);
}

static int set_quantity(const struct field *field, const char *text, void *out, struct error *err)
{
    double number = 0;
    uint64_t whole = 0;
    int result = parse_quantity(field->kind, text, &number, &whole, err);
    if (result == 0 && !is_within(field, number))
        result = refuse_range(field, text, err);
    if (result < 0 || field->size == 0)
        return result;
    if (field->kind == FIELD_NUMBER)
        *(double *)out = number;
    else if (field->kind == FIELD_INTEGER)
        *(int *)out = (int)number;
    else if (field->size == sizeof(uint16_t))
        *(uint16_t *)out = (uint16_t)whole;
    else
        *(uint64_t *)out = whole;
    return 0;
}

// Reads a single value, whose form was checked before.
static int set_value(const struct field *field, const char *text, void *out, struct error *err)
{
    switch (field->kind) {
    case FIELD_TEXT:
        if (field->size)
            *(const char **)out = text;
        return 0;
    case FIELD_NAME:
        if (field->size)
            snprintf(out, field->size, "%s", text);
        return 0;
    case FIELD_WORD:
        for (unsigned i = 0; field->size && field->word(i); i++)
            if (strcmp(field->word(i), text) == 0)
                *(unsigned *)out = i;
        return 0;
    case FIELD_SWITCH:
        for (unsigned i = 0; field->size && i < SWITCH_WORDS; i++)
            if (strcmp(switch_words[i], text) == 0)
                *(bool *)out = i % 2 == 0;
        return 0;
    default:
        return set_quantity(field, text, out, err);
    }
}

static int bind_texts(const struct binding *binding, const struct node *node,
                      struct word_array *words)
{
    for (size_t i = 0; i <= node_count(node); i++)
        if (array_push(words, node_text(node_entry(node, i))) < 0)
            return field_out_of_memory(binding);
    return 0;
}

// Reads the entries of a list or a map, which have a table of their own, into an array.
static int bind_entries(const struct binding *binding, const struct field *field,
                        const struct node *node, void *out)
{
    const struct fields *fields = field->fields;
    int result = 0;
    for (size_t i = 0; i < node_count(node) && result == 0; i++) {
        struct raw_array array;
        const struct node *key = node_entry_key(node, i);
        if (key && (result = field_check_name(binding, key, node_text(key), FIELD_NAME_BYTES)) < 0)
            break;
        memcpy(&array, out, sizeof array);
        if (array_reserve_raw(&array.items, &array.capacity, array.count + 1, fields->size) < 0)
            return field_out_of_memory(binding);
        char *entry = (char *)array.items + array.count++ * fields->size;
        memset(entry, 0, fields->size);
        memcpy(out, &array, sizeof array);
        if (key)
            snprintf(entry, FIELD_NAME_BYTES, "%s", node_text(key));
        fields_set_defaults(fields, entry);
        result = fields_bind(binding, fields, node_entry(node, i), entry);
    }
    return result;
}

static int bind_value(const struct binding *binding, const struct field *field,
                      const struct node *node, void *object)
{
    struct error inner;
    switch (field->kind) {
    case FIELD_ANYTHING:
    case FIELD_MAP_LISTS:
        return 0;
    case FIELD_GROUP:
        return field->size ? fields_bind(binding, field->fields, node, field_member(field, object))
                           : 0;
    case FIELD_LIST:
    case FIELD_MAP:
        return field->size ? bind_entries(binding, field, node, field_member(field, object)) : 0;
    case FIELD_TEXTS:
        return field->size ? bind_texts(binding, node, field_member(field, object)) : 0;
    case FIELD_NAME:
        if (field_check_name(binding, node, node_text(node), field->size) < 0)
            return -ERROR_INPUT;
        break;
    default:
        break;
    }
    if (set_value(field, node_text(node), field_member(field, object), &inner) == 0)
        return 0;
    return document_error(binding->document, node, binding->err, "%s: %s", field->key, inner.text);
}

int fields_bind(const struct binding *binding, const struct fields *fields, const struct node *node,
                void *object)
{
    int result = fields->begin ? fields->begin(binding, node, object) : 0;
    for (size_t i = 0; i < fields->count && result == 0; i++) {
        const struct field *field = &fields->rows[i];
        const struct node *value = node_child(node, field->key);
        bool is_many = field->kind == FIELD_MAP || field->kind == FIELD_LIST;
        if (field->needed && (!value || (is_many && node_count(value) == 0)))
            result = document_error(binding->document, value ? value : node, binding->err, "%s",
                                    field->needed);
        else if (value)
            result = bind_value(binding, field, value, object);
    }
    return result == 0 && fields->check ? fields->check(binding, node, object) : result;
}

int fields_read(const struct binding *binding, const struct fields *fields, const struct node *node,
                void *object)
{
    int result = check_keys(binding, fields, NULL, node);
    return result == 0 ? fields_bind(binding, fields, node, object) : result;
}

int field_read(const struct binding *binding, const struct field *field, const struct node *node,
               void *object)
{
    int result = node ? check_form(binding, field, field->key, node) : 0;
    return result == 0 && node ? bind_value(binding, field, node, object) : result;
}

void fields_set_defaults(const struct fields *fields, void *object)
{
    for (size_t i = 0; i < fields->count; i++) {
        const struct field *field = &fields->rows[i];
        if (field->kind == FIELD_GROUP && field->size)
            fields_set_defaults(field->fields, field_member(field, object));
        else if (field->value && field->size) {
            int set = set_value(field, field->value, field_member(field, object), NULL);
            assert(set == 0 && "a default that the row itself refuses");
            (void)set;
        }
    }
}

void fields_free(const struct fields *fields, void *object)
{
    for (size_t i = 0; i < fields->count; i++) {
        const struct field *field = &fields->rows[i];
        struct raw_array array;
        bool is_array =
            field->kind == FIELD_TEXTS || field->kind == FIELD_LIST || field->kind == FIELD_MAP;
        if (field->kind == FIELD_GROUP && field->size)
            fields_free(field->fields, field_member(field, object));
        if (!is_array || field->size == 0)
            continue;
        memcpy(&array, field_member(field, object), sizeof array);
        for (size_t k = 0; field->fields && k < array.count; k++)
            fields_free(field->fields, (char *)array.items + k * field->fields->size);
        free(array.items);
        memset(field_member(field, object), 0, sizeof array);
    }
}
