// SPDX-License-Identifier: MIT
//
// Commands from the bytes that a client sent, split anywhere: Redis' (RESP arrays, inline) and
// memcached's text protocol (protocol.txt of its sources). Of a command its name, key and sizes are
// kept; values are passed over.
#ifndef LOADGEN_RECORDING_RECORDING_COMMAND_H
#define LOADGEN_RECORDING_RECORDING_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "loadgen/recording/recording_monitor.h"

// A longer key is known by how it begins, and by its length.
enum { COMMAND_NAME_KEPT = 32, COMMAND_KEY_KEPT = 256, COMMAND_LINE_KEPT = 320 };

enum command_result { COMMAND_MORE, COMMAND_WHOLE, COMMAND_LOST };

struct command_text ARRAY_OF(char);

// A zeroed one is between two commands. It owns memory: command_reader_free.
struct command_reader {
    uint8_t state;
    unsigned value_at;    // which word is a value
    uint32_t words, word; // of the array: how many, and which one is next
    uint32_t more_words;  // behind the key
    uint64_t left;        // bytes of the word or value that are still to come
    size_t line_bytes;    // of the line, also those that are not kept
    size_t name_bytes, key_kept;
    uint64_t key_bytes, value_bytes;
    bool has_value;
    // Of a command of several keys those behind the first, each behind its struct sized_word; where
    // the one under way begins; and a line that is longer than `line`.
    struct command_text more, long_line;
    size_t more_at;
    char line[COMMAND_LINE_KEPT], name[COMMAND_NAME_KEPT], key[COMMAND_KEY_KEPT];
};

// Whether a command seems to begin there: where to go on after a loss.
bool command_begins(const char *at, size_t bytes);

// Reads on until a command is whole. *used: how many bytes that took. COMMAND_LOST: these are no
// commands.
enum command_result command_read(struct command_reader *reader, const char *at, size_t bytes,
                                 size_t *used);

// Passes over bytes that nobody has. False: they were more than a value's.
bool command_skip(struct command_reader *reader, uint64_t bytes);

// It is between two commands then; and, what it keeps for the next ones is freed.
void command_reader_reset(struct command_reader *reader);
void command_reader_free(struct command_reader *reader);

// The one that is whole, without its time. It points into the reader.
void command_take(const struct command_reader *reader, struct monitor_line *out);

#endif
