// SPDX-License-Identifier: MIT
//
// The process that reads what runs recorded has no rights; who took it over gets nothing made but
// what the user asked for, in the folder that he named.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "experiments/plan/experiment.h"
#include "experiments/run/divided_run.h"

static const struct person nobody = {.user = 65534, .group = 65534, .name = "nobody"};

struct question {
    char base[64]; // where the command's folder is to be
};

// Whether a folder is refused, where it is no other error.
static bool is_refused(struct run_orders *orders, const char *wanted, const char *name)
{
    struct run_folder folder;
    struct error err = {0};
    return run_order_folder(orders, wanted, name, &folder, &err) < 0 &&
           strstr(err.text, "not asked for");
}

// In the child. Returns the number of the first thing that is not as it should be.
static int ask(const struct run_settings *settings, void *context)
{
    const struct question *question = context;
    struct run_orders *orders = settings->orders;
    struct run_folder folder;
    struct error err;
    struct stat status;
    struct experiment another = {.name = "another"};
    char path[200];
    if (geteuid() != 65534)
        return 10;
    snprintf(path, sizeof path, "%s/else", question->base);
    if (!is_refused(orders, path, "x") || !is_refused(orders, NULL, "x"))
        return 11; // before the first folder there is only the one that was asked for
    snprintf(path, sizeof path, "%s/top/first", question->base);
    if (run_order_folder(orders, path, "x", &folder, &err) < 0 || strcmp(folder.path, path) != 0 ||
        stat(path, &status) < 0 || status.st_uid != 65534 || (status.st_mode & 077))
        return 12;
    if (!is_refused(orders, question->base, "x") || !is_refused(orders, path, "x"))
        return 13;
    snprintf(path, sizeof path, "%s/top/first/../second", question->base);
    if (!is_refused(orders, path, "x"))
        return 14;
    snprintf(path, sizeof path, "%s/top/first-and-more", question->base);
    if (!is_refused(orders, path, "x"))
        return 15;
    snprintf(path, sizeof path, "%s/top/first/inside", question->base);
    if (run_order(orders, &another, path, &folder, &err) == 0 ||
        !strstr(err.text, "not asked for") || access(path, F_OK) == 0)
        return 16; // an experiment of nobody's
    if (run_order_folder(orders, path, "x", &folder, &err) < 0)
        return 17;
    return 42;
}

static void only_what_was_asked_for_is_made(void **state)
{
    char folder[100], command[100];
    struct error err;
    struct question question = {.base = "/tmp/taillight-orders-XXXXXX"};
    struct experiment_list none = {0};
    (void)state;
    assert_non_null(mkdtemp(question.base));
    assert_int_equal(chmod(question.base, 0755), 0);
    snprintf(folder, sizeof folder, "%s/top/first", question.base);
    const struct run_settings settings = {.folder = folder};
    assert_int_equal(run_divided(&settings, &nobody, &none, ask, &question, &err), 42);
    snprintf(command, sizeof command, "rm -rf %s", question.base);
    assert_int_equal(system(command), 0);
}

static int crash(const struct run_settings *settings, void *context)
{
    (void)settings;
    (void)context;
    abort();
}

static void a_child_that_dies_is_an_error(void **state)
{
    struct error err;
    struct experiment_list none = {0};
    const struct run_settings settings = {.folder = "/nowhere"};
    (void)state;
    assert_true(run_divided(&settings, &nobody, &none, crash, NULL, &err) < 0);
    assert_non_null(strstr(err.text, "Aborted"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_was_asked_for_is_made),
        cmocka_unit_test(a_child_that_dies_is_an_error),
    };
    if (geteuid() != 0) {
        puts("dividing a run's rights takes root");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
