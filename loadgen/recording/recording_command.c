// SPDX-License-Identifier: MIT
#include "loadgen/recording/recording_command.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { BEGIN, TEXT_LINE, TEXT_VALUE, ARRAY_LINE, WORD_LINE, WORD };

static const uint64_t value_most = 1ull << 30; // a longer one is no value
static const size_t line_most = 64 << 10, tokens_most = 8;
static const uint64_t words_most = 1 << 20; // as Redis has it

// memcached's commands, and which word of the line says how long the value is that follows; 0: none
static const struct {
    const char *name;
    unsigned value_at;
} text_commands[] = {
    {"get", 0},     {"gets", 0},  {"set", 4},     {"add", 4},       {"replace", 4},   {"append", 4},
    {"prepend", 4}, {"cas", 4},   {"delete", 0},  {"incr", 0},      {"decr", 0},      {"touch", 0},
    {"gat", 0},     {"gats", 0},  {"mg", 0},      {"ms", 2},        {"md", 0},        {"ma", 0},
    {"mn", 0},      {"stats", 0}, {"version", 0}, {"flush_all", 0}, {"verbosity", 0}, {"quit", 0},
};
enum { TEXT_COMMANDS = sizeof text_commands / sizeof *text_commands };

static const char *line_end(const char *at, size_t bytes)
{
    return memchr(at, '\n', bytes);
}

bool command_begins(const char *at, size_t bytes)
{
    if (bytes >= 2 && at[0] == '*' && isdigit((unsigned char)at[1]))
        return true;
    for (size_t i = 0; i < TEXT_COMMANDS; i++) {
        const size_t length = strlen(text_commands[i].name);
        if (bytes > length && memcmp(at, text_commands[i].name, length) == 0 &&
            (at[length] == ' ' || at[length] == '\r'))
            return true;
    }
    return false;
}

static bool read_size(const char *at, size_t bytes, uint64_t most, uint64_t *size)
{
    *size = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (!isdigit((unsigned char)at[i]) || *size > most)
            return false;
        *size = *size * 10 + (uint64_t)(at[i] - '0');
    }
    return bytes > 0 && *size <= most;
}

static void keep_name(struct command_reader *reader, const char *at, size_t bytes)
{
    const size_t room = sizeof reader->name - reader->name_bytes;
    const size_t kept = bytes < room ? bytes : room;
    memcpy(reader->name + reader->name_bytes, at, kept);
    reader->name_bytes += kept;
}

static void keep_key(struct command_reader *reader, const char *at, size_t bytes)
{
    const size_t room = sizeof reader->key - reader->key_kept;
    const size_t kept = bytes < room ? bytes : room;
    memcpy(reader->key + reader->key_kept, at, kept);
    reader->key_kept += kept;
    reader->key_bytes += bytes;
}

void command_reader_reset(struct command_reader *reader)
{
    struct command_text more = reader->more, long_line = reader->long_line;
    more.count = long_line.count = 0;
    *reader = (struct command_reader){.more = more, .long_line = long_line};
}

void command_reader_free(struct command_reader *reader)
{
    array_free(&reader->more);
    array_free(&reader->long_line);
}

static bool keep_text(struct command_text *text, const char *at, size_t bytes)
{
    if (array_reserve(text, text->count + bytes) < 0)
        return false;
    memcpy(text->items + text->count, at, bytes);
    text->count += bytes;
    return true;
}

// A key behind the first begins, which is so long.
static bool begin_more(struct command_reader *reader, uint64_t bytes)
{
    const struct sized_word word = {.bytes = (uint32_t)bytes};
    reader->more_at = reader->more.count;
    return keep_text(&reader->more, (const char *)&word, sizeof word);
}

static bool keep_more(struct command_reader *reader, const char *at, size_t bytes)
{
    struct sized_word word;
    memcpy(&word, reader->more.items + reader->more_at, sizeof word);
    const size_t room = COMMAND_KEY_KEPT - word.kept, kept = bytes < room ? bytes : room;
    if (!keep_text(&reader->more, at, kept))
        return false;
    word.kept += (uint32_t)kept;
    memcpy(reader->more.items + reader->more_at, &word, sizeof word);
    return true;
}

// --- memcached's lines, and inline commands ------------------------------------------------------

// Whether all behind that word are keys.
static bool gets(const struct piece *name)
{
    return (name->bytes == 3 && memcmp(name->at, "get", 3) == 0) ||
           (name->bytes == 4 && memcmp(name->at, "gets", 4) == 0);
}

static enum command_result end_text_line(struct command_reader *reader, const char *line,
                                         size_t bytes)
{
    struct piece words[8];
    size_t count = 0;
    for (size_t at = 0; at < bytes;) {
        const char *blank = memchr(line + at, ' ', bytes - at);
        const size_t length = (blank ? (size_t)(blank - line) : bytes) - at;
        if (length && count < tokens_most)
            words[count++] = (struct piece){line + at, length};
        else if (length && !gets(&words[0]))
            break; // what is behind is not looked at
        if (length && count > 2 && gets(&words[0])) {
            reader->more_words++;
            if (!begin_more(reader, length) || !keep_more(reader, line + at, length))
                return COMMAND_LOST;
        }
        at += length + 1;
    }
    if (count == 0)
        return COMMAND_LOST;
    for (size_t i = 0; i < words[0].bytes; i++)
        if (!isalnum((unsigned char)words[0].at[i]) && words[0].at[i] != '_')
            return COMMAND_LOST;
    keep_name(reader, words[0].at, words[0].bytes);
    if (count > 1)
        keep_key(reader, words[1].at, words[1].bytes);
    reader->state = BEGIN;
    for (size_t i = 0; i < TEXT_COMMANDS; i++) {
        const unsigned value_at = text_commands[i].value_at;
        if (value_at == 0 || value_at >= count || strlen(text_commands[i].name) != words[0].bytes ||
            memcmp(text_commands[i].name, words[0].at, words[0].bytes) != 0)
            continue;
        if (!read_size(words[value_at].at, words[value_at].bytes, value_most, &reader->left))
            return COMMAND_LOST;
        reader->has_value = true;
        reader->value_bytes = reader->left;
        reader->left += 2; // its end of line
        reader->state = TEXT_VALUE;
        return COMMAND_MORE;
    }
    return COMMAND_WHOLE;
}

// --- Redis' arrays of words ----------------------------------------------------------------------

static enum command_result end_array_line(struct command_reader *reader, const char *line,
                                          size_t bytes)
{
    uint64_t words;
    if (line[0] != '*' || !read_size(line + 1, bytes - 1, words_most, &words) || words == 0)
        return COMMAND_LOST;
    reader->words = (uint32_t)words;
    reader->state = WORD_LINE;
    return COMMAND_MORE;
}

static bool is_further_key(const struct command_reader *reader)
{
    return reader->word > 1 && reader->name_bytes == 4 && strncasecmp(reader->name, "mget", 4) == 0;
}

static enum command_result end_word_line(struct command_reader *reader, const char *line,
                                         size_t bytes)
{
    if (bytes == 0 || line[0] != '$' || !read_size(line + 1, bytes - 1, value_most, &reader->left))
        return COMMAND_LOST;
    if (reader->word > 0 &&
        (reader->word == reader->value_at || reader->value_at == MONITOR_VALUE_LAST)) {
        reader->has_value = true;
        reader->value_bytes = reader->left;
    }
    if (is_further_key(reader) && !begin_more(reader, reader->left))
        return COMMAND_LOST;
    reader->left += 2;
    reader->state = WORD;
    return COMMAND_MORE;
}

static enum command_result end_word(struct command_reader *reader)
{
    struct piece name = {reader->name, reader->name_bytes};
    if (reader->word++ == 0)
        reader->value_at = monitor_value_place(&name);
    reader->state = reader->word < reader->words ? WORD_LINE : BEGIN;
    return reader->state == BEGIN ? COMMAND_WHOLE : COMMAND_MORE;
}

// ---------------------------------------------------------------------------------------------

static enum command_result end_line(struct command_reader *reader)
{
    const size_t kept =
        reader->line_bytes < sizeof reader->line ? reader->line_bytes : sizeof reader->line;
    size_t bytes = kept;
    if (bytes == reader->line_bytes && bytes && reader->line[bytes - 1] == '\r')
        bytes--;
    const struct command_text *whole = &reader->long_line;
    reader->line_bytes = 0;
    if (reader->state == TEXT_LINE && whole->count)
        return end_text_line(reader, whole->items,
                             whole->count - (whole->items[whole->count - 1] == '\r'));
    switch (reader->state) {
    case ARRAY_LINE:
        return end_array_line(reader, reader->line, bytes);
    case WORD_LINE:
        return end_word_line(reader, reader->line, bytes);
    default:
        return end_text_line(reader, reader->line, bytes);
    }
}

static enum command_result read_line(struct command_reader *reader, const char *at, size_t bytes,
                                     size_t *used)
{
    const char *end = line_end(at, bytes);
    const size_t length = end ? (size_t)(end - at) : bytes;
    const bool is_long = reader->state == TEXT_LINE &&
                         reader->line_bytes + length > sizeof reader->line &&
                         reader->line_bytes + length <= line_most;
    if (is_long && ((reader->long_line.count == 0 &&
                     !keep_text(&reader->long_line, reader->line, reader->line_bytes)) ||
                    !keep_text(&reader->long_line, at, length)))
        return COMMAND_LOST;
    if (reader->line_bytes < sizeof reader->line) {
        const size_t room = sizeof reader->line - reader->line_bytes;
        memcpy(reader->line + reader->line_bytes, at, length < room ? length : room);
    }
    reader->line_bytes += length;
    *used += length + (end ? 1 : 0);
    if (reader->line_bytes > line_most)
        return COMMAND_LOST;
    return end ? end_line(reader) : COMMAND_MORE;
}

static enum command_result read_word(struct command_reader *reader, const char *at, size_t bytes,
                                     size_t *used)
{
    const size_t take = bytes < reader->left ? bytes : (size_t)reader->left;
    const size_t text = reader->left < 2          ? 0
                        : take < reader->left - 2 ? take
                                                  : (size_t)reader->left - 2;
    if (reader->state == WORD && reader->word == 0)
        keep_name(reader, at, text);
    else if (reader->state == WORD && reader->word == 1)
        keep_key(reader, at, text);
    else if (reader->state == WORD && is_further_key(reader) && !keep_more(reader, at, text))
        return COMMAND_LOST;
    reader->left -= take;
    *used += take;
    if (reader->left)
        return COMMAND_MORE;
    if (reader->state == WORD)
        return end_word(reader);
    reader->state = BEGIN;
    return COMMAND_WHOLE;
}

enum command_result command_read(struct command_reader *reader, const char *at, size_t bytes,
                                 size_t *used)
{
    enum command_result result = COMMAND_MORE;
    for (*used = 0; *used < bytes && result == COMMAND_MORE;) {
        if (reader->state == BEGIN) {
            const char first = at[*used];
            if (first != '*' && !isalpha((unsigned char)first))
                return COMMAND_LOST;
            command_reader_reset(reader);
            reader->state = first == '*' ? ARRAY_LINE : TEXT_LINE;
        }
        if (reader->state == WORD || reader->state == TEXT_VALUE)
            result = read_word(reader, at + *used, bytes - *used, used);
        else
            result = read_line(reader, at + *used, bytes - *used, used);
    }
    return result;
}

bool command_skip(struct command_reader *reader, uint64_t bytes)
{
    // The value's last byte must come: it is what makes the command whole.
    if (reader->state != TEXT_VALUE && (reader->state != WORD || reader->word < 2))
        return false;
    if (bytes >= reader->left || (reader->state == WORD && is_further_key(reader)))
        return false;
    reader->left -= bytes;
    return true;
}

void command_take(const struct command_reader *reader, struct monitor_line *out)
{
    *out = (struct monitor_line){
        .operation = {reader->name, reader->name_bytes},
        .key = {reader->key, reader->key_kept},
        .key_bytes = (size_t)reader->key_bytes,
        .has_value = reader->has_value,
        .value_bytes = (size_t)reader->value_bytes,
    };
    out->more = (struct piece){reader->more.items, reader->more.count};
    out->more_sized = true;
    out->more_words = reader->words > 2 ? reader->words - 2 : reader->more_words;
    if (reader->words)
        monitor_value_place(&out->operation);
}
