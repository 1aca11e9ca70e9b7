// SPDX-License-Identifier: MIT
#include "experiments/definition/resolve.h"

#include <stdio.h>
#include <string.h>

#include "analysis/decomposition/categories.h"
#include "analysis/diagnosis/diagnosis.h"
#include "analysis/compare/gates.h"
#include "experiments/definition/tables.h"
#include "experiments/servers/server_kind.h"

// --- what is explained ---------------------------------------------------------------------------

static int read_window(const struct binding *binding, const struct node *node,
                       struct experiment *experiment)
{
    struct experiment_window window;
    int result = read_stretch(binding, node, "windows", experiment->load.duration_ns, &window);
    if (result < 0)
        return result;
    return array_push(&experiment->windows, window) < 0 ? field_out_of_memory(binding) : 0;
}

// The path of the categories' file, which is relative to the experiment's own.
static int read_categories(const struct binding *binding, const struct node *node,
                           struct experiment *experiment)
{
    const char *named = node_text(node), *slash = strrchr(experiment->path, '/');
    if (!named)
        return 0;
    int directory = slash && named[0] != '/' ? (int)(slash - experiment->path) + 1 : 0;
    size_t bytes = sizeof experiment->categories;
    int length =
        snprintf(experiment->categories, bytes, "%.*s%s", directory, experiment->path, named);
    if (named[0] == '\0' || length < 0 || (size_t)length >= bytes)
        return document_error(binding->document, node, binding->err,
                              "categories: `%.80s` is no path of a file", named);
    return 0;
}

static int check_diagnose(const struct binding *binding, const struct node *node, void *object)
{
    struct experiment *experiment = object;
    const struct node *windows = node_child(node, "windows");
    struct diagnosis_slice slice;
    struct error inner;
    if (diagnosis_slice_parse(experiment->slice, &slice, &inner) < 0)
        return field_misread(binding, node, "slice", &inner);
    int result = read_categories(binding, node_child(node, "categories"), experiment);
    for (size_t i = 0; i < node_count(windows) && result == 0; i++)
        result = read_window(binding, node_entry(windows, i), experiment);
    return result;
}

static const struct field diagnose_rows[] = {
    {"slice", FIELD_TEXT, "p99-100", INTO(struct experiment, slice),
     .help = "which requests to explain"},
    {"windows", FIELD_TEXTS, .otherwise = "none",
     .help = "and those of each window on their own: [0s-5s, 5s-10s]"},
    {"categories", FIELD_TEXT, .otherwise = "none",
     .help = "a file of categories of causes of your own, relative to this one; a copy stays with "
             "the run"},
};
static const struct fields diagnose_fields =
    FIELDS(diagnose_rows, struct experiment, .check = check_diagnose);

int experiment_choose_categories(struct experiment *experiment, const char *asked,
                                 struct error *err)
{
    struct categories categories = {0};
    if (asked && strlen(asked) >= sizeof experiment->categories)
        return error_set(err, ERROR_INPUT, "%.80s...: the path is too long", asked);
    if (asked)
        snprintf(experiment->categories, sizeof experiment->categories, "%s", asked);
    if (!experiment->categories[0])
        return 0;
    int result = categories_add_file(&categories, experiment->categories, err);
    categories_free(&categories);
    return result < 0 && !asked ? error_prefix(err, "%s: diagnose: categories", experiment->path)
                                : result;
}

// --- the other parts -----------------------------------------------------------------------------

static int check_repetitions(const struct binding *binding, const struct node *node, void *object)
{
    const struct node *restart = node_child(node, "restart");
    (void)object;
    if (!restart || strcmp(node_text(restart), "true") == 0 ||
        strcmp(node_text(restart), "yes") == 0 || strcmp(node_text(restart), "on") == 0)
        return 0;
    return document_error(binding->document, restart, binding->err,
                          "restart: every repetition is a run with a server of its own; "
                          "`taillight load --repetitions` loads one that goes on running");
}

static const struct field repetitions_rows[] = {
    {"count", FIELD_COUNT, "1", .low = "1", .high = "1000", INTO(struct experiment, repetitions),
     .help = "the whole run, so many times"},
    {"restart", FIELD_SWITCH, .otherwise = "true",
     .help = "each with hosts, a server and a dataset of its own; it can only be true"},
};
static const struct fields repetitions_fields =
    FIELDS(repetitions_rows, struct experiment, .check = check_repetitions);

static int refuse_protocol(const struct binding *binding, const struct node *root,
                           const struct experiment *experiment, size_t number)
{
    const struct experiment_load *load = experiment_load_at(experiment, number);
    const struct experiment_server *server = &experiment->servers.items[load->to];
    char path[LOAD_PATH_BYTES];
    load_path(experiment, load, path);
    return document_error(binding->document, load_protocol_node(root, number), binding->err,
                          "protocol: the workload%s%s speaks %s, and the server `%s` is of kind "
                          "%s, which does not; write `workload: {protocol: %s}`%s%s",
                          number ? " of " : "", number ? path : "", load->workload.protocol->name,
                          server->name, server->kind->name, server->kind->protocol,
                          number ? " into " : "", number ? path : "");
}

// Checks that the loaded servers' kinds speak the workloads' protocols.
static int check_protocol(const struct binding *binding, const struct node *root,
                          struct experiment *experiment)
{
    struct experiment_server_array *servers = &experiment->servers;
    const size_t count = experiment_load_count(experiment);
    for (size_t i = 0; i < servers->count; i++) // servers that are not loaded keep their kind's
        servers->items[i].protocol = servers->items[i].kind->protocol;
    for (size_t i = count; i-- > 0;) { // the first load of a server says what it speaks
        const struct experiment_load *load = experiment_load_at(experiment, i);
        servers->items[load->to].protocol = load->workload.protocol->name;
    }
    for (size_t i = 0; i < count; i++) {
        const struct experiment_load *load = experiment_load_at(experiment, i);
        if (!servers->items[load->to].kind->speaks(load->workload.protocol->name))
            return refuse_protocol(binding, root, experiment, i);
    }
    return 0;
}

// --- the whole -----------------------------------------------------------------------------------

static int begin_experiment(const struct binding *binding, const struct node *root, void *object)
{
    static const char *const of_studies[] = {"with", "rounds", "compare"};
    (void)object;
    for (size_t i = 0; i < sizeof of_studies / sizeof *of_studies; i++)
        if (node_key(root, of_studies[i]))
            return document_error(binding->document, node_key(root, of_studies[i]), binding->err,
                                  "`%s` is for a study, which has `steps`", of_studies[i]);
    return 0;
}

static int check_experiment(const struct binding *binding, const struct node *root, void *object)
{
    struct experiment *experiment = object;
    int result = diagnosis_slice_parse(experiment->slice, &experiment->diagnosed, binding->err);
    if (result == 0)
        result = read_load_ends(binding, root);
    if (result == 0)
        result = read_trace_cores(binding, node_child(root, "capture"));
    if (result == 0)
        result = read_capsule(binding, node_child(root, "capsule"));
    if (result == 0)
        result = read_tuning(binding, node_child(root, "tuning"));
    if (result == 0)
        result = check_protocol(binding, root, experiment);
    if (result == 0)
        result = check_gate_loads(binding->document, node_child(root, "gates"), &experiment->gates,
                                  experiment, binding->err);
    return result == 0 ? check_hosts_meet(binding, root) : result;
}

static const struct field experiment_rows[] = {
    {"name", FIELD_NAME, .needed = "`name` is missing, e.g. `name: quickstart`",
     INTO(struct experiment, name), .help = "names the run folder"},
    {"extends", FIELD_TEXT,
     .help = "a file, relative to this one, that this one is laid over: keys are joined, values "
             "and lists of this file replace the other's"},
    {"matrix", FIELD_ANYTHING,
     .help = "many configurations in one file, every combination of its axes: a key with the "
             "values it takes, load.rate: [10k, 20k], or a name with variants, each a part of an "
             "experiment laid over the rest: watched: {no: {capture: {backend: none}}, yes: {}}"},
    {"steps", FIELD_ANYTHING, .help = "makes the file a study, below"},
    {"with", FIELD_ANYTHING, .help = "of a study"},
    {"rounds", FIELD_ANYTHING, .help = "of a study"},
    {"compare", FIELD_ANYTHING, .help = "of a study"},
    {"hosts", FIELD_MAP, .fields = &host_fields, INTO(struct experiment, hosts),
     .needed = "hosts: name one at least, e.g. `hosts: {client: {kind: netns}, server: {kind: "
               "netns}}`",
     .help = "where things run, by name"},
    {"servers", FIELD_MAP, .fields = &server_fields, INTO(struct experiment, servers),
     .needed = "servers: name one, e.g. `servers: {cache: {kind: memcached}}`",
     .help = "one or several, by name; all are captured, one is loaded, and what the others do to "
             "its requests has their names"},
    {"workload", FIELD_GROUP, .fields = &workload_fields, INTO(struct experiment, load.workload),
     .help = "what one request is (taillight-load(1), WORKLOAD)"},
    {"load", FIELD_GROUP, .fields = &load_fields, INTO(struct experiment, load),
     .needed = "`load` is missing, e.g. `load: {to: cache, rate: 20k, duration: 10s}`",
     .help = "how much is asked for"},
    {"loads", FIELD_MAP, .fields = &load_fields, .like = "load", INTO(struct experiment, others),
     .otherwise = "none",
     .help =
         "loads beside `load`, by name, that begin when it begins: with a workload, a server, a "
         "host, a rate and connections of their own, or else as `load` has them; each is "
         "measured and explained by itself"},
    {"neighbours", FIELD_MAP, .fields = &neighbour_fields, INTO(struct experiment, neighbours),
     .help = "what else runs meanwhile, by name"},
    {"tuning", FIELD_MAP_LISTS, .fields = &tuning_step_fields,
     .help = "by host, a list of steps, each one of these; every old value is noted first and put "
             "back however the run ends"},
    {"capture", FIELD_GROUP, .fields = &capture_fields, IN_PLACE, .help = "what is recorded"},
    {"capsule", FIELD_GROUP, .fields = &capsule_fields, INTO(struct experiment, capsule),
     .help = "when packets pass interfaces on their way (docs/capsule.md), by which the diagnosis "
             "divides the time on the network"},
    {"diagnose", FIELD_GROUP, .fields = &diagnose_fields, IN_PLACE, .help = "what is explained"},
    {"repetitions", FIELD_GROUP, .fields = &repetitions_fields, IN_PLACE,
     .help = "of the whole run"},
    {"gates", FIELD_LIST, .fields = &gate_fields, INTO(struct experiment, gates),
     .help = "what must not be exceeded; exit 3 when it is (docs/gates.md)"},
};
const struct fields experiment_fields =
    FIELDS(experiment_rows, struct experiment, .example = "such as name, hosts, servers, load",
           .begin = begin_experiment, .check = check_experiment);

int experiment_resolve(struct document *document, const char *path, const char *configuration,
                       struct experiment *experiment, struct error *err)
{
    struct reading reading = {.experiment = experiment};
    const struct binding binding = {
        .document = document, .context = &reading, .root = &experiment_fields, .err = err};
    *experiment = (struct experiment){.document = document};
    snprintf(experiment->path, sizeof experiment->path, "%s", path);
    snprintf(experiment->configuration, sizeof experiment->configuration, "%s", configuration);
    fields_set_defaults(&experiment_fields, experiment);
    workload_defaults(&experiment->load.workload);
    int result =
        sched_getaffinity(0, sizeof reading.machine, &reading.machine) < 0
            ? error_set_errno(err, ERROR_FAILED, "cannot find out which cores there are")
            : fields_read(&binding, &experiment_fields, document_root(document), experiment);
    if (result < 0)
        experiment_free(experiment);
    return result;
}

void experiment_free(struct experiment *experiment)
{
    workload_free(&experiment->load.workload);
    for (size_t i = 0; i < experiment->others.count; i++)
        workload_free(&experiment->others.items[i].workload);
    fields_free(&experiment_fields, experiment);
    array_free(&experiment->settings);
    array_free(&experiment->windows);
    array_free(&experiment->capsule.hops);
    document_free(experiment->document);
    *experiment = (struct experiment){.document = NULL};
}
