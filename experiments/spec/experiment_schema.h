// SPDX-License-Identifier: MIT
//
// The keys of an experiment file, as one libcyaml table, and the structs they land in. Scalars
// stay text here: what they mean (units, cores, references to hosts) is resolved by
// experiments/spec/experiment.c, which can then say where a wrong one stands.
//
// A mapping whose keys are names the user chooses (hosts, servers, ...) reaches libcyaml as a list
// of {name, value} (yaml_write does that), which is what the struct *_entry types are.
#ifndef EXPERIMENTS_SPEC_EXPERIMENT_SCHEMA_H
#define EXPERIMENTS_SPEC_EXPERIMENT_SCHEMA_H

#include <stdbool.h>

#include "base/error.h"
#include "experiments/plan/experiment.h"
#include "experiments/spec/yaml_position.h"
#include "loadgen/agents/agent.h"
#include "workloads/workload.h"

struct host_spec {
    int kind; // index into host_kinds
    char **cores;
    unsigned cores_count;
    char *address;
    char *nic;
    char *directory;
    char *ssh_config;
    char **ssh_options;
    unsigned ssh_options_count;
};

struct server_spec {
    char *host;
    int kind; // index into server_kinds
    char *threads;
    char *memory;
    char *page;
    char *rules;
    char *nice;
    char **options;
    unsigned options_count;
    char **command;
    unsigned command_count;
    bool shim;
    char *port;
    char **cores;
    unsigned cores_count;
};

struct neighbour_load_spec {
    char *from;
    char *rate;
    char *connections;
    char *depth;
    char **cores;
    unsigned cores_count;
};

struct neighbour_spec {
    char *host;
    int kind; // index into neighbour_kinds
    char **command;
    unsigned command_count;
    char *workers;
    char *page;
    char *rules;
    char *port;
    struct neighbour_load_spec load;
    char *nice;
    char **cores;
    unsigned cores_count;
    char *start;
    char *stop;
};

struct setting_entry {
    char *name;
    char *value;
};

struct irq_affinity_spec {
    char *nic;
    char **irqs;
    unsigned irqs_count;
    char **cores;
    unsigned cores_count;
};

struct rps_spec {
    char *nic;
    char **cores;
    unsigned cores_count;
};

struct rss_spec {
    char *nic;
    char *queues;
};

struct coalescing_spec {
    char *nic;
    bool adaptive_rx, adaptive_tx;
    char *rx_usecs, *rx_frames, *tx_usecs, *tx_frames;
};

struct cpuset_spec {
    char **cores;
    unsigned cores_count;
    bool exclusive;
};

// One of these is given.
struct tuning_step_spec {
    struct setting_entry *sysctl;
    unsigned sysctl_count;
    struct irq_affinity_spec irq_affinity;
    struct rps_spec rps;
    struct rss_spec rss;
    struct coalescing_spec coalescing;
    bool numa_balancing;
    char *governor;
    char *cstates;
    struct cpuset_spec cpuset;
};

struct host_entry {
    char *name;
    struct host_spec value;
};

struct server_entry {
    char *name;
    struct server_spec value;
};

struct neighbour_entry {
    char *name;
    struct neighbour_spec value;
};

struct tuning_entry {
    char *name;
    struct tuning_step_spec *value;
    unsigned value_count;
};

struct agent_entry {
    char *name;
    char *host;
    enum agent_kind kind;
    char *rate;
    char *connections;
    char *threads;
    char **cores;
    unsigned cores_count;
};

struct method_spec {
    char *percentile;
    char *interval;
    char *confidence;
    char *budget;
};

struct load_spec {
    char *to;
    struct agent_entry *agents;
    unsigned agents_count;
    char *from;
    char *rate;
    char *arrivals;
    char *connections;
    char *depth;
    char *duration;
    struct method_spec method;
    char *seed;
    char *stamps;
    char *timeout;
};

struct capture_spec {
    enum capture_backend backend;
    bool optional;
    char *buffer;
};

struct diagnose_spec {
    char *slice;
    char *categories;
    char **windows;
    unsigned windows_count;
};

struct repetitions_spec {
    char *count;
    bool restart;
};

struct gate_spec {
    char *percentile;
    char *cause;
    char *max;
    char *max_increase;
};

struct study_comparison_spec {
    char *base;
    char *candidate;
    char **slices;
    unsigned slices_count;
    struct gate_spec *gates;
    unsigned gates_count;
};

struct study_comparison_entry {
    char *name;
    struct study_comparison_spec value;
};

struct experiment_spec {
    char *name;
    struct setting_entry *steps; // of a study (experiments/study.h), as the next two
    unsigned steps_count;
    char *rounds;
    struct study_comparison_entry *compare;
    unsigned compare_count;
    struct host_entry *hosts;
    unsigned hosts_count;
    struct server_entry *servers;
    unsigned servers_count;
    struct neighbour_entry *neighbours;
    unsigned neighbours_count;
    struct tuning_entry *tuning;
    unsigned tuning_count;
    struct workload_text workload;
    struct load_spec load;
    struct capture_spec capture;
    struct diagnose_spec diagnose;
    struct repetitions_spec repetitions;
    struct gate_spec *gates;
    unsigned gates_count;
};

// Binds the document to a new struct. Unknown keys (with the nearest known one), keys of later
// versions, and values of the wrong shape are ERROR_INPUT with file, line and column. The caller
// frees with experiment_spec_free.
int experiment_spec_load(const struct yaml_source *source, struct experiment_spec **out,
                         struct error *err);
void experiment_spec_free(struct experiment_spec *spec);

// Names of the enums, as they are written.
const char *capture_backend_name(enum capture_backend backend);

#endif
