// SPDX-License-Identifier: MIT
//
// The keys of a neighbour: what runs beside the server under test.
#include <string.h>

#include "experiments/definition/tables.h"
#include "experiments/servers/server_kind.h"

static const char *kind_word(unsigned index)
{
    return neighbour_kinds[index] ? neighbour_kinds[index]->name : NULL;
}

static const char *const *kind_keys(unsigned index)
{
    return neighbour_kinds[index] ? neighbour_kinds[index]->keys : NULL;
}

static int check_neighbour_load(const struct binding *binding, const struct node *node,
                                void *object)
{
    const struct reading *reading = binding->context;
    struct experiment_neighbour_load *load = object;
    int result = read_host(binding, node, "from", "client", &load->from);
    if (result < 0)
        return result;
    const struct experiment_host *host = &reading->experiment->hosts.items[load->from];
    load->cores = host->cores;
    return read_cores(binding, node, host, &load->cores);
}

static const struct field neighbour_load_rows[] = {
    {"from", FIELD_TEXT, .otherwise = "client", .help = "the host that makes it"},
    {"rate", FIELD_NUMBER, .low = "0", .low_excluded = true, .high = "100M",
     .outside = RATE_OUTSIDE, INTO(struct experiment_neighbour_load, rate),
     .needed = "load: `rate` is missing; requests per second, e.g. `rate: 5k`",
     .help = "requests per second"},
    {"connections", FIELD_COUNT, "16", .low = "1", .high = "4096",
     INTO(struct experiment_neighbour_load, connections), .help = "TCP connections"},
    {"depth", FIELD_COUNT, "8", .low = "1", .high = "4096",
     INTO(struct experiment_neighbour_load, depth), .help = "most in flight on each of them"},
    {"cores", FIELD_TEXTS, .otherwise = "its host's", .help = "what it runs on"},
};
const struct fields neighbour_load_fields =
    FIELDS(neighbour_load_rows, struct experiment_neighbour_load, .check = check_neighbour_load);

// Refuses keys that only other kinds take before any value of the neighbour is read.
static int begin_neighbour(const struct binding *binding, const struct node *node, void *object)
{
    struct experiment_neighbour *neighbour = object;
    unsigned other, kind = read_kind(node, kind_word);
    neighbour->kind = neighbour_kinds[kind];
    const struct node *key = find_key_of_another(node, kind_keys, kind, &other);
    const char *instead = neighbour->kind->instead;
    return key ? document_error(binding->document, key, binding->err, "`%s` is for `kind: %s`%s%s",
                                node_text(key), neighbour_kinds[other]->name, instead ? "; " : "",
                                instead ? instead : "")
               : 0;
}

static int check_port(const struct binding *binding, const struct node *node,
                      const struct experiment_neighbour *neighbour)
{
    const struct reading *reading = binding->context;
    const struct experiment_server_array *servers = &reading->experiment->servers;
    for (size_t i = 0; i < servers->count; i++)
        if (neighbour->host == servers->items[i].host && neighbour->port == servers->items[i].port)
            return document_error(binding->document, node, binding->err,
                                  "port: %u is the server's on this host; give %s another `port`",
                                  neighbour->port, neighbour->kind->name);
    return 0;
}

static int check_times(const struct binding *binding, const struct node *node,
                       const struct experiment_neighbour *neighbour)
{
    const struct reading *reading = binding->context;
    uint64_t end_ns = reading->experiment->load.duration_ns;
    const struct node *start = node_child(node, "start"), *stop = node_child(node, "stop");
    if (neighbour->start_ns >= end_ns)
        return document_error(binding->document, start, binding->err,
                              "start: %s is not before the load's end", node_text(start));
    if (stop && (neighbour->stop_ns <= neighbour->start_ns || neighbour->stop_ns > end_ns))
        return document_error(binding->document, stop, binding->err,
                              "stop: %s is not between its start and the load's end",
                              node_text(stop));
    return 0;
}

static int check_neighbour(const struct binding *binding, const struct node *node, void *object)
{
    const struct reading *reading = binding->context;
    struct experiment_neighbour *neighbour = object;
    const struct server_kind *serving = neighbour->kind->server;
    int result = read_host(binding, node, "host", "server", &neighbour->host);
    if (result < 0)
        return result;
    const struct experiment_host *host = &reading->experiment->hosts.items[neighbour->host];
    neighbour->cores = host->cores;
    if (!serving && neighbour->command.count < 2)
        return document_error(binding->document, node, binding->err,
                              "a neighbour needs `command: [program, argument, ...]`");
    if (serving && !neighbour->port)
        neighbour->port = serving->port;
    if ((serving && (result = check_port(binding, node, neighbour)) < 0) ||
        (result = read_cores(binding, node, host, &neighbour->cores)) < 0)
        return result;
    return check_times(binding, node, neighbour);
}

static const struct field neighbour_rows[] = {
    {"host", FIELD_TEXT, .otherwise = "server", .help = "where it runs"},
    {"kind", FIELD_WORD, .word = kind_word, .otherwise = "command",
     .help = "command: a program that comes and goes at its times; nginx: there all along, the "
             "load it gets comes and goes"},
    {"command", FIELD_TEXTS, INTO(struct experiment_neighbour, command),
     .help = "of kind command, needed: program and arguments"},
    {"workers", FIELD_COUNT, "1", .low = "1", .high = "1024",
     INTO(struct experiment_neighbour, workers), .help = "of nginx: its processes"},
    {"page", FIELD_BYTES, "612B", .low = "1B", INTO(struct experiment_neighbour, page_bytes),
     .help = "of nginx: how much it answers"},
    {"rules", FIELD_COUNT, "0", .low = "0", .high = "100000",
     INTO(struct experiment_neighbour, rules),
     .help = "of nginx: rewrite rules it tries on each request in vain"},
    {"port", FIELD_COUNT, .low = "1", .high = "65535", INTO(struct experiment_neighbour, port),
     .otherwise = "80", .help = "of nginx"},
    {"load", FIELD_GROUP, .fields = &neighbour_load_fields, .otherwise = "nothing",
     INTO(struct experiment_neighbour, load),
     .help = "what is asked of nginx, by a load generator that sleeps between requests"},
    {"nice", FIELD_INTEGER, "0", .low = "-20", .high = "19", .outside = NICE_OUTSIDE,
     INTO(struct experiment_neighbour, nice), .help = "its priority, -20 to 19"},
    {"cores", FIELD_TEXTS, .otherwise = "its host's", .help = "what it runs on"},
    {"start", FIELD_DURATION, "0s", INTO(struct experiment_neighbour, start_ns),
     .help = "after the load's first request; of nginx its load's"},
    {"stop", FIELD_DURATION, .otherwise = "the load's end",
     INTO(struct experiment_neighbour, stop_ns), .help = "the same"},
};
const struct fields neighbour_fields = FIELDS(neighbour_rows, struct experiment_neighbour,
                                              .begin = begin_neighbour, .check = check_neighbour);
