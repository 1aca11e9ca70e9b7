// SPDX-License-Identifier: MIT
#include "analysis/pt/walk/pt_runs.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/pt/walk/pt_opcode.h"

enum { FIRST_CAPACITY = 1 << 10, MOST_RUNS = 1 << 18 };

void pt_runs_free(struct pt_runs *runs)
{
    pt_blk_free_decoder(runs->decoder);
    free(runs->items);
    free(runs->table);
    *runs = (struct pt_runs){0};
}

// --- the table ---------------------------------------------------------------------------------

static uint64_t run_hash(uint32_t space, uint64_t ip, enum pt_run_aim aim, uint64_t aim_ip)
{
    uint64_t mixed = ip * 0x9e3779b97f4a7c15u + aim_ip * 0xc2b2ae3d27d4eb4fu + space + aim;
    return (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9u >> 20;
}

static uint32_t *runs_slot(const struct pt_runs *runs, const struct pt_run *wanted)
{
    uint64_t hash = run_hash(wanted->space, wanted->ip, wanted->aim, wanted->aim_ip);
    for (uint32_t i = (uint32_t)hash;; i++) {
        uint32_t *slot = &runs->table[i & (runs->capacity * 2 - 1)];
        if (*slot == PT_NO_RUN)
            return slot;
        const struct pt_run *run = &runs->items[*slot];
        if (run->ip == wanted->ip && run->space == wanted->space && run->aim == wanted->aim &&
            run->aim_ip == wanted->aim_ip)
            return slot;
    }
}

// The table has twice as many slots as there may be runs.
static int runs_grow(struct pt_runs *runs)
{
    if (runs->capacity == MOST_RUNS) {
        runs->count = 0;
        runs->generation++;
        memset(runs->table, 0xff, (size_t)runs->capacity * 2 * sizeof *runs->table);
        return 0;
    }
    uint32_t capacity = runs->capacity ? runs->capacity * 2 : FIRST_CAPACITY;
    struct pt_run *items = realloc(runs->items, capacity * sizeof *items);
    if (items)
        runs->items = items;
    uint32_t *table = malloc((size_t)capacity * 2 * sizeof *table);
    if (!items || !table) {
        free(table);
        return -1;
    }
    memset(table, 0xff, (size_t)capacity * 2 * sizeof *table);
    free(runs->table);
    runs->table = table;
    runs->capacity = capacity;
    for (uint32_t i = 0; i < runs->count; i++)
        *runs_slot(runs, &runs->items[i]) = i;
    return 0;
}

// --- asking libipt -----------------------------------------------------------------------------

int pt_runs_init(struct pt_runs *runs, struct pt_code_view *code, struct error *err)
{
    struct pt_config config;
    *runs = (struct pt_runs){.code = code};
    pt_config_init(&config);
    config.begin = runs->question;
    config.end = runs->question + sizeof runs->question;
    config.flags.variant.block.end_on_call = 1;
    runs->decoder = pt_blk_alloc_decoder(&config);
    if (!runs->decoder || runs_grow(runs) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for runs of code");
    return 0;
}

struct answer {
    int status; // of the walk to the end of the first block
    struct pt_block block;
};

static size_t put_address(uint8_t *at, uint8_t opcode, uint64_t ip)
{
    at[0] = (uint8_t)(opcode | 6 << 5); // a full address
    memcpy(at + 1, &ip, sizeof ip);
    return 1 + sizeof ip;
}

// "The processor is at `ip`, in 64-bit mode", and then these packets, and nothing more.
static int ask_once(struct pt_runs *runs, uint64_t ip, const uint8_t *packets, size_t bytes,
                    struct answer *out)
{
    static const uint8_t psb[] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02,
                                  0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x99, 0x01};
    size_t at = sizeof psb;
    memset(runs->question, 0, sizeof runs->question);
    memcpy(runs->question, psb, sizeof psb);
    at += put_address(runs->question + at, 0x1d, ip);
    runs->question[at++] = 0x02; // PSBEND
    runs->question[at++] = 0x23;
    if (bytes)
        memcpy(runs->question + at, packets, bytes);
    int status = pt_blk_sync_set(runs->decoder, 0);
    while (status >= 0 && (status & pts_event_pending)) {
        struct pt_event event;
        status = pt_blk_event(runs->decoder, &event, sizeof event);
        if (status >= 0 && !event.status_update)
            return -1;
    }
    if (status < 0)
        return -1;
    out->status = pt_blk_next(runs->decoder, &out->block, sizeof out->block);
    return out->block.mode == ptem_64bit && !out->block.truncated ? 0 : -1;
}

// While libipt fills its own cache of code it ends blocks early; what it says when asked again
// stays.
static int ask(struct pt_runs *runs, uint64_t ip, const uint8_t *packets, size_t bytes,
               struct answer *out)
{
    enum { MOST_TIMES = 8 };
    struct answer before;
    if (ask_once(runs, ip, packets, bytes, &before) < 0)
        return -1;
    for (int i = 1; i < MOST_TIMES; i++, before = *out) {
        if (ask_once(runs, ip, packets, bytes, out) < 0)
            return -1;
        if (out->status == before.status && out->block.end_ip == before.block.end_ip &&
            out->block.ninsn == before.block.ninsn)
            return 0;
    }
    return -1;
}

// Where the decoder is now.
static uint64_t asked_ip(struct pt_runs *runs)
{
    struct pt_block block = {0};
    pt_blk_next(runs->decoder, &block, sizeof block); // also a block that fails begins somewhere
    return block.ip;
}

static void note_block(struct pt_runs *runs, struct pt_run *run, const struct pt_block *block)
{
    uint8_t code[pt_max_insn_size];
    run->end_ip = block->end_ip;
    run->instructions = block->ninsn;
    run->class = (uint8_t)block->iclass;
    if (block->iclass != ptic_error || block->ninsn == 0)
        return;
    int got = pt_code_view_read(runs->code, block->isid, block->end_ip, code, sizeof code);
    run->class = (uint8_t)pt_opcode_class(code, got > 0 ? (size_t)got : 0, block->mode);
}

// libipt does not say how long a direct call is, but where it goes.
static bool note_direct_call(struct pt_runs *runs, struct pt_run *run, const struct pt_block *block)
{
    enum { MOST_PREFIXES = 4, CALL = 0xe8 };
    uint8_t code[pt_max_insn_size];
    int got = pt_code_view_read(runs->code, block->isid, block->end_ip, code, sizeof code);
    for (int i = 0; i < MOST_PREFIXES && i + 5 <= got; i++) {
        int32_t distance;
        memcpy(&distance, code + i + 1, sizeof distance);
        uint64_t behind = run->end_ip + (uint64_t)i + 5;
        if (code[i] == CALL && behind + (uint64_t)(int64_t)distance == run->next) {
            run->returns_to = distance ? behind : 0; // only reads the instruction pointer
            return true;
        }
    }
    return false;
}

// Goes on without the trace.
static enum pt_run_end learn_on(struct pt_runs *runs, struct pt_run *run,
                                const struct answer *answer)
{
    run->next = asked_ip(runs);
    if (run->instructions == 0)
        return PT_RUN_UNUSUAL;
    return run->class != ptic_call || note_direct_call(runs, run, &answer->block) ? PT_RUN_ON
                                                                                  : PT_RUN_UNUSUAL;
}

static enum pt_run_end learn_branch(struct pt_runs *runs, struct pt_run *run)
{
    static const uint8_t taken = 0x06, not_taken = 0x04; // TNT of one branch
    struct answer answer;
    if (ask(runs, run->ip, &taken, 1, &answer) < 0 || answer.status < 0)
        return PT_RUN_UNUSUAL;
    run->taken = asked_ip(runs);
    if (ask(runs, run->ip, &not_taken, 1, &answer) < 0 || answer.status < 0)
        return PT_RUN_UNUSUAL;
    run->next = asked_ip(runs);
    return PT_RUN_BRANCH;
}

static bool is_behind(const struct pt_run *run, uint64_t ip)
{
    return ip > run->end_ip && ip - run->end_ip <= pt_max_insn_size;
}

// Where tracing stops at a call, libipt expects it to go on behind it.
static enum pt_run_end learn_call(struct pt_runs *runs, struct pt_run *run)
{
    static const uint8_t disabled = 0x01; // TIP.PGD without an address
    struct answer answer;
    struct pt_event event;
    if (ask(runs, run->ip, &disabled, 1, &answer) < 0 || answer.status < 0 ||
        !(answer.status & pts_event_pending) ||
        pt_blk_event(runs->decoder, &event, sizeof event) < 0)
        return PT_RUN_UNUSUAL;
    run->returns_to = asked_ip(runs);
    return is_behind(run, run->returns_to) ? PT_RUN_CALL : PT_RUN_UNUSUAL;
}

static enum pt_run_end learn_decision(struct pt_runs *runs, struct pt_run *run)
{
    struct answer answer;
    if (ask(runs, run->ip, NULL, 0, &answer) < 0)
        return PT_RUN_UNUSUAL;
    note_block(runs, run, &answer.block);
    if (answer.status >= 0)
        return learn_on(runs, run, &answer);
    if (answer.status != -pte_eos || run->instructions == 0)
        return PT_RUN_UNUSUAL;
    switch (run->class) {
    case ptic_cond_jump:
        return learn_branch(runs, run);
    case ptic_return:
        return PT_RUN_RETURN;
    case ptic_call:
        return learn_call(runs, run);
    case ptic_jump:
    case ptic_far_call:
    case ptic_far_return:
    case ptic_far_jump:
        return PT_RUN_TRANSFER;
    default:
        return PT_RUN_UNUSUAL;
    }
}

static enum pt_run_end learn_aim(struct pt_runs *runs, struct pt_run *run)
{
    uint8_t packets[32];
    size_t bytes = 0;
    if (run->aim == PT_AIM_ADDRESS) {
        bytes = put_address(packets, 0x1d, run->aim_ip);          // FUP
        bytes += put_address(packets + bytes, 0x0d, run->aim_ip); // TIP
    } else if (run->aim == PT_AIM_DISABLE_TO) {
        bytes = put_address(packets, 0x01, run->aim_ip); // TIP.PGD
    } else if (run->aim == PT_AIM_DISABLE) {
        packets[bytes++] = 0x01;
    } else {
        static const uint8_t pip[] = {0x02, 0x43, 0, 0, 0, 0, 0, 0};
        memcpy(packets, pip, bytes = sizeof pip);
    }
    struct answer answer;
    struct pt_event event;
    if (ask(runs, run->ip, packets, bytes, &answer) < 0 || answer.status < 0)
        return PT_RUN_UNUSUAL;
    note_block(runs, run, &answer.block);
    if (!(answer.status & pts_event_pending))
        return learn_on(runs, run, &answer);
    if (run->aim == PT_AIM_ADDRESS)
        run->next = run->aim_ip;
    else if (pt_blk_event(runs->decoder, &event, sizeof event) < 0)
        return PT_RUN_UNUSUAL;
    else
        run->next = asked_ip(runs);
    if (run->class != ptic_call || run->instructions == 0 ||
        note_direct_call(runs, run, &answer.block))
        return PT_RUN_AIM;
    run->returns_to = run->next; // tracing stopped at the call and is expected to go on behind it
    return is_behind(run, run->returns_to) ? PT_RUN_AIM : PT_RUN_UNUSUAL;
}

uint32_t pt_runs_find(struct pt_runs *runs, uint32_t space, uint64_t ip, enum pt_run_aim aim,
                      uint64_t aim_ip)
{
    struct pt_run run = {.ip = ip,
                         .aim_ip = aim_ip,
                         .space = space,
                         .aim = (uint8_t)aim,
                         .next_run = PT_NO_RUN,
                         .taken_run = PT_NO_RUN};
    uint32_t *slot = runs_slot(runs, &run);
    if (*slot != PT_NO_RUN)
        return *slot;
    struct pt_image *image;
    struct error err;
    if (pt_code_view_image(runs->code, space, &image, &err) < 0 ||
        (runs->count == runs->capacity && runs_grow(runs) < 0))
        return PT_NO_RUN;
    pt_blk_set_image(runs->decoder, image);
    run.end =
        (uint8_t)(aim == PT_AIM_DECISION ? learn_decision(runs, &run) : learn_aim(runs, &run));
    runs->items[runs->count] = run;
    return *runs_slot(runs, &run) = runs->count++;
}
