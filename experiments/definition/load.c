// SPDX-License-Identifier: MIT
//
// The keys of a load and of its agents.
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "experiments/definition/tables.h"
#include "loadgen/client/stamp_mode.h"
#include "workloads/multiget.h"
#include "workloads/protocols/redis_cluster.h"

// --- how long it lasts ---------------------------------------------------------------------------

// Refuses what does not go with a method, and reads the budget that limits it.
static int begin_method(const struct binding *binding, const struct node *node, void *object)
{
    struct experiment_load *load = object;
    const struct workload *workload = &load->workload;
    load->duration_ns = 60000000000ull;
    if (workload->recording)
        return document_error(binding->document, node, binding->err,
                              "method: a recorded schedule (%s) lasts as long as it is",
                              workload->recording);
    if (workload->pattern.kind != PATTERN_CONSTANT)
        return document_error(binding->document, node, binding->err,
                              "method: it needs a rate that holds still, and the workload has a "
                              "pattern; use `duration`");
    return 0;
}

static int check_method(const struct binding *binding, const struct node *node, void *object)
{
    const struct experiment_load *load = object;
    const char *text = load->method.percentile;
    double percentile;
    int end = 0;
    if (sscanf(text, "p%lf%n", &percentile, &end) == 1 && !text[end] && percentile > 0 &&
        percentile < 100)
        return 0;
    return document_error(binding->document, node_child(node, "percentile"), binding->err,
                          "percentile: `%s` is not a percentile, like p99.9", text);
}

#define METHOD_NEEDS                                                                               \
    "method: `percentile` and `interval` are needed, e.g. `method: {percentile: p99, interval: "   \
    "10us}`"

static const struct field method_rows[] = {
    {"percentile", FIELD_TEXT, .needed = METHOD_NEEDS,
     INTO(struct experiment_load, method.percentile), .help = "p99, p99.9"},
    {"interval", FIELD_DURATION, .needed = METHOD_NEEDS, .low = "1ns",
     INTO(struct experiment_load, method.interval_ns),
     .help = "the width of its confidence interval, at most"},
    {"confidence", FIELD_NUMBER, "0.95", .low = "0.5", .high = "1", .high_excluded = true,
     .outside = "is not 0.5 to less than 1", INTO(struct experiment_load, method.confidence),
     .help = "of that interval"},
    {"budget", FIELD_DURATION, .low = "10ms", .high = "24h", .otherwise = "60s",
     INTO(struct experiment_load, duration_ns), .help = "load so long at most"},
};
static const struct fields method_fields =
    FIELDS(method_rows, struct experiment_load, .begin = begin_method, .check = check_method);

// --- agents --------------------------------------------------------------------------------------

static const char *agent_kind_word(unsigned index)
{
    return index <= AGENT_SYMMETRIC ? agent_kind_name((enum agent_kind)index) : NULL;
}

static const struct field agent_rows[] = {
    {"name", FIELD_NAME, .otherwise = "agent1, agent2, ...",
     INTO(struct experiment_agent, spec.name), .help = "what it is called"},
    {"host", FIELD_TEXT, .otherwise = "the load's `from`", .help = "where it runs"},
    {"kind", FIELD_WORD, "symmetric", .word = agent_kind_word,
     INTO(struct experiment_agent, spec.kind),
     .help = "throughput: loads, and is not measured; latency: measures at a low rate; symmetric: "
             "both"},
    {"rate", FIELD_NUMBER, .low = "0", .low_excluded = true, .high = "100M",
     .outside = RATE_OUTSIDE, .otherwise = "latency: 1000, else its share",
     INTO(struct experiment_agent, spec.rate), .help = "requests per second"},
    {"connections", FIELD_COUNT, .low = "1", .high = "65536", .otherwise = "the load's",
     INTO(struct experiment_agent, spec.connections), .help = "TCP connections"},
    {"threads", FIELD_COUNT, .low = "1", .high = "1024", .otherwise = "1",
     INTO(struct experiment_agent, spec.threads), .help = "of the agent"},
    {"cores", FIELD_TEXTS, .otherwise = "its host's", .help = "what it runs on"},
};
const struct fields agent_fields = FIELDS(agent_rows, struct experiment_agent);

// Reads where agents run, and checks that they fit together.
static int read_agents(const struct binding *binding, const struct node *list)
{
    const struct reading *reading = binding->context;
    struct experiment *experiment = reading->experiment;
    struct experiment_agent_array *agents = &experiment->load.agents;
    const char *from = experiment->hosts.items[experiment->load.from].name;
    struct error inner;
    if (agents->count && experiment->load.workload.recording)
        return document_error(binding->document, list, binding->err,
                              "agents: each draws a schedule of its own, and a recording (%s) is "
                              "one",
                              experiment->load.workload.recording);
    if (agents->count > AGENTS_MAX)
        return document_error(binding->document, list, binding->err, "agents: %d at most",
                              AGENTS_MAX);
    for (size_t i = 0; i < agents->count; i++) {
        struct experiment_agent *agent = &agents->items[i];
        const struct node *node = node_entry(list, i);
        int result = read_host(binding, node, "host", from, &agent->host);
        if (result < 0)
            return result;
        const struct experiment_host *host = &experiment->hosts.items[agent->host];
        agent->spec.has_cores = true;
        agent->spec.cores = host->cores;
        if ((result = read_cores(binding, node, host, &agent->spec.cores)) < 0)
            return result;
    }
    // That they do not fit together is reported at their list.
    if (experiment_set_seed(experiment, experiment->load.seed, &inner) < 0)
        return document_error(binding->document, list, binding->err, "agents: %s", inner.text);
    return 0;
}

// --- the load ------------------------------------------------------------------------------------

// What of `load` another load has no say in, and the other way round.
static int check_keys_of(const struct binding *binding, const struct node *node, bool first)
{
    static const struct {
        const char *key, *why;
        bool first;
    } refused[] = {
        {"workload", "that of `load` is the experiment's; it stands at the top of the file", true},
        {"name", "a load among `loads` is called what its key is", false},
        {"method", "the other loads last as long as `load` does, whose method it is", false},
        {"seed", "the seeds of other loads follow from that of `load`", false},
        {"agents", "only `load` is shared by agents; name one more load instead", false},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (refused[i].first == first && node_child(node, refused[i].key))
            return document_error(binding->document, node_key(node, refused[i].key), binding->err,
                                  "%s: %s", refused[i].key, refused[i].why);
    return 0;
}

// A load among `loads` asks for what `load` asks for, and as long, unless it says otherwise.
static int begin_load(const struct binding *binding, const struct node *node, void *object)
{
    const struct reading *reading = binding->context;
    struct experiment_load *load = object;
    const struct experiment_load *first = &reading->experiment->load;
    const struct node *workload = node_child(document_root(binding->document), "workload");
    if (check_keys_of(binding, node, load == first) < 0)
        return -ERROR_INPUT;
    if (load == first)
        return 0;
    load->duration_ns = first->duration_ns;
    workload_defaults(&load->workload);
    return workload && !node_child(node, "workload")
               ? fields_bind(binding, &workload_fields, workload, &load->workload)
               : 0;
}

// The arrivals are the workload's, unless the load has its own.
static int read_arrivals(const struct binding *binding, const struct node *node,
                         struct experiment_load *load)
{
    struct workload *workload = &load->workload;
    const char *text = node_text(node_child(node, "arrivals"));
    if (text) {
        struct error inner;
        struct distribution arrivals;
        if (arrivals_parse(text, &arrivals, &inner) < 0)
            return field_misread(binding, node, "arrivals", &inner);
        distribution_free(&workload->arrivals);
        workload->arrivals = arrivals;
    }
    arrivals_format(&workload->arrivals, load->arrivals, sizeof load->arrivals);
    return 0;
}

// The load does not run where the experiment was written.
static int check_path(const struct binding *binding, const struct node *node, const char *key,
                      const char *path)
{
    if (!path || path[0] == '/')
        return 0;
    return document_error(binding->document, node_child(node, key), binding->err,
                          "%s: write the whole path; it is read on the host that loads", key);
}

static int check_tls(const struct binding *binding, const struct node *node,
                     const struct experiment_load *load, const char *path)
{
    static const char *const keys[] = {"tls_ca", "tls_insecure", "tls_cert", "tls_key",
                                       "tls_full_handshakes"};
    for (size_t i = 0; !load->tls && i < sizeof keys / sizeof *keys; i++)
        if (node_child(node, keys[i]))
            return document_error(binding->document, node_key(node, keys[i]), binding->err,
                                  "%s: `%s` is for `tls: true`", path, keys[i]);
    if (load->tls_ca && load->tls_insecure)
        return document_error(binding->document, node_key(node, "tls_insecure"), binding->err,
                              "`tls_ca` and `tls_insecure` exclude each other");
    if (load->tls_key && !load->tls_cert)
        return document_error(binding->document, node_key(node, "tls_key"), binding->err,
                              "`tls_key` is for `tls_cert`");
    return check_path(binding, node, "tls_ca", load->tls_ca) < 0 ||
                   check_path(binding, node, "tls_cert", load->tls_cert) < 0 ||
                   check_path(binding, node, "tls_key", load->tls_key) < 0
               ? -ERROR_INPUT
               : 0;
}

// Which servers are loaded is found out from the one that is named.
static int check_nodes(const struct binding *binding, const struct node *node,
                       const struct experiment_load *load)
{
    const struct protocol *protocol = load->workload.protocol;
    const char *key = load->cluster ? "cluster" : "sentinel";
    const struct node *at = node_key(node, key);
    if (!load->cluster && !load->sentinel)
        return 0;
    if (load->cluster && load->sentinel)
        return document_error(binding->document, at, binding->err,
                              "`cluster` and `sentinel` exclude each other");
    if (!protocol->slot)
        return document_error(binding->document, at, binding->err,
                              "%s: protocol %s has no clusters and no sentinels", key,
                              protocol->name);
    if (load->session)
        return document_error(binding->document, node_key(node, "session"), binding->err,
                              "`session` and `%s` exclude each other", key);
    if (load->sentinel && (!load->sentinel[0] || strlen(load->sentinel) >= SENTINEL_NAME_BYTES))
        return document_error(binding->document, at, binding->err,
                              "sentinel: a master's name has 1 to %d bytes",
                              SENTINEL_NAME_BYTES - 1);
    return 0;
}

static bool stamps_are_thinned(const struct experiment_load *load)
{
    struct error ignored;
    enum stamp_mode mode;
    uint32_t every;
    return stamp_mode_parse(load->stamps, &mode, &every, &ignored) == 0 && every;
}

static int check_stamps(const struct binding *binding, const struct node *node,
                        const struct experiment_load *load)
{
    struct error why;
    enum stamp_mode mode;
    uint32_t every;
    const struct node *at = node_child(node, "stamps");
    if (stamp_mode_parse(load->stamps, &mode, &every, &why) < 0)
        return document_error(binding->document, at, binding->err, "stamps: %s", why.text);
    if (every && load->agents.count)
        return document_error(binding->document, at, binding->err,
                              "`stamps: sw:1/N` and `agents` exclude each other");
    return 0;
}

static int check_load(const struct binding *binding, const struct node *node, void *object)
{
    struct experiment_load *load = object;
    char path[LOAD_PATH_BYTES];
    load_path(((const struct reading *)binding->context)->experiment, load, path);
    if (!node_child(node, "rate") && load->agents.count == 0)
        return document_error(binding->document, node, binding->err,
                              "%s: `rate` is missing; requests per second, e.g. `rate: 20k`", path);
    if (node_child(node, "method") && node_child(node, "duration"))
        return document_error(binding->document, node_key(node, "duration"), binding->err,
                              "`duration` and `method` exclude each other: the method decides how "
                              "long the load lasts, `budget` in it how long at most");
    if (load->sleep && load->agents.count)
        return document_error(binding->document, node_key(node, "sleep"), binding->err,
                              "`sleep` and `agents` exclude each other");
    if (check_stamps(binding, node, load) < 0 ||
        check_path(binding, node, "password_file", load->password_file) < 0 ||
        check_tls(binding, node, load, path) < 0)
        return -ERROR_INPUT;
    if (check_nodes(binding, node, load) < 0)
        return -ERROR_INPUT;
    return read_arrivals(binding, node, load);
}

static const struct field load_rows[] = {
    {"name", FIELD_NAME, .otherwise = "main", INTO(struct experiment_load, name),
     .help = "of `load`, where there are `loads` beside it: what it is called"},
    {"workload", FIELD_GROUP, .fields = &workload_fields, .like = "workload",
     INTO(struct experiment_load, workload), .otherwise = "the experiment's",
     .help = "of a load among `loads`: what its requests are, all of it"},
    {"to", FIELD_TEXT, .otherwise = "the only one", .help = "the server that is loaded"},
    {"from", FIELD_TEXT, .otherwise = "client; with agents the first one's",
     .help = "the host that loads"},
    {"rate", FIELD_NUMBER, .low = "0", .low_excluded = true, .high = "100M",
     .outside = RATE_OUTSIDE, INTO(struct experiment_load, rate),
     .help = "requests per second; needed, unless agents have theirs"},
    {"arrivals", FIELD_TEXT, .otherwise = "the workload's",
     .help = "a shape of the gaps between requests: exponential, fixed, uniform, a distribution"},
    {"connections", FIELD_COUNT, "16", .low = "1", .high = "65536",
     INTO(struct experiment_load, connections), .help = "TCP connections"},
    {"depth", FIELD_COUNT, "8", .low = "1", .high = "4096", INTO(struct experiment_load, depth),
     .help = "most in flight on each of them"},
    {"duration", FIELD_DURATION, "10s", .low = "10ms", .high = "24h",
     INTO(struct experiment_load, duration_ns), .help = "how long"},
    {"method", FIELD_GROUP, .fields = &method_fields, IN_PLACE,
     .help = "instead of a duration: until a percentile is known well enough (taillight-load(1), "
             "METHOD)"},
    {"seed", FIELD_COUNT, "1", INTO(struct experiment_load, seed),
     .help = "same seed, same requests"},
    {"stamps", FIELD_TEXT, "auto", .form = STAMP_MODE_WORDS, INTO(struct experiment_load, stamps),
     .help = "whose times count: the card's, the kernel's (sw:1/16: of one send call in 16) or the "
             "program's"},
    {"timeout", FIELD_DURATION, "1s", .low = "1ms", .high = "60s",
     INTO(struct experiment_load, timeout_ns), .help = "for one reply"},
    {"session", FIELD_COUNT, .low = "1", .otherwise = "as many as come",
     INTO(struct experiment_load, session),
     .help = "requests of a connection, which then ends and is opened again"},
    {"memory", FIELD_BYTES, .low = "16MiB", .otherwise = "1GiB",
     INTO(struct experiment_load, memory_bytes),
     .help = "what its requests may take; of a longer load a sample and histograms are kept, and "
             "all of it in samples.tlog"},
    {"user", FIELD_TEXT, .otherwise = "none", INTO(struct experiment_load, user),
     .help = "who the connections say they are, where the server wants a login"},
    {"password_file", FIELD_TEXT, .otherwise = "TAILLIGHT_PASSWORD of the environment",
     INTO(struct experiment_load, password_file),
     .help = "its first line is the password; the whole path, on the host that loads"},
    {"tls", FIELD_SWITCH, "false", INTO(struct experiment_load, tls),
     .help = "TLS 1.3 or 1.2; the server's certificate must be believed and name its address"},
    {"tls_ca", FIELD_TEXT, .otherwise = "the machine's", INTO(struct experiment_load, tls_ca),
     .help = "a file of certificates to believe; the whole path, on the host that loads"},
    {"tls_insecure", FIELD_SWITCH, "false", INTO(struct experiment_load, tls_insecure),
     .help = "believe any certificate"},
    {"tls_cert", FIELD_TEXT, .otherwise = "none", INTO(struct experiment_load, tls_cert),
     .help = "a file with the certificate (and its chain) that is shown to a server that wants one "
             "of its clients; the whole path, on the host that loads"},
    {"tls_key", FIELD_TEXT, .otherwise = "that of tls_cert", INTO(struct experiment_load, tls_key),
     .help = "a file with the certificate's key; the whole path, on the host that loads"},
    {"tls_full_handshakes", FIELD_SWITCH, "false",
     INTO(struct experiment_load, tls_full_handshakes),
     .help = "resume no session: each connection makes a full handshake, also one that is opened "
             "again"},
    {"cluster", FIELD_SWITCH, "false", INTO(struct experiment_load, cluster),
     .help = "the server is a node of a Redis Cluster: each key is asked for at the node that has "
             "it; those among `servers` are explained"},
    {"sentinel", FIELD_TEXT, .otherwise = "none", INTO(struct experiment_load, sentinel),
     .help = "the server is a Redis Sentinel: its master of this name is loaded, also after a "
             "failover"},
    {"sleep", FIELD_SWITCH, "false", INTO(struct experiment_load, sleep),
     .help = "sleep between requests and leave the core to others, as where the server runs on it; "
             "requests are sent later"},
    {"agents", FIELD_LIST, .fields = &agent_fields, .otherwise = "none",
     INTO(struct experiment_load, agents),
     .help = "processes that load together, each from a host; the requests of those that measure "
             "are joined and explained"},
};
const struct fields load_fields =
    FIELDS(load_rows, struct experiment_load, .begin = begin_load, .check = check_load);

// Of another load's keys whatever is not said is as of `load`.
static int read_target(const struct binding *binding, const struct node *node,
                       struct experiment_load *load)
{
    const struct reading *reading = binding->context;
    const struct experiment_server_array *servers = &reading->experiment->servers;
    const struct node *to = node_child(node, "to");
    if (to)
        return find_named(binding, to, "to: no server", node_text(to), servers->items,
                          sizeof *servers->items, servers->count, &load->to);
    if (load != &reading->experiment->load)
        load->to = reading->experiment->load.to;
    if (servers->count == 1 || load != &reading->experiment->load)
        return 0;
    return document_error(binding->document, node, binding->err,
                          "load: there are several servers; say which one is loaded: `to: %s`",
                          servers->items[0].name);
}

// Nobody logs in over UDP, and there is no TLS of it, nor are there connections that end; nor are
// there multigets everywhere.
static int check_server_takes(const struct binding *binding, const struct node *root, size_t number)
{
    const struct reading *reading = binding->context;
    const struct experiment_load *load = experiment_load_at(reading->experiment, number);
    const struct experiment_server *server = &reading->experiment->servers.items[load->to];
    const char *key = load->user ? "user" : load->tls ? "tls" : load->session ? "session" : NULL;
    char path[LOAD_PATH_BYTES];
    if (server->over_udp && key)
        return document_error(binding->document, load_key(root, number, key), binding->err,
                              "`%s` is for TCP, and the load comes to `%s` over UDP (its "
                              "`transport`)",
                              key, server->name);
    if (server->over_udp && stamps_are_thinned(load))
        return document_error(binding->document, load_key(root, number, "stamps"), binding->err,
                              "stamps: the load comes to `%s` over UDP (its `transport`), where "
                              "each datagram is stamped, or none",
                              server->name);
    struct error inner;
    if (multiget_check(&load->workload, load->cluster, server->over_udp, &inner) < 0)
        return document_error(binding->document, node_key(load_workload_node(root, number), "mix"),
                              binding->err, "%s: %s", load_path(reading->experiment, load, path),
                              inner.text);
    return 0;
}

static int read_ends_of_first(const struct binding *binding, const struct node *root)
{
    const struct reading *reading = binding->context;
    const struct node *load = node_child(root, "load");
    const struct node *agents = node_child(load, "agents");
    size_t *from = &reading->experiment->load.from;
    // Where agents load, the first of them runs on the host, unless another is named.
    const struct node *first = node_entry(agents, 0);
    int result = read_target(binding, load, &reading->experiment->load);
    if (result == 0)
        result = check_server_takes(binding, root, 0);
    if (result == 0)
        result = node_child(load, "from") || !node_child(first, "host")
                     ? read_host(binding, load, "from", "client", from)
                     : read_host(binding, first, "host", "", from);
    return result < 0 ? result : read_agents(binding, agents);
}

int read_load_ends(const struct binding *binding, const struct node *root)
{
    const struct reading *reading = binding->context;
    struct experiment *experiment = reading->experiment;
    const char *from = NULL;
    int result = read_ends_of_first(binding, root);
    if (result == 0)
        from = experiment->hosts.items[experiment->load.from].name;
    for (size_t i = 0; i < experiment->others.count && result == 0; i++) {
        struct experiment_load *load = &experiment->others.items[i];
        const struct node *node = load_node(root, i + 1);
        result = read_target(binding, node, load);
        if (result == 0)
            result = check_server_takes(binding, root, i + 1);
        if (result == 0)
            result = read_host(binding, node, "from", from, &load->from);
    }
    return result == 0 ? check_loads(binding, root) : result;
}
