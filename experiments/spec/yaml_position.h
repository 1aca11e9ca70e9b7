// SPDX-License-Identifier: MIT
//
// Where everything in a YAML file stands. libcyaml binds a document to structs but says little
// about places: for an unknown key it knows only the mapping around it, and nothing of what a value
// means. This keeps libyaml's own tree of the document, so that every error, of form or of meaning,
// names file, line and column.
//
// Nodes are numbers; 0 is "no such node". Looking below node 0 gives 0 again, so look-ups chain.
#ifndef EXPERIMENTS_SPEC_YAML_POSITION_H
#define EXPERIMENTS_SPEC_YAML_POSITION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct yaml_source;

enum yaml_kind { YAML_KIND_NONE, YAML_KIND_SCALAR, YAML_KIND_SEQUENCE, YAML_KIND_MAPPING };

// Parses one document. `name` is what errors call it. Not YAML, more than one document, doubled
// keys, keys that are not scalars, NUL bytes, and trees deeper than 30 or larger than 20,000 nodes
// (aliases counted as often as they are used) are ERROR_INPUT. The caller closes.
int yaml_source_parse(const char *name, const char *text, size_t bytes, struct yaml_source **out,
                      struct error *err);

// The same for a file of at most 1 MiB.
int yaml_source_open(const char *path, struct yaml_source **out, struct error *err);
void yaml_source_close(struct yaml_source *source);

// The document's outermost node.
int yaml_root(const struct yaml_source *source);
enum yaml_kind yaml_kind(const struct yaml_source *source, int node);

// A scalar's text, NULL for other nodes. Valid until close.
const char *yaml_text(const struct yaml_source *source, int node);

// How many nodes the document has.
size_t yaml_size(const struct yaml_source *source);

// The value of that key in a mapping.
int yaml_child(const struct yaml_source *source, int node, const char *key);

// The key itself, as a node.
int yaml_key(const struct yaml_source *source, int node, const char *key);

// How many entries a mapping or sequence has, and the value or key of one (from 0).
size_t yaml_count(const struct yaml_source *source, int node);
int yaml_entry(const struct yaml_source *source, int node, size_t index);
int yaml_entry_key(const struct yaml_source *source, int node, size_t index);

// Line and column of a node, from 1.
void yaml_place(const struct yaml_source *source, int node, unsigned *line, unsigned *column);

// Fills *err with ERROR_INPUT "FILE:LINE:COLUMN: <text>" and returns -ERROR_INPUT. Node 0 is the
// file's beginning.
int yaml_error(const struct yaml_source *source, int node, struct error *err, const char *format,
               ...) __attribute__((format(printf, 4, 5)));

// Writes the subtree as a document of its own. When `named` says so of a mapping (given its path of
// keys, "hosts" or "tuning/server/0/sysctl"), `{a: x, b: y}` is written as
// `[{name: a, value: x}, {name: b, value: y}]`, which a libcyaml schema can describe. named may be
// NULL. The caller frees *text.
int yaml_write(const struct yaml_source *source, int node, bool (*named)(const char *path),
               char **text, size_t *bytes, struct error *err);

#endif
