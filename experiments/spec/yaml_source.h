// SPDX-License-Identifier: MIT
//
// What a document is made of, for those that read, merge and write documents; everybody else goes
// through experiments/spec/yaml_position.h.
#ifndef EXPERIMENTS_SPEC_YAML_SOURCE_H
#define EXPERIMENTS_SPEC_YAML_SOURCE_H

#include <yaml.h>

#include "base/array.h"
#include "experiments/spec/yaml_position.h"

enum { YAML_MAX_DEPTH = 30, YAML_MAX_NODES = 20000 };

struct yaml_name_array ARRAY_OF(char *);
struct yaml_file_array ARRAY_OF(unsigned char);

struct yaml_source {
    char *name;
    yaml_document_t document;
    // Of a merged document: the files its nodes came from, and which of them each node did. Node i
    // is of file file_of[i]; empty: all are of `name`.
    struct yaml_name_array files;
    struct yaml_file_array file_of;
};

// libyaml's node; NULL: no such node.
yaml_node_t *yaml_source_node(const struct yaml_source *source, int node);

// The file a node came from.
const char *yaml_source_file(const struct yaml_source *source, int node);

// Refuses what is no tree of keys and values within the limits above.
int yaml_source_check(const struct yaml_source *source, struct error *err);

#endif
