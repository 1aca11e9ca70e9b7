// SPDX-License-Identifier: MIT
//
// Any bytes as a bpf-code.tlog beside a recording in which two BPF programs come and go: refused
// with the file's name, or each record is taken as it is or counted as malformed, and what the
// decoder is then shown as code is in its bytes. The input: whether it brings a header of its own
// ('H'), then the file; without one it gets a header that is right, and records whose addresses,
// programs and lengths are tamed in most.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analysis/perf/perf_data.h"
#include "analysis/pt/image/pt_patches.h"
#include "base/log_file.h"
#include "profiler/trace/bpf_code_log.h"
#include "tests/analysis/perf/perf_data_maker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PROGRAMS = 2, PROGRAM_BYTES = 64, MOST_RECORDS = 64 };
static const uint64_t base = 0xffffffffc0000000;

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void put(int fd, const void *bytes, size_t count)
{
    must(write(fd, bytes, count) == (ssize_t)count);
}

// A record is 8 bytes of the input, and as many of what follows as its code.
static size_t put_records(int fd, const uint8_t *data, size_t size)
{
    size_t count = 0;
    for (; count < MOST_RECORDS && size >= 8; count++) {
        struct bpf_code record = {.address = base + PROGRAM_BYTES * (data[0] % 4u) + data[1] % 32u,
                                  .program = data[2] % (PROGRAMS + 2u),
                                  .bytes = data[3]}; // up to 255, of which 240 can be
        if (data[4] & 1)
            memcpy(&record.address, data, 8);
        if (data[4] & 2)
            record.bytes = (uint32_t)data[5] << 24 | data[6];
        data += 8;
        size -= 8;
        const size_t code = size < data[-1] % 32u ? size : data[-1] % 32u;
        memcpy(record.code, data, code);
        data += code;
        size -= code;
        put(fd, &record, sizeof record);
    }
    return count;
}

static void put_file(int fd, const uint8_t *data, size_t size)
{
    struct log_header header = {.magic = "TAILLOG",
                                .kind = LOG_BPF_CODE,
                                .version = BPF_CODE_LOG_VERSION,
                                .header_bytes = sizeof header,
                                .record_bytes = sizeof(struct bpf_code)};
    if (data[0] == 'H') {
        put(fd, data + 1, size - 1);
        return;
    }
    put(fd, &header, sizeof header);
    header.records = put_records(fd, data + 1, size - 1);
    must(pwrite(fd, &header, sizeof header, 0) == sizeof header);
}

// Each program comes, and goes; the second comes where the first was.
static void make_recording(struct maker *maker)
{
    *maker = make_file();
    for (uint32_t program = 1; program <= PROGRAMS; program++) {
        const uint64_t time = 1000 * program;
        make_ksymbol(maker, false, base, PROGRAM_BYTES, "bpf_prog", time);
        make_bpf_event(maker, true, program, time + 1);
        make_bpf_event(maker, false, program, time + 500);
        make_ksymbol(maker, true, base, PROGRAM_BYTES, "bpf_prog", time + 501);
    }
    make_file_end(maker);
}

static void check_taken(const struct perf_data *data, const struct log_reader *log,
                        int64_t malformed)
{
    const struct bpf_code *records = log->records;
    size_t taken = 0;
    for (size_t i = 0; i < log->count; i++) {
        if (records[i].bytes > BPF_CODE_BYTES ||
            records[i].address + records[i].bytes < records[i].bytes)
            continue;
        must(taken < data->bpf_functions.count);
        const struct perf_bpf_function *function = &data->bpf_functions.items[taken++];
        must(function->address == records[i].address && function->bytes == records[i].bytes);
        must(function->program == records[i].program);
        must(memcmp(function->code, records[i].code, function->bytes) == 0);
    }
    must(taken == data->bpf_functions.count && taken + (size_t)malformed == log->count);
}

// All that is shown is there to be read, of states that there are, and nothing overlaps in one.
static void check_shown(const struct pt_memory *memory, const struct pt_patches *patches)
{
    for (size_t i = 0; i < memory->sections.count; i++) {
        const struct pt_section_entry *one = &memory->sections.items[i];
        uint8_t code[4096];
        must(one->bytes <= sizeof code && one->address + one->bytes > one->address);
        must(one->first_state < one->end_state);
        must(pread(memory->states, code, one->bytes, (off_t)one->offset) == (ssize_t)one->bytes);
        for (size_t k = 0; k < i; k++) {
            const struct pt_section_entry *before = &memory->sections.items[k];
            must(before->address + before->bytes <= one->address ||
                 one->address + one->bytes <= before->address ||
                 before->end_state <= one->first_state || one->end_state <= before->first_state);
        }
    }
    for (uint64_t time = 0; time < 4000; time += 250) {
        uint64_t until;
        must(pt_patches_state(patches, time, &until) <= patches->times.count && until > time);
    }
}

static void use(const struct log_reader *log)
{
    struct maker maker;
    struct perf_data data;
    struct pt_memory memory = {0};
    struct pt_patches patches = {0};
    struct error err;
    make_recording(&maker);
    const struct perf_input input = {"programs", maker.bytes, maker.count};
    must(perf_data_parse(&input, 1, &perf_default_limits, &data, &err) == 0);
    const int64_t malformed = perf_data_add_bpf_code(&data, log->records, log->count);
    must(malformed >= 0);
    check_taken(&data, log, malformed);
    must(pt_patches_add(&data, &memory, &patches, &err) == 0);
    check_shown(&memory, &patches);
    pt_patches_free(&patches);
    pt_memory_free(&memory);
    perf_data_free(&data);
    free(maker.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct log_reader log;
    struct error err;
    char path[64];
    if (size < 1)
        return 0;
    int fd = memfd_create("bpf-code", MFD_CLOEXEC);
    must(fd >= 0);
    put_file(fd, data, size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (log_reader_open(&log, path, LOG_BPF_CODE, BPF_CODE_LOG_VERSION, sizeof(struct bpf_code),
                        &err) == 0) {
        use(&log);
        log_reader_close(&log);
    } else {
        must(strstr(err.text, path) != NULL);
    }
    close(fd);
    return 0;
}
