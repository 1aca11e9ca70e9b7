// SPDX-License-Identifier: MIT
#include "experiments/spec/experiment_tuning.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "base/suggestion.h"
#include "experiments/hosts/host_kind.h"

static int add(struct resolver *r, const struct experiment_setting *setting)
{
    return array_push(&r->experiment->settings, *setting) < 0 ? out_of_memory(r) : 0;
}

// --- kernel parameters ---------------------------------------------------------------------------

// A sysctl is a file below /proc/sys; its name must not lead anywhere else.
static int check_sysctl(const struct resolver *r, int key, int value,
                        const struct setting_entry *setting)
{
    const char *name = setting->name;
    bool plain = name[0] && name[0] != '.' && name[0] != '/' && !strstr(name, "..");
    for (size_t i = 0; plain && name[i]; i++)
        plain = isalnum((unsigned char)name[i]) || strchr("-_./:", name[i]);
    if (!plain)
        return yaml_error(r->source, key, r->err,
                          "sysctl: `%s` is not a kernel parameter's name, such as "
                          "`net.ipv4.tcp_low_latency`",
                          name);
    if (!setting->value || !setting->value[0])
        return yaml_error(r->source, value, r->err, "sysctl: `%s` needs a value", name);
    return 0;
}

static int resolve_sysctls(struct resolver *r, int step, size_t host,
                           const struct tuning_step_spec *spec)
{
    int names = yaml_child(r->source, step, "sysctl"), result = 0;
    for (size_t i = 0; i < spec->sysctl_count && result == 0; i++) {
        const struct setting_entry *entry = &spec->sysctl[i];
        struct experiment_setting setting = {
            .host = host, .kind = TUNING_SYSCTL, .name = entry->name};
        result = check_sysctl(r, yaml_entry_key(r->source, names, i),
                              yaml_entry(r->source, names, i), entry);
        if (result == 0 && strlen(entry->value) >= sizeof setting.value)
            result = yaml_error(r->source, yaml_entry(r->source, names, i), r->err,
                                "sysctl: a value has less than %zu bytes", sizeof setting.value);
        if (result < 0)
            return result;
        snprintf(setting.value, sizeof setting.value, "%s", entry->value);
        result = add(r, &setting);
    }
    return result;
}

// --- network cards -------------------------------------------------------------------------------

// The card a step is about. Those of a netns host are the cables of the run's making.
static int resolve_nic(const struct resolver *r, int node, const char *name,
                       struct experiment_setting *setting)
{
    bool plain = name && *name && strlen(name) < 16 && strcmp(name, ".") != 0 && name[0] != '.';
    for (size_t i = 0; plain && name[i]; i++)
        plain = isalnum((unsigned char)name[i]) || strchr("-_.", name[i]);
    if (name && !plain)
        return yaml_error(r->source, yaml_child(r->source, node, "nic"), r->err,
                          "nic: `%s` is not a network card's name, such as eth0", name);
    const char *own_cards = r->experiment->hosts.items[setting->host].kind->own_cards;
    if (!name && !own_cards)
        return yaml_error(r->source, node, r->err, "`nic` is missing, e.g. `nic: eth0`");
    setting->nic = name ? name : own_cards;
    return 0;
}

static int resolve_step_cores(const struct resolver *r, int node, char *const *texts, size_t count,
                              const struct experiment_setting *setting, cpu_set_t *cores)
{
    *cores = r->experiment->hosts.items[setting->host].cores;
    return resolve_cores(r, node, &r->experiment->hosts.items[setting->host], texts, count, cores);
}

static int resolve_irq_affinity(struct resolver *r, int node, const struct irq_affinity_spec *spec,
                                struct experiment_setting *setting)
{
    cpu_set_t cores;
    int list = yaml_child(r->source, node, "irqs");
    int result = resolve_step_cores(r, node, spec->cores, spec->cores_count, setting, &cores);
    if (result < 0)
        return result;
    units_format_cores(&cores, setting->value, sizeof setting->value);
    if (!spec->irqs_count == !spec->nic)
        return yaml_error(r->source, node, r->err,
                          "irq_affinity: `nic` or `irqs` says which interrupts, one of them");
    if (spec->nic) {
        result = resolve_nic(r, node, spec->nic, setting);
        return result < 0 ? result : add(r, setting);
    }
    for (unsigned i = 0; i < spec->irqs_count && result == 0; i++) {
        uint64_t number;
        struct error inner;
        if (units_parse_count(spec->irqs[i], &number, &inner) < 0 || number > 1000000)
            return yaml_error(r->source, yaml_entry(r->source, list, i), r->err,
                              "irqs: `%s` is not an interrupt's number, see /proc/interrupts",
                              spec->irqs[i]);
        setting->name = spec->irqs[i];
        result = add(r, setting);
    }
    return result;
}

static int resolve_rps(struct resolver *r, int node, const struct rps_spec *spec,
                       struct experiment_setting *setting)
{
    cpu_set_t cores;
    int result = resolve_nic(r, node, spec->nic, setting);
    if (result == 0)
        result = resolve_step_cores(r, node, spec->cores, spec->cores_count, setting, &cores);
    if (result < 0)
        return result;
    units_format_core_mask(&cores, setting->value, sizeof setting->value);
    return add(r, setting);
}

static int resolve_rss(struct resolver *r, int node, const struct rss_spec *spec,
                       struct experiment_setting *setting)
{
    uint64_t queues = 1;
    int result = resolve_nic(r, node, spec->nic, setting);
    if (result == 0)
        result = resolve_count(r, node, "queues", spec->queues, 1, 65536, &queues);
    if (result < 0)
        return result;
    snprintf(setting->value, sizeof setting->value, "%llu", (unsigned long long)queues);
    return add(r, setting);
}

static int resolve_coalescing(struct resolver *r, int node, const struct coalescing_spec *spec,
                              struct experiment_setting *setting)
{
    const struct {
        const char *name, *text;
        bool is_switch, on;
    } keys[] = {{"adaptive_rx", NULL, true, spec->adaptive_rx},
                {"adaptive_tx", NULL, true, spec->adaptive_tx},
                {"rx_usecs", spec->rx_usecs, false, false},
                {"rx_frames", spec->rx_frames, false, false},
                {"tx_usecs", spec->tx_usecs, false, false},
                {"tx_frames", spec->tx_frames, false, false}};
    size_t used = 0;
    int result = resolve_nic(r, node, spec->nic, setting);
    for (size_t i = 0; i < sizeof keys / sizeof *keys && result == 0; i++) {
        uint64_t value = keys[i].on;
        if (!yaml_key(r->source, node, keys[i].name))
            continue;
        if (!keys[i].is_switch)
            result = resolve_count(r, node, keys[i].name, keys[i].text, 0, UINT32_MAX, &value);
        used += (size_t)snprintf(setting->value + used, sizeof setting->value - used, "%s%s=%llu",
                                 used ? " " : "", keys[i].name, (unsigned long long)value);
    }
    if (result == 0 && used == 0)
        result = yaml_error(r->source, node, r->err,
                            "coalescing: what is to change? e.g. `rx_usecs: 0, adaptive_rx: off`");
    return result < 0 ? result : add(r, setting);
}

// --- processors ----------------------------------------------------------------------------------

static int resolve_governor(struct resolver *r, int node, const char *text,
                            struct experiment_setting *setting)
{
    bool plain = *text && strlen(text) < 16;
    for (size_t i = 0; plain && text[i]; i++)
        plain = islower((unsigned char)text[i]) != 0;
    if (!plain)
        return yaml_error(r->source, node, r->err,
                          "governor: `%s` is not a governor, such as performance", text);
    snprintf(setting->value, sizeof setting->value, "%s", text);
    return add(r, setting);
}

static int resolve_cstates(struct resolver *r, int step, const char *text,
                           struct experiment_setting *setting)
{
    uint64_t ns = 0;
    int result = resolve_duration(r, step, "cstates", text, &ns);
    if (result == 0 && ns > 1000000000)
        result = yaml_error(r->source, yaml_child(r->source, step, "cstates"), r->err,
                            "cstates: %s is more than a second", text);
    snprintf(setting->value, sizeof setting->value, "%llu", (unsigned long long)(ns / 1000));
    return result < 0 ? result : add(r, setting);
}

// --- steps ---------------------------------------------------------------------------------------

// What runs on a host runs on its cores, so the set must have these.
static int resolve_cpuset(struct resolver *r, int node, const struct cpuset_spec *spec,
                          struct experiment_setting *setting)
{
    const struct experiment_host *host = &r->experiment->hosts.items[setting->host];
    cpu_set_t cores, both;
    char text[TUNING_VALUE_BYTES - 16];
    int result = resolve_step_cores(r, node, spec->cores, spec->cores_count, setting, &cores);
    if (result < 0)
        return result;
    CPU_AND(&both, &cores, &host->cores);
    if (!CPU_EQUAL(&both, &host->cores))
        return yaml_error(r->source, yaml_child(r->source, node, "cores"), r->err,
                          "cpuset: all cores of the host `%s` must be in it (%s)", host->name,
                          units_format_cores(&host->cores, text, sizeof text));
    for (size_t i = 0; i < r->experiment->settings.count; i++)
        if (r->experiment->settings.items[i].kind == TUNING_CPUSET &&
            r->experiment->settings.items[i].host == setting->host)
            return yaml_error(r->source, node, r->err, "cpuset: a host has one");
    bool exclusive = yaml_key(r->source, node, "exclusive") ? spec->exclusive : true;
    snprintf(setting->value, sizeof setting->value, "%s%s",
             units_format_cores(&cores, text, sizeof text), exclusive ? " exclusive" : "");
    setting->cores = cores;
    return add(r, setting);
}

// What a step is about; -1 when it is about nothing or about several things.
static int kind_of(const struct resolver *r, int step)
{
    static const char *const keys[] = {"sysctl",  "irq_affinity", "rps",
                                       "rss",     "coalescing",   "governor",
                                       "cstates", "cpuset",       "numa_balancing"};
    int kind = -1;
    if (yaml_count(r->source, step) != 1)
        return -1;
    for (int i = 0; i < (int)(sizeof keys / sizeof *keys); i++)
        if (yaml_key(r->source, step, keys[i]))
            kind = i;
    return kind;
}

static int resolve_step(struct resolver *r, int step, size_t host,
                        const struct tuning_step_spec *spec)
{
    int kind = kind_of(r, step), node = yaml_entry(r->source, step, 0);
    struct experiment_setting setting = {.host = host, .kind = (enum tuning_kind)kind};
    switch (kind) {
    case TUNING_SYSCTL:
        return resolve_sysctls(r, step, host, spec);
    case TUNING_IRQ_AFFINITY:
        return resolve_irq_affinity(r, node, &spec->irq_affinity, &setting);
    case TUNING_RPS:
        return resolve_rps(r, node, &spec->rps, &setting);
    case TUNING_RSS:
        return resolve_rss(r, node, &spec->rss, &setting);
    case TUNING_COALESCING:
        return resolve_coalescing(r, node, &spec->coalescing, &setting);
    case TUNING_GOVERNOR:
        return resolve_governor(r, node, spec->governor ? spec->governor : "", &setting);
    case TUNING_CSTATES:
        return resolve_cstates(r, step, spec->cstates, &setting);
    case TUNING_CPUSET:
        return resolve_cpuset(r, node, &spec->cpuset, &setting);
    case TUNING_CPUSET + 1: // is a kernel parameter like others
        setting.kind = TUNING_SYSCTL;
        setting.name = "kernel.numa_balancing";
        snprintf(setting.value, sizeof setting.value, "%d", spec->numa_balancing);
        return add(r, &setting);
    default:
        return yaml_error(r->source, step, r->err,
                          "tuning: a step is one thing, such as `- sysctl: {name: value}`");
    }
}

int resolve_tuning(struct resolver *r)
{
    int tuning = yaml_child(r->source, yaml_root(r->source), "tuning");
    for (size_t i = 0; i < r->spec->tuning_count; i++) {
        const struct tuning_entry *entry = &r->spec->tuning[i];
        const char *names[64];
        char hint[400];
        size_t host = 0, hosts = r->experiment->hosts.count;
        for (size_t h = 0; h < hosts; h++)
            names[h] = r->experiment->hosts.items[h].name;
        while (host < hosts && strcmp(names[host], entry->name) != 0)
            host++;
        if (host == hosts)
            return yaml_error(r->source, yaml_entry_key(r->source, tuning, i), r->err,
                              "tuning: no host is called `%s`%s", entry->name,
                              suggestion_write(entry->name, names, hosts, hint, sizeof hint));
        int steps = yaml_entry(r->source, tuning, i);
        for (size_t s = 0; s < entry->value_count; s++) {
            int result = resolve_step(r, yaml_entry(r->source, steps, s), host, &entry->value[s]);
            if (result < 0)
                return result;
        }
    }
    return 0;
}
