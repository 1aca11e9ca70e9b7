// SPDX-License-Identifier: MIT
#include "analysis/report/page/page_json.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

#include "base/json_numbers.h"
#include "base/text.h"

void page_put(struct page_builder *builder, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) < 0)
        builder->failed = true;
}

void page_append(struct page_builder *builder, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) < 0)
        builder->failed = true;
}

json_t *page_ns(double ns)
{
    return isfinite(ns) && fabs(ns) < 0x1p53 ? json_integer(llround(ns)) : json_null();
}

json_t *page_count(uint64_t count)
{
    return count <= INT64_MAX ? json_integer((json_int_t)count) : json_null();
}

json_t *page_since_begin(const struct page_builder *builder, int64_t host_ns)
{
    return page_ns((double)(host_ns - builder->run->lifetimes.begin_ns));
}

json_t *page_text(const char *text)
{
    char clean[4096]; // a verdict is the longest
    return json_string(text_clean(text, false, clean, sizeof clean));
}

static json_t *field_build(const struct result_field *field, const void *record)
{
    switch (field->form) {
    case RESULT_TEXT:
        return page_text(result_text(field, record));
    case RESULT_FLAG:
        return json_boolean(result_whole(field, record));
    case RESULT_NS:
        return page_ns(result_number(field, record));
    case RESULT_SHARE:
        return json_number_or_null(result_number(field, record));
    default:
        return json_integer(result_whole(field, record));
    }
}

json_t *page_fields_build(struct page_builder *builder, const struct result_field *field,
                          const void *record)
{
    json_t *object = json_object();
    for (; !result_field_ends(field); field++)
        if (field->page)
            page_put(builder, object, field->page, field_build(field, record));
    return object;
}

char *page_micro_signs(const char *text, char *out, size_t bytes)
{
    size_t at = 0;
    for (const char *from = text; *from && at + 4 < bytes; from++) {
        bool unit = from > text + 1 && from[-1] == ' ' && from[-2] >= '0' && from[-2] <= '9' &&
                    from[0] == 'u' && from[1] == 's' && !isalnum((unsigned char)from[2]);
        at += (size_t)snprintf(out + at, bytes - at, unit ? "\u00b5" : "%c", *from);
    }
    return out;
}
