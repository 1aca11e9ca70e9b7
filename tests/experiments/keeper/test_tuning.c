// SPDX-License-Identifier: MIT
//
// Tuning and its undoing on a machine made of files and a network card of this test's own: every
// kind of setting, what a machine lacks, and the old state after the keeper's end, also when the
// run just vanishes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <ftw.h>
#include <glob.h>
#include <linux/ethtool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "experiments/definition/experiment_set.h"
#include "experiments/keeper/nic_tuning.h"
#include "experiments/hosts/tuning.h"

// --- the card "eth7", in memory that the keeper shares -------------------------------------------

enum { TABLE = 8, QUEUES = 4 };

static struct card {
    struct ethtool_coalesce coalescing;
    uint32_t table[TABLE];
} * card;

int nic_ioctl(const char *nic, void *command)
{
    uint32_t what = *(uint32_t *)command;
    struct ethtool_rxfh_indir *table = command;
    if (strcmp(nic, "eth7") != 0)
        return EOPNOTSUPP;
    switch (what) {
    case ETHTOOL_GCOALESCE:
        *(struct ethtool_coalesce *)command = card->coalescing;
        return 0;
    case ETHTOOL_SCOALESCE:
        card->coalescing = *(struct ethtool_coalesce *)command;
        return 0;
    case ETHTOOL_GRXRINGS:
        ((struct ethtool_rxnfc *)command)->data = QUEUES;
        return 0;
    case ETHTOOL_GRXFHINDIR:
        if (table->size)
            memcpy(table->ring_index, card->table, sizeof card->table);
        table->size = TABLE;
        return 0;
    case ETHTOOL_SRXFHINDIR:
        assert_int_equal(table->size, TABLE);
        memcpy(card->table, table->ring_index, sizeof card->table);
        return 0;
    default:
        return EOPNOTSUPP;
    }
}

// --- the machine ---------------------------------------------------------------------------------

struct machine {
    char root[64];
    struct experiment_set set;
    struct host_array hosts;
    struct command_log log;
    json_t *report;
};

// Values are of one length: a file does not forget the rest of a longer one, as /proc does.
static void put(const struct machine *m, const char *path, const char *text)
{
    char whole[400];
    snprintf(whole, sizeof whole, "%s%s", m->root, path);
    for (char *slash = whole + strlen(m->root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(whole, 0755);
        *slash = '/';
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void check(const struct machine *m, const char *path, const char *text)
{
    char whole[400], found[100] = "";
    snprintf(whole, sizeof whole, "%s%s", m->root, path);
    FILE *file = fopen(whole, "r");
    assert_non_null(file);
    assert_non_null(fgets(found, sizeof found, file));
    fclose(file);
    found[strcspn(found, "\n")] = '\0';
    assert_string_equal(found, text);
}

#define STEPS(steps)                                                                               \
    "name: x\nhosts: {client: {kind: local}, server: {kind: local, cores: [0]}}\n"                 \
    "servers: {c: {}}\nload: {rate: 1}\ntuning:\n  server:\n" steps

static void begin(struct machine *m, const char *text)
{
    struct error err = {0};
    char path[100];
    *m = (struct machine){.root = "/tmp/taillight-test-tuning-XXXXXX", .report = json_array()};
    assert_non_null(mkdtemp(m->root));
    for (uint32_t i = 0; i < TABLE; i++)
        card->table[i] = 3 - i % 4;
    card->coalescing = (struct ethtool_coalesce){
        .rx_coalesce_usecs = 30, .tx_coalesce_usecs = 8, .use_adaptive_rx_coalesce = 1};
    put(m, "/proc/sys/vm/one", "1\n");
    put(m, "/proc/irq/30/smp_affinity_list", "1\n");
    put(m, "/proc/irq/31/smp_affinity_list", "1\n");
    put(m, "/sys/class/net/eth7/device/msi_irqs/30", "");
    put(m, "/sys/class/net/eth7/device/msi_irqs/31", "");
    put(m, "/sys/class/net/eth7/queues/rx-0/rps_cpus", "0\n");
    put(m, "/sys/class/net/eth7/queues/rx-1/rps_cpus", "0\n");
    put(m, "/sys/class/net/lame/address", "");
    put(m, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersavexx\n");
    put(m, "/dev/cpu_dma_latency", "....");
    snprintf(path, sizeof path, "%s/commands.log", m->root);
    assert_int_equal(command_log_open(&m->log, path, &err), 0);
    if (experiment_set_parse("x.yaml", text, strlen(text), NULL, &m->set, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < m->set.items[0].hosts.count; i++) {
        const struct experiment_host *plan = &m->set.items[0].hosts.items[i];
        struct host host = {.plan = plan, .kind = plan->kind};
        assert_int_equal(keeper_start(&host.keeper, false, &err), 0);
        assert_int_equal(array_push(&m->hosts, host), 0);
    }
}

static int apply(struct machine *m, struct error *err)
{
    return tuning_apply(&m->hosts, &m->set.items[0], m->root, &m->log, m->report, err);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status, (void)type, (void)where;
    return remove(path);
}

static void end(struct machine *m)
{
    struct error err;
    assert_int_equal(hosts_end(&m->hosts, false, &m->log, &err), 0);
    command_log_close(&m->log);
    experiment_set_free(&m->set);
    json_decref(m->report);
    nftw(m->root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void check_untouched(const struct machine *m)
{
    check(m, "/proc/sys/vm/one", "1");
    check(m, "/proc/irq/30/smp_affinity_list", "1");
    check(m, "/proc/irq/31/smp_affinity_list", "1");
    check(m, "/sys/class/net/eth7/queues/rx-1/rps_cpus", "0");
    check(m, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersavexx");
    assert_int_equal(card->coalescing.rx_coalesce_usecs, 30);
    assert_int_equal(card->coalescing.use_adaptive_rx_coalesce, 1);
    for (uint32_t i = 0; i < TABLE; i++)
        assert_int_equal(card->table[i], 3 - i % 4);
}

// --- tests ---------------------------------------------------------------------------------------

#define ALL_STEPS                                                                                  \
    STEPS("    - sysctl: {vm.one: 2}\n"                                                            \
          "    - irq_affinity: {nic: eth7, cores: [0]}\n"                                          \
          "    - rps: {nic: eth7}\n"                                                               \
          "    - rss: {nic: eth7, queues: 2}\n"                                                    \
          "    - coalescing: {nic: eth7, adaptive_rx: off, rx_usecs: 0}\n"                         \
          "    - governor: performance\n"                                                          \
          "    - cstates: 2us\n"                                                                   \
          "    - sysctl: {vm.one: 3}\n")

static void check_tuned(const struct machine *m)
{
    check(m, "/proc/sys/vm/one", "3");
    check(m, "/proc/irq/30/smp_affinity_list", "0");
    check(m, "/proc/irq/31/smp_affinity_list", "0");
    check(m, "/sys/class/net/eth7/queues/rx-0/rps_cpus", "1");
    check(m, "/sys/class/net/eth7/queues/rx-1/rps_cpus", "1");
    check(m, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance");
    assert_int_equal(card->coalescing.rx_coalesce_usecs, 0);
    assert_int_equal(card->coalescing.tx_coalesce_usecs, 8);
    assert_int_equal(card->coalescing.use_adaptive_rx_coalesce, 0);
    for (uint32_t i = 0; i < TABLE; i++)
        assert_int_equal(card->table[i], i % 2);
}

static void all_is_set_and_put_back(void **state)
{
    (void)state;
    struct machine m;
    struct error err = {0};
    begin(&m, ALL_STEPS);
    assert_int_equal(apply(&m, &err), 0);
    check_tuned(&m);
    assert_int_equal(json_array_size(m.report), 10); // two interrupts, two queues
    size_t i;
    json_t *one;
    json_array_foreach(m.report, i, one) assert_true(json_is_true(json_object_get(one, "applied")));
    one = json_array_get(m.report, 6);
    assert_string_equal(json_string_value(json_object_get(one, "setting")), "coalescing");
    assert_string_equal(json_string_value(json_object_get(one, "path")), "eth7");
    assert_string_equal(json_string_value(json_object_get(one, "old")),
                        "adaptive_rx=1 rx_usecs=30");
    assert_string_equal(json_string_value(json_object_get(one, "value")),
                        "adaptive_rx=0 rx_usecs=0");
    one = json_array_get(m.report, 9); // what a later step found is what an earlier one left
    assert_string_equal(json_string_value(json_object_get(one, "old")), "2");
    assert_int_equal(keeper_end(&m.hosts.items[1].keeper, &err), 0);
    check_untouched(&m);
    end(&m);
}

static void a_run_that_vanishes_changes_nothing(void **state)
{
    (void)state;
    struct machine m;
    struct error err = {0};
    begin(&m, ALL_STEPS);
    assert_int_equal(apply(&m, &err), 0);
    check_tuned(&m);
    struct keeper *keeper = &m.hosts.items[1].keeper;
    close(keeper->channel); // all that a SIGKILL of the run leaves of it
    assert_int_equal(waitpid(keeper->pid, NULL, 0), keeper->pid);
    *keeper = (struct keeper){.channel = -1};
    check_untouched(&m);
    end(&m);
}

static void what_is_lacking_is_told(void **state)
{
    (void)state;
    struct machine m;
    struct error err = {0};
    begin(&m, STEPS("    - sysctl: {vm.two: 2}\n"
                    "    - irq_affinity: {nic: eth9}\n"
                    "    - irq_affinity: {irqs: [99]}\n"
                    "    - coalescing: {nic: lame, rx_usecs: 0}\n"
                    "    - rss: {nic: lame}\n"
                    "    - sysctl: {vm.one: 2}\n"));
    assert_int_equal(apply(&m, &err), 0);
    static const char *const reasons[] = {
        "No such file or directory", "this host has no such card, or the card no such setting",
        "No such file or directory", "Operation not supported",
        "Operation not supported",   NULL};
    assert_int_equal(json_array_size(m.report), 6);
    for (size_t i = 0; i < 6; i++) {
        const json_t *one = json_array_get(m.report, i), *reason = json_object_get(one, "reason");
        assert_int_equal(json_is_true(json_object_get(one, "applied")), reasons[i] == NULL);
        if (reasons[i])
            assert_string_equal(json_string_value(reason), reasons[i]);
        else
            assert_true(json_is_null(reason));
    }
    end(&m);
}

static const char *cpuset_reason(struct machine *m)
{
    struct error err = {0};
    json_array_clear(m->report);
    assert_int_equal(apply(m, &err), 0);
    assert_int_equal(json_array_size(m->report), 1);
    assert_string_equal(m->hosts.items[1].cgroup, "");
    return json_string_value(json_object_get(json_array_get(m->report, 0), "reason"));
}

// What works is tried where there is such a thing: tests/guest/test_long_cpuset.sh.
static void a_cpuset_that_cannot_be_leaves_nothing(void **state)
{
    (void)state;
    struct machine m;
    char path[200];
    glob_t found;
    static const char none[] = "there is no cgroup v2 with a cpuset controller";
    begin(&m, STEPS("    - cpuset: {}\n"));
    assert_string_equal(m.set.items[0].settings.items[0].value, "0 exclusive");
    assert_string_equal(cpuset_reason(&m), none);
    put(&m, "/sys/fs/cgroup/unified/cgroup.controllers", "io cpusets memory\n");
    put(&m, "/sys/fs/cgroup/unified/cgroup.subtree_control", "\n");
    assert_string_equal(cpuset_reason(&m), none);
    // The group can be made there, but has no files of its own.
    put(&m, "/sys/fs/cgroup/unified/cgroup.controllers", "io cpuset memory\n");
    assert_string_equal(cpuset_reason(&m), "No such file or directory");
    check(&m, "/sys/fs/cgroup/unified/cgroup.subtree_control", "-cpuset");
    snprintf(path, sizeof path, "%s/sys/fs/cgroup/unified/taillight-*", m.root);
    assert_int_equal(glob(path, 0, NULL, &found), GLOB_NOMATCH);
    globfree(&found);
    end(&m);
    begin(&m, STEPS("    - cpuset: {cores: [0, 1], exclusive: no}\n"));
    assert_string_equal(m.set.items[0].settings.items[0].value, "0-1");
    end(&m);
}

static void what_a_card_refuses_is_an_error(void **state)
{
    (void)state;
    struct machine m;
    struct error err = {0};
    begin(&m, STEPS("    - rss: {nic: eth7, queues: 5}\n"));
    assert_int_equal(apply(&m, &err), -ERROR_FAILED);
    assert_string_equal(err.text,
                        "tuning host server, rss: cannot set eth7 to \"5\": Invalid argument");
    end(&m);
}

static void refuse(const char *text, const char *beginning)
{
    struct experiment_set set;
    struct error err = {0};
    assert_int_equal(experiment_set_parse("x.yaml", text, strlen(text), NULL, &set, &err),
                     -ERROR_INPUT);
    if (strncmp(err.text, beginning, strlen(beginning)) != 0)
        fail_msg("said: %s", err.text);
}

static void impossible_steps_are_placed(void **state)
{
    (void)state;
    refuse(STEPS("    - {}\n"), "x.yaml:7:7: tuning: a step is one thing");
    refuse(STEPS("    - {governor: performance, cstates: 0us}\n"), "x.yaml:7:7: tuning: a step is");
    refuse(STEPS("    - irq_afinity: {nic: a}\n"),
           "x.yaml:7:7: unknown key `irq_afinity`; did you mean `irq_affinity`?");
    refuse(STEPS("    - irq_affinity: {cores: [0]}\n"), "x.yaml:7:21: irq_affinity: `nic` or");
    refuse(STEPS("    - irq_affinity: {irqs: [../x]}\n"), "x.yaml:7:29: irqs: `../x` is not an");
    refuse(STEPS("    - rps: {nic: ../../etc}\n"),
           "x.yaml:7:18: nic: `../../etc` is not a network");
    refuse(STEPS("    - rps: {cores: [0]}\n"), "x.yaml:7:12: `nic` is missing, e.g. `nic: eth0`");
    refuse(STEPS("    - rps: {nic: a, cores: [4000]}\n"), "x.yaml:7:");
    refuse(STEPS("    - coalescing: {nic: a}\n"), "x.yaml:7:19: coalescing: what is to change?");
    refuse(STEPS("    - coalescing: {nic: a, rx_usecs: -1}\n"), "x.yaml:7:38: rx_usecs: ");
    refuse(STEPS("    - governor: ../x\n"), "x.yaml:7:17: governor: `../x` is not a governor");
    refuse(STEPS("    - cstates: 5\n"), "x.yaml:7:16: cstates: \"5\" is not a duration");
    refuse(STEPS("    - rss: {nic: a, queues: 0}\n"), "x.yaml:7:29: queues: 0 is outside");
    refuse(STEPS("    - cpuset: {cores: [1]}\n"),
           "x.yaml:7:23: cpuset: all cores of the host `server` must be in it (0)");
    refuse(STEPS("    - cpuset: {}\n    - cpuset: {}\n"), "x.yaml:8:15: cpuset: a host has one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_set_and_put_back),
        cmocka_unit_test(a_run_that_vanishes_changes_nothing),
        cmocka_unit_test(what_is_lacking_is_told),
        cmocka_unit_test(a_cpuset_that_cannot_be_leaves_nothing),
        cmocka_unit_test(what_a_card_refuses_is_an_error),
        cmocka_unit_test(impossible_steps_are_placed),
    };
    card = mmap(NULL, sizeof *card, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return card == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
