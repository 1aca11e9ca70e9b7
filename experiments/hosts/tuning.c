// SPDX-License-Identifier: MIT
#include "experiments/hosts/tuning.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"

struct applied_setting {
    struct host *host;
    struct keeper *keeper; // the one that makes the change
    const struct experiment_setting *setting;
    const char *root;
    struct command_log *log;
    json_t *report;
    unsigned targets, applied; // settings that were found, and those that could be set
};

const char *tuning_kind_name(enum tuning_kind kind)
{
    static const char *const names[] = {"sysctl",     "irq_affinity", "rps",     "rss",
                                        "coalescing", "governor",     "cstates", "cpuset"};
    return names[kind];
}

static int append_report(struct applied_setting *a, const char *path, const char *old,
                         const char *reason, struct error *err)
{
    json_t *one =
        json_pack("{s:s,s:s,s:s,s:s,s:o,s:b,s:o}", "host", a->host->plan->name, "setting",
                  tuning_kind_name(a->setting->kind), "path", path, "value", a->setting->value,
                  "old", old ? json_string(old) : json_null(), "applied", reason == NULL, "reason",
                  reason ? json_string(reason) : json_null());
    return json_array_append_new(a->report, one) < 0
               ? error_set(err, ERROR_FAILED, "out of memory for the tuning")
               : 0;
}

// Reasons for refusing a cpuset that the errno alone does not explain.
static const char no_cpuset[] = "there is no cgroup v2 with a cpuset controller";
static const char cores_taken[] =
    "the cores cannot be had alone: another partition has them, or nobody else would have any";

static const char *reason_of(enum keeper_knob knob, int number)
{
    if (knob == KEEPER_CPUSET && number == EOPNOTSUPP)
        return no_cpuset;
    return knob == KEEPER_CPUSET && number == EBUSY ? cores_taken : strerror(number);
}

// Whether an errno says that the machine has no such setting, or does not let us change it.
static bool is_lacking(enum keeper_knob knob, int number)
{
    static const int lacking[] = {ENOENT, EACCES, EPERM, EROFS, EOPNOTSUPP,
                                  ENODEV, ENXIO,  EIO /* an interrupt that cannot be moved */};
    for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++)
        if (number == lacking[i])
            return true;
    return knob == KEEPER_CPUSET && number == EBUSY;
}

static int apply_knob(struct applied_setting *a, enum keeper_knob knob, const char *name,
                      struct error *err)
{
    char old[KEEPER_TEXT_BYTES];
    const char *value = a->setting->value;
    int number, result = keeper_tune(a->keeper, knob, name, value, old, &number, err);
    if (result < 0)
        return result;
    a->targets++;
    a->applied += number == 0;
    if (number == 0) {
        command_log_write(a->log, a->host->plan->name, "set %s to %s (was %s)", name, value, old);
        return append_report(a, name, old, NULL, err);
    }
    if (number == EAGAIN)
        return error_set(err, ERROR_INPUT,
                         "tuning host %s, %s: another run has changed %s and is to put it back "
                         "(%s); two cannot at once: wait for its end",
                         a->host->plan->name, tuning_kind_name(a->setting->kind), name, old);
    command_log_write(a->log, a->host->plan->name, "cannot set %s to %s: %s", name, value,
                      reason_of(knob, number));
    if (is_lacking(knob, number))
        return append_report(a, name, NULL, reason_of(knob, number), err);
    return error_set(err, ERROR_FAILED, "tuning host %s, %s: cannot set %s to \"%s\": %s",
                     a->host->plan->name, tuning_kind_name(a->setting->kind), name, value,
                     strerror(number));
}

// --- how each kind of setting is applied ---------------------------------------------------------

static int apply_file(struct applied_setting *a, enum keeper_knob knob, const char *path,
                      const char *name, struct error *err)
{
    char whole[2 * KEEPER_TEXT_BYTES];
    snprintf(whole, sizeof whole, "%s%s%.400s", a->root, path, name);
    return apply_knob(a, knob, whole, err);
}

// A sysctl's name is its path below /proc/sys; as with sysctl(8), dots separate unless the name
// has slashes.
static int apply_sysctl(struct applied_setting *a, struct error *err)
{
    char name[KEEPER_TEXT_BYTES];
    if ((size_t)snprintf(name, sizeof name, "%s", a->setting->name) >= sizeof name)
        return error_set(err, ERROR_FAILED, "sysctl: %.60s... is too long", a->setting->name);
    if (!strchr(name, '/'))
        for (char *at = name; *at; at++)
            if (*at == '.')
                *at = '/';
    return apply_file(a, KEEPER_FILE, "/proc/sys/", name, err);
}

// Calls `use` with each path that matches "<root>/sys/class/net/<nic><inside>" on the host.
static int each_path(struct applied_setting *a, const char *inside,
                     int (*use)(struct applied_setting *, const char *path, struct error *),
                     struct error *err)
{
    enum { PATHS_MOST = 16384 }; // queues and interrupts of a card; another machine may claim any
    char pattern[2 * KEEPER_TEXT_BYTES], path[KEEPER_TEXT_BYTES];
    snprintf(pattern, sizeof pattern, "%s/sys/class/net/%s%s", a->root, a->setting->nic, inside);
    for (unsigned i = 0; i < PATHS_MOST; i++) {
        int result = keeper_find(a->keeper, pattern, i, path, err);
        if (result > 0)
            result = use(a, path, err);
        else if (result == 0)
            return 0;
        if (result < 0)
            return result;
    }
    return error_set(err, ERROR_FAILED, "tuning host %s: more than %u paths match %s",
                     a->host->plan->name, (unsigned)PATHS_MOST, pattern);
}

static int use_file(struct applied_setting *a, const char *path, struct error *err)
{
    return apply_knob(a, KEEPER_FILE, path, err);
}

static int use_card(struct applied_setting *a, const char *path, struct error *err)
{
    return apply_knob(a, a->setting->kind == TUNING_RSS ? KEEPER_RSS : KEEPER_COALESCING,
                      strrchr(path, '/') + 1, err);
}

static int apply_irq(struct applied_setting *a, const char *number, struct error *err)
{
    char name[64];
    snprintf(name, sizeof name, "%.20s/smp_affinity_list", number);
    return apply_file(a, KEEPER_FILE, "/proc/irq/", name, err);
}

static int use_irq(struct applied_setting *a, const char *path, struct error *err)
{
    return apply_irq(a, strrchr(path, '/') + 1, err);
}

// The interrupts of a card: its own, or, of one behind virtio, those of the device it is part of.
static int apply_irqs(struct applied_setting *a, struct error *err)
{
    if (a->setting->name)
        return apply_irq(a, a->setting->name, err);
    int result = each_path(a, "/device/msi_irqs/*", use_irq, err);
    if (result == 0 && a->targets == 0)
        result = each_path(a, "/device/../msi_irqs/*", use_irq, err);
    return result;
}

static int apply_governor(struct applied_setting *a, struct error *err)
{
    const cpu_set_t *cores = &a->host->plan->cores;
    int result = 0;
    for (size_t core = 0; core < CPU_SETSIZE && result == 0; core++) {
        char path[100];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%zu/cpufreq/scaling_governor",
                 core);
        if (CPU_ISSET(core, cores))
            result = apply_file(a, KEEPER_FILE, path, "", err);
    }
    return result;
}

// cgroup v2 is mounted here: by itself, or beside version 1.
static int apply_cpuset(struct applied_setting *a, struct error *err)
{
    static const char *const places[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    char pattern[2 * KEEPER_TEXT_BYTES], found[KEEPER_TEXT_BYTES], name[2 * KEEPER_TEXT_BYTES];
    int result = 0;
    a->keeper = host_machine_keeper(a->host, err);
    if (!a->keeper)
        return -ERROR_FAILED;
    for (size_t i = 0; result == 0 && i < sizeof places / sizeof *places; i++) {
        snprintf(pattern, sizeof pattern, "%s%s/cgroup.controllers", a->root, places[i]);
        snprintf(name, sizeof name, "%s%s/taillight-%d-%lx-%s", a->root, places[i], (int)getpid(),
                 (unsigned long)time(NULL), a->host->plan->name);
        result = keeper_find(a->keeper, pattern, 0, found, err);
    }
    a->targets++;
    if (result <= 0)
        return result < 0 ? result : append_report(a, "/sys/fs/cgroup", NULL, no_cpuset, err);
    result = apply_knob(a, KEEPER_CPUSET, name, err);
    if (result < 0 || a->applied == 0)
        return result;
    snprintf(a->host->cgroup, sizeof a->host->cgroup, "%.511s", name);
    a->host->cgroup_cores = a->setting->cores;
    return 0;
}

static int apply_setting(struct applied_setting *a, struct error *err)
{
    switch (a->setting->kind) {
    case TUNING_SYSCTL:
        return apply_sysctl(a, err);
    case TUNING_IRQ_AFFINITY:
        return apply_irqs(a, err);
    case TUNING_RPS:
        return each_path(a, "/queues/rx-*/rps_cpus", use_file, err);
    case TUNING_RSS:
    case TUNING_COALESCING:
        return each_path(a, "", use_card, err);
    case TUNING_GOVERNOR:
        return apply_governor(a, err);
    case TUNING_CSTATES:
        return apply_file(a, KEEPER_LATENCY, "/dev/cpu_dma_latency", "", err);
    case TUNING_CPUSET:
        return apply_cpuset(a, err);
    }
    return 0;
}

int tuning_apply(struct host_array *hosts, const struct experiment *experiment, const char *root,
                 struct command_log *log, json_t *report, struct error *err)
{
    int result = 0;
    for (size_t i = 0; i < experiment->settings.count && result == 0; i++) {
        const struct experiment_setting *setting = &experiment->settings.items[i];
        struct applied_setting a = {.host = &hosts->items[setting->host],
                                    .keeper = &hosts->items[setting->host].keeper,
                                    .setting = setting,
                                    .root = root,
                                    .log = log,
                                    .report = report};
        result = apply_setting(&a, err);
        if (result == 0 && a.targets == 0)
            result = append_report(&a, setting->nic ? setting->nic : "", NULL,
                                   "this host has no such card, or the card no such setting", err);
    }
    return result;
}
