// SPDX-License-Identifier: MIT
#include "analysis/pt/walk/pt_ask.h"

#include <stdbool.h>
#include <string.h>

// Many short traces have no question.
static int ask_begin(struct pt_ask *ask)
{
    struct pt_config config;
    if (ask->decoder)
        return 0;
    pt_config_init(&config);
    config.begin = ask->question;
    config.end = ask->question + sizeof ask->question;
    config.flags.variant.block.end_on_call = 1;
    ask->decoder = pt_blk_alloc_decoder(&config);
    return ask->decoder ? 0 : -1;
}

void pt_ask_fini(struct pt_ask *ask)
{
    pt_blk_free_decoder(ask->decoder);
    ask->decoder = NULL;
}

enum { QUESTION_BYTES = 18 + 9 + 2 }; // PSB and mode, where the processor is, PSBEND

static size_t put_place(uint8_t *at, uint64_t ip)
{
    at[0] = 0x1d | 6 << 5; // FUP with a full address
    memcpy(at + 1, &ip, sizeof ip);
    return 1 + sizeof ip;
}

static int ask_once(struct pt_ask *ask, uint64_t ip, const uint8_t *packets, size_t bytes,
                    struct pt_answer *out)
{
    static const uint8_t psb[] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02,
                                  0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x99, 0x01};
    const size_t begin = sizeof ask->question - (QUESTION_BYTES + bytes); // nothing follows it
    size_t at = begin + sizeof psb;
    memcpy(ask->question + begin, psb, sizeof psb);
    at += put_place(ask->question + at, ip);
    ask->question[at++] = 0x02; // PSBEND
    ask->question[at++] = 0x23;
    if (bytes)
        memcpy(ask->question + at, packets, bytes);
    int status = pt_blk_sync_set(ask->decoder, begin);
    while (status >= 0 && (status & pts_event_pending)) {
        struct pt_event event;
        status = pt_blk_event(ask->decoder, &event, sizeof event);
        if (status >= 0 && !event.status_update)
            return -1;
    }
    if (status < 0)
        return -1;
    out->status = pt_blk_next(ask->decoder, &out->block, sizeof out->block);
    return out->block.mode == ptem_64bit && !out->block.truncated ? 0 : -1;
}

// While libipt fills its own cache of code it ends blocks early; so it is asked until two answers
// agree.
int pt_ask(struct pt_ask *ask, struct pt_image *image, uint64_t ip, const uint8_t *packets,
           size_t bytes, struct pt_answer *out)
{
    enum { MOST_TIMES = 8 };
    struct pt_answer before;
    _Static_assert(sizeof ask->question >= QUESTION_BYTES + PT_ASK_PACKETS, "a question has room");
    if (bytes > PT_ASK_PACKETS || ask_begin(ask) < 0)
        return -1;
    pt_blk_set_image(ask->decoder, image);
    if (ask_once(ask, ip, packets, bytes, &before) < 0)
        return -1;
    for (int i = 1; i < MOST_TIMES; i++, before = *out) {
        if (ask_once(ask, ip, packets, bytes, out) < 0)
            return -1;
        if (out->status == before.status && out->block.end_ip == before.block.end_ip &&
            out->block.ninsn == before.block.ninsn)
            return 0;
    }
    return -1;
}

uint64_t pt_ask_ip(struct pt_ask *ask)
{
    struct pt_block block = {0};
    pt_blk_next(ask->decoder, &block, sizeof block); // a block that fails has an address, too
    return block.ip;
}
