// SPDX-License-Identifier: MIT
//
// Another user of the machine who plants calls in the shim's memory, or in a directory that a
// server is pointed at: what is not his he can neither find nor write, what he claims is refused,
// counted and said, and no server maps a file of his. He is root's child with the user id of
// `nobody`.
#include "tests/shim/shim_test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/process.h"
#include "shim/ring_memory.h"
#include "tests/skip.h"

enum { NOBODY = 65534, CALLS = 500 };

static void need_root(void)
{
    if (geteuid() == 0)
        return;
    skip_case("it takes root to be another user");
}

// Runs it as nobody. Returns its exit code.
static int as_nobody(int (*deed)(const struct places *), const struct places *places)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(setgid(NOBODY) < 0 || setuid(NOBODY) < 0 ? 99 : deed(places));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int say_hello(const struct places *places)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%.90s/hello", places->rings);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    return sendto(fd, "", 1, 0, (struct sockaddr *)&address, sizeof address) == 1 ? 0 : errno;
}

static struct ring_pool pool_of_nobody(const struct places *places)
{
    char path[200];
    struct pool_header header;
    snprintf(path, sizeof path, "%s/pool-%d", places->rings, NOBODY);
    int fd = open(path, O_RDWR);
    if (fd < 0 || pread(fd, &header, sizeof header, 0) != sizeof header)
        _exit(98);
    void *mapping =
        mmap(NULL, pool_layout_of(header.chunks).bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return ring_pool_at(mapping, header.chunks);
}

// Plants a connection and calls on it, in a place that `process` has, as of `claimed`.
static int plant(const struct places *places, uint32_t process, uint32_t claimed)
{
    struct ring_pool pool = pool_of_nobody(places);
    struct ring_producer ring = {.used = RING_CHUNK_ENTRIES,
                                 .process = claimed,
                                 .thread = claimed,
                                 .instance = 12345,
                                 .pool = pool};
    ring.place = ring_pool_take_place(&pool, process, ring.instance);
    if (!ring.place)
        return 97;
    struct process_page *page = &pool.pages[ring.place - 1];
    strcpy(page->name, "memcached");
    atomic_store(&page->ready, ring.instance);
    union ring_entry *entry = ring_reserve(&ring, 1);
    entry->announcement = (struct ring_announcement){
        .kind = RING_ANNOUNCEMENT, .connection = 1, .local_port = 11211, .protocol = 6};
    ring_commit(&ring, entry);
    for (uint32_t i = 0; i < CALLS; i++) {
        entry = ring_reserve(&ring, 1);
        entry->call = (struct call){.entry_tsc = 10 + i,
                                    .exit_tsc = 11 + i,
                                    .offset = i,
                                    .length = 1,
                                    .connection = 1,
                                    .process = claimed,
                                    .thread = claimed,
                                    .kind = CALL_RECEIVE};
        ring_commit(&ring, entry);
    }
    ring_seal(&ring);
    return 0;
}

static int plant_as_root(const struct places *places)
{
    return plant(places, (uint32_t)getppid(), (uint32_t)getppid());
}

static int plant_in_another_place(const struct places *places)
{
    return plant(places, (uint32_t)getpid(), (uint32_t)getppid());
}

static void planted_calls_are_refused(int (*deed)(const struct places *), uint64_t foreign,
                                      const char *said)
{
    struct places places;
    struct message_collector *collector;
    struct message_stats stats;
    struct error err;
    need_root();
    places_init(&places, "forgery");
    assert_int_equal(message_collector_create(places.rings, 0, NULL, 0, &collector, &err), 0);
    message_collector_enable(collector);
    assert_int_equal(as_nobody(say_hello, &places), 0);
    assert_int_equal(message_collector_poll(collector, &err), 0);
    assert_int_equal(as_nobody(deed, &places), 0);
    assert_int_equal(message_collector_poll(collector, &err), 0);
    assert_int_equal(message_collector_finish(collector, places.out, &stats, &err), 0);
    assert_int_equal(stats.calls, 0);
    assert_int_equal(stats.connections, 0);
    assert_int_equal(stats.foreign, foreign);
    assert_true(foreign || stats.damaged > 0);
    if (!strstr(stats.warning, said))
        fail_msg("it says \"%s\"", stats.warning);
    message_stats_free(&stats);
    message_collector_free(collector);
    places_clear(&places);
}

static void calls_of_a_process_of_others(void **state)
{
    (void)state;
    planted_calls_are_refused(plant_as_root, 1, "somebody forges calls");
}

static void calls_in_the_name_of_another_process(void **state)
{
    (void)state;
    planted_calls_are_refused(plant_in_another_place, 0, "made no sense");
}

// --- the directory -------------------------------------------------------------------------------

static int look_and_write(const struct places *places)
{
    char path[200], outer[128];
    snprintf(outer, sizeof outer, "%s", places->rings);
    *strrchr(outer, '/') = '\0';
    const char *const dirs[] = {outer, places->rings};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/pool-0", dirs[i]);
        if (opendir(dirs[i]) || open(path, O_RDWR) >= 0)
            return 1;
        snprintf(path, sizeof path, "%s/planted", dirs[i]);
        if (open(path, O_RDWR | O_CREAT, 0600) >= 0 || errno != EACCES)
            return 2;
    }
    return 0;
}

static void a_secret_name_stays_secret(void **state)
{
    (void)state;
    struct places places;
    struct ring_memory memory;
    struct error err;
    char outer[64];
    need_root();
    places_init(&places, "forgery");
    snprintf(outer, sizeof outer, "/dev/shm/taillight-forgery-%d", (int)getpid());
    snprintf(places.rings, sizeof places.rings, "%s/0123456789abcdef", outer);
    assert_int_equal(ring_memory_open(&memory, places.rings, 1 << 20, &err), 0);
    assert_int_equal(as_nobody(look_and_write, &places), 0);
    ring_memory_remove(&memory);
    assert_int_equal(access(outer, F_OK), -1);
    places_clear(&places);
}

static void refused(const struct places *places, const char *words)
{
    struct message_collector *collector;
    struct error err;
    assert_int_equal(message_collector_create(places->rings, 0, NULL, 0, &collector, &err),
                     -ERROR_INPUT);
    if (!strstr(err.text, words))
        fail_msg("it says \"%s\"", err.text);
    places_clear(places);
}

static void a_directory_that_others_can_write_to(void **state)
{
    (void)state;
    static const mode_t modes[] = {0777, 0722, 01777, 0730};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        struct places places;
        places_init(&places, "forgery");
        assert_int_equal(mkdir(places.rings, 0700), 0);
        assert_int_equal(chmod(places.rings, modes[i]), 0);
        refused(&places, "can be written to by others");
    }
}

static void a_foreign_file_in_the_directory(void **state)
{
    (void)state;
    static const char *const names[] = {"control", "hello", "anything"};
    need_root();
    for (size_t i = 0; i < 4; i++) {
        struct places places;
        char path[200];
        places_init(&places, "forgery");
        assert_int_equal(mkdir(places.rings, 0700), 0);
        snprintf(path, sizeof path, "%s/%s", places.rings, i < 3 ? names[i] : "control");
        if (i < 3) {
            int fd = open(path, O_RDWR | O_CREAT, 0600);
            assert_true(fd >= 0 && fchown(fd, NOBODY, NOBODY) == 0);
            close(fd);
        } else {
            assert_int_equal(symlink("/etc/passwd", path), 0);
        }
        refused(&places, "1 other files");
    }
}

// --- the server's side ---------------------------------------------------------------------------

static void copy_file(const char *from, const char *to, uid_t owner)
{
    const char *const argv[] = {"cp", from, to, NULL};
    struct error err;
    if (process_run(argv, NULL, 20000, NULL, 0, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(chown(to, owner, owner), 0);
}

// How many processes take a place in files that root, or nobody, has put where a server looks.
static size_t places_taken(const struct places *places, uid_t owner)
{
    static const char *const names[] = {"control", "pool-0"};
    struct message_collector *collector;
    struct error err;
    char dir[64], variable[100], to[128], from[256];
    const char *const environment[] = {places->preload, variable, NULL};
    const char *const argv[] = {"/bin/true", NULL};
    const struct process_place place = {.environment = environment};
    struct pool_header header;
    size_t taken = 0;
    snprintf(dir, sizeof dir, "/dev/shm/forgery-%d", (int)getpid());
    snprintf(variable, sizeof variable, "TAILLIGHT_SHIM_DIR=%s", dir);
    assert_int_equal(message_collector_create(places->rings, 1 << 20, NULL, 0, &collector, &err),
                     0);
    assert_int_equal(mkdir(dir, 0755), 0);
    for (int i = 0; i < 2; i++) {
        snprintf(from, sizeof from, "%s/%s", places->rings, names[i]);
        snprintf(to, sizeof to, "%s/%s", dir, names[i]);
        copy_file(from, to, owner);
    }
    assert_int_equal(process_run(argv, &place, 20000, NULL, 0, &err), 0);
    int fd = open(to, O_RDONLY);
    assert_int_equal(pread(fd, &header, sizeof header, 0), sizeof header);
    for (uint32_t i = 0; i < header.chunks; i++) {
        uint64_t word = 0;
        assert_int_equal(pread(fd, &word, sizeof word, RING_PAGE_BYTES + i * (off_t)sizeof word),
                         sizeof word);
        taken += word != 0;
    }
    close(fd);
    for (int i = 0; i < 2; i++) {
        snprintf(to, sizeof to, "%s/%s", dir, names[i]);
        unlink(to);
    }
    rmdir(dir);
    message_collector_free(collector);
    return taken;
}

static void a_server_maps_no_file_of_others(void **state)
{
    (void)state;
    struct places places;
    need_root();
    places_init(&places, "forgery");
    assert_int_equal(places_taken(&places, 0), 1);
    assert_int_equal(places_taken(&places, NOBODY), 0);
    places_clear(&places);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_of_a_process_of_others),
        cmocka_unit_test(calls_in_the_name_of_another_process),
        cmocka_unit_test(a_secret_name_stays_secret),
        cmocka_unit_test(a_directory_that_others_can_write_to),
        cmocka_unit_test(a_foreign_file_in_the_directory),
        cmocka_unit_test(a_server_maps_no_file_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
