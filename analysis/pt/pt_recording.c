// SPDX-License-Identifier: MIT
#include "analysis/pt/pt_recording.h"

#include <inttypes.h>
#include <stdio.h>

static void set_text(json_t *out, const char *key, const char *text)
{
    json_t *value = text[0] ? json_string(text) : NULL; // NULL also when it is not UTF-8
    if (value)
        json_object_set_new(out, key, value);
}

static void set_number(json_t *out, const char *key, uint64_t number)
{
    if (number)
        json_object_set_new(out, key, json_integer((json_int_t)number));
}

static json_t *records_json(const struct perf_data *data)
{
    json_t *out = json_object();
    for (uint32_t type = 0; type < PERF_RECORD_TYPES; type++)
        if (data->counts[type])
            json_object_set_new(out, perf_record_name(type),
                                json_integer((json_int_t)data->counts[type]));
    return out;
}

static json_t *switches_json(const struct perf_data *data)
{
    json_t *out = json_object();
    for (size_t i = 0; i < data->switches.count; i++) {
        const struct perf_switches *switches = &data->switches.items[i];
        char cpu[16];
        snprintf(cpu, sizeof cpu, "%" PRIu32, switches->cpu);
        if (switches->cpu != PERF_NO_CPU)
            json_object_set_new(out, cpu, json_integer((json_int_t)switches->records));
    }
    return out;
}

static void set_host(json_t *out, const struct perf_data *data)
{
    static const char *const layouts[] = {[PERF_LAYOUT_FILE] = "file",
                                          [PERF_LAYOUT_PIPE] = "pipe",
                                          [PERF_LAYOUT_DIRECTORY] = "folder"};
    set_text(out, "layout", layouts[data->layout]);
    set_text(out, "hostname", data->hostname);
    set_text(out, "os_release", data->os_release);
    set_text(out, "arch", data->arch);
    set_text(out, "cpu", data->cpu_description);
    set_text(out, "cpuid", data->cpuid);
    set_text(out, "perf_version", data->perf_version);
    set_text(out, "command", data->command_line);
    set_number(out, "cpus_online", data->cpus_online);
}

static void set_clocks(json_t *out, const struct perf_data *data)
{
    set_number(out, "first_sample", data->first_sample_time);
    set_number(out, "last_sample", data->last_sample_time);
    if (data->time.valid)
        json_object_set_new(out, "tsc",
                            json_pack("{s:I, s:i, s:I}", "mult", (json_int_t)data->time.mult,
                                      "shift", (int)data->time.shift, "zero",
                                      (json_int_t)data->time.zero));
    if (data->has_clock_data)
        json_object_set_new(out, "clock",
                            json_pack("{s:i, s:I, s:I}", "id", (int)data->clock_id, "wall",
                                      (json_int_t)data->clock_wall_ns, "perf",
                                      (json_int_t)data->clock_perf_ns));
}

json_t *pt_recording_json(const struct perf_data *data)
{
    json_t *out = json_object();
    if (!out)
        return NULL;
    set_host(out, data);
    json_object_set_new(out, "records", records_json(data));
    json_object_set_new(out, "switches", switches_json(data));
    json_object_set_new(out, "lost_records", json_integer((json_int_t)data->lost_records));
    json_object_set_new(out, "aux_truncated", json_integer((json_int_t)data->aux_truncated));
    json_object_set_new(out, "complaints", json_integer((json_int_t)data->complaint_count));
    set_number(out, "lost_samples", data->lost_samples);
    set_number(out, "guest_records", data->guest_records);
    set_number(out, "unknown_records", data->unknown_records);
    set_clocks(out, data);
    return out;
}
