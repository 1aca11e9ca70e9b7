// SPDX-License-Identifier: MIT
//
// Scores the diagnosis of one run against the fault log of who misbehaved in it:
//
//     score NAME RUN LOG SCOPE CAUSES
//
// prints a JSON object. SCOPE says which of the messages that a fault held up are meant: `all` of
// them, the one that was being served (`own`), or those behind it (`others`). CAUSES are the right
// answers, "NAME (ROLE)" divided by semicolons; a * in a name stands for anything.
//
// How much a fault held a message up is how long the fault lasted while the message was on the
// server (with the scope `client`: all its life long), of faults that make a thread wait only what
// their log says that it waited, not how long it ran, or was ready to run
// (workloads/lab/lab_fault.h: that a bystander had its core then is true, and is not counted as
// blame); with the scope `late`, for faults whose effect outlasts them (what was lost is sent again
// 200 ms later), all that a message took longer than usual from when it was sent (a link cannot
// hold up what its client has not sent), if that is a millisecond at least and it, or one before it
// on its connection, was on its way during a fault (on_its_way.h); with the scope `opening`, for
// those that keep connections from being opened, all of it until it was sent. A message counts as
// affected when that is beyond the noise (the 95th percentile of what messages deviate that met no
// fault) and at least half of what it took longer than usual: where it is less
// (`lesser`), something else did more, as a rule the queue that the fault left. Messages of which
// the diagnosis itself says that it did not see enough (lost records took more than a twentieth of
// the deviation) are counted as unseen and not judged; so are, as stolen, those that the host of
// this virtual machine took as much from, as it really does at times, and, as untold, those of
// which the log says for as long that it does not know all: a try with many of them is not good
// enough.
#include <fnmatch.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/run/run_analysis.h"
#include "analysis/run/run_analyze.h"
#include "base/array.h"
#include "base/error.h"
#include "base/quantile.h"
#include "tests/faults/on_its_way.h"
#include "workloads/lab/lab_fault.h"

// Of a run its beginning is not judged: what prepared it is real-time too, and where that had the
// cores for a second, as on a slow machine, the kernel lets all others go first for up to 50 ms
// (its fair server): a bystander has the core then, before the server.
enum { UNSETTLED_NS = 200 * 1000 * 1000 };

#define LATE_NS 1e6

struct fault {
    int64_t begin_ns, end_ns;
    size_t own; // the message that was being served, SIZE_MAX: none
};
struct fault_array ARRAY_OF(struct fault);
struct double_array ARRAY_OF(double);

struct fault_log_content {
    struct fault_array faults;
    struct fault_array waits; // what of them was waited; as the faults where their log does not say
    struct fault_array ready; // when the thread was ready to run
    struct fault_array untold; // of which that is not known
    bool *late;                // of each lifetime: whether a fault can have made it late
};

struct verdicts {
    uint64_t affected, right, unseen, lesser, stolen, untold;
    double noise_ns; // less than that is not a fault's
    double injected_ns, attributed_ns;
    double bystander_ns; // given to the program that only uses what is left of the core
    struct double_array coverage, errors;
    json_t *wrong; // what else came first, and how often
};

static int compare_faults(const void *left, const void *right)
{
    const struct fault *a = left, *b = right;
    return a->begin_ns < b->begin_ns ? -1 : a->begin_ns > b->begin_ns;
}

static void sort_faults(struct fault_array *faults)
{
    if (faults->count)
        qsort(faults->items, faults->count, sizeof *faults->items, compare_faults);
}

static int read_faults(const char *path, struct fault_log_content *out, struct error *err)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return error_set_errno(err, ERROR_INPUT, "cannot read %s", path);
    long long begin, end;
    char kind[32];
    size_t lines = 0;
    for (; fscanf(file, "%lld %lld %31s", &begin, &end, kind) == 3; lines++) {
        struct fault_array *list = strcmp(kind, FAULT_LOG_WAITS) == 0    ? &out->waits
                                   : strcmp(kind, FAULT_LOG_READY) == 0  ? &out->ready
                                   : strcmp(kind, FAULT_LOG_UNTOLD) == 0 ? &out->untold
                                                                         : &out->faults;
        if (array_push(list, (struct fault){begin, end, SIZE_MAX}) < 0)
            break;
    }
    bool says = out->waits.count > 0;
    for (size_t i = 0; !says && i < out->faults.count; i++)
        if (array_push(&out->waits, out->faults.items[i]) < 0)
            break;
    fclose(file);
    if (lines >= FAULT_LOG_LINES)
        return error_set(err, ERROR_INPUT, "%s is full: nothing is known of later faults", path);
    sort_faults(&out->faults);
    sort_faults(&out->waits);
    sort_faults(&out->ready);
    sort_faults(&out->untold);
    return 0;
}

static void free_faults(struct fault_log_content *log)
{
    array_free(&log->faults);
    array_free(&log->waits);
    array_free(&log->ready);
    array_free(&log->untold);
    free(log->late);
}

static int64_t leaves_server(const struct lifetime *life)
{
    return life->stamp_ns[lifetime_has(life, STAMP_SERVER_TX) ? STAMP_SERVER_TX : STAMP_REPLY];
}

// The first fault that ends after `time_ns`.
static size_t first_fault(const struct fault_array *faults, int64_t time_ns)
{
    size_t i = 0;
    while (i < faults->count && faults->items[i].end_ns <= time_ns)
        i++;
    return i;
}

static double held_up_ns(const struct fault_array *faults, const struct lifetime *life,
                         const char *scope)
{
    bool client = strcmp(scope, "client") == 0;
    int64_t from = life->stamp_ns[client ? STAMP_INTENDED : STAMP_NIC], sum = 0;
    int64_t to = client ? life->stamp_ns[STAMP_REPLY_READ] : leaves_server(life);
    for (size_t i = first_fault(faults, from); i < faults->count && faults->items[i].begin_ns < to;
         i++) {
        int64_t begin = faults->items[i].begin_ns, end = faults->items[i].end_ns;
        sum += (end < to ? end : to) - (begin > from ? begin : from);
    }
    return (double)sum;
}

// Who was being served all through a fault: the first to be answered after it.
static void find_own(struct fault_array *faults, const struct lifetime_array *lives)
{
    for (size_t m = 0; m < lives->count; m++) {
        const struct lifetime *life = &lives->items[m];
        if (life->state != LIFETIME_WHOLE)
            continue;
        size_t i = first_fault(faults, life->stamp_ns[STAMP_APPLICATION]);
        if (i == faults->count || faults->items[i].begin_ns < life->stamp_ns[STAMP_APPLICATION] ||
            life->stamp_ns[STAMP_REPLY] < faults->items[i].end_ns)
            continue;
        struct fault *fault = &faults->items[i];
        if (fault->own == SIZE_MAX ||
            life->stamp_ns[STAMP_REPLY] < lives->items[fault->own].stamp_ns[STAMP_REPLY])
            fault->own = m;
    }
}

static bool met_fault(const struct fault_array *faults, const struct lifetime *life,
                      int64_t outlasts_ns)
{
    size_t i = first_fault(faults, life->stamp_ns[STAMP_INTENDED] - outlasts_ns);
    return i < faults->count && faults->items[i].begin_ns < life->stamp_ns[STAMP_REPLY_READ];
}

static bool in_scope(const struct fault_array *faults, const struct run_analysis *run,
                     uint64_t message, const char *scope)
{
    if (strcmp(scope, "own") != 0 && strcmp(scope, "others") != 0)
        return true;
    size_t i = first_fault(faults, run->lifetimes.all.items[message].stamp_ns[STAMP_NIC]);
    bool own = i < faults->count && faults->items[i].own == message;
    return own == (strcmp(scope, "own") == 0);
}

static bool is_expected(const struct cause *cause, const char *causes)
{
    char name[CAUSE_NAME_BYTES + 16];
    snprintf(name, sizeof name, "%s (%s)", cause->name, role_name(cause->role));
    bool expected = false;
    char *all = strdup(causes), *rest;
    for (char *one = strtok_r(all, ";", &rest); one && !expected; one = strtok_r(NULL, ";", &rest))
        expected = fnmatch(one, name, FNM_NOESCAPE) == 0;
    free(all);
    return expected;
}

// Whether causes of that name took more than a twentieth of what the message took longer than
// usual.
static bool is_due_to(const char *name, const struct diagnosis *diagnosis,
                      const struct diagnosed_message *message, size_t first, size_t after)
{
    double ns = 0;
    for (size_t i = first; i < after; i++) {
        const struct attribution *attribution = &diagnosis->attributions.items[i];
        if (strncmp(diagnosis->causes.items[attribution->cause].name, name, strlen(name)) == 0)
            ns += attribution->ns;
    }
    return ns > message->deviation_ns / 20;
}

// What messages deviate that no fault touched, nor the queue it left, once there are faults:
// before, the program that makes them starts.
static double noise_ns(const struct run_analysis *run, const struct fault_array *faults)
{
    const struct diagnosis *diagnosis = &run->findings.diagnoses.items[0];
    struct double_array quiet = {0};
    for (size_t i = 0; i < diagnosis->messages.count; i++) {
        const struct lifetime *life =
            &run->lifetimes.all.items[diagnosis->messages.items[i].lifetime];
        int64_t from = life->stamp_ns[STAMP_INTENDED], to = life->stamp_ns[STAMP_REPLY_READ];
        size_t f = 0;
        if (faults->count && from < faults->items[0].begin_ns)
            continue;
        while (f < faults->count &&
               (faults->items[f].begin_ns > to ||
                2 * faults->items[f].end_ns - faults->items[f].begin_ns < from))
            f++;
        if (f == faults->count)
            (void)array_push(&quiet, diagnosis->messages.items[i].deviation_ns);
    }
    quantile_sort(quiet.items, quiet.count);
    double noise = quiet.count ? quantile_sorted(quiet.items, quiet.count, 0.95) : 0;
    array_free(&quiet);
    return noise > diagnosis->granularity_ns ? noise : diagnosis->granularity_ns;
}

// ready_ns: how long the message's thread was ready to run meanwhile, by the fault's log.
static void judge_message(const struct diagnosis *diagnosis,
                          const struct diagnosed_message *message, size_t first, size_t after,
                          double injected_ns, double ready_ns, const char *causes,
                          struct verdicts *out)
{
    double expected = 0, bystander = 0;
    const struct cause *top = NULL;
    double top_ns = 0;
    for (size_t i = first; i < after; i++) {
        const struct attribution *attribution = &diagnosis->attributions.items[i];
        const struct cause *cause = &diagnosis->causes.items[attribution->cause];
        if (is_expected(cause, causes)) {
            expected += attribution->ns;
        } else if (strncmp(cause->name, "bystander", 9) == 0) {
            bystander += attribution->ns;
        } else if (attribution->ns > top_ns) {
            top = cause;
            top_ns = attribution->ns;
        }
    }
    out->affected++;
    out->bystander_ns += fmax(bystander - ready_ns, 0);
    out->injected_ns += injected_ns;
    out->attributed_ns += expected;
    (void)array_push(&out->coverage,
                     fmin(message->explained_ns / (message->deviation_ns - message->apart_ns), 1));
    (void)array_push(&out->errors, fabs(expected - injected_ns) / injected_ns);
    if (expected > top_ns) {
        out->right++;
    } else {
        char name[CAUSE_NAME_BYTES + 16] = "nothing";
        if (top)
            snprintf(name, sizeof name, "%s (%s)", top->name, role_name(top->role));
        json_int_t before = json_integer_value(json_object_get(out->wrong, name));
        json_object_set_new(out->wrong, name, json_integer(before + 1));
    }
}

static int find_late(struct fault_log_content *log, const struct lifetime_array *lives)
{
    struct fault_time *times = calloc(log->faults.count + 1, sizeof *times);
    for (size_t i = 0; times && i < log->faults.count; i++)
        times[i] = (struct fault_time){log->faults.items[i].begin_ns, log->faults.items[i].end_ns};
    if (times)
        log->late = find_on_their_way(lives->items, lives->count, times, log->faults.count);
    free(times);
    return log->late ? 0 : -1;
}

// How much a fault held a message up, 0: not at all.
static double injected_ns(const struct fault_log_content *log, const struct lifetime *life,
                          const struct diagnosed_message *message, const char *scope)
{
    const int64_t opened_again_ns = 1500000000;
    double queued_ns = life->stage_ns[STAMP_SEND], sent_ns = message->deviation_ns - queued_ns;
    if (strcmp(scope, "late") == 0)
        return sent_ns >= LATE_NS && log->late[message->lifetime] ? sent_ns : 0;
    if (strcmp(scope, "opening") == 0)
        return queued_ns >= LATE_NS && met_fault(&log->faults, life, opened_again_ns) ? queued_ns
                                                                                      : 0;
    return held_up_ns(&log->waits, life, scope);
}

static void judge(const struct run_analysis *run, const struct fault_log_content *log,
                  const char *scope, const char *causes, struct verdicts *out)
{
    const struct diagnosis *diagnosis = &run->findings.diagnoses.items[0];
    const double noise = noise_ns(run, &log->faults);
    size_t first = 0;
    out->noise_ns = noise;
    for (size_t i = 0; i < diagnosis->messages.count; i++) {
        const struct diagnosed_message *message = &diagnosis->messages.items[i];
        size_t after = first;
        while (after < diagnosis->attributions.count &&
               diagnosis->attributions.items[after].lifetime == message->lifetime)
            after++;
        const struct lifetime *life = &run->lifetimes.all.items[message->lifetime];
        double injected = injected_ns(log, life, message, scope);
        if (message->deviation_ns > noise &&
            held_up_ns(&log->untold, life, scope) > message->deviation_ns / 20)
            out->untold++;
        else if (injected > noise && message->deviation_ns > noise &&
                 in_scope(&log->faults, run, message->lifetime, scope)) {
            if (injected < message->deviation_ns / 2)
                out->lesser++;
            else if (is_due_to("lost records", diagnosis, message, first, after))
                out->unseen++;
            else if (is_due_to("virtual CPU taken away", diagnosis, message, first, after))
                out->stolen++;
            else
                judge_message(diagnosis, message, first, after, injected,
                              held_up_ns(&log->ready, life, scope), causes, out);
        }
        first = after;
    }
}

static int print(const char *name, struct verdicts *v, size_t faults)
{
    quantile_sort(v->coverage.items, v->coverage.count);
    quantile_sort(v->errors.items, v->errors.count);
    bool any = v->affected > 0;
    json_t *scores = json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:O}", "name",
        name, "faults", (json_int_t)faults, "affected", (json_int_t)v->affected, "right",
        (json_int_t)v->right, "unseen", (json_int_t)v->unseen, "lesser", (json_int_t)v->lesser,
        "stolen", (json_int_t)v->stolen, "untold", (json_int_t)v->untold, "noise_us",
        v->noise_ns / 1e3, "injected_ms", v->injected_ns / 1e6, "bystander_ms",
        v->bystander_ns / 1e6, "attributed_ms", v->attributed_ns / 1e6, "error_median",
        any ? quantile_sorted(v->errors.items, v->errors.count, 0.5) : 0.0, "coverage_median",
        any ? quantile_sorted(v->coverage.items, v->coverage.count, 0.5) : 0.0, "coverage_min",
        any ? v->coverage.items[0] : 0.0, "wrong", v->wrong);
    int result = scores ? json_dumpf(scores, stdout, JSON_COMPACT | JSON_REAL_PRECISION(4)) : -1;
    putchar('\n');
    json_decref(scores);
    return result;
}

int main(int argc, char **argv)
{
    struct error err = {0};
    struct run_analysis run = {0};
    struct fault_log_content log = {0};
    struct progress progress = {.quiet = true};
    struct diagnosis_slice everything = {.low = 0, .high = 1, .relative = true};
    const struct diagnosis_slice_array slices = {.items = &everything, .count = 1};
    const struct run_request request = {.run_dir = argv[2], .slices = &slices};
    if (argc != 6) {
        fputs("usage: score NAME RUN LOG all|own|others|late|client|opening CAUSES\n", stderr);
        return 2;
    }
    if (strcmp(argv[4], "opening") != 0) {
        everything.from_ns = UNSETTLED_NS;
        everything.to_ns = INT64_MAX;
    }
    if (read_faults(argv[3], &log, &err) < 0 || run_analyze(&request, &progress, &run, &err) < 0)
        return error_report(&err);
    if (run.findings.diagnoses.items[0].not_available) {
        fprintf(stderr, "no verdict: %s\n", run.findings.diagnoses.items[0].reason);
        run_analysis_free(&run);
        return 4;
    }
    struct verdicts verdicts = {.wrong = json_object()};
    find_own(&log.faults, &run.lifetimes.all);
    if (find_late(&log, &run.lifetimes.all) < 0) {
        fputs("no memory\n", stderr);
        return 1;
    }
    judge(&run, &log, argv[4], argv[5], &verdicts);
    int result = print(argv[1], &verdicts, log.faults.count);
    json_decref(verdicts.wrong);
    array_free(&verdicts.coverage);
    array_free(&verdicts.errors);
    free_faults(&log);
    run_analysis_free(&run);
    return result < 0 ? 1 : 0;
}
