// SPDX-License-Identifier: MIT
//
// Which cores load threads get, on machines that this test makes up: every physical core one before
// any gets a second, whatever the numbering, and only cores that are allowed.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"
#include "loadgen/engine/thread_cores.h"

enum { CORES = 8 };

struct machine {
    char folder[64];
};

// siblings[i]: what thread_siblings_list of core i says; NULL: there is no such file.
static void machine_make(struct machine *machine, const char *const siblings[CORES])
{
    strcpy(machine->folder, "/tmp/test-cores-XXXXXX");
    assert_non_null(mkdtemp(machine->folder));
    for (int i = 0; i < CORES && siblings[i]; i++) {
        char path[200];
        snprintf(path, sizeof path, "%s/cpu%d", machine->folder, i);
        mkdir(path, 0700);
        snprintf(path, sizeof path, "%s/cpu%d/topology", machine->folder, i);
        mkdir(path, 0700);
        snprintf(path, sizeof path, "%s/cpu%d/topology/thread_siblings_list", machine->folder, i);
        FILE *file = fopen(path, "we");
        assert_non_null(file);
        fprintf(file, "%s\n", siblings[i]);
        fclose(file);
    }
}

static void machine_remove(const struct machine *machine)
{
    char path[200];
    for (int i = 0; i < CORES; i++) {
        snprintf(path, sizeof path, "%s/cpu%d/topology/thread_siblings_list", machine->folder, i);
        unlink(path);
        snprintf(path, sizeof path, "%s/cpu%d/topology", machine->folder, i);
        rmdir(path);
        snprintf(path, sizeof path, "%s/cpu%d", machine->folder, i);
        rmdir(path);
    }
    rmdir(machine->folder);
}

// The cores as lists.
static void check(const char *const siblings[CORES], const char *allowed_text, unsigned wanted,
                  const char *expected_text)
{
    struct machine machine;
    struct error err;
    cpu_set_t allowed, expected, chosen;
    assert_int_equal(units_parse_cores(allowed_text, &allowed, &err), 0);
    assert_int_equal(units_parse_cores(expected_text, &expected, &err), 0);
    machine_make(&machine, siblings);
    thread_cores_choose(&allowed, wanted, machine.folder, &chosen);
    machine_remove(&machine);
    assert_true(CPU_EQUAL(&chosen, &expected));
}

static void each_physical_core_gets_one_first(void **state)
{
    (void)state;
    // neighbours are siblings; the halves are; there is no SMT; nothing is said
    static const char *const pairs[] = {"0-1", "0-1", "2-3", "2-3", "4-5", "4-5", "6-7", "6-7"};
    static const char *const halves[] = {"0,4", "1,5", "2,6", "3,7", "0,4", "1,5", "2,6", "3,7"};
    static const char *const single[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
    static const char *const none[CORES] = {NULL};
    check(pairs, "0-7", 3, "0,2,4");
    check(pairs, "0-7", 6, "0-4,6");
    check(halves, "0-7", 5, "0-4");
    check(halves, "1-7", 4, "1-4"); // 4's sibling is another's
    check(pairs, "1,3", 4, "1,3");  // fewer than wanted
    check(single, "0-7", 4, "0-3");
    check(none, "0-7", 4, "0-3");
}

static void this_machine_has_them_all(void **state)
{
    (void)state;
    cpu_set_t allowed, chosen;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    thread_cores_choose(&allowed, CPU_SETSIZE, thread_cores_topology, &chosen);
    assert_true(CPU_EQUAL(&chosen, &allowed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_physical_core_gets_one_first),
        cmocka_unit_test(this_machine_has_them_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
