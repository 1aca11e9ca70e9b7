// SPDX-License-Identifier: MIT
//
// Random programs made of real x86 instructions, for an interpreter (pt_machine.h) that writes,
// through libipt's encoder (pt_writer.h), the Intel PT stream a processor would have written, and
// beside it the spans a perfect decoder would find (pt_truth.h). One scenario is one CPU: several
// tasks, interrupts, syscalls (traced or not), context switches, tail calls, longjmp, lost packets,
// and PSBs anywhere. A rich one has, besides, several address spaces with other code at the same
// addresses, switches inside the traced kernel, nested interrupts, transactions, and MTC packets.
#ifndef TESTS_ANALYSIS_PT_PT_SCENARIO_H
#define TESTS_ANALYSIS_PT_PT_SCENARIO_H

#include <intel-pt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/pt/image/pt_image.h"
#include "analysis/pt/image/pt_image.h"
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
    ITEM_PAGING, // switches to another task where that is asked for
    ITEM_XBEGIN, // its transaction goes on behind it where it is aborted
    ITEM_XEND,
};

enum {
    USER_FUNCTIONS = 20,
    KERNEL_FUNCTIONS = 8, // the first two are the entries of syscalls and interrupts
    SYSCALL_ENTRY = USER_FUNCTIONS,
    INTERRUPT_ENTRY,
    SWITCH, // of a rich program: changes the address space and the stack
    FUNCTIONS = USER_FUNCTIONS + KERNEL_FUNCTIONS,
    MOST_ITEMS = 64,
    CODE_BYTES = 64 << 10,
    DEEPEST = 24,
    SPACES = 2,
    BEHIND_PAGING = 4, // item of SWITCH
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
    struct function user_functions[SPACES][USER_FUNCTIONS];
    struct function kernel_functions[KERNEL_FUNCTIONS];
    uint8_t user[SPACES][CODE_BYTES], kernel[CODE_BYTES];
    size_t user_bytes[SPACES], kernel_bytes;
    bool rich;
};

// A function by its number, in the code of this address space.
static inline const struct function *program_function(const struct program *program, int space,
                                                      int index)
{
    return index < USER_FUNCTIONS ? &program->user_functions[space][index]
                                  : &program->kernel_functions[index - USER_FUNCTIONS];
}

// What names it: the address of the first one's, and of the kernel's.
static inline uint64_t program_key(const struct program *program, int space, int index)
{
    uint64_t low = program_function(program, space, index)->low;
    return index < USER_FUNCTIONS ? low | (uint64_t)space << 56 : low;
}

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
        [ITEM_NOP] = 1,    [ITEM_SKIP] = 2,    [ITEM_LOOP] = 2,    [ITEM_CALL] = 5,
        [ITEM_ICALL] = 2,  [ITEM_SYSCALL] = 2, [ITEM_LONGJMP] = 2, [ITEM_RET] = 1,
        [ITEM_TAIL] = 5,   [ITEM_ITAIL] = 2,   [ITEM_SYSRET] = 3,  [ITEM_IRET] = 2,
        [ITEM_PAGING] = 3, [ITEM_XBEGIN] = 6,  [ITEM_XEND] = 3};
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

static inline unsigned random_callee(struct random_source *random, bool kernel, bool rich)
{
    unsigned special = rich ? 3 : 2;
    return kernel ? USER_FUNCTIONS + special + random_below(random, KERNEL_FUNCTIONS - special)
                  : 1 + random_below(random, USER_FUNCTIONS - 1);
}

// Function 0 is where a task begins; it runs for ever and nobody calls it.
// Anything that goes deeper stands behind a SKIP, so that the interpreter can choose not to.
static inline void function_fill(struct function *function, int index, unsigned busy, bool rich,
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
            function_add(function, ITEM_CALL, random_callee(random, kernel, rich));
        else if (what < 8)
            function_add(function, ITEM_ICALL, 0);
        else if (what == 8 && !kernel)
            function_add(function, ITEM_SYSCALL, 0);
        else if (what == 9 && !kernel)
            function_add(function, ITEM_LONGJMP, 0);
        else if (what == 8 && rich)
            function_add(function, ITEM_CALL, SWITCH);
        else if (what == 10 && rich)
            function_add(function, random_chance(random, 50) ? ITEM_XBEGIN : ITEM_XEND, 0);
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
        function_add(function, ITEM_TAIL, random_callee(random, kernel, rich));
    else if (random_chance(random, 10))
        function_add(function, ITEM_ITAIL, 0);
    else
        function_add(function, ITEM_RET, 0);
}

static inline void function_fill_switch(struct function *function)
{
    function_add(function, ITEM_NOP, 0);
    function_add(function, ITEM_SKIP, 0); // so that a packet shows that its call was before
    function_add(function, ITEM_NOP, 0);
    function_add(function, ITEM_PAGING, 0);
    function_add(function, ITEM_NOP, 0); // BEHIND_PAGING
    function_add(function, ITEM_RET, 0);
}

static inline void put_offset(uint8_t *at, uint64_t from, uint64_t to, int bytes)
{
    int64_t offset = (int64_t)(to - from);
    memcpy(at, &offset, (size_t)bytes);
}

static inline void item_encode(const struct program *program, int space,
                               const struct function *function, int index, uint8_t *at)
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
                                         [ITEM_IRET] = {0x48, 0xcf},
                                         [ITEM_PAGING] = {0x0f, 0x22, 0xd8},
                                         [ITEM_XBEGIN] = {0xc7, 0xf8}, // to behind it
                                         [ITEM_XEND] = {0x0f, 0x01, 0xd5}};
    memcpy(at, opcodes[item->kind], item->bytes < 3 ? item->bytes : 3);
    if (item->kind == ITEM_SKIP)
        put_offset(at + 1, next, function->items[index + 2].ip, 1);
    if (item->kind == ITEM_LOOP)
        put_offset(at + 1, next, function->items[item->target].ip, 1);
    if (item->kind == ITEM_CALL || item->kind == ITEM_TAIL)
        put_offset(at + 1, next, program_function(program, space, item->target)->low, 4);
}

static inline uint64_t program_fill(struct program *program, int space, int first, int end,
                                    uint64_t at, unsigned busy, struct random_source *random)
{
    for (int i = first; i < end; i++) {
        struct function *function =
            (struct function *)(uintptr_t)program_function(program, space, i);
        function->low = function->high = at;
        if (program->rich && i == SWITCH)
            function_fill_switch(function);
        else
            function_fill(function, i, busy, program->rich, random);
        at = function->high;
    }
    return at;
}

static inline void program_encode(const struct program *program, int space, int first, int end,
                                  uint64_t base, uint8_t *code)
{
    for (int i = first; i < end; i++) {
        const struct function *function = program_function(program, space, i);
        for (int k = 0; k < function->count; k++)
            item_encode(program, space, function, k, code + (function->items[k].ip - base));
    }
}

static inline void program_build(struct program *program, uint64_t seed, unsigned busy, bool rich)
{
    struct random_source random = {seed};
    memset(program, 0, sizeof *program);
    program->rich = rich;
    for (int space = 0; space < (rich ? SPACES : 1); space++)
        program->user_bytes[space] =
            program_fill(program, space, 0, USER_FUNCTIONS, USER_BASE, busy, &random) - USER_BASE;
    program->kernel_bytes =
        program_fill(program, 0, USER_FUNCTIONS, FUNCTIONS, KERNEL_BASE, busy, &random) -
        KERNEL_BASE;
    for (int space = 0; space < (rich ? SPACES : 1); space++)
        program_encode(program, space, 0, USER_FUNCTIONS, USER_BASE, program->user[space]);
    program_encode(program, 0, USER_FUNCTIONS, FUNCTIONS, KERNEL_BASE, program->kernel);
}

static inline void program_make(struct program *program, uint64_t seed, unsigned busy)
{
    program_build(program, seed, busy, false);
}

// What an address space is to the decoder: of a program that is not rich, all is one.
static inline uint32_t program_space(const struct program *program, int space)
{
    return program->rich ? (uint32_t)space + 1 : PT_SPACE_ALL;
}

// The functions as struct pt_symbols sees them.
static inline bool program_find(void *context, uint32_t space, uint64_t address,
                                struct pt_function *out)
{
    const struct program *program = context;
    int code = pt_space_of(space) ? (int)pt_space_of(space) - 1 : 0;
    for (int i = 0; i < FUNCTIONS; i++) {
        const struct function *function = program_function(program, code, i);
        if (address >= function->low && address < function->high) {
            *out = (struct pt_function){function->low, function->high,
                                        program_key(program, code, i), true};
            return true;
        }
    }
    return false;
}

#endif
