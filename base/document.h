// SPDX-License-Identifier: MIT
//
// A YAML document as a tree whose every node knows file, line and column, so that every error, of
// form or of meaning, points where the mistake was written, also in a document that was made of
// several files. base/fields.h binds such a tree to structs.
//
// "No such node" is NULL. Everything looked up below NULL is NULL again, so look-ups chain.
#ifndef BASE_DOCUMENT_H
#define BASE_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct document;
struct node;

enum node_kind { NODE_NONE, NODE_TEXT, NODE_LIST, NODE_MAPPING };

// Parses one document. `name` is what errors call it. Not YAML, more than one document, doubled
// keys, keys that are not plain words, NUL bytes, and trees deeper than 30 or larger than 20,000
// nodes (aliases counted as often as they are used) are ERROR_INPUT. The caller frees.
int document_parse(const char *name, const char *text, size_t bytes, struct document **out,
                   struct error *err);

// The same of an argument: errors have its name, without a place in a file.
int document_parse_argument(const char *name, const char *text, size_t bytes, struct document **out,
                            struct error *err);

// The same for a file of at most 1 MiB. Of a folder, the error names the YAML files in it.
int document_open(const char *path, struct document **out, struct error *err);
void document_free(struct document *document);

const struct node *document_root(const struct document *document);

// How many nodes the document has.
size_t document_size(const struct document *document);

enum node_kind node_kind(const struct node *node);

// A single value's text, NULL for other nodes. All nodes and texts are valid while their document.
const char *node_text(const struct node *node);

// How many entries a mapping or a list has, and the value or the key of one (from 0).
size_t node_count(const struct node *node);
const struct node *node_entry(const struct node *node, size_t index);
const struct node *node_entry_key(const struct node *node, size_t index);

// The value of that key in a mapping, and the key itself.
const struct node *node_child(const struct node *node, const char *key);
const struct node *node_key(const struct node *node, const char *key);

// Line and column, from 1; 0 of what is in no file.
void node_place(const struct node *node, unsigned *line, unsigned *column);

// Fills *err with ERROR_INPUT "FILE:LINE:COLUMN: <text>" and returns -ERROR_INPUT. NULL is the
// beginning of the document's file. Without a place (document_parse_argument): "NAME: <text>".
int document_error(const struct document *document, const struct node *node, struct error *err,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));

// A new document: `base` with `over` laid on it, every node keeping its place. Where both have a
// mapping its keys are joined, deeply; everywhere else, lists too, `over` replaces. Keys of the
// outermost mapping that `dropped` names (NULL-terminated) are left out. It does not refer to the
// others. Too deep or too many nodes is ERROR_INPUT. The caller frees *out.
int document_merge(const struct node *base, const struct node *over, const char *const *dropped,
                   struct document **out, struct error *err);

// A new document {a: {b: {c: VALUE}}} of the key `a.b.c`, which stands where `key` stands.
int document_nest(const struct node *key, const struct node *value, struct document **out,
                  struct error *err);

// Writes the document as YAML, which reads as the same. The caller frees *text.
int document_write(const struct document *document, char **text, size_t *bytes, struct error *err);

#endif
