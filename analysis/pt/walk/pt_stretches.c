// SPDX-License-Identifier: MIT
#include "analysis/pt/walk/pt_stretches.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/pt/image/pt_insn_bytes.h"

enum { FIRST_CAPACITY = 1 << 4, MOST_STRETCHES = 1 << 18 };

void pt_stretches_free(struct pt_stretches *stretches)
{
    pt_ask_fini(&stretches->ask);
    pt_code_bytes_free(&stretches->bytes);
    room_free(stretches->room, stretches->items, stretches->capacity * sizeof *stretches->items);
    room_free(stretches->room, stretches->table,
              (size_t)stretches->capacity * 2 * sizeof *stretches->table);
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
    uint32_t before = stretches->capacity, capacity = before ? before * 2 : FIRST_CAPACITY;
    size_t item = sizeof *stretches->items, slots = 2 * sizeof *stretches->table;
    uint32_t *table = room_resize(stretches->room, NULL, 0, capacity * slots);
    struct pt_stretch *items =
        table ? room_resize(stretches->room, stretches->items, before * item, capacity * item)
              : NULL;
    if (!items) {
        room_free(stretches->room, table, capacity * slots);
        return -1;
    }
    memset(table, 0xff, capacity * slots);
    room_free(stretches->room, stretches->table, before * slots);
    stretches->items = items;
    stretches->table = table;
    stretches->capacity = capacity;
    for (uint32_t i = 0; i < stretches->count; i++)
        *stretches_slot(stretches, &stretches->items[i]) = i;
    return 0;
}

int pt_stretches_init(struct pt_stretches *stretches, const struct pt_memory *memory,
                      struct pt_code_view *code, const struct pt_symbols *symbols,
                      struct room *room, struct error *err)
{
    *stretches = (struct pt_stretches){.code = code, .symbols = symbols, .room = room};
    if (pt_code_bytes_init(&stretches->bytes, memory, err) < 0)
        return -ERROR_FAILED;
    return stretches_grow(stretches) < 0
               ? error_set(err, ERROR_FAILED, "out of memory for stretches of code")
               : 0;
}

// --- from the bytes of the code ------------------------------------------------------------------

// Straight code is never this long; a loop without a decision is endless.
enum { MOST_INSTRUCTIONS = 20000 };

static enum pt_insn_class class_of(enum pt_insn_kind kind)
{
    switch (kind) {
    case PT_INSN_JUMP:
    case PT_INSN_JUMP_INDIRECT:
        return ptic_jump;
    case PT_INSN_BRANCH:
        return ptic_cond_jump;
    case PT_INSN_CALL:
    case PT_INSN_CALL_INDIRECT:
        return ptic_call;
    case PT_INSN_RETURN:
        return ptic_return;
    case PT_INSN_FAR_CALL:
        return ptic_far_call;
    case PT_INSN_FAR_RETURN:
        return ptic_far_return;
    case PT_INSN_FAR_JUMP:
        return ptic_far_jump;
    default:
        return ptic_other;
    }
}

// What the stretch ends with when this is its last instruction; `behind` follows it.
static enum pt_stretch_end end_with(struct pt_stretch *stretch, const struct pt_insn_bytes *insn,
                                    uint64_t behind)
{
    uint64_t there = behind + (uint64_t)(int64_t)insn->distance;
    stretch->next = behind;
    switch ((enum pt_insn_kind)insn->kind) {
    case PT_INSN_BRANCH:
        stretch->taken = there;
        return PT_STRETCH_BRANCH;
    case PT_INSN_RETURN:
        return PT_STRETCH_RETURN;
    case PT_INSN_CALL_INDIRECT:
        stretch->returns_to = behind;
        return PT_STRETCH_CALL;
    case PT_INSN_CALL: // of what follows it: to read the instruction pointer
        stretch->returns_to = insn->distance ? behind : 0;
        stretch->next = there;
        return PT_STRETCH_ON;
    case PT_INSN_JUMP:
        stretch->next = there;
        return PT_STRETCH_ON;
    case PT_INSN_OTHER:
        return PT_STRETCH_ON;
    default:
        return PT_STRETCH_TRANSFER;
    }
}

// Follows the code up to a decision, a direct call, the end of a section, or to the stretch's aim.
static enum pt_stretch_end learn_from_bytes(struct pt_stretches *stretches,
                                            struct pt_stretch *stretch)
{
    const struct pt_code_part *part =
        pt_code_bytes_part(&stretches->bytes, stretch->space, stretch->ip);
    const uint8_t *code = part ? pt_code_bytes_at(&stretches->bytes, part) : NULL;
    bool aimed = stretch->aim == PT_AIM_ADDRESS;
    if (!code)
        return !aimed && pt_code_bytes_lack(&stretches->bytes, stretch->space, stretch->ip)
                   ? PT_STRETCH_UNMAPPED
                   : PT_STRETCH_UNUSUAL;
    const uint64_t low = part->low, span = part->last - low;
    for (uint64_t at = stretch->ip; stretch->instructions < MOST_INSTRUCTIONS;) {
        struct pt_insn_bytes insn;
        uint64_t left = span - (at - low);
        if (!pt_insn_bytes(code + (at - low), left < 15 ? (size_t)left + 1 : 15, &insn))
            return PT_STRETCH_UNUSUAL;
        stretch->instructions++;
        stretch->end_ip = at;
        enum pt_stretch_end end = end_with(stretch, &insn, at + insn.bytes);
        at = stretch->next;
        bool there = aimed && at == stretch->aim_ip;
        if (end == PT_STRETCH_ON && insn.kind != PT_INSN_CALL && !there && at - low <= span)
            continue;
        stretch->class = (uint8_t)class_of((enum pt_insn_kind)insn.kind);
        if (aimed && end != PT_STRETCH_ON) // no packet is left to decide
            return PT_STRETCH_UNUSUAL;
        if (end == PT_STRETCH_ON && insn.kind != PT_INSN_CALL && !there &&
            !pt_code_bytes_part(&stretches->bytes, stretch->space, at)) // libipt's block fails
            return PT_STRETCH_UNUSUAL;
        return there ? PT_STRETCH_AIM : end;
    }
    return PT_STRETCH_UNUSUAL;
}

// --- by asking libipt ----------------------------------------------------------------------------

// The instruction at an address, from the bytes; false: not understood.
static bool insn_at(struct pt_stretches *stretches, uint32_t space, uint64_t ip,
                    struct pt_insn_bytes *out)
{
    const struct pt_code_part *part = pt_code_bytes_part(&stretches->bytes, space, ip);
    const uint8_t *code = part ? pt_code_bytes_at(&stretches->bytes, part) : NULL;
    uint64_t left = part ? part->last - ip : 0;
    return code && pt_insn_bytes(code + (ip - part->low), left < 15 ? (size_t)left + 1 : 15, out);
}

bool pt_stretches_plain(struct pt_stretches *stretches, uint32_t space, uint64_t ip)
{
    struct pt_insn_bytes insn;
    return insn_at(stretches, space, ip, &insn);
}

static bool is_behind(const struct pt_stretch *stretch, uint64_t ip)
{
    return ip > stretch->end_ip && ip - stretch->end_ip <= pt_max_insn_size;
}

// The stretch ends with a call: what will return, if libipt went where the call goes.
static bool note_call(struct pt_stretch *stretch, const struct pt_insn_bytes *insn)
{
    uint64_t behind = stretch->end_ip + insn->bytes;
    if (insn->kind == PT_INSN_CALL && behind + (uint64_t)(int64_t)insn->distance == stretch->next) {
        stretch->returns_to = insn->distance ? behind : 0;
        return true;
    }
    // tracing stopped at the call and is expected to go on behind it
    stretch->returns_to = stretch->next;
    return stretch->end == PT_STRETCH_AIM && is_behind(stretch, stretch->returns_to);
}

static size_t put_aim(uint8_t packets[PT_ASK_PACKETS], const struct pt_stretch *stretch)
{
    static const uint8_t pip[] = {0x02, 0x43, 0, 0, 0, 0, 0, 0};
    if (stretch->aim == PT_AIM_PAGING) {
        memcpy(packets, pip, sizeof pip);
        return sizeof pip;
    }
    packets[0] = 0x01; // TIP.PGD
    if (stretch->aim == PT_AIM_DISABLE)
        return 1;
    packets[0] |= 6 << 5; // with a full address
    memcpy(packets + 1, &stretch->aim_ip, sizeof stretch->aim_ip);
    return 1 + sizeof stretch->aim_ip;
}

static enum pt_stretch_end ask_libipt(struct pt_stretches *stretches, struct pt_stretch *stretch)
{
    uint8_t packets[PT_ASK_PACKETS];
    size_t bytes = put_aim(packets, stretch);
    struct pt_image *image;
    struct pt_answer answer;
    struct pt_event event;
    struct pt_insn_bytes insn;
    struct error err;
    if (pt_code_view_image(stretches->code, stretch->space, &image, &err) < 0 ||
        pt_ask(&stretches->ask, image, stretch->ip, packets, bytes, &answer) < 0 ||
        answer.status < 0)
        return PT_STRETCH_UNUSUAL;
    bool reached = answer.status & pts_event_pending;
    stretch->end = reached ? PT_STRETCH_AIM : PT_STRETCH_ON;
    stretch->end_ip = answer.block.end_ip;
    stretch->instructions = answer.block.ninsn;
    if (reached && pt_blk_event(stretches->ask.decoder, &event, sizeof event) < 0)
        return PT_STRETCH_UNUSUAL;
    stretch->next = pt_ask_ip(&stretches->ask);
    if (stretch->instructions == 0)
        return reached ? PT_STRETCH_AIM : PT_STRETCH_UNUSUAL;
    if (!insn_at(stretches, stretch->space, stretch->end_ip, &insn))
        return PT_STRETCH_UNUSUAL;
    stretch->class = (uint8_t)class_of((enum pt_insn_kind)insn.kind);
    return stretch->class != ptic_call || note_call(stretch, &insn)
               ? (enum pt_stretch_end)stretch->end
               : PT_STRETCH_UNUSUAL;
}

// Where tracing ends: nearly always at a system call, which needs no asking.
static enum pt_stretch_end learn_disable(struct pt_stretches *stretches, struct pt_stretch *stretch)
{
    struct pt_stretch learned = *stretch;
    enum pt_stretch_end end = learn_from_bytes(stretches, &learned);
    bool ends = end == PT_STRETCH_TRANSFER && learned.class == ptic_far_call;
    if (!ends && (end != PT_STRETCH_ON || learned.class != ptic_call))
        return ask_libipt(stretches, stretch);
    *stretch = learned;
    return ends ? PT_STRETCH_AIM : PT_STRETCH_ON;
}

static enum pt_stretch_end learn(struct pt_stretches *stretches, struct pt_stretch *stretch)
{
    switch ((enum pt_stretch_aim)stretch->aim) {
    case PT_AIM_DECISION:
    case PT_AIM_ADDRESS:
        return learn_from_bytes(stretches, stretch);
    case PT_AIM_DISABLE:
        return learn_disable(stretches, stretch);
    default:
        return ask_libipt(stretches, stretch);
    }
}

// --- names ---------------------------------------------------------------------------------------

static uint64_t key_at(struct pt_stretches *stretches, uint32_t space, uint64_t ip)
{
    const struct pt_symbols *symbols = stretches->symbols;
    struct pt_function *last = &stretches->function;
    if (!symbols)
        return 0;
    if (stretches->function_space == space && ip - last->low < last->high - last->low)
        return last->key;
    *last = (struct pt_function){0};
    symbols->find(symbols->context, space, ip, last);
    stretches->function_space = space;
    return last->key;
}

static void note_function(struct pt_stretches *stretches, struct pt_stretch *stretch)
{
    stretch->key = key_at(stretches, stretch->space, stretch->ip);
    stretch->one_function = key_at(stretches, stretch->space, stretch->end_ip) == stretch->key;
    stretch->inner_branch = stretch->one_function && stretch->end == PT_STRETCH_BRANCH;
}

// --- finding -------------------------------------------------------------------------------------

uint32_t pt_stretches_find(struct pt_stretches *stretches, uint32_t space, uint64_t ip,
                           enum pt_stretch_aim aim, uint64_t aim_ip)
{
    struct pt_stretch stretch = {.ip = ip,
                                 .aim_ip = aim_ip,
                                 .space = pt_code_bytes_space(&stretches->bytes, space, ip),
                                 .aim = (uint8_t)aim,
                                 .next_stretch = PT_NO_STRETCH,
                                 .taken_stretch = PT_NO_STRETCH,
                                 .return_stretch = PT_NO_STRETCH};
    uint32_t *slot = stretches_slot(stretches, &stretch);
    if (*slot != PT_NO_STRETCH)
        return *slot;
    if (stretches->count == stretches->capacity && stretches_grow(stretches) < 0)
        return PT_NO_STRETCH;
    stretch.end = (uint8_t)learn(stretches, &stretch);
    note_function(stretches, &stretch);
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
