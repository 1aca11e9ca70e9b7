// SPDX-License-Identifier: MIT
//
// Asks libipt what becomes of code in circumstances that nothing else here knows the rules of: a
// trace of a few bytes is made for the purpose ("the processor is at this address, and then tracing
// was switched off") and given to libipt's block decoder.
#ifndef ANALYSIS_PT_WALK_PT_ASK_H
#define ANALYSIS_PT_WALK_PT_ASK_H

#include <intel-pt.h>
#include <stddef.h>
#include <stdint.h>

struct pt_ask {
    struct pt_block_decoder *decoder; // decodes `question`
    uint8_t question[64];
};

struct pt_answer {
    int status; // of decoding the first block
    struct pt_block block;
};

// It is zeroed in the beginning, and must not move between the first question and this.
void pt_ask_fini(struct pt_ask *ask);

enum { PT_ASK_PACKETS = 32 };

// "The processor is at `ip`, in 64-bit mode", and then at most PT_ASK_PACKETS bytes of packets, and
// nothing more. -1: libipt has no clear answer, or no memory.
int pt_ask(struct pt_ask *ask, struct pt_image *image, uint64_t ip, const uint8_t *packets,
           size_t bytes, struct pt_answer *out);

// Where the decoder is after the last answer.
uint64_t pt_ask_ip(struct pt_ask *ask);

#endif
