// SPDX-License-Identifier: MIT
//
// The texts of a protocol that a workload describes (workloads/protocols/custom.h): what requests
// say, and bytes that are in replies.
#ifndef WORKLOADS_PROTOCOLS_CUSTOM_TEXT_H
#define WORKLOADS_PROTOCOLS_CUSTOM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    CUSTOM_TEXT_BYTES_MAX = 16384, // of a request, without keys and values
    CUSTOM_PIECES_MAX = 32,        // of a request
    CUSTOM_MARK_BYTES_MAX = 32,
};

enum custom_piece_kind {
    CUSTOM_BYTES,
    CUSTOM_KEY,
    CUSTOM_VALUE,
    CUSTOM_KEY_SIZE,
    CUSTOM_VALUE_SIZE,
    CUSTOM_REST_SIZE, // how many bytes are behind this piece
    CUSTOM_NUMBER,    // of the request on its connection, from 0
    CUSTOM_EXPIRY,    // for how many seconds the server is to keep the value; 0: for ever
};

struct custom_piece {
    enum custom_piece_kind kind;
    const char *bytes; // of CUSTOM_BYTES
    size_t count;      // of those
    unsigned width;    // bytes of a number; 0: in decimal
    bool little;       // the number's least byte comes first
    int adds;          // of CUSTOM_REST_SIZE: to it
    bool letters;      // of CUSTOM_VALUE: as letters, not as any bytes
};

// What is between braces takes the request's own; the rest is sent as it stands.
struct custom_text {
    char *source; // as it was given
    char *bytes;  // what the pieces point into
    struct custom_piece pieces[CUSTOM_PIECES_MAX];
    unsigned count;
};

// ERROR_INPUT: a word between braces that is none, a byte that cannot be meant, or too much.
// custom_text_free frees it in any case.
int custom_text_read(const char *source, struct custom_text *text, struct error *err);
void custom_text_free(struct custom_text *text);

// Bytes that a reply ends with, or that its status begins with.
struct custom_mark {
    char bytes[CUSTOM_MARK_BYTES_MAX];
    unsigned count;                         // 0: none
    uint8_t restart[CUSTOM_MARK_BYTES_MAX]; // how many still match when the next byte does not
};

int custom_mark_read(const char *source, struct custom_mark *mark, struct error *err);

#endif
