// SPDX-License-Identifier: MIT
//
// Decoding on many threads: the spans are the same, to the last bit, however many there are, and
// memory does not grow with the trace. Nor do windows cost more where the index of a long trace's
// PSBs is thin.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/pt/calls/pt_calls.h"
#include "analysis/pt/pt_parallel.h"
#include "tests/analysis/pt/pt_round_trip.h"

enum {
    CPUS = 2,
    TRACE_BYTES = 400 << 10,
    SHORT_COPIES = 8, // long enough that the index of PSBs is thinned out
    LONG_COPIES = 10 * SHORT_COPIES,
    WINDOWS = 30,
    COPIES = 3,            // in which each window is once
    THIN_SYNCS = 50,       // of some thousand PSBs
    LONG_PIECE = 40 << 10, // bytes
    THREADS = 2,
    SEEN = 64,                 // pieces
    MOST_GROWTH_KIB = 3 << 10, // of 58 MiB more trace: pages mapped at the moment, pieces in order
};

struct outcome {
    uint64_t digest, spans, instructions, walked;
    long peak_kib;
};

// One CPU; what is folded into the digest depends on the order of its spans too.
struct folder {
    struct pt_packets packets;
    struct pt_calls *calls;
    struct pt_window windows[WINDOWS];
    struct pt_windows chosen;
    struct outcome out;
};

struct how {
    struct pt_decode_options options;
    size_t most_syncs; // in the index; 0: as always
    bool windows, refined, glanced;
};

static void fold(uint64_t *digest, uint64_t value)
{
    *digest = (*digest ^ value) * 0x100000001b3u;
}

static int fold_span(void *context, const struct pt_span *span, struct error *err)
{
    struct outcome *out = context;
    (void)err;
    fold(&out->digest, span->function);
    fold(&out->digest, span->begin);
    fold(&out->digest, span->end);
    fold(&out->digest, span->inner);
    fold(&out->digest, (uint64_t)span->error << 32 | (uint32_t)span->level);
    fold(&out->digest, (uint64_t)(span->kind | span->cut_begin << 8 | span->cut_end << 9));
    out->spans++;
    return 0;
}

static int take_piece(void *context, size_t stream, const struct pt_piece *piece, bool contiguous,
                      struct error *err)
{
    struct folder *folder = (struct folder *)context + stream;
    folder->out.instructions += piece->counts.instructions;
    folder->out.walked += piece->counts.walked_bytes;
    return pt_calls_take(folder->calls, piece, contiguous, err);
}

// Most are short, some are long, some lie between the same two PSBs, the last is beyond the end.
static void choose_windows(struct folder *folder)
{
    struct random_source random = {9};
    uint64_t first = folder->packets.first_tsc;
    uint64_t step = (folder->packets.last_tsc - first) / (WINDOWS - 2);
    for (size_t i = 0; i < WINDOWS; i++) {
        uint64_t from = first + i * step + random_below(&random, (unsigned)(step / 8));
        uint64_t length = i % 3 == 0 ? 100 : i % 3 == 1 ? step / 50 : step / 3;
        if (i % 6 == 5) // right behind the one before
            from = folder->windows[i - 1].to + 1;
        folder->windows[i] = (struct pt_window){from, from + length};
    }
    folder->chosen = (struct pt_windows){.items = folder->windows, .count = WINDOWS};
}

static void index_syncs(const struct pt_bytes *bytes, const struct how *how, struct folder *folder)
{
    struct error err;
    size_t most = how->most_syncs ? how->most_syncs : PT_MOST_SYNCS;
    struct pt_packets_part all = {.to = UINT64_MAX, .glance = how->glanced};
    assert_int_equal(pt_packets_scan_part(bytes, most, &all, &err), 0);
    folder->packets = all.found;
    assert_true(!how->glanced || pt_packets_glanced(&folder->packets));
    choose_windows(folder);
    if (!how->refined)
        return;
    size_t before = folder->packets.syncs.count;
    assert_int_equal(pt_windows_refine(&folder->chosen, bytes, &folder->packets, &err), 0);
    assert_true(folder->packets.syncs.count > before);
    assert_true(folder->packets.syncs.count < folder->packets.count[PT_KIND_PSB] / 2);
}

static void decode(const struct program *program, const struct pt_bytes *bytes,
                   const struct how *how, struct outcome *out)
{
    struct folder folders[CPUS] = {0};
    struct pt_stream streams[CPUS] = {0};
    struct pt_symbols symbols = {.context = (void *)(uintptr_t)program, .find = program_find};
    struct pt_memory memory;
    struct error err;
    assert_int_equal(memory_of(program, &memory, &err), 0);
    for (int i = 0; i < CPUS; i++) {
        streams[i] = (struct pt_stream){.bytes = bytes[i],
                                        .packets = &folders[i].packets,
                                        .windows = how->windows ? &folders[i].chosen : NULL,
                                        .recorder.nominal_ratio = NOMINAL_RATIO};
        index_syncs(&bytes[i], how, &folders[i]);
        folders[i].calls = pt_calls_alloc(NULL, true, fold_span, &folders[i].out, &err);
        assert_non_null(folders[i].calls);
    }
    assert_int_equal(
        pt_decode(&memory, &symbols, streams, CPUS, &how->options, take_piece, folders, &err), 0);
    *out = (struct outcome){0};
    for (int i = 0; i < CPUS; i++) {
        assert_int_equal(pt_calls_finish(folders[i].calls, &err), 0);
        fold(&out->digest, folders[i].out.digest);
        out->spans += folders[i].out.spans;
        out->instructions += folders[i].out.instructions;
        out->walked += folders[i].out.walked;
        pt_calls_free(folders[i].calls);
        pt_packets_free(&folders[i].packets);
    }
    pt_memory_free(&memory);
}

// The traces of all CPUs, `copies` times over, in a file each.
static void make_files(const struct program *program, size_t bytes, int copies,
                       int descriptors[CPUS])
{
    static struct machine machine;
    for (int i = 0; i < CPUS; i++) {
        struct scenario scenario = {
            .seed = 77 + (uint64_t)i, .bytes = bytes, .psb_bytes = 200, .faults = copies == 1};
        char path[] = "/tmp/taillight-test-XXXXXX";
        descriptors[i] = mkstemp(path);
        assert_true(descriptors[i] >= 0);
        unlink(path);
        assert_int_equal(machine_run(&machine, program, &scenario), 0);
        size_t length = writer_offset(&machine.writer);
        for (int k = 0; k < copies; k++)
            assert_int_equal(write(descriptors[i], machine.writer.data, length), length);
        machine_fini(&machine);
    }
}

static void map_files(const int descriptors[CPUS], struct pt_bytes bytes[CPUS])
{
    for (int i = 0; i < CPUS; i++) {
        off_t length = lseek(descriptors[i], 0, SEEK_END);
        void *data = mmap(NULL, (size_t)length, PROT_READ, MAP_PRIVATE, descriptors[i], 0);
        assert_true(data != MAP_FAILED);
        bytes[i] = (struct pt_bytes){.bytes = (uint64_t)length, .data = data, .mapped = true};
    }
}

// A program and a trace of it, mapped.
static void make_trace(struct program *program, int descriptors[CPUS], struct pt_bytes bytes[CPUS])
{
    program_make(program, 5, 0);
    make_files(program, 4 * TRACE_BYTES, 1, descriptors);
    map_files(descriptors, bytes);
}

static void unmap_files(const int descriptors[CPUS], const struct pt_bytes bytes[CPUS])
{
    for (int i = 0; i < CPUS; i++) {
        munmap((void *)(uintptr_t)bytes[i].data, bytes[i].bytes);
        close(descriptors[i]);
    }
}

static void any_number_of_threads_finds_the_same(void **state)
{
    static struct program program;
    static const unsigned others[] = {2, 7, 3};
    static const uint64_t piece_bytes[] = {0, LONG_PIECE}; // fewer long ones are walked ahead
    struct pt_bytes bytes[CPUS];
    struct outcome first, again;
    int descriptors[CPUS];
    (void)state;
    make_trace(&program, descriptors, bytes);
    for (size_t k = 0; k < sizeof piece_bytes / sizeof *piece_bytes; k++) {
        struct how how = {.options = {.threads = 1, .piece_bytes = piece_bytes[k]}};
        decode(&program, bytes, &how, &first);
        assert_true(first.spans > 100000);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            how.options.threads = others[i];
            decode(&program, bytes, &how, &again);
            assert_int_equal(again.spans, first.spans);
            assert_int_equal(again.instructions, first.instructions);
            assert_int_equal(again.digest, first.digest);
        }
    }
    unmap_files(descriptors, bytes);
}

// What is delivered slowly: everything that may be walked ahead then is.
struct slow {
    const struct pt_piece *seen[SEEN];
    size_t count;
};

static int slow_deliver(void *context, size_t stream, const struct pt_piece *piece, bool contiguous,
                        struct error *err)
{
    struct slow *slow = context;
    size_t i = 0;
    (void)stream;
    (void)contiguous;
    (void)err;
    assert_non_null(piece->room);
    while (i < slow->count && slow->seen[i] != piece)
        i++;
    if (i == slow->count && i < SEEN)
        slow->seen[slow->count++] = piece;
    usleep(2000);
    return 0;
}

// Each has room for its flows, which are many; all of a thread's lie in its walker's.
static void few_long_pieces_are_walked_ahead(void **state)
{
    static struct program program;
    struct pt_decode_options options = {.threads = THREADS, .piece_bytes = LONG_PIECE};
    struct pt_packets packets;
    struct slow slow = {.count = 0};
    struct pt_bytes bytes[CPUS];
    struct pt_memory memory;
    struct error err;
    int descriptors[CPUS];
    (void)state;
    make_trace(&program, descriptors, bytes);
    assert_int_equal(memory_of(&program, &memory, &err), 0);
    assert_int_equal(pt_packets_scan_thinly(&bytes[0], bytes[0].bytes / LONG_PIECE, &packets, &err),
                     0);
    struct pt_stream stream = {
        .bytes = bytes[0], .packets = &packets, .recorder.nominal_ratio = NOMINAL_RATIO};
    assert_int_equal(pt_decode(&memory, NULL, &stream, 1, &options, slow_deliver, &slow, &err), 0);
    print_message("%zu pieces in memory\n", slow.count);
    assert_in_range(slow.count, 2, 3 * THREADS);
    pt_packets_free(&packets);
    pt_memory_free(&memory);
    unmap_files(descriptors, bytes);
}

static const uint8_t *copy_view(void *context, uint64_t offset, size_t bytes, uint8_t *scratch)
{
    return memcpy(scratch, (const uint8_t *)context + offset, bytes);
}

// Copies: where one begins, the clock goes back.
static void expect_no_more_of_a_thin_index(int copies)
{
    static struct program program;
    const struct how full = {.most_syncs = SIZE_MAX, .windows = true};
    const struct how thin = {.most_syncs = THIN_SYNCS, .windows = true};
    const struct how refined = {.most_syncs = THIN_SYNCS, .windows = true, .refined = true};
    const struct how glanced = {
        .most_syncs = THIN_SYNCS, .windows = true, .refined = true, .glanced = true};
    struct pt_bytes bytes[CPUS], scattered[CPUS];
    struct outcome wanted, without, found;
    int descriptors[CPUS];
    program_make(&program, 6, 0);
    make_files(&program, TRACE_BYTES, copies, descriptors);
    map_files(descriptors, bytes);
    for (int i = 0; i < CPUS; i++)
        scattered[i] = (struct pt_bytes){.bytes = bytes[i].bytes,
                                         .view = copy_view,
                                         .context = (void *)(uintptr_t)bytes[i].data};
    decode(&program, bytes, &full, &wanted);
    decode(&program, bytes, &thin, &without);
    decode(&program, bytes, &refined, &found);
    print_message("walked %" PRIu64 " bytes; with a thin index %" PRIu64
                  ", where it is refined %" PRIu64 "\n",
                  wanted.walked, without.walked, found.walked);
    assert_true(wanted.spans > 1000);
    assert_true(without.walked > wanted.walked * 3 / 2);
    assert_int_equal(found.walked, wanted.walked);
    assert_int_equal(found.spans, wanted.spans);
    assert_int_equal(found.digest, wanted.digest);
    decode(&program, scattered, &refined, &found);
    assert_int_equal(found.walked, wanted.walked);
    assert_int_equal(found.digest, wanted.digest);
    for (int i = 0; i < 2; i++) {
        decode(&program, i ? scattered : bytes, &glanced, &found);
        assert_int_equal(found.walked, wanted.walked);
        assert_int_equal(found.digest, wanted.digest);
    }
    unmap_files(descriptors, bytes);
}

static void windows_need_no_more_of_a_thin_index(void **state)
{
    (void)state;
    expect_no_more_of_a_thin_index(1);
}

static void windows_are_found_whenever_the_clock_went_back(void **state)
{
    (void)state;
    expect_no_more_of_a_thin_index(COPIES);
}

// A stream that notes what is given back of it.
struct source {
    const uint8_t *data;
    struct pt_packets packets;
    uint64_t delivered, released; // bytes
    bool early;                   // some of it before it was delivered, or not in order
};

static const uint8_t *source_view(void *context, uint64_t offset, size_t bytes, uint8_t *scratch)
{
    const struct source *source = context;
    return memcpy(scratch, source->data + offset, bytes);
}

static void source_release(void *context, uint64_t offset, uint64_t bytes)
{
    struct source *source = context;
    source->early |= offset != source->released || offset + bytes > source->delivered;
    source->released = offset + bytes;
}

static int source_deliver(void *context, size_t stream, const struct pt_piece *piece,
                          bool contiguous, struct error *err)
{
    struct source *source = (struct source *)context + stream;
    const struct pt_packets *packets = &source->packets;
    (void)contiguous;
    (void)err;
    source->delivered = piece->end_sync < packets->syncs.count
                            ? packets->syncs.items[piece->end_sync].offset
                            : packets->bytes;
    return 0;
}

// Threads walk pieces side by side: what one has walked, the other may still read around.
static void only_what_was_delivered_is_given_back(void **state)
{
    static struct program program;
    struct pt_decode_options options = {.threads = 3};
    struct pt_stream streams[CPUS] = {0};
    struct source sources[CPUS] = {0};
    struct pt_bytes bytes[CPUS];
    struct pt_memory memory;
    struct error err;
    int descriptors[CPUS];
    (void)state;
    make_trace(&program, descriptors, bytes);
    assert_int_equal(memory_of(&program, &memory, &err), 0);
    for (int i = 0; i < CPUS; i++) {
        sources[i].data = bytes[i].data;
        streams[i] = (struct pt_stream){
            .bytes = {.bytes = bytes[i].bytes, .view = source_view, .context = &sources[i]},
            .packets = &sources[i].packets,
            .recorder.nominal_ratio = NOMINAL_RATIO};
        assert_int_equal(pt_packets_scan(&streams[i].bytes, &sources[i].packets, &err), 0);
        streams[i].bytes.release = source_release;
    }
    assert_int_equal(
        pt_decode(&memory, NULL, streams, CPUS, &options, source_deliver, sources, &err), 0);
    for (int i = 0; i < CPUS; i++) {
        assert_false(sources[i].early);
        assert_int_equal(sources[i].released, bytes[i].bytes);
        pt_packets_free(&sources[i].packets);
    }
    pt_memory_free(&memory);
    unmap_files(descriptors, bytes);
}

// In a child, so that the peak is its own.
static struct outcome decode_copies(int copies, unsigned threads)
{
    static struct program program;
    struct how how = {.options.threads = threads};
    struct outcome out = {0};
    int descriptors[CPUS], ends[2], status;
    program_make(&program, 5, 0);
    make_files(&program, TRACE_BYTES, copies, descriptors);
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct pt_bytes bytes[CPUS];
        struct rusage usage;
        map_files(descriptors, bytes);
        decode(&program, bytes, &how, &out);
        getrusage(RUSAGE_SELF, &usage);
        out.peak_kib = usage.ru_maxrss;
        _exit(write(ends[1], &out, sizeof out) == sizeof out ? 0 : 1);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &out, sizeof out), sizeof out);
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    for (int i = 0; i < CPUS; i++)
        close(descriptors[i]);
    return out;
}

// What one thread keeps for itself, the other keeps, too: of how much trace does not matter, nor
// whether both were at work at once.
static void memory_does_not_grow_with_the_trace(void **state)
{
    (void)state;
    struct outcome shorter = decode_copies(SHORT_COPIES, 1), longer = decode_copies(LONG_COPIES, 1);
    struct outcome two = decode_copies(LONG_COPIES, 2);
    assert_true(longer.instructions > 9 * shorter.instructions);
    assert_int_equal(two.instructions, longer.instructions);
    print_message("peak %ld KiB, of a trace ten times as long %ld KiB, on two threads %ld KiB\n",
                  shorter.peak_kib, longer.peak_kib, two.peak_kib);
    assert_true(longer.peak_kib < shorter.peak_kib + MOST_GROWTH_KIB);
    assert_true(two.peak_kib < 2 * (shorter.peak_kib + MOST_GROWTH_KIB));
}

enum { JOBS = 200 };

static int count_job(void *context, size_t index, struct error *err)
{
    int *done = context;
    (void)err;
    done[index]++;
    return 0;
}

static int fail_from_the_third(void *context, size_t index, struct error *err)
{
    (void)context;
    return index < 2 ? 0 : error_set(err, ERROR_INPUT, "job %zu", index);
}

static void each_job_is_done_once_and_the_first_failure_told(void **state)
{
    static const unsigned threads[] = {0, 1, 2, 7, 1000};
    (void)state;
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        int done[JOBS] = {0};
        struct error err = {0};
        assert_int_equal(pt_parallel(JOBS, threads[i], count_job, done, &err), 0);
        for (size_t k = 0; k < JOBS; k++)
            assert_int_equal(done[k], 1);
        assert_int_equal(pt_parallel(0, threads[i], count_job, NULL, &err), 0);
        assert_int_equal(pt_parallel(JOBS, threads[i], fail_from_the_third, NULL, &err),
                         -ERROR_INPUT);
        assert_string_equal(err.text, "job 2");
    }
}

int main(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads_finds_the_same),
        cmocka_unit_test(few_long_pieces_are_walked_ahead),
        cmocka_unit_test(windows_need_no_more_of_a_thin_index),
        cmocka_unit_test(windows_are_found_whenever_the_clock_went_back),
        cmocka_unit_test(only_what_was_delivered_is_given_back),
        cmocka_unit_test(each_job_is_done_once_and_the_first_failure_told),
    };
    (void)memory_does_not_grow_with_the_trace; // what a sanitizer keeps does
#else
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_does_not_grow_with_the_trace), // before its parent grows
        cmocka_unit_test(any_number_of_threads_finds_the_same),
        cmocka_unit_test(few_long_pieces_are_walked_ahead),
        cmocka_unit_test(windows_need_no_more_of_a_thin_index),
        cmocka_unit_test(windows_are_found_whenever_the_clock_went_back),
        cmocka_unit_test(only_what_was_delivered_is_given_back),
        cmocka_unit_test(each_job_is_done_once_and_the_first_failure_told),
    };
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
