// SPDX-License-Identifier: MIT
//
// What decoders are compared with: a walk over all blocks by libipt alone, which only counts.
#ifndef TESTS_ANALYSIS_PT_PT_PLAIN_WALK_H
#define TESTS_ANALYSIS_PT_PT_PLAIN_WALK_H

#include <intel-pt.h>

#include "analysis/pt/walk/pt_stream.h"

struct plain_walk {
    uint64_t instructions, errors;
};

static inline void plain_config(struct pt_config *config, const struct pt_recorder *recorder,
                                const uint8_t *data, size_t bytes)
{
    pt_config_init(config);
    config->begin = (uint8_t *)(uintptr_t)data; // libipt only reads these bytes
    config->end = config->begin + bytes;
    config->cpu = recorder->cpu;
    if (config->cpu.vendor == pcv_intel)
        pt_cpu_errata(&config->errata, &config->cpu);
    config->cpuid_0x15_eax = recorder->tsc_ctc_eax;
    config->cpuid_0x15_ebx = recorder->tsc_ctc_ebx;
    config->mtc_freq = recorder->mtc_frequency;
    config->nom_freq = recorder->nominal_ratio;
    config->flags.variant.block.end_on_call = 1;
}

// Adds to *out. -1: no memory for a decoder.
static inline int plain_walk(struct pt_image *image, const struct pt_recorder *recorder,
                             const uint8_t *data, size_t bytes, struct plain_walk *out)
{
    struct pt_config config;
    plain_config(&config, recorder, data, bytes);
    struct pt_block_decoder *decoder = pt_blk_alloc_decoder(&config);
    if (!decoder)
        return -1;
    pt_blk_set_image(decoder, image);
    int status;
    while ((status = pt_blk_sync_forward(decoder)) >= 0) {
        while (status >= 0 && !((status & pts_eos) && !(status & pts_event_pending))) {
            struct pt_event event;
            struct pt_block block;
            if (status & pts_event_pending) {
                status = pt_blk_event(decoder, &event, sizeof event);
                continue;
            }
            block.ninsn = 0;
            status = pt_blk_next(decoder, &block, sizeof block);
            out->instructions += block.ninsn;
        }
        out->errors += status < 0 && status != -pte_eos;
    }
    pt_blk_free_decoder(decoder);
    return 0;
}

#endif
