// SPDX-License-Identifier: MIT
#include "analysis/report/page/page_packed.h"

#include <openssl/evp.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

struct packed {
    FILE *out;
    z_stream stream;
    uint8_t bytes[3 * 4096]; // compressed, the first of them `held`; three are four letters
    uint8_t letters[4 * 4096 + 1];
};

// Writes the letters of what is compressed so far: of whole threes, unless it is the last.
static void write_letters(struct packed *packed, size_t count)
{
    int letters = EVP_EncodeBlock(packed->letters, packed->bytes, (int)count);
    fwrite(packed->letters, 1, (size_t)letters, packed->out);
}

static void have_room(struct packed *packed)
{
    packed->stream.next_out = packed->bytes;
    packed->stream.avail_out = sizeof packed->bytes;
}

static ssize_t packed_write(void *cookie, const char *data, size_t bytes)
{
    struct packed *packed = cookie;
    packed->stream.next_in = (Bytef *)(uintptr_t)data;
    packed->stream.avail_in = (uInt)bytes;
    while (packed->stream.avail_in) {
        deflate(&packed->stream, Z_NO_FLUSH);
        if (packed->stream.avail_out == 0) {
            write_letters(packed, sizeof packed->bytes);
            have_room(packed);
        }
    }
    return ferror(packed->out) ? 0 : (ssize_t)bytes;
}

static int packed_close(void *cookie)
{
    struct packed *packed = cookie;
    int state;
    do {
        state = deflate(&packed->stream, Z_FINISH);
        write_letters(packed, sizeof packed->bytes - packed->stream.avail_out);
        have_room(packed);
    } while (state == Z_OK);
    int result = ferror(packed->out) || state != Z_STREAM_END ? -1 : 0;
    deflateEnd(&packed->stream);
    free(packed);
    return result;
}

FILE *page_packed_open(FILE *out)
{
    struct packed *packed = calloc(1, sizeof *packed);
    if (!packed || deflateInit(&packed->stream, Z_DEFAULT_COMPRESSION) != Z_OK) {
        free(packed);
        return NULL;
    }
    packed->out = out;
    have_room(packed);
    FILE *stream = fopencookie(
        packed, "w", (cookie_io_functions_t){.write = packed_write, .close = packed_close});
    if (!stream)
        packed_close(packed);
    return stream;
}
