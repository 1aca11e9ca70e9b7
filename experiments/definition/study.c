// SPDX-License-Identifier: MIT
#include "experiments/definition/study.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/diagnosis/diagnosis.h"
#include "analysis/compare/gates.h"
#include "experiments/definition/output.h"
#include "experiments/definition/resolve.h"
#include "experiments/definition/tables.h"
#include "base/text.h"

enum { DEEPEST = 2, STEPS_NAMED = 64 }; // levels; steps to choose from

static int load_study(const char *path, document_opener open, int depth, struct study *study,
                      struct error *err);

// --- steps ---------------------------------------------------------------------------------------

// Lays the study's `with` over a step's document, and replaces the document by the result.
static int lay_over(const struct study *study, struct document **document, struct error *err)
{
    const struct node *with = node_child(document_root(study->document), "with");
    struct document *merged;
    if (!with)
        return 0;
    if (node_kind(with) != NODE_MAPPING)
        return document_error(study->document, with, err,
                              "with: a part of an experiment, such as `{load: {duration: 60s}}`");
    int result = document_merge(document_root(*document), with, NULL, &merged, err);
    if (result < 0)
        return result;
    document_free(*document);
    *document = merged;
    return 0;
}

// Resolves the one experiment that a step's document describes. Takes the document.
static int resolve_experiment(const struct study *study, const struct node *value,
                              struct document *document, const char *path, struct study_step *step,
                              struct error *err)
{
    struct configuration_array all = {0};
    int result = lay_over(study, &document, err);
    if (result == 0)
        result = experiment_expand(document, &all, err);
    document_free(document);
    if (result < 0)
        return result;
    if (all.count != 1) {
        result = document_error(study->document, value, err,
                                "steps: %s has a `matrix`; a step is one configuration", path);
    } else {
        result = experiment_resolve(all.items[0].document, path, "", &step->experiment, err);
        all.items[0].document = NULL;
    }
    configurations_free(&all);
    if (result < 0)
        return result;
    step->experiment.derived = true;
    if (step->experiment.repetitions == 1)
        return 0;
    experiment_free(&step->experiment);
    return document_error(study->document, value, err,
                          "steps: %s has `repetitions`; a study repeats its steps by `rounds`",
                          path);
}

static int resolve_step(const struct study *study, const struct node *value, document_opener open,
                        int depth, struct study_step *step, struct error *err)
{
    char path[EXPERIMENT_PATH_BYTES];
    struct document *document = NULL;
    if (!*node_text(value) || !experiment_path_join(study->path, node_text(value), path))
        return document_error(study->document, value, err,
                              "steps: a step is a file, relative to this one");
    int result = open(path, &document, err);
    if (result < 0) {
        struct error why = *err;
        return document_error(study->document, value, err, "steps: %s", why.text);
    }
    result = experiment_extend(&document, path, open, err);
    bool is_study = result == 0 && node_key(document_root(document), "steps");
    if (result == 0 && !is_study)
        return resolve_experiment(study, value, document, path, step, err);
    document_free(document);
    if (result < 0)
        return result;
    if (depth == DEEPEST || node_key(document_root(study->document), "with"))
        return document_error(study->document, value, err,
                              "steps: %s is a study itself, which has no place %s", path,
                              depth == DEEPEST ? "so deep" : "below a `with`");
    step->study = calloc(1, sizeof *step->study);
    if (!step->study)
        return error_set(err, ERROR_FAILED, "%s: out of memory", path);
    result = load_study(path, open, depth + 1, step->study, err);
    if (result < 0) {
        free(step->study);
        step->study = NULL;
    }
    return result < 0 ? result : 0;
}

static void free_step(struct study_step *step)
{
    if (step->study)
        study_free(step->study);
    else
        experiment_free(&step->experiment);
    free(step->study);
}

static int resolve_steps(struct study *study, document_opener open, int depth, struct error *err)
{
    const struct node *steps = node_child(document_root(study->document), "steps");
    const struct binding binding = {.document = study->document, .err = err};
    for (size_t i = 0; i < node_count(steps); i++) {
        struct study_step step = {.study = NULL};
        const char *name = node_text(node_entry_key(steps, i));
        int result = field_check_name(&binding, node_entry_key(steps, i), name, sizeof step.name);
        if (result == 0)
            result = resolve_step(study, node_entry(steps, i), open, depth, &step, err);
        if (result < 0)
            return result;
        snprintf(step.name, sizeof step.name, "%s", name);
        if (array_push(&study->steps, step) < 0) {
            free_step(&step);
            return error_set(err, ERROR_FAILED, "%s: out of memory", study->path);
        }
    }
    return 0;
}

// --- comparisons ---------------------------------------------------------------------------------

// Finds the step that `base` or `candidate` names, which must not be a study.
static int resolve_side(const struct binding *binding, const struct study *study,
                        const struct node *node, const char *key, size_t *index)
{
    char names[STEPS_NAMED][EXPERIMENT_PART_NAME_BYTES], what[60];
    size_t of[STEPS_NAMED], count = 0, found;
    const struct node *name = node_child(node, key);
    if (!name)
        return document_error(binding->document, node, binding->err,
                              "compare: `%s` is missing; it names a step", key);
    for (size_t i = 0; i < study->steps.count && count < STEPS_NAMED; i++)
        if (!study->steps.items[i].study) {
            memcpy(names[count], study->steps.items[i].name, sizeof names[count]);
            of[count++] = i;
        }
    snprintf(what, sizeof what, "%s: no step that is a run", key);
    int result =
        find_named(binding, name, what, node_text(name), names, sizeof *names, count, &found);
    if (result == 0)
        *index = of[found];
    return result;
}

static int copy_gates(const struct gate_array *gates, bool increases_only, struct gate_array *out,
                      struct error *err)
{
    for (size_t i = 0; i < gates->count; i++)
        if (!increases_only || gates->items[i].limit == GATE_MAX_INCREASE)
            if (array_push(out, gates->items[i]) < 0)
                return error_set(err, ERROR_FAILED, "out of memory for the gates");
    return 0;
}

// Chooses the gates of a comparison: its own, else the study's, else those on an increase of the
// candidate's experiment, whose other gates are judged with its step.
static int choose_gates(const struct study *study, const struct node *comparison,
                        struct study_comparison *one, struct error *err)
{
    const struct experiment *candidate = &study->steps.items[one->candidate].experiment;
    const struct node *list = node_child(comparison, "gates");
    if (!one->gates.count && !study->gates.count)
        return copy_gates(&candidate->gates, true, &one->gates, err);
    if (!one->gates.count) {
        list = node_child(document_root(study->document), "gates");
        if (copy_gates(&study->gates, false, &one->gates, err) < 0)
            return -ERROR_FAILED;
    }
    return check_gate_loads(study->document, list, &one->gates, candidate, err);
}

static int resolve_comparisons(struct study *study, struct error *err)
{
    const struct binding binding = {.document = study->document, .err = err};
    const struct node *root = document_root(study->document), *all = node_child(root, "compare"),
                      *gates = node_child(root, "gates");
    int result = 0;
    if (gates && node_count(all) == 0)
        return document_error(study->document, gates, err,
                              "gates: a study judges them in its comparisons, and has none; name "
                              "some under `compare`, or give the steps gates by `with`");
    for (size_t i = 0; i < study->comparisons.count && result == 0; i++) {
        struct study_comparison *one = &study->comparisons.items[i];
        const struct node *node = node_entry(all, i);
        result = resolve_side(&binding, study, node, "base", &one->base);
        if (result == 0)
            result = resolve_side(&binding, study, node, "candidate", &one->candidate);
        if (result == 0)
            result = choose_gates(study, node, one, err);
    }
    return result;
}

static int check_comparison(const struct binding *binding, const struct node *node, void *object)
{
    struct study_comparison *one = object;
    const struct node *list = node_child(node, "slices");
    for (size_t i = 0; i < node_count(list); i++) {
        struct diagnosis_slice slice;
        struct error inner;
        if (diagnosis_slice_parse(one->slices.items[i], &slice, &inner) < 0)
            return document_error(binding->document, node_entry(list, i), binding->err,
                                  "slices: %s", inner.text);
        if (array_push(&one->parsed, slice) < 0)
            return field_out_of_memory(binding);
    }
    return 0;
}

static const struct field comparison_rows[] = {
    {"base", FIELD_TEXT, .help = "a step; needed"},
    {"candidate", FIELD_TEXT, .help = "another; needed"},
    {"slices", FIELD_TEXTS, .high = "8", .otherwise = "p99-100, p45-55",
     INTO(struct study_comparison, slices), .help = "of both, which are compared"},
    {"gates", FIELD_LIST, .fields = &gate_fields, INTO(struct study_comparison, gates),
     .otherwise = "the study's, else the candidate's of an increase",
     .help = "judged over all rounds"},
};
static const struct fields comparison_fields =
    FIELDS(comparison_rows, struct study_comparison, .check = check_comparison);

// --- the whole -----------------------------------------------------------------------------------

static const struct field study_rows[] = {
    {"name", FIELD_NAME, .needed = "`name` is missing, e.g. `name: case-study`",
     INTO(struct study, name), .help = "names the run folder"},
    {"extends", FIELD_TEXT, .help = "a file, relative to this one, that this one is laid over"},
    {"steps", FIELD_MAP,
     .help = "experiment files by name, relative to this one, each run in its turn in a folder of "
             "its name; one may be a study itself"},
    {"with", FIELD_ANYTHING, .help = "a part of an experiment, laid over every step"},
    {"rounds", FIELD_COUNT, "1", .low = "1", .high = "1000", INTO(struct study, rounds),
     .help = "all steps so many times, in turn; the seeds differ from round to round and not from "
             "step to step"},
    {"compare", FIELD_MAP, .fields = &comparison_fields, INTO(struct study, comparisons),
     .help = "by name, two steps that are runs (taillight-compare(1))"},
    {"gates", FIELD_LIST, .fields = &gate_fields, INTO(struct study, gates),
     .help = "of comparisons that have none of their own"},
};
const struct fields study_fields = FIELDS(study_rows, struct study);

static int refuse_other_keys(const struct study *study, struct error *err)
{
    const struct node *root = document_root(study->document);
    for (size_t i = 0; i < node_count(root); i++) {
        const struct node *key = node_entry_key(root, i);
        bool known = false;
        for (size_t k = 0; k < sizeof study_rows / sizeof *study_rows; k++)
            known |= strcmp(node_text(key), study_rows[k].key) == 0;
        if (!known)
            return document_error(study->document, key, err,
                                  "`%s` has no place in a study, whose `steps` are experiments; "
                                  "what all of them have in common goes into `with`",
                                  node_text(key));
    }
    return 0;
}

static int resolve_study(struct study *study, document_opener open, int depth, struct error *err)
{
    const struct binding binding = {.document = study->document, .root = &study_fields, .err = err};
    const struct node *root = document_root(study->document), *steps = node_child(root, "steps");
    int result = refuse_other_keys(study, err);
    if (result == 0)
        result = fields_read(&binding, &study_fields, root, study);
    if (result == 0 && node_count(steps) == 0)
        result = document_error(study->document, steps, err,
                                "steps: name one file at least, e.g. `steps: {first: first.yaml}`");
    if (result == 0)
        result = resolve_steps(study, open, depth, err);
    return result < 0 ? result : resolve_comparisons(study, err);
}

static int load_study(const char *path, document_opener open, int depth, struct study *study,
                      struct error *err)
{
    *study = (struct study){.document = NULL};
    fields_set_defaults(&study_fields, study);
    snprintf(study->path, sizeof study->path, "%s", path);
    int result = open(path, &study->document, err);
    if (result == 0)
        result = experiment_extend(&study->document, path, open, err);
    bool is_study = result == 0 && node_key(document_root(study->document), "steps") != NULL;
    if (is_study)
        result = resolve_study(study, open, depth, err);
    if (result == 0 && is_study)
        return 1;
    study_free(study);
    return result;
}

int study_load(const char *path, document_opener open, struct study *study, struct error *err)
{
    return load_study(path, open, 1, study, err);
}

void study_free(struct study *study)
{
    for (size_t i = 0; i < study->steps.count; i++)
        free_step(&study->steps.items[i]);
    for (size_t i = 0; i < study->comparisons.count; i++)
        array_free(&study->comparisons.items[i].parsed);
    array_free(&study->steps);
    fields_free(&study_fields, study);
    document_free(study->document);
    study->document = NULL;
}

json_t *study_to_json(const struct study *study)
{
    json_t *steps = json_array();
    for (size_t i = 0; i < study->steps.count; i++) {
        const struct study_step *step = &study->steps.items[i];
        json_t *inside =
            step->study ? study_to_json(step->study) : experiment_to_json(&step->experiment);
        json_array_append_new(steps, json_pack("{s:s,s:o}", "step", step->name,
                                               step->study ? "study" : "experiment", inside));
    }
    json_t *comparisons = json_array();
    for (size_t i = 0; i < study->comparisons.count; i++) {
        const struct study_comparison *one = &study->comparisons.items[i];
        json_array_append_new(comparisons,
                              json_pack("{s:s,s:s,s:s,s:o}", "name", one->name, "base",
                                        study->steps.items[one->base].name, "candidate",
                                        study->steps.items[one->candidate].name, "gates",
                                        gates_json(&one->gates)));
    }
    return json_pack("{s:s,s:I,s:o,s:o}", "name", study->name, "rounds", (json_int_t)study->rounds,
                     "steps", steps, "compare", comparisons);
}

void study_print_plan(const struct study *study, FILE *out)
{
    char words[200];
    fprintf(out, "study %s (%s): %s step%s", study->name, study->path,
            TEXT_COUNT(study->steps.count), study->steps.count == 1 ? "" : "s");
    if (study->rounds > 1)
        fprintf(out, ", in turn, %s times", TEXT_COUNT(study->rounds));
    fputc('\n', out);
    for (size_t i = 0; i < study->steps.count; i++) {
        const struct study_step *step = &study->steps.items[i];
        fprintf(out, "\nstep %s: ", step->name);
        if (step->study)
            study_print_plan(step->study, out);
        else
            experiment_print_plan(&step->experiment, out);
    }
    for (size_t i = 0; i < study->comparisons.count; i++) {
        const struct study_comparison *one = &study->comparisons.items[i];
        fprintf(out, "\ncompare %s: %s with %s:", one->name,
                study->steps.items[one->candidate].name, study->steps.items[one->base].name);
        for (size_t k = 0; k + 1 < one->slices.count; k++)
            fprintf(out, " %s", one->slices.items[k]);
        fputc('\n', out);
        for (size_t k = 0; k < one->gates.count; k++)
            fprintf(out, "  gate: %s\n", gate_words(&one->gates.items[k], words, sizeof words));
    }
}

// --- the keys ------------------------------------------------------------------------------------

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
