// SPDX-License-Identifier: MIT
//
// The file that a load whose samples fit into memory leaves when it is killed, with this test as
// the load threads: it has what is final, once, in the order of the schedule or of time, and
// nothing that may still change; what is known late is in it when the load ends by itself; and a
// full disk ends it whole.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/hash.h"
#include "loadgen/engine/sample_journal.h"

enum { PARTS = 3, EACH = 700 };

static char folder[] = "/tmp/taillight-journal-XXXXXX";
static char path[sizeof folder + 20];

struct lab {
    struct sample samples[PARTS][EACH];
    struct sample_journal journal;
};

// Of an open loop the requests are dealt in turn; of a closed one each part has its own pace.
static struct lab *new_lab(bool dealt)
{
    struct lab *lab = calloc(1, sizeof *lab);
    struct error err;
    assert_int_equal(sample_journal_open(&lab->journal, path, PARTS, dealt, &err), 0);
    for (uint32_t part = 0; part < PARTS; part++) {
        uint64_t at = 0;
        for (uint32_t i = 0; i < EACH; i++) {
            at += dealt ? 0 : 1 + hash64(part * EACH + i) % 1000;
            lab->samples[part][i] =
                (struct sample){.intended_tsc = dealt ? i * PARTS + part : at * PARTS + part,
                                .key = i * PARTS + part};
        }
        lab->journal.parts[part].samples = lab->samples[part];
    }
    return lab;
}

static void free_lab(struct lab *lab)
{
    sample_journal_close(&lab->journal);
    free(lab);
    unlink(path);
}

static void say_final(struct lab *lab, uint32_t part, uint64_t final)
{
    atomic_store(&lab->journal.parts[part].sent.final, final);
}

// What is in the file that has no name yet: the caller frees it.
static struct sample *written(const struct lab *lab, size_t *count)
{
    const struct new_file *out = &lab->journal.file->out;
    struct sample *samples = malloc((PARTS * EACH + 1) * sizeof *samples);
    FILE *file = fopen(out->partial, "re");
    assert_non_null(file);
    assert_int_equal(fseek(file, sizeof(struct log_header), SEEK_SET), 0);
    *count = fread(samples, sizeof *samples, PARTS * EACH + 1, file);
    fclose(file);
    return samples;
}

static void check_dealt(const struct lab *lab, size_t expected)
{
    size_t count;
    struct sample *samples = written(lab, &count);
    assert_int_equal(count, expected);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(samples[i].key, i);
    free(samples);
}

static void what_is_final_is_written_in_turn(void **state)
{
    (void)state;
    struct lab *lab = new_lab(true);
    uint64_t final[PARTS] = {0};
    sample_journal_look(&lab->journal);
    check_dealt(lab, 0);
    for (unsigned turn = 0; final[0] + final[1] + final[2] < PARTS * EACH; turn++) {
        const uint32_t part = (uint32_t)(hash64(turn) % PARTS);
        final[part] += hash64(turn + 1) % 90;
        final[part] = final[part] < EACH ? final[part] : EACH;
        say_final(lab, part, final[part]);
        sample_journal_look(&lab->journal);
        // Whose turn it is has no more.
        uint64_t expected = UINT64_MAX;
        for (uint32_t i = 0; i < PARTS; i++)
            if (final[i] * PARTS + i < expected)
                expected = final[i] * PARTS + i;
        check_dealt(lab, expected);
    }
    free_lab(lab);
}

static void a_closed_loop_is_written_in_order_of_time(void **state)
{
    (void)state;
    struct lab *lab = new_lab(false);
    size_t count;
    say_final(lab, 0, EACH);
    say_final(lab, 1, EACH / 2);
    sample_journal_look(&lab->journal);
    free(written(lab, &count));
    assert_int_equal(count, 0); // the third may have had the first one
    say_final(lab, 2, EACH);
    atomic_store(&lab->journal.parts[0].sent.ended, true);
    atomic_store(&lab->journal.parts[2].sent.ended, true);
    sample_journal_look(&lab->journal);
    struct sample *samples = written(lab, &count);
    assert_true(count > EACH && count < PARTS * EACH);
    for (size_t i = 1; i < count; i++)
        assert_true(samples[i - 1].intended_tsc < samples[i].intended_tsc);
    assert_int_equal(samples[count - 1].intended_tsc,
                     lab->samples[1][EACH / 2 - 1].intended_tsc); // its next may be before others'
    free(samples);
    say_final(lab, 1, EACH);
    atomic_store(&lab->journal.parts[1].sent.ended, true);
    sample_journal_look(&lab->journal);
    samples = written(lab, &count);
    assert_int_equal(count, PARTS * EACH);
    for (size_t i = 1; i < count; i++)
        assert_true(samples[i - 1].intended_tsc < samples[i].intended_tsc);
    free(samples);
    free_lab(lab);
}

// The NIC's stamps cannot be converted when a load is killed, and what came late is known at its
// end.
static void stamps_are_those_that_can_be_used(void **state)
{
    (void)state;
    struct lab *lab = new_lab(true);
    struct sample whole[2];
    struct error err;
    size_t count;
    lab->samples[0][0].tx_ns = lab->samples[0][0].rx_ns = 5;
    lab->samples[0][0].tx_source = lab->samples[0][0].rx_source = STAMP_HARDWARE;
    lab->samples[1][0].tx_ns = lab->samples[1][0].rx_ns = 6;
    lab->samples[1][0].tx_source = lab->samples[1][0].rx_source = STAMP_SOFTWARE;
    say_final(lab, 0, 1);
    say_final(lab, 1, 1);
    sample_journal_look(&lab->journal);
    struct sample *samples = written(lab, &count);
    assert_int_equal(count, 2);
    assert_int_equal(samples[0].tx_ns + samples[0].rx_ns, 0);
    assert_int_equal(samples[0].tx_source, STAMP_LEFT_OUT);
    assert_int_equal(samples[0].rx_source, STAMP_NONE);
    assert_memory_equal(&samples[1], &lab->samples[1][0], sizeof *samples);
    free(samples);
    memcpy(whole, (struct sample[]){lab->samples[0][0], lab->samples[1][0]}, sizeof whole);
    whole[1].tx_ns = 7;
    struct log_writer *file = sample_journal_end(&lab->journal);
    assert_int_equal(log_writer_rewrite(file, whole, 2, &err), 0);
    assert_int_equal(log_writer_close(file, 0, &err), 0);
    free(file);
    struct log_reader log;
    assert_int_equal(
        log_reader_open(&log, path, LOG_SAMPLES, SAMPLE_LOG_VERSION, sizeof(struct sample), &err),
        0);
    assert_int_equal(log.count, 2);
    assert_int_equal(log.header.cut_short, 0);
    assert_memory_equal(log.records, whole, sizeof whole);
    log_reader_close(&log);
    free_lab(lab);
}

// How long the files without a name are.
static off_t bytes_left(void)
{
    struct stat status;
    glob_t found;
    off_t bytes = 0;
    char pattern[sizeof path + 20];
    snprintf(pattern, sizeof pattern, "%s.*.partial", path);
    if (glob(pattern, 0, NULL, &found) != 0)
        return 0;
    for (size_t i = 0; i < found.gl_pathc; i++)
        bytes += stat(found.gl_pathv[i], &status) == 0 ? status.st_size : 0;
    globfree(&found);
    return bytes;
}

// The thread alone, and SIGKILL.
static void a_killed_load_leaves_them(void **state)
{
    (void)state;
    struct error err;
    struct log_reader log;
    pid_t child = fork();
    if (child == 0) {
        struct lab *lab = new_lab(true);
        if (sample_journal_begin(&lab->journal, NULL, &err) < 0)
            _exit(1);
        for (uint32_t part = 0; part < PARTS; part++)
            say_final(lab, part, EACH);
        pause();
        _exit(1);
    }
    const off_t whole = sizeof(struct log_header) + PARTS * EACH * sizeof(struct sample);
    int status;
    for (int i = 0; i < 3000 && bytes_left() < whole; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(log_rescue(path, LOG_SAMPLES, SAMPLE_LOG_VERSION, sizeof(struct sample), &err),
                     1);
    assert_int_equal(
        log_reader_open(&log, path, LOG_SAMPLES, SAMPLE_LOG_VERSION, sizeof(struct sample), &err),
        0);
    assert_int_equal(log.count, PARTS * EACH);
    assert_int_equal(log.header.cut_short, 1);
    log_reader_close(&log);
    unlink(path);
}

// A limit on the file's length stands for the disk.
static void a_full_disk_ends_it_whole(void **state)
{
    (void)state;
    enum { FIT = 300 };
    struct lab *lab = new_lab(true);
    struct rlimit before, limit;
    size_t count;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = sizeof(struct log_header) + FIT * sizeof(struct sample) + 50;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (uint32_t part = 0; part < PARTS; part++)
        say_final(lab, part, EACH);
    sample_journal_look(&lab->journal);
    sample_journal_look(&lab->journal);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    free(written(lab, &count));
    assert_true(lab->journal.full);
    assert_true(count > 0 && count <= FIT);
    check_dealt(lab, count);
    free_lab(lab);
}

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/samples.tlog", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_final_is_written_in_turn),
        cmocka_unit_test(a_closed_loop_is_written_in_order_of_time),
        cmocka_unit_test(stamps_are_those_that_can_be_used),
        cmocka_unit_test(a_killed_load_leaves_them),
        cmocka_unit_test(a_full_disk_ends_it_whole),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
