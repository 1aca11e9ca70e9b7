// SPDX-License-Identifier: MIT
//
// The files of a recording: two processes that see different files under one path, as those of
// containers do, leave both, and the analysis takes for each process the one that it runs; so it
// does of one whose file was removed. Code that a process made, which no file has, comes, too, and
// what it calls it.
// Runs beside others: it waits for nobody, and times nothing.
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/code/code_build.h"
#include "analysis/perf/perf_data.h"
#include "experiments/capture/trace_code.h"
#include "tests/analysis/perf/capture_folder.h"
#include "tests/skip.h"

static struct capture_folder folder;
static char program[128]; // that two processes run
static char removed[128]; // that the third one runs
static uint8_t *made;     // where the fourth one has code that it made, behind a page of nothing
enum { CHILDREN = 4, PAGE_BYTES = 4096, RETURNS = 0xc3 };
static pid_t children[CHILDREN];

// Runs a shell under a path: what is there, or for this process `instead`.
static pid_t begin_child(const char *path, const char *instead)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    if (instead &&
        (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
         mount(instead, path, NULL, MS_BIND, NULL) < 0))
        _exit(1);
    if (path == removed)
        execl(path, path, "-c", "rm $0; for i in $(seq 3000); do sleep 0.01; done", path, NULL);
    execl(path, path, "-c", "for i in $(seq 3000); do sleep 0.01; done", NULL);
    _exit(1);
}

// Until then it is a copy of this process.
static bool runs_program(pid_t child)
{
    char link[64], exe[200] = "";
    snprintf(link, sizeof link, "/proc/%d/exe", (int)child);
    return readlink(link, exe, sizeof exe - 1) > 0 && strstr(exe, folder.path) == exe;
}

static pid_t begin_maker(void)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    memset(made + PAGE_BYTES, RETURNS, 16);
    for (;;)
        usleep(10000);
}

static void expect_made_code(const struct code_images *images)
{
    const struct code_space *space = code_images_at(images, (uint32_t)children[3], UINT64_MAX - 1);
    assert_non_null(space);
    assert_null(code_space_find(space, (uintptr_t)made));
    const struct code_section *section = code_space_find(space, (uintptr_t)made + PAGE_BYTES);
    assert_non_null(section);
    FILE *file = fopen(images->files.items[section->file].path, "r");
    assert_non_null(file);
    assert_int_equal(fseek(file, (long)section->file_offset, SEEK_SET), 0);
    for (int i = 0; i < 17; i++)
        assert_int_equal(fgetc(file), i < 16 ? RETURNS : 0);
    fclose(file);
    for (size_t i = 0; i < images->complaints.count; i++)
        assert_null(strstr(images->complaints.items[i].text, "//anon"));
}

// The file that the analysis takes for the process is the one that it runs, byte for byte.
static void expect_own_file(const struct code_images *images, pid_t child, const char *path)
{
    const struct code_space *space = code_images_at(images, (uint32_t)child, UINT64_MAX - 1);
    assert_non_null(space);
    const char *taken = NULL;
    for (size_t i = 0; i < space->sections.count && !taken; i++) {
        const struct code_file *file = &images->files.items[space->sections.items[i].file];
        if (strcmp(file->mapped_path, path) == 0)
            taken = file->path;
    }
    assert_non_null(taken);
    assert_ptr_equal(strstr(taken, folder.path), taken); // not this machine's own
    char command[600];
    snprintf(command, sizeof command, "cmp '%s' /proc/%d/exe", taken, (int)child);
    assert_true(run_quietly(command));
}

static void each_process_has_the_file_that_it_runs(void **state)
{
    (void)state;
    char path[128], command[600], symfs[128], called[128], gone[160];
    char narrow[160];
    struct trace_code code, without; // without room
    struct perf_data data;
    struct perf_maps maps;
    struct code_images images;
    struct error err;
    snprintf(narrow, sizeof narrow, "%s/narrow", folder.path);
    assert_int_equal(mkdir(narrow, 0700), 0);
    snprintf(path, sizeof path, "%s/perf.data", folder.path);
    snprintf(symfs, sizeof symfs, "%s/symfs", folder.path);
    snprintf(
        command, sizeof command,
        "perf record -e cpu-clock --switch-events -p %d,%d,%d,%d -o %s -- sleep 0.3 >%s/log 2>&1",
        (int)children[0], (int)children[1], (int)children[2], (int)children[3], path, folder.path);
    if (!run_quietly(command))
        skip_case("perf records nothing here");
    snprintf(called, sizeof called, "/tmp/perf-%d.map", (int)children[0]);
    snprintf(command, sizeof command, "echo 1000 10 compiled >%s", called);
    assert_true(run_quietly(command));
    assert_int_equal(trace_code_collect(path, narrow, true, UINT64_MAX / 2, &without, &err), 0);
    assert_int_equal(trace_code_collect(path, folder.path, true, 0, &code, &err), 0);
    assert_int_equal(without.bytes, 0);
    assert_int_equal(without.unfit, code.files - 1 + code.made); // the vDSO is no file
    unlink(called);
    assert_int_equal(code.missing + code.changed + code.unfit, 0);
    assert_int_equal(code.maps, 1);
    assert_int_equal(code.made, 1);
    snprintf(command, sizeof command, "grep -q compiled %s/perf-%d.map", folder.path,
             (int)children[0]);
    assert_true(run_quietly(command));
    assert_int_equal(perf_data_open(path, NULL, &data, &err), 0);
    assert_int_equal(perf_maps_build(&data, 0, &maps, &err), 0);
    struct code_image_options options = {
        .symfs = symfs, .recording = path, .build_id_cache = folder.path, .no_host_files = true};
    assert_int_equal(code_images_build(&maps, &options, &images, &err), 0);
    for (int i = 0; i < 2; i++)
        expect_own_file(&images, children[i], program);
    snprintf(gone, sizeof gone, "%s (deleted)", removed);
    expect_own_file(&images, children[2], gone);
    expect_made_code(&images);
    code_images_free(&images);
    perf_maps_free(&maps);
    perf_data_free(&data);
}

int main(void)
{
    char command[600], other[128];
    if (geteuid() != 0) {
        puts("a mount namespace needs root");
        return 77;
    }
    snprintf(folder.path, sizeof folder.path, "/tmp/taillight-code-XXXXXX");
    if (!mkdtemp(folder.path))
        return 1;
    snprintf(program, sizeof program, "%s/program", folder.path);
    snprintf(other, sizeof other, "%s/other", folder.path);
    snprintf(removed, sizeof removed, "%s/removed", folder.path);
    snprintf(command, sizeof command, "cp /bin/dash %s && cp /bin/bash %s && cp /bin/dash %s",
             program, other, removed);
    made = mmap(NULL, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int failed = 1;
    if (made != MAP_FAILED && run_quietly(command)) {
        children[0] = begin_child(program, NULL);
        children[1] = begin_child(program, other);
        children[2] = begin_child(removed, NULL);
        children[3] = begin_maker();
        for (int looks = 0;
             looks < 3000 && (access(removed, F_OK) == 0 || !runs_program(children[0]) ||
                              !runs_program(children[1]));
             looks++)
            usleep(10000);
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(each_process_has_the_file_that_it_runs),
        };
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    }
    for (int i = 0; i < CHILDREN && children[i] > 0; i++) {
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
    }
    remove_capture(&folder);
    return failed;
}
