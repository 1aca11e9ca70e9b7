// SPDX-License-Identifier: MIT
//
// The code of BPF programs in a perf.data: its feature BPF_PROG_INFO, which holds what the kernel
// told perf of each program (struct bpf_prog_info, include/uapi/linux/bpf.h) and behind it the
// arrays that this points to, by their offsets (tools/perf/util/bpf-utils.h, struct perf_bpil).
#include "analysis/perf/perf_data_private.h"

#include <inttypes.h>

enum {
    // bits of `arrays`: which of the arrays are there
    HAS_CODE = 1 << 0,
    HAS_ADDRESSES = 1 << 3,
    HAS_LENGTHS = 1 << 4,
    // struct bpf_prog_info
    ID_AT = 4,
    CODE_BYTES_AT = 16,
    CODE_AT = 24,
    ADDRESS_COUNT_AT = 104,
    LENGTH_COUNT_AT = 108,
    ADDRESSES_AT = 112,
    LENGTHS_AT = 120,
    INFO_BYTES_NEEDED = 128, // up to and with these
};

struct program {
    const uint8_t *info, *data;
    uint32_t data_bytes;
};

// An array of the program; NULL where it does not lie in the data.
static const uint8_t *array_at(const struct program *program, size_t pointer, uint64_t bytes)
{
    uint64_t offset = perf_u64(program->info + pointer);
    if (offset > program->data_bytes || bytes > program->data_bytes - offset)
        return NULL;
    return program->data + offset;
}

static void read_program(struct perf_reader *reader, const struct program *program)
{
    uint32_t count = perf_u32(program->info + ADDRESS_COUNT_AT);
    uint32_t left = perf_u32(program->info + CODE_BYTES_AT);
    const uint8_t *code = array_at(program, CODE_AT, left);
    const uint8_t *addresses = array_at(program, ADDRESSES_AT, (uint64_t)count * 8);
    const uint8_t *lengths = array_at(program, LENGTHS_AT, (uint64_t)count * 4);
    if (!code || !addresses || !lengths || perf_u32(program->info + LENGTH_COUNT_AT) != count) {
        perf_complain(reader, "the code of BPF program %" PRIu32 " lies outside of it",
                      perf_u32(program->info + ID_AT));
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct perf_bpf_function function = {.address = perf_u64(addresses + i * 8),
                                             .code = code,
                                             .bytes = perf_u32(lengths + i * 4),
                                             .program = perf_u32(program->info + ID_AT)};
        if (function.bytes > left || function.address > UINT64_MAX - function.bytes) {
            perf_complain(reader, "BPF program %" PRIu32 " has less code than functions",
                          function.program);
            return;
        }
        code += function.bytes;
        left -= function.bytes;
        if (function.bytes && array_push(&reader->data->bpf_functions, function) < 0)
            reader->out_of_memory = true;
    }
}

void perf_read_bpf_programs(struct perf_reader *reader, const uint8_t *bytes, uint64_t count)
{
    enum { COUNT_BYTES = 4, HEADER_BYTES = 16 };
    if (reader->compressed) { // its bytes go away
        perf_complain(reader, "code of BPF programs within compressed records is left out");
        return;
    }
    uint64_t at = COUNT_BYTES;
    uint32_t programs = count >= COUNT_BYTES ? perf_u32(bytes) : 0;
    for (uint32_t i = 0; i < programs; i++) {
        uint64_t left = count - at;
        uint64_t info_bytes = left >= HEADER_BYTES ? perf_u32(bytes + at) : 0;
        uint64_t data_bytes = left >= HEADER_BYTES ? perf_u32(bytes + at + 4) : 0;
        if (left < HEADER_BYTES || info_bytes + data_bytes > left - HEADER_BYTES) {
            perf_complain(reader, "the list of BPF programs ends within program %" PRIu32, i);
            return;
        }
        const uint64_t needed = HAS_CODE | HAS_ADDRESSES | HAS_LENGTHS;
        bool whole = (perf_u64(bytes + at + 8) & needed) == needed;
        struct program program = {.info = bytes + at + HEADER_BYTES,
                                  .data = bytes + at + HEADER_BYTES + info_bytes,
                                  .data_bytes = (uint32_t)data_bytes};
        if (whole && info_bytes >= INFO_BYTES_NEEDED) // else it was not translated
            read_program(reader, &program);
        at += HEADER_BYTES + info_bytes + data_bytes;
    }
}
