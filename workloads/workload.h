// SPDX-License-Identifier: MIT
//
// A workload says what one request is: the protocol, the mix of operations, the keys (how many, how
// long, which of them are popular) and the values (how long). It comes from YAML:
//
//     protocol: memcached                       # the only one yet, and the default
//     mix: {get: 90, set: 10}                   # weights
//     keys: {count: 100k, size: {fixed: 31}, popularity: {zipf: 0.99}}   # or {uniform: true}
//     values: {size: {uniform: [100, 300]}}     # or {fixed: 200}, {exponential: 200} (its mean)
//
// What is left out takes the value shown by workload_defaults. What a key and its value look like
// follows from the key's index alone, so loading the dataset, asking for it and verifying it agree
// without anything stored.
#ifndef WORKLOADS_WORKLOAD_H
#define WORKLOADS_WORKLOAD_H

#include <stddef.h>
#include <stdint.h>
#include <cyaml/cyaml.h>
#include <jansson.h>

#include "base/error.h"
#include "workloads/distribution.h"

enum workload_operation { WORKLOAD_GET, WORKLOAD_SET, WORKLOAD_OPERATIONS };
extern const char *const workload_operation_names[WORKLOAD_OPERATIONS]; // "get", "set"

enum { WORKLOAD_KEY_BYTES_MAX = 250, WORKLOAD_VALUE_BYTES_MAX = 1 << 20 };

struct protocol;

struct workload {
    const struct protocol *protocol;      // workloads/protocol.h
    double mix[WORKLOAD_OPERATIONS];      // weights as given
    uint64_t key_count;                   // 1 or more
    struct distribution key_size_bytes;   // results are clamped to what the protocol allows
    struct popularity popularity;         // rank 0, the most popular, is key 0
    struct distribution value_size_bytes; // the same
};

// The text form, as libcyaml fills it in. NULL: the key is absent.
struct distribution_text {
    char *fixed;
    char *uniform[2];
    char *exponential;
};
struct workload_mix_text {
    char *get, *set;
};
struct workload_popularity_text {
    char *zipf, *uniform;
};
struct workload_keys_text {
    char *count;
    struct distribution_text size;
    struct workload_popularity_text popularity;
};
struct workload_values_text {
    struct distribution_text size;
};
struct workload_text {
    char *protocol;
    struct workload_mix_text mix;
    struct workload_keys_text keys;
    struct workload_values_text values;
};

// The fields of struct workload_text, to embed in another schema:
//     CYAML_FIELD_MAPPING("workload", CYAML_FLAG_OPTIONAL, struct x, workload,
//     workload_text_fields)
// An optional mapping that is absent leaves its zeroed struct: every default.
extern const cyaml_schema_field_t workload_text_fields[];
extern const cyaml_schema_field_t distribution_text_fields[];

void workload_defaults(struct workload *workload);

// Turns text into values. What is impossible is ERROR_INPUT; the text begins with the dotted path
// of the offending key and ": " ("keys.size.fixed: ..."), so that callers can add its place in
// their file. The workload keeps no pointer into the text.
int workload_resolve(const struct workload_text *text, struct workload *workload,
                     struct error *err);

// Resolves a distribution of non-negative sizes. `path` begins the error's text. Returns 1 when
// the mapping is empty (nothing changed), 0, or -ERROR_INPUT.
int distribution_resolve(const struct distribution_text *text, const char *path,
                         struct distribution *distribution, struct error *err);

// Reads a YAML file that holds the fields above at its top. Every error is ERROR_INPUT with
// "FILE:LINE:COLUMN: ".
int workload_load_file(const char *path, struct workload *workload, struct error *err);

// The workload with every default filled in. The caller frees (free, json_decref); NULL: no memory.
char *workload_to_yaml(const struct workload *workload);
json_t *workload_to_json(const struct workload *workload);

// The key of that index: writes workload_key_bytes() bytes, at most WORKLOAD_KEY_BYTES_MAX, without
// a NUL, and returns how many. Distinct for distinct indices, printable.
size_t workload_key(const struct workload *workload, uint64_t index, char *out);

// How long that key's value is.
size_t workload_value_bytes(const struct workload *workload, uint64_t index);

// Writes that value. Bytes are arbitrary (also CR, LF and NUL) and follow from the index.
void workload_value(const struct workload *workload, uint64_t index, char *out);

// The longest key and value that can occur.
size_t workload_key_bytes_max(const struct workload *workload);
size_t workload_value_bytes_max(const struct workload *workload);

#endif
