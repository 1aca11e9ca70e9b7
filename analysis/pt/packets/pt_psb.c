// SPDX-License-Identifier: MIT
#include "analysis/pt/packets/pt_psb.h"

#include <string.h>

#include "analysis/pt/packets/pt_shape.h"

enum {
    LANES_BYTES = 16,
    FIRST = 0x02,
    OTHER = FIRST ^ 0x82,       // between neighbours
    MOST_RUN = PT_PSB_BYTES + 9 // a payload of eight bytes, and the next packet's first
};

typedef uint32_t lanes __attribute__((vector_size(16)));

static const uint8_t even_bytes[4] = {0x02, 0x82, 0x02, 0x82}, odd_bytes[4] = {0x82, 0x02, 0x82, 2};

// Of each four bytes, whether they are of a PSB.
static inline lanes which(const uint8_t *at, uint32_t even, uint32_t odd)
{
    lanes bytes, evens = {even, even, even, even}, odds = {odd, odd, odd, odd};
    memcpy(&bytes, at, sizeof bytes);
    return (lanes)(bytes == evens) | (lanes)(bytes == odds);
}

static inline bool any_of(lanes these)
{
    uint64_t halves[2];
    memcpy(halves, &these, sizeof halves);
    return (halves[0] | halves[1]) != 0;
}

// Four bytes that are of a PSB, as some are of any that lies in [from, end) wholly; or NULL.
static const uint8_t *find_any(const uint8_t *from, const uint8_t *end)
{
    uint32_t even, odd, next;
    memcpy(&even, even_bytes, sizeof even);
    memcpy(&odd, odd_bytes, sizeof odd);
    while (end - from >= 4 * LANES_BYTES &&
           !any_of(which(from, even, odd) | which(from + LANES_BYTES, even, odd) |
                   which(from + 2 * LANES_BYTES, even, odd) |
                   which(from + 3 * LANES_BYTES, even, odd)))
        from += 4 * LANES_BYTES;
    while (end - from >= LANES_BYTES && !any_of(which(from, even, odd)))
        from += LANES_BYTES;
    for (; end - from >= (ptrdiff_t)sizeof next; from += sizeof next) {
        memcpy(&next, from, sizeof next);
        if (next == even || next == odd)
            return from;
    }
    return NULL;
}

const uint8_t *pt_psb_find(const uint8_t *from, const uint8_t *end, bool more, bool *doubtful)
{
    const uint8_t *at = from;
    while ((at = find_any(at, end))) {
        const uint8_t *begin = at, *stop = at + 4;
        while (begin > from && begin[-1] == (begin[0] ^ OTHER))
            begin--;
        while (stop < end && stop[0] == (stop[-1] ^ OTHER))
            stop++;
        at = stop;
        begin += *begin != FIRST;
        if (stop - begin > MOST_RUN)
            *doubtful = true;
        else if (more && stop == end)
            return NULL;
        stop -= stop[-1] == FIRST;
        if (stop - begin >= PT_PSB_BYTES)
            return stop - PT_PSB_BYTES;
    }
    return NULL;
}
