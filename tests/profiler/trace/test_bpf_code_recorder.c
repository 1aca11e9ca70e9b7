// SPDX-License-Identifier: MIT
//
// The code of BPF programs that come while a trace is recorded: a program of two functions, loaded
// after the recorder began, is in the log with the instructions that the kernel makes of its
// constants; one that was there before is not, and one that came and went is counted.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <bpf/bpf.h>

#include "base/log_file.h"
#include "profiler/trace/bpf_code_log.h"
#include "profiler/trace/bpf_code_recorder.h"

static char path[] = "/tmp/taillight-bpf-code-XXXXXX";

// A program that calls a second function, which returns the number.
static int load(int number)
{
    const struct bpf_insn code[] = {
        {.code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL, .imm = 1},
        {.code = BPF_JMP | BPF_EXIT},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = number},
        {.code = BPF_JMP | BPF_EXIT},
    };
    return bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, "taillight_test", "GPL", code,
                         sizeof code / sizeof *code, NULL);
}

static uint32_t id_of(int program)
{
    struct bpf_prog_info info = {0};
    uint32_t bytes = sizeof info;
    assert_int_equal(bpf_obj_get_info_by_fd(program, &info, &bytes), 0);
    return info.id;
}

// Whether the machine code moves the number into a register: mov eax, imm32.
static bool moves(const struct bpf_code *record, int32_t number)
{
    uint8_t wanted[5] = {0xb8};
    memcpy(wanted + 1, &number, 4);
    return memmem(record->code, record->bytes, wanted, sizeof wanted) != NULL;
}

// How many of the program's records there are, and how many of them move the number.
static unsigned count_records(uint32_t program, int32_t number, unsigned *moving)
{
    struct log_reader log;
    struct error err;
    unsigned found = 0;
    *moving = 0;
    if (log_reader_open(&log, path, LOG_BPF_CODE, BPF_CODE_LOG_VERSION, sizeof(struct bpf_code),
                        &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < log.count; i++) {
        const struct bpf_code *record = (const struct bpf_code *)log.records + i;
        assert_in_range(record->bytes, 1, BPF_CODE_BYTES);
        if (record->program != program)
            continue;
        assert_true(record->address >> 63);
        found++;
        *moving += moves(record, number);
    }
    log_reader_close(&log);
    return found;
}

static void what_came_is_logged(void **state)
{
    (void)state;
    enum { BEFORE = 0x5a5a0001, AFTER = 0x5a5a0002 };
    struct bpf_code_recorder recorder;
    struct error err;
    json_t *document = NULL;
    unsigned moving;
    int before = load(BEFORE);
    assert_true(before >= 0);
    assert_int_equal(bpf_code_recorder_start(&recorder, path, &err), 0);
    close(load(AFTER)); // came and went
    int after = load(AFTER);
    assert_true(after >= 0);
    assert_int_equal(bpf_code_recorder_poll(&recorder, &err), 0);
    assert_int_equal(bpf_code_recorder_stop(&recorder, &document, &err), 0);
    bpf_code_recorder_fini(&recorder);
    assert_true(json_integer_value(json_object_get(document, "programs")) >= 1);
    assert_true(json_integer_value(json_object_get(document, "missed")) >= 1);
    assert_int_equal(count_records(id_of(after), AFTER, &moving), 2);
    assert_int_equal(moving, 1);
    assert_int_equal(count_records(id_of(before), BEFORE, &moving), 0);
    json_decref(document);
    close(before);
    close(after);
}

static void a_log_that_was_there_goes(void **state)
{
    (void)state;
    struct bpf_code_recorder recorder;
    struct error err;
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(bpf_code_recorder_start(&recorder, path, &err), 0);
    assert_int_equal(access(path, F_OK), -1);
    bpf_code_recorder_fini(&recorder);
}

int main(void)
{
    int probe = mkstemp(path), program = load(1);
    struct bpf_prog_info info = {0};
    uint32_t bytes = sizeof info;
    if (probe < 0)
        return 1;
    close(probe);
    if (program < 0 || bpf_obj_get_info_by_fd(program, &info, &bytes) < 0 ||
        info.jited_prog_len == 0 || info.nr_jited_ksyms == 0) {
        printf("BPF programs cannot be loaded, or their machine code not read (root, "
               "net.core.bpf_jit_enable)\n");
        unlink(path);
        return 77;
    }
    close(program);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_came_is_logged),
        cmocka_unit_test(a_log_that_was_there_goes),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
