// SPDX-License-Identifier: MIT
//
// The kernel's other waits as they are recorded: this test forks, writes to what it then shares,
// and syncs a file, while it is captured.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log_file.h"
#include "profiler/bpf/event_log.h"
#include "profiler/events_capture.h"
#include "profiler/events_programs.h"
#include "profiler/host_facts.h"

enum { PAGES = 300, PAGE = 4096 };

static bool is_attached(const struct events_capture *capture, const char *name)
{
    for (size_t i = 0; i < EVENT_PROGRAMS; i++)
        if (strcmp(event_programs[i].name, name) == 0)
            return events_capture_programs(capture)[i].attached;
    return false;
}

static void touch_pages(char *pages)
{
    for (size_t i = 0; i < PAGES; i++)
        ((volatile char *)pages)[i * PAGE]++;
}

static void fork_and_write(char *pages)
{
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    touch_pages(pages);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

// Whether it lies on a disk: other file systems have no device of their own.
static bool sync_file(const char *folder)
{
    char path[128];
    struct stat status = {0};
    snprintf(path, sizeof path, "%s/synced", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0 && write(fd, path, sizeof path) > 0 && fsync(fd) == 0);
    fstat(fd, &status);
    close(fd);
    unlink(path);
    return major(status.st_dev) != 0;
}

static void forks_copies_and_disks_are_recorded(void **state)
{
    (void)state;
    const struct events_capture_settings settings = {
        .groups = EVENT_GROUP_FAULTS | EVENT_GROUP_WAITS, .ring_bytes = 4 << 20};
    struct events_capture *capture;
    struct log_reader reader;
    struct error err = {0};
    char folder[] = "/tmp/taillight-waits-XXXXXX", path[128];
    assert_non_null(mkdtemp(folder));
    char *pages =
        mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    madvise(pages, PAGES * PAGE, MADV_NOHUGEPAGE);
    touch_pages(pages);
    if (events_capture_open(&settings, &capture, &err) < 0)
        fail_msg("%s", err.text);
    bool forks = is_attached(capture, "sched_process_fork") && is_attached(capture, "rss_stat");
    bool disks = is_attached(capture, "block_rq_complete");
    fork_and_write(pages);
    disks &= sync_file(folder);
    assert_int_equal(events_capture_stop(capture, folder, NULL, &err), 0);
    events_capture_free(capture);
    snprintf(path, sizeof path, "%s/events.tlog", folder);
    assert_int_equal(
        log_reader_open(&reader, path, LOG_EVENTS, EVENT_LOG_VERSION, sizeof(struct event), &err),
        0);
    const struct event *events = reader.records;
    size_t forked = 0, copied = 0, completed = 0, named = 0;
    for (size_t i = 0; i < reader.count; i++) {
        bool mine = events[i].id == (uint32_t)getpid();
        forked += mine && events[i].kind == EVENT_DETOUR && events[i].flags == DETOUR_FORK &&
                  events[i].payload.a > 0 && events[i].payload.a < events[i].time;
        copied += mine && events[i].kind == EVENT_PAGE_FAULT && (events[i].flags & FAULT_COPIES) &&
                  events[i].payload.a - (uint64_t)(uintptr_t)pages < PAGES * PAGE;
        completed += events[i].kind == EVENT_DISK_DONE && events[i].payload.a <= events[i].time;
        named += events[i].kind == EVENT_DISK && events[i].payload.text[0];
    }
    print_message("%zu forks, %zu pages copied, %zu requests of %zu disks\n", forked, copied,
                  completed, named);
    assert_true(!forks || forked == 1);
    assert_true(copied >= PAGES);
    assert_true(!disks || (completed > 0 && named > 0));
    log_reader_close(&reader);
    unlink(path);
    snprintf(path, sizeof path, "%s/sockets.tlog", folder);
    unlink(path);
    rmdir(folder);
    munmap(pages, PAGES * PAGE);
}

int main(void)
{
    char lacking[64];
    if (geteuid() != 0 || privilege_lacking_for_bpf(lacking, sizeof lacking)[0]) {
        printf("needs root: BPF\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forks_copies_and_disks_are_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
