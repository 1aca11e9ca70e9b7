// SPDX-License-Identifier: MIT
//
// The keys of a server. Which of them a kind takes is in its row of SERVER_KINDS.
#include <string.h>

#include "experiments/definition/tables.h"
#include "experiments/hosts/host_kind.h"
#include "experiments/servers/server_kind.h"

static const char *kind_word(unsigned index)
{
    return server_kinds[index] ? server_kinds[index]->name : NULL;
}

static const char *const *kind_keys(unsigned index)
{
    return server_kinds[index] ? server_kinds[index]->keys : NULL;
}

static int check_server_keys(const struct binding *binding, const struct node *node, unsigned own)
{
    unsigned other;
    const struct server_kind *kind = server_kinds[own];
    const struct node *key = find_key_of_another(node, kind_keys, own, &other);
    if (!key)
        return 0;
    if (kind->instead)
        return document_error(binding->document, key, binding->err, "`%s` is not for kind %s; %s",
                              node_text(key), kind->name, kind->instead);
    bool is_command = has_key(kind->keys, "options") && strcmp(node_text(key), "command") == 0;
    return document_error(binding->document, key, binding->err, "`%s` is for `kind: %s`%s%s%s",
                          node_text(key), server_kinds[other]->name, is_command ? "; " : "",
                          is_command ? kind->name : "", is_command ? " takes `options`" : "");
}

static int check_port(const struct binding *binding, const struct experiment_server *server)
{
    const struct reading *reading = binding->context;
    const struct experiment_server_array *all = &reading->experiment->servers;
    const struct node *servers = node_child(document_root(binding->document), "servers");
    if (all->count > EXPERIMENT_SERVERS_MAX)
        return document_error(binding->document, node_entry_key(servers, EXPERIMENT_SERVERS_MAX),
                              binding->err, "servers: %d at most", EXPERIMENT_SERVERS_MAX);
    for (const struct experiment_server *other = all->items; other < server; other++)
        if (other->port == server->port)
            return document_error(binding->document, node_key(servers, server->name), binding->err,
                                  "servers: `%s` and `%s` have the same port, %u; give one "
                                  "another `port`",
                                  other->name, server->name, server->port);
    return 0;
}

static const char *transport_word(unsigned index)
{
    static const char *const words[] = {"tcp", "udp", NULL};
    return words[index];
}

// Of both the kernel's events do not have the socket calls.
static int check_transport(const struct binding *binding, const struct node *node,
                           const struct experiment_server *server)
{
    if (server->own_stack && !server->shim)
        return document_error(binding->document, node_key(node, "own_stack"), binding->err,
                              "own_stack: only the shim sees the socket calls of such a server; "
                              "leave `shim` out, or `own_stack`");
    if (!server->over_udp || server->shim)
        return 0;
    return document_error(binding->document, node_key(node, "shim"), binding->err,
                          "shim: over UDP only the shim sees socket calls; leave `shim` out, or "
                          "write `transport: tcp`");
}

// What cannot be said of a server that runs already.
static int check_running(const struct binding *binding, const struct node *node,
                         const struct experiment_host *host, struct experiment_server *server)
{
    const struct node *shim = node_child(node, "shim");
    if (shim && server->shim)
        return document_error(binding->document, shim, binding->err,
                              "shim: cannot come into a server that runs already; its calls are "
                              "seen by the kernel");
    server->shim = false;
    if (host->kind->is_joined && !host->kind->is_elsewhere)
        return document_error(binding->document, node, binding->err,
                              "`%s` runs already, so it is not on the %s host `%s`, which is made "
                              "for the run: give it a host of kind local or ssh",
                              server->name, host->kind->name, host->name);
    if (host->kind->is_elsewhere && !node_child(node, "port"))
        return document_error(binding->document, node, binding->err,
                              "`%s` is on another machine: give its `port`, too", server->name);
    return 0;
}

static int check_server(const struct binding *binding, const struct node *node, void *object)
{
    const struct reading *reading = binding->context;
    struct experiment_server *server = object;
    struct error inner;
    size_t option = SIZE_MAX;
    unsigned kind = read_kind(node, kind_word);
    server->kind = server_kinds[kind];
    int result = read_host(binding, node, "host", "server", &server->host);
    if (result == 0)
        result = check_server_keys(binding, node, kind);
    if (result < 0)
        return result;
    const struct experiment_host *host = &reading->experiment->hosts.items[server->host];
    if (server->kind->runs_already && (result = check_running(binding, node, host, server)) < 0)
        return result;
    const char *transport = node_text(node_child(node, "transport"));
    server->over_udp = transport && strcmp(transport, transport_word(1)) == 0;
    if ((result = check_transport(binding, node, server)) < 0)
        return result;
    server->cores = host->cores;
    if ((result = read_cores(binding, node, host, &server->cores)) < 0)
        return result;
    if (!server->threads)
        server->threads = server->kind->thread_a_core ? (uint64_t)CPU_COUNT(&server->cores) : 1;
    if (!server->port)
        server->port = server->kind->port;
    inner.kind = ERROR_NONE;
    if (server->kind->check(server, &option, &inner) == 0 &&
        (host->kind->is_elsewhere || server->kind->find_port(server, &inner) == 0))
        return check_port(binding, server);
    const struct node *wrong = node_entry(node_child(node, "options"), option);
    return document_error(binding->document, wrong ? wrong : node, binding->err, "%s", inner.text);
}

static const struct field server_rows[] = {
    {"host", FIELD_TEXT, .otherwise = "server", .help = "where it runs"},
    {"kind", FIELD_WORD, .word = kind_word, .otherwise = "memcached",
     .help = "what it is; command: a program of your own"},
    {"threads", FIELD_COUNT, .low = "1", .high = "1024", INTO(struct experiment_server, threads),
     .otherwise = "memcached: one a core; else 1", .help = "of nginx its worker processes"},
    {"memory", FIELD_BYTES, "256MiB", .low = "8MiB", INTO(struct experiment_server, memory_bytes),
     .help = "of memcached and redis: what their keys may take"},
    {"page", FIELD_BYTES, "612B", .low = "1B", INTO(struct experiment_server, page_bytes),
     .help = "of nginx: how much it answers"},
    {"rules", FIELD_COUNT, "0", .low = "0", .high = "100000", INTO(struct experiment_server, rules),
     .help = "of nginx: rewrite rules it tries on each request in vain, which makes requests dear"},
    {"nice", FIELD_INTEGER, "0", .low = "-20", .high = "19", .outside = NICE_OUTSIDE,
     INTO(struct experiment_server, nice), .help = "its priority, -20 to 19"},
    {"options", FIELD_TEXTS, .otherwise = "none", INTO(struct experiment_server, options),
     .help = "more arguments for it"},
    {"command", FIELD_TEXTS, INTO(struct experiment_server, command),
     .help = "of kind command, needed: program and arguments; {address} and {port} are filled in"},
    {"shim", FIELD_SWITCH, "true", INTO(struct experiment_server, shim),
     .help = "see its socket calls"},
    {"own_stack", FIELD_SWITCH, "false", INTO(struct experiment_server, own_stack),
     .help = "its network stack is its own, not the kernel's (VMA, DPDK): what the kernel does not "
             "see of its connections is not missing, but one stage with the network"},
    {"transport", FIELD_WORD, "tcp", .word = transport_word,
     .help = "of memcached: what the load comes over; its keys are stored over TCP, whose port UDP "
             "has too"},
    {"pid", FIELD_COUNT, .low = "1", .high = "4194304", INTO(struct experiment_server, pid),
     .otherwise = "not known by it", .help = "of kind running: a process, with those it starts"},
    {"cgroup", FIELD_TEXT, INTO(struct experiment_server, cgroup), .otherwise = "not known by it",
     .help = "of kind running: its control group, as a container's"},
    {"systemd", FIELD_TEXT, INTO(struct experiment_server, systemd), .otherwise = "not known by it",
     .help = "of kind running: its unit"},
    {"address", FIELD_TEXT, INTO(struct experiment_server, address), .otherwise = "its host's",
     .help = "of kind running: the IPv4 address on which the load reaches it"},
    {"fill", FIELD_SWITCH, "false", INTO(struct experiment_server, fill),
     .help = "of kind running: write the workload's keys into it before the load"},
    {"port", FIELD_COUNT, .low = "1", .high = "65535", INTO(struct experiment_server, port),
     .otherwise = "11211, redis: 6379, nginx: 80, running: where it listens", .help = "of TCP"},
    {"ready_within", FIELD_DURATION, "10s", .low = "100ms", .high = "1h",
     INTO(struct experiment_server, ready_within_ns),
     .help = "how long it may take to listen: a JVM may fill its heap first, a database recover"},
    {"cores", FIELD_TEXTS, .otherwise = "its host's", .help = "what it runs on"},
};
const struct fields server_fields =
    FIELDS(server_rows, struct experiment_server, .check = check_server);
