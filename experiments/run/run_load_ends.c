// SPDX-License-Identifier: MIT
#include "experiments/run/run_load_ends.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/json_numbers.h"
#include "base/text.h"
#include "experiments/hosts/host_kind.h"

// How long a load may take to end.
enum {
    END_S = 30,
    END_REQUESTS_PER_S = 100000, // judged, and their samples written
    SALVAGE_S = 5,
};

char *loader_name(const struct run *run, const struct loader *loader, char out[LOADER_NAME_BYTES])
{
    if (run->loader_count > 1)
        snprintf(out, LOADER_NAME_BYTES, "the load `%s`", loader->plan->name);
    else
        snprintf(out, LOADER_NAME_BYTES, "the load generator");
    return out;
}

double loader_requests(const struct experiment_load *load)
{
    return load->rate * (double)load->duration_ns / 1e9;
}

double loader_grace_s(const struct experiment_load *load)
{
    // A method loads in rounds of a second or more, and the replies to each are waited for.
    uint64_t rounds = load->method.percentile ? load->duration_ns / SECOND_NS + 1 : 1;
    return END_S + (double)(rounds * load->timeout_ns) / 1e9 +
           loader_requests(load) / END_REQUESTS_PER_S;
}

// --- what it prints ------------------------------------------------------------------------------

void loader_drop_line(struct text_buffer *output)
{
    const char *end = output->count ? memchr(output->items, '\n', output->count) : NULL;
    size_t bytes = end ? (size_t)(end - output->items) + 1 : output->count;
    if (bytes)
        memmove(output->items, output->items + bytes, output->count - bytes);
    output->count -= bytes;
}

bool loader_take_notices(struct text_buffer *output, char *live, size_t live_bytes)
{
    bool slow = false, taken = true;
    while (taken) {
        json_t *line = run_first_line(output);
        const char *view = json_string_value(json_object_get(line, "live"));
        if (view)
            snprintf(live, live_bytes, ": %s", view);
        taken = view || json_object_get(line, "slow");
        slow |= taken && !view;
        if (taken)
            loader_drop_line(output);
        json_decref(line);
    }
    return slow;
}

// What cannot be kept is said at least: a load is not made twice.
static void say_measured(struct run *run, const struct loader *loader, const json_t *document,
                         const char *why)
{
    char what[LOADER_NAME_BYTES];
    const json_t *latency = json_object_get(document, "latency_us");
    run_warn(run,
             "what %s measured could not be written (%s): %s of %s requests answered, p50 %s, "
             "p99 %s, p99.9 %s",
             loader_name(run, loader, what), why,
             TEXT_COUNT(json_integer_value(json_object_get(document, "answered"))),
             TEXT_COUNT(json_integer_value(json_object_get(document, "scheduled"))),
             TEXT_US(json_percentile(latency, "p50")), TEXT_US(json_percentile(latency, "p99")),
             TEXT_US(json_percentile(latency, "p99.9")));
}

static int keep_summary(struct run *run, struct loader *loader, struct error *err)
{
    json_error_t where;
    char live[2], what[LOADER_NAME_BYTES], name[LOAD_FOLDER_BYTES + 16];
    struct text_buffer *output = &loader->output;
    loader_take_notices(output, live, sizeof live);
    json_t *document = output->count ? json_loadb(output->items, output->count, 0, &where) : NULL;
    loader_name(run, loader, what);
    if (!document)
        return error_set(err, ERROR_FAILED, "%s's summary cannot be read: %s; see %s",
                         run->loader_count > 1 ? what : "the load",
                         output->count ? where.text : "there is none", loader->log_path);
    const char *lack = json_string_value(json_object_get(document, "no_kernel_stamps"));
    if (lack)
        run_warn(run, "%s: no kernel stamps: %s", run->loader_count > 1 ? what : "load", lack);
    const char *verdict = json_string_value(json_object_get(document, "verdict"));
    const char *doubt = json_string_value(json_array_get(json_object_get(document, "reasons"), 0));
    if (verdict && strcmp(verdict, "n/a") == 0)
        run_warn(run, "%s is inconclusive: %s", run->loader_count > 1 ? what : "the load",
                 doubt ? doubt : "it does not say why");
    snprintf(name, sizeof name, "%s/load.json", loader->folder);
    int result = run_folder_write_json(run->folder, name, document, err);
    if (result < 0)
        say_measured(run, loader, document, err->text);
    json_decref(document);
    return result;
}

// --- the end of one ------------------------------------------------------------------------------

int loader_end_error(const struct run *run, const struct loader *loader, int status,
                     struct error *err)
{
    char what[LOADER_NAME_BYTES];
    return supervisor_death_error(&run->supervisor, err, loader_name(run, loader, what), status,
                                  loader->log_path);
}

static bool is_good_end(int status)
{
    return status == 0 || (WIFEXITED(status) && WEXITSTATUS(status) == ERROR_INCONCLUSIVE);
}

// What became of a load whose process has ended.
static int take_end(struct run *run, struct loader *loader, int status, struct error *err)
{
    struct error ignored;
    if (is_good_end(status))
        return keep_summary(run, loader, err);
    keep_summary(run, loader, &ignored); // it says what it measured whatever failed then
    return loader_end_error(run, loader, status, err);
}

int loads_take_end(struct run *run, int status, struct error *err)
{
    return take_end(run, &run->loaders[0], status, err);
}

// Waits for a load beside the first, which has ended. They began together, and none is longer; only
// a method may have ended the first before.
static int end_other(struct run *run, struct loader *loader, struct error *err)
{
    char what[LOADER_NAME_BYTES];
    int status = 0;
    const uint64_t patience_ns = (uint64_t)(loader_grace_s(loader->plan) * 1e9);
    if (run->loaders[0].plan->method.percentile)
        process_ask_to_end(&loader->process);
    int result = supervisor_wait(&run->supervisor, &loader->process, &loader->output, false,
                                 supervisor_now_ns() + patience_ns, &status, err);
    if (result < 0)
        return result;
    if (result == 0)
        return error_set(err, ERROR_FAILED, "%s (process %d) does not end: see %s",
                         loader_name(run, loader, what), loader->process.pid, loader->log_path);
    return take_end(run, loader, status, err);
}

int loads_end_others(struct run *run, struct error *err)
{
    int result = 0;
    for (size_t i = 1; i < run->loader_count && result == 0; i++)
        result = end_other(run, &run->loaders[i], err);
    if (result < 0)
        loads_salvage(run);
    return result;
}

// --- all of them ---------------------------------------------------------------------------------

// Whether its process has ended badly; nobody has waited for it yet.
static bool has_failed(const struct loader *loader)
{
    siginfo_t info = {.si_pid = 0};
    if (loader->process.pid <= 0 ||
        waitid(P_PID, (id_t)loader->process.pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
        info.si_pid == 0)
        return false;
    return info.si_code != CLD_EXITED ||
           (info.si_status != 0 && info.si_status != ERROR_INCONCLUSIVE);
}

int loads_check_others(struct run *run, struct error *err)
{
    for (size_t i = 1; i < run->loader_count; i++) {
        struct loader *loader = &run->loaders[i];
        int status = 0, result;
        if (!has_failed(loader))
            continue;
        // Whose server is gone is not to blame: that ends the wait, too.
        result = supervisor_wait(&run->supervisor, &loader->process, &loader->output, false,
                                 supervisor_now_ns() + SECOND_NS, &status, err);
        if (result)
            return result < 0 ? result : take_end(run, loader, status, err);
    }
    return 0;
}

// Waits for one that has been told to end. Returns whether it has said what it measured.
static bool salvage(struct run *run, struct loader *loader, uint64_t deadline_ns)
{
    struct error ignored;
    int status;
    return loader->process.pid > 0 &&
           supervisor_wait(&run->supervisor, &loader->process, &loader->output, false, deadline_ns,
                           &status, &ignored) > 0 &&
           keep_summary(run, loader, &ignored) == 0;
}

// Has the capture write what it has, where that is of use. Returns whether it is here.
static bool salvage_capture(struct run *run)
{
    struct error ignored;
    return !run_server_host(run)->kind->is_elsewhere && run->capture.pid > 0 &&
           run_stop_capture(run, &ignored) == 0;
}

static void say_salvaged(struct run *run, const struct loader *loader, bool captured)
{
    char whose[LOADER_NAME_BYTES];
    loader_name(run, loader, whose);
    run_warn(run, "what %s measured until then is in %s/load.json%s",
             run->loader_count > 1 ? whose : "the load", loader->folder,
             captured ? ", and what was captured in server; `taillight analyze` takes both" : "");
}

void loads_salvage(struct run *run)
{
    const uint64_t deadline_ns = supervisor_now_ns() + SALVAGE_S * SECOND_NS;
    struct error problem;
    bool any = false, captured;
    if (run->supervisor.interrupted)
        return;
    run->supervisor.watched_count = 0; // what is gone is known
    for (size_t i = 0; i < run->loader_count; i++)
        process_ask_to_end(&run->loaders[i].process);
    for (size_t i = 0; i < run->loader_count; i++)
        any |= run->loaders[i].salvaged = salvage(run, &run->loaders[i], deadline_ns);
    captured = salvage_capture(run); // also beside what a load that was killed had written
    if (!any)
        return;
    for (size_t i = 0; i < run->loader_count; i++)
        if (run->loaders[i].salvaged)
            say_salvaged(run, &run->loaders[i], captured);
    // What is on another machine goes with the run.
    if (run_stop_clock(run, &problem) < 0 || run_fetch_loads(run, &problem) < 0)
        run_warn(run, "the requests of the loads are not here: %s", problem.text);
}
