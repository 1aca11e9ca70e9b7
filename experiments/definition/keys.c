// SPDX-License-Identifier: MIT
#include "experiments/definition/keys.h"

#include <string.h>

#include "experiments/definition/resolve.h"
#include "experiments/definition/study.h"

// Adds the keys whose values are parts of experiments, which the tables do not describe.
static void describe_pieces(json_t *properties)
{
    json_t *variants = json_pack("{s:s,s:{s:s}}", "type", "object", "additionalProperties", "$ref",
                                 "#/$defs/part");
    json_t *values = json_pack("{s:s,s:i}", "type", "array", "minItems", 1);
    json_object_update_new(json_object_get(properties, "with"),
                           json_pack("{s:s}", "$ref", "#/$defs/part"));
    json_object_update_new(json_object_get(properties, "matrix"),
                           json_pack("{s:s,s:{s:[o,o]}}", "type", "object", "additionalProperties",
                                     "anyOf", values, variants));
}

json_t *experiment_json_schema(void)
{
    json_t *part = fields_schema(&experiment_fields), *study = fields_schema(&study_fields);
    json_t *properties = json_object_get(part, "properties"), *value;
    const char *key;
    // An experiment's table has no more than the names of a study's keys.
    json_object_foreach(json_object_get(study, "properties"), key, value)
    {
        const char *const own[] = {"steps", "with", "rounds", "compare"};
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            if (strcmp(key, own[i]) == 0)
                json_object_set(properties, key, value);
    }
    json_decref(study);
    describe_pieces(properties);
    return json_pack("{s:s,s:s,s:s,s:[{s:[s]},{s:[s]}],s:{s:o}}", "$schema",
                     "https://json-schema.org/draft/2020-12/schema", "title",
                     "An experiment of Taillight", "$ref", "#/$defs/part", "anyOf", "required",
                     "name", "required", "extends", "$defs", "part", part);
}

void experiment_print_keys(FILE *out)
{
    fputs("An experiment:\n\n", out);
    fields_print_help(&experiment_fields, out);
    fputs("\nA study, which has no hosts, servers or load of its own:\n\n", out);
    fields_print_help(&study_fields, out);
}
