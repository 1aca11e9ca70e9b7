// SPDX-License-Identifier: MIT
//
// Reads back what a page carries, as a browser does (page_packed.h).
#ifndef TESTS_ANALYSIS_REPORT_PAGE_READ_H
#define TESTS_ANALYSIS_REPORT_PAGE_READ_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static inline char *page_read(const char *path)
{
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    long bytes = ftell(file);
    rewind(file);
    char *text = calloc((size_t)bytes + 1, 1);
    assert_int_equal(fread(text, 1, (size_t)bytes, file), (size_t)bytes);
    fclose(file);
    return text;
}

// The JSON in a page's text. The caller frees.
static inline char *page_read_data(const char *page)
{
    static const char mark[] = "id=\"data\">";
    const char *open = strstr(page, mark);
    assert_non_null(open);
    open += strlen(mark);
    size_t letters = strcspn(open, "<");
    uint8_t *packed = calloc(letters, 1);
    int count = EVP_DecodeBlock(packed, (const uint8_t *)open, (int)letters);
    assert_true(count > 0);
    z_stream stream = {.next_in = packed, .avail_in = (uInt)count};
    assert_int_equal(inflateInit(&stream), Z_OK);
    size_t room = 0;
    char *text = NULL;
    int state = Z_OK;
    while (state == Z_OK) {
        room += 1 << 20;
        text = realloc(text, room + 1);
        assert_non_null(text);
        stream.next_out = (uint8_t *)text + stream.total_out;
        stream.avail_out = (uInt)(room - stream.total_out);
        state = inflate(&stream, Z_NO_FLUSH);
    }
    assert_int_equal(state, Z_STREAM_END);
    text[stream.total_out] = '\0';
    inflateEnd(&stream);
    free(packed);
    return text;
}

#endif
