// SPDX-License-Identifier: MIT
//
// Single values of an experiment file: text to number, duration, cores, a word of some, a
// reference. What is wrong is an error at the value's own line and column.
#ifndef EXPERIMENTS_SPEC_EXPERIMENT_VALUES_H
#define EXPERIMENTS_SPEC_EXPERIMENT_VALUES_H

#include "experiments/spec/experiment.h"
#include "experiments/spec/yaml_position.h"

struct resolver {
    struct experiment *experiment;
    const struct yaml_source *source;
    const struct experiment_spec *spec;
    cpu_set_t machine; // cores this process may use
    struct error *err;
};

// All return 0 or a negative error kind. `parent` is the mapping that holds `key`; where `text` is
// NULL (the key is absent), the value stays as the caller set it.

int resolve_count(const struct resolver *r, int parent, const char *key, const char *text,
                  uint64_t low, uint64_t high, uint64_t *value);
int resolve_duration(const struct resolver *r, int parent, const char *key, const char *text,
                     uint64_t *value_ns);
int resolve_bytes(const struct resolver *r, int parent, const char *key, const char *text,
                  uint64_t low, uint64_t *value);

// The key `nice` of `parent`: -20 to 19.
int resolve_nice(const struct resolver *r, int parent, const char *text, int *nice);

// Requests per second, more than 0.
int resolve_rate(const struct resolver *r, int parent, const char *text, double *rate);

// One of some words.
int resolve_word(const struct resolver *r, int parent, const char *key, const char *text,
                 const char *const *words, size_t count, const char **word);

// The key `cores` of `parent`: a list of "0" or "0-2", each of the host's machine.
int resolve_cores(const struct resolver *r, int parent, const struct experiment_host *host,
                  char *const *texts, size_t count, cpu_set_t *cores);

// Appends the words and a NULL.
int resolve_words(const struct resolver *r, char *const *texts, size_t count,
                  struct word_array *words);

// A reference to a host by name; without text, the host called `fallback`, which must be there.
int resolve_host_name(const struct resolver *r, int parent, const char *key, const char *text,
                      const char *fallback, size_t *index);

// Names end up in file names and log lines: letters, digits, `-`, `_`, `.`; `longest` at most.
int check_name(const struct resolver *r, int node, const char *name, size_t longest);

// Puts the place of `key` inside `parent` in front of an error about its value.
int misread(const struct resolver *r, int parent, const char *key, const struct error *inner);
int out_of_memory(const struct resolver *r);

#endif
