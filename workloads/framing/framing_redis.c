// SPDX-License-Identifier: MIT
//
// RESP2 and RESP3: a value is a line; behind the line of a string come its bytes, behind that of an
// aggregate its members. So a message has ended when no member is pending.
#include "workloads/framing/framing.h"
#include "workloads/framing/framing_words.h"

// What the next line is: a value's, a word of a request's, one of those up to STREAMS.
enum { VALUE, COMMAND, ARGUMENT, OPTION };
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

static bool is_one_of(struct framing_word word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (framing_word_like(word, words[i]))
            return true;
    return false;
}

// Behind these a request is not followed by one reply.
static bool ends_turns(struct framing_word word)
{
    static const char *const words[] = {"subscribe", "psubscribe", "ssubscribe", "monitor",
                                        "psync",     "sync",       "replconf"};
    return is_one_of(word, words, sizeof words / sizeof *words);
}

// These wait for another client's command (redis.io, "blocking commands"), or for replicas.
static bool asks_to_wait(struct framing_word word)
{
    static const char *const words[] = {"blpop",  "brpop",    "brpoplpush", "blmove", "blmpop",
                                        "bzmpop", "bzpopmin", "bzpopmax",   "wait",   "waitaof"};
    return is_one_of(word, words, sizeof words / sizeof *words);
}

// So do these, if one of their options is BLOCK.
static bool may_ask_to_wait(struct framing_word word)
{
    static const char *const words[] = {"xread", "xreadgroup"};
    return is_one_of(word, words, sizeof words / sizeof *words);
}

static enum framing_step value_ends(struct framing_stream *stream)
{
    stream->phase = VALUE;
    stream->pending--;
    return stream->pending ? FRAMING_GOES_ON : FRAMING_ENDS;
}

static enum framing_step take_word(struct framing_stream *stream, struct framing_word word)
{
    const bool is_command = stream->phase == COMMAND, is_option = stream->phase == OPTION;
    if (is_command ? ends_turns(word)
                   : stream->phase == ARGUMENT && framing_word_like(word, "reply"))
        return FRAMING_GIVES_UP;
    bool has_subcommand = is_command && framing_word_like(word, "client");
    bool has_options =
        is_command ? may_ask_to_wait(word) : is_option && !framing_word_like(word, "streams");
    stream->asks_to_wait |=
        is_command ? asks_to_wait(word) : is_option && framing_word_like(word, "block");
    enum framing_step step = value_ends(stream);
    stream->phase = step != FRAMING_GOES_ON ? VALUE
                    : has_subcommand        ? ARGUMENT
                    : has_options           ? OPTION
                                            : VALUE;
    stream->has_length = false;
    return step;
}

static enum framing_step take_string(struct framing_stream *stream, uint64_t bytes)
{
    if (stream->phase != VALUE && bytes <= WORD_BYTES) {
        stream->has_length = true; // the next line is the word
        return FRAMING_GOES_ON;
    }
    const uint8_t phase = stream->phase;
    stream->skip = bytes + END_BYTES;
    const enum framing_step step = value_ends(stream);
    if (phase == OPTION && step == FRAMING_GOES_ON)
        stream->phase = OPTION; // a long name of a group
    return step;
}

// The words of an inline command stand in one line.
static bool line_asks_to_wait(const char *line, size_t count)
{
    bool is_first = true, has_options = false;
    for (size_t at = 0, end; at < count; at = end + 1, is_first = false) {
        for (end = at; end < count && line[end] != ' ';)
            end++;
        const struct framing_word word = {line + at, end - at};
        if (is_first ? asks_to_wait(word) : has_options && framing_word_like(word, "block"))
            return true;
        has_options =
            is_first ? may_ask_to_wait(word) : has_options && !framing_word_like(word, "streams");
    }
    return false;
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
            stream->asks_to_wait = line_asks_to_wait(head, count);
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
