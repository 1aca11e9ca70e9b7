// SPDX-License-Identifier: MIT
//
// A line of what Redis' MONITOR prints (src/replication.c and sdscatrepr of its sources):
//
//     1339518083.107412 [0 127.0.0.1:60866] "set" "key" "a value\x00"
//
// The words are C strings: what cannot be printed is \xHH, or a backslash and a letter.
#ifndef LOADGEN_RECORDING_RECORDING_MONITOR_H
#define LOADGEN_RECORDING_RECORDING_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A part of a recording's text.
struct piece {
    const char *at;
    size_t bytes;
};

struct monitor_line {
    struct piece time;      // in seconds
    struct piece client;    // its address; of a script "lua"
    struct piece operation; // by the name that it has here; "lua" of what a script called
    struct piece key;       // as it is written there; empty: the command has none
    size_t key_bytes;
    // How many words stand behind the key; and, for monitor_key_take, those of a command of several
    // keys, as MGET.
    unsigned more_words;
    struct piece more;
    bool more_sized; // each behind its struct sized_word, as packets have it; else in quotes
    bool has_value;  // the command stores one
    size_t value_bytes;
};

enum { MONITOR_VALUE_LAST = 1 << 20 }; // an xadd has options in front of it

// Which word of that command of Redis is a value; 0: none. Gives the command the name that it has
// here.
unsigned monitor_value_place(struct piece *operation);

// Whether a recording that begins with that line is such a one.
bool monitor_line_begins(struct piece line);

struct sized_word {
    uint32_t bytes; // that it has
    uint32_t kept;  // of which so many follow
};

// Takes the next key of a command of several from the front of `rest`, which began as its `more`;
// *bytes: how long it is. False: there is none.
bool monitor_key_take(const struct monitor_line *said, struct piece *rest, struct piece *key,
                      size_t *bytes);

// Takes any bytes. False: it is none.
bool monitor_line_read(struct piece line, struct monitor_line *out);

#endif
