// SPDX-License-Identifier: MIT
//
// The steps of tuning: what they set and to what.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "experiments/definition/tables.h"
#include "experiments/hosts/host_kind.h"

// The values of a step of any kind; each step sets one thing.
struct step {
    const char *nic;
    uint64_t queues;
    bool adaptive_rx, adaptive_tx, numa_balancing, exclusive;
    uint64_t rx_usecs, rx_frames, tx_usecs, tx_frames;
    const char *governor;
    uint64_t cstates_ns;
};

static int add_setting(const struct binding *binding, const struct experiment_setting *setting)
{
    const struct reading *reading = binding->context;
    return array_push(&reading->experiment->settings, *setting) < 0 ? field_out_of_memory(binding)
                                                                    : 0;
}

static const struct experiment_host *host_of(const struct binding *binding,
                                             const struct experiment_setting *setting)
{
    const struct reading *reading = binding->context;
    return &reading->experiment->hosts.items[setting->host];
}

// --- kernel parameters ---------------------------------------------------------------------------

// A sysctl is a file below /proc/sys; its name must not lead anywhere else.
static bool is_sysctl(const char *name)
{
    bool plain = name[0] && name[0] != '.' && name[0] != '/' && !strstr(name, "..");
    for (size_t i = 0; plain && name[i]; i++)
        plain = isalnum((unsigned char)name[i]) || strchr("-_./:", name[i]);
    return plain;
}

static int read_sysctls(const struct binding *binding, const struct node *names,
                        struct experiment_setting *setting)
{
    int result = 0;
    for (size_t i = 0; i < node_count(names) && result == 0; i++) {
        const struct node *key = node_entry_key(names, i), *value = node_entry(names, i);
        setting->name = node_text(key);
        if (!is_sysctl(setting->name))
            return document_error(binding->document, key, binding->err,
                                  "sysctl: `%s` is not a kernel parameter's name, such as "
                                  "`net.ipv4.tcp_low_latency`",
                                  setting->name);
        if (!node_text(value)[0])
            return document_error(binding->document, value, binding->err,
                                  "sysctl: `%s` needs a value", setting->name);
        if (strlen(node_text(value)) >= sizeof setting->value)
            return document_error(binding->document, value, binding->err,
                                  "sysctl: a value has less than %zu bytes", sizeof setting->value);
        snprintf(setting->value, sizeof setting->value, "%s", node_text(value));
        result = add_setting(binding, setting);
    }
    return result;
}

// --- network cards -------------------------------------------------------------------------------

// Reads which card a step is about. On a netns host the cards are the cables that the run makes.
static int read_nic(const struct binding *binding, const struct node *node, const char *name,
                    struct experiment_setting *setting)
{
    bool plain = name && *name && strlen(name) < 16 && name[0] != '.';
    for (size_t i = 0; plain && name[i]; i++)
        plain = isalnum((unsigned char)name[i]) || strchr("-_.", name[i]);
    if (name && !plain)
        return document_error(binding->document, node_child(node, "nic"), binding->err,
                              "nic: `%s` is not a network card's name, such as eth0", name);
    const char *own_cards = host_of(binding, setting)->kind->own_cards;
    if (!name && !own_cards)
        return document_error(binding->document, node, binding->err,
                              "`nic` is missing, e.g. `nic: eth0`");
    setting->nic = name ? name : own_cards;
    return 0;
}

static int read_step_cores(const struct binding *binding, const struct node *node,
                           const struct experiment_setting *setting, cpu_set_t *cores)
{
    const struct experiment_host *host = host_of(binding, setting);
    *cores = host->cores;
    return read_cores(binding, node, host, cores);
}

static int read_irq_affinity(const struct binding *binding, const struct node *node,
                             const struct step *step, struct experiment_setting *setting)
{
    cpu_set_t cores;
    const struct node *irqs = node_child(node, "irqs");
    int result = read_step_cores(binding, node, setting, &cores);
    if (result < 0)
        return result;
    units_format_cores(&cores, setting->value, sizeof setting->value);
    if (!node_count(irqs) == !step->nic)
        return document_error(binding->document, node, binding->err,
                              "irq_affinity: `nic` or `irqs` says which interrupts, one of them");
    if (step->nic) {
        result = read_nic(binding, node, step->nic, setting);
        return result < 0 ? result : add_setting(binding, setting);
    }
    for (size_t i = 0; i < node_count(irqs) && result == 0; i++) {
        uint64_t number;
        struct error inner;
        setting->name = node_text(node_entry(irqs, i));
        if (units_parse_count(setting->name, &number, &inner) < 0 || number > 1000000)
            return document_error(binding->document, node_entry(irqs, i), binding->err,
                                  "irqs: `%s` is not an interrupt's number, see /proc/interrupts",
                                  setting->name);
        result = add_setting(binding, setting);
    }
    return result;
}

static int read_rps(const struct binding *binding, const struct node *node, const struct step *step,
                    struct experiment_setting *setting)
{
    cpu_set_t cores;
    int result = read_nic(binding, node, step->nic, setting);
    if (result == 0)
        result = read_step_cores(binding, node, setting, &cores);
    if (result < 0)
        return result;
    units_format_core_mask(&cores, setting->value, sizeof setting->value);
    return add_setting(binding, setting);
}

static int read_rss(const struct binding *binding, const struct node *node, const struct step *step,
                    struct experiment_setting *setting)
{
    int result = read_nic(binding, node, step->nic, setting);
    snprintf(setting->value, sizeof setting->value, "%llu", (unsigned long long)step->queues);
    return result < 0 ? result : add_setting(binding, setting);
}

static int read_coalescing(const struct binding *binding, const struct node *node,
                           const struct step *step, struct experiment_setting *setting)
{
    const struct {
        const char *name;
        uint64_t value;
    } keys[] = {{"adaptive_rx", step->adaptive_rx}, {"adaptive_tx", step->adaptive_tx},
                {"rx_usecs", step->rx_usecs},       {"rx_frames", step->rx_frames},
                {"tx_usecs", step->tx_usecs},       {"tx_frames", step->tx_frames}};
    size_t used = 0;
    int result = read_nic(binding, node, step->nic, setting);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (node_key(node, keys[i].name))
            used +=
                (size_t)snprintf(setting->value + used, sizeof setting->value - used, "%s%s=%llu",
                                 used ? " " : "", keys[i].name, (unsigned long long)keys[i].value);
    if (result == 0 && used == 0)
        result = document_error(binding->document, node, binding->err,
                                "coalescing: what is to change? e.g. `rx_usecs: 0, adaptive_rx: "
                                "off`");
    return result < 0 ? result : add_setting(binding, setting);
}

// --- processors ----------------------------------------------------------------------------------

static int read_governor(const struct binding *binding, const struct node *node,
                         const struct step *step, struct experiment_setting *setting)
{
    const char *text = step->governor;
    bool plain = *text && strlen(text) < 16;
    for (size_t i = 0; plain && text[i]; i++)
        plain = islower((unsigned char)text[i]) != 0;
    if (!plain)
        return document_error(binding->document, node, binding->err,
                              "governor: `%s` is not a governor, such as performance", text);
    snprintf(setting->value, sizeof setting->value, "%s", text);
    return add_setting(binding, setting);
}

static int read_cstates(const struct binding *binding, const struct step *step,
                        struct experiment_setting *setting)
{
    snprintf(setting->value, sizeof setting->value, "%llu",
             (unsigned long long)(step->cstates_ns / 1000));
    return add_setting(binding, setting);
}

// The set must have the host's cores, because everything on the host runs on those.
static int read_cpuset(const struct binding *binding, const struct node *node,
                       const struct step *step, struct experiment_setting *setting)
{
    const struct reading *reading = binding->context;
    const struct experiment_setting_array *settings = &reading->experiment->settings;
    const struct experiment_host *host = host_of(binding, setting);
    cpu_set_t cores, both;
    char text[TUNING_VALUE_BYTES - 16];
    int result = read_step_cores(binding, node, setting, &cores);
    if (result < 0)
        return result;
    CPU_AND(&both, &cores, &host->cores);
    if (!CPU_EQUAL(&both, &host->cores))
        return document_error(binding->document, node_child(node, "cores"), binding->err,
                              "cpuset: all cores of the host `%s` must be in it (%s)", host->name,
                              units_format_cores(&host->cores, text, sizeof text));
    for (size_t i = 0; i < settings->count; i++)
        if (settings->items[i].kind == TUNING_CPUSET && settings->items[i].host == setting->host)
            return document_error(binding->document, node, binding->err, "cpuset: a host has one");
    snprintf(setting->value, sizeof setting->value, "%s%s",
             units_format_cores(&cores, text, sizeof text), step->exclusive ? " exclusive" : "");
    setting->cores = cores;
    return add_setting(binding, setting);
}

// --- the table -----------------------------------------------------------------------------------

#define NIC_ROW(absent)                                                                            \
    {                                                                                              \
        "nic", FIELD_TEXT, .otherwise = absent, INTO(struct step, nic), .help = "the card"         \
    }
#define CORES_ROW(text)                                                                            \
    {                                                                                              \
        "cores", FIELD_TEXTS, .otherwise = "the host's", .help = text                              \
    }
#define COALESCING_COUNT(key, member, text)                                                        \
    {                                                                                              \
        key, FIELD_COUNT, .low = "0", .high = "4294967295", INTO(struct step, member),             \
                          .otherwise = "as it is", .help = text                                    \
    }
#define CABLES "of a netns host: its cables"

static const struct field irq_affinity_rows[] = {
    {"nic", FIELD_TEXT, INTO(struct step, nic), .help = "all interrupts of a card, or"},
    {"irqs", FIELD_TEXTS, .help = "these, by number"},
    CORES_ROW("which handle them"),
};
static const struct field rps_rows[] = {
    NIC_ROW(CABLES),
    CORES_ROW("which do the receive processing"),
};
static const struct field rss_rows[] = {
    NIC_ROW(CABLES),
    {"queues", FIELD_COUNT, "1", .low = "1", .high = "65536", INTO(struct step, queues),
     .help = "spread flows over so many"},
};
static const struct field coalescing_rows[] = {
    NIC_ROW(CABLES),
    {"adaptive_rx", FIELD_SWITCH, .otherwise = "as it is", INTO(struct step, adaptive_rx),
     .help = "the card chooses by itself"},
    {"adaptive_tx", FIELD_SWITCH, .otherwise = "as it is", INTO(struct step, adaptive_tx),
     .help = "the same"},
    COALESCING_COUNT("rx_usecs", rx_usecs, "wait so long before an interrupt"),
    COALESCING_COUNT("rx_frames", rx_frames, "or for so many frames"),
    COALESCING_COUNT("tx_usecs", tx_usecs, "the same of what is sent"),
    COALESCING_COUNT("tx_frames", tx_frames, "the same"),
};
static const struct field cpuset_rows[] = {
    CORES_ROW("these, and the host's at least"),
    {"exclusive", FIELD_SWITCH, "true", INTO(struct step, exclusive),
     .help = "nobody else runs on them but the kernel's own threads and interrupts"},
};
static const struct fields irq_affinity_fields = FIELDS(irq_affinity_rows, struct step),
                           rps_fields = FIELDS(rps_rows, struct step),
                           rss_fields = FIELDS(rss_rows, struct step),
                           coalescing_fields = FIELDS(coalescing_rows, struct step),
                           cpuset_fields = FIELDS(cpuset_rows, struct step);

// In the order of enum tuning_kind.
static const struct field step_rows[] = {
    {"sysctl", FIELD_MAP, .help = "kernel parameters by name"},
    {"irq_affinity", FIELD_GROUP, .fields = &irq_affinity_fields, IN_PLACE,
     .help = "who handles interrupts"},
    {"rps", FIELD_GROUP, .fields = &rps_fields, IN_PLACE, .help = "receive processing"},
    {"rss", FIELD_GROUP, .fields = &rss_fields, IN_PLACE, .help = "flows over a card's queues"},
    {"coalescing", FIELD_GROUP, .fields = &coalescing_fields, IN_PLACE,
     .help = "how interrupts are put together"},
    {"governor", FIELD_TEXT, INTO(struct step, governor),
     .help = "of the host's cores: performance"},
    {"cstates", FIELD_DURATION, .low = "0", .high = "1s", INTO(struct step, cstates_ns),
     .help = "no idle state that takes longer to wake from is entered"},
    {"cpuset", FIELD_GROUP, .fields = &cpuset_fields, IN_PLACE,
     .help = "a control group (cgroup v2) for the host's servers and neighbours; without it they "
             "are pinned by affinity, which keeps nobody else off"},
    {"numa_balancing", FIELD_SWITCH, INTO(struct step, numa_balancing),
     .help = "the kernel's automatic one"},
};
const struct fields tuning_step_fields = FIELDS(step_rows, struct step);

static int read_step(const struct binding *binding, const struct node *node, size_t host)
{
    struct step step = {.nic = NULL};
    const struct node *value = node_entry(node, 0);
    unsigned kind = 0;
    if (node_count(node) != 1)
        return document_error(binding->document, node, binding->err,
                              "tuning: a step is one thing, such as `- sysctl: {name: value}`");
    fields_set_defaults(&tuning_step_fields, &step);
    int result = fields_bind(binding, &tuning_step_fields, node, &step);
    if (result < 0)
        return result;
    while (strcmp(step_rows[kind].key, node_text(node_entry_key(node, 0))) != 0)
        kind++;
    struct experiment_setting setting = {.host = host, .kind = (enum tuning_kind)kind};
    switch (kind) {
    case TUNING_SYSCTL:
        return read_sysctls(binding, value, &setting);
    case TUNING_IRQ_AFFINITY:
        return read_irq_affinity(binding, value, &step, &setting);
    case TUNING_RPS:
        return read_rps(binding, value, &step, &setting);
    case TUNING_RSS:
        return read_rss(binding, value, &step, &setting);
    case TUNING_COALESCING:
        return read_coalescing(binding, value, &step, &setting);
    case TUNING_GOVERNOR:
        return read_governor(binding, value, &step, &setting);
    case TUNING_CSTATES:
        return read_cstates(binding, &step, &setting);
    case TUNING_CPUSET:
        return read_cpuset(binding, value, &step, &setting);
    default: // numa_balancing is a kernel parameter like others
        setting.kind = TUNING_SYSCTL;
        setting.name = "kernel.numa_balancing";
        snprintf(setting.value, sizeof setting.value, "%d", step.numa_balancing);
        return add_setting(binding, &setting);
    }
}

int read_tuning(const struct binding *binding, const struct node *tuning)
{
    const struct reading *reading = binding->context;
    const struct experiment_host_array *hosts = &reading->experiment->hosts;
    int result = 0;
    for (size_t i = 0; i < node_count(tuning) && result == 0; i++) {
        const struct node *key = node_entry_key(tuning, i), *steps = node_entry(tuning, i);
        size_t host = 0;
        result = find_named(binding, key, "tuning: no host", node_text(key), hosts->items,
                            sizeof *hosts->items, hosts->count, &host);
        for (size_t s = 0; s < node_count(steps) && result == 0; s++)
            result = read_step(binding, node_entry(steps, s), host);
    }
    return result;
}
