// SPDX-License-Identifier: MIT
#include "analysis/run/input/run_loads.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/connection.h"
#include "base/input_file.h"
#include "base/text.h"
#include "loadgen/client/sample_log.h"

enum { CONNECTIONS_VERSION = 1 };

// Names are parts of paths, and others wrote the file.
static bool is_name(const char *name)
{
    const size_t length = name ? strlen(name) : 0;
    return length > 0 && length < RUN_LOAD_NAME_BYTES && name[0] != '.' && !strchr(name, '/');
}

static int add_other(struct run_load_array *others, const char *name, bool first, struct error *err)
{
    struct run_load other = {.summary = NULL};
    if (!is_name(name))
        return error_set(err, ERROR_INPUT, "`loads`: `%.40s` is not a name; " INPUT_COPY_AGAIN,
                         name ? name : "");
    snprintf(other.name, sizeof other.name, "%s", name);
    run_load_folder(first ? NULL : name, other.folder);
    return array_push(others, other) < 0
               ? error_set(err, ERROR_FAILED, "no memory for the loads of a run")
               : 0;
}

// All but the chosen one: the first, which is in the place of the only one, and those beside it.
static int list_others(const json_t *experiment, const char *chosen, struct run_load_array *others,
                       struct error *err)
{
    const char *first =
        json_string_value(json_object_get(json_object_get(experiment, "load"), "name"));
    json_t *load, *loads = json_object_get(experiment, "loads");
    const char *name;
    int result = 0;
    if (chosen != first && strcmp(chosen, first) != 0)
        result = add_other(others, first, true, err);
    json_object_foreach(loads, name, load)
    {
        if (result == 0 && strcmp(name, chosen) != 0)
            result = add_other(others, name, false, err);
    }
    return result;
}

static int refuse(const json_t *experiment, const char *asked, const char *run_dir,
                  struct error *err)
{
    const char *first =
        json_string_value(json_object_get(json_object_get(experiment, "load"), "name"));
    json_t *load, *loads = json_object_get(experiment, "loads");
    const char *name;
    char names[400] = "";
    if (!first || json_object_size(loads) == 0)
        return error_set(err, ERROR_INPUT,
                         "there is no load `%.40s` in %s, which has one load without a name", asked,
                         run_dir);
    json_object_foreach(loads, name, load) text_append(names, sizeof names, ", %s", name);
    return error_set(err, ERROR_INPUT, "there is no load `%.40s` in %s; it has %s%s", asked,
                     run_dir, first, names);
}

// The experiment as if `chosen` were its `load`.
static json_t *turned_to(json_t *experiment, const char *chosen)
{
    json_t *turned = json_copy(experiment), *first = json_copy(json_object_get(experiment, "load")),
           *loads = json_copy(json_object_get(experiment, "loads")),
           *load = json_object_get(loads, chosen);
    const char *name = json_string_value(json_object_get(first, "name"));
    json_object_set(first, "workload", json_object_get(experiment, "workload"));
    json_object_set(turned, "load", load);
    json_object_set(turned, "workload", json_object_get(load, "workload"));
    json_object_del(loads, chosen);
    json_object_set(loads, name, first);
    json_object_set_new(turned, "loads", loads);
    json_decref(first);
    return turned;
}

int run_loads_choose(json_t **experiment, const char *asked, const char *run_dir,
                     char folder[LOAD_FOLDER_BYTES], struct run_load_array *others,
                     struct error *err)
{
    const json_t *loads = json_object_get(*experiment, "loads");
    const char *first =
        json_string_value(json_object_get(json_object_get(*experiment, "load"), "name"));
    run_load_folder(NULL, folder);
    const bool is_first = !asked || (first && strcmp(asked, first) == 0);
    if (!is_first && (!is_name(asked) || !is_name(first) || !json_object_get(loads, asked)))
        return refuse(*experiment, asked, run_dir, err);
    if (json_object_size(loads) == 0)
        return 0;
    if (!is_name(first))
        return error_set(err, ERROR_INPUT,
                         "%s/experiment.json: `loads`, and `load` has no name; " INPUT_COPY_AGAIN,
                         run_dir);
    int result = list_others(*experiment, is_first ? first : asked, others, err);
    if (result < 0)
        return error_prefix(err, "%s/experiment.json", run_dir);
    if (is_first)
        return 0;
    json_t *turned = turned_to(*experiment, asked);
    run_load_folder(asked, folder);
    json_decref(*experiment);
    *experiment = turned;
    return 0;
}

static int open_log(struct log_reader *reader, const char *run_dir, struct run_load *load,
                    const char *file, enum log_kind kind, uint32_t version, size_t record_bytes,
                    struct error *err)
{
    char name[RUN_LOAD_FILE_BYTES];
    run_load_file(load->folder, file, name);
    if (run_has(run_dir, name))
        return run_log_open(reader, run_dir, name, kind, version, record_bytes, err);
    load->missing = file;
    return 0;
}

int run_loads_open(struct run_load_array *others, const char *run_dir, struct error *err)
{
    int result = 0;
    for (size_t i = 0; i < others->count && result == 0; i++) {
        struct run_load *load = &others->items[i];
        char name[RUN_LOAD_FILE_BYTES], path[RUN_FILE_PATH_BYTES];
        run_path(path, run_dir, run_load_file(load->folder, "load.json", name));
        load->summary = access(path, F_OK) == 0 ? input_json(path, NULL) : NULL;
        result = open_log(&load->samples, run_dir, load, "samples.tlog", LOG_SAMPLES,
                          SAMPLE_LOG_VERSION, sizeof(struct sample), err);
        if (result == 0)
            result = open_log(&load->connections, run_dir, load, "connections.tlog",
                              LOG_CONNECTIONS, CONNECTIONS_VERSION, sizeof(struct connection), err);
    }
    return result;
}

void run_loads_free(struct run_load_array *others)
{
    for (size_t i = 0; i < others->count; i++) {
        log_reader_close(&others->items[i].samples);
        log_reader_close(&others->items[i].connections);
        json_decref(others->items[i].summary);
    }
    array_free(others);
}
