// SPDX-License-Identifier: MIT
//
// What is to be run, as plain data: hosts, servers, neighbours, settings and the load of one
// experiment, resolved (units in ns and bytes, references turned into indices, defaults filled in).
// definition/ reads it from a file; hosts/, servers/ and run/ act on it. Kinds are rows of tables
// there (experiments/hosts/host_kind.h, experiments/servers/server_kind.h).
#ifndef EXPERIMENTS_PLAN_EXPERIMENT_H
#define EXPERIMENTS_PLAN_EXPERIMENT_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/compare/gate.h"
#include "analysis/diagnosis/diagnosis.h"
#include "base/array.h"
#include "base/error.h"
#include "base/fields.h"
#include "loadgen/agents/agent.h"
#include "profiler/capsule/hop_spec.h"
#include "workloads/workload.h"

struct host_kind;
struct server_kind;
struct neighbour_kind;

enum {
    EXPERIMENT_NAME_BYTES = 65,
    EXPERIMENT_PART_NAME_BYTES = 32,
    CONFIGURATION_LABEL_BYTES = 200,
};
enum { NGINX_PAGE_BYTES = 612 }; // of the page it is installed with

struct experiment_host {
    char name[EXPERIMENT_PART_NAME_BYTES];
    const struct host_kind *kind;
    cpu_set_t cores;
    // Of kind ssh:
    const char *address;           // where ssh goes: [user@]host
    const char *nic;               // whose address servers get there; NULL: the one ssh reached
    const char *directory;         // where what is copied there lies meanwhile
    const char *ssh_config;        // a file, NULL: the user's own
    struct word_array ssh_options; // as ssh's -o takes them
    uint64_t silence_ns;           // after which the link to it counts as down
};

enum { EXPERIMENT_SERVERS_MAX = 16 };

struct experiment_server {
    char name[EXPERIMENT_PART_NAME_BYTES];
    size_t host;
    const struct server_kind *kind;
    const char *protocol; // that the workload speaks
    uint64_t threads;
    uint64_t memory_bytes;
    uint64_t page_bytes, rules; // of nginx
    int nice;                   // priority, -20 to 19
    struct word_array options;  // for memcached
    struct word_array command;  // of kind command
    bool shim;
    bool over_udp;  // the load comes over UDP
    bool own_stack; // its network stack is not the kernel's
    uint16_t port;
    uint64_t ready_within_ns; // it listens by then, or the run fails; 0: a neighbour's, 10 s
    cpu_set_t cores;
    // Of kind running:
    uint64_t pid;                           // 0: not known by it
    const char *cgroup, *systemd, *address; // NULL: not known by it; its host's
    bool fill;                              // load the keys before the run
};

// The load of a neighbour that serves; rate 0: none.
struct experiment_neighbour_load {
    size_t from; // index of the host
    double rate; // requests per second
    uint64_t connections;
    uint64_t depth;
    cpu_set_t cores;
};

struct experiment_neighbour {
    char name[EXPERIMENT_PART_NAME_BYTES];
    size_t host;
    const struct neighbour_kind *kind;
    struct word_array command; // of kind command
    uint64_t workers;          // of nginx, as page and port
    uint64_t page_bytes, rules;
    uint16_t port;
    struct experiment_neighbour_load load;
    int nice; // priority, -20 to 19
    cpu_set_t cores;
    uint64_t start_ns; // after the load began; of nginx, its own load
    uint64_t stop_ns;  // the same; 0: when the load ends
};

enum tuning_kind {
    TUNING_SYSCTL,
    TUNING_IRQ_AFFINITY,
    TUNING_RPS,
    TUNING_RSS,
    TUNING_COALESCING,
    TUNING_GOVERNOR,
    TUNING_CSTATES,
    TUNING_CPUSET,
};
enum { TUNING_VALUE_BYTES = 512 };

struct experiment_setting {
    size_t host;
    enum tuning_kind kind;
    const char *name;               // the sysctl, the IRQ's number, or NULL
    const char *nic;                // the card's name, "to*" for a netns host's cables, or NULL
    char value[TUNING_VALUE_BYTES]; // as the kernel takes it
    cpu_set_t cores;                // of a cpuset
};

struct experiment_agent {
    size_t host;
    struct agent_spec spec; // resolved; its place is that of the host
};
struct experiment_agent_array ARRAY_OF(struct experiment_agent);

// Load until a percentile is known well enough, instead of for a duration.
struct experiment_method {
    const char *percentile; // NULL: no method, a duration
    uint64_t interval_ns;   // its confidence interval's width, at most
    double confidence;
};

struct experiment_load {
    char name[EXPERIMENT_PART_NAME_BYTES]; // among several
    struct workload workload;
    size_t to;          // index of the server
    size_t from;        // index of the host
    double rate;        // requests per second
    char arrivals[200]; // as arrivals_format writes the workload's
    uint64_t connections;
    uint64_t depth;
    uint64_t duration_ns; // with a method: at most, its budget
    struct experiment_method method;
    uint64_t seed;
    const char *stamps;
    uint64_t timeout_ns;
    uint64_t session;                     // requests of a connection; 0: as many as come
    uint64_t memory_bytes;                // of its requests; 0: the load generator's default
    const char *user, *password_file;     // of a server that wants a login; NULL: none is named
    bool tls, tls_insecure;               // insecure: believing any certificate
    bool tls_full_handshakes;             // resuming no session
    const char *tls_ca;                   // believing this file's; NULL: the machine's
    const char *tls_cert, *tls_key;       // shown to the server; NULL: none; key in tls_cert
    bool cluster;                         // `to` is a node of a cluster, and all are loaded
    const char *sentinel;                 // `to` is one, and this master of its is; NULL: it is not
    bool sleep;                           // between requests, and leave the core to others
    struct experiment_agent_array agents; // none: the host `from` loads by itself
};
struct experiment_load_array ARRAY_OF(struct experiment_load);

struct experiment_window {
    uint64_t from_ns, to_ns; // after the load began
};

// What of the processor's trace is taken.
struct experiment_trace {
    unsigned detail;                 // enum processor_trace_detail
    uint64_t slow_ns;                // snapshots when a reply takes longer; 0: all of it is kept
    uint64_t keep;                   // snapshots at most
    cpu_set_t cores;                 // empty: the server's
    struct experiment_window window; // to_ns 0: all of the load
    uint64_t most_bytes;             // 0: as the disk has room
};

// Where packets are stamped.
struct experiment_hop {
    size_t host;
    bool at_client;                       // another machine than the server's: the load's
    char where[HOP_INTERFACE_BYTES + 16]; // "eth0", "eth0:egress"
};
struct experiment_hop_array ARRAY_OF(struct experiment_hop);

struct experiment_capsule {
    struct word_array words;          // the hops as they are written
    struct experiment_hop_array hops; // none: no packet is stamped
    // Each direction of each of them, with the host's name for its namespace's.
    struct hop_spec specs[HOPS_MAX];
    size_t spec_count;
    bool is_divided;             // some are on the load's machine
    const char *filter, *sample; // filter NULL: the loaded server's port
    bool carry;
};

struct experiment_host_array ARRAY_OF(struct experiment_host);
struct experiment_server_array ARRAY_OF(struct experiment_server);
struct experiment_neighbour_array ARRAY_OF(struct experiment_neighbour);
struct experiment_setting_array ARRAY_OF(struct experiment_setting);
struct experiment_window_array ARRAY_OF(struct experiment_window);

struct experiment {
    char name[EXPERIMENT_NAME_BYTES];
    struct experiment_host_array hosts;
    struct experiment_server_array servers;
    struct experiment_neighbour_array neighbours;
    struct experiment_setting_array settings;
    struct experiment_load load;
    struct experiment_load_array others; // loads at the same time, from the same machine
    unsigned backend;                    // what is captured, as capture_choice_name counts
    bool capture_optional;      // a run that cannot be captured is inconclusive, not failed
    unsigned capture_calls;     // as capture_calls_name counts
    const char *capture_nic;    // by whose clock messages arrive; NULL: see `load.stamps`
    uint64_t buffer_bytes;      // per core; 0: the capture's own default
    bool capture_commands;      // note with which command requests begin
    uint64_t shim_memory_bytes; // 0: the shim's own default
    struct experiment_trace trace;
    struct experiment_capsule capsule;
    struct diagnosis_slice diagnosed; // what `slice` says
    const char *slice;
    char categories[4096]; // a file of categories of causes; empty: none
    struct experiment_window_array windows;
    uint64_t repetitions;
    struct gate_array gates;
    struct document *document; // owns all the text above
    char path[4096];           // of the file
    bool derived;              // the document is not the file as it is, but what it comes to
    // Which of the matrix, "rate=10k, watched=no"; empty: there is none.
    char configuration[CONFIGURATION_LABEL_BYTES];
};

// All loads of the experiment, by number: `load` is the first.
size_t experiment_load_count(const struct experiment *experiment);
const struct experiment_load *experiment_load_at(const struct experiment *experiment,
                                                 size_t number);

// Gives the load another seed, and its agents and the other loads those that follow from it.
// ERROR_INPUT when the agents do not fit together.
int experiment_set_seed(struct experiment *experiment, uint64_t seed, struct error *err);

#endif
