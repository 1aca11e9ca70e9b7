// SPDX-License-Identifier: MIT
#include "workloads/framing/framing_words.h"

#include <string.h>
#include <strings.h>

struct framing_word framing_next_word(const char **at, const char *end)
{
    while (*at < end && **at == ' ')
        ++*at;
    struct framing_word word = {*at, 0};
    while (*at < end && **at != ' ')
        ++*at;
    word.count = (size_t)(*at - word.at);
    return word;
}

bool framing_word_is(struct framing_word word, const char *text)
{
    return word.count == strlen(text) && memcmp(word.at, text, word.count) == 0;
}

bool framing_word_like(struct framing_word word, const char *text)
{
    return word.count == strlen(text) && strncasecmp(word.at, text, word.count) == 0;
}

bool framing_number(const char *at, size_t count, unsigned base, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned char c = (unsigned char)at[i];
        unsigned digit = c >= '0' && c <= '9'   ? c - (unsigned)'0'
                         : c >= 'a' && c <= 'f' ? c - (unsigned)'a' + 10
                         : c >= 'A' && c <= 'F' ? c - (unsigned)'A' + 10
                                                : base;
        if (digit >= base || *number >> 44)
            return false;
        *number = *number * base + digit;
    }
    return count > 0;
}
