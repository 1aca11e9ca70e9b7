// SPDX-License-Identifier: MIT
#include "profiler/doctor/doctor.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/json_numbers.h"
#include "base/log_file.h"
#include "base/text.h"
#include "profiler/doctor/doctor_checks.h"
#include "profiler/host/host_facts.h"

// Looks at everything: some hundred milliseconds, every wait bounded. Fails only without memory.
// check_backends: examines what a capture can be made with, which the floor above knows; NULL: that
// is not tried. The caller frees with array_free.
static int doctor_examine(doctor_check check_backends, struct doctor_items *items,
                          struct error *err)
{
    memset(items, 0, sizeof *items);
    doctor_check_machine(items);
    doctor_check_capture(items);
    if (check_backends)
        check_backends(items);
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
    host_read_field("/etc/os-release", "PRETTY_NAME", os, sizeof os);
    host_read_field("/proc/cpuinfo", "model name", cpu, sizeof cpu);
    host_read_field("/proc/cpuinfo", "flags", flags, sizeof flags);
    host_read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", clocksource,
                   sizeof clocksource);
    log_boot_id(boot_id);
    json_int_t memory = (json_int_t)sysconf(_SC_PHYS_PAGES) * (json_int_t)sysconf(_SC_PAGESIZE);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:b, s:s, s:s, s:s}", "hostname",
                     name.nodename, "kernel", name.release, "architecture", name.machine, "os", os,
                     "cpu", cpu, "cores", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "memory_bytes",
                     memory, "virtual_machine", host_has_word(flags, "hypervisor"), "clocksource",
                     clocksource, "boot_id", boot_id, "taillight", TAILLIGHT_VERSION);
}

// The document of `taillight doctor --json`:
//   {"host": {"hostname", "kernel", "os", "cpu", "cores", "memory_bytes", "boot_id", …},
//    "items": [{"group", "name", "state", "found", "gives", "missing", "how"}, …]}
// NULL without memory. The caller owns it.
static json_t *doctor_json(const struct doctor_items *items)
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
    if (doctor_examine(NULL, &items, &err) < 0)
        return NULL;
    json_t *facts = doctor_json(&items);
    array_free(&items);
    return facts;
}

// --- for people ----------------------------------------------------------------------------------

static void print_item(const struct doctor_item *item)
{
    enum { TEXT_COLUMN = 38 };
    const int width = text_width(stdout);
    char text[sizeof item->found + sizeof item->missing + 4];
    snprintf(text, sizeof text, "%s%s%s", item->found,
             item->found[0] && item->missing[0] ? "; " : "", item->missing);
    printf("  %-7s %-27s ", doctor_state_name(item->state), item->name);
    text_wrap(stdout, text, TEXT_COLUMN, width);
    if (item->state == DOCTOR_YES)
        return;
    char more[sizeof item->gives + sizeof item->how + 16];
    snprintf(more, sizeof more, "for %s: %s", item->gives, item->how);
    printf("%*s", TEXT_COLUMN, "");
    text_wrap(stdout, more, TEXT_COLUMN, width);
}

static void print_people(const struct doctor_items *items, const struct doctor_options *chosen)
{
    for (int group = 0; group < DOCTOR_GROUPS; group++) {
        bool titled = false;
        for (size_t i = 0; i < items->count; i++) {
            const struct doctor_item *item = &items->items[i];
            bool good = item->state == DOCTOR_YES;
            if ((int)item->group != group || (good && chosen->quiet) ||
                (good && group == DOCTOR_EVENTS && !chosen->all))
                continue;
            if (!titled)
                printf("%s\n", doctor_group_name(item->group));
            titled = true;
            print_item(item);
        }
    }
}

int doctor_print(const struct doctor_options *chosen, doctor_check check_backends,
                 struct error *err)
{
    struct doctor_items items;
    int result = 0;
    if (doctor_examine(chosen->facts ? NULL : check_backends, &items, err) < 0)
        return -ERROR_FAILED;
    if (chosen->json || chosen->facts) {
        result = json_print_new(doctor_json(&items), JSON_INDENT(2), "the doctor's findings", err);
    } else {
        print_people(&items, chosen);
        if (fflush(stdout) != 0)
            result = error_set_errno(err, ERROR_FAILED, "cannot print the doctor's findings");
    }
    array_free(&items);
    return result;
}
