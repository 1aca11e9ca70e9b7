// SPDX-License-Identifier: MIT
#include "experiments/spec/experiment_schema.h"

#include <fnmatch.h>

#include "experiments/hosts/host_kind.h"
#include "experiments/servers/server_kind.h"
#include "experiments/spec/experiment_table.h"

enum { LONGEST_TEXT = 4096, MOST_ENTRIES = 64 };

#define TEXT(key, struct_type, member)                                                             \
    CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct_type, member, 0,  \
                           LONGEST_TEXT)
#define TEXTS(key, struct_type, member)                                                            \
    CYAML_FIELD_SEQUENCE(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct_type, member,       \
                         &text_value, 0, MOST_ENTRIES)
#define WORD(key, struct_type, member, words)                                                      \
    CYAML_FIELD_ENUM(key, CYAML_FLAG_STRICT | CYAML_FLAG_OPTIONAL, struct_type, member, words,     \
                     CYAML_ARRAY_LEN(words))
#define SWITCH(name, struct_type, member)                                                          \
    {                                                                                              \
        .key = name, .data_offset = offsetof(struct_type, member), .value = {                      \
            CYAML_VALUE_ENUM(CYAML_FLAG_STRICT | CYAML_FLAG_OPTIONAL, bool, booleans,              \
                             CYAML_ARRAY_LEN(booleans))                                            \
        }                                                                                          \
    }
#define ENTRIES(key, struct_type, member, schema)                                                  \
    CYAML_FIELD_SEQUENCE(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct_type, member,       \
                         &schema, 0, MOST_ENTRIES)
#define INSIDE(key, struct_type, member, fields)                                                   \
    CYAML_FIELD_MAPPING(key, CYAML_FLAG_OPTIONAL, struct_type, member, fields)
#define ENTRY_OF(type, fields)                                                                     \
    {                                                                                              \
        TEXT("name", struct type, name),                                                           \
            CYAML_FIELD_MAPPING("value", CYAML_FLAG_DEFAULT, struct type, value, fields),          \
            CYAML_FIELD_END                                                                        \
    }

static const cyaml_schema_value_t text_value = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 0, LONGEST_TEXT)};

static const cyaml_strval_t booleans[] = {{"true", 1}, {"false", 0}, {"yes", 1},
                                          {"no", 0},   {"on", 1},    {"off", 0}};
// Indices into host_kinds.
#define HOST_INDEX(name) HOST_INDEX_##name,
#define HOST_WORD(name)  {#name, HOST_INDEX_##name},
enum { HOST_KINDS(HOST_INDEX) };
static const cyaml_strval_t host_words[] = {HOST_KINDS(HOST_WORD)};
// Indices into server_kinds.
#define SERVER_INDEX(name) SERVER_INDEX_##name,
#define SERVER_WORD(name)  {#name, SERVER_INDEX_##name},
enum { SERVER_KINDS(SERVER_INDEX) };
static const cyaml_strval_t server_words[] = {SERVER_KINDS(SERVER_WORD)};
static const cyaml_strval_t agent_kinds[] = {
    {"throughput", AGENT_THROUGHPUT}, {"latency", AGENT_LATENCY}, {"symmetric", AGENT_SYMMETRIC}};
static const cyaml_strval_t neighbour_words[] = {{"command", 0}, {"nginx", 1}};
static const cyaml_strval_t capture_backends[] = {
    {"auto", CAPTURE_BACKEND_AUTO},           {"intel_pt", CAPTURE_BACKEND_INTEL_PT},
    {"functions", CAPTURE_BACKEND_FUNCTIONS}, {"samples", CAPTURE_BACKEND_SAMPLES},
    {"events", CAPTURE_BACKEND_EVENTS},       {"none", CAPTURE_BACKEND_NONE}};

static const cyaml_schema_field_t host_fields[] = {
    // local: here, on 127.0.0.1. netns: here, in a network namespace made for the run. [local]
    // ssh: another machine, through the user's own OpenSSH.
    WORD("kind", struct host_spec, kind, host_words),
    TEXTS("cores", struct host_spec, cores),        // what runs there runs on these: [0, "2-3"]
                                                    // [all; kind ssh: needed]
    TEXT("address", struct host_spec, address),     // of kind ssh: [user@]host, or a name of ssh's
                                                    // configuration; needed
    TEXT("nic", struct host_spec, nic),             // whose IPv4 address its servers get
                                                    // [that which ssh reached]
    TEXT("directory", struct host_spec, directory), // where the program lies there for the run
                                                    // [/tmp]
    TEXT("ssh_config", struct host_spec, ssh_config),    // a file [the user's]
    TEXTS("ssh_options", struct host_spec, ssh_options), // as ssh -o: ["Port=2222"] [none]
    CYAML_FIELD_END};

static const cyaml_schema_field_t server_fields[] = {
    TEXT("host", struct server_spec, host),               // where it runs [server]
    WORD("kind", struct server_spec, kind, server_words), // [memcached]
    TEXT("threads", struct server_spec, threads),         // of memcached [one a core],
                                                          // redis and labserver [1],
                                                          // nginx: its workers [1]
    TEXT("memory", struct server_spec, memory),           // of memcached, redis [256MiB]
    TEXT("page", struct server_spec, page),               // that nginx serves [612B]
    TEXT("rules", struct server_spec, rules),      // rewrite rules it tries on each request [0]
    TEXT("nice", struct server_spec, nice),        // its priority, -20 to 19 [0]
    TEXTS("options", struct server_spec, options), // more arguments for it [none]
    TEXTS("command", struct server_spec, command), // kind command: program, arguments;
                                                   // {address}, {port} are filled in
    SWITCH("shim", struct server_spec, shim),      // see its socket calls [true]
    TEXT("port", struct server_spec, port),        // TCP [11211, redis: 6379, nginx: 80]
    TEXTS("cores", struct server_spec, cores),     // [its host's]
    CYAML_FIELD_END};

static const cyaml_schema_field_t neighbour_load_fields[] = {
    TEXT("from", struct neighbour_load_spec, from),               // the host [client]
    TEXT("rate", struct neighbour_load_spec, rate),               // requests per second; needed
    TEXT("connections", struct neighbour_load_spec, connections), // [16]
    TEXT("depth", struct neighbour_load_spec, depth),             // most in flight on each [8]
    TEXTS("cores", struct neighbour_load_spec, cores),            // [its host's]
    CYAML_FIELD_END};

static const cyaml_schema_field_t neighbour_fields[] = {
    TEXT("host", struct neighbour_spec, host),                  // where it runs [server]
    WORD("kind", struct neighbour_spec, kind, neighbour_words), // [command]
    TEXTS("command", struct neighbour_spec, command),           // of kind command, needed:
                                                                // program, arguments
    TEXT("workers", struct neighbour_spec, workers),            // of nginx: its processes [1]
    TEXT("page", struct neighbour_spec, page),                  // that nginx serves [612B]
    TEXT("rules", struct neighbour_spec, rules), // rewrite rules it tries on each request [0]
    TEXT("port", struct neighbour_spec, port),   // of nginx [80]
    // What is asked of nginx; start and stop are its. [nothing]
    INSIDE("load", struct neighbour_spec, load, neighbour_load_fields),
    TEXT("nice", struct neighbour_spec, nice),    // its priority, -20 to 19 [0]
    TEXTS("cores", struct neighbour_spec, cores), // [its host's]
    TEXT("start", struct neighbour_spec, start),  // after the load began [0s]
    TEXT("stop", struct neighbour_spec, stop),    // the same [the load's end]
    CYAML_FIELD_END};

static const cyaml_schema_field_t setting_fields[] = {TEXT("name", struct setting_entry, name),
                                                      TEXT("value", struct setting_entry, value),
                                                      CYAML_FIELD_END};
static const cyaml_schema_value_t setting_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct setting_entry, setting_fields)};

static const cyaml_schema_field_t irq_affinity_fields[] = {
    TEXT("nic", struct irq_affinity_spec, nic),      // all interrupts of a card, or
    TEXTS("irqs", struct irq_affinity_spec, irqs),   // these, by number
    TEXTS("cores", struct irq_affinity_spec, cores), // which handle them [the host's]
    CYAML_FIELD_END};
static const cyaml_schema_field_t rps_fields[] = {
    TEXT("nic", struct rps_spec, nic),      // [of a netns host: its cables]
    TEXTS("cores", struct rps_spec, cores), // which do the receive processing [the host's]
    CYAML_FIELD_END};
static const cyaml_schema_field_t rss_fields[] = {
    TEXT("nic", struct rss_spec, nic),       // [of a netns host: its cables]
    TEXT("queues", struct rss_spec, queues), // spread flows over so many [1]
    CYAML_FIELD_END};
static const cyaml_schema_field_t coalescing_fields[] = {
    TEXT("nic", struct coalescing_spec, nic),                   // [of a netns host: its cables]
    SWITCH("adaptive_rx", struct coalescing_spec, adaptive_rx), // what is absent stays
    SWITCH("adaptive_tx", struct coalescing_spec, adaptive_tx),
    TEXT("rx_usecs", struct coalescing_spec, rx_usecs),
    TEXT("rx_frames", struct coalescing_spec, rx_frames),
    TEXT("tx_usecs", struct coalescing_spec, tx_usecs),
    TEXT("tx_frames", struct coalescing_spec, tx_frames),
    CYAML_FIELD_END};

static const cyaml_schema_field_t cpuset_fields[] = {
    TEXTS("cores", struct cpuset_spec, cores),          // [the host's]
    SWITCH("exclusive", struct cpuset_spec, exclusive), // nobody else runs on them [true]
    CYAML_FIELD_END};

static const cyaml_schema_field_t tuning_step_fields[] = {
    // Kernel parameters by name, restored when the run ends, however it ends; as all of these.
    ENTRIES("sysctl", struct tuning_step_spec, sysctl, setting_value),
    INSIDE("irq_affinity", struct tuning_step_spec, irq_affinity, irq_affinity_fields),
    INSIDE("rps", struct tuning_step_spec, rps, rps_fields),
    INSIDE("rss", struct tuning_step_spec, rss, rss_fields),
    INSIDE("coalescing", struct tuning_step_spec, coalescing, coalescing_fields),
    SWITCH("numa_balancing", struct tuning_step_spec, numa_balancing),
    TEXT("governor", struct tuning_step_spec, governor), // of the host's cores: performance
    TEXT("cstates", struct tuning_step_spec, cstates),   // none that wakes slower: 0us
    // A control group (cgroup v2) for the host's servers and neighbours.
    INSIDE("cpuset", struct tuning_step_spec, cpuset, cpuset_fields), CYAML_FIELD_END};
static const cyaml_schema_value_t tuning_step_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct tuning_step_spec, tuning_step_fields)};

static const cyaml_schema_field_t host_entry_fields[] = ENTRY_OF(host_entry, host_fields);
static const cyaml_schema_field_t server_entry_fields[] = ENTRY_OF(server_entry, server_fields);
static const cyaml_schema_field_t neighbour_entry_fields[] =
    ENTRY_OF(neighbour_entry, neighbour_fields);
static const cyaml_schema_field_t tuning_entry_fields[] = {
    TEXT("name", struct tuning_entry, name),
    ENTRIES("value", struct tuning_entry, value, tuning_step_value), CYAML_FIELD_END};

static const cyaml_schema_value_t host_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct host_entry, host_entry_fields)};
static const cyaml_schema_value_t server_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct server_entry, server_entry_fields)};
static const cyaml_schema_value_t neighbour_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct neighbour_entry, neighbour_entry_fields)};
static const cyaml_schema_value_t tuning_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct tuning_entry, tuning_entry_fields)};

static const cyaml_schema_field_t agent_fields[] = {
    TEXT("name", struct agent_entry, name),               // [agent1, agent2, ...]
    TEXT("host", struct agent_entry, host),               // where it runs [the load's `from`]
    WORD("kind", struct agent_entry, kind, agent_kinds),  // [symmetric]
    TEXT("rate", struct agent_entry, rate),               // [latency: 1000, else its share]
    TEXT("connections", struct agent_entry, connections), // [the load's]
    TEXT("threads", struct agent_entry, threads),         // [1]
    TEXTS("cores", struct agent_entry, cores),            // [its host's]
    CYAML_FIELD_END};
static const cyaml_schema_value_t agent_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct agent_entry, agent_fields)};

static const cyaml_schema_field_t method_fields[] = {
    TEXT("percentile", struct method_spec, percentile), // p99, p99.9; needed
    TEXT("interval", struct method_spec, interval),     // its interval's width, at most; needed
    TEXT("confidence", struct method_spec, confidence), // of that interval [0.95]
    TEXT("budget", struct method_spec, budget),         // load so long at most [60s]
    CYAML_FIELD_END};

static const cyaml_schema_field_t load_fields[] = {
    TEXT("to", struct load_spec, to),                   // the server [the only one]
    TEXT("from", struct load_spec, from),               // the host that makes it [client]
    TEXT("rate", struct load_spec, rate),               // requests per second; needed
    TEXT("arrivals", struct load_spec, arrivals),       // a shape of gaps [the workload's]
    TEXT("connections", struct load_spec, connections), // TCP connections [16]
    TEXT("depth", struct load_spec, depth),             // most in flight on each of them [8]
    TEXT("duration", struct load_spec, duration),       // [10s]
    // Instead of a duration: as long as a percentile's interval needs to become that narrow.
    INSIDE("method", struct load_spec, method, method_fields),
    TEXT("seed", struct load_spec, seed),       // same seed, same requests [1]
    TEXT("stamps", struct load_spec, stamps),   // auto, hw, sw or user [auto]
    TEXT("timeout", struct load_spec, timeout), // for one reply [1s]
    // Processes that load together, each from a host [one, on the host `from`]:
    ENTRIES("agents", struct load_spec, agents, agent_value), CYAML_FIELD_END};

static const cyaml_schema_field_t capture_fields[] = {
    // auto: kernel events where this machine can, else what is left, said. samples: kernel events,
    // and
    // where the cores were, some thousand times a second. none: nothing. [auto]
    WORD("backend", struct capture_spec, backend, capture_backends),
    // Of a matrix: where this machine cannot, leave the configuration out, with the reason. [false]
    SWITCH("optional", struct capture_spec, optional),
    TEXT("buffer", struct capture_spec, buffer), // for kernel events, per core [32MiB]
    CYAML_FIELD_END};

static const cyaml_schema_field_t diagnose_fields[] = {
    TEXT("slice", struct diagnose_spec, slice),      // which requests to explain [p99-100]
    TEXTS("windows", struct diagnose_spec, windows), // and those of each window: [0s-5s] [none]
    // A file of categories of your own, relative to the experiment's; a copy stays with the run.
    TEXT("categories", struct diagnose_spec, categories), CYAML_FIELD_END};

static const cyaml_schema_field_t repetitions_fields[] = {
    TEXT("count", struct repetitions_spec, count), // the whole run, so many times [1]
    // Each with hosts, a server and a dataset of its own; only true is possible. [true]
    SWITCH("restart", struct repetitions_spec, restart), CYAML_FIELD_END};

static const cyaml_schema_field_t gate_fields[] = {
    TEXT("percentile", struct gate_spec, percentile),     // p99.9, or
    TEXT("cause", struct gate_spec, cause),               // one with its role: nginx (A)
    TEXT("max", struct gate_spec, max),                   // at most so long: 200us, or
    TEXT("max_increase", struct gate_spec, max_increase), // so much more than the base: 5%
    CYAML_FIELD_END};
static const cyaml_schema_value_t gate_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct gate_spec, gate_fields)};

static const cyaml_schema_field_t study_comparison_fields[] = {
    TEXT("base", struct study_comparison_spec, base),           // a step; needed
    TEXT("candidate", struct study_comparison_spec, candidate), // another; needed
    TEXTS("slices", struct study_comparison_spec, slices),      // of both [p99-100, p45-55]
    // Over all rounds [the study's, else the candidate's of an increase]
    ENTRIES("gates", struct study_comparison_spec, gates, gate_value), CYAML_FIELD_END};
static const cyaml_schema_field_t study_comparison_entry_fields[] =
    ENTRY_OF(study_comparison_entry, study_comparison_fields);
static const cyaml_schema_value_t study_comparison_value = {CYAML_VALUE_MAPPING(
    CYAML_FLAG_DEFAULT, struct study_comparison_entry, study_comparison_entry_fields)};

static const cyaml_schema_field_t experiment_fields[] = {
    TEXT("name", struct experiment_spec, name), // names the run folder; needed
    // A study has these, and of the others only `name`, `extends` and `gates`, which are those of
    // its comparisons (experiments/study.h).
    ENTRIES("steps", struct experiment_spec, steps, setting_value), // files, by name, in order
    CYAML_FIELD_IGNORE("with", CYAML_FLAG_OPTIONAL), // a piece of an experiment, laid over each
    TEXT("rounds", struct experiment_spec, rounds),  // all steps so many times, in turn [1]
    ENTRIES("compare", struct experiment_spec, compare, study_comparison_value),
    // Both are gone before the table sees a document (experiments/spec/experiment_expand.h).
    CYAML_FIELD_IGNORE("extends", CYAML_FLAG_OPTIONAL), // a file that this one is laid over
    CYAML_FIELD_IGNORE("matrix", CYAML_FLAG_OPTIONAL),  // keys with values: many configurations
    ENTRIES("hosts", struct experiment_spec, hosts, host_value),
    ENTRIES("servers", struct experiment_spec, servers, server_value),
    ENTRIES("neighbours", struct experiment_spec, neighbours, neighbour_value),
    ENTRIES("tuning", struct experiment_spec, tuning, tuning_value),
    INSIDE("workload", struct experiment_spec, workload, workload_text_fields),
    INSIDE("load", struct experiment_spec, load, load_fields),
    INSIDE("capture", struct experiment_spec, capture, capture_fields),
    INSIDE("diagnose", struct experiment_spec, diagnose, diagnose_fields),
    INSIDE("repetitions", struct experiment_spec, repetitions, repetitions_fields),
    // What must not be exceeded; exit 3 when it is (docs/gates.md).
    ENTRIES("gates", struct experiment_spec, gates, gate_value), CYAML_FIELD_END};

const cyaml_schema_value_t experiment_table = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct experiment_spec, experiment_fields)};

bool experiment_table_is_named(const char *path)
{
    static const char *const patterns[] = {
        "hosts", "servers", "neighbours", "tuning", "tuning/*/*/sysctl", "steps", "compare"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (fnmatch(patterns[i], path, FNM_PATHNAME) == 0)
            return true;
    return false;
}

static const char *word_of(const cyaml_strval_t *words, size_t count, int64_t value)
{
    for (size_t i = 0; i < count; i++)
        if (words[i].val == value)
            return words[i].str;
    return "?";
}

const char *capture_backend_name(enum capture_backend backend)
{
    return word_of(capture_backends, CYAML_ARRAY_LEN(capture_backends), backend);
}
