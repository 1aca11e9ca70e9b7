// SPDX-License-Identifier: MIT
//
// Decodes an Intel PT stream of the lab with libipt, instruction by instruction, and holds it
// against the truth log of the same virtual CPU: every executed call in order, where tracing went
// on and off, what was lost, and how many instructions ran. The code comes from the truth log, too,
// in the state it had when it ran, so neither programs nor a kernel image are needed.
//
//     lab_check STREAM|PERF.DATA TRUTH [TSC_PER_CTC MTC_PERIOD]
//
// Prints one line of JSON; exit 1 where a difference is found.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <intel-pt.h>

#include "analysis/perf/perf_data.h"
#include "base/array.h"
#include "base/error.h"
#include "tests/guest/intel_pt/lab_page.h"
#include "tests/lab/truth.h"

enum { PAGE = 4096, SLOTS = 1 << 20, SHOWN = 20 };

struct page {
    uint64_t space, number; // space: CR3, 0: kernel
    uint8_t bytes[PAGE], known[PAGE / 8];
};

struct check {
    // The truth, and how far it was matched.
    const uint8_t *truth;
    size_t truth_bytes, at;
    uint64_t cr3;
    bool kernel, user;   // is traced; where the kernel is, the stream tells CR3
    struct page **pages; // SLOTS, by hash
    // What was found.
    uint64_t instructions, calls, on, off, overflows, doubts, errors, differences, time_back;
    uint64_t true_calls, true_instructions;
    uint64_t target; // where the last call should have gone; 0: not known
    uint64_t traced_before, instructions_before; // when tracing was off last
    bool gaps;                                   // something was lost since then
};

// --- code ----------------------------------------------------------------------------------------

static struct page **page_slot(struct check *check, uint64_t space, uint64_t number)
{
    uint64_t hash = (number ^ space * 31) * 0x9e3779b97f4a7c15ULL >> 44;
    while (check->pages[hash] &&
           (check->pages[hash]->number != number || check->pages[hash]->space != space))
        hash = (hash + 1) & (SLOTS - 1);
    return &check->pages[hash];
}

static void learn_code(struct check *check, uint64_t address, uint64_t space, const uint8_t *bytes,
                       uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t place = address + i;
        struct page **slot = page_slot(check, space, place / PAGE);
        if (!*slot) {
            *slot = calloc(1, sizeof **slot);
            if (!*slot)
                abort();
            (*slot)->space = space;
            (*slot)->number = place / PAGE;
        }
        (*slot)->bytes[place % PAGE] = bytes[i];
        (*slot)->known[place % PAGE / 8] |= (uint8_t)(1 << (place & 7));
    }
}

static int read_code(uint8_t *buffer, size_t size, const struct pt_asid *asid, uint64_t ip,
                     void *context)
{
    struct check *check = context;
    // Where the kernel is not traced there is no PIP, and the truth is never far ahead.
    uint64_t space = (int64_t)ip < 0 ? 0 : check->kernel ? asid->cr3 : check->cr3;
    size_t found = 0;
    for (; found < size; found++) {
        uint64_t place = ip + found;
        const struct page *page = *page_slot(check, space, place / PAGE);
        if (!page || !(page->known[place % PAGE / 8] & 1 << (place & 7)))
            break;
        buffer[found] = page->bytes[place % PAGE];
    }
    return found ? (int)found : -pte_nomap;
}

// --- the truth -----------------------------------------------------------------------------------

// The next record that the decoder should see, or NULL at the end; the code before it is learned.
static const struct truth_record *truth_next(struct check *check)
{
    while (check->at + sizeof(struct truth_record) <= check->truth_bytes) {
        const struct truth_record *record = (const void *)(check->truth + check->at);
        if (record->bytes > check->truth_bytes - check->at - sizeof *record)
            break; // a record that was being written
        if (record->kind == TRUTH_CODE) {
            learn_code(check, record->a, record->b, (const uint8_t *)(record + 1), record->bytes);
        } else if (record->kind == TRUTH_CR3) {
            check->cr3 = record->a;
        } else if (record->kind == TRUTH_BEGIN) {
            check->kernel = record->a & LAB_OS;
            check->user = record->a & LAB_USER;
        } else if (record->kind != TRUTH_RING && record->kind != TRUTH_WENT) {
            return record;
        }
        check->at += sizeof *record + ((record->bytes + 7) & ~7U);
    }
    return NULL;
}

static void truth_take(struct check *check)
{
    const struct truth_record *record = truth_next(check);
    if (record->kind == TRUTH_CALL)
        check->true_calls++;
    if (record->kind == TRUTH_OFF)
        check->true_instructions = record->b;
    check->at += sizeof *record;
    truth_next(check);
}

static const char *kind_name(const struct truth_record *record)
{
    static const char *const names[] = {"nothing", "code",  "call", "on",    "off",
                                        "lost",    "found", "CR3",  "begin", "doubt"};
    return record && record->kind < sizeof names / sizeof *names ? names[record->kind] : "the end";
}

static void differ(struct check *check, const char *what, uint64_t ip)
{
    const struct truth_record *record = truth_next(check);
    if (check->differences++ < SHOWN)
        fprintf(stderr,
                "%s at %" PRIx64 " (instruction %" PRIu64 ", call %" PRIu64
                "); the truth: %s %" PRIx64 " %" PRIx64 "\n",
                what, ip, check->instructions, check->calls, kind_name(record),
                record ? record->a : 0, record ? record->b : 0);
}

// How many ran since tracing was off last. Of the kernel alone libipt counts a few less: where it
// changes CR3 on its way out, it takes that for the end.
static void compare_instructions(struct check *check, uint64_t traced, uint64_t ip)
{
    uint64_t ran = traced - check->traced_before,
             seen = check->instructions - check->instructions_before;
    if (ran != seen && !check->gaps && check->user)
        differ(check, "another number of instructions", ip);
    check->gaps = false;
    check->traced_before = traced;
    check->instructions_before = check->instructions;
}

// The decoder saw `kind` at `ip`.
static void expect(struct check *check, enum truth_kind kind, uint64_t ip, const char *what)
{
    const struct truth_record *record = truth_next(check);
    // Behind the last packet that was kept it may go on where no packet is needed.
    if (record && (record->kind == TRUTH_LOST || record->kind == TRUTH_DOUBT) && kind == TRUTH_CALL)
        return;
    if (!record || record->kind != kind || (ip && record->a != ip)) {
        differ(check, what, ip);
        return;
    }
    if (kind == TRUTH_CALL)
        check->target = record->b;
    if (kind == TRUTH_OFF)
        compare_instructions(check, record->b, ip);
    truth_take(check);
}

static void saw_overflow(struct check *check, uint64_t ip)
{
    const struct truth_record *record = truth_next(check);
    check->overflows++;
    check->gaps = true;
    if (!record || (record->kind != TRUTH_LOST && record->kind != TRUTH_DOUBT)) {
        differ(check, "an overflow", ip);
        return;
    }
    while (record && record->kind != TRUTH_FOUND) {
        check->doubts += record->kind == TRUTH_DOUBT;
        truth_take(check);
        record = truth_next(check);
    }
    if (record)
        truth_take(check);
}

// --- the decoder ---------------------------------------------------------------------------------

static int take_events(struct check *check, struct pt_insn_decoder *decoder, int status)
{
    while (status >= 0 && (status & pts_event_pending)) {
        struct pt_event event;
        status = pt_insn_event(decoder, &event, sizeof event);
        if (status < 0)
            break;
        switch (event.type) {
        case ptev_enabled:
            check->on++;
            check->target = 0;
            expect(check, TRUTH_ON, event.variant.enabled.ip, "on");
            break;
        case ptev_disabled:
        case ptev_async_disabled:
            check->off++;
            check->target = 0;
            expect(check, TRUTH_OFF, 0, "off");
            break;
        case ptev_overflow:
            check->target = 0;
            saw_overflow(check, event.variant.overflow.ip);
            break;
        case ptev_async_branch:
            if (check->target && event.variant.async_branch.from == check->target)
                check->target = 0;
            break;
        default:
            break;
        }
    }
    return status;
}

static void take_instruction(struct check *check, const struct pt_insn *instruction)
{
    check->instructions++;
    if (check->target && instruction->ip != check->target)
        differ(check, "a call went elsewhere", instruction->ip);
    check->target = 0;
    if (instruction->iclass == ptic_call) {
        check->calls++;
        expect(check, TRUTH_CALL, instruction->ip, "a call");
    }
}

static void decode(struct check *check, struct pt_insn_decoder *decoder)
{
    int status;
    uint64_t time = 0;
    struct pt_insn instruction;
    truth_next(check);
    while ((status = pt_insn_sync_forward(decoder)) >= 0) {
        for (;;) {
            uint64_t now = 0;
            instruction = (struct pt_insn){.iclass = ptic_error};
            status = take_events(check, decoder, status);
            if (status < 0 || (status & pts_eos))
                break;
            status = pt_insn_next(decoder, &instruction, sizeof instruction);
            if (status >= 0 || instruction.iclass != ptic_error)
                take_instruction(check, &instruction);
            if (status < 0)
                break;
            if (pt_insn_time(decoder, &now, NULL, NULL) >= 0) {
                check->time_back += now < time;
                time = now;
            }
            if (check->differences > SHOWN)
                return;
        }
        if (status < 0 && status != -pte_eos) {
            uint64_t offset = 0;
            pt_insn_get_offset(decoder, &offset);
            if (check->errors++ < SHOWN)
                fprintf(stderr, "%s at byte %" PRIu64 ", instruction %" PRIu64 ", %" PRIx64 "\n",
                        pt_errstr(pt_errcode(status)), offset, check->instructions, instruction.ip);
            check->gaps = true;
            if (check->errors > SHOWN)
                return;
        }
    }
}

// --- input ---------------------------------------------------------------------------------------

static uint8_t *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        exit(2);
    }
    *bytes = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = malloc(*bytes + 1);
    if (!data || fread(data, 1, *bytes, file) != *bytes) {
        perror(path);
        exit(2);
    }
    fclose(file);
    return data;
}

// The AUX data of one CPU; empty where there is none. The TSC is a stream's only clock, unless the
// recording knows how MTC counts.
static uint8_t *read_recording(const char *path, uint32_t cpu, size_t *bytes)
{
    struct perf_data data;
    struct error err;
    uint8_t *all = NULL;
    *bytes = 0;
    if (perf_data_open(path, &perf_default_limits, &data, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(2);
    }
    for (size_t i = 0; i < data.streams.count; i++) {
        const struct perf_aux_stream *stream = &data.streams.items[i];
        if (stream->cpu != cpu)
            continue;
        all = malloc(stream->bytes + 1);
        for (size_t j = 0; all && j < stream->extents.count; j++) {
            const struct perf_aux_extent *extent = &stream->extents.items[j];
            memcpy(all + *bytes, extent->data + extent->overlap, extent->bytes - extent->overlap);
            *bytes += extent->bytes - extent->overlap;
        }
    }
    perf_data_free(&data);
    return all ? all : calloc(1, 1);
}

int main(int argc, char **argv)
{
    struct check check = {0};
    size_t bytes;
    if (argc != 3 && argc != 5) {
        fprintf(stderr, "usage: lab_check STREAM|PERF.DATA TRUTH [TSC_PER_CTC MTC_PERIOD]\n");
        return 2;
    }
    check.truth = read_file(argv[2], &check.truth_bytes);
    const struct truth_header *header = (const void *)check.truth;
    if (check.truth_bytes < sizeof *header || header->magic != TRUTH_MAGIC) {
        fprintf(stderr, "%s is no truth log\n", argv[2]);
        return 2;
    }
    check.at = sizeof *header;
    check.pages = calloc(SLOTS, sizeof(struct page *));
    uint8_t *stream = strstr(argv[1], "perf.data")
                          ? read_recording(argv[1], (uint32_t)header->cpu, &bytes)
                          : read_file(argv[1], &bytes);
    struct pt_image *image = pt_image_alloc("lab");
    struct pt_config config;
    pt_config_init(&config);
    config.begin = stream;
    config.end = stream + bytes;
    if (argc == 5) {
        config.cpuid_0x15_eax = 1;
        config.cpuid_0x15_ebx = (uint32_t)strtoul(argv[3], NULL, 10);
        config.mtc_freq = (uint8_t)strtoul(argv[4], NULL, 10);
    }
    pt_image_set_callback(image, read_code, &check);
    struct pt_insn_decoder *decoder = bytes ? pt_insn_alloc_decoder(&config) : NULL;
    if (decoder) {
        pt_insn_set_image(decoder, image);
        decode(&check, decoder);
        pt_insn_free_decoder(decoder);
    }
    uint64_t unseen = 0; // calls that the decoder should have come to
    for (const struct truth_record *record; (record = truth_next(&check)); truth_take(&check))
        unseen += record->kind == TRUTH_CALL;
    printf("{\"cpu\": %" PRIu64 ", \"bytes\": %zu, \"instructions\": %" PRIu64
           ", \"true_instructions\": %" PRIu64 ", \"calls\": %" PRIu64 ", \"true_calls\": %" PRIu64
           ", \"on\": %" PRIu64 ", \"off\": %" PRIu64 ", \"overflows\": %" PRIu64
           ", \"doubts\": %" PRIu64 ", \"errors\": %" PRIu64 ", \"differences\": %" PRIu64
           ", \"unseen_calls\": %" PRIu64 ", \"time_back\": %" PRIu64 "}\n",
           header->cpu, bytes, check.instructions, check.true_instructions, check.calls,
           check.true_calls, check.on, check.off, check.overflows, check.doubts, check.errors,
           check.differences, unseen, check.time_back);
    pt_image_free(image);
    return check.differences || check.errors || unseen;
}
