// SPDX-License-Identifier: MIT
//
// A workload says what one request is: the protocol, the mix of operations, the keys (how many, how
// long, which of them are popular), the values (how long) and how requests arrive. It comes from
// YAML (docs/workloads.md):
//
//     preset: etc                               # begin with etc, usr or var instead of defaults
//     protocol: memcached                       # of protocols.tbl.h
//     mix: {get: 90, set: 10}                   # weights; the protocol names its operations
//     keys: {count: 100k, size: {fixed: 31}, popularity: {zipf: 0.99}}   # or {uniform: true}
//     keys: {multiget: 10}        # that a multiget asks for
//     values: {size: {uniform: [100, 300]}, expiry: 60s} # workloads/distribution_text.h
//     arrivals: exponential       # or another (arrivals_parse), or replay:FILE
//     pattern: ramp:0.5,1.5       # the rate over time (workloads/rate_pattern.h)
//     service: exponential:10us   # lab only: how long the server is to work
//     read_through: true          # a get that finds nothing is followed by a set
//     fanout: 10                  # requests that are due together, as one logical request
//     http: {path: "/a/{key}", host: web, headers: ["Accept: */*"]}      # http only
//
// Absent keys take the value shown by workload_defaults. A key and its value are functions of the
// key's index alone, so storing the dataset, asking for it and verifying it agree without anything
// stored.
#ifndef WORKLOADS_WORKLOAD_H
#define WORKLOADS_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "base/error.h"
#include "workloads/protocols/custom.h"
#include "workloads/distribution.h"
#include "workloads/distribution_text.h"
#include "workloads/protocols/http_words.h"
#include "workloads/protocols/protocol.h"
#include "workloads/rate_pattern.h"

struct fields;
struct recorded_transactions;

enum { WORKLOAD_OPERATIONS = PROTOCOL_OPERATIONS_MAX }; // that a mix can have

enum { WORKLOAD_FANOUT_MAX = 1000 };

enum { WORKLOAD_SMALL_VALUES = 64 }; // sizes from 0 to this may have a probability of their own

// A key of a load that was recorded elsewhere.
struct recorded_key {
    uint32_t value_bytes; // RECORDED_UNKNOWN: drawn
    uint32_t expiry_s;    // 0: the workload's
    uint8_t key_bytes;    // 0: drawn
    uint16_t operations;  // those that are asked of it, a bit each; 0: nobody knows
};
_Static_assert((int)PROTOCOL_OPERATIONS_MAX <= 16, "a bit each");
static const uint32_t RECORDED_UNKNOWN = UINT32_MAX;

// Owns the tables of its distributions: workload_free.
struct workload {
    const struct protocol *protocol;
    double mix[WORKLOAD_OPERATIONS];      // weights as given, by index of the protocol's operations
    uint64_t key_count;                   // 1 or more
    struct distribution key_size_bytes;   // results are clamped to what the protocol allows
    struct popularity popularity;         // rank 0, the most popular, is key 0
    uint16_t multiget_keys;               // that a multiget asks for, 2 or more
    struct distribution value_size_bytes; // the same, for values that are not small
    double small_values[WORKLOAD_SMALL_VALUES]; // the probability of a value of that many bytes
    unsigned small_value_count;
    struct distribution arrivals; // gaps between requests; only their shape counts
    struct rate_pattern pattern;  // of the rate over a run
    bool service_given;           // false: the server knows how long it works
    struct distribution service_ns;
    uint64_t expiry_ns; // of what is set, whole seconds; 0: it stays
    bool read_through;  // a get that finds nothing is followed by a set of its key
    // Requests of one logical request: all due at its instant, each with an operation and a key of
    // its own; it is answered when all of them are. 1: each request is for itself.
    uint16_t fanout;
    struct http_words http;
    struct custom *custom; // what protocol custom is here; NULL: as it is without a description
    char *recording;       // a file whose times are replayed instead of arrivals; NULL: none
    const struct recorded_key *recorded; // of its keys, all of them; not owned; NULL: all is drawn
    const struct recorded_transactions *transactions; // of it; not owned; NULL: none is recorded
    const struct recorded_transactions *multigets;    // and what each asks for; the same
};

// The keys, into a struct workload: a whole file, or a mapping of another. Before anything is bound
// the workload becomes the preset that is named, or the defaults. The workload keeps no pointer
// into the document. After an error: workload_free.
extern const struct fields workload_fields;

void workload_defaults(struct workload *workload);

// Sets arrivals as people write them: replay:FILE, or what arrivals_parse takes; and formats them
// again. ERROR_INPUT names what is wrong.
int workload_set_arrivals(struct workload *workload, const char *text, struct error *err);
char *workload_format_arrivals(const struct workload *workload, char *out, size_t out_bytes);

// Frees what its distributions own.
void workload_free(struct workload *workload);

// Reads a YAML file that holds the fields above at its top, or the preset of that name (a file
// called etc is ./etc). A file that says neither a protocol nor a preset is of protocol
// `otherwise`; NULL: of memcached. Every error is ERROR_INPUT with "FILE:LINE:COLUMN: ". The caller
// frees the workload with workload_free.
int workload_load_file(const char *path, const struct protocol *otherwise,
                       struct workload *workload, struct error *err);

// The same for text in memory; `name` stands for the path in errors.
int workload_parse(const char *name, const char *text, size_t bytes, struct workload *workload,
                   struct error *err);

// The text of a preset built into the program, or NULL; and what there is: "etc, usr, var".
const char *workload_preset(const char *name, size_t *bytes);
const char *workload_preset_names(void);

// Loads a preset. ERROR_INPUT: there is none of that name.
int workload_load_preset(const char *name, struct workload *workload, struct error *err);

// Changes the protocol: operations keep their weights by name; a mix that was the old protocol's
// default becomes the new one's. ERROR_INPUT when the new one lacks an operation of the mix.
int workload_set_protocol(struct workload *workload, const struct protocol *protocol,
                          struct error *err);

// The workload with every default filled in. The caller frees (free, json_decref); NULL: no memory.
char *workload_to_yaml(const struct workload *workload);
json_t *workload_to_json(const struct workload *workload);

// The files that a workload reads: a recorded schedule and the tables of empirical distributions.
// Another host that is to draw its requests needs copies of them.
enum { WORKLOAD_FILES_MAX = 5 };

// Their paths as the workload has them, always in the same order, and how many there are. The text
// stays the workload's.
size_t workload_files(const struct workload *workload, const char *paths[WORKLOAD_FILES_MAX]);

// As workload_to_yaml, with these paths in place of the workload's, in that order.
char *workload_to_yaml_with(const struct workload *workload, const char *const *paths);

// The key of that index: writes workload_key_bytes() bytes, at most WORKLOAD_KEY_BYTES_MAX, without
// a NUL, and returns how many. Distinct for distinct indices, printable.
size_t workload_key(const struct workload *workload, uint64_t index, char *out);

// How long that key's value is.
size_t workload_value_bytes(const struct workload *workload, uint64_t index);

// Writes that value. Bytes are arbitrary (also CR, LF and NUL) and follow from the index.
void workload_value(const struct workload *workload, uint64_t index, char *out);

// Builds the place'th request of a schedule, which is the number'th of its connection. key has room
// for WORKLOAD_KEY_BYTES_MAX, value for workload_value_bytes_max; the request points into them.
void workload_request(const struct workload *workload, unsigned operation, uint64_t index,
                      uint64_t place, uint64_t number, char *key, char *value,
                      struct request *request);

// What of a request decides which of several servers it is for: its operation and key.
void workload_request_key(const struct workload *workload, unsigned operation, uint64_t index,
                          char *key, struct request *request);

// How many digits the indices of its keys have: the least length of a key.
size_t workload_key_digits(const struct workload *workload);

// The longest key and value that occur (or, with very many keys, that can).
size_t workload_key_bytes_max(const struct workload *workload);
size_t workload_value_bytes_max(const struct workload *workload);

// The longest value that a request carries: 0 when only replies do.
size_t workload_carried_bytes_max(const struct workload *workload);

#endif
