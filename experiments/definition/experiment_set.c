// SPDX-License-Identifier: MIT
#include "experiments/definition/experiment_set.h"

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

// Takes the document.
static int load_set(struct document *document, const char *path, document_opener open,
                    struct experiment_set *set, struct error *err)
{
    struct configuration_array all = {0};
    bool derived =
        node_key(document_root(document), "extends") || node_key(document_root(document), "matrix");
    int result = experiment_extend(&document, path, open, err);
    if (result == 0)
        result = experiment_expand(document, &all, err);
    if (result == 0)
        result = resolve_all(&all, path, derived, set, err);
    configurations_free(&all);
    document_free(document);
    if (result < 0)
        experiment_set_free(set);
    return result;
}

int experiment_set_load(const char *path, struct experiment_set *set, struct error *err)
{
    struct document *document;
    *set = (struct experiment_set){0};
    int result = document_open(path, &document, err);
    return result < 0 ? result : load_set(document, path, document_open, set, err);
}

int experiment_set_parse(const char *name, const char *text, size_t bytes, document_opener open,
                         struct experiment_set *set, struct error *err)
{
    struct document *document;
    *set = (struct experiment_set){0};
    int result = document_parse(name, text, bytes, &document, err);
    return result < 0 ? result : load_set(document, name, open ? open : refuse_opening, set, err);
}

void experiment_set_free(struct experiment_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        experiment_free(&set->items[i]);
    array_free(set);
}
