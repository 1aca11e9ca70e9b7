// SPDX-License-Identifier: MIT
//
// The keys a table accepts: for editors as a JSON Schema, for people as a list; and what they are
// set to in a struct.
#include <string.h>

#include "base/fields.h"
#include "base/text.h"

// --- the schema ----------------------------------------------------------------------------------

// The description of a row, in one line.
static const char *field_describe(const struct field *field, char *out, size_t out_bytes)
{
    const char *absent = field->value ? field->value : field->otherwise;
    bool is_range = field->low && field->high && !field->outside && field->kind != FIELD_TEXTS;
    snprintf(out, out_bytes, "%s%s%s%s%s%s%s%s%s", field->help, is_range ? ", " : "",
             is_range ? field->low : "", is_range ? " to " : "", is_range ? field->high : "",
             field->needed ? "; needed" : "", absent ? " [" : "", absent ? absent : "",
             absent ? "]" : "");
    return out;
}

static json_t *schema_of_scalar(const struct field *field)
{
    json_t *words = json_array();
    static const char *const switches[] = {"true", "false", "yes", "no", "on", "off"};
    for (unsigned i = 0; field->kind == FIELD_SWITCH && i < 6; i++)
        json_array_append_new(words, json_string(switches[i]));
    // Words such as `on` and `true` are booleans to other readers of YAML.
    for (int on = 0; field->kind == FIELD_SWITCH && on < 2; on++)
        json_array_append_new(words, json_boolean(on));
    for (unsigned i = 0; field->word && field->word(i); i++)
        json_array_append_new(words, json_string(field->word(i)));
    if (json_array_size(words))
        return json_pack("{s:o}", "enum", words);
    json_decref(words);
    // Text is always quoted as a string; numbers and booleans may be written as such.
    return json_pack("{s:[s,s,s]}", "type", "string", "number", "boolean");
}

static json_t *schema_of_entry(const struct field *field)
{
    static const struct field text = {.kind = FIELD_TEXT};
    return field->fields ? fields_schema(field->fields) : schema_of_scalar(&text);
}

static json_t *schema_of(const struct field *field)
{
    switch (field->kind) {
    case FIELD_ANYTHING:
        return json_object();
    case FIELD_GROUP:
        return fields_schema(field->fields);
    case FIELD_TEXTS:
    case FIELD_LIST:
        return json_pack("{s:s,s:o}", "type", "array", "items", schema_of_entry(field));
    case FIELD_MAP:
        return json_pack("{s:s,s:o}", "type", "object", "additionalProperties",
                         schema_of_entry(field));
    case FIELD_MAP_LISTS:
        return json_pack("{s:s,s:{s:s,s:o}}", "type", "object", "additionalProperties", "type",
                         "array", "items", schema_of_entry(field));
    default:
        return schema_of_scalar(field);
    }
}

json_t *fields_schema(const struct fields *fields)
{
    json_t *properties = json_object();
    for (size_t i = 0; i < fields->count; i++) {
        const struct field *field = &fields->rows[i];
        char text[1000];
        json_t *schema = schema_of(field);
        json_object_set_new(schema, "description",
                            json_string(field_describe(field, text, sizeof text)));
        if (field->value)
            json_object_set_new(schema, "default", json_string(field->value));
        json_object_set_new(properties, field->key, schema);
    }
    return json_pack("{s:s,s:o,s:b}", "type", "object", "properties", properties,
                     "additionalProperties", 0);
}

// --- the list ------------------------------------------------------------------------------------

enum { HELP_COLUMN = 26, HELP_WIDTH = 78 };

// The value a key takes: one word for its kind, or the words it accepts.
static void write_form(const struct field *field, char *out, size_t out_bytes)
{
    static const char *const forms[] = {
        [FIELD_TEXT] = "TEXT",        [FIELD_NAME] = "NAME",   [FIELD_SWITCH] = "on|off",
        [FIELD_INTEGER] = "NUMBER",   [FIELD_COUNT] = "COUNT", [FIELD_NUMBER] = "NUMBER",
        [FIELD_DURATION] = "TIME",    [FIELD_BYTES] = "SIZE",  [FIELD_TEXTS] = "[TEXT, ...]",
        [FIELD_MAP] = "{NAME: TEXT}", [FIELD_ANYTHING] = "..."};
    size_t used = 0;
    out[0] = '\0';
    if (field->like)
        snprintf(out, out_bytes, field->kind == FIELD_GROUP ? " as `%s`" : " {NAME: as `%s`}",
                 field->like);
    if (field->fields)
        return;
    for (unsigned i = 0; field->word && field->word(i) && used < out_bytes; i++)
        used +=
            (size_t)snprintf(out + used, out_bytes - used, "%s%s", i ? "|" : " ", field->word(i));
    if (!field->word)
        snprintf(out, out_bytes, " %s", field->form ? field->form : forms[field->kind]);
}

// Writes wrapped text from the column on; `used` columns of the first line are already taken.
static void print_wrapped(const char *text, int used, FILE *out)
{
    if (used >= HELP_COLUMN) {
        fputc('\n', out);
        used = 0;
    }
    fprintf(out, "%*s", HELP_COLUMN - used, "");
    text_wrap(out, text, HELP_COLUMN, HELP_WIDTH);
}

static void print_rows(const struct fields *fields, int indent, bool listed, FILE *out);

static void print_row(const struct field *field, int indent, bool listed, FILE *out)
{
    char form[300], text[1000];
    write_form(field, form, sizeof form);
    int used = fprintf(out, "%*s%s%s:%s", listed ? indent - 2 : indent, "", listed ? "- " : "",
                       field->key, form);
    print_wrapped(field_describe(field, text, sizeof text), used, out);
    if (!field->fields || field->like)
        return;
    bool is_map = field->kind == FIELD_MAP || field->kind == FIELD_MAP_LISTS;
    bool is_list = field->kind == FIELD_LIST || field->kind == FIELD_MAP_LISTS;
    if (is_map)
        fprintf(out, "%*sNAME:\n", indent + 2, "");
    print_rows(field->fields, indent + 2 + 2 * is_map + 2 * is_list, is_list, out);
}

static void print_rows(const struct fields *fields, int indent, bool listed, FILE *out)
{
    for (size_t i = 0; i < fields->count; i++)
        print_row(&fields->rows[i], indent, listed && i == 0, out);
}

void fields_print_help(const struct fields *fields, FILE *out)
{
    print_rows(fields, 0, false, out);
}

// --- the values ----------------------------------------------------------------------------------

static json_t *words_json(const struct word_array *words)
{
    json_t *list = json_array();
    for (size_t i = 0; i + 1 < words->count; i++)
        json_array_append_new(list, json_string(words->items[i]));
    return list;
}

static json_t *value_of(const struct field *field, const void *member)
{
    const char *text;
    switch (field->kind) {
    case FIELD_TEXT:
        text = *(const char *const *)member;
        return text ? json_string(text) : NULL;
    case FIELD_NAME:
        return json_string(member);
    case FIELD_WORD:
        return json_string(field->word(*(const unsigned *)member));
    case FIELD_SWITCH:
        return json_boolean(*(const bool *)member);
    case FIELD_INTEGER:
        return json_integer(*(const int *)member);
    case FIELD_NUMBER:
        return json_real(*(const double *)member);
    case FIELD_COUNT:
    case FIELD_DURATION:
    case FIELD_BYTES:
        return json_integer(field->size == sizeof(uint16_t)
                                ? *(const uint16_t *)member
                                : (json_int_t) * (const uint64_t *)member);
    case FIELD_TEXTS:
        return words_json(member);
    default:
        return NULL;
    }
}

json_t *fields_values(json_t *object, const struct fields *fields, const void *record)
{
    for (size_t i = 0; object && i < fields->count; i++) {
        const struct field *field = &fields->rows[i];
        char key[80];
        json_t *value = field->size ? value_of(field, (const char *)record + field->offset) : NULL;
        snprintf(key, sizeof key, "%s%s", field->key,
                 field->kind == FIELD_DURATION ? "_ns"
                 : field->kind == FIELD_BYTES  ? "_bytes"
                                               : "");
        if (value)
            json_object_set_new(object, key, value);
    }
    return object;
}
