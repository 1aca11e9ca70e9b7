// SPDX-License-Identifier: MIT
#include "workloads/server_request.h"

#include <stdint.h>
#include <string.h>

static bool next_word(struct text_span *line, struct text_span *word)
{
    size_t begin = 0, end;
    while (begin < line->count && line->bytes[begin] == ' ')
        begin++;
    for (end = begin; end < line->count && line->bytes[end] != ' ';)
        end++;
    *word = (struct text_span){line->bytes + begin, end - begin};
    *line = (struct text_span){line->bytes + end, line->count - end};
    return word->count > 0;
}

bool server_request_next_key(struct text_span *keys, struct text_span *key)
{
    return next_word(keys, key);
}

static bool is_word(const struct text_span *word, const char *text)
{
    return word->count == strlen(text) && memcmp(word->bytes, text, word->count) == 0;
}

// Decimal digits, and a number of at most `most`.
static bool read_number(const struct text_span *word, uint64_t most, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < word->count; i++) {
        if (word->bytes[i] < '0' || word->bytes[i] > '9')
            return false;
        *number = *number * 10 + (uint64_t)(word->bytes[i] - '0');
        if (*number > most)
            return false;
    }
    return word->count > 0;
}

// "<key> <flags> <exptime> <bytes> [noreply]", and after the line the value: `used` bytes with its
// end. False: not all of it has arrived.
static bool read_set(struct text_span line, const char *data, size_t count,
                     struct server_request *request, size_t *used)
{
    struct text_span flags_text, expiry, bytes_text, last;
    uint64_t flags, bytes;
    request->kind = SERVER_BAD_SET;
    *used = count;
    if (!next_word(&line, &request->key) || !next_word(&line, &flags_text) ||
        !next_word(&line, &expiry) || !next_word(&line, &bytes_text) ||
        request->key.count > WORKLOAD_KEY_BYTES_MAX ||
        !read_number(&flags_text, UINT32_MAX, &flags) ||
        !read_number(&bytes_text, LAB_PAYLOAD_BYTES_MAX, &bytes))
        return true;
    if (count < bytes + 2)
        return false;
    request->kind = memcmp(data + bytes, "\r\n", 2) == 0 ? SERVER_SET : SERVER_BAD_DATA;
    request->value = (struct text_span){data, (size_t)bytes};
    request->flags = (unsigned)flags;
    request->no_reply = next_word(&line, &last) && is_word(&last, "noreply");
    *used = (size_t)bytes + 2;
    return true;
}

static size_t read_call(const char *bytes, size_t count, struct server_request *request)
{
    if (count < LAB_REQUEST_BYTES)
        return 0;
    bool right = lab_request_read(bytes, &request->call);
    request->kind = right ? SERVER_CALL : SERVER_BAD_CALL;
    return right ? LAB_REQUEST_BYTES : count;
}

size_t server_request_read(bool lab, const char *bytes, size_t count,
                           struct server_request *request)
{
    struct text_span word;
    *request = (struct server_request){.kind = SERVER_UNKNOWN};
    if (lab)
        return read_call(bytes, count, request);
    const size_t looked_at = count < SERVER_LINE_BYTES ? count : SERVER_LINE_BYTES;
    const char *newline = memchr(bytes, '\n', looked_at);
    if (!newline && looked_at == SERVER_LINE_BYTES) {
        request->kind = SERVER_LONG_LINE;
        return count;
    }
    if (!newline)
        return 0;
    const size_t taken = (size_t)(newline - bytes) + 1;
    struct text_span line = {bytes, taken - 1};
    if (line.count && bytes[line.count - 1] == '\r')
        line.count--;
    next_word(&line, &word);
    if (is_word(&word, "set")) {
        size_t more;
        return read_set(line, bytes + taken, count - taken, request, &more) ? taken + more : 0;
    }
    request->keys = line;
    if (is_word(&word, "get") || is_word(&word, "gets"))
        request->kind = SERVER_GET;
    else if (is_word(&word, "version"))
        request->kind = SERVER_VERSION;
    else if (is_word(&word, "quit"))
        request->kind = SERVER_QUIT;
    return taken;
}
