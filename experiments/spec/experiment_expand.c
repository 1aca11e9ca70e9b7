// SPDX-License-Identifier: MIT
#include "experiments/spec/experiment_expand.h"

#include <stdio.h>
#include <string.h>

#include "experiments/spec/yaml_merge.h"

enum { FILES_MAX = 8, NODES_MAX = 200000 };

static struct yaml_part whole(const struct yaml_source *source)
{
    return (struct yaml_part){source, yaml_root(source)};
}

// --- extends -------------------------------------------------------------------------------------

bool experiment_path_join(const char *from, const char *wanted, char path[EXPERIMENT_PATH_BYTES])
{
    const char *slash = strrchr(from, '/');
    int directory = slash && wanted[0] != '/' ? (int)(slash - from) + 1 : 0;
    while (strncmp(wanted, "./", 2) == 0)
        wanted += 2;
    int used = snprintf(path, EXPERIMENT_PATH_BYTES, "%.*s%s", directory, from, wanted);
    return used > 0 && used < EXPERIMENT_PATH_BYTES;
}

struct chain {
    const char *paths[FILES_MAX]; // from the file itself to what is extended
    size_t count;
    yaml_opener open;
};

static int extend(struct yaml_source **source, struct chain *chain, struct error *err);

// Opens what the chain's last file extends, itself extended, and lays that file over it.
static int extend_with(struct yaml_source **source, int key, const char *path, struct chain *chain,
                       struct error *err)
{
    static const char *const dropped[] = {"extends", NULL};
    struct yaml_source *base = NULL, *merged = NULL;
    int result = chain->open(path, &base, err);
    if (result < 0) {
        struct error why = *err;
        return yaml_error(*source, key, err, "extends: %s", why.text);
    }
    chain->paths[chain->count++] = path;
    result = extend(&base, chain, err);
    if (result == 0)
        result = yaml_merge(whole(base), whole(*source), dropped, &merged, err);
    yaml_source_close(base);
    if (result < 0)
        return result;
    yaml_source_close(*source);
    *source = merged;
    return 0;
}

static int extend(struct yaml_source **source, struct chain *chain, struct error *err)
{
    char path[EXPERIMENT_PATH_BYTES];
    int root = yaml_root(*source), key = yaml_child(*source, root, "extends");
    if (yaml_kind(*source, root) != YAML_KIND_MAPPING || !key)
        return 0;
    const char *wanted = yaml_text(*source, key);
    if (!wanted || !*wanted || !experiment_path_join(chain->paths[chain->count - 1], wanted, path))
        return yaml_error(*source, key, err, "`extends` takes one file, relative to this one");
    for (size_t i = 0; i < chain->count; i++)
        if (strcmp(chain->paths[i], path) == 0)
            return yaml_error(*source, key, err, "extends: %s extends itself%s", path,
                              i + 1 == chain->count ? "" : ", through other files");
    if (chain->count == FILES_MAX)
        return yaml_error(*source, key, err, "extends: more than %d files", FILES_MAX);
    return extend_with(source, key, path, chain, err);
}

int experiment_extend(struct yaml_source **source, const char *path, yaml_opener open,
                      struct error *err)
{
    struct chain chain = {.paths = {path}, .count = 1, .open = open};
    return extend(source, &chain, err);
}

// --- matrix --------------------------------------------------------------------------------------

// What a value is called in a label: its scalars in a row.
static void describe(const struct yaml_source *source, int node, char *out, size_t out_bytes)
{
    size_t used = strlen(out);
    const char *text = yaml_text(source, node);
    if (text)
        snprintf(out + used, out_bytes - used, "%s%s", used ? " " : "", text);
    for (size_t i = 0; !text && i < yaml_count(source, node); i++)
        describe(source, yaml_entry(source, node, i), out, out_bytes);
}

static void extend_label(struct configuration *one, const char *axis, const char *value)
{
    const char *dot = strrchr(axis, '.');
    size_t used = strlen(one->label);
    snprintf(one->label + used, sizeof one->label - used, "%s%.60s=%.60s", used ? ", " : "",
             dot ? dot + 1 : axis, value);
}

static int check_axis(const struct yaml_source *source, int matrix, size_t axis, struct error *err)
{
    int node = yaml_entry(source, matrix, axis), key = yaml_entry_key(source, matrix, axis);
    if (yaml_kind(source, node) == YAML_KIND_SCALAR || yaml_count(source, node) == 0)
        return yaml_error(source, node, err,
                          "matrix: `%s` takes a list of values, or variants by name: "
                          "`{no: {capture: {backend: none}}, yes: {}}`",
                          yaml_text(source, key));
    for (size_t i = 0; yaml_kind(source, node) == YAML_KIND_MAPPING && i < yaml_count(source, node);
         i++)
        if (yaml_kind(source, yaml_entry(source, node, i)) != YAML_KIND_MAPPING)
            return yaml_error(source, yaml_entry(source, node, i), err,
                              "matrix: a variant is a piece of an experiment, such as "
                              "`{load: {rate: 10k}}`");
    return 0;
}

// Lays the axis' choice over the configuration.
static int apply(struct configuration *one, const struct yaml_source *source, int matrix,
                 size_t axis, size_t choice, struct error *err)
{
    struct yaml_part key = {source, yaml_entry_key(source, matrix, axis)};
    int node = yaml_entry(source, matrix, axis);
    struct yaml_part value = {source, yaml_entry(source, node, choice)};
    struct yaml_source *nested = NULL, *merged = NULL;
    const char *variant = yaml_text(source, yaml_entry_key(source, node, choice));
    char described[200] = "";
    if (!variant)
        describe(source, value.node, described, sizeof described);
    extend_label(one, yaml_text(source, key.node), variant ? variant : described);
    int result = variant ? 0 : yaml_nest(key, value, &nested, err);
    if (result == 0)
        result = yaml_merge(whole(one->source), nested ? whole(nested) : value, NULL, &merged, err);
    yaml_source_close(nested);
    if (result < 0)
        return result;
    yaml_source_close(one->source);
    one->source = merged;
    return 0;
}

// The configuration of that number, the last axis turning fastest.
static int make_one(const struct yaml_source *source, int matrix, size_t number,
                    struct configuration_array *out, struct error *err)
{
    static const char *const dropped[] = {"matrix", NULL};
    size_t axes = yaml_count(source, matrix), choices = 1;
    struct configuration one = {.source = NULL};
    int result = yaml_merge(whole(source), whole(source), dropped, &one.source, err);
    if (result == 0 && array_push(out, one) < 0) {
        yaml_source_close(one.source);
        result = error_set(err, ERROR_FAILED, "out of memory for the matrix");
    }
    for (size_t i = 0; i < axes; i++)
        choices *= yaml_count(source, yaml_entry(source, matrix, i));
    for (size_t i = 0; i < axes && result == 0; i++) {
        size_t count = yaml_count(source, yaml_entry(source, matrix, i));
        choices /= count;
        result =
            apply(&out->items[out->count - 1], source, matrix, i, number / choices % count, err);
    }
    return result;
}

int experiment_expand(const struct yaml_source *source, struct configuration_array *out,
                      struct error *err)
{
    int matrix = yaml_child(source, yaml_root(source), "matrix"), result = 0;
    size_t count = 1;
    *out = (struct configuration_array){0};
    if (matrix &&
        (yaml_kind(source, matrix) != YAML_KIND_MAPPING || yaml_count(source, matrix) == 0))
        return yaml_error(source, matrix, err,
                          "matrix: keys with lists of values, e.g. `matrix: {load.rate: [10k, "
                          "20k]}`");
    for (size_t i = 0; matrix && i < yaml_count(source, matrix); i++) {
        result = check_axis(source, matrix, i, err);
        if (result < 0)
            return result;
        count *= yaml_count(source, yaml_entry(source, matrix, i));
        if (count > CONFIGURATIONS_MAX || count * yaml_size(source) > NODES_MAX)
            return yaml_error(source, matrix, err, "matrix: more than %d configurations",
                              CONFIGURATIONS_MAX);
    }
    for (size_t i = 0; i < count && result == 0; i++)
        result = make_one(source, matrix, i, out, err);
    if (result < 0)
        configurations_free(out);
    return result;
}

void configurations_free(struct configuration_array *all)
{
    for (size_t i = 0; i < all->count; i++)
        yaml_source_close(all->items[i].source);
    array_free(all);
}
