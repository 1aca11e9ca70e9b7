// SPDX-License-Identifier: MIT
//
// What a run asks of a keeper, and what it is answered: fixed-size structs over a SOCK_SEQPACKET
// socket, or over a stream to a keeper on another machine, where this very program serves them.
// Only the keeper's own files include this; others use experiments/keeper/keeper.h.
#ifndef EXPERIMENTS_KEEPER_KEEPER_REQUEST_H
#define EXPERIMENTS_KEEPER_KEEPER_REQUEST_H

#include "experiments/keeper/keeper.h"

enum verb {
    VERB_READY,
    VERB_SET,
    VERB_FIND,
    VERB_MAKE_DIRECTORY,
    VERB_ADOPT_DIRECTORY, // one that is there already, to be removed at the end
    VERB_PROBE,
    VERB_FACTS, // of a machine behind ssh, in JSON; its card `path`, or ""
    VERB_CLOCK, // its CLOCK_MONOTONIC in ns, as text
    VERB_END,
};

struct request {
    enum verb verb;
    enum keeper_knob knob; // of VERB_SET
    unsigned index;        // of VERB_FIND
    uint16_t port;
    char path[KEEPER_TEXT_BYTES]; // or the address
    char text[KEEPER_TEXT_BYTES];
};

struct answer {
    int number; // errno, 0: done
    char text[KEEPER_TEXT_BYTES];
};

// Asks and waits for the answer. What is wrong with the keeper itself is the error.
int keeper_ask(struct keeper *keeper, const struct request *request, struct answer *answer,
               struct error *err);

// Turns a child into the keeper at the other end of `channel`; never returns.
__attribute__((noreturn)) void keeper_become(int channel, bool isolated);

#endif
