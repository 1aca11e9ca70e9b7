// SPDX-License-Identifier: MIT
//
// Any bytes as a PT stream, over a small program: the scan and the walk end, and never crash. The
// first two bytes choose the way and the size of pieces.
#include <stdint.h>
#include <string.h>

#include "tests/analysis/pt/pt_round_trip.h"

struct sum {
    uint64_t instructions;
    struct pt_calls *calls;
};

static int take(void *context, size_t stream, const struct pt_piece *piece, bool contiguous,
                struct error *err)
{
    struct sum *sum = context;
    (void)stream;
    sum->instructions += piece->counts.instructions;
    return pt_calls_take(sum->calls, piece, contiguous, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct program program;
    static struct pt_memory memory;
    static bool ready;
    struct error err = {0};
    if (!ready) {
        program_make(&program, 1, 0);
        if (memory_of(&program, &memory, &err) < 0)
            return 0;
        ready = true;
    }
    if (bytes < 2)
        return 0;
    // PSBs and TIP.PGEs are hard to guess: these stand for them.
    static const uint8_t psb[16] = {2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
                                    2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82};
    static const uint8_t begin[] = {0x02, 0x23, 0x99, 0x01, 0x71, 0x00,
                                    0x00, 0x40, 0x00, 0x00, 0x00};
    uint8_t stream[1 << 14];
    size_t length = 0;
    for (size_t i = 2; i < bytes && length + 64 < sizeof stream; i++) {
        if (data[i] == 0xfe) {
            memcpy(stream + length, psb, sizeof psb);
            length += sizeof psb;
        } else if (data[i] == 0xfc) {
            memcpy(stream + length, begin, sizeof begin);
            length += sizeof begin;
        } else {
            stream[length++] = data[i];
        }
    }
    struct pt_bytes source = {.bytes = length, .data = stream};
    struct pt_packets packets;
    struct pt_symbols symbols = {.context = &program, .find = program_find};
    bool some = data[0] & 0x40; // only some times, with a thin index of PSBs
    if (pt_packets_scan_thinly(&source, some ? 4 : PT_MOST_SYNCS, &packets, &err) < 0)
        return 0;
    struct pt_packets_part all = {.to = UINT64_MAX, .glance = true};
    if (some && data[1] & 1 && pt_packets_scan_part(&source, 4, &all, &err) == 0) {
        bool enough = pt_packets_glanced(&all.found);
        pt_packets_free(enough ? &packets : &all.found);
        packets = enough ? all.found : packets;
    }
    struct pt_window times[] = {{1, data[1]}, {300, UINT16_MAX}, {UINT32_MAX, UINT64_MAX}};
    struct pt_windows windows = {.items = times, .count = sizeof times / sizeof *times};
    if (some && pt_windows_refine(&windows, &source, &packets, &err) < 0) {
        pt_packets_free(&packets);
        return 0;
    }
    struct pt_stream one = {.bytes = source, .packets = &packets};
    one.windows = some ? &windows : NULL;
    one.recorder.nominal_ratio = data[0] & 0x3f;
    struct pt_decode_options options = {.threads = 1, .piece_bytes = 1 + data[1]};
    struct sum sum = {.calls =
                          pt_calls_alloc(NULL, packets.count[PT_KIND_TSC] > 0, NULL, NULL, &err)};
    pt_decode(&memory, data[0] & 0x80 ? &symbols : NULL, &one, 1, &options, take, &sum, &err);
    pt_calls_finish(sum.calls, &err);
    pt_calls_free(sum.calls);
    pt_packets_free(&packets);
    return 0;
}
