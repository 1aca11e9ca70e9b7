// SPDX-License-Identifier: MIT
//
// Why a load cannot be trusted, by kind: what each means in plain words, and what helps.
#ifndef LOADGEN_METHOD_LOAD_DOUBTS_H
#define LOADGEN_METHOD_LOAD_DOUBTS_H

// Of several, the least is the one to begin with.
enum load_doubt {
#define LOAD_DOUBT(name, key, words, helps) DOUBT_##name,
#include "loadgen/method/load_doubts.tbl.h"
    LOAD_DOUBTS, // also: of no kind that is known
};

// A row of load_doubts.tbl.h, which says what its members are.
struct load_doubt_words {
    const char *key, *words, *helps;
};

// Of LOAD_DOUBTS: all NULL.
struct load_doubt_words load_doubt_words(enum load_doubt doubt);

// LOAD_DOUBTS: there is none of that key, or it is NULL.
enum load_doubt load_doubt_named(const char *key);

#endif
