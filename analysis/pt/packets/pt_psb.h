// SPDX-License-Identifier: MIT
//
// Finds PSBs by their bytes alone, without reading the packets between them: eight times 02 82,
// which the Intel SDM (volume 3, "Packet Stream Boundary") lets nothing else in a stream have.
#ifndef ANALYSIS_PT_PACKETS_PT_PSB_H
#define ANALYSIS_PT_PACKETS_PT_PSB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// As many bytes before a cut may belong to a PSB behind it, with what looks like one before it.
enum { PT_PSB_CUT_BYTES = 40 };

// The first PSB in [from, end), or NULL. The packet before a PSB may end in bytes that look like
// its begin: of more than 16 such bytes the last ones are the PSB. Where they are more than any
// packet's payload adds, *doubtful is set. more: bytes follow behind `end`; a PSB is not found then
// where these may belong to it, as its begin is within PT_PSB_CUT_BYTES of the end.
const uint8_t *pt_psb_find(const uint8_t *from, const uint8_t *end, bool more, bool *doubtful);

#endif
