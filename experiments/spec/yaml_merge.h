// SPDX-License-Identifier: MIT
//
// Documents made of others: one laid over another, key by key, every node keeping the file, line
// and column it came from, so that errors point where the mistake was written.
#ifndef EXPERIMENTS_SPEC_YAML_MERGE_H
#define EXPERIMENTS_SPEC_YAML_MERGE_H

#include "experiments/spec/yaml_position.h"

// A node of a document.
struct yaml_part {
    const struct yaml_source *source;
    int node;
};

// A new document: `base` with `over` laid on it. Where both have a mapping its keys are joined,
// deeply; everywhere else, lists too, `over` replaces. Keys of the outermost mapping that `dropped`
// names (NULL-terminated) are left out. It does not refer to the others. Too deep or too many nodes
// is ERROR_INPUT. The caller closes *out.
int yaml_merge(struct yaml_part base, struct yaml_part over, const char *const *dropped,
               struct yaml_source **out, struct error *err);

// A new document {a: {b: {c: VALUE}}} of the key `a.b.c`, which stands where `key` stands.
int yaml_nest(struct yaml_part key, struct yaml_part value, struct yaml_source **out,
              struct error *err);

#endif
