// SPDX-License-Identifier: MIT
//
// The requests of a run to a keeper, and the answers: fixed-size structs over a SOCK_SEQPACKET
// socket, or over a stream to a keeper on another machine, where this very program serves them.
// Code outside of this folder uses experiments/keeper/keeper.h.
#ifndef EXPERIMENTS_KEEPER_KEEPER_REQUEST_H
#define EXPERIMENTS_KEEPER_KEEPER_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

enum { KEEPER_TEXT_BYTES = 512 };

// How the name of a directory of results begins that was set aside (keeper_change.h).
#define KEEPER_LEFT "taillight-left-"

// How a setting is changed: as a file, or in a way of its own.
enum keeper_knob {
    KEEPER_FILE,       // a file, as keeper_set
    KEEPER_COALESCING, // of the card `name`: "adaptive_rx=0 rx_usecs=0"
    KEEPER_RSS,        // of the card `name`: over how many queues, "2"
    KEEPER_LATENCY,    // of the file `name` (/dev/cpu_dma_latency): us, held open until the end
    KEEPER_CPUSET,     // of the control group's folder `name`, made for it: "0-1 exclusive"
};

enum keeper_verb {
    VERB_READY,
    VERB_SET,
    VERB_FIND,
    VERB_MAKE_DIRECTORY,
    VERB_MAKE_RESULTS,        // the same; if the run dies, its logs in it are set aside
    VERB_MAKE_SHIM_DIRECTORY, // with memory of so many bytes (`text`) in it
    VERB_ADOPT_DIRECTORY,     // one that is there already, to be removed at the end
    VERB_OWN,                 // all processes with the mark `text` end with it
    VERB_PROBE,
    VERB_FACTS, // of a machine behind ssh, in JSON; its card `path`, or ""
    VERB_CLOCK, // its CLOCK_MONOTONIC in ns, as text
    VERB_END,
};

struct keeper_request {
    enum keeper_verb verb;
    enum keeper_knob knob; // of VERB_SET
    unsigned index;        // of VERB_FIND
    uint16_t port;
    char path[KEEPER_TEXT_BYTES]; // or the address
    char text[KEEPER_TEXT_BYTES];
};

struct keeper_answer {
    int number; // errno, 0: done
    char text[KEEPER_TEXT_BYTES];
};

// Turns a child into the keeper at the other end of `channel`; never returns.
__attribute__((noreturn)) void keeper_become(int channel, bool isolated);

#endif
