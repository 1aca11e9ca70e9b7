// SPDX-License-Identifier: MIT
//
// The keeper of a host: what it changes is as before when it ends, also when its run just vanishes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "experiments/keeper/keeper.h"
#include "experiments/keeper/keeper_journal.h"
#include "experiments/keeper/process_tree.h"

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

// A file shorter than what is written into it would keep the rest, as /proc/sys does not: the
// values below are of one length.
static void check_file(const char *path, const char *text)
{
    char found[100] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(found, sizeof found, file));
    fclose(file);
    found[strcspn(found, "\n")] = '\0';
    assert_string_equal(found, text);
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

struct place {
    char folder[64], setting[80], directory[80];
};

static struct place make_place(void)
{
    struct place place = {.folder = "/tmp/taillight-test-keeper-XXXXXX"};
    assert_non_null(mkdtemp(place.folder));
    snprintf(place.setting, sizeof place.setting, "%s/setting", place.folder);
    snprintf(place.directory, sizeof place.directory, "%s/rings", place.folder);
    write_file(place.setting, "one\n");
    return place;
}

static void remove_place(const struct place *place)
{
    unlink(place->setting);
    assert_int_equal(rmdir(place->folder), 0);
}

static void change(struct keeper *keeper, const struct place *place)
{
    char old[KEEPER_TEXT_BYTES], inside[100];
    struct error err = {0};
    assert_int_equal(keeper_start(keeper, false, &err), 0);
    assert_int_equal(keeper_set(keeper, place->setting, "two", old, &err), 0);
    assert_string_equal(old, "one");
    assert_int_equal(keeper_set(keeper, place->setting, "six", NULL, &err), 0);
    assert_int_equal(keeper_make_directory(keeper, place->directory, &err), 0);
    snprintf(inside, sizeof inside, "%s/ring-1", place->directory);
    write_file(inside, "x");
    check_file(place->setting, "six");
}

static void changes_are_undone_at_the_end(void **state)
{
    (void)state;
    struct place place = make_place();
    struct keeper keeper;
    struct error err = {0};
    change(&keeper, &place);
    assert_int_equal(keeper_end(&keeper, &err), 0);
    check_file(place.setting, "one");
    assert_false(exists(place.directory));
    assert_int_equal(keeper_end(&keeper, &err), 0); // harmless again
    remove_place(&place);
}

static void changes_are_undone_when_the_run_is_killed(void **state)
{
    (void)state;
    struct place place = make_place();
    pid_t run = fork();
    if (run == 0) {
        struct keeper keeper;
        change(&keeper, &place);
        raise(SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(run, &status, 0), run);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    for (int i = 0; i < 6000 && exists(place.directory); i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    assert_false(exists(place.directory));
    for (int i = 0; i < 6000; i++) {
        char found[8] = "";
        int fd = open(place.setting, O_RDONLY);
        assert_true(read(fd, found, 3) == 3);
        close(fd);
        if (strcmp(found, "one") == 0)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    check_file(place.setting, "one");
    remove_place(&place);
}

static void signals_do_not_end_it(void **state)
{
    (void)state;
    struct keeper keeper;
    struct error err = {0};
    struct place place = make_place();
    change(&keeper, &place);
    kill(keeper.pid, SIGTERM);
    kill(keeper.pid, SIGINT);
    kill(keeper.pid, SIGHUP);
    assert_int_equal(keeper_set(&keeper, place.setting, "ten", NULL, &err), 0);
    assert_int_equal(keeper_end(&keeper, &err), 0);
    check_file(place.setting, "one");
    remove_place(&place);
}

static void what_cannot_be_done_is_said(void **state)
{
    (void)state;
    struct keeper keeper;
    struct error err = {0};
    char longest[KEEPER_TEXT_BYTES + 10];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(keeper_start(&keeper, false, &err), 0);
    assert_int_equal(keeper_set(&keeper, "/proc/sys/no/such", "1", NULL, &err), -ERROR_FAILED);
    assert_string_equal(err.text,
                        "cannot write \"1\" to /proc/sys/no/such: No such file or directory");
    assert_int_equal(keeper_make_directory(&keeper, "/nonexistent/a", &err), -ERROR_FAILED);
    assert_int_equal(keeper_make_directory(&keeper, "/tmp", &err), -ERROR_FAILED);
    assert_int_equal(keeper_set(&keeper, longest, "1", NULL, &err), -ERROR_FAILED);
    assert_int_equal(keeper_end(&keeper, &err), 0);
    assert_true(exists("/tmp"));
}

static void its_death_is_an_error_not_a_hang(void **state)
{
    (void)state;
    struct keeper keeper;
    struct error err = {0};
    assert_int_equal(keeper_start(&keeper, false, &err), 0);
    kill(keeper.pid, SIGKILL);
    assert_int_equal(keeper_make_directory(&keeper, "/tmp/taillight-test-keeper-none", &err),
                     -ERROR_FAILED);
    assert_non_null(strstr(err.text, "is gone"));
    assert_int_equal(keeper_end(&keeper, &err), -ERROR_FAILED);
    assert_int_equal(keeper.pid, 0);
}

// A server's children, of which one forked twice and left its session, and one lost its environment
// but is in the keeper's network.
static void start_tree(const struct keeper *keeper, const char *mark, bool killed, char pids[64])
{
    char netns[64], file[80];
    struct error err;
    struct process process;
    snprintf(netns, sizeof netns, "/proc/%d/ns/net", keeper->pid);
    snprintf(file, sizeof file, "/tmp/taillight-test-tree-%d", getpid());
    const char *argv[] = {
        "sh", "-c",
        keeper->isolated ? "(setsid sleep 987 & echo $! >>$0); (setsid env -i sleep 987 & echo "
                           "$! >>$0); echo x >>$0; exec sleep 987"
                         : "(setsid sleep 987 & echo $! >>$0); echo x >>$0; exec sleep 987",
        file, NULL};
    const char *environment[] = {mark, NULL};
    struct process_place place = {.environment = environment,
                                  .netns = keeper->isolated ? netns : NULL};
    unlink(file);
    if (process_start(&process, argv, &place, &err) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < 500; i++) {
        FILE *written = fopen(file, "r");
        size_t got = written ? fread(pids, 1, 63, written) : 0;
        pids[got] = '\0';
        if (written)
            fclose(written);
        if (strchr(pids, 'x'))
            break;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    assert_non_null(strchr(pids, 'x'));
    unlink(file);
    process_stop(&process, killed ? 0 : 2000);
}

static void trees_end_with_it(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        bool killed = way & 1, isolated = way & 2;
        struct error err;
        struct keeper keeper;
        char mark[TREE_MARK_BYTES], pids[64];
        if (keeper_start(&keeper, isolated, &err) < 0) {
            print_message("%s\n", err.text);
            continue;
        }
        keeper.isolated = isolated;
        process_tree_make_mark(mark, 1, (unsigned)way);
        assert_int_equal(keeper_own(&keeper, mark, &err), 0);
        start_tree(&keeper, mark, killed, pids);
        int alive = 0;
        for (char *at = pids; *at && *at != 'x';) {
            pid_t pid = (pid_t)strtol(at, &at, 10);
            at += *at == '\n';
            alive += kill(pid, 0) == 0;
        }
        assert_int_equal(alive, isolated ? 2 : 1);
        if (killed) {
            close(keeper.channel);
            waitpid(keeper.pid, NULL, 0);
        } else {
            assert_int_equal(keeper_end(&keeper, &err), 0);
        }
        for (char *at = pids; *at && *at != 'x';) {
            pid_t pid = (pid_t)strtol(at, &at, 10);
            at += *at == '\n';
            char path[64], what[8] = "";
            snprintf(path, sizeof path, "/proc/%d/stat", pid);
            FILE *file = fopen(path, "r"); // a zombie that nobody reaps is dead, too
            if (file && fscanf(file, "%*d (%*[^)]) %7s", what) != 1)
                what[0] = '\0';
            if (file)
                fclose(file);
            assert_true(what[0] == '\0' || what[0] == 'Z');
        }
    }
}

// A process whose end nobody has noticed keeps its limits, and with them its mark.
static void what_has_ended_does_not_live_on(void **state)
{
    (void)state;
    struct error err;
    struct process process;
    char mark[TREE_MARK_BYTES];
    process_tree_make_mark(mark, 2, 0);
    const char *argv[] = {"sleep", "987", NULL};
    const char *environment[] = {mark, NULL};
    struct process_place place = {.environment = environment};
    if (process_start(&process, argv, &place, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(process_tree_kill(mark, "", 60000), 0);
    siginfo_t ended = {0};
    assert_int_equal(waitid(P_PID, (id_t)process.pid, &ended, WEXITED | WNOWAIT), 0);
    assert_int_equal(ended.si_status, SIGKILL);
    process_stop(&process, 0);
}

static void keeper_of_run(struct keeper *keeper, uint64_t run, unsigned number)
{
    struct error err;
    char mark[TREE_MARK_BYTES];
    if (keeper_start(keeper, false, &err) < 0)
        fail_msg("%s", err.text);
    process_tree_make_mark(mark, run, number);
    assert_int_equal(keeper_own(keeper, mark, &err), 0);
}

// Two runs cannot have a setting at once, two hosts of a run can.
static void overlapping_runs_are_refused(void **state)
{
    (void)state;
    struct place place = make_place();
    struct keeper first, same, other;
    struct error err;
    char old[KEEPER_TEXT_BYTES];
    int number = 0;
    write_file(place.setting, "128\n");
    keeper_of_run(&first, 1, 0);
    keeper_of_run(&same, 1, 1);
    keeper_of_run(&other, 2, 0);
    assert_int_equal(keeper_set(&first, place.setting, "501", NULL, &err), 0);
    assert_int_equal(keeper_set(&first, place.setting, "502", NULL, &err), 0);
    assert_int_equal(keeper_set(&same, place.setting, "503", NULL, &err), 0);
    assert_int_equal(keeper_tune(&other, KEEPER_FILE, place.setting, "777", old, &number, &err), 0);
    assert_int_equal(number, EAGAIN);
    assert_non_null(strstr(old, "process "));
    check_file(place.setting, "503");
    assert_int_equal(keeper_end(&other, &err), 0);
    assert_int_equal(keeper_end(&same, &err), 0);
    check_file(place.setting, "502");
    assert_int_equal(keeper_end(&first, &err), 0);
    check_file(place.setting, "128");
    keeper_of_run(&other, 2, 0); // now it may
    assert_int_equal(keeper_set(&other, place.setting, "777", NULL, &err), 0);
    // Somebody who asks nobody changes it: that stays, and is said.
    write_file(place.setting, "999\n");
    assert_true(keeper_end(&other, &err) < 0);
    assert_non_null(strstr(err.text, "somebody else has changed it since"));
    check_file(place.setting, "999");
    remove_place(&place);
}

static void listeners_are_found(void **state)
{
    (void)state;
    struct keeper keeper;
    struct error err = {0};
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof here;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&here, sizeof here), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&here, &bytes), 0);
    uint16_t port = ntohs(here.sin_port);
    assert_int_equal(keeper_start(&keeper, false, &err), 0);
    assert_int_equal(keeper_probe(&keeper, "127.0.0.1", port, &err), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(keeper_probe(&keeper, "127.0.0.1", port, &err), 1);
    assert_int_equal(keeper_probe(&keeper, "not an address", port, &err), -ERROR_FAILED);
    assert_int_equal(keeper_end(&keeper, &err), 0);
    close(fd);
}

// --- journals ------------------------------------------------------------------------------------

// A keeper that is killed itself, with all it noted: its journal brings everything back.
static void a_journal_outlives_its_keeper(void **state)
{
    struct place place = make_place();
    struct keeper keeper;
    struct keeper_restored restored;
    struct error err;
    char inside[120];
    (void)state;
    snprintf(inside, sizeof inside, "%s/taillight-made", place.folder);
    assert_int_equal(keeper_start(&keeper, false, &err), 0);
    assert_int_equal(keeper_set(&keeper, place.setting, "two", NULL, &err), 0);
    assert_int_equal(keeper_make_directory(&keeper, inside, &err), 0);
    // While it lives nobody undoes behind its back.
    assert_int_equal(keeper_journals_restore(&restored, &err), 0);
    assert_true(restored.live >= 1);
    check_file(place.setting, "two");
    kill(keeper.pid, SIGKILL);
    assert_true(keeper_end(&keeper, &err) < 0);
    check_file(place.setting, "two");
    assert_int_equal(keeper_journals_restore(&restored, &err), 0);
    assert_true(restored.journals >= 1 && restored.settings >= 1 && restored.directories >= 1);
    check_file(place.setting, "one");
    assert_false(exists(inside));
    remove_place(&place);
}

static void journals_are_not_believed(void **state)
{
    static const struct {
        const char *text, *complaint;
        size_t changes;
    } cases[] = {
        {"", NULL, 0},
        {"{\"boot_id\":\"b\",\"network\":\"n\"}\n", NULL, 0},
        {"{\"boot_id\":\"b\",\"network\":\"n\"}\n{\"knob\":0,\"path\":\"/p\",\"old\":\"1\"}\n",
         NULL, 1},
        {"{\"boot_id\":\"b\",\"network\":\"n\"}\n{\"directory\":\"/tmp/taillight-x\"}\n{\"kno",
         NULL, 1}, // cut by the crash
        {"{\"boot_id\":\"b\",\"network\":\"n\"}\n{\"directory\":\"/home\"}\n",
         "line 2: a change that cannot be", 0},
        {"{\"boot_id\":\"b\",\"network\":\"n\"}\n{\"directory\":\"/etc/../taillight-x/..\"}\n",
         "line 2: a change that cannot be", 0},
        {"{\"boot_id\":\"b\",\"network\":\"n\"}\n{\"knob\":9,\"path\":\"/p\",\"old\":\"1\"}\n",
         "line 2: a change that cannot be", 0},
        {"{\"boot_id\":\"b\",\"network\":\"n\"}\n"
         "{\"knob\":4,\"path\":\"/sys/fs/cgroup/taillight-1\",\"old\":\"on\"}\n",
         NULL, 1}, // a group that was made
        {"{\"boot_id\":\"b\",\"network\":\"n\"}\n"
         "{\"knob\":4,\"path\":\"/sys/fs/cgroup/system.slice\",\"old\":\"on\"}\n",
         "line 2: a change that cannot be", 0},
        {"{}\n", "line 1 is none of a journal", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char boot_id[40], network[40];
        struct keeper_changes changes;
        struct error err = {0};
        int result = keeper_journal_parse(cases[i].text, strlen(cases[i].text), boot_id, network,
                                          &changes, &err);
        assert_int_equal(result < 0, cases[i].complaint != NULL);
        if (cases[i].complaint)
            assert_string_equal(err.text, cases[i].complaint);
        assert_int_equal(changes.count, cases[i].changes);
        for (size_t k = 0; k < changes.count; k++)
            keeper_change_forget(&changes.items[k]);
        array_free(&changes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_are_undone_at_the_end),
        cmocka_unit_test(changes_are_undone_when_the_run_is_killed),
        cmocka_unit_test(signals_do_not_end_it),
        cmocka_unit_test(what_cannot_be_done_is_said),
        cmocka_unit_test(its_death_is_an_error_not_a_hang),
        cmocka_unit_test(trees_end_with_it),
        cmocka_unit_test(what_has_ended_does_not_live_on),
        cmocka_unit_test(overlapping_runs_are_refused),
        cmocka_unit_test(listeners_are_found),
        cmocka_unit_test(a_journal_outlives_its_keeper),
        cmocka_unit_test(journals_are_not_believed),
    };
    char state[] = "/tmp/taillight-test-state-XXXXXX";
    assert_non_null(mkdtemp(state));
    setenv("TAILLIGHT_STATE_DIR", state, 1); // not where this machine's own runs note theirs
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    struct keeper_restored restored;
    struct error err;
    keeper_journals_restore(&restored, &err); // what the killed ones left; removes the directory
    return failed;
}
