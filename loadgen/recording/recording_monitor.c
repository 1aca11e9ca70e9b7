// SPDX-License-Identifier: MIT
#include "loadgen/recording/recording_monitor.h"

#include <string.h>
#include <strings.h>

// Commands that store a value, which word of them it is, and what they are called here.
static const struct {
    const char *command, *operation;
    unsigned value_at;
} stores[] = {
    {"set", "set", 2},    {"setnx", "set", 2},
    {"setex", "set", 3},  {"psetex", "set", 3},
    {"append", "set", 2}, {"lpush", "lpush", 2},
    {"hset", "hset", 3},  {"xadd", "xadd", MONITOR_VALUE_LAST},
};

bool monitor_line_begins(struct piece line)
{
    size_t at = line.bytes && line.at[0] == '+' ? 1 : 0, begin = at; // as it is on the wire
    while (at < line.bytes && (line.at[at] == '.' || (line.at[at] >= '0' && line.at[at] <= '9')))
        at++;
    return at > begin && line.bytes - at > 2 && line.at[at] == ' ' && line.at[at + 1] == '[';
}

// Takes a word in quotes from the line's front, with the blank before it. False: there is none.
static bool take_word(struct piece *line, struct piece *word, size_t *bytes)
{
    size_t at = 2;
    *bytes = 0;
    if (line->bytes < 3 || line->at[0] != ' ' || line->at[1] != '"')
        return false;
    for (; at < line->bytes && line->at[at] != '"'; ++*bytes) {
        const bool escaped = line->at[at] == '\\';
        at += !escaped ? 1 : at + 1 < line->bytes && line->at[at + 1] == 'x' ? 4 : 2;
    }
    if (at >= line->bytes)
        return false;
    *word = (struct piece){line->at + 2, at - 2};
    *line = (struct piece){line->at + at + 1, line->bytes - at - 1};
    return true;
}

bool monitor_key_take(const struct monitor_line *said, struct piece *rest, struct piece *key,
                      size_t *bytes)
{
    struct sized_word word;
    if (!said->more_sized)
        return take_word(rest, key, bytes);
    if (rest->bytes < sizeof word)
        return false;
    memcpy(&word, rest->at, sizeof word);
    *key = (struct piece){rest->at + sizeof word, word.kept};
    *bytes = word.bytes;
    *rest = (struct piece){key->at + word.kept, rest->bytes - sizeof word - word.kept};
    return true;
}

static bool word_is(struct piece word, const char *text)
{
    return word.bytes == strlen(text) && strncasecmp(word.at, text, word.bytes) == 0;
}

unsigned monitor_value_place(struct piece *operation)
{
    for (size_t i = 0; i < sizeof stores / sizeof *stores; i++)
        if (word_is(*operation, stores[i].command)) {
            *operation = (struct piece){stores[i].operation, strlen(stores[i].operation)};
            return stores[i].value_at;
        }
    return 0;
}

bool monitor_line_read(struct piece line, struct monitor_line *out)
{
    static const char lua[] = "lua", lua_end[] = " lua";
    struct piece word;
    size_t bytes;
    *out = (struct monitor_line){0};
    if (!monitor_line_begins(line))
        return false;
    if (line.at[0] == '+')
        line = (struct piece){line.at + 1, line.bytes - 1};
    const char *blank = memchr(line.at, ' ', line.bytes);
    const char *bracket = memmem(line.at, line.bytes, "] \"", 3); // an address has some, too
    if (!bracket)
        return false;
    out->time = (struct piece){line.at, (size_t)(blank - line.at)};
    const char *client = memchr(blank + 1, ' ', (size_t)(bracket - blank - 1)); // behind "[0"
    if (client)
        out->client = (struct piece){client + 1, (size_t)(bracket - client - 1)};
    const bool script = bracket - blank > (ptrdiff_t)strlen(lua_end) &&
                        memcmp(bracket - strlen(lua_end), lua_end, strlen(lua_end)) == 0;
    line.bytes -= (size_t)(bracket + 1 - line.at);
    line.at = bracket + 1;
    if (!take_word(&line, &out->operation, &bytes))
        return false;
    const unsigned value_at = monitor_value_place(&out->operation);
    for (unsigned i = 1; take_word(&line, &word, &bytes); i++) {
        if (i == 1) {
            out->key = word;
            out->key_bytes = bytes;
            out->more = line;
        } else {
            out->more_words++;
        }
        if (i == value_at || value_at == MONITOR_VALUE_LAST) {
            out->has_value = true;
            out->value_bytes = bytes;
        }
    }
    if (script)
        out->operation = (struct piece){lua, strlen(lua)};
    return line.bytes == 0;
}
