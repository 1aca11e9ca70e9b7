// SPDX-License-Identifier: MIT
//
// A table of the keys that a mapping of a document may have, and of the struct members they are
// stored in. One row per key: its kind, default, range and a line of help. The same rows yield the
// error messages (with their place and a suggestion), the JSON Schema for editors and the list of
// keys in the manual.
//
//     static const struct field rows[] = {
//         {"rate", FIELD_NUMBER, "20k", .low = "1", .high = "1M", INTO(struct load, rate),
//          .help = "requests per second"},
//         {"to", FIELD_TEXT, .otherwise = "the only one", .help = "the server"},
//     };
//     const struct fields load_fields = FIELDS(rows, struct load, .check = check_load);
//
// A row without a member is only checked for its form; the table's own check reads its value. Use
// that for everything that needs more than one key to be decided.
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
    FIELD_INTEGER,   // int, may be negative
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
    FIELD_ANYTHING,  // any value: it is left to who reads the document
};

enum { FIELD_NAME_BYTES = 32 };

struct word_array ARRAY_OF(const char *);

struct field {
    const char *key;
    enum field_kind kind;
    const char *value; // the default, as it would be written; NULL: nothing is set
    // used when the default is not a fixed value: what an absent key means, in words
    const char *otherwise;
    const char *help;    // one sentence without a full stop
    size_t offset, size; // of the member; 0 for a row without a member
    // smallest and largest value, as they would be written; for lists: number of entries
    const char *low, *high;
    bool low_excluded, high_excluded;
    const char *outside; // error text for values out of range: "is not 0.5 to less than 1"
    const char *needed;  // error text when the key is absent; NULL: the key may be absent
    const char *(*word)(unsigned index); // the words it accepts; the array ends with NULL
    const char *form; // of a text that the table's check judges, for the help: "sw|sw:1/N"
    const struct fields *fields; // the table of a group, or of the entries of a list or map
    // A key of the whole file that has the same table: the help does not list it twice.
    const char *like;
};

#define INTO(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
// For a group: its keys are members of the enclosing struct.
#define IN_PLACE .offset = 0, .size = 1

// What the reading functions need. `context` is for the tables' checks.
struct binding {
    const struct document *document;
    void *context;
    // table of the whole document, to recognise keys that belong in another place
    const struct fields *root;
    struct error *err;
};

struct fields {
    const struct field *rows;
    size_t count;
    size_t size;         // size of the struct
    const char *example; // an example entry for errors: "e.g. `{percentile: p99, max: 1ms}`"
    // Called before the first row is bound, to fill in what the rows override.
    int (*begin)(const struct binding *binding, const struct node *node, void *object);
    // Called when all rows are bound; object is the struct. Returns 0 or an error with its
    // position.
    int (*check)(const struct binding *binding, const struct node *node, void *object);
};

#define FIELDS(table, type, ...)                                                                   \
    {                                                                                              \
        .rows = (table), .count = sizeof(table) / sizeof *(table), .size = sizeof(type),           \
        __VA_ARGS__                                                                                \
    }

// Sets every member that has a default; others stay as they are.
void fields_set_defaults(const struct fields *fields, void *object);

// Reads a mapping into a struct, in two passes: first unknown keys, forms and words, over all of
// it; then values in the order of the rows. Members of absent keys stay as they are; entries of
// lists and maps begin with their defaults, and there are 64 at most. Every mistake is ERROR_INPUT
// with file, line, column and how to correct it. After an error fields_free frees what was bound.
int fields_read(const struct binding *binding, const struct fields *fields, const struct node *node,
                void *object);

// The same for a single row, whose value is `node`. NULL: nothing to read.
int field_read(const struct binding *binding, const struct field *field, const struct node *node,
               void *object);

// The second pass alone, for checks that bind rows without a member.
int fields_bind(const struct binding *binding, const struct fields *fields, const struct node *node,
                void *object);

// Frees the arrays that fields_read allocated.
void fields_free(const struct fields *fields, void *object);

// Checks that a text is a name of less than `bytes` bytes; the error points at the node.
int field_check_name(const struct binding *binding, const struct node *node, const char *name,
                     size_t bytes);

// Sets the error "KEY: <text of inner>", pointing at the key's value in a mapping, or at the
// mapping.
int field_misread(const struct binding *binding, const struct node *mapping, const char *key,
                  const struct error *inner);

int field_out_of_memory(const struct binding *binding);

// --- help, schema and values (base/fields_help.c) ------------------------------------------------

// A JSON Schema of the mapping, with descriptions and defaults. The caller owns it; NULL: no
// memory.
json_t *fields_schema(const struct fields *fields);

// Writes all keys with their help, one per line (long ones wrapped), nested as in a file.
void fields_print_help(const struct fields *fields, FILE *out);

// Adds what a struct's members are set to, by their rows' keys, to an object, and returns it: times
// as "KEY_ns", sizes as "KEY_bytes"; texts that are not set, groups, lists of structs and maps are
// left out.
json_t *fields_values(json_t *object, const struct fields *fields, const void *record);

#endif
