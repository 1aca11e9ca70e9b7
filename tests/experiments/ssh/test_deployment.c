// SPDX-License-Identifier: MIT
//
// What is copied to a host behind ssh is what its sums were taken of, also when the files are built
// anew in between: a copy of this program deploys itself with two stand-ins beside it, which it
// replaces, and itself removes, once it has their sums.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/process.h"
#include "experiments/common/program_path.h"
#include "experiments/remote/deployment.h"

static void put_file(const char *dir, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "w");
    assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static int shell(const char *command, const char *argument, const char *other)
{
    const char *const words[] = {"sh", "-c", command, "sh", argument, other, NULL};
    struct error err = {0};
    int result = process_run(words, NULL, 20000, NULL, 0, &err);
    if (result < 0)
        fprintf(stderr, "%s\n", err.text);
    return result;
}

// Of the copy, in `dir`: 0 if it could do so.
static int deploy(const char *dir)
{
    struct deployment deployment;
    struct error err = {0};
    char archive[256];
    snprintf(archive, sizeof archive, "%s/archive", dir);
    FILE *out = fopen(archive, "w");
    int result = out ? deployment_make(&deployment, &err) : -1;
    if (result == 0)
        result = shell("cd \"$1\" && rm copy && for f in libtaillight-shim.so labserver; do "
                       "echo 'quite another' >new && mv new $f; done",
                       dir, "");
    if (result == 0)
        result = deployment_write(&deployment, fileno(out), &err);
    if (result < 0)
        fprintf(stderr, "%s\n", err.text);
    if (out)
        fclose(out);
    deployment_free(&deployment);
    return result;
}

static void test_files_replaced_meanwhile(void **state)
{
    char dir[] = "/tmp/test-deployment-XXXXXX", self[4096];
    struct error err;
    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(program_path_self(self, sizeof self, &err), 0);
    assert_int_equal(shell("cp \"$1\" \"$2/copy\"", self, dir), 0);
    put_file(dir, "libtaillight-shim.so", "the shim's bytes\n");
    put_file(dir, "labserver", "the server's bytes\n");
    assert_int_equal(shell("\"$1/copy\" --deploy \"$1\"", dir, ""), 0);
    assert_int_equal(shell("mkdir \"$1/there\" && tar -xf \"$1/archive\" -C \"$1/there\" && "
                           "cd \"$1/there\" && sha256sum -c SHA256SUMS && cmp taillight \"$2\" && "
                           "grep -q 'shim.s bytes' libtaillight-shim.so",
                           dir, self),
                     0);
    assert_int_equal(shell("rm -r \"$1\"", dir, ""), 0);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--deploy") == 0)
        return deploy(argv[2]) < 0;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files_replaced_meanwhile)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
