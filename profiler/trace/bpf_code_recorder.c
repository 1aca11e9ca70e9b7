// SPDX-License-Identifier: MIT
#include "profiler/trace/bpf_code_recorder.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/trace/bpf_code_log.h"

static const uint64_t records_most = (64 << 20) / sizeof(struct bpf_code);

int bpf_code_recorder_start(struct bpf_code_recorder *recorder, const char *path, struct error *err)
{
    *recorder = (struct bpf_code_recorder){0};
    if (strlen(path) >= sizeof recorder->path)
        return error_set(err, ERROR_INPUT, "%s: the path is too long", path);
    strcpy(recorder->path, path);
    unlink(path);
    for (uint32_t next; bpf_prog_get_next_id(recorder->last, &next) == 0;)
        recorder->last = next;
    if (errno == ENOENT) // there are no more
        return 0;
    return error_set_errno(err, ERROR_FAILED, "cannot ask which BPF programs there are");
}

// --- one program ---------------------------------------------------------------------------------

// All its functions, one behind the other.
struct machine_code {
    uint32_t count;
    uint8_t *code;
    uint64_t *addresses;
    uint32_t *lengths;
};

static void machine_code_free(struct machine_code *code)
{
    free(code->code);
    free(code->addresses);
    free(code->lengths);
}

// Returns 1, 0 where the kernel does not show its code, or a negative error.
static int read_machine_code(int program, struct machine_code *out, struct error *err)
{
    struct bpf_prog_info info = {0};
    uint32_t info_bytes = sizeof info;
    *out = (struct machine_code){0};
    if (bpf_obj_get_info_by_fd(program, &info, &info_bytes) < 0 || info.jited_prog_len == 0 ||
        info.nr_jited_ksyms == 0 || info.nr_jited_func_lens != info.nr_jited_ksyms)
        return 0;
    out->count = info.nr_jited_ksyms;
    out->code = malloc(info.jited_prog_len);
    out->addresses = calloc(out->count, sizeof *out->addresses);
    out->lengths = calloc(out->count, sizeof *out->lengths);
    if (!out->code || !out->addresses || !out->lengths)
        return error_set(err, ERROR_FAILED, "out of memory for the code of a BPF program");
    info = (struct bpf_prog_info){.jited_prog_len = info.jited_prog_len,
                                  .jited_prog_insns = (uintptr_t)out->code,
                                  .nr_jited_ksyms = out->count,
                                  .jited_ksyms = (uintptr_t)out->addresses,
                                  .nr_jited_func_lens = out->count,
                                  .jited_func_lens = (uintptr_t)out->lengths};
    if (bpf_obj_get_info_by_fd(program, &info, &info_bytes) < 0 || !info.jited_prog_insns)
        return 0;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < out->count; i++)
        bytes += out->addresses[i] ? out->lengths[i] : UINT32_MAX;
    return bytes <= info.jited_prog_len;
}

static int write_function(struct bpf_code_recorder *recorder, uint32_t program, uint64_t address,
                          const uint8_t *code, uint32_t bytes, struct error *err)
{
    int result = 0;
    for (uint32_t at = 0; at < bytes && result == 0; at += BPF_CODE_BYTES) {
        struct bpf_code record = {
            .address = address + at,
            .program = program,
            .bytes = bytes - at < BPF_CODE_BYTES ? bytes - at : BPF_CODE_BYTES,
        };
        memcpy(record.code, code + at, record.bytes);
        result = log_writer_append(&recorder->log, &record, 1, err);
    }
    return result;
}

static int write_program(struct bpf_code_recorder *recorder, uint32_t program,
                         const struct machine_code *code, struct error *err)
{
    uint64_t at = 0;
    if (recorder->log.header.records >= records_most) {
        recorder->unfit++;
        return 0;
    }
    int result = recorder->open
                     ? 0
                     : log_writer_open(&recorder->log, recorder->path, LOG_BPF_CODE,
                                       BPF_CODE_LOG_VERSION, sizeof(struct bpf_code), err);
    recorder->open = result == 0;
    for (uint32_t i = 0; i < code->count && result == 0; i++) {
        result = write_function(recorder, program, code->addresses[i], code->code + at,
                                code->lengths[i], err);
        at += code->lengths[i];
    }
    recorder->programs += result == 0;
    return result;
}

static int take_program(struct bpf_code_recorder *recorder, uint32_t program, struct error *err)
{
    struct machine_code code = {0};
    int fd = bpf_prog_get_fd_by_id(program);
    int result = fd < 0 ? 0 : read_machine_code(fd, &code, err);
    if (result == 0)
        recorder->missed++;
    else if (result > 0)
        result = write_program(recorder, program, &code, err);
    machine_code_free(&code);
    if (fd >= 0)
        close(fd);
    return result;
}

// --- all of them ---------------------------------------------------------------------------------

int bpf_code_recorder_poll(struct bpf_code_recorder *recorder, struct error *err)
{
    int result = 0;
    for (uint32_t next; result == 0 && bpf_prog_get_next_id(recorder->last, &next) == 0;) {
        recorder->missed += next - recorder->last - 1; // have gone already
        recorder->last = next;
        result = take_program(recorder, next, err);
    }
    return result;
}

int bpf_code_recorder_stop(struct bpf_code_recorder *recorder, json_t **document, struct error *err)
{
    int result = bpf_code_recorder_poll(recorder, err);
    if (recorder->open && result == 0) {
        recorder->open = false;
        result = log_writer_close(&recorder->log, recorder->missed + recorder->unfit, err);
    }
    *document = json_pack("{s:I, s:I, s:I}", "programs", (json_int_t)recorder->programs, "missed",
                          (json_int_t)recorder->missed, "unfit", (json_int_t)recorder->unfit);
    return result;
}

void bpf_code_recorder_fini(struct bpf_code_recorder *recorder)
{
    if (recorder->open)
        log_writer_discard(&recorder->log);
    recorder->open = false;
}
