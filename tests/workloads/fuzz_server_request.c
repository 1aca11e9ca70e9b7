// SPDX-License-Identifier: MIT
//
// Requests of any bytes to labserver: each lies within them, and is the same when it comes in
// pieces: not there until its last byte is, and then whole. The input: which protocol, then bytes.
#include <stdlib.h>
#include <string.h>

#include "workloads/server_request.h"

static void check(bool right)
{
    if (!right)
        abort();
}

static bool is_within(const struct text_span *span, const char *bytes, size_t count)
{
    return !span->bytes || (span->bytes >= bytes && span->count <= count &&
                            (size_t)(span->bytes - bytes) <= count - span->count);
}

static void check_request(const struct server_request *request, const char *bytes, size_t taken)
{
    struct text_span keys = request->keys, key;
    check(is_within(&request->keys, bytes, taken) && is_within(&request->key, bytes, taken) &&
          is_within(&request->value, bytes, taken));
    if (request->kind == SERVER_SET || request->kind == SERVER_BAD_DATA)
        check(request->key.count && request->key.count <= WORKLOAD_KEY_BYTES_MAX &&
              request->value.bytes && request->value.count <= WORKLOAD_VALUE_BYTES_MAX);
    if (request->kind == SERVER_CALL)
        check(request->call.payload_bytes <= LAB_PAYLOAD_BYTES_MAX);
    while (request->kind == SERVER_GET && server_request_next_key(&keys, &key))
        check(key.count && is_within(&key, bytes, taken) && !memchr(key.bytes, ' ', key.count));
}

// Of exactly so many bytes, so that a look at any other is seen.
static size_t read_copy(bool lab, const char *bytes, size_t count, enum server_request_kind *kind)
{
    struct server_request request;
    char *copy = malloc(count);
    memcpy(copy, bytes, count);
    size_t taken = server_request_read(lab, copy, count, &request);
    check(taken <= count);
    if (taken)
        check_request(&request, copy, taken);
    *kind = request.kind;
    free(copy);
    return taken;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const bool lab = data[0] % 2;
    const char *bytes = (const char *)data + 1;
    size_t count = size - 1, taken;
    do {
        enum server_request_kind kind, early;
        taken = read_copy(lab, bytes, count, &kind);
        if (kind < SERVER_BAD_SET) {
            // Not whole without its last byte, and as it is without what comes behind.
            check(taken < 2 || read_copy(lab, bytes, taken - 1, &early) == 0);
            check(!taken || (read_copy(lab, bytes, taken, &early) == taken && early == kind));
        } else {
            taken = 0; // nothing behind it means anything
        }
        bytes += taken;
        count -= taken;
    } while (taken && count);
    return 0;
}
