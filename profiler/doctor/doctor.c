// SPDX-License-Identifier: MIT
#include "profiler/doctor.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/log_file.h"
#include "profiler/doctor_checks.h"

const char *doctor_group_name(enum doctor_group group)
{
    static const char *const names[DOCTOR_GROUPS] = {"machine", "capture", "events backend",
                                                     "network", "programs"};
    return names[group];
}

const char *doctor_state_name(enum doctor_state state)
{
    return state == DOCTOR_YES ? "yes" : state == DOCTOR_LIMITED ? "limited" : "no";
}

// --- what the checks share -----------------------------------------------------------------------

struct doctor_item *doctor_add(struct doctor_items *items, enum doctor_group group,
                               const char *name, const char *gives)
{
    struct doctor_item item = {.group = group, .state = DOCTOR_NO};
    snprintf(item.name, sizeof item.name, "%s", name);
    snprintf(item.gives, sizeof item.gives, "%s", gives);
    return array_push(items, item) < 0 ? NULL : &items->items[items->count - 1];
}

void doctor_found(struct doctor_item *item, enum doctor_state state, const char *format, ...)
{
    if (!item)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(item->found, sizeof item->found, format, args);
    va_end(args);
    item->state = state;
}

void doctor_missing(struct doctor_item *item, enum doctor_state state, const char *how,
                    const char *format, ...)
{
    if (!item)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(item->missing, sizeof item->missing, format, args);
    va_end(args);
    snprintf(item->how, sizeof item->how, "%s", how);
    item->state = state;
}

bool doctor_read_line(const char *path, char *out, size_t out_bytes)
{
    out[0] = '\0';
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool got = fgets(out, (int)out_bytes, file) != NULL;
    fclose(file);
    out[strcspn(out, "\n")] = '\0';
    return got;
}

bool doctor_read_field(const char *path, const char *key, char *out, size_t out_bytes)
{
    char *line = NULL;
    size_t line_bytes = 0, key_bytes = strlen(key);
    bool found = false;
    out[0] = '\0';
    FILE *file = fopen(path, "re");
    while (file && !found && getline(&line, &line_bytes, file) > 0) {
        const char *after = line + key_bytes;
        if (strncmp(line, key, key_bytes) != 0 || !strchr("\t :=", *after))
            continue;
        snprintf(out, out_bytes, "%s", after + strspn(after, "\t :=\""));
        out[strcspn(out, "\"\n")] = '\0';
        found = true;
    }
    free(line);
    if (file)
        fclose(file);
    return found;
}

bool doctor_has_word(const char *list, const char *word)
{
    size_t bytes = strlen(word);
    for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
        if ((at == list || at[-1] == ' ') && (at[bytes] == ' ' || at[bytes] == '\0'))
            return true;
    return false;
}

bool doctor_find_program(const char *name, char *out, size_t out_bytes)
{
    // Servers are often installed where only root's PATH leads.
    char places[4096];
    const char *path = getenv("PATH");
    snprintf(places, sizeof places, "%s:/usr/local/sbin:/usr/sbin:/sbin", path ? path : "");
    char *rest = places;
    for (char *place; (place = strsep(&rest, ":"));) {
        snprintf(out, out_bytes, "%s/%s", place, name);
        if (*place && access(out, X_OK) == 0)
            return true;
    }
    return false;
}

// --- the whole -----------------------------------------------------------------------------------

int doctor_examine(struct doctor_items *items, struct error *err)
{
    memset(items, 0, sizeof *items);
    doctor_check_machine(items);
    doctor_check_capture(items);
    doctor_check_network(items);
    doctor_check_programs(items);
    // Each group adds one item at least, so fewer means that memory ran out on the way.
    if (items->count == 0 || items->items[items->count - 1].group != DOCTOR_PROGRAMS) {
        array_free(items);
        return error_set(err, ERROR_FAILED, "no memory to examine this host");
    }
    return 0;
}

static json_t *host_json(void)
{
    struct utsname name;
    char os[128], cpu[128], boot_id[40], clocksource[64], flags[8192];
    if (uname(&name) < 0)
        memset(&name, 0, sizeof name);
    doctor_read_field("/etc/os-release", "PRETTY_NAME", os, sizeof os);
    doctor_read_field("/proc/cpuinfo", "model name", cpu, sizeof cpu);
    doctor_read_field("/proc/cpuinfo", "flags", flags, sizeof flags);
    doctor_read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                     clocksource, sizeof clocksource);
    log_boot_id(boot_id);
    json_int_t memory = (json_int_t)sysconf(_SC_PHYS_PAGES) * (json_int_t)sysconf(_SC_PAGESIZE);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:b, s:s, s:s, s:s}", "hostname",
                     name.nodename, "kernel", name.release, "architecture", name.machine, "os", os,
                     "cpu", cpu, "cores", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "memory_bytes",
                     memory, "virtual_machine", doctor_has_word(flags, "hypervisor"), "clocksource",
                     clocksource, "boot_id", boot_id, "taillight", TAILLIGHT_VERSION);
}

json_t *doctor_json(const struct doctor_items *items)
{
    json_t *list = json_array();
    for (size_t i = 0; i < items->count; i++) {
        const struct doctor_item *item = &items->items[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "group",
                                              doctor_group_name(item->group), "name", item->name,
                                              "state", doctor_state_name(item->state), "found",
                                              item->found, "gives", item->gives, "missing",
                                              item->missing, "how", item->how));
    }
    return json_pack("{s:o, s:o}", "host", host_json(), "items", list);
}

json_t *doctor_facts_json(void)
{
    struct doctor_items items;
    struct error err;
    if (doctor_examine(&items, &err) < 0)
        return NULL;
    json_t *facts = doctor_json(&items);
    array_free(&items);
    return facts;
}
