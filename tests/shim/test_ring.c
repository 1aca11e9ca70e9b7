// SPDX-License-Identifier: MIT
//
// One pool between its two sides: chunk after chunk, filling up, and every kind of nonsense shared
// memory can hold.
#include "tests/shim/shim_test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

#include "shim/ring_memory.h"
#include "shim/ring_reader.h"

enum { PROCESS = 77, THREAD = 78, INSTANCE = 79, CHUNKS = 4 };

struct fixture {
    char dir[64];
    struct ring_memory memory;
    struct pool_file *pool;
    void *mapping;
    struct ring_producer producer;
    struct ring_reader reader;
    uint64_t room;
};

static void fixture_open(struct fixture *f)
{
    struct error err;
    *f = (struct fixture){.room = 1 << 24};
    snprintf(f->dir, sizeof f->dir, "/dev/shm/shim-ring-%d", (int)getpid());
    uint64_t share = CHUNKS * (RING_CHUNK_BYTES + 140) + 3 * RING_PAGE_BYTES;
    if (ring_memory_open(&f->memory, f->dir, geteuid() == 0 ? share * 4 / 3 : share, &err) < 0)
        fail_msg("%s", err.text);
    f->pool = &f->memory.pools[0];
    assert_int_equal(f->pool->chunks, CHUNKS);
    f->mapping =
        mmap(NULL, f->pool->layout.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f->pool->fd, 0);
    assert_true(f->mapping != MAP_FAILED);
    f->producer = (struct ring_producer){.used = RING_CHUNK_ENTRIES,
                                         .process = PROCESS,
                                         .thread = THREAD,
                                         .instance = INSTANCE,
                                         .pool = ring_pool_at(f->mapping, CHUNKS)};
    f->producer.place = ring_pool_take_place(&f->producer.pool, PROCESS, INSTANCE);
    assert_int_equal(f->producer.place, 1);
    f->reader = (struct ring_reader){.process = PROCESS, .thread = THREAD, .instance = INSTANCE};
}

static void fixture_close(struct fixture *f)
{
    munmap(f->mapping, f->pool->layout.bytes);
    ring_reader_free(&f->reader);
    ring_memory_remove(&f->memory);
    assert_int_equal(access(f->dir, F_OK), -1);
}

static bool produce(struct fixture *f, uint64_t number)
{
    f->producer.retry_tsc = 0;
    union ring_entry *entry = ring_reserve(&f->producer, 1);
    if (!entry)
        return false;
    entry->call = (struct call){.entry_tsc = number,
                                .exit_tsc = number + 1,
                                .offset = number,
                                .length = 1,
                                .connection = 1,
                                .process = PROCESS,
                                .thread = THREAD,
                                .kind = CALL_RECEIVE};
    ring_commit(&f->producer, entry);
    return true;
}

// Takes the sealed chunks, of which there are at most two, or all, in their order, and frees them.
static void take(struct fixture *f, bool all)
{
    uint32_t owners[CHUNKS];
    struct ring_chunk chunk;
    if (!pool_read_owners(f->pool, owners))
        return;
    for (bool taken = true; taken;) {
        taken = false;
        for (uint32_t i = 0; i < CHUNKS; i++) {
            if (!owners[i] || (!all && !(owners[i] & CHUNK_SEALED)) ||
                !pool_read_chunk(f->pool, i, &chunk) || chunk.first != f->reader.next)
                continue;
            ring_reader_take(&f->reader, &chunk, &f->room);
            owners[i] = 0;
            pool_free_chunk(f->pool, i);
            taken = true;
        }
    }
}

static void in_order(const struct ring_reader *reader)
{
    for (size_t i = 0; i < reader->calls.count; i++) {
        assert_int_equal(reader->calls.items[i].offset, i);
        assert_int_equal(reader->calls.items[i].padding, 0);
    }
}

static void test_chunk_after_chunk(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f);
    uint64_t written = 0;
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 1 + round * 4; i++)
            assert_true(produce(&f, written++));
        take(&f, false);
        assert_int_equal(f.reader.calls.count,
                         (written - 1) / RING_CHUNK_ENTRIES * RING_CHUNK_ENTRIES);
    }
    take(&f, true);
    assert_int_equal(f.reader.calls.count, written);
    in_order(&f.reader);
    assert_int_equal(f.reader.rejected, 0);
    fixture_close(&f);
}

// A thread that records little touches one chunk, and the same one again.
static void test_small_stays_small(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f);
    for (uint64_t i = 0; i < 100 * RING_CHUNK_ENTRIES; i++) {
        assert_true(produce(&f, i));
        take(&f, false);
        assert_true(f.producer.chunk < f.producer.pool.chunks + 2);
    }
    fixture_close(&f);
}

static void test_full_drops(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f);
    uint64_t all = CHUNKS * RING_CHUNK_ENTRIES;
    for (uint64_t i = 0; i < all; i++)
        assert_true(produce(&f, i));
    for (int i = 0; i < 10; i++)
        assert_false(produce(&f, 1000));
    assert_null(ring_reserve(&f.producer, 2)); // does not even look before it is time
    take(&f, true);
    assert_int_equal(f.reader.calls.count, all);
    assert_true(produce(&f, all)); // room again
    take(&f, true);
    in_order(&f.reader);
    assert_int_equal(f.reader.rejected, 0);
    fixture_close(&f);
}

// Every place and chunk has one owner, and a full pool none for a newcomer.
static void test_places(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f);
    struct ring_pool *pool = &f.producer.pool;
    for (uint32_t place = 2; place <= CHUNKS; place++)
        assert_int_equal(ring_pool_take_place(pool, PROCESS + place, INSTANCE), place);
    assert_int_equal(ring_pool_take_place(pool, PROCESS, INSTANCE), 0);
    pool_free_place(f.pool, 3);
    assert_int_equal(ring_pool_take_place(pool, PROCESS, INSTANCE), 3);
    for (int i = 0; i < CHUNKS; i++)
        assert_non_null(ring_pool_take_chunk(pool, 1));
    assert_null(ring_pool_take_chunk(pool, 1));
    pool->header->search = UINT32_MAX; // whoever wrote that
    pool_free_chunk(f.pool, 2);
    pool->header->search = UINT32_MAX;
    assert_ptr_equal(ring_pool_take_chunk(pool, 1), &pool->chunks[2]);
    fixture_close(&f);
}

// The number of entries was read half-written, or is a lie.
static void test_torn(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f);
    for (uint64_t i = 0; i < 10; i++)
        produce(&f, i);
    f.producer.chunk->used = 13;
    take(&f, true);
    in_order(&f.reader);
    assert_int_equal(f.reader.calls.count, 10);
    assert_int_equal(f.reader.rejected, 3);
    fixture_close(&f);
}

// A chunk that never came is counted; one that comes again is not taken twice.
static void test_missing_and_twice(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f);
    for (uint64_t i = 0; i < 10; i++)
        produce(&f, i);
    struct ring_chunk chunk = *f.producer.chunk;
    f.reader.next = 0;
    ring_reader_take(&f.reader, &chunk, &f.room);
    ring_reader_take(&f.reader, &chunk, &f.room);
    assert_int_equal(f.reader.calls.count, 10);
    assert_int_equal(f.reader.rejected, 10);
    chunk.first = 17;
    chunk.used = 0;
    ring_reader_take(&f.reader, &chunk, &f.room);
    assert_int_equal(f.reader.rejected, 17);
    chunk.first = UINT64_MAX / 4;
    ring_reader_take(&f.reader, &chunk, &f.room);
    assert_int_equal(f.reader.rejected, 17 + RING_CHUNK_ENTRIES);
    fixture_close(&f);
}

// What a thread still writes to is taken as far as it is, then the rest; never twice.
static void test_live(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f);
    for (uint64_t i = 0; i < 10; i++)
        produce(&f, i);
    struct ring_chunk chunk = *f.producer.chunk;
    f.reader.next = chunk.first;
    ring_reader_take_live(&f.reader, &chunk, &f.room);
    ring_reader_take_live(&f.reader, &chunk, &f.room);
    assert_int_equal(f.reader.calls.count, 10);
    for (uint64_t i = 10; i < 13; i++)
        produce(&f, i);
    chunk = *f.producer.chunk;
    ring_reader_take_live(&f.reader, &chunk, &f.room);
    assert_int_equal(f.reader.calls.count, 13);
    ring_reader_take(&f.reader, &chunk, &f.room);
    assert_int_equal(f.reader.calls.count, 13);
    assert_int_equal(f.reader.rejected, 0);
    in_order(&f.reader);
    fixture_close(&f);
}

static void test_implausible(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f);
    for (uint64_t i = 0; i < 10; i++)
        produce(&f, i);
    union ring_entry *entries = f.producer.chunk->entries;
    entries[0].call.kind = 0;
    entries[1].call.kind = CALL_CONNECT + 1;
    entries[2].call.entry_tsc = 1000;
    entries[3].call.process = PROCESS + 1;
    entries[4].call.connection = 0;
    entries[5].call.kind = CALL_WAIT; // with a connection
    entries[6].call.offset = 1ULL << 60;
    entries[7].call.command = 255; // no such word
    entries[8].announcement = (struct ring_announcement){
        .kind = RING_ANNOUNCEMENT, .sequence = ring_sequence(8), .connection = 0};
    take(&f, true);
    assert_int_equal(f.reader.rejected, 9);
    assert_int_equal(f.reader.calls.count, 1);
    assert_int_equal(f.reader.announcements.count, 0);
    struct ring_chunk chunk = {.used = 1, .process = 1, .instance = 1};
    assert_true(ring_chunk_plausible(&chunk));
    chunk.used = RING_CHUNK_ENTRIES + 1;
    assert_false(ring_chunk_plausible(&chunk));
    chunk = (struct ring_chunk){.used = 1, .process = 1};
    assert_false(ring_chunk_plausible(&chunk));
    chunk = (struct ring_chunk){.used = 1, .instance = 1};
    assert_false(ring_chunk_plausible(&chunk));
    chunk = (struct ring_chunk){.process = 1, .instance = 1, .first = UINT64_MAX};
    assert_false(ring_chunk_plausible(&chunk));
    fixture_close(&f);
}

static void test_shrinks_while_open(void **state)
{
    (void)state;
    struct fixture f;
    uint64_t places[CHUNKS];
    uint32_t owners[CHUNKS];
    struct ring_chunk chunk;
    struct process_page page;
    fixture_open(&f);
    produce(&f, 0);
    assert_int_equal(ftruncate(f.pool->fd, (off_t)f.pool->layout.chunks), 0);
    assert_true(pool_read_places(f.pool, places));
    assert_false(pool_read_chunk(f.pool, 0, &chunk));
    assert_int_equal(ftruncate(f.pool->fd, 0), 0);
    assert_false(pool_read_places(f.pool, places));
    assert_false(pool_read_owners(f.pool, owners));
    assert_false(pool_read_page(f.pool, 1, &page));
    pool_free_chunk(f.pool, 0); // harmless
    pool_free_place(f.pool, 1);
    fixture_close(&f);
}

static void test_room_is_kept_to(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f);
    for (uint64_t i = 0; i < 20; i++)
        produce(&f, i);
    f.room = 5;
    take(&f, true);
    assert_int_equal(f.reader.calls.count, 5);
    assert_int_equal(f.reader.unkept, 15);
    assert_int_equal(f.room, 0);
    fixture_close(&f);
}

// What was prepared is taken as it is, if it is what it should be; else it is made anew.
static void test_prepared(void **state)
{
    (void)state;
    struct error err;
    char outer[64], dir[80], pool[100]; // nobody holds it meanwhile, but it is not found inside
    snprintf(outer, sizeof outer, "/dev/shm/shim-prepared-%d", (int)getpid());
    assert_int_equal(mkdir(outer, 0700), 0);
    snprintf(dir, sizeof dir, "%s/rings", outer);
    snprintf(pool, sizeof pool, "%s/pool-%u", dir, geteuid());
    static const struct pool_header wrong[] = {
        {.magic = 0, .version = RING_VERSION, .chunks = 7},
        {.magic = POOL_MAGIC, .version = RING_VERSION - 1, .chunks = 7},
        {.magic = POOL_MAGIC, .version = RING_VERSION, .chunks = 0},
        {.magic = POOL_MAGIC, .version = RING_VERSION, .chunks = 8},
        {.magic = POOL_MAGIC, .version = RING_VERSION, .chunks = UINT32_MAX}};
    for (size_t i = 0; i <= sizeof wrong / sizeof *wrong; i++) {
        struct ring_memory memory;
        struct stat before, after;
        assert_int_equal(ring_memory_open(&memory, dir, 1 << 20, &err), 0);
        ring_memory_leave(&memory);
        assert_int_equal(stat(pool, &before), 0);
        int fd = open(pool, O_RDWR);
        if (i > 0)
            assert_int_equal(pwrite(fd, &wrong[i - 1], sizeof *wrong, 0), sizeof *wrong);
        assert_int_equal(ring_memory_open(&memory, dir, 1 << 20, &err), 0);
        assert_int_equal(fstat(memory.pools[0].fd, &after), 0);
        assert_int_equal(before.st_ino == after.st_ino, i == 0);
        close(fd);
        ring_memory_remove(&memory);
    }
    assert_int_equal(rmdir(outer), 0);
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
    struct fixture f;
    fixture_open(&f);
    pthread_t thread;
    pthread_create(&thread, NULL, producer_run, &f);
    while (f.reader.calls.count < 300000 / RING_CHUNK_ENTRIES * RING_CHUNK_ENTRIES) {
        take(&f, false);
        assert_int_equal(f.reader.rejected, 0);
    }
    pthread_join(thread, NULL);
    take(&f, true);
    assert_int_equal(f.reader.calls.count, 300000);
    in_order(&f.reader);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunk_after_chunk),
        cmocka_unit_test(test_small_stays_small),
        cmocka_unit_test(test_full_drops),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_torn),
        cmocka_unit_test(test_missing_and_twice),
        cmocka_unit_test(test_live),
        cmocka_unit_test(test_implausible),
        cmocka_unit_test(test_shrinks_while_open),
        cmocka_unit_test(test_room_is_kept_to),
        cmocka_unit_test(test_prepared),
        cmocka_unit_test(test_concurrent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
