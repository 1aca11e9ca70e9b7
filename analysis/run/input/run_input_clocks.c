// SPDX-License-Identifier: MIT
#include "analysis/run/input/run_input_clocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "loadgen/client/sample_log.h"
#include "profiler/bpf/event_log.h"

static int64_t convert_by_map(const void *context, enum host_clock clock, uint64_t value)
{
    return clock_map_to_host(context, clock, value);
}

// Opens the clocks of one side. boot_id: the boot that they belong to.
static int open_clock(const char *run_dir, const char *name, const char *mend,
                      char boot_id[RUN_BOOT_ID_BYTES], struct clock_map **map,
                      struct time_source *source, struct error *err)
{
    char path[RUN_FILE_PATH_BYTES];
    struct log_reader log = {0};
    run_path(path, run_dir, name);
    if (access(path, F_OK) != 0)
        return error_set(err, ERROR_INPUT, "%s: no such file: %s", path, mend);
    int result = run_log_open(&log, run_dir, name, LOG_CLOCK, CLOCK_LOG_VERSION,
                              sizeof(struct clock_reading), err);
    if (result < 0)
        return result;
    memcpy(boot_id, log.header.boot_id, sizeof log.header.boot_id);
    log_reader_close(&log);
    result = clock_map_open(path, map, err);
    if (result == 0)
        *source = (struct time_source){
            .convert = convert_by_map, .context = *map, .error_ns = clock_map_worst_error_ns(*map)};
    return result;
}

int run_input_open_server_clock(const char *run_dir, char boot_id[RUN_BOOT_ID_BYTES],
                                struct clock_map **map, struct time_source *source,
                                struct error *err)
{
    return open_clock(run_dir, "server/clock.tlog",
                      "without it no stamp of this run can be placed in time; capture the run with "
                      "`taillight capture`",
                      boot_id, map, source, err);
}

// A log must come from the same boot as the clock log beside it: clocks restart with every boot.
static int check_boot(const char *run_dir, const char *name, const struct log_reader *log,
                      const char boot_id[RUN_BOOT_ID_BYTES], struct error *err)
{
    if (memcmp(log->header.boot_id, boot_id, sizeof log->header.boot_id) == 0)
        return 0;
    return error_set(err, ERROR_INPUT,
                     "%s: %s is of boot %.36s and the clock.tlog beside it of boot %.36s: nothing "
                     "relates their clocks; take logs of one capture, without a reboot in between",
                     run_dir, name, log->header.boot_id, boot_id);
}

// A log that lies wholly before or behind the clock log beside it is of another run than that:
// clocks drift, and its times would be those of a line that is extended for as long.
static int check_moments(const char *run_dir, const char *name, const char *side,
                         const struct clock_map *map, enum host_clock clock, uint64_t first,
                         uint64_t last, struct error *err)
{
    const int64_t apart = clock_map_apart_ns(map, clock, first, last);
    if (apart == 0)
        return 0;
    return error_set(err, ERROR_INPUT,
                     "%s: %s/clock.tlog is of another run than %s, all of which is at least %s %s "
                     "it: copy both from where they were",
                     run_dir, side, name, TEXT_INSTANT((double)llabs(apart)),
                     apart < 0 ? "before" : "after");
}

// Of each log that there is two moments, by the clocks of the machine that it is from.
static int check_all_moments(const struct run_input *input, const char *run_dir, struct error *err)
{
    char name[RUN_LOAD_FILE_BYTES];
    const struct sample *samples = input->samples.records;
    const struct event *events = input->events.records;
    const struct call *calls = input->calls.records;
    const bool apart = input->apart;
    int result = 0;
    if (!input->without_client && input->samples.count)
        result = check_moments(run_dir, run_load_file(input->folder, "samples.tlog", name),
                               apart ? "client" : "server",
                               apart ? input->client_clock_map : input->clock_map, HOST_CLOCK_TSC,
                               samples[0].intended_tsc,
                               samples[input->samples.count - 1].intended_tsc, err);
    if (result == 0 && input->has_events && input->events.count)
        result = check_moments(run_dir, "server/events.tlog", "server", input->clock_map,
                               HOST_CLOCK_MONOTONIC, events[0].time,
                               events[input->events.count - 1].time, err);
    if (result == 0 && input->has_calls && input->calls.count)
        result =
            check_moments(run_dir, "server/calls.tlog", "server", input->clock_map, HOST_CLOCK_TSC,
                          calls[0].entry_tsc, calls[input->calls.count - 1].entry_tsc, err);
    return result;
}

static int open_clocks(struct run_input *input, const char *run_dir, struct error *err)
{
    char server[RUN_BOOT_ID_BYTES], client[RUN_BOOT_ID_BYTES], name[RUN_LOAD_FILE_BYTES];
    int result =
        run_input_open_server_clock(run_dir, server, &input->clock_map, &input->clock, err);
    if (result == 0)
        memcpy(input->boot_id, server, sizeof input->boot_id);
    if (result == 0 && input->has_events)
        result = check_boot(run_dir, "server/events.tlog", &input->events, server, err);
    if (result == 0 && input->has_calls)
        result = check_boot(run_dir, "server/calls.tlog", &input->calls, server, err);
    if (result < 0 || input->without_client)
        return result;
    if (memcmp(input->samples.header.boot_id, server, sizeof server) == 0)
        return input->has_client_events
                   ? check_boot(run_dir, "client/events.tlog", &input->client_events, server, err)
                   : 0;
    input->apart = true;
    result = open_clock(run_dir, "client/clock.tlog",
                        "client and server are of different boots, and the client's stamps cannot "
                        "be placed in time without it; on the client's host run `taillight capture "
                        "--backend none --no-events --out DIR` beside the load and take clock.tlog "
                        "from there",
                        client, &input->client_clock_map, &input->client_clock, err);
    if (result == 0)
        memcpy(input->client_boot_id, client, sizeof input->client_boot_id);
    if (result == 0 && input->has_client_events)
        result = check_boot(run_dir, "client/events.tlog", &input->client_events, client, err);
    return result < 0 ? result
                      : check_boot(run_dir, run_load_file(input->folder, "samples.tlog", name),
                                   &input->samples, client, err);
}

// All loads come from one machine.
static int check_other_loads(const struct run_input *input, const char *run_dir, struct error *err)
{
    int result = 0;
    for (size_t i = 0; i < input->other_loads.count && result == 0; i++) {
        const struct run_load *load = &input->other_loads.items[i];
        char name[RUN_LOAD_FILE_BYTES];
        snprintf(name, sizeof name, "%s/samples.tlog", load->folder);
        if (load->samples.records)
            result = check_boot(run_dir, name, &load->samples, input->samples.header.boot_id, err);
    }
    return result;
}

int run_input_open_clocks(struct run_input *input, const char *run_dir, struct error *err)
{
    int result = open_clocks(input, run_dir, err);
    if (result == 0)
        result = check_all_moments(input, run_dir, err);
    return result == 0 ? check_other_loads(input, run_dir, err) : result;
}
