// SPDX-License-Identifier: MIT
#include "base/json_rows.h"

#include <string.h>

#include "base/json_numbers.h"

static json_t *value_to_json(const struct json_row *row, const void *value)
{
    switch (row->form) {
    case JSON_ROW_COUNT:
        return json_integer((json_int_t) * (const uint64_t *)value);
    case JSON_ROW_SMALL:
        return json_integer((json_int_t) * (const uint32_t *)value);
    case JSON_ROW_FLAG:
        return json_boolean(*(const bool *)value);
    case JSON_ROW_NUMBER:
        return json_number_or_null(*(const double *)value);
    case JSON_ROW_TEXT:
        return json_string(value);
    case JSON_ROW_ERROR:
        return json_string(((const struct error *)value)->text);
    }
    return NULL;
}

json_t *json_rows_set_some(json_t *object, const struct json_row *rows, size_t count,
                           const void *record)
{
    for (size_t i = 0; i < count; i++)
        json_object_set_new(object, rows[i].key,
                            record ? value_to_json(&rows[i], (const char *)record + rows[i].offset)
                                   : json_null());
    return object;
}

static bool value_from_json(const struct json_row *row, const json_t *json, void *value)
{
    json_int_t integer = json_integer_value(json);
    switch (row->form) {
    case JSON_ROW_COUNT:
        *(uint64_t *)value = (uint64_t)integer;
        return json_is_integer(json);
    case JSON_ROW_SMALL:
        *(uint32_t *)value = (uint32_t)integer;
        return json_is_integer(json) && integer >= 0 && integer <= UINT32_MAX;
    case JSON_ROW_FLAG:
        *(bool *)value = json_is_true(json);
        return json_is_boolean(json);
    case JSON_ROW_NUMBER:
        *(double *)value = json_number_value(json);
        return json_is_number(json);
    case JSON_ROW_TEXT:
        if (!json_is_string(json) || json_string_length(json) >= row->size)
            return false;
        memcpy(value, json_string_value(json), json_string_length(json) + 1);
        return true;
    case JSON_ROW_ERROR:
        if (json_string_length(json))
            error_set(value, ERROR_FAILED, "%s", json_string_value(json));
        return json_is_string(json);
    }
    return false;
}

const char *json_rows_read_some(const json_t *object, const struct json_row *rows, size_t count,
                                void *record)
{
    for (size_t i = 0; i < count; i++)
        if (!value_from_json(&rows[i], json_object_get(object, rows[i].key),
                             (char *)record + rows[i].offset))
            return rows[i].key;
    return NULL;
}
