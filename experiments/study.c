// SPDX-License-Identifier: MIT
#include "experiments/study.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/diagnosis/diagnosis.h"
#include "experiments/gates.h"
#include "base/suggestion.h"
#include "experiments/spec/experiment_values.h"
#include "experiments/spec/yaml_merge.h"

enum { DEEPEST = 2 }; // studies in one another

static int load(const char *path, yaml_opener open, int depth, struct study *study,
                struct error *err);

static struct yaml_part whole(const struct yaml_source *source)
{
    return (struct yaml_part){source, yaml_root(source)};
}

// --- steps ---------------------------------------------------------------------------------------

// The one experiment a step's document comes to. Takes the source.
static int resolve_experiment(struct study *study, int value, struct yaml_source *source,
                              const char *path, struct study_step *step, struct error *err)
{
    struct configuration_array all = {0};
    struct yaml_source *merged = NULL;
    int with = yaml_child(study->source, yaml_root(study->source), "with"), result = 0;
    if (with && yaml_kind(study->source, with) != YAML_KIND_MAPPING)
        result = yaml_error(study->source, with, err,
                            "with: a piece of an experiment, such as `{load: {duration: 60s}}`");
    if (result == 0 && with) {
        struct yaml_part piece = {study->source, with};
        result = yaml_merge(whole(source), piece, NULL, &merged, err);
        if (result == 0) {
            yaml_source_close(source);
            source = merged;
        }
    }
    if (result == 0)
        result = experiment_expand(source, &all, err);
    yaml_source_close(source);
    if (result < 0)
        return result;
    if (all.count != 1) {
        result = yaml_error(study->source, value, err,
                            "steps: %s has a `matrix`; a step is one configuration", path);
    } else {
        result = experiment_resolve(all.items[0].source, path, "", &step->experiment, err);
        all.items[0].source = NULL;
    }
    configurations_free(&all);
    if (result < 0)
        return result;
    step->experiment.derived = true;
    if (step->experiment.repetitions == 1)
        return 0;
    experiment_free(&step->experiment);
    return yaml_error(study->source, value, err,
                      "steps: %s has `repetitions`; a study repeats its steps by `rounds`", path);
}

static int resolve_step(struct study *study, int value, const char *file, yaml_opener open,
                        int depth, struct study_step *step, struct error *err)
{
    char path[EXPERIMENT_PATH_BYTES];
    struct yaml_source *source = NULL;
    if (!file || !*file || !experiment_path_join(study->path, file, path))
        return yaml_error(study->source, value, err,
                          "steps: a step is a file, relative to this one");
    int result = open(path, &source, err);
    if (result < 0) {
        struct error why = *err;
        return yaml_error(study->source, value, err, "steps: %s", why.text);
    }
    result = experiment_extend(&source, path, open, err);
    bool is_study = result == 0 && yaml_key(source, yaml_root(source), "steps");
    if (result == 0 && !is_study)
        return resolve_experiment(study, value, source, path, step, err);
    yaml_source_close(source);
    if (result < 0)
        return result;
    if (depth == DEEPEST || yaml_key(study->source, yaml_root(study->source), "with"))
        return yaml_error(study->source, value, err,
                          "steps: %s is a study itself, which has no place %s", path,
                          depth == DEEPEST ? "so deep" : "below a `with`");
    step->study = calloc(1, sizeof *step->study);
    if (!step->study)
        return error_set(err, ERROR_FAILED, "%s: out of memory", path);
    result = load(path, open, depth + 1, step->study, err);
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

static int resolve_steps(struct study *study, yaml_opener open, int depth, const struct resolver *r,
                         struct error *err)
{
    int steps = yaml_child(study->source, yaml_root(study->source), "steps");
    if (study->spec->steps_count == 0)
        return yaml_error(study->source, steps, err,
                          "steps: name one file at least, e.g. `steps: {first: first.yaml}`");
    for (size_t i = 0; i < study->spec->steps_count; i++) {
        const struct setting_entry *entry = &study->spec->steps[i];
        struct study_step step = {.study = NULL};
        int value = yaml_entry(study->source, steps, i);
        int result = check_name(r, yaml_entry_key(study->source, steps, i), entry->name,
                                EXPERIMENT_PART_NAME_BYTES - 1);
        if (result == 0)
            result = resolve_step(study, value, entry->value, open, depth, &step, err);
        if (result < 0)
            return result;
        snprintf(step.name, sizeof step.name, "%s", entry->name);
        if (array_push(&study->steps, step) < 0) {
            free_step(&step);
            return error_set(err, ERROR_FAILED, "%s: out of memory", study->path);
        }
    }
    return 0;
}

// --- comparisons ---------------------------------------------------------------------------------

static int resolve_side(const struct study *study, int node, const char *key, const char *name,
                        size_t *index, struct error *err)
{
    const char *names[64];
    char hint[400];
    size_t count = 0;
    if (!name)
        return yaml_error(study->source, node, err, "compare: `%s` is missing; it names a step",
                          key);
    for (size_t i = 0; i < study->steps.count && count < 64; i++) {
        const struct study_step *step = &study->steps.items[i];
        *index = i;
        if (!step->study && strcmp(step->name, name) == 0)
            return 0;
        if (!step->study)
            names[count++] = step->name;
    }
    return yaml_error(study->source, yaml_child(study->source, node, key), err,
                      "%s: no step that is a run is called `%s`%s", key, name,
                      suggestion_write(name, names, count, hint, sizeof hint));
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

// Of the candidate's own, those that need no base are judged with its step.
static int resolve_gates(const struct study *study, int node, struct study_comparison *out,
                         struct error *err)
{
    int own = yaml_child(study->source, node, "gates");
    if (own)
        return gates_read(study->source, own, &out->gates, err);
    if (study->gates.count)
        return copy_gates(&study->gates, false, &out->gates, err);
    return copy_gates(&study->steps.items[out->candidate].experiment.gates, true, &out->gates, err);
}

static int resolve_comparison(struct study *study, int node,
                              const struct study_comparison_entry *entry,
                              struct study_comparison *out, struct error *err)
{
    const struct study_comparison_spec *spec = &entry->value;
    int list = yaml_child(study->source, node, "slices");
    int result = resolve_side(study, node, "base", spec->base, &out->base, err);
    if (result == 0)
        result = resolve_side(study, node, "candidate", spec->candidate, &out->candidate, err);
    if (result == 0 && spec->slices_count > STUDY_SLICES_MAX)
        result = yaml_error(study->source, list, err, "slices: %d at most", (int)STUDY_SLICES_MAX);
    for (size_t i = 0; i < spec->slices_count && result == 0; i++) {
        struct diagnosis_slice slice;
        struct error inner;
        if (diagnosis_slice_parse(spec->slices[i], &slice, &inner) < 0)
            result = yaml_error(study->source, yaml_entry(study->source, list, i), err,
                                "slices: %s", inner.text);
        out->slices[out->slice_count++] = spec->slices[i];
    }
    if (result == 0)
        result = resolve_gates(study, node, out, err);
    snprintf(out->name, sizeof out->name, "%s", entry->name);
    return result;
}

static int resolve_comparisons(struct study *study, const struct resolver *r, struct error *err)
{
    int root = yaml_root(study->source), all = yaml_child(study->source, root, "compare"),
        gates = yaml_child(study->source, root, "gates");
    if (gates && study->spec->compare_count == 0)
        return yaml_error(study->source, gates, err,
                          "gates: a study judges them in its comparisons, and has none; name some "
                          "under `compare`, or give the steps gates by `with`");
    int read = gates_read(study->source, gates, &study->gates, err);
    if (read < 0)
        return read;
    for (size_t i = 0; i < study->spec->compare_count; i++) {
        struct study_comparison one = {.slice_count = 0};
        const struct study_comparison_entry *entry = &study->spec->compare[i];
        int result = check_name(r, yaml_entry_key(study->source, all, i), entry->name,
                                EXPERIMENT_PART_NAME_BYTES - 1);
        if (result == 0)
            result = resolve_comparison(study, yaml_entry(study->source, all, i), entry, &one, err);
        if (result == 0 && array_push(&study->comparisons, one) < 0)
            result = error_set(err, ERROR_FAILED, "%s: out of memory", study->path);
        if (result < 0) {
            array_free(&one.gates);
            return result;
        }
    }
    return 0;
}

// --- the whole -----------------------------------------------------------------------------------

static int refuse_other_keys(const struct study *study, struct error *err)
{
    static const char *const own[] = {"name",    "steps", "with",   "rounds",
                                      "compare", "gates", "extends"};
    int root = yaml_root(study->source);
    for (size_t i = 0; i < yaml_count(study->source, root); i++) {
        int key = yaml_entry_key(study->source, root, i);
        bool known = false;
        for (size_t k = 0; k < sizeof own / sizeof *own; k++)
            known |= strcmp(yaml_text(study->source, key), own[k]) == 0;
        if (!known)
            return yaml_error(study->source, key, err,
                              "`%s` has no place in a study, whose `steps` are experiments; what "
                              "all of them have in common goes into `with`",
                              yaml_text(study->source, key));
    }
    return 0;
}

static int resolve(struct study *study, yaml_opener open, int depth, struct error *err)
{
    struct experiment nobody = {.source = NULL};
    struct resolver r = {
        .experiment = &nobody, .source = study->source, .spec = study->spec, .err = err};
    int root = yaml_root(study->source);
    study->rounds = 1;
    if (!study->spec->name)
        return yaml_error(study->source, root, err, "`name` is missing, e.g. `name: case-study`");
    int result = check_name(&r, yaml_child(study->source, root, "name"), study->spec->name,
                            EXPERIMENT_NAME_BYTES - 1);
    if (result == 0)
        result = resolve_count(&r, root, "rounds", study->spec->rounds, 1, 1000, &study->rounds);
    if (result < 0)
        return result;
    snprintf(study->name, sizeof study->name, "%s", study->spec->name);
    result = resolve_steps(study, open, depth, &r, err);
    return result < 0 ? result : resolve_comparisons(study, &r, err);
}

static int load(const char *path, yaml_opener open, int depth, struct study *study,
                struct error *err)
{
    *study = (struct study){.rounds = 1};
    snprintf(study->path, sizeof study->path, "%s", path);
    int result = open(path, &study->source, err);
    if (result == 0)
        result = experiment_extend(&study->source, path, open, err);
    bool is_study = result == 0 && yaml_key(study->source, yaml_root(study->source), "steps") != 0;
    if (is_study)
        result = refuse_other_keys(study, err);
    if (is_study && result == 0)
        result = experiment_spec_load(study->source, &study->spec, err);
    if (is_study && result == 0)
        result = resolve(study, open, depth, err);
    if (result == 0 && is_study)
        return 1;
    study_free(study);
    return result;
}

int study_load(const char *path, yaml_opener open, struct study *study, struct error *err)
{
    return load(path, open, 1, study, err);
}

void study_free(struct study *study)
{
    for (size_t i = 0; i < study->steps.count; i++)
        free_step(&study->steps.items[i]);
    array_free(&study->steps);
    for (size_t i = 0; i < study->comparisons.count; i++)
        array_free(&study->comparisons.items[i].gates);
    array_free(&study->comparisons);
    array_free(&study->gates);
    experiment_spec_free(study->spec);
    yaml_source_close(study->source);
    study->spec = NULL;
    study->source = NULL;
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
    fprintf(out, "study %s (%s): %zu step%s", study->name, study->path, study->steps.count,
            study->steps.count == 1 ? "" : "s");
    if (study->rounds > 1)
        fprintf(out, ", in turn, %llu times", (unsigned long long)study->rounds);
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
        for (size_t k = 0; k < one->slice_count; k++)
            fprintf(out, " %s", one->slices[k]);
        fputc('\n', out);
        for (size_t k = 0; k < one->gates.count; k++)
            fprintf(out, "  gate: %s\n", gate_words(&one->gates.items[k], words, sizeof words));
    }
}
