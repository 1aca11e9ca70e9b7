// SPDX-License-Identifier: MIT
#include "experiments/capsule/far_hops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/input_file.h"
#include "base/log_file.h"
#include "experiments/common/supervisor.h"
#include "experiments/remote/link_file.h"

enum {
    READY_S = 60,  // the kernel there checks its programs
    END_S = 120,   // to sort and write its records
    FETCH_S = 600, // the link itself notices sooner when it is down
    WAIT_MS = 100, // between two looks whether somebody wants it to end
    STOP_GRACE_MS = 400,
};

int far_hops_plan(struct far_hops *hops, const char *address, const char *ssh_config,
                  const struct option_list *ssh_options, const char *directory, struct error *err)
{
    struct experiment_host *plan = &hops->plan;
    hops->process = (struct process){.input = -1, .output = -1};
    plan->address = address;
    plan->ssh_config = ssh_config;
    plan->directory = directory ? directory : "/tmp";
    if (!link_file_address_is_plain(address))
        return error_set(err, ERROR_INPUT, "--hop: \"%s\" is not a [user@]host as ssh takes it",
                         address);
    if (!link_file_base_is_plain(plan->directory))
        return error_set(err, ERROR_INPUT,
                         "--directory: \"%s\" is not an absolute path of letters, digits, '.', "
                         "'_', '-' and '/'",
                         plan->directory);
    snprintf(plan->name, sizeof plan->name, "%.31s", address);
    for (size_t i = 0; i < ssh_options->count; i++)
        if (array_push(&plan->ssh_options, ssh_options->items[i]) < 0)
            return error_set(err, ERROR_FAILED, "out of memory");
    return array_push(&plan->ssh_options, NULL) < 0 ? error_set(err, ERROR_FAILED, "out of memory")
                                                    : 0;
}

// --- the command there ---------------------------------------------------------------------------

// Waits until a process has ended, or somebody asks us to end.
static int wait_end(struct far_hops *hops, struct process *process, const char *doing, int seconds,
                    int *status, struct error *err)
{
    int64_t end_ns = monotonic_ns() + seconds * INT64_C(1000000000);
    while (monotonic_ns() < end_ns) {
        int result = process_wait(process, WAIT_MS, status, err);
        if (result != 0)
            return result < 0 ? result : 0;
        if (process_is_interrupted())
            return error_set(err, ERROR_FAILED, "%s: interrupted while %s", hops->far.what, doing);
    }
    return error_set(err, ERROR_FAILED, "%s: %s takes more than %d s", hops->far.what, doing,
                     seconds);
}

static int report_end(struct far_hops *hops, int status, struct error *err)
{
    return supervisor_end_error(err, hops->far.what, status, hops->far.log_path);
}

static int wait_ready(struct far_hops *hops, struct error *err)
{
    int64_t end_ns = monotonic_ns() + READY_S * INT64_C(1000000000);
    char line[512];
    while (monotonic_ns() < end_ns) {
        int status, result = process_read_line(&hops->process, line, sizeof line, WAIT_MS, err);
        if (result < 0)
            return result;
        if (result > 0) {
            json_t *ready = json_loads(line, 0, NULL);
            hops->room_bytes = (uint32_t)json_integer_value(json_object_get(ready, "room_bytes"));
            json_decref(ready);
            return 0;
        }
        result = process_wait(&hops->process, 0, &status, err);
        if (result != 0)
            return result < 0 ? result : report_end(hops, status, err);
        if (process_is_interrupted())
            return error_set(err, ERROR_FAILED, "%s: interrupted while hops were attached there",
                             hops->far.what);
    }
    return error_set(err, ERROR_FAILED, "%s: no hops were attached within %d s", hops->far.what,
                     READY_S);
}

static int start_command(struct far_hops *hops, const struct command_line *arguments,
                         struct error *err)
{
    char program[FAR_PATH_BYTES];
    struct command_line line = {.failed = arguments->failed};
    const struct process_place place = {
        .log_path = hops->far.log_path, .pipe_input = true, .pipe_output = true};
    command_line_add_list(
        &line,
        (const char *const[]){far_host_path(&hops->far, "taillight", program), "capsule", NULL});
    for (size_t i = 0; i < arguments->words.count; i++)
        command_line_add(&line, arguments->words.items[i]);
    command_line_add_list(&line, (const char *const[]){"--out", hops->there, "--clocks",
                                                       "--announce", "--quiet", NULL});
    int result = command_line_result(&line, err);
    if (result == 0)
        result = far_host_process(&hops->far, line.words.items, &place, &hops->process, err);
    command_line_free(&line);
    return result == 0 ? wait_ready(hops, err) : result;
}

// The private folder is that of the link, which a keeper removes however this process ends.
static int make_folder(struct far_hops *hops, const char *here, struct error *err)
{
    int length;
    if (here)
        length = snprintf(hops->here, sizeof hops->here, "%s", here);
    else
        length = snprintf(hops->here, sizeof hops->here, "%.*s/records",
                          (int)(strrchr(hops->far.link_file, '/') - hops->far.link_file),
                          hops->far.link_file);
    if (length >= (int)sizeof hops->here)
        return error_set(err, ERROR_INPUT, "--out: %s is too long", here);
    if (mkdir(hops->here, 0700) < 0 && errno != EEXIST)
        return error_set_errno(err, ERROR_FAILED, "cannot create %s", hops->here);
    return 0;
}

int far_hops_start(struct far_hops *hops, const struct command_line *arguments, const char *here,
                   struct error *err)
{
    int result = far_host_start(&hops->far, &hops->keeper, &hops->plan, NULL, err);
    if (result < 0)
        return result;
    snprintf(hops->there, sizeof hops->there, "%s/hops", hops->far.directory);
    result = make_folder(hops, here, err);
    if (result == 0)
        result = start_command(hops, arguments, err);
    return result == 0 ? far_hops_check(hops, err) : result;
}

int far_hops_check(struct far_hops *hops, struct error *err)
{
    struct link_trip trip;
    int status, result = process_wait(&hops->process, 0, &status, err);
    if (result != 0)
        return result < 0 ? result : report_end(hops, status, err);
    int64_t before_ns = monotonic_ns();
    result = keeper_clock_offset(&hops->keeper, &trip.offset_ns, &trip.bound_ns, err);
    if (result < 0)
        return result;
    trip.at_ns = before_ns + (monotonic_ns() - before_ns) / 2;
    return array_push(&hops->trips, trip) < 0 ? error_set(err, ERROR_FAILED, "out of memory") : 0;
}

// --- its records ---------------------------------------------------------------------------------

static int read_records(struct far_hops *hops, const char *clocks, const char *path,
                        struct error *err)
{
    struct log_reader log, clock_log;
    int result =
        log_reader_open(&log, path, LOG_HOPS, HOP_LOG_VERSION, sizeof(struct hop_record), err);
    if (result < 0)
        return result;
    result = log_reader_open(&clock_log, clocks, LOG_CLOCK, CLOCK_LOG_VERSION,
                             sizeof(struct clock_reading), err);
    if (result == 0) {
        if (memcmp(log.header.boot_id, clock_log.header.boot_id, sizeof log.header.boot_id) != 0)
            result = error_set(err, ERROR_INPUT, "%s is of another boot than clock.tlog beside it",
                               path);
        log_reader_close(&clock_log);
    }
    if (result == 0)
        result = clock_map_open(clocks, &hops->clocks, err);
    const struct hop_record *records = log.records;
    for (size_t i = 0; i < log.count && result == 0; i++)
        if (array_push(&hops->records, records[i]) < 0)
            result =
                error_set(err, ERROR_FAILED, "no memory for the records of %s", hops->far.what);
    log_reader_close(&log);
    return result;
}

static int read_folder(struct far_hops *hops, struct error *err)
{
    char path[4200], clocks[4200];
    json_error_t problem;
    snprintf(path, sizeof path, "%s/capsule.json", hops->here);
    hops->document = input_json(path, &problem);
    if (!hops->document)
        return error_set(err, ERROR_INPUT, "%s cannot be read: %.200s", path, problem.text);
    const json_t *forgotten = json_object_get(hops->document, "forgotten");
    hops->lost = (uint64_t)json_integer_value(forgotten);
    snprintf(path, sizeof path, "%s/hops.tlog", hops->here);
    snprintf(clocks, sizeof clocks, "%s/clock.tlog", hops->here);
    return read_records(hops, clocks, path, err);
}

static int fetch(struct far_hops *hops, struct error *err)
{
    const struct process_place place = {.log_path = hops->far.log_path};
    struct process copy;
    int status = 0;
    int result =
        far_host_fetch(&hops->far, hops->there, hops->here, FAR_PART_ALL, &place, &copy, err);
    if (result < 0)
        return result;
    result = wait_end(hops, &copy, "its records are brought here", FETCH_S, &status, err);
    process_stop(&copy, 0);
    return result == 0 && status
               ? supervisor_end_error(err, hops->far.what, status, hops->far.log_path)
               : result;
}

int far_hops_tell(struct far_hops *hops, const char *line, struct error *err)
{
    char text[64];
    int bytes = snprintf(text, sizeof text, "%s\n", line);
    return write(hops->process.input, text, (size_t)bytes) == bytes
               ? 0
               : error_set_errno(err, ERROR_FAILED, "%s cannot be told \"%s\"", hops->far.what,
                                 line);
}

int far_hops_finish(struct far_hops *hops, struct error *err)
{
    int status = 0;
    int result = far_hops_check(hops, err);
    if (result < 0)
        return result;
    close(hops->process.input); // the end of its input makes it end
    hops->process.input = -1;
    result = wait_end(hops, &hops->process, "its records are written", END_S, &status, err);
    if (result < 0)
        return result;
    if (status && !(WIFEXITED(status) && WEXITSTATUS(status) == ERROR_INCONCLUSIVE))
        return supervisor_end_error(err, hops->far.what, status, hops->far.log_path);
    result = fetch(hops, err);
    return result == 0 ? read_folder(hops, err) : result;
}

void far_hops_end(struct far_hops *hops)
{
    struct error ignored;
    if (!hops->plan.address)
        return;
    process_stop(&hops->process, STOP_GRACE_MS);
    if (hops->far.what[0]) {
        keeper_end(&hops->keeper, &ignored);
        far_host_end(&hops->far);
    }
    clock_map_free(hops->clocks);
    json_decref(hops->document);
    array_free(&hops->records);
    array_free(&hops->trips);
    array_free(&hops->plan.ssh_options);
}
