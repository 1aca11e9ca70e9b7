// SPDX-License-Identifier: MIT
//
// Two threads: the first loads, the second keeps the link. The second wakes once a second, and on
// every message; it ends the process when the link ends, whatever the first is doing.
#include "loadgen/agents/agent_command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/log_file.h"
#include "base/options.h"
#include "loadgen/agents/agent_message.h"
#include "loadgen/client/server_address.h"
#include "loadgen/engine/schedule.h"
#include "loadgen/method/load_saturation.h"
#include "loadgen/method/load_summary.h"
#include "loadgen/method/method.h"

static const struct option_spec options[] = {OPTION_END};
static const struct command_usage usage = {
    .name = "agent",
    .arguments = "",
    .summary = "The far end of a link (internal): takes a plan on stdin, loads, answers on stdout.",
    .details = "Started by `taillight load --agent` and `taillight run`; nobody needs to type it. "
               "It ends when stdin\ndoes, or when nothing has come for 5 s.",
    .options = options,
};

struct agent {
    int in, out;
    int wake;                   // eventfd: the keeper is to end
    struct frame_reader reader; // the keeper's
    pthread_mutex_t writing;    // one frame at a time
    pthread_mutex_t lock;       // of what follows
    pthread_cond_t changed;
    json_t *plan;
    uint64_t begin_ns;
    bool stopped;
    bool done; // all is sent: the link may end
};

// --- the link ------------------------------------------------------------------------------------

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// The first thread may be anywhere, also in the middle of a write: nothing is cleaned up.
__attribute__((noreturn)) static void die(const char *why)
{
    dprintf(STDERR_FILENO, "taillight: agent: %s\n", why);
    _exit(ERROR_FAILED);
}

// At once, since the controller takes half the round trip for the way back. Never waits: as beat.
static void tell_clock(struct agent *agent)
{
    struct timespec now;
    struct error err;
    if (pthread_mutex_trylock(&agent->writing) != 0)
        return; // the controller asks again
    clock_gettime(CLOCK_MONOTONIC, &now);
    json_t *message = json_pack("{s:s,s:I}", "type", "clock", "at_ns",
                                (json_int_t)now.tv_sec * 1000000000 + now.tv_nsec);
    if (frame_write_json(agent->out, message, &err) < 0)
        die(err.text);
    json_decref(message);
    pthread_mutex_unlock(&agent->writing);
}

static void take_frame(struct agent *agent, const struct frame *frame)
{
    const char *type = json_string_value(json_object_get(frame->json, "type"));
    if (!type)
        return; // a heartbeat
    if (strcmp(type, "clock") == 0) {
        tell_clock(agent);
        return;
    }
    pthread_mutex_lock(&agent->lock);
    if (strcmp(type, "plan") == 0 && !agent->plan)
        agent->plan = json_incref(frame->json);
    else if (strcmp(type, "begin") == 0)
        agent->begin_ns = (uint64_t)json_integer_value(json_object_get(frame->json, "at_ns"));
    else if (strcmp(type, "stop") == 0) {
        agent->stopped = true;
        kill(getpid(), SIGINT); // the engine's sign to end early
    }
    pthread_cond_signal(&agent->changed);
    pthread_mutex_unlock(&agent->lock);
}

// Never waits: a pipe with room takes a frame this small whole, and while the first thread writes,
// what it writes is sign of life enough.
static void beat(struct agent *agent)
{
    struct pollfd ready = {.fd = agent->out, .events = POLLOUT};
    struct error err;
    if (pthread_mutex_trylock(&agent->writing) != 0)
        return;
    if (poll(&ready, 1, 0) == 1 && frame_write_heartbeat(agent->out, &err) < 0)
        die(err.text);
    pthread_mutex_unlock(&agent->writing);
}

static bool is_done(struct agent *agent)
{
    pthread_mutex_lock(&agent->lock);
    bool done = agent->done;
    pthread_mutex_unlock(&agent->lock);
    return done;
}

static void *keep_link(void *argument)
{
    struct agent *agent = argument;
    int64_t heard_ms = now_ms(), beat_ms = 0;
    for (;;) {
        struct pollfd ready[] = {{.fd = agent->in, .events = POLLIN},
                                 {.fd = agent->wake, .events = POLLIN}};
        struct frame frame;
        struct error err;
        bool ended = false;
        int result = 0;
        if (now_ms() - beat_ms >= AGENT_HEARTBEAT_MS) {
            beat(agent);
            beat_ms = now_ms();
        }
        int polled = poll(ready, 2, AGENT_HEARTBEAT_MS);
        if (polled > 0 && ready[1].revents)
            return NULL;
        if (polled > 0 && ready[0].revents) {
            if (frame_reader_fill(&agent->reader, agent->in, &ended, &err) < 0)
                die(err.text);
            heard_ms = now_ms();
        }
        if (ended && is_done(agent))
            return NULL;
        if (ended)
            die("the controller is gone");
        if (now_ms() - heard_ms > AGENT_SILENCE_MS)
            die("the controller is silent");
        while ((result = frame_reader_next(&agent->reader, &frame, &err)) == 1) {
            take_frame(agent, &frame);
            json_decref(frame.json);
        }
        if (result < 0)
            die(err.text);
    }
    return NULL;
}

static int send_json(struct agent *agent, json_t *json, struct error *err)
{
    pthread_mutex_lock(&agent->writing);
    int status = frame_write_json(agent->out, json, err);
    pthread_mutex_unlock(&agent->writing);
    json_decref(json);
    return status;
}

// The last word: after it the controller hangs up.
static int send_last(struct agent *agent, json_t *json, struct error *err)
{
    pthread_mutex_lock(&agent->lock);
    agent->done = true;
    pthread_mutex_unlock(&agent->lock);
    return send_json(agent, json, err);
}

// --- the load ------------------------------------------------------------------------------------

static uint64_t agree(void *context, uint64_t needs_ns)
{
    struct agent *agent = context;
    struct error err;
    if (send_json(agent, json_pack("{s:s,s:I}", "type", "ready", "needs_ns", (json_int_t)needs_ns),
                  &err) < 0)
        return 0;
    pthread_mutex_lock(&agent->lock);
    while (!agent->begin_ns && !agent->stopped)
        pthread_cond_wait(&agent->changed, &agent->lock);
    uint64_t begin_ns = agent->stopped ? 0 : agent->begin_ns;
    pthread_mutex_unlock(&agent->lock);
    return begin_ns;
}

static int send_result(struct agent *agent, const struct agent_plan *plan,
                       const struct workload *workload, const struct engine_result *result,
                       struct error *err)
{
    struct load_summary summary;
    struct method method;
    const struct method_settings settings = {.quantile = plan->quantile,
                                             .confidence = plan->confidence,
                                             .arrivals = workload->arrivals,
                                             .rate = plan->spec.rate,
                                             .pattern = workload->pattern,
                                             .duration_s = (double)plan->duration_ns / 1e9,
                                             .turn = plan->spec.connections};
    const struct load_facts facts = {.server = plan->server,
                                     .protocol = workload->protocol->name,
                                     .rate = plan->spec.rate,
                                     .arrivals = "",
                                     .seed = plan->spec.seed};
    char boot_id[40];
    struct load_saturation saturation;
    bool measures = agent_kind_measures(plan->spec.kind);
    int status = load_summarise(result, plan->duration_ns, &summary, err);
    if (status == 0)
        status = method_judge(result, &settings, summary.ok, summary.spin_fraction, &method, err);
    if (status < 0)
        return status;
    for (unsigned i = 0; i < method.reason_count; i++)
        load_summary_add_reason(&summary, "%s", method.reasons[i]);
    log_boot_id(boot_id);
    json_t *report = load_summary_json(&summary, result, &facts);
    json_object_update_new(json_object_get(report, "method"), method_json(&method));
    load_saturation_judge(result, &summary, &saturation);
    json_object_set_new(report, "saturated", load_saturation_json(&saturation));
    status = send_json(agent,
                       json_pack("{s:s,s:s,s:o,s:o}", "type", "result", "boot_id", boot_id,
                                 "report", report, "run", agent_result_to_json(result, measures)),
                       err);
    if (status < 0)
        return status;
    pthread_mutex_lock(&agent->writing);
    status = agent_pack(agent->out, result, measures, err);
    pthread_mutex_unlock(&agent->writing);
    return status < 0 ? status : send_last(agent, json_pack("{s:s}", "type", "done"), err);
}

static int load(struct agent *agent, const struct agent_plan *plan, const struct workload *workload,
                struct error *err)
{
    struct server_address server;
    struct schedule schedule = {0};
    struct engine_result result = {0};
    struct engine_settings settings = {
        .server = &server,
        .workload = workload,
        .threads = (uint32_t)plan->spec.threads,
        .connections = (uint32_t)plan->spec.connections,
        .depth = (uint32_t)plan->spec.depth,
        .stamps = agent_kind_measures(plan->spec.kind) ? plan->stamps : STAMP_MODE_USER,
        .duration_ns = plan->duration_ns,
        .timeout_ns = plan->timeout_ns,
        .reconnect_ns = plan->reconnect_ns,
        .busy_poll_us = plan->spec.kind == AGENT_LATENCY ? AGENT_BUSY_POLL_US : 0,
        .agree = agree,
        .agree_context = agent,
    };
    int status = server_address_parse(plan->server, &server, err);
    if (status == 0)
        status = server_address_resolve(&server, err);
    if (status == 0)
        status = schedule_draw(workload, &workload->arrivals, plan->spec.rate, plan->duration_ns,
                               plan->spec.seed, &schedule, err);
    if (status == 0)
        status = engine_run(&settings, &schedule, &result, err);
    schedule_free(&schedule);
    if (status == 0)
        status = send_result(agent, plan, workload, &result, err);
    engine_result_free(&result);
    return status;
}

static json_t *wait_plan(struct agent *agent)
{
    pthread_mutex_lock(&agent->lock);
    while (!agent->plan)
        pthread_cond_wait(&agent->changed, &agent->lock);
    json_t *plan = agent->plan;
    pthread_mutex_unlock(&agent->lock);
    return plan;
}

static int serve(struct agent *agent, struct error *err)
{
    struct agent_plan plan;
    struct workload workload;
    struct error ignored;
    json_t *message = wait_plan(agent);
    int status = agent_plan_from_json(message, &plan, &workload, err);
    if (status == 0) {
        status = load(agent, &plan, &workload, err);
        workload_free(&workload);
    }
    if (status < 0)
        send_last(
            agent,
            json_pack("{s:s,s:i,s:s}", "type", "failed", "kind", (int)err->kind, "text", err->text),
            &ignored);
    return status;
}

int agent_command(int argc, char **argv)
{
    struct agent agent = {.out = STDOUT_FILENO,
                          .writing = PTHREAD_MUTEX_INITIALIZER,
                          .lock = PTHREAD_MUTEX_INITIALIZER,
                          .changed = PTHREAD_COND_INITIALIZER};
    struct error err = {0};
    pthread_t keeper;
    sigset_t signals;
    int positional = 0;
    bool help = false, nothing;
    if (options_parse(&usage, argc, argv, &nothing, &positional, &help, &err) < 0)
        return error_report(&err);
    if (help)
        return 0;
    if (positional > 0 || isatty(STDIN_FILENO)) {
        error_set(&err, ERROR_INPUT, "agent is started by other commands, not typed");
        return error_report(&err);
    }
    // The engine takes them from its own descriptor; the keeper must not be hit by them.
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    agent.wake = eventfd(0, EFD_CLOEXEC);
    if (agent.wake < 0 || pthread_create(&keeper, NULL, keep_link, &agent) != 0) {
        error_set(&err, ERROR_FAILED, "no thread can be started");
        return error_report(&err);
    }
    int status = serve(&agent, &err);
    eventfd_write(agent.wake, 1);
    pthread_join(keeper, NULL);
    close(agent.wake);
    frame_reader_free(&agent.reader);
    json_decref(agent.plan);
    return status < 0 ? (int)err.kind : 0;
}
