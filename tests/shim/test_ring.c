// SPDX-License-Identifier: MIT
//
// One ring between its two sides: wrapping, filling up, and every kind of nonsense a shared file
// can hold.
#include "tests/shim/shim_test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

#include "shim/ring_reader.h"

enum { ENTRIES = 64, PROCESS = 77 };

struct fixture {
    char dir[64];
    int dir_fd;
    void *mapping;
    size_t bytes;
    struct ring_producer producer;
    struct ring_reader reader;
    uint64_t room;
};

static struct ring_header *header_make(struct fixture *f, uint64_t entries)
{
    snprintf(f->dir, sizeof f->dir, "/dev/shm/shim-ring-%d", (int)getpid());
    assert_int_equal(mkdir(f->dir, 0700), 0);
    f->dir_fd = open(f->dir, O_RDONLY | O_DIRECTORY);
    int fd = openat(f->dir_fd, "ring-1", O_RDWR | O_CREAT, 0600);
    f->bytes = ring_file_bytes(entries);
    assert_int_equal(ftruncate(fd, (off_t)f->bytes), 0);
    f->mapping = mmap(NULL, f->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(f->mapping != MAP_FAILED);
    close(fd);
    struct ring_header *header = f->mapping;
    header->version = RING_VERSION;
    header->process = PROCESS;
    header->entries = entries;
    header->thread = 78;
    header->magic = RING_MAGIC;
    f->room = 1 << 24;
    return header;
}

static void fixture_open(struct fixture *f, uint64_t entries)
{
    header_make(f, entries);
    ring_producer_init(&f->producer, f->mapping, entries);
    assert_int_equal(ring_reader_open(&f->reader, f->dir_fd, "ring-1"), RING_OPEN_READY);
}

static void fixture_close(struct fixture *f)
{
    ring_reader_close(&f->reader);
    munmap(f->mapping, f->bytes);
    unlinkat(f->dir_fd, "ring-1", 0);
    close(f->dir_fd);
    rmdir(f->dir);
}

static bool produce(struct fixture *f, uint64_t number)
{
    union ring_entry *entry = ring_reserve(&f->producer);
    if (!entry)
        return false;
    entry->call = (struct call){.entry_tsc = number,
                                .exit_tsc = number + 1,
                                .offset = number,
                                .length = 1,
                                .connection = 1,
                                .process = PROCESS,
                                .thread = 78,
                                .kind = CALL_RECEIVE};
    ring_commit(&f->producer, entry);
    return true;
}

static void in_order(const struct ring_reader *reader, uint64_t from)
{
    for (size_t i = 0; i < reader->calls.count; i++) {
        assert_int_equal(reader->calls.items[i].offset, from + i);
        assert_int_equal(reader->calls.items[i].padding, 0);
    }
}

static void test_wraps(void **state)
{
    (void)state;
    struct fixture f = {0};
    fixture_open(&f, ENTRIES);
    uint64_t written = 0;
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 1 + round % ENTRIES; i++)
            assert_true(produce(&f, written++));
        ring_reader_drain(&f.reader, true, &f.room);
        assert_int_equal(f.reader.calls.count, written);
    }
    in_order(&f.reader, 0);
    assert_int_equal(f.reader.rejected, 0);
    assert_int_equal(f.reader.dropped, 0);
    fixture_close(&f);
}

static void test_drains_at_half(void **state)
{
    (void)state;
    struct fixture f = {0};
    fixture_open(&f, ENTRIES);
    for (uint64_t i = 0; i < ENTRIES / 2 - 1; i++)
        produce(&f, i);
    assert_int_equal(ring_reader_drain(&f.reader, false, &f.room), 0);
    produce(&f, ENTRIES / 2 - 1);
    assert_int_equal(ring_reader_drain(&f.reader, false, &f.room), ENTRIES / 2);
    fixture_close(&f);
}

static void test_full_drops_and_counts(void **state)
{
    (void)state;
    struct fixture f = {0};
    fixture_open(&f, ENTRIES);
    for (uint64_t i = 0; i < ENTRIES; i++)
        assert_true(produce(&f, i));
    for (int i = 0; i < 10; i++)
        assert_false(produce(&f, 1000));
    ring_reader_drain(&f.reader, true, &f.room);
    assert_int_equal(f.reader.dropped, 10);
    assert_int_equal(f.reader.calls.count, ENTRIES);
    assert_true(produce(&f, ENTRIES)); // room again
    ring_reader_drain(&f.reader, true, &f.room);
    in_order(&f.reader, 0);
    fixture_close(&f);
}

// A producer that is handed a tail from the future must not believe it has room.
static void test_producer_distrusts_tail(void **state)
{
    (void)state;
    struct fixture f = {0};
    fixture_open(&f, ENTRIES);
    struct ring_header *header = f.mapping;
    for (uint64_t i = 0; i < ENTRIES; i++)
        produce(&f, i);
    header->tail = 1ULL << 40;
    assert_false(produce(&f, 1000));
    header->tail = 0;
    ring_reader_drain(&f.reader, true, &f.room);
    in_order(&f.reader, 0);
    assert_int_equal(f.reader.calls.count, ENTRIES);
    fixture_close(&f);
}

// Died between the head and the entry, or the head was read half-written: what is not there yet
// is not taken, and in the end counted.
static void test_torn(void **state)
{
    (void)state;
    struct fixture f = {0};
    fixture_open(&f, ENTRIES);
    struct ring_header *header = f.mapping;
    for (uint64_t i = 0; i < 10; i++)
        produce(&f, i);
    header->head = 13;
    assert_int_equal(ring_reader_drain(&f.reader, true, &f.room), 10);
    assert_int_equal(ring_reader_drain(&f.reader, true, &f.room), 0);
    assert_int_equal(f.reader.rejected, 0);
    for (uint64_t i = 10; i < 12; i++)
        produce(&f, i); // two of the three come after all
    header->head = 13;
    assert_int_equal(ring_reader_drain(&f.reader, true, &f.room), 2);
    in_order(&f.reader, 0);
    ring_reader_settle(&f.reader);
    assert_int_equal(f.reader.rejected, 1);
    fixture_close(&f);
}

static void test_overwritten(void **state)
{
    (void)state;
    struct fixture f = {0};
    fixture_open(&f, ENTRIES);
    struct ring_header *header = f.mapping;
    for (uint64_t i = 0; i < ENTRIES; i++)
        produce(&f, i);
    header->tail = 3; // not by the reader: the producer goes over what was not taken
    for (uint64_t i = ENTRIES; i < ENTRIES + 3; i++)
        assert_true(produce(&f, i));
    header->head = ENTRIES; // so that the head alone does not give it away
    ring_reader_drain(&f.reader, true, &f.room);
    assert_int_equal(f.reader.rejected, 3);
    assert_int_equal(f.reader.calls.count, ENTRIES - 3);
    in_order(&f.reader, 3);
    fixture_close(&f);
}

static void test_implausible(void **state)
{
    (void)state;
    struct fixture f = {0};
    fixture_open(&f, ENTRIES);
    union ring_entry *entries = f.producer.entries;
    for (uint64_t i = 0; i < 10; i++)
        produce(&f, i);
    entries[0].call.kind = 0;
    entries[1].call.kind = CALL_CONNECT + 1;
    entries[2].call.entry_tsc = 1000;
    entries[3].call.process = PROCESS + 1;
    entries[4].call.connection = 0;
    entries[5].call.kind = CALL_WAIT; // with a connection
    entries[6].call.offset = 1ULL << 60;
    entries[7].call.reserved = 1;
    entries[8].announcement = (struct ring_announcement){
        .kind = RING_ANNOUNCEMENT, .sequence = ring_sequence(8), .connection = 0};
    ring_reader_drain(&f.reader, true, &f.room);
    assert_int_equal(f.reader.rejected, 9);
    assert_int_equal(f.reader.calls.count, 1);
    assert_int_equal(f.reader.announcements.count, 0);
    fixture_close(&f);
}

static void test_impossible_positions(void **state)
{
    (void)state;
    struct fixture f = {0};
    fixture_open(&f, ENTRIES);
    struct ring_header *header = f.mapping;
    header->head = ENTRIES + 1;
    assert_int_equal(ring_reader_drain(&f.reader, true, &f.room), 0);
    assert_true(f.reader.broken);
    header->head = 5;
    assert_int_equal(ring_reader_drain(&f.reader, true, &f.room), 0); // once broken, for good
    fixture_close(&f);
}

static void test_shrinks_while_open(void **state)
{
    (void)state;
    struct fixture f = {0};
    fixture_open(&f, ENTRIES);
    for (uint64_t i = 0; i < 20; i++)
        produce(&f, i);
    char path[100];
    snprintf(path, sizeof path, "%s/ring-1", f.dir);
    assert_int_equal(truncate(path, RING_PAGE_BYTES + 10 * RING_ENTRY_BYTES), 0);
    assert_int_equal(ring_reader_drain(&f.reader, true, &f.room), 10);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(ring_reader_drain(&f.reader, true, &f.room), 0);
    assert_true(f.reader.broken);
    fixture_close(&f);
}

static void test_room_is_kept_to(void **state)
{
    (void)state;
    struct fixture f = {0};
    fixture_open(&f, ENTRIES);
    for (uint64_t i = 0; i < 20; i++)
        produce(&f, i);
    f.room = 5;
    ring_reader_drain(&f.reader, true, &f.room);
    assert_int_equal(f.reader.calls.count, 5);
    assert_int_equal(f.reader.unkept, 15);
    assert_int_equal(f.room, 0);
    fixture_close(&f);
}

static void test_open_refuses(void **state)
{
    (void)state;
    struct fixture f = {0};
    struct ring_header *header = header_make(&f, ENTRIES);
    struct ring_reader reader;
    header->magic = 0;
    assert_int_equal(ring_reader_open(&reader, f.dir_fd, "ring-1"), RING_OPEN_NOT_YET);
    header->magic = RING_MAGIC + 1;
    assert_int_equal(ring_reader_open(&reader, f.dir_fd, "ring-1"), RING_OPEN_DAMAGED);
    header->magic = RING_MAGIC;
    static const uint64_t wrong[] = {0, 1, 63, 65, 128, 1ULL << 23, 1ULL << 63, UINT64_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        header->entries = wrong[i];
        assert_int_equal(ring_reader_open(&reader, f.dir_fd, "ring-1"), RING_OPEN_DAMAGED);
    }
    header->entries = ENTRIES;
    header->version = 9;
    assert_int_equal(ring_reader_open(&reader, f.dir_fd, "ring-1"), RING_OPEN_DAMAGED);
    header->version = RING_VERSION;
    assert_int_equal(symlinkat("ring-1", f.dir_fd, "ring-2"), 0);
    assert_int_equal(ring_reader_open(&reader, f.dir_fd, "ring-2"), RING_OPEN_DAMAGED);
    unlinkat(f.dir_fd, "ring-2", 0);
    assert_int_equal(mkfifoat(f.dir_fd, "ring-2", 0600), 0);
    assert_int_equal(ring_reader_open(&reader, f.dir_fd, "ring-2"), RING_OPEN_DAMAGED);
    unlinkat(f.dir_fd, "ring-2", 0);
    assert_int_equal(ring_reader_open(&f.reader, f.dir_fd, "ring-1"), RING_OPEN_READY);
    fixture_close(&f);
}

static void *producer_run(void *argument)
{
    struct fixture *f = argument;
    for (uint64_t i = 0; i < 300000;)
        i += produce(f, i);
    return NULL;
}

// Both sides at once: nothing twice, nothing lost but what was counted.
static void test_concurrent(void **state)
{
    (void)state;
    struct fixture f = {0};
    fixture_open(&f, 1024);
    pthread_t thread;
    pthread_create(&thread, NULL, producer_run, &f);
    while (f.reader.calls.count < 300000) {
        ring_reader_drain(&f.reader, true, &f.room);
        assert_false(f.reader.broken);
        assert_int_equal(f.reader.rejected, 0);
    }
    pthread_join(thread, NULL);
    in_order(&f.reader, 0);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wraps),
        cmocka_unit_test(test_drains_at_half),
        cmocka_unit_test(test_full_drops_and_counts),
        cmocka_unit_test(test_producer_distrusts_tail),
        cmocka_unit_test(test_torn),
        cmocka_unit_test(test_overwritten),
        cmocka_unit_test(test_implausible),
        cmocka_unit_test(test_impossible_positions),
        cmocka_unit_test(test_shrinks_while_open),
        cmocka_unit_test(test_room_is_kept_to),
        cmocka_unit_test(test_open_refuses),
        cmocka_unit_test(test_concurrent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
