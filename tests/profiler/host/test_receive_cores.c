// SPDX-License-Identifier: MIT
//
// Where receive processing will run, from the settings of a made-up machine: RPS masks come before
// interrupts, devices that are down count for nothing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/units.h"
#include "profiler/host/receive_cores.h"

struct machine {
    char root[64];
};

static void put(const struct machine *m, const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", m->root, path);
    for (char *at = full + strlen(m->root) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(full, 0755);
        *at = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int make(void **state)
{
    struct machine *m = calloc(1, sizeof *m);
    strcpy(m->root, "/tmp/receive-cores-XXXXXX");
    assert_non_null(mkdtemp(m->root));
    *state = m;
    return 0;
}

static int unmake(void **state)
{
    struct machine *m = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", m->root);
    int result = system(command);
    free(m);
    return result;
}

static void expect(const struct machine *m, const char *cores)
{
    char text[256] = "";
    cpu_set_t found;
    CPU_ZERO(&found);
    receive_cores_find(m->root, &found);
    if (CPU_COUNT(&found))
        units_format_cores(&found, text, sizeof text);
    assert_string_equal(text, cores);
}

static void interrupts_where_there_is_no_rps(void **state)
{
    struct machine *m = *state;
    expect(m, "");
    put(m, "/sys/class/net/eth7/flags", "0x1003\n");
    put(m, "/sys/class/net/eth7/queues/rx-0/rps_cpus", "00000000,00000000\n");
    put(m, "/sys/class/net/eth7/device/msi_irqs/30", "msix\n");
    put(m, "/sys/class/net/eth7/device/msi_irqs/31", "msix\n");
    put(m, "/proc/irq/30/effective_affinity_list", "5\n");
    put(m, "/proc/irq/30/smp_affinity_list", "0-63\n");
    put(m, "/proc/irq/31/smp_affinity_list", "8-9\n"); // an older kernel
    expect(m, "5,8-9");
    put(m, "/sys/class/net/eth7/flags", "0x1002\n"); // down
    expect(m, "");
}

static void rps_comes_first(void **state)
{
    struct machine *m = *state;
    put(m, "/sys/class/net/eth7/flags", "0x1003\n");
    put(m, "/sys/class/net/eth7/queues/rx-0/rps_cpus", "00000001,00000002\n");
    put(m, "/sys/class/net/eth7/queues/rx-1/rps_cpus", "c0\n");
    put(m, "/sys/class/net/eth7/device/msi_irqs/30", "msix\n");
    put(m, "/proc/irq/30/effective_affinity_list", "5\n");
    put(m, "/sys/class/net/to0/flags", "0x1003\n"); // a cable
    put(m, "/sys/class/net/to0/queues/rx-0/rps_cpus", "0\n");
    expect(m, "1,6-7,32");
}

// Of this machine no more is known than that it can be asked.
static void this_machine_can_be_asked(void **state)
{
    char text[4096] = "none";
    cpu_set_t found;
    (void)state;
    CPU_ZERO(&found);
    receive_cores_find("", &found);
    if (CPU_COUNT(&found))
        units_format_cores(&found, text, sizeof text);
    print_message("here receive processing runs on: %s\n", text);
    assert_true(CPU_COUNT(&found) < CPU_SETSIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(interrupts_where_there_is_no_rps, make, unmake),
        cmocka_unit_test_setup_teardown(rps_comes_first, make, unmake),
        cmocka_unit_test(this_machine_can_be_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
