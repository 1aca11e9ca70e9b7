// SPDX-License-Identifier: MIT
//
// The doctor's checks of programs that experiments start: whether they are in PATH, and their
// versions.
#include <stdio.h>
#include <string.h>

#include "base/process.h"
#include "profiler/doctor/doctor_checks.h"
#include "profiler/host_facts.h"

struct wanted_program {
    const char *name;
    const char *version_option;
    const char *gives;
    const char *package; // Debian's
};

static const struct wanted_program wanted_programs[] = {
    {"memcached", "-V", "the server of the quickstart", "memcached"},
    {"redis-server", "--version", "Redis experiments", "redis-server"},
    {"nginx", "-v", "neighbours on the server's cores", "nginx-light"},
    {"perf", "--version", "Intel PT and samples", "linux-perf"},
    {"ssh", "-V", "experiments with other hosts", "openssh-client"},
};

// Some print their version on stderr, so a shell joins the two; no part of the command is user
// input.
static void check_program(struct doctor_items *items, const struct wanted_program *wanted)
{
    char path[512], command[640], out[256], how[200];
    struct error err;
    struct doctor_item *item = doctor_add(items, DOCTOR_PROGRAMS, wanted->name, wanted->gives);
    if (!host_find_program(wanted->name, path, sizeof path)) {
        snprintf(how, sizeof how, "apt-get install %s", wanted->package);
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
    doctor_found(item, DOCTOR_YES, "%.60s", out);
}

void doctor_check_programs(struct doctor_items *items)
{
    for (size_t i = 0; i < sizeof wanted_programs / sizeof *wanted_programs; i++)
        check_program(items, &wanted_programs[i]);
}
