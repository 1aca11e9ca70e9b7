// SPDX-License-Identifier: MIT
//
// What the first bytes of a request ask for: its command, where that is one of a list of words
// (command_words.tbl.h), as Redis' protocol (arrays and inline), memcached's text protocol, HTTP
// and PostgreSQL's queries begin. Nothing else of the bytes can be told from what is returned.
// Header-only: the shim uses it, which links nothing.
#ifndef BASE_COMMAND_WORDS_H
#define BASE_COMMAND_WORDS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { COMMAND_WORD_BYTES = 16 };

struct command_word {
    char word[COMMAND_WORD_BYTES];
    uint8_t number;
};

static const struct command_word command_words[] = {
#define COMMAND_WORD(number_, word_) {word_, number_},
#include "base/command_words.tbl.h"
};
enum { COMMAND_WORDS = sizeof command_words / sizeof *command_words };

// The word of a number; NULL: there is none.
static inline const char *command_word_name(unsigned number)
{
    for (size_t i = 0; i < COMMAND_WORDS; i++)
        if (command_words[i].number == number)
            return command_words[i].word;
    return NULL;
}

// Where the number in front of a CR LF ends that begins at `at`: behind these. 0: there is none.
static inline size_t command_after_count(const char *bytes, size_t length, size_t at)
{
    size_t digits = at;
    while (digits < length && bytes[digits] >= '0' && bytes[digits] <= '9')
        digits++;
    return digits > at && digits + 1 < length && bytes[digits] == '\r' && bytes[digits + 1] == '\n'
               ? digits + 2
               : 0;
}

// Where the command begins: in Redis' arrays its first string, in PostgreSQL's queries behind their
// type and length (and the statement's name), else the first byte.
static inline size_t command_begin(const char *bytes, size_t length)
{
    if (bytes[0] == '*') {
        size_t string = command_after_count(bytes, length, 1);
        return string && string < length && bytes[string] == '$'
                   ? command_after_count(bytes, length, string + 1)
                   : length;
    }
    if (length > 5 && (bytes[0] == 'Q' || bytes[0] == 'P') && bytes[1] == 0) {
        const char *end = bytes[0] == 'P' ? memchr(bytes + 5, 0, length - 5) : NULL;
        return bytes[0] == 'Q' ? 5 : end ? (size_t)(end - bytes) + 1 : length;
    }
    return 0;
}

// The number of the command with which a request begins; 0: of none in the list. Only whole words
// count: what follows one is a space, the end of a line or of a text.
static inline uint8_t command_word_of(const char *bytes, size_t length)
{
    char word[COMMAND_WORD_BYTES] = {0};
    size_t letters = 0, at = length ? command_begin(bytes, length) : 0;
    for (; at < length && letters < COMMAND_WORD_BYTES - 1; at++, letters++) {
        char letter = bytes[at];
        if (letter >= 'A' && letter <= 'Z')
            letter = (char)(letter + ('a' - 'A'));
        if (letter != '_' && (letter < 'a' || letter > 'z'))
            break;
        word[letters] = letter;
    }
    if (!letters || at >= length || !memchr(" \r\n;", bytes[at], sizeof " \r\n;"))
        return 0;
    for (size_t low = 0, high = COMMAND_WORDS; low < high;) {
        size_t middle = (low + high) / 2;
        int order = memcmp(word, command_words[middle].word, sizeof word);
        if (order == 0)
            return command_words[middle].number;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return 0;
}

#endif
