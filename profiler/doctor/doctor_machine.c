// SPDX-License-Identifier: MIT
//
// The doctor's checks of the machine itself: cores, clocks, and settings that make latency vary.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/process.h"
#include "base/program_package.h"
#include "base/text.h"
#include "profiler/doctor/doctor_checks.h"
#include "profiler/host/host_facts.h"

#define CPU0 "/sys/devices/system/cpu/cpu0"

static void check_cores(struct doctor_items *items)
{
    char model[128];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct doctor_item *item =
        doctor_add(items, DOCTOR_MACHINE, "cores", "client, server and capture apart");
    host_read_field("/proc/cpuinfo", "model name", model, sizeof model);
    doctor_found(item, cores > 2 ? DOCTOR_YES : DOCTOR_LIMITED, "%ld x %s", cores,
                 model[0] ? model : "unnamed CPU");
    if (cores <= 2)
        doctor_missing(item, DOCTOR_LIMITED, "a machine with 4 cores or more, or a second host",
                       cores == 1 ? "everything shares one core"
                                  : "the capture shares a core with client or server");
}

static void check_tsc(struct doctor_items *items)
{
    static char flags[8192];
    char source[64];
    struct doctor_item *item =
        doctor_add(items, DOCTOR_MACHINE, "TSC", "host time in one instruction, on every core");
    host_read_field("/proc/cpuinfo", "flags", flags, sizeof flags);
    host_read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
                   sizeof source);
    bool constant = host_has_word(flags, "constant_tsc");
    bool nonstop = host_has_word(flags, "nonstop_tsc");
    doctor_found(item, DOCTOR_YES, "%s%sclocksource %s", constant ? "constant, " : "",
                 nonstop ? "nonstop, " : "", source);
    if (!constant || !nonstop)
        doctor_missing(item, DOCTOR_LIMITED, "fix the frequency and disable deep idle states",
                       "the TSC's rate may change with frequency or idling");
    else if (strcmp(source, "tsc") != 0)
        doctor_missing(item, DOCTOR_LIMITED,
                       "boot with clocksource=tsc tsc=reliable, if the hypervisor keeps it steady",
                       "the kernel does not trust the TSC: its clocks are converted with a larger "
                       "error");
}

static void check_idle_states(struct doctor_items *items)
{
    char path[128], name[64], latency[32], disabled[8], deepest[64] = "";
    long worst = 0;
    int states = 0;
    struct doctor_item *item =
        doctor_add(items, DOCTOR_MACHINE, "idle states", "wake-ups that take the same time");
    for (;; states++) {
        snprintf(path, sizeof path, CPU0 "/cpuidle/state%d/name", states);
        if (!host_read_line(path, name, sizeof name))
            break;
        snprintf(path, sizeof path, CPU0 "/cpuidle/state%d/latency", states);
        host_read_line(path, latency, sizeof latency);
        snprintf(path, sizeof path, CPU0 "/cpuidle/state%d/disable", states);
        host_read_line(path, disabled, sizeof disabled);
        if (strcmp(disabled, "1") != 0 && strtol(latency, NULL, 10) >= worst) {
            worst = strtol(latency, NULL, 10);
            snprintf(deepest, sizeof deepest, "%s", name);
        }
    }
    if (states == 0)
        doctor_found(item, DOCTOR_YES, "none that Linux controls");
    else
        doctor_found(item, DOCTOR_YES, "deepest enabled: %s, %s to leave", deepest,
                     TEXT_US((double)worst));
    if (worst > 10)
        doctor_missing(item, DOCTOR_LIMITED, "cpupower idle-set -D 10",
                       "waking an idle core costs up to %s", TEXT_US((double)worst));
}

static void check_frequency(struct doctor_items *items)
{
    char governor[64];
    struct doctor_item *item =
        doctor_add(items, DOCTOR_MACHINE, "frequency", "work that takes the same time");
    if (!host_read_line(CPU0 "/cpufreq/scaling_governor", governor, sizeof governor)) {
        doctor_found(item, DOCTOR_LIMITED, "not under Linux's control");
        doctor_missing(item, DOCTOR_LIMITED, "the firmware's or the hypervisor's settings",
                       "frequency may change unseen");
        return;
    }
    doctor_found(item, DOCTOR_YES, "governor %s", governor);
    if (strcmp(governor, "performance") != 0)
        doctor_missing(item, DOCTOR_LIMITED, "cpupower frequency-set -g performance",
                       "frequency follows load");
}

static void check_numa(struct doctor_items *items)
{
    char balancing[16];
    int nodes = 0;
    struct doctor_item *item =
        doctor_add(items, DOCTOR_MACHINE, "NUMA balancing", "no pages moved under way");
    DIR *folder = opendir("/sys/devices/system/node");
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        nodes += strncmp(entry->d_name, "node", 4) == 0 && entry->d_name[4] >= '0' &&
                 entry->d_name[4] <= '9';
    if (folder)
        closedir(folder);
    host_read_line("/proc/sys/kernel/numa_balancing", balancing, sizeof balancing);
    bool on = balancing[0] && strcmp(balancing, "0") != 0;
    doctor_found(item, DOCTOR_YES, "%s, %d node%s", on ? "on" : "off", nodes > 1 ? nodes : 1,
                 nodes > 1 ? "s" : "");
    if (on && nodes > 1)
        doctor_missing(item, DOCTOR_LIMITED, "sysctl kernel.numa_balancing=0",
                       "the kernel unmaps pages to see who uses them: page faults");
}

static void check_space(struct doctor_items *items)
{
    struct statvfs status;
    struct doctor_item *item =
        doctor_add(items, DOCTOR_MACHINE, "free space", "room for runs (10 s take about 100 MB)");
    if (statvfs(".", &status) < 0) {
        doctor_missing(item, DOCTOR_NO, "change to a folder that exists", "cannot look at .: %m");
        return;
    }
    double gib = (double)status.f_bavail * (double)status.f_frsize / (1 << 30);
    doctor_found(item, DOCTOR_YES, "%.1f GiB here", gib);
    if (gib < 2)
        doctor_missing(item, gib < 0.2 ? DOCTOR_NO : DOCTOR_LIMITED,
                       "run from a file system with more room", "long runs will not fit");
}

void doctor_check_machine(struct doctor_items *items)
{
    check_cores(items);
    check_tsc(items);
    check_idle_states(items);
    check_frequency(items);
    check_numa(items);
    check_space(items);
}

// --- programs that experiments start -------------------------------------------------------------
// The doctor's checks of programs that experiments start: whether they are in PATH, and their
// versions.

struct wanted_program {
    const char *name;
    const char *version_option;
    const char *gives;
};

static const struct wanted_program wanted_programs[] = {
    {"memcached", "-V", "the server of the quickstart"},
    {"redis-server", "--version", "Redis experiments"},
    {"nginx", "-v", "neighbours on the server's cores"},
    {"perf", "--version", "Intel PT and samples"},
    {"ssh", "-V", "experiments with other hosts"},
};

// Some print their version on stderr, so a shell joins the two; no part of the command is user
// input.
static void check_program(struct doctor_items *items, const struct wanted_program *wanted)
{
    char path[512], command[640], out[256], how[200];
    struct error err;
    struct doctor_item *item = doctor_add(items, DOCTOR_PROGRAMS, wanted->name, wanted->gives);
    if (!host_find_program(wanted->name, path, sizeof path)) {
        snprintf(how, sizeof how, "apt-get install %s", program_package(wanted->name));
        doctor_missing(item, DOCTOR_NO, how, "not in PATH");
        return;
    }
    snprintf(command, sizeof command, "exec \"$0\" %s 2>&1", wanted->version_option);
    const char *const argv[] = {"sh", "-c", command, path, NULL};
    const struct process_place place = {.pipe_output = true};
    if (process_run(argv, &place, 3000, out, sizeof out, &err) < 0) {
        doctor_found(item, DOCTOR_LIMITED, "%s", path);
        doctor_missing(item, DOCTOR_LIMITED, "try it by hand", "it does not print its version");
        return;
    }
    out[strcspn(out, "\n")] = '\0';
    char *build = strstr(out, " sha="); // of Redis, and 70 characters more of how it was built
    if (build)
        *build = '\0';
    doctor_found(item, DOCTOR_YES, "%.60s", out);
}

void doctor_check_programs(struct doctor_items *items)
{
    for (size_t i = 0; i < sizeof wanted_programs / sizeof *wanted_programs; i++)
        check_program(items, &wanted_programs[i]);
}
