// SPDX-License-Identifier: MIT
//
// Random programs made of real x86 instructions, run by an interpreter that writes, through
// libipt's encoder, the Intel PT stream a processor would have written, and beside it the spans a
// perfect decoder would find. One scenario is one CPU: several tasks, interrupts, syscalls (traced
// or not), context switches, tail calls, longjmp, lost packets, and PSBs anywhere.
#ifndef TESTS_ANALYSIS_PT_SCENARIO_H
#define TESTS_ANALYSIS_PT_SCENARIO_H

#include <intel-pt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/pt/pt_calls.h"
#include "analysis/pt/pt_symbols.h"
#include "base/array.h"

// --- the program -------------------------------------------------------------------------------

enum item_kind {
    ITEM_NOP,
    ITEM_SKIP,    // jump over the next item if ...
    ITEM_LOOP,    // jump back if ...
    ITEM_CALL,    //
    ITEM_ICALL,   // through a register
    ITEM_SYSCALL, //
    ITEM_LONGJMP, // to behind a call of an outer function
    ITEM_RET,
    ITEM_TAIL,  // jump to another function
    ITEM_ITAIL, // through a register
    ITEM_SYSRET,
    ITEM_IRET,
};

enum {
    USER_FUNCTIONS = 20,
    KERNEL_FUNCTIONS = 8, // the first two are the entries of syscalls and interrupts
    SYSCALL_ENTRY = USER_FUNCTIONS,
    INTERRUPT_ENTRY,
    FUNCTIONS = USER_FUNCTIONS + KERNEL_FUNCTIONS,
    MOST_ITEMS = 64,
    CODE_BYTES = 64 << 10,
    DEEPEST = 24,
};
#define USER_BASE   0x400000ull
#define KERNEL_BASE 0xffffffff81000000ull

struct item {
    uint64_t ip;
    uint8_t kind, bytes;
    uint8_t target; // function, or item of a loop
};

struct function {
    uint64_t low, high;
    struct item items[MOST_ITEMS];
    int count;
};

struct program {
    struct function functions[FUNCTIONS];
    uint8_t user[CODE_BYTES], kernel[CODE_BYTES];
    size_t user_bytes, kernel_bytes;
};

struct random_source {
    uint64_t state;
};

static inline uint64_t random_next(struct random_source *source) // splitmix64
{
    uint64_t z = source->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline unsigned random_below(struct random_source *source, unsigned bound)
{
    return (unsigned)(random_next(source) % bound);
}

static inline bool random_chance(struct random_source *source, unsigned percent)
{
    return random_below(source, 100) < percent;
}

static inline unsigned item_bytes(enum item_kind kind)
{
    static const uint8_t bytes[] = {
        [ITEM_NOP] = 1,   [ITEM_SKIP] = 2,    [ITEM_LOOP] = 2,    [ITEM_CALL] = 5,
        [ITEM_ICALL] = 2, [ITEM_SYSCALL] = 2, [ITEM_LONGJMP] = 2, [ITEM_RET] = 1,
        [ITEM_TAIL] = 5,  [ITEM_ITAIL] = 2,   [ITEM_SYSRET] = 3,  [ITEM_IRET] = 2};
    return bytes[kind];
}

static inline void function_add(struct function *function, enum item_kind kind, unsigned target)
{
    struct item item = {.ip = function->high,
                        .kind = (uint8_t)kind,
                        .bytes = (uint8_t)item_bytes(kind),
                        .target = (uint8_t)target};
    function->items[function->count++] = item;
    function->high += item.bytes;
}

static inline unsigned random_callee(struct random_source *random, bool kernel)
{
    return kernel ? USER_FUNCTIONS + 2 + random_below(random, KERNEL_FUNCTIONS - 2)
                  : 1 + random_below(random, USER_FUNCTIONS - 1);
}

// Function 0 is where a task begins; it runs for ever and nobody calls it.
// Anything that goes deeper stands behind a SKIP, so that the interpreter can choose not to.
static inline void function_fill(struct function *function, int index, unsigned busy,
                                 struct random_source *random)
{
    bool kernel = index >= USER_FUNCTIONS;
    int wanted = 3 + (int)random_below(random, 8);
    if (busy)
        wanted = 10;
    function_add(function, ITEM_NOP, 0);
    for (int i = 0; i < wanted; i++) {
        unsigned what = random_below(random, 12 + busy);
        for (unsigned nops = random_below(random, 3); nops > 0; nops--)
            function_add(function, ITEM_NOP, 0);
        unsigned start = (unsigned)function->count;
        function_add(function, ITEM_SKIP, 0);
        if (what < 6)
            function_add(function, ITEM_CALL, random_callee(random, kernel));
        else if (what < 8)
            function_add(function, ITEM_ICALL, 0);
        else if (what == 8 && !kernel)
            function_add(function, ITEM_SYSCALL, 0);
        else if (what == 9 && !kernel)
            function_add(function, ITEM_LONGJMP, 0);
        else
            function_add(function, ITEM_NOP, 0);
        if (what >= 11)
            function_add(function, ITEM_LOOP, start);
    }
    if (index == SYSCALL_ENTRY)
        function_add(function, ITEM_SYSRET, 0);
    else if (index == INTERRUPT_ENTRY)
        function_add(function, ITEM_IRET, 0);
    else if (index == 0)
        function_add(function, ITEM_TAIL, 0);
    else if (random_chance(random, 15))
        function_add(function, ITEM_TAIL, random_callee(random, kernel));
    else if (random_chance(random, 10))
        function_add(function, ITEM_ITAIL, 0);
    else
        function_add(function, ITEM_RET, 0);
}

static inline void put_offset(uint8_t *at, uint64_t from, uint64_t to, int bytes)
{
    int64_t offset = (int64_t)(to - from);
    memcpy(at, &offset, (size_t)bytes);
}

static inline void item_encode(const struct program *program, const struct function *function,
                               int index, uint8_t *at)
{
    const struct item *item = &function->items[index];
    uint64_t next = item->ip + item->bytes;
    static const uint8_t opcodes[][3] = {[ITEM_NOP] = {0x90},
                                         [ITEM_SKIP] = {0x74},
                                         [ITEM_LOOP] = {0x75},
                                         [ITEM_CALL] = {0xe8},
                                         [ITEM_ICALL] = {0xff, 0xd0},
                                         [ITEM_SYSCALL] = {0x0f, 0x05},
                                         [ITEM_LONGJMP] = {0xff, 0xe2},
                                         [ITEM_RET] = {0xc3},
                                         [ITEM_TAIL] = {0xe9},
                                         [ITEM_ITAIL] = {0xff, 0xe0},
                                         [ITEM_SYSRET] = {0x48, 0x0f, 0x07},
                                         [ITEM_IRET] = {0x48, 0xcf}};
    memcpy(at, opcodes[item->kind], item->bytes < 3 ? item->bytes : 3);
    if (item->kind == ITEM_SKIP)
        put_offset(at + 1, next, function->items[index + 2].ip, 1);
    if (item->kind == ITEM_LOOP)
        put_offset(at + 1, next, function->items[item->target].ip, 1);
    if (item->kind == ITEM_CALL || item->kind == ITEM_TAIL)
        put_offset(at + 1, next, program->functions[item->target].low, 4);
}

static inline void program_make(struct program *program, uint64_t seed, unsigned busy)
{
    struct random_source random = {seed};
    uint64_t user = USER_BASE, kernel = KERNEL_BASE;
    memset(program, 0, sizeof *program);
    for (int i = 0; i < FUNCTIONS; i++) {
        struct function *function = &program->functions[i];
        uint64_t *at = i < USER_FUNCTIONS ? &user : &kernel;
        function->low = function->high = *at;
        function_fill(function, i, busy, &random);
        *at = function->high;
    }
    program->user_bytes = user - USER_BASE;
    program->kernel_bytes = kernel - KERNEL_BASE;
    for (int i = 0; i < FUNCTIONS; i++) {
        const struct function *function = &program->functions[i];
        uint8_t *code = i < USER_FUNCTIONS ? program->user : program->kernel;
        uint64_t base = i < USER_FUNCTIONS ? USER_BASE : KERNEL_BASE;
        for (int k = 0; k < function->count; k++)
            item_encode(program, function, k, code + (function->items[k].ip - base));
    }
}

// The functions as struct pt_symbols sees them; the key of a function is its address.
static inline bool program_find(void *context, uint32_t space, uint64_t address,
                                struct pt_function *out)
{
    const struct program *program = context;
    (void)space;
    for (int i = 0; i < FUNCTIONS; i++) {
        const struct function *function = &program->functions[i];
        if (address >= function->low && address < function->high) {
            *out = (struct pt_function){function->low, function->high, function->low, true};
            return true;
        }
    }
    return false;
}

// --- writing packets ---------------------------------------------------------------------------

enum timing { TIMING_TSC_OFTEN, TIMING_TSC_SOME, TIMING_CYC, TIMINGS };
enum { NOMINAL_RATIO = 20 };

struct writer {
    struct pt_encoder *encoder;
    uint8_t *data;
    size_t capacity;
    enum timing timing;
    bool compress_returns, long_tnt;
    struct random_source random;
    uint64_t now;      // TSC
    uint64_t told;     // time of the last timing packet
    uint64_t last_ip;  // as the decoder reconstructs it
    uint64_t tnt;      // branches not written yet
    int tnt_bits;      //
    uint64_t last_psb; // offset
    bool failed;
};

static inline uint64_t writer_offset(struct writer *writer)
{
    uint64_t offset = 0;
    pt_enc_get_offset(writer->encoder, &offset);
    return offset;
}

static inline void write_packet(struct writer *writer, struct pt_packet packet)
{
    if (pt_enc_next(writer->encoder, &packet) < 0)
        writer->failed = true;
}

static inline void write_tsc(struct writer *writer)
{
    write_packet(writer, (struct pt_packet){.type = ppt_tsc,
                                            .payload.tsc.tsc = writer->now & 0xffffffffffffff});
    writer->told = writer->now;
}

// What stands before a packet that moves the flow.
static inline void write_time(struct writer *writer)
{
    if (writer->now == writer->told)
        return;
    if (writer->timing == TIMING_CYC) {
        write_packet(writer, (struct pt_packet){.type = ppt_cyc,
                                                .payload.cyc.value = writer->now - writer->told});
        writer->told = writer->now;
    } else if (writer->timing == TIMING_TSC_OFTEN || random_chance(&writer->random, 20)) {
        write_tsc(writer);
    }
}

static inline void write_tnt(struct writer *writer)
{
    if (writer->tnt_bits == 0)
        return;
    write_time(writer);
    struct pt_packet packet = {.type = writer->tnt_bits > 6 ? ppt_tnt_64 : ppt_tnt_8};
    packet.payload.tnt.bit_size = (uint8_t)writer->tnt_bits;
    packet.payload.tnt.payload = writer->tnt;
    write_packet(writer, packet);
    writer->tnt = 0;
    writer->tnt_bits = 0;
}

static inline void write_branch(struct writer *writer, bool taken)
{
    writer->tnt = writer->tnt << 1 | taken;
    if (++writer->tnt_bits == (writer->long_tnt ? 47 : 6))
        write_tnt(writer);
}

static inline void write_address(struct writer *writer, enum pt_packet_type type, uint64_t ip)
{
    struct pt_packet packet = {.type = type, .payload.ip = {pt_ipc_full, ip}};
    if (type == ppt_tip_pgd && random_chance(&writer->random, 50)) {
        packet.payload.ip = (struct pt_packet_ip){pt_ipc_suppressed, 0};
    } else {
        bool canonical = (uint64_t)((int64_t)(ip << 16) >> 16) == ip;
        if ((ip ^ writer->last_ip) >> 16 == 0)
            packet.payload.ip = (struct pt_packet_ip){pt_ipc_update_16, ip & 0xffff};
        else if ((ip ^ writer->last_ip) >> 32 == 0)
            packet.payload.ip = (struct pt_packet_ip){pt_ipc_update_32, ip & 0xffffffff};
        else if (canonical && random_chance(&writer->random, 80))
            packet.payload.ip = (struct pt_packet_ip){pt_ipc_sext_48, ip & 0xffffffffffff};
        writer->last_ip = ip;
    }
    write_tnt(writer);
    write_time(writer);
    write_packet(writer, packet);
}

// ip 0: not tracing.
static inline void write_psb(struct writer *writer, uint64_t ip)
{
    write_tnt(writer);
    writer->last_psb = writer_offset(writer);
    writer->last_ip = 0;
    write_packet(writer, (struct pt_packet){.type = ppt_psb});
    write_tsc(writer);
    write_packet(writer, (struct pt_packet){.type = ppt_cbr, .payload.cbr.ratio = NOMINAL_RATIO});
    if (ip) {
        struct pt_packet mode = {.type = ppt_mode, .payload.mode.leaf = pt_mol_exec};
        mode.payload.mode.bits.exec = pt_set_exec_mode(ptem_64bit);
        write_packet(writer, mode);
        write_address(writer, ppt_fup, ip);
    }
    write_packet(writer, (struct pt_packet){.type = ppt_psbend});
}

static inline void write_mode(struct writer *writer)
{
    struct pt_packet mode = {.type = ppt_mode, .payload.mode.leaf = pt_mol_exec};
    mode.payload.mode.bits.exec = pt_set_exec_mode(ptem_64bit);
    write_tnt(writer);
    write_packet(writer, mode);
}

#endif
