// SPDX-License-Identifier: MIT
//
// memcached's text and meta protocols, in which a line may announce a value, and its binary one, in
// which each message has a head of 24 bytes. Which it is, each message's first byte says.
#include "workloads/framing/framing.h"
#include "workloads/framing/framing_words.h"

enum { BINARY_REQUEST = 0x80, BINARY_REPLY = 0x81, BINARY_HEAD = 24, END_BYTES = 2 };

static bool is_binary(unsigned char first)
{
    return first == BINARY_REQUEST || first == BINARY_REPLY;
}

static bool begins(bool is_reply, const char *bytes, size_t count)
{
    unsigned char first = count ? (unsigned char)bytes[0] : 0;
    if (is_binary(first))
        return is_reply == (first == BINARY_REPLY);
    return is_reply ? (first >= 'A' && first <= 'Z') || (first >= '0' && first <= '9')
                    : first >= 'a' && first <= 'z';
}

static size_t head_bytes(const struct framing_stream *stream, unsigned char first)
{
    (void)stream;
    return is_binary(first) ? BINARY_HEAD : 0;
}

// The operations that are answered only when there is something to say.
static bool is_quiet(unsigned char operation)
{
    enum { GET_QUIET = 0x09, GET_KEY_QUIET = 0x0d, SET_QUIET = 0x11, PREPEND_QUIET = 0x1a };
    enum { GAT_QUIET = 0x1e, GAT_KEY_QUIET = 0x24 };
    return operation == GET_QUIET || operation == GET_KEY_QUIET || operation == GAT_QUIET ||
           operation == GAT_KEY_QUIET || (operation >= SET_QUIET && operation <= PREPEND_QUIET);
}

static enum framing_step take_binary(struct framing_stream *stream, const char *head)
{
    enum { STAT = 0x10 };
    const unsigned char *bytes = (const unsigned char *)head;
    stream->skip =
        (uint64_t)bytes[8] << 24 | (uint64_t)bytes[9] << 16 | (uint64_t)bytes[10] << 8 | bytes[11];
    // Statistics are many replies, the last of which is empty.
    if (is_quiet(bytes[1]) || (bytes[0] == BINARY_REPLY && bytes[1] == STAT && stream->skip))
        return FRAMING_GOES_ON;
    return FRAMING_ENDS;
}

static bool is_any(struct framing_word word, const char *const *words)
{
    for (; *words; words++)
        if (framing_word_is(word, *words))
            return true;
    return false;
}

// Whether the last word is noreply.
static bool has_noreply(const char *at, const char *end)
{
    struct framing_word word, last = {0};
    while ((word = framing_next_word(&at, end)).count)
        last = word;
    return framing_word_is(last, "noreply");
}

// Whether a meta command's flags have that one.
static bool has_flag(const char *at, const char *end, char flag)
{
    struct framing_word word;
    while ((word = framing_next_word(&at, end)).count)
        if (word.at[0] == flag)
            return true;
    return false;
}

static enum framing_step take_request(struct framing_stream *stream, const char *at,
                                      const char *end)
{
    static const char *const stores[] = {"set", "add", "replace", "append", "prepend", "cas", NULL};
    static const char *const metas[] = {"mg", "ms", "md", "ma", NULL};
    struct framing_word command = framing_next_word(&at, end), word;
    if (command.count == 0 || framing_word_is(command, "quit") || framing_word_is(command, "watch"))
        return command.count ? FRAMING_GIVES_UP : FRAMING_NO_ANSWER;
    if (is_any(command, stores)) {
        for (int i = 0; i < 3; i++)
            framing_next_word(&at, end); // key, flags, expiry
        word = framing_next_word(&at, end);
        if (!framing_number(word.at, word.count, 10, &stream->skip))
            return FRAMING_GIVES_UP;
        stream->skip += END_BYTES;
    } else if (is_any(command, metas)) {
        framing_next_word(&at, end); // key
        if (framing_word_is(command, "ms")) {
            word = framing_next_word(&at, end);
            bool old = word.count && word.at[0] == 'S'; // before 1.6.10
            if (!framing_number(word.at + old, word.count - old, 10, &stream->skip))
                return FRAMING_GIVES_UP;
            stream->skip += END_BYTES;
        }
        // A quiet one is answered now and then, and nothing in a text says which one was.
        return has_flag(at, end, 'q') ? FRAMING_GIVES_UP : FRAMING_ENDS;
    }
    return has_noreply(at, end) ? FRAMING_NO_ANSWER : FRAMING_ENDS;
}

static enum framing_step take_reply(struct framing_stream *stream, const char *at, const char *end)
{
    static const char *const parts[] = {"STAT", "ITEM", NULL};
    struct framing_word first = framing_next_word(&at, end), word;
    bool is_value = framing_word_is(first, "VALUE"), is_meta = framing_word_is(first, "VA");
    if (is_value) {
        framing_next_word(&at, end); // key
        framing_next_word(&at, end); // flags
    }
    if (is_value || is_meta) {
        word = framing_next_word(&at, end);
        if (!framing_number(word.at, word.count, 10, &stream->skip))
            return FRAMING_GIVES_UP;
        stream->skip += END_BYTES;
    }
    return is_value || is_any(first, parts) ? FRAMING_GOES_ON : FRAMING_ENDS;
}

static enum framing_step take_head(struct framing *framing, struct framing_stream *stream,
                                   const char *head, size_t count)
{
    if (count && is_binary((unsigned char)head[0]))
        return take_binary(stream, head);
    if (count && head[count - 1] == '\n')
        count--;
    if (count && head[count - 1] == '\r')
        count--;
    return stream == &framing->requests ? take_request(stream, head, head + count)
                                        : take_reply(stream, head, head + count);
}

const struct framing_grammar framing_memcached = {"memcached", begins, head_bytes, take_head};
