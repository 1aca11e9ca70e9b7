// SPDX-License-Identifier: MIT
#include "experiments/spec/experiment_json_schema.h"

#include <stdio.h>
#include <string.h>

#include "experiments/spec/experiment_table.h"

static json_t *describe(const cyaml_schema_value_t *value, const char *path);

// What stands for itself: text, in which numbers and switches may be written as such.
static json_t *scalar(void)
{
    return json_pack("{s:[s,s,s]}", "type", "string", "number", "boolean");
}

static json_t *words(const cyaml_schema_value_t *value)
{
    json_t *list = json_array();
    bool is_switch = false;
    for (uint32_t i = 0; i < value->enumeration.count; i++) {
        const char *word = value->enumeration.strings[i].str;
        is_switch |= strcmp(word, "true") == 0;
        json_array_append_new(list, json_string(word));
    }
    // `on` and `true` are switches to whoever reads the file as YAML.
    for (int on = 0; is_switch && on < 2; on++)
        json_array_append_new(list, json_boolean(on));
    return json_pack("{s:o}", "enum", list);
}

static const cyaml_schema_field_t *field_of(const cyaml_schema_value_t *mapping, const char *key)
{
    const cyaml_schema_field_t *field = mapping->mapping.fields;
    while (field->key && strcmp(field->key, key) != 0)
        field++;
    return field->key ? field : NULL;
}

static json_t *list_or_names(const cyaml_schema_value_t *value, const char *path)
{
    char inside[512];
    const cyaml_schema_value_t *entry = value->sequence.entry;
    snprintf(inside, sizeof inside, "%s/*", path);
    if (!experiment_table_is_named(path))
        return json_pack("{s:s,s:o}", "type", "array", "items", describe(entry, inside));
    return json_pack("{s:s,s:o}", "type", "object", "additionalProperties",
                     describe(&field_of(entry, "value")->value, inside));
}

static json_t *mapping(const cyaml_schema_value_t *value, const char *path)
{
    json_t *properties = json_object();
    for (const cyaml_schema_field_t *field = value->mapping.fields; field->key; field++) {
        char inside[512];
        snprintf(inside, sizeof inside, "%s%s%s", path, *path ? "/" : "", field->key);
        json_object_set_new(properties, field->key, describe(&field->value, inside));
    }
    return json_pack("{s:s,s:o,s:b}", "type", "object", "properties", properties,
                     "additionalProperties", 0);
}

static json_t *describe(const cyaml_schema_value_t *value, const char *path)
{
    switch (value->type) {
    case CYAML_ENUM:
        return words(value);
    case CYAML_SEQUENCE:
    case CYAML_SEQUENCE_FIXED:
        return list_or_names(value, path);
    case CYAML_MAPPING:
        return mapping(value, path);
    default:
        return scalar();
    }
}

// What the table leaves to others: pieces of experiments, and files.
static void describe_pieces(json_t *properties)
{
    json_t *variants = json_pack("{s:s,s:{s:s}}", "type", "object", "additionalProperties", "$ref",
                                 "#/$defs/piece");
    json_t *values = json_pack("{s:s,s:i}", "type", "array", "minItems", 1);
    json_object_set_new(properties, "extends", json_pack("{s:s}", "type", "string"));
    json_object_set_new(properties, "with", json_pack("{s:s}", "$ref", "#/$defs/piece"));
    json_object_set_new(properties, "matrix",
                        json_pack("{s:s,s:{s:[o,o]}}", "type", "object", "additionalProperties",
                                  "anyOf", values, variants));
}

json_t *experiment_json_schema(void)
{
    json_t *piece = describe(&experiment_table, "");
    describe_pieces(json_object_get(piece, "properties"));
    return json_pack("{s:s,s:s,s:s,s:[{s:[s]},{s:[s]}],s:{s:o}}", "$schema",
                     "https://json-schema.org/draft/2020-12/schema", "title",
                     "An experiment of Taillight", "$ref", "#/$defs/piece", "anyOf", "required",
                     "name", "required", "extends", "$defs", "piece", piece);
}
