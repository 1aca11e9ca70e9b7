// SPDX-License-Identifier: MIT
#include "loadgen/method/load_doubts.h"

#include <stddef.h>
#include <string.h>

static const struct load_doubt_words doubts[LOAD_DOUBTS + 1] = {
#define LOAD_DOUBT(name, key, words, helps) {key, words, helps},
#include "loadgen/method/load_doubts.tbl.h"
};

struct load_doubt_words load_doubt_words(enum load_doubt doubt)
{
    return doubts[doubt];
}

enum load_doubt load_doubt_named(const char *key)
{
    enum load_doubt doubt = 0;
    while (doubt < LOAD_DOUBTS && (!key || strcmp(doubts[doubt].key, key) != 0))
        doubt++;
    return doubt;
}
