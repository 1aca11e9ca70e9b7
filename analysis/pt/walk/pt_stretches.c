// SPDX-License-Identifier: MIT
#include "analysis/pt/walk/pt_stretches.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 1 << 10, MOST_STRETCHES = 1 << 18 };

void pt_stretches_free(struct pt_stretches *stretches)
{
    pt_blk_free_decoder(stretches->decoder);
    free(stretches->items);
    free(stretches->table);
    *stretches = (struct pt_stretches){0};
}

// --- the table ---------------------------------------------------------------------------------

static uint64_t stretch_hash(uint32_t space, uint64_t ip, enum pt_stretch_aim aim, uint64_t aim_ip)
{
    uint64_t mixed = ip * 0x9e3779b97f4a7c15u + aim_ip * 0xc2b2ae3d27d4eb4fu + space + aim;
    return (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9u >> 20;
}

static uint32_t *stretches_slot(const struct pt_stretches *stretches,
                                const struct pt_stretch *wanted)
{
    uint64_t hash = stretch_hash(wanted->space, wanted->ip, wanted->aim, wanted->aim_ip);
    for (uint32_t i = (uint32_t)hash;; i++) {
        uint32_t *slot = &stretches->table[i & (stretches->capacity * 2 - 1)];
        if (*slot == PT_NO_STRETCH)
            return slot;
        const struct pt_stretch *stretch = &stretches->items[*slot];
        if (stretch->ip == wanted->ip && stretch->space == wanted->space &&
            stretch->aim == wanted->aim && stretch->aim_ip == wanted->aim_ip)
            return slot;
    }
}

// The table has twice as many slots as there may be stretches.
static int stretches_grow(struct pt_stretches *stretches)
{
    if (stretches->capacity == MOST_STRETCHES) {
        stretches->count = 0;
        stretches->generation++;
        memset(stretches->table, 0xff, (size_t)stretches->capacity * 2 * sizeof *stretches->table);
        return 0;
    }
    uint32_t capacity = stretches->capacity ? stretches->capacity * 2 : FIRST_CAPACITY;
    struct pt_stretch *items = realloc(stretches->items, capacity * sizeof *items);
    if (items)
        stretches->items = items;
    uint32_t *table = malloc((size_t)capacity * 2 * sizeof *table);
    if (!items || !table) {
        free(table);
        return -1;
    }
    memset(table, 0xff, (size_t)capacity * 2 * sizeof *table);
    free(stretches->table);
    stretches->table = table;
    stretches->capacity = capacity;
    for (uint32_t i = 0; i < stretches->count; i++)
        *stretches_slot(stretches, &stretches->items[i]) = i;
    return 0;
}

// --- asking libipt -----------------------------------------------------------------------------

int pt_stretches_init(struct pt_stretches *stretches, struct pt_code_view *code, struct error *err)
{
    struct pt_config config;
    *stretches = (struct pt_stretches){.code = code};
    pt_config_init(&config);
    config.begin = stretches->question;
    config.end = stretches->question + sizeof stretches->question;
    config.flags.variant.block.end_on_call = 1;
    stretches->decoder = pt_blk_alloc_decoder(&config);
    if (!stretches->decoder || stretches_grow(stretches) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for stretches of code");
    return 0;
}

struct answer {
    int status; // the status of decoding the first block
    struct pt_block block;
};

static size_t put_address(uint8_t *at, uint8_t opcode, uint64_t ip)
{
    at[0] = (uint8_t)(opcode | 6 << 5); // a full address
    memcpy(at + 1, &ip, sizeof ip);
    return 1 + sizeof ip;
}

// "The processor is at `ip`, in 64-bit mode", and then these packets, and nothing more.
static int ask_libipt_once(struct pt_stretches *stretches, uint64_t ip, const uint8_t *packets,
                           size_t bytes, struct answer *out)
{
    static const uint8_t psb[] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02,
                                  0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x99, 0x01};
    size_t at = sizeof psb;
    memset(stretches->question, 0, sizeof stretches->question);
    memcpy(stretches->question, psb, sizeof psb);
    at += put_address(stretches->question + at, 0x1d, ip);
    stretches->question[at++] = 0x02; // PSBEND
    stretches->question[at++] = 0x23;
    if (bytes)
        memcpy(stretches->question + at, packets, bytes);
    int status = pt_blk_sync_set(stretches->decoder, 0);
    while (status >= 0 && (status & pts_event_pending)) {
        struct pt_event event;
        status = pt_blk_event(stretches->decoder, &event, sizeof event);
        if (status >= 0 && !event.status_update)
            return -1;
    }
    if (status < 0)
        return -1;
    out->status = pt_blk_next(stretches->decoder, &out->block, sizeof out->block);
    return out->block.mode == ptem_64bit && !out->block.truncated ? 0 : -1;
}

// While libipt fills its own cache of code it ends blocks early; so it is asked until two answers
// agree.
static int ask_libipt(struct pt_stretches *stretches, uint64_t ip, const uint8_t *packets,
                      size_t bytes, struct answer *out)
{
    enum { MOST_TIMES = 8 };
    struct answer before;
    if (ask_libipt_once(stretches, ip, packets, bytes, &before) < 0)
        return -1;
    for (int i = 1; i < MOST_TIMES; i++, before = *out) {
        if (ask_libipt_once(stretches, ip, packets, bytes, out) < 0)
            return -1;
        if (out->status == before.status && out->block.end_ip == before.block.end_ip &&
            out->block.ninsn == before.block.ninsn)
            return 0;
    }
    return -1;
}

// The address where the decoder is now.
static uint64_t asked_ip(struct pt_stretches *stretches)
{
    struct pt_block block = {0};
    pt_blk_next(stretches->decoder, &block,
                sizeof block); // a block that fails has a first address, too
    return block.ip;
}

static void note_block(struct pt_stretches *stretches, struct pt_stretch *stretch,
                       const struct pt_block *block)
{
    uint8_t code[pt_max_insn_size];
    stretch->end_ip = block->end_ip;
    stretch->instructions = block->ninsn;
    stretch->class = (uint8_t)block->iclass;
    if (block->iclass != ptic_error || block->ninsn == 0)
        return;
    int got = pt_code_view_read(stretches->code, block->isid, block->end_ip, code, sizeof code);
    stretch->class = (uint8_t)pt_opcode_class(code, got > 0 ? (size_t)got : 0, block->mode);
}

// libipt says where a direct call goes, but not how long the instruction is.
static bool note_direct_call(struct pt_stretches *stretches, struct pt_stretch *stretch,
                             const struct pt_block *block)
{
    enum { MOST_PREFIXES = 4, CALL = 0xe8 };
    uint8_t code[pt_max_insn_size];
    int got = pt_code_view_read(stretches->code, block->isid, block->end_ip, code, sizeof code);
    for (int i = 0; i < MOST_PREFIXES && i + 5 <= got; i++) {
        int32_t distance;
        memcpy(&distance, code + i + 1, sizeof distance);
        uint64_t behind = stretch->end_ip + (uint64_t)i + 5;
        if (code[i] == CALL && behind + (uint64_t)(int64_t)distance == stretch->next) {
            stretch->returns_to =
                distance ? behind : 0; // calls the next instruction to read the instruction pointer
            return true;
        }
    }
    return false;
}

// The stretch goes on without asking the trace.
static enum pt_stretch_end learn_on(struct pt_stretches *stretches, struct pt_stretch *stretch,
                                    const struct answer *answer)
{
    stretch->next = asked_ip(stretches);
    if (stretch->instructions == 0)
        return PT_STRETCH_UNUSUAL;
    return stretch->class != ptic_call || note_direct_call(stretches, stretch, &answer->block)
               ? PT_STRETCH_ON
               : PT_STRETCH_UNUSUAL;
}

static enum pt_stretch_end learn_branch(struct pt_stretches *stretches, struct pt_stretch *stretch)
{
    static const uint8_t taken = 0x06, not_taken = 0x04; // TNT of one branch
    struct answer answer;
    if (ask_libipt(stretches, stretch->ip, &taken, 1, &answer) < 0 || answer.status < 0)
        return PT_STRETCH_UNUSUAL;
    stretch->taken = asked_ip(stretches);
    if (ask_libipt(stretches, stretch->ip, &not_taken, 1, &answer) < 0 || answer.status < 0)
        return PT_STRETCH_UNUSUAL;
    stretch->next = asked_ip(stretches);
    return PT_STRETCH_BRANCH;
}

static bool is_behind(const struct pt_stretch *stretch, uint64_t ip)
{
    return ip > stretch->end_ip && ip - stretch->end_ip <= pt_max_insn_size;
}

// When tracing stops at a call, libipt expects it to continue after the call.
static enum pt_stretch_end learn_call(struct pt_stretches *stretches, struct pt_stretch *stretch)
{
    static const uint8_t disabled = 0x01; // TIP.PGD without an address
    struct answer answer;
    struct pt_event event;
    if (ask_libipt(stretches, stretch->ip, &disabled, 1, &answer) < 0 || answer.status < 0 ||
        !(answer.status & pts_event_pending) ||
        pt_blk_event(stretches->decoder, &event, sizeof event) < 0)
        return PT_STRETCH_UNUSUAL;
    stretch->returns_to = asked_ip(stretches);
    return is_behind(stretch, stretch->returns_to) ? PT_STRETCH_CALL : PT_STRETCH_UNUSUAL;
}

static enum pt_stretch_end learn_decision(struct pt_stretches *stretches,
                                          struct pt_stretch *stretch)
{
    struct answer answer;
    if (ask_libipt(stretches, stretch->ip, NULL, 0, &answer) < 0)
        return PT_STRETCH_UNUSUAL;
    note_block(stretches, stretch, &answer.block);
    if (answer.status >= 0)
        return learn_on(stretches, stretch, &answer);
    if (answer.status != -pte_eos || stretch->instructions == 0)
        return PT_STRETCH_UNUSUAL;
    switch (stretch->class) {
    case ptic_cond_jump:
        return learn_branch(stretches, stretch);
    case ptic_return:
        return PT_STRETCH_RETURN;
    case ptic_call:
        return learn_call(stretches, stretch);
    case ptic_jump:
    case ptic_far_call:
    case ptic_far_return:
    case ptic_far_jump:
        return PT_STRETCH_TRANSFER;
    default:
        return PT_STRETCH_UNUSUAL;
    }
}

static enum pt_stretch_end learn_aim(struct pt_stretches *stretches, struct pt_stretch *stretch)
{
    uint8_t packets[32];
    size_t bytes = 0;
    if (stretch->aim == PT_AIM_ADDRESS) {
        bytes = put_address(packets, 0x1d, stretch->aim_ip);          // FUP
        bytes += put_address(packets + bytes, 0x0d, stretch->aim_ip); // TIP
    } else if (stretch->aim == PT_AIM_DISABLE_TO) {
        bytes = put_address(packets, 0x01, stretch->aim_ip); // TIP.PGD
    } else if (stretch->aim == PT_AIM_DISABLE) {
        packets[bytes++] = 0x01;
    } else {
        static const uint8_t pip[] = {0x02, 0x43, 0, 0, 0, 0, 0, 0};
        memcpy(packets, pip, bytes = sizeof pip);
    }
    struct answer answer;
    struct pt_event event;
    if (ask_libipt(stretches, stretch->ip, packets, bytes, &answer) < 0 || answer.status < 0)
        return PT_STRETCH_UNUSUAL;
    note_block(stretches, stretch, &answer.block);
    if (!(answer.status & pts_event_pending))
        return learn_on(stretches, stretch, &answer);
    if (stretch->aim == PT_AIM_ADDRESS)
        stretch->next = stretch->aim_ip;
    else if (pt_blk_event(stretches->decoder, &event, sizeof event) < 0)
        return PT_STRETCH_UNUSUAL;
    else
        stretch->next = asked_ip(stretches);
    if (stretch->class != ptic_call || stretch->instructions == 0 ||
        note_direct_call(stretches, stretch, &answer.block))
        return PT_STRETCH_AIM;
    stretch->returns_to =
        stretch->next; // tracing stopped at the call and is expected to go on behind it
    return is_behind(stretch, stretch->returns_to) ? PT_STRETCH_AIM : PT_STRETCH_UNUSUAL;
}

uint32_t pt_stretches_find(struct pt_stretches *stretches, uint32_t space, uint64_t ip,
                           enum pt_stretch_aim aim, uint64_t aim_ip)
{
    struct pt_stretch stretch = {.ip = ip,
                                 .aim_ip = aim_ip,
                                 .space = space,
                                 .aim = (uint8_t)aim,
                                 .next_stretch = PT_NO_STRETCH,
                                 .taken_stretch = PT_NO_STRETCH};
    uint32_t *slot = stretches_slot(stretches, &stretch);
    if (*slot != PT_NO_STRETCH)
        return *slot;
    struct pt_image *image;
    struct error err;
    if (pt_code_view_image(stretches->code, space, &image, &err) < 0 ||
        (stretches->count == stretches->capacity && stretches_grow(stretches) < 0))
        return PT_NO_STRETCH;
    pt_blk_set_image(stretches->decoder, image);
    stretch.end = (uint8_t)(aim == PT_AIM_DECISION ? learn_decision(stretches, &stretch)
                                                   : learn_aim(stretches, &stretch));
    stretches->items[stretches->count] = stretch;
    return *stretches_slot(stretches, &stretch) = stretches->count++;
}

// --- what kind of branch an instruction is -------------------------------------------------------

static bool is_prefix(uint8_t byte, enum pt_exec_mode mode)
{
    switch (byte) {
    case 0x26: // segments
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0x66: // operand and address size
    case 0x67:
    case 0xf0: // lock, repetitions
    case 0xf2:
    case 0xf3:
        return true;
    default:
        return mode == ptem_64bit && (byte & 0xf0) == 0x40; // REX
    }
}

static enum pt_insn_class group_5(uint8_t modrm)
{
    switch (modrm >> 3 & 7) {
    case 2:
        return ptic_call;
    case 3:
        return ptic_far_call;
    case 4:
        return ptic_jump;
    case 5:
        return ptic_far_jump;
    default:
        return ptic_other;
    }
}

static enum pt_insn_class two_bytes(uint8_t opcode)
{
    switch (opcode) {
    case 0x05: // syscall
    case 0x34: // sysenter
        return ptic_far_call;
    case 0x07: // sysret
    case 0x35: // sysexit
        return ptic_far_return;
    default:
        return ptic_other;
    }
}

enum pt_insn_class pt_opcode_class(const uint8_t *code, size_t bytes, enum pt_exec_mode mode)
{
    size_t at = 0;
    while (at < bytes && is_prefix(code[at], mode))
        at++;
    if (at == bytes)
        return ptic_other;
    uint8_t next = at + 1 < bytes ? code[at + 1] : 0;
    switch (code[at]) {
    case 0x0f:
        return two_bytes(next);
    case 0x9a: // with an address
    case 0xcc: // int3, int, int1, into
    case 0xcd:
    case 0xce:
    case 0xf1:
        return ptic_far_call;
    case 0xca: // retf, iret
    case 0xcb:
    case 0xcf:
        return ptic_far_return;
    case 0xe8:
        return ptic_call;
    case 0xc2:
    case 0xc3:
        return ptic_return;
    case 0xe9:
    case 0xeb:
        return ptic_jump;
    case 0xea:
        return ptic_far_jump;
    case 0xff:
        return group_5(next);
    default:
        return ptic_other;
    }
}
