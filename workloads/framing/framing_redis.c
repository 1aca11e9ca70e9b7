// SPDX-License-Identifier: MIT
//
// RESP2 and RESP3: a value is a line; behind the line of a string come its bytes, behind that of an
// aggregate its members. So a message has ended when no member is pending.
#include "workloads/framing/framing.h"
#include "workloads/framing/framing_words.h"

enum { VALUE, COMMAND, ARGUMENT }; // what the next line is: a value's, a word of a request's
enum { WORD_BYTES = 32, END_BYTES = 2 };

static bool begins(bool is_reply, const char *bytes, size_t count)
{
    static const char replies[] = "+-:$*_,#!=(%~>|";
    if (count == 0)
        return false;
    if (!is_reply)
        return bytes[0] == '*';
    for (const char *type = replies; *type; type++)
        if (bytes[0] == *type)
            return true;
    return false;
}

static size_t head_bytes(const struct framing_stream *stream, unsigned char first)
{
    (void)stream;
    (void)first;
    return 0;
}

// Behind these a request is not followed by one reply.
static bool ends_turns(struct framing_word word)
{
    static const char *const words[] = {"subscribe", "psubscribe", "ssubscribe", "monitor",
                                        "psync",     "sync",       "replconf"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (framing_word_like(word, words[i]))
            return true;
    return false;
}

static enum framing_step value_ends(struct framing_stream *stream)
{
    stream->phase = VALUE;
    stream->pending--;
    return stream->pending ? FRAMING_GOES_ON : FRAMING_ENDS;
}

static enum framing_step take_word(struct framing_stream *stream, struct framing_word word)
{
    if (stream->phase == COMMAND ? ends_turns(word) : framing_word_like(word, "reply"))
        return FRAMING_GIVES_UP;
    bool has_subcommand = stream->phase == COMMAND && framing_word_like(word, "client");
    enum framing_step step = value_ends(stream);
    stream->phase = has_subcommand && step == FRAMING_GOES_ON ? ARGUMENT : VALUE;
    stream->has_length = false;
    return step;
}

static enum framing_step take_string(struct framing_stream *stream, uint64_t bytes)
{
    if (stream->phase != VALUE && bytes <= WORD_BYTES) {
        stream->has_length = true; // the next line is the word
        return FRAMING_GOES_ON;
    }
    stream->skip = bytes + END_BYTES;
    return value_ends(stream);
}

static enum framing_step take_members(const struct framing *framing, struct framing_stream *stream,
                                      char type, uint64_t count)
{
    const bool is_first = stream->pending == 1;
    stream->pending += type == '%' || type == '|' ? 2 * count : count;
    if (type == '|')
        return FRAMING_GOES_ON; // attributes of the value that comes behind them
    if (is_first && stream == &framing->requests && count)
        stream->phase = COMMAND;
    stream->pending--;
    return stream->pending ? FRAMING_GOES_ON : FRAMING_ENDS;
}

static enum framing_step take_head(struct framing *framing, struct framing_stream *stream,
                                   const char *head, size_t count)
{
    bool is_request = stream == &framing->requests;
    uint64_t number = 0;
    if (count && head[count - 1] == '\n')
        count--;
    if (count && head[count - 1] == '\r')
        count--;
    if (stream->has_length)
        return take_word(stream, (struct framing_word){head, count});
    if (stream->pending == 0) {
        stream->pending = 1;
        if (is_request && (count == 0 || head[0] != '*')) { // an inline command
            stream->pending = 0;
            stream->phase = VALUE;
            return count == 0 ? FRAMING_NO_ANSWER : FRAMING_ENDS;
        }
        if (is_request && (framing_word_is((struct framing_word){head, count}, "*0") ||
                           framing_word_is((struct framing_word){head, count}, "*-1"))) {
            stream->pending = 0;
            return FRAMING_NO_ANSWER;
        }
        if (!is_request && count && head[0] == '>')
            return FRAMING_GIVES_UP; // a push message: invalidations, for one
    }
    if (count == 0)
        return FRAMING_GIVES_UP;
    bool is_null = count == 3 && head[1] == '-' && head[2] == '1';
    bool has_number = framing_number(head + 1, count - 1, 10, &number);
    switch (head[0]) {
    case '$':
    case '!':
    case '=':
        return is_null      ? value_ends(stream)
               : has_number ? take_string(stream, number)
                            : FRAMING_GIVES_UP;
    case '*':
    case '~':
    case '%':
    case '|':
    case '>':
        return is_null      ? value_ends(stream)
               : has_number ? take_members(framing, stream, head[0], number)
                            : FRAMING_GIVES_UP;
    case '+':
    case '-':
    case ':':
    case '_':
    case ',':
    case '#':
    case '(':
        return value_ends(stream);
    default:
        return FRAMING_GIVES_UP;
    }
}

const struct framing_grammar framing_redis = {"redis", begins, head_bytes, take_head};
