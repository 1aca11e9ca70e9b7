// SPDX-License-Identifier: MIT
#include "experiments/definition/experiment_set.h"

#include <stdio.h>
#include <string.h>

enum { FILES_MAX = 8, NODES_MAX = 200000 };

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
    document_opener open;
};

static int extend(struct document **document, struct chain *chain, struct error *err);

// Opens what the chain's last file extends, itself extended, and lays that file over it.
static int extend_with(struct document **document, const struct node *key, const char *path,
                       struct chain *chain, struct error *err)
{
    static const char *const dropped[] = {"extends", NULL};
    struct document *base = NULL, *merged = NULL;
    int result = chain->open(path, &base, err);
    if (result < 0) {
        struct error why = *err;
        return document_error(*document, key, err, "extends: %s", why.text);
    }
    chain->paths[chain->count++] = path;
    result = extend(&base, chain, err);
    if (result == 0)
        result =
            document_merge(document_root(base), document_root(*document), dropped, &merged, err);
    document_free(base);
    if (result < 0)
        return result;
    document_free(*document);
    *document = merged;
    return 0;
}

static int extend(struct document **document, struct chain *chain, struct error *err)
{
    char path[EXPERIMENT_PATH_BYTES];
    const struct node *root = document_root(*document), *key = node_child(root, "extends");
    if (node_kind(root) != NODE_MAPPING || !key)
        return 0;
    const char *wanted = node_text(key);
    if (!wanted || !*wanted || !experiment_path_join(chain->paths[chain->count - 1], wanted, path))
        return document_error(*document, key, err,
                              "`extends` takes one file, relative to this one");
    for (size_t i = 0; i < chain->count; i++)
        if (strcmp(chain->paths[i], path) == 0)
            return document_error(*document, key, err, "extends: %s extends itself%s", path,
                                  i + 1 == chain->count ? "" : ", through other files");
    if (chain->count == FILES_MAX)
        return document_error(*document, key, err, "extends: more than %d files", FILES_MAX);
    return extend_with(document, key, path, chain, err);
}

int experiment_extend(struct document **document, const char *path, document_opener open,
                      struct error *err)
{
    struct chain chain = {.paths = {path}, .count = 1, .open = open};
    return extend(document, &chain, err);
}

// --- single keys ---------------------------------------------------------------------------------

// Lays the one key of `assigned` over the document. A key that the matrix varies is refused: the
// matrix would take it back.
static int lay_over(struct document **document, const struct document *assigned, struct error *err)
{
    const struct node *root = document_root(assigned), *key = node_entry_key(root, 0);
    const struct node *matrix = node_child(document_root(*document), "matrix");
    struct document *nested = NULL, *merged = NULL;
    if (node_kind(root) != NODE_MAPPING || node_count(root) != 1)
        return document_error(assigned, NULL, err, "one key and its value, like load.rate=50k");
    if (node_child(matrix, node_text(key)))
        return document_error(assigned, key, err, "the experiment's matrix varies `%s`",
                              node_text(key));
    int result = document_nest(key, node_entry(root, 0), &nested, err);
    if (result == 0)
        result =
            document_merge(document_root(*document), document_root(nested), NULL, &merged, err);
    document_free(nested);
    if (result < 0)
        return result;
    document_free(*document);
    *document = merged;
    return 0;
}

int experiment_assign(struct document **document, const char *assignment, struct error *err)
{
    char name[100], text[EXPERIMENT_PATH_BYTES];
    struct document *assigned;
    const char *sign = strchr(assignment, '=');
    int used = sign ? snprintf(text, sizeof text, "%.*s: %s", (int)(sign - assignment), assignment,
                               sign + 1)
                    : 0;
    snprintf(name, sizeof name, "--set %s", assignment);
    if (!sign || sign == assignment || used >= (int)sizeof text)
        return error_set(err, ERROR_INPUT, "%s: a key and its value, like load.rate=50k", name);
    int result = document_parse_argument(name, text, (size_t)used, &assigned, err);
    if (result < 0)
        return result;
    result = lay_over(document, assigned, err);
    document_free(assigned);
    return result;
}

// --- matrix --------------------------------------------------------------------------------------

// Writes a value as it appears in a label: its scalars, one after the other.
static void describe(const struct node *node, char *out, size_t out_bytes)
{
    size_t used = strlen(out);
    const char *text = node_text(node);
    if (text)
        snprintf(out + used, out_bytes - used, "%s%s", used ? " " : "", text);
    for (size_t i = 0; i < node_count(node); i++)
        describe(node_entry(node, i), out, out_bytes);
}

static void extend_label(struct configuration *one, const char *axis, const char *value)
{
    const char *dot = strrchr(axis, '.');
    size_t used = strlen(one->label);
    snprintf(one->label + used, sizeof one->label - used, "%s%.60s=%.60s", used ? ", " : "",
             dot ? dot + 1 : axis, value);
}

static int check_axis(const struct document *document, const struct node *matrix, size_t axis,
                      struct error *err)
{
    const struct node *node = node_entry(matrix, axis), *key = node_entry_key(matrix, axis);
    if (node_count(node) == 0)
        return document_error(document, node, err,
                              "matrix: `%s` takes a list of values, or variants by name: "
                              "`{no: {capture: {backend: none}}, yes: {}}`",
                              node_text(key));
    for (size_t i = 0; node_kind(node) == NODE_MAPPING && i < node_count(node); i++)
        if (node_kind(node_entry(node, i)) != NODE_MAPPING)
            return document_error(document, node_entry(node, i), err,
                                  "matrix: a variant is a part of an experiment, such as "
                                  "`{load: {rate: 10k}}`");
    return 0;
}

// Lays the axis' choice over the configuration.
static int apply_choice(struct configuration *one, const struct node *matrix, size_t axis,
                        size_t choice, struct error *err)
{
    const struct node *key = node_entry_key(matrix, axis), *node = node_entry(matrix, axis);
    const struct node *value = node_entry(node, choice);
    struct document *nested = NULL, *merged = NULL;
    const char *variant = node_text(node_entry_key(node, choice));
    char described[200] = "";
    if (!variant)
        describe(value, described, sizeof described);
    extend_label(one, node_text(key), variant ? variant : described);
    int result = variant ? 0 : document_nest(key, value, &nested, err);
    if (result == 0)
        result = document_merge(document_root(one->document),
                                nested ? document_root(nested) : value, NULL, &merged, err);
    document_free(nested);
    if (result < 0)
        return result;
    document_free(one->document);
    one->document = merged;
    return 0;
}

// The configuration of that number, the last axis turning fastest.
static int make_one(const struct document *document, const struct node *matrix, size_t number,
                    struct configuration_array *out, struct error *err)
{
    static const char *const dropped[] = {"matrix", NULL};
    const struct node *root = document_root(document);
    size_t choices = 1;
    struct configuration one = {.document = NULL};
    int result = document_merge(root, root, dropped, &one.document, err);
    if (result == 0 && array_push(out, one) < 0) {
        document_free(one.document);
        result = error_set(err, ERROR_FAILED, "out of memory for the matrix");
    }
    for (size_t i = 0; i < node_count(matrix); i++)
        choices *= node_count(node_entry(matrix, i));
    for (size_t i = 0; i < node_count(matrix) && result == 0; i++) {
        size_t count = node_count(node_entry(matrix, i));
        choices /= count;
        result =
            apply_choice(&out->items[out->count - 1], matrix, i, number / choices % count, err);
    }
    return result;
}

int experiment_expand(const struct document *document, struct configuration_array *out,
                      struct error *err)
{
    const struct node *matrix = node_child(document_root(document), "matrix");
    size_t count = 1;
    int result = 0;
    *out = (struct configuration_array){0};
    if (matrix && (node_kind(matrix) != NODE_MAPPING || node_count(matrix) == 0))
        return document_error(document, matrix, err,
                              "matrix: keys with lists of values, e.g. `matrix: {load.rate: [10k, "
                              "20k]}`");
    for (size_t i = 0; i < node_count(matrix); i++) {
        result = check_axis(document, matrix, i, err);
        if (result < 0)
            return result;
        count *= node_count(node_entry(matrix, i));
        if (count > CONFIGURATIONS_MAX || count * document_size(document) > NODES_MAX)
            return document_error(document, matrix, err, "matrix: more than %d configurations",
                                  CONFIGURATIONS_MAX);
    }
    for (size_t i = 0; i < count && result == 0; i++)
        result = make_one(document, matrix, i, out, err);
    if (result < 0)
        configurations_free(out);
    return result;
}

void configurations_free(struct configuration_array *all)
{
    for (size_t i = 0; i < all->count; i++)
        document_free(all->items[i].document);
    array_free(all);
}

static int refuse_opening(const char *path, struct document **out, struct error *err)
{
    *out = NULL;
    return error_set(err, ERROR_INPUT, "%s: text that is not a file cannot extend one", path);
}

static int resolve_all(struct configuration_array *all, const char *path, bool derived,
                       struct experiment_set *set, struct error *err)
{
    int result = 0;
    for (size_t i = 0; i < all->count && result == 0; i++) {
        struct experiment experiment;
        result =
            experiment_resolve(all->items[i].document, path, all->items[i].label, &experiment, err);
        all->items[i].document = NULL;
        if (result < 0)
            break;
        experiment.derived = derived;
        if (array_push(set, experiment) < 0) {
            experiment_free(&experiment);
            result = error_set(err, ERROR_FAILED, "%s: out of memory", path);
        }
    }
    return result;
}

static int assign_all(struct document **document, const struct option_list *assignments,
                      struct error *err)
{
    int result = 0;
    for (size_t i = 0; i < assignments->count && result == 0; i++)
        result = experiment_assign(document, assignments->items[i], err);
    return result;
}

// Takes the document.
static int load_set(struct document *document, const char *path, document_opener open,
                    const struct option_list *assignments, struct experiment_set *set,
                    struct error *err)
{
    struct configuration_array all = {0};
    bool derived = node_key(document_root(document), "extends") ||
                   node_key(document_root(document), "matrix") || assignments->count > 0;
    int result = experiment_extend(&document, path, open, err);
    if (result == 0)
        result = assign_all(&document, assignments, err);
    if (result == 0)
        result = experiment_expand(document, &all, err);
    // Once more: a variant of the matrix may have said otherwise.
    for (size_t i = 0; i < all.count && result == 0; i++)
        result = assign_all(&all.items[i].document, assignments, err);
    if (result == 0)
        result = resolve_all(&all, path, derived, set, err);
    configurations_free(&all);
    document_free(document);
    if (result < 0)
        experiment_set_free(set);
    return result;
}

int experiment_set_load(const char *path, const struct option_list *assignments,
                        struct experiment_set *set, struct error *err)
{
    struct document *document;
    *set = (struct experiment_set){0};
    int result = document_open(path, &document, err);
    return result < 0 ? result : load_set(document, path, document_open, assignments, set, err);
}

int experiment_set_parse(const char *name, const char *text, size_t bytes, document_opener open,
                         struct experiment_set *set, struct error *err)
{
    const struct option_list none = {0};
    struct document *document;
    *set = (struct experiment_set){0};
    int result = document_parse(name, text, bytes, &document, err);
    return result < 0 ? result
                      : load_set(document, name, open ? open : refuse_opening, &none, set, err);
}

void experiment_set_free(struct experiment_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        experiment_free(&set->items[i]);
    array_free(set);
}
