// SPDX-License-Identifier: MIT
//
// What a connection says before its first request: who it is, and which database it wants. A
// password comes from a file or from the environment, never from a command line, which everyone on
// the machine can read.
#ifndef WORKLOADS_PROTOCOLS_LOGIN_H
#define WORKLOADS_PROTOCOLS_LOGIN_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct protocol;

enum { LOGIN_USER_BYTES = 256, LOGIN_PASSWORD_BYTES = 1024, LOGIN_WORDS_BYTES = 2048 };

#define LOGIN_PASSWORD_VARIABLE "TAILLIGHT_PASSWORD"

struct login {
    char user[LOGIN_USER_BYTES];         // empty: none is named
    char password[LOGIN_PASSWORD_BYTES]; // empty: none
    uint32_t database;                   // Redis's SELECT; 0: the one that connections begin in
};

// The same in a protocol's own words.
struct login_words {
    size_t count;     // bytes; 0: nothing is said
    unsigned answers; // how many replies that gets
    char bytes[LOGIN_WORDS_BYTES];
};

// Takes the password from the first line of that file or, where that is NULL, from
// TAILLIGHT_PASSWORD if it is set. ERROR_INPUT: the file cannot be read or has none.
int login_take_password(struct login *login, const char *file, struct error *err);

// ERROR_INPUT: the protocol knows no login, or not such a one.
int login_make_words(const struct login *login, const struct protocol *protocol,
                     struct login_words *words, struct error *err);

#endif
