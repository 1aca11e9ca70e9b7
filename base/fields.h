// SPDX-License-Identifier: MIT
//
// A table of the keys that a mapping of a document may have, and of the members of a struct that
// they land in. One row a key: what it takes, its default, its range, a line of help. From the same
// rows come what is said of a mistake, with its place and a suggestion, the JSON Schema for editors
// and the list of keys in the manual.
//
//     static const struct field rows[] = {
//         {"rate", FIELD_NUMBER, "20k", .low = "1", .high = "1M", INTO(struct load, rate),
//          .help = "requests per second"},
//         {"to", FIELD_TEXT, .otherwise = "the only one", .help = "the server"},
//     };
//     const struct fields load_fields = FIELDS(rows, struct load, .check = check_load);
//
// A row without a member is only checked for its form: the table's own check reads it. There goes,
// too, whatever takes more than one key to say.
#ifndef BASE_FIELDS_H
#define BASE_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/array.h"
#include "base/document.h"
#include "base/error.h"

enum field_kind {
    FIELD_TEXT,      // const char *: the document's own text
    FIELD_NAME,      // char[]: letters, digits, `-`, `_`, `.`, as they may stand in file names
    FIELD_WORD,      // an enum, by the names that `word` has
    FIELD_SWITCH,    // bool: true, yes, on and their opposites
    FIELD_INTEGER,   // int, of either sign
    FIELD_COUNT,     // uint64_t or uint16_t: "20k"
    FIELD_NUMBER,    // double: "1.5k"
    FIELD_DURATION,  // uint64_t, ns: "10us"
    FIELD_BYTES,     // uint64_t: "256MiB"
    FIELD_TEXTS,     // struct word_array, with a NULL behind the last: a list of single values
    FIELD_GROUP,     // a struct with a table of its own
    FIELD_LIST,      // ARRAY_OF such structs
    FIELD_MAP,       // the same by name: a mapping whose keys the user chooses. Each struct begins
                     // with `char name[FIELD_NAME_BYTES]`. Without a table: names with texts
    FIELD_MAP_LISTS, // names, each with a list of such structs; never bound
    FIELD_ANYTHING,  // for whoever reads the document
};

enum { FIELD_NAME_BYTES = 32 };

struct word_array ARRAY_OF(const char *);

struct field {
    const char *key;
    enum field_kind kind;
    const char *value;      // the default, as it would be written; NULL: nothing is set
    const char *otherwise;  // where that is no fixed value: what an absent key means, in words
    const char *help;       // one sentence without a full stop
    size_t offset, size;    // of the member; size 0: there is none
    const char *low, *high; // least and most, as they would be written; of lists: entries
    bool low_excluded, high_excluded;
    const char *outside; // what is said of values beyond: "is not 0.5 to less than 1"
    const char *needed;  // what is said when it is absent; NULL: it may be
    const char *(*word)(unsigned index); // the words it takes; NULL behind the last
    const struct fields *fields;         // of groups, and of the entries of lists and maps
};

#define INTO(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
// Of a group: its keys are members of the same struct.
#define IN_PLACE .offset = 0, .size = 1

// What reading takes along. `context` is for the tables' checks.
struct binding {
    const struct document *document;
    void *context;
    const struct fields *root; // of the whole document, for keys that belong in another place
    struct error *err;
};

struct fields {
    const struct field *rows;
    size_t count;
    size_t size;         // of the struct
    const char *example; // of one, for errors: "e.g. `{percentile: p99, max: 1ms}`"
    // Called before the first row is bound: whatever the rows are laid over.
    int (*begin)(const struct binding *binding, const struct node *node, void *object);
    // Called when all rows are bound; object is the struct. Returns 0 or an error with its place.
    int (*check)(const struct binding *binding, const struct node *node, void *object);
};

#define FIELDS(table, type, ...)                                                                   \
    {                                                                                              \
        .rows = (table), .count = sizeof(table) / sizeof *(table), .size = sizeof(type),           \
        __VA_ARGS__                                                                                \
    }

// Sets every member that has a default; others stay as they are.
void fields_set_defaults(const struct fields *fields, void *object);

// Reads a mapping into a struct, in two passes: unknown keys, forms and words first, over all of
// it; then values in the order of the rows. What is absent stays as it is; entries of lists and
// maps begin with their defaults, and there are 64 at most. Everything wrong is ERROR_INPUT with
// file, line, column and the mend. After an error fields_free frees what was bound.
int fields_read(const struct binding *binding, const struct fields *fields, const struct node *node,
                void *object);

// The same for one row alone, whose value `node` is. NULL: nothing to read.
int field_read(const struct binding *binding, const struct field *field, const struct node *node,
               void *object);

// The second pass alone, for checks that bind what has no member.
int fields_bind(const struct binding *binding, const struct fields *fields, const struct node *node,
                void *object);

// Frees the arrays that reading made.
void fields_free(const struct fields *fields, void *object);

// Whether a text is a name of less than `bytes` bytes; the error stands at the node.
int field_check_name(const struct binding *binding, const struct node *node, const char *name,
                     size_t bytes);

// "KEY: <text of inner>", at the key's value inside of a mapping, or at the mapping.
int field_misread(const struct binding *binding, const struct node *mapping, const char *key,
                  const struct error *inner);

int field_out_of_memory(const struct binding *binding);

// --- what there is (base/fields_help.c) ----------------------------------------------------------

// A JSON Schema of the mapping, with descriptions and defaults. The caller owns it; NULL: no
// memory.
json_t *fields_schema(const struct fields *fields);

// Writes all keys with their help, one a line or wrapped, below each other as in a file.
void fields_print_help(const struct fields *fields, FILE *out);

#endif
