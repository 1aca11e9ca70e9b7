// SPDX-License-Identifier: MIT
//
// The tables of fields that an experiment's table is made of, and what their checks share. Only for
// the files of this folder.
#ifndef EXPERIMENTS_DEFINITION_TABLES_H
#define EXPERIMENTS_DEFINITION_TABLES_H

#include "base/fields.h"
#include "experiments/plan/experiment.h"

// The messages for values outside of their range.
#define NICE_OUTSIDE "is not a priority, -20 (first) to 19 (last)"
#define RATE_OUTSIDE "is not between 0 and 100M requests per second"

// The context of the tables' checks.
struct reading {
    struct experiment *experiment;
    cpu_set_t machine; // cores this process may use
};

extern const struct fields host_fields;           // struct experiment_host
extern const struct fields server_fields;         // struct experiment_server
extern const struct fields neighbour_fields;      // struct experiment_neighbour
extern const struct fields neighbour_load_fields; // struct experiment_neighbour_load
extern const struct fields load_fields;           // struct experiment_load
extern const struct fields agent_fields;          // struct experiment_agent
extern const struct fields capture_fields;        // struct experiment
extern const struct fields capsule_fields;        // struct experiment_capsule
extern const struct fields tuning_step_fields;    // bound by read_tuning

// Where and how errors point at a load. Its mapping; the key that says something of it, or, where
// it says nothing of that, the load's name; where its workload stands, which may be the
// experiment's (NULL: nowhere). number: as of experiment_load_at.
const struct node *load_node(const struct node *root, size_t number);
const struct node *load_key(const struct node *root, size_t number, const char *key);
const struct node *load_workload_node(const struct node *root, size_t number);
// Where it says which protocol it speaks; where it does not, its workload, or the server it asks.
const struct node *load_protocol_node(const struct node *root, size_t number);
enum { LOAD_PATH_BYTES = EXPERIMENT_PART_NAME_BYTES + sizeof "loads." };
// "load", or "loads.NAME" of one among `loads`.
const char *load_path(const struct experiment *experiment, const struct experiment_load *load,
                      char out[LOAD_PATH_BYTES]);

// Checks of the root that need all the rest read. All return 0 or a negative error kind.
int check_hosts_meet(const struct binding *binding, const struct node *root);
int read_load_ends(const struct binding *binding, const struct node *root);
int check_loads(const struct binding *binding, const struct node *root); // that they go together
// That the loads which gates name are among the experiment's. gates: their list in the document.
int check_gate_loads(const struct document *document, const struct node *list,
                     const struct gate_array *gates, const struct experiment *experiment,
                     struct error *err);
int read_trace_cores(const struct binding *binding, const struct node *capture);
int read_capsule(const struct binding *binding, const struct node *capsule);
int read_tuning(const struct binding *binding, const struct node *tuning);

// A stretch of the load such as "0s-5s", which ends within most_ns.
int read_stretch(const struct binding *binding, const struct node *node, const char *key,
                 uint64_t most_ns, struct experiment_window *window);

// The key `cores` of a mapping, a list of "0" or "0-2", each of the host's machine. Where it is
// absent they stay as the caller set them.
int read_cores(const struct binding *binding, const struct node *mapping,
               const struct experiment_host *host, cpu_set_t *cores);

// A host by name; where the key is absent the one called `fallback`, which must be there.
int read_host(const struct binding *binding, const struct node *mapping, const char *key,
              const char *fallback, size_t *index);

// The index of a name in `count` structs of `size` bytes that begin with theirs. Where there is
// none the error at the node begins with `what`: "to: no server".
int find_named(const struct binding *binding, const struct node *node, const char *what,
               const char *name, const void *items, size_t size, size_t count, size_t *index);

// Which kind the key `kind` of a mapping names; 0, the default, where it is absent. The table has
// checked that there is such a kind. word: the kinds' names by index, NULL behind the last.
unsigned read_kind(const struct node *mapping, const char *(*word)(unsigned index));

// Whether a NULL-terminated list of keys has this one.
bool has_key(const char *const *keys, const char *key);

// Finds a key of the mapping that other kinds take and this one does not. Returns its node, NULL
// where there is none; *other: the index of the first kind that takes it. keys: the kinds' lists of
// keys by index, NULL behind the last.
const struct node *find_key_of_another(const struct node *mapping,
                                       const char *const *(*keys)(unsigned index), unsigned kind,
                                       unsigned *other);

#endif
