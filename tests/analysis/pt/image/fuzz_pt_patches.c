// SPDX-License-Identifier: MIT
//
// Any patches of the kernel's code (TEXT_POKE records) and functions that come without their code
// (KSYMBOL records): they overlap, come at once or in any number, and the code is then in each
// state what the records made of it, byte by byte.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/perf/perf_data.h"
#include "analysis/pt/image/pt_patches.h"
#include "tests/analysis/perf/perf_data_maker.h"

enum { PLACE = 64, POKES = 40, LONGEST = 7 };
static const uint64_t base = 0xffffffff81000000;

// What is there, as far as the records show.
struct truth {
    uint8_t code[PLACE];
    bool hole[PLACE]; // a function without its code
};

struct poke {
    uint64_t time;
    bool made; // a function, without its code
    uint8_t at, old_bytes, new_bytes;
    uint8_t code[LONGEST];
};

// Records that follow from each other: what one finds is what those before it left.
static size_t make_pokes(const uint8_t *bytes, size_t count, struct poke *pokes,
                         struct maker *maker)
{
    struct truth now = {0};
    uint64_t time = 100;
    size_t made = 0;
    for (; made < POKES && count >= 4; made++) {
        struct poke *poke = &pokes[made];
        *poke = (struct poke){.time = time += bytes[0] % 4,
                              .made = bytes[1] & 0x80,
                              .at = bytes[1] % (PLACE - LONGEST),
                              .old_bytes = bytes[2] % (LONGEST + 1),
                              .new_bytes = bytes[3] % (LONGEST + 1)};
        bytes += 4;
        count -= 4;
        if (poke->made) {
            make_ksymbol(maker, false, base + poke->at, poke->new_bytes, "made", poke->time);
            continue;
        }
        for (int i = 0; i < poke->new_bytes && count; i++, bytes++, count--)
            poke->code[i] = *bytes;
        uint8_t old[LONGEST];
        for (int i = 0; i < poke->old_bytes; i++)
            old[i] = now.code[poke->at + i];
        make_text_poke(maker, base + poke->at, old, poke->old_bytes, poke->code, poke->new_bytes,
                       poke->time);
        memcpy(now.code + poke->at, poke->code, poke->new_bytes);
    }
    return made;
}

static void truth_at(const struct poke *pokes, size_t count, uint64_t time, struct truth *truth)
{
    *truth = (struct truth){0};
    for (size_t i = 0; i < count && pokes[i].time <= time; i++) {
        memcpy(truth->code + pokes[i].at, pokes[i].code, pokes[i].new_bytes);
        memset(truth->hole + pokes[i].at, pokes[i].made, pokes[i].new_bytes);
    }
}

// Every byte is there in its state and is what the last record wrote, or what the memory had; no
// two patched sections overlap. Of a function without its code nothing is there.
static void compare(const struct pt_memory *memory, const struct truth *truth, uint32_t state)
{
    bool found[PLACE] = {false}, patched[PLACE] = {false};
    uint8_t code[PLACE];
    char old[64];
    snprintf(old, sizeof old, "/proc/self/fd/%d", memory->descriptors.items[0]);
    for (size_t i = 0; i < memory->sections.count; i++) {
        const struct pt_section_entry *entry = &memory->sections.items[i];
        bool is_old = strcmp(entry->path, old) == 0;
        size_t at = entry->address - base;
        if (state < entry->first_state || state >= entry->end_state)
            continue;
        if (entry->address < base || entry->address + entry->bytes > base + PLACE ||
            pread(is_old ? memory->descriptors.items[0] : memory->states, code + at, entry->bytes,
                  (off_t)entry->offset) != (ssize_t)entry->bytes)
            abort();
        for (; at < entry->address - base + entry->bytes; at++) {
            if (patched[at])
                abort();
            patched[at] = !is_old;
            found[at] = true;
        }
    }
    for (size_t at = 0; at < PLACE; at++)
        if (found[at] == truth->hole[at] || (found[at] && code[at] != truth->code[at]))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct poke pokes[POKES];
    struct maker maker = make_file();
    size_t made = make_pokes(bytes, count, pokes, &maker);
    make_file_end(&maker);
    const struct perf_input input = {"pokes", maker.bytes, maker.count};
    struct perf_data data;
    struct pt_memory memory = {0};
    struct pt_patches patches = {0};
    struct error err;
    const struct truth nothing = {0};
    if (pt_memory_add_bytes(&memory, nothing.code, PLACE, base, PT_SPACE_ALL, &err) < 0 ||
        perf_data_parse(&input, 1, &perf_default_limits, &data, &err) < 0 ||
        pt_patches_add(&data, &memory, &patches, &err) < 0)
        abort();
    for (size_t i = 0; i < made; i++) {
        struct truth truth;
        uint64_t until;
        uint32_t state = pt_patches_state(&patches, pokes[i].time, &until);
        truth_at(pokes, made, pokes[i].time, &truth);
        compare(&memory, &truth, state);
        if (until <= pokes[i].time)
            abort();
    }
    pt_patches_free(&patches);
    pt_memory_free(&memory);
    perf_data_free(&data);
    free(maker.bytes);
    return 0;
}
