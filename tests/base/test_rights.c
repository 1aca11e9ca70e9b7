// SPDX-License-Identifier: MIT
//
// What a process that gave up its rights can still do: nothing that its new owner could not. Each
// scenario is a child, which cannot come back.
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/rights.h"

static const struct person nobody = {.user = 65534, .group = 65534, .name = "nobody"};
static const struct person root = {.user = 0, .name = "root"};

struct place {
    char folder[64], secret[80];
};

static int make_place(void **state)
{
    struct place *place = calloc(1, sizeof *place);
    strcpy(place->folder, "/tmp/taillight-rights-XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    snprintf(place->secret, sizeof place->secret, "%s/secret", place->folder);
    int fd = open(place->secret, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
    *state = place;
    return 0;
}

static int remove_place(void **state)
{
    struct place *place = *state;
    unlink(place->secret);
    rmdir(place->folder);
    free(place);
    return 0;
}

// The exit code of what a child does.
static int in_child(int (*scenario)(const struct place *), const struct place *place)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(scenario(place));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int as_nobody(const struct place *place)
{
    struct error err;
    chmod(place->folder, 0755);
    if (rights_give_up(&nobody, &err) < 0)
        return 1;
    if (geteuid() != 65534 || getegid() != 65534 || setuid(0) == 0 || setgid(0) == 0)
        return 2;
    if (open(place->secret, O_RDONLY) >= 0)
        return 3;
    gid_t groups[8];
    for (int i = getgroups(8, groups); i-- > 0;)
        if (groups[i] != 65534)
            return 4;
    return 0;
}

static int without_capabilities(const struct place *place)
{
    if (open(place->secret, O_RDONLY) >= 0) // it is another user's
        return 2;
    if (mount("none", place->folder, "tmpfs", 0, NULL) == 0 || setuid(65534) == 0)
        return 3;
    // Nor does a program that it starts get any back.
    return system("grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status") == 0 ? 0 : 4;
}

static int as_root_without_capabilities(const struct place *place)
{
    struct error err;
    if (chown(place->secret, 65534, 65534) < 0 || rights_give_up(&root, &err) < 0)
        return 1;
    return without_capabilities(place);
}

static int as_itself_without_capabilities(const struct place *place)
{
    struct error err;
    if (chown(place->secret, 65534, 65534) < 0 || rights_give_up_capabilities(&err) < 0)
        return 1;
    return without_capabilities(place);
}

static void nothing_of_roots_is_left(void **state)
{
    assert_int_equal(in_child(as_nobody, *state), 0);
}

static void root_itself_loses_its_capabilities(void **state)
{
    assert_int_equal(in_child(as_root_without_capabilities, *state), 0);
    assert_int_equal(in_child(as_itself_without_capabilities, *state), 0);
}

static void sudo_names_a_person(void **state)
{
    struct person found;
    (void)state;
    unsetenv("SUDO_UID");
    unsetenv("SUDO_GID");
    assert_false(rights_invoker(&found));
    setenv("SUDO_UID", "65534", 1);
    assert_false(rights_invoker(&found)); // no group
    setenv("SUDO_GID", "65534", 1);
    assert_true(rights_invoker(&found));
    assert_int_equal(found.user, 65534);
    assert_int_equal(found.group, 65534);
    static const char *const nonsense[] = {"", "-1", " 1", "1x", "0", "4294967295", "99999999999"};
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        setenv("SUDO_UID", nonsense[i], 1);
        assert_false(rights_invoker(&found));
    }
    unsetenv("SUDO_UID");
    unsetenv("SUDO_GID");
}

static void what_a_person_reaches_is_known(void **state)
{
    const struct place *place = *state;
    chmod(place->folder, 0700);
    assert_false(rights_reach(&nobody, place->folder, X_OK));
    assert_true(rights_reach(&root, place->folder, X_OK));
    chmod(place->folder, 0755);
    assert_true(rights_reach(&nobody, place->folder, X_OK));
    assert_false(rights_reach(&nobody, place->folder, W_OK));
}

static int as_owner_of_both(const struct place *place)
{
    struct error err;
    const char *const paths[] = {place->folder, place->secret};
    if (rights_become_owner(paths, 2, true, &err) < 0 || geteuid() != 0)
        return 1; // they are of different users: nobody could read both
    return rights_become_owner(&paths[1], 1, true, &err) < 0 || geteuid() != 65534 ? 2 : 0;
}

static void a_command_becomes_the_owner(void **state)
{
    const struct place *place = *state;
    assert_int_equal(chown(place->secret, 65534, 65534), 0);
    assert_int_equal(in_child(as_owner_of_both, place), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_of_roots_is_left, make_place, remove_place),
        cmocka_unit_test_setup_teardown(root_itself_loses_its_capabilities, make_place,
                                        remove_place),
        cmocka_unit_test(sudo_names_a_person),
        cmocka_unit_test_setup_teardown(what_a_person_reaches_is_known, make_place, remove_place),
        cmocka_unit_test_setup_teardown(a_command_becomes_the_owner, make_place, remove_place),
    };
    if (geteuid() != 0) {
        puts("giving up root's rights takes root");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
