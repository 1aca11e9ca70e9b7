// SPDX-License-Identifier: MIT
//
// `taillight load` of every protocol against servers that behave badly in every way that
// hostile_server.h knows: it ends by itself, with the exit code that what it counted asks for, and
// every request is counted once, in its document and in its samples. Each behaviour meets one
// protocol; with TAILLIGHT_TRUST=1 all of them.
// Runs beside others: requests are counted, not timed.
#include "tests/loadgen/hostile_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log_file.h"
#include "base/process.h"
#include "loadgen/client/sample_log.h"

enum {
    AT_ONCE = 24,
    PATIENCE_S = 60, // nothing of it takes a second on an idle machine
};

struct trial {
    struct hostile_server server;
    struct process load;
    pid_t server_pid;
    int64_t begun_ns;
    char folder[64];
};

// One operation alone: what the server answers.
static void workload_write(const struct trial *trial, char *path, size_t bytes)
{
    snprintf(path, bytes, "%s/workload", trial->folder);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file, "protocol: %s\nmix: {%s: 1}\nkeys: {count: 100}\nvalues: {size: {fixed: 3}}\n",
            trial->server.speech->protocol, trial->server.speech->operation);
    if (trial->server.speech->description)
        fprintf(file, "custom: %s\n", trial->server.speech->description);
    fclose(file);
}

static void trial_begin(struct trial *trial, const char *taillight)
{
    char address[32], output[96], workload[96];
    uint16_t port = 0;
    struct error err;
    trial->server_pid = hostile_start(&trial->server, &port);
    assert_true(trial->server_pid >= 0);
    strcpy(trial->folder, "/tmp/test-hostile-XXXXXX");
    assert_non_null(mkdtemp(trial->folder));
    workload_write(trial, workload, sizeof workload);
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    snprintf(output, sizeof output, "%s/out", trial->folder);
    // A server that answers all may take as long as the machine needs.
    bool all = behaviours[trial->server.behaviour].outcome == ANSWERS_ALL;
    const char *argv[] = {taillight,     "load",   "--server",  address,
                          "--workload",  workload, "--rate",    "300",
                          "--duration",  "100ms",  "--timeout", all ? "30s" : "150ms",
                          "--reconnect", "100ms",  "--sleep",   "--connections",
                          "2",           "--seed", "1",         "--samples",
                          trial->folder, "--json", "--quiet",   NULL};
    struct process_place place = {.log_path = output};
    trial->begun_ns = monotonic_ns();
    if (process_start(&trial->load, argv, &place, &err) < 0)
        fail_msg("%s", err.text);
}

static void folder_remove(const char *folder)
{
    DIR *list = opendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list));)
        unlinkat(dirfd(list), entry->d_name, 0);
    if (list)
        closedir(list);
    rmdir(folder);
}

static json_int_t count_of(const json_t *document, const char *key)
{
    const json_t *value = json_object_get(document, key);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

// The document, which begins at a line's "{": messages may stand before it.
static json_t *document_load(const struct trial *trial, char *text, size_t room)
{
    char path[96];
    snprintf(path, sizeof path, "%s/out", trial->folder);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    text[fread(text, 1, room - 1, file)] = '\0';
    fclose(file);
    char *begin = text[0] == '{' ? text : strstr(text, "\n{");
    return begin ? json_loads(begin, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
}

// Every sample has one outcome, and there are as many of each as the document says.
static void samples_check(const struct trial *trial, const json_t *document)
{
    char path[96];
    struct log_reader log;
    struct error err;
    json_int_t answered = 0, by_status[8] = {0};
    snprintf(path, sizeof path, "%s/samples.tlog", trial->folder);
    if (log_reader_open(&log, path, LOG_SAMPLES, SAMPLE_LOG_VERSION, sizeof(struct sample), &err) <
        0)
        fail_msg("%s", err.text);
    const struct sample *samples = log.records;
    assert_int_equal(log.count, count_of(document, "scheduled"));
    for (size_t i = 0; i < log.count; i++) {
        assert_true(samples[i].status < 8);
        by_status[samples[i].status]++;
        answered += sample_is_answered(&samples[i]);
    }
    assert_int_equal(answered, count_of(document, "answered"));
    assert_int_equal(by_status[SAMPLE_LOST], count_of(document, "lost"));
    assert_int_equal(by_status[SAMPLE_UNSENT], count_of(document, "unsent"));
    assert_int_equal(by_status[SAMPLE_TIMED_OUT], count_of(document, "timed_out"));
    log_reader_close(&log);
}

static void document_check(const struct trial *trial, const json_t *document, int code)
{
    json_int_t scheduled = count_of(document, "scheduled"),
               answered = count_of(document, "answered");
    enum hostile_outcome outcome = behaviours[trial->server.behaviour].outcome;
    assert_true(scheduled > 5);
    assert_int_equal(scheduled, answered + count_of(document, "unsent") +
                                    count_of(document, "timed_out") + count_of(document, "lost"));
    if (outcome == ANSWERS_NOTHING)
        assert_int_equal(answered, 0);
    if (outcome == ANSWERS_ALL)
        assert_int_equal(answered, scheduled);
    bool clean =
        answered == scheduled && json_object_size(json_object_get(document, "errors")) == 0;
    if (outcome == ANSWERS_ALL)
        assert_true(clean);
    if (answered == 0)
        assert_int_equal(code, 1);
    else // the machine may be too busy for figures that can be trusted
        assert_true(code == 4 || (clean && code == 0));
    samples_check(trial, document);
}

static void trial_judge(struct trial *trial, int status)
{
    static char text[1 << 17];
    json_t *document = document_load(trial, text, sizeof text);
    const char *name = behaviours[trial->server.behaviour].name;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    print_message("%-18s %-24s exit %d after %4.0f ms%s\n", trial->server.speech->protocol, name,
                  code, (double)(monotonic_ns() - trial->begun_ns) / 1e6,
                  document ? "" : ", no document");
    if (code < 0)
        fail_msg("%s: ended by signal %d: %s", name, WTERMSIG(status), text);
    // Asked before the load, it speaks something else.
    bool other = strstr(text, "does not answer as") || strstr(text, "speaks TLS: give --tls");
    if (code == 2 && !other)
        fail_msg("%s: %s", name, text);
    if (document) {
        document_check(trial, document, code);
        json_decref(document);
    } else { // it could not begin, and says why
        assert_int_equal(code, other ? 2 : 1);
        assert_non_null(strstr(text, "taillight"));
    }
}

static void trial_end(struct trial *trial, int status)
{
    trial_judge(trial, status);
    close(trial->server.listener);
    if (trial->server_pid) {
        kill(trial->server_pid, SIGKILL);
        waitpid(trial->server_pid, NULL, 0);
    }
    folder_remove(trial->folder);
    trial->load.pid = 0;
}

// Ends those that have ended; returns how many go on.
static int trials_look(struct trial *trials)
{
    int running = 0;
    for (int i = 0; i < AT_ONCE; i++) {
        struct error err;
        int status, ended;
        if (!trials[i].load.pid)
            continue;
        ended = process_wait(&trials[i].load, 0, &status, &err);
        if (ended < 0)
            fail_msg("%s", err.text);
        if (ended)
            trial_end(&trials[i], status);
        else if (monotonic_ns() - trials[i].begun_ns > PATIENCE_S * INT64_C(1000000000))
            fail_msg("%s, %s: does not end", trials[i].server.speech->protocol,
                     behaviours[trials[i].server.behaviour].name);
        else
            running++;
    }
    return running;
}

static struct trial *trial_room(struct trial *trials)
{
    for (;;) {
        trials_look(trials);
        for (int i = 0; i < AT_ONCE; i++)
            if (!trials[i].load.pid)
                return &trials[i];
        hostile_pause(2);
    }
}

static void every_protocol_meets_every_behaviour(void **state)
{
    static struct trial trials[AT_ONCE];
    const char *build = getenv("BUILD");
    char taillight[4096];
    bool all = getenv("TAILLIGHT_TRUST");
    int count = 0;
    (void)state;
    snprintf(taillight, sizeof taillight, "%s/taillight", build ? build : "build");
    for (int behaviour = 0; behaviour < BEHAVIOUR_COUNT; behaviour++) {
        for (int speech = 0; speech < SPEECHES; speech++) {
            if (!all && behaviour % SPEECHES != speech)
                continue;
            struct trial *trial = trial_room(trials);
            trial->server = (struct hostile_server){.speech = &speeches[speech],
                                                    .behaviour = (enum hostile_behaviour)behaviour};
            trial_begin(trial, taillight);
            count++;
        }
    }
    while (trials_look(trials))
        hostile_pause(2);
    print_message("%d behaviours, %d protocols, %d loads\n", BEHAVIOUR_COUNT, SPEECHES, count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_protocol_meets_every_behaviour)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
