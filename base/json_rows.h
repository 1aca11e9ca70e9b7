// SPDX-License-Identifier: MIT
//
// Members of a struct as members of a JSON object, a row for each: the same rows write and read.
//
//     static const struct json_row rows[] = {
//         JSON_ROW("rate", struct load, rate),
//         JSON_ROW("answered", struct load, counts.answered),
//     };
#ifndef BASE_JSON_ROWS_H
#define BASE_JSON_ROWS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum json_form {
    JSON_ROW_COUNT,  // uint64_t or size_t
    JSON_ROW_SMALL,  // uint32_t, or an enum as its number
    JSON_ROW_FLAG,   // bool
    JSON_ROW_NUMBER, // double; null: infinite or unknown
    JSON_ROW_TEXT,   // char[]
    JSON_ROW_ERROR,  // the text of a struct error; empty: none
};

struct json_row {
    const char *key;
    enum json_form form;
    size_t offset, size; // of the member
};

#define JSON_ROW_MEMBER(type, member) (((type *)0)->member)
#define JSON_ROW(name, type, member)                                                                 \
    {                                                                                                \
        .key = (name), .offset = offsetof(type, member),                                           \
        .size = sizeof JSON_ROW_MEMBER(type, member),                                              \
        .form = _Generic(JSON_ROW_MEMBER(type, member),                                            \
            uint64_t: JSON_ROW_COUNT,                                                              \
            uint32_t: JSON_ROW_SMALL,                                                              \
            bool: JSON_ROW_FLAG,                                                                   \
            double: JSON_ROW_NUMBER,                                                               \
            char *: JSON_ROW_TEXT,                                                                 \
            struct error: JSON_ROW_ERROR) \
    }

#define json_rows_set(object, rows, record)                                                        \
    json_rows_set_some(object, rows, sizeof(rows) / sizeof *(rows), record)
#define json_rows_read(object, rows, record)                                                       \
    json_rows_read_some(object, rows, sizeof(rows) / sizeof *(rows), record)

// Adds a table's rows to an object, in their order, and returns it. record NULL: as nulls.
json_t *json_rows_set_some(json_t *object, const struct json_row *rows, size_t count,
                           const void *record);

// Reads all of them from an object that came from elsewhere. NULL: well; else the key whose value
// is absent, of another kind or out of range.
const char *json_rows_read_some(const json_t *object, const struct json_row *rows, size_t count,
                                void *record);

#endif
