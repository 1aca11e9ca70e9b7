// SPDX-License-Identifier: MIT
#include "analysis/pt/walk/pt_walker.h"

#include <stdlib.h>

#include "analysis/pt/walk/pt_stretches.h"

struct pt_walker *pt_walker_alloc(const struct pt_memory *memory, const struct pt_symbols *symbols,
                                  bool careful, struct error *err)
{
    struct pt_walker *walker = calloc(1, sizeof *walker);
    if (!walker)
        error_set(err, ERROR_FAILED, "out of memory for a decoder");
    else if ((walker->code = pt_code_view_alloc(memory, err)) &&
             pt_stretches_init(&walker->stretches, memory, walker->code, symbols, &walker->room,
                               err) == 0) {
        pt_paths_init(&walker->paths, &walker->stretches, symbols);
        pt_trails_init(&walker->trails, &walker->stretches);
        walker->views[ptem_64bit] = walker->code;
        walker->view = ptem_64bit;
        walker->memory = memory;
        walker->symbols = symbols;
        walker->careful = careful;
        walker->part.room = &walker->room;
        return walker;
    }
    pt_walker_free(walker);
    return NULL;
}

void pt_walker_free(struct pt_walker *walker)
{
    if (!walker)
        return;
    pt_blk_free_decoder(walker->decoder);
    pt_trails_free(&walker->trails);
    pt_paths_free(&walker->paths);
    pt_stretches_free(&walker->stretches);
    for (int mode = 0; mode < PT_MODES; mode++)
        if (mode != ptem_64bit)
            pt_code_view_free(walker->views[mode]);
    pt_code_view_free(walker->code);
    pt_piece_free(&walker->part);
    array_free(&walker->functions);
    free(walker->classes);
    free(walker->scratch);
    room_fini(&walker->room);
    free(walker);
}

void pt_walker_expect(struct pt_walker *walker, uint64_t bytes)
{
    walker->room.early = bytes >= PT_MANY_BYTES;
}

// The bytes from the piece's first PSB up to the PSB after the one that ends it: libipt must see
// the ending PSB's header and what follows it.
static int walker_view(struct pt_walker *walker, const struct pt_stream *stream, uint64_t begin,
                       uint64_t end, const uint8_t **out, struct error *err)
{
    size_t bytes = (size_t)(end - begin);
    if (pt_bytes_scattered(&stream->bytes) && bytes > walker->scratch_bytes) {
        free(walker->scratch);
        walker->scratch = malloc(bytes);
        walker->scratch_bytes = walker->scratch ? bytes : 0;
        if (!walker->scratch)
            return error_set(err, ERROR_FAILED, "out of memory for %zu bytes between two PSBs",
                             bytes);
    }
    *out = pt_bytes_view(&stream->bytes, begin, bytes, walker->scratch);
    return 0;
}

int pt_walker_open(struct pt_walker *walker, const struct pt_stream *stream, uint64_t begin,
                   uint64_t end, bool following, struct error *err)
{
    struct pt_config config;
    const uint8_t *data = NULL;
    int result = walker_view(walker, stream, begin, end, &data, err);
    if (result < 0)
        return result;
    pt_config_init(&config);
    walker->data = data;
    config.begin = (uint8_t *)(uintptr_t)data; // libipt only reads these bytes
    config.end = config.begin + (end - begin);
    config.cpu = stream->recorder.cpu;
    if (config.cpu.vendor == pcv_intel)
        pt_cpu_errata(&config.errata, &config.cpu); // an unknown model has no known errata
    if (stream->packets->stray_headers)
        config.errata.bdm70 = 1;
    config.cpuid_0x15_eax = stream->recorder.tsc_ctc_eax;
    config.cpuid_0x15_ebx = stream->recorder.tsc_ctc_ebx;
    config.mtc_freq = stream->recorder.mtc_frequency;
    config.nom_freq = stream->recorder.nominal_ratio;
    walker->following = following;
    if (following) {
        pt_follow_open(&walker->follow, &walker->stretches, &config);
        return 0;
    }
    config.flags.variant.block.end_on_call = 1;
    pt_blk_free_decoder(walker->decoder);
    walker->decoder = pt_blk_alloc_decoder(&config);
    if (!walker->classes)
        walker->classes = calloc(PT_CLASS_CACHE, sizeof *walker->classes);
    if (!walker->decoder || !walker->classes)
        return error_set(err, ERROR_FAILED, "out of memory for a decoder");
    return 0;
}

int pt_walker_change_view(struct pt_walker *walker)
{
    struct pt_code_view **view = &walker->views[walker->mode];
    struct error err;
    if (!*view)
        *view = pt_code_view_alloc(walker->memory, &err);
    if (!*view)
        return -pte_nomem;
    walker->view = walker->mode;
    return pt_walker_set_space(walker, walker->space, &err) < 0 ? -pte_nomem : 0;
}

int pt_walker_set_space(struct pt_walker *walker, uint32_t space, struct error *err)
{
    struct pt_image *image;
    if (walker->following) {
        pt_follow_set_space(&walker->follow, space);
        return 0;
    }
    walker->space = space;
    int result = pt_code_view_image(walker->views[walker->view], space, &image, err);
    if (result == 0)
        pt_blk_set_image(walker->decoder, image);
    return result;
}

const struct pt_function *pt_walker_function(struct pt_walker *walker, uint32_t space,
                                             uint64_t address)
{
    uint64_t hash = (address ^ address >> 12 ^ (uint64_t)space << 7) * 0x9e3779b97f4a7c15u;
    uint8_t *place = &walker->function_places[hash >> 57];
    _Static_assert(PT_FUNCTION_CACHE == 1 << 7, "the hash keeps 7 bits, and a place fits its byte");
    const struct pt_cached_function other = {.address = ~address};
    if (*place == 0 && array_push(&walker->functions, other) == 0)
        *place = (uint8_t)walker->functions.count;
    struct pt_cached_function *cached =
        *place ? &walker->functions.items[*place - 1] : &walker->function;
    if (cached->address != address || cached->space != space || cached == &walker->function) {
        *cached = (struct pt_cached_function){.address = address, .space = space};
        if (!walker->symbols->find(walker->symbols->context, space, address, &cached->function))
            cached->function = (struct pt_function){0};
    }
    return &cached->function;
}

enum pt_insn_class pt_walker_class(struct pt_walker *walker, const struct pt_block *block)
{
    uint8_t code[pt_max_insn_size];
    if (block->truncated)
        return pt_opcode_class(block->raw, block->size, block->mode);
    uint64_t hash = block->end_ip * 0x9e3779b97f4a7c15u;
    struct pt_cached_class *cached = &walker->classes[hash >> 54];
    _Static_assert(PT_CLASS_CACHE == 1 << 10, "the hash keeps 10 bits");
    if (cached->address != block->end_ip || cached->isid != block->isid ||
        cached->view != walker->view) {
        int got = pt_code_view_read(walker->views[walker->view], block->isid, block->end_ip, code,
                                    sizeof code);
        cached->address = block->end_ip;
        cached->isid = block->isid;
        cached->view = walker->view;
        cached->class = pt_opcode_class(code, got > 0 ? (size_t)got : 0, block->mode);
    }
    return cached->class;
}
