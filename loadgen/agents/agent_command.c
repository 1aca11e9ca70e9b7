// SPDX-License-Identifier: MIT
//
// Two threads: the first loads; the second, the keeper, serves the link (base/link.h) whatever the
// first is doing, and ends the process when the link ends.
#include "loadgen/agents/agent_command.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/link.h"
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
               "It ends when stdin "
               "does, or when nothing has come for 5 s.",
    .options = options,
};

struct agent {
    pthread_mutex_t lock; // protects all below; the keeper releases it while it waits
    pthread_cond_t changed;
    struct link link;
    int wake; // eventfd that wakes the keeper: something is queued, or it is to end
    bool ending;
    json_t *plan;
    uint64_t begin_ns;
    bool stopped;
    bool done; // the last message is queued: the link may end after it
};

// --- the link ------------------------------------------------------------------------------------

static int take_frame(void *context, const struct frame *frame, struct error *err)
{
    struct agent *agent = context;
    const char *type = json_string_value(json_object_get(frame->json, "type"));
    if (!type)
        return 0;
    // answered without delay: the controller assumes that half the round trip is one way
    if (strcmp(type, "clock") == 0)
        return link_send_new(&agent->link,
                             json_pack("{s:s,s:I}", "type", "clock", "at_ns", monotonic_ns()), err);
    if (strcmp(type, "plan") == 0 && !agent->plan)
        agent->plan = json_incref(frame->json);
    else if (strcmp(type, "begin") == 0)
        agent->begin_ns = (uint64_t)json_integer_value(json_object_get(frame->json, "at_ns"));
    else if (strcmp(type, "stop") == 0) {
        agent->stopped = true;
        kill(getpid(), SIGINT); // upon which the engine ends early
    }
    return 0;
}

static void *keep_link(void *argument)
{
    struct agent *agent = argument;
    struct link *link = &agent->link;
    pthread_mutex_lock(&agent->lock);
    while (link->state == LINK_UP && !agent->ending) {
        struct pollfd ready[3];
        eventfd_t woken;
        int wait_ms = link_watch(link, ready);
        ready[2] = (struct pollfd){.fd = agent->wake, .events = POLLIN};
        pthread_mutex_unlock(&agent->lock);
        if (poll(ready, 3, wait_ms) <= 0)
            ready[0].revents = ready[1].revents = ready[2].revents = 0;
        if (ready[2].revents)
            eventfd_read(agent->wake, &woken);
        pthread_mutex_lock(&agent->lock);
        link_serve(link, ready);
        pthread_cond_signal(&agent->changed);
    }
    bool broken = link->state != LINK_UP && !(agent->done && link_is_flushed(link));
    pthread_mutex_unlock(&agent->lock);
    if (broken) {
        // The first thread may be anywhere, so nothing is cleaned up.
        dprintf(STDERR_FILENO, "taillight: agent: %s\n", link->err.text);
        _exit(ERROR_FAILED);
    }
    return NULL;
}

// Waits while too much is still queued. Only for the first thread, with the lock held.
static void wait_for_room(struct agent *agent)
{
    while (agent->link.state == LINK_UP && !link_has_room(&agent->link))
        pthread_cond_wait(&agent->changed, &agent->lock);
}

static int send_json(struct agent *agent, json_t *json, struct error *err)
{
    pthread_mutex_lock(&agent->lock);
    wait_for_room(agent);
    int status = link_send_new(&agent->link, json, err);
    pthread_mutex_unlock(&agent->lock);
    eventfd_write(agent->wake, 1);
    return status;
}

static int send_piece(void *context, const void *bytes, size_t count, struct error *err)
{
    struct agent *agent = context;
    pthread_mutex_lock(&agent->lock);
    wait_for_room(agent);
    int status = link_send_bytes(&agent->link, bytes, count, err);
    pthread_mutex_unlock(&agent->lock);
    eventfd_write(agent->wake, 1);
    return status;
}

// Sends the last message, after which the controller closes the link. Waits until it is written.
static int send_last(struct agent *agent, json_t *json, struct error *err)
{
    pthread_mutex_lock(&agent->lock);
    agent->done = true;
    pthread_mutex_unlock(&agent->lock);
    int status = send_json(agent, json, err);
    pthread_mutex_lock(&agent->lock);
    while (status == 0 && agent->link.state == LINK_UP && !link_is_flushed(&agent->link))
        pthread_cond_wait(&agent->changed, &agent->lock);
    pthread_mutex_unlock(&agent->lock);
    return status;
}

// --- the load ------------------------------------------------------------------------------------

static uint64_t begin_agree(void *context, uint64_t needs_ns)
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
                                     .protocol = workload->protocol,
                                     .rate = plan->spec.rate,
                                     .arrivals = "",
                                     .session = plan->session,
                                     .seed = plan->spec.seed};
    char boot_id[40];
    struct load_saturation saturation;
    bool measures = agent_kind_measures(plan->spec.kind);
    int status = load_judge(result, plan->duration_ns, &settings, &summary, &method, err);
    if (status < 0)
        return status;
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
    status = agent_pack(result, measures, send_piece, agent, err);
    return status < 0 ? status : send_last(agent, json_pack("{s:s}", "type", "done"), err);
}

static int agent_load(struct agent *agent, const struct agent_plan *plan,
                      const struct workload *workload, struct error *err)
{
    struct server_address server;
    struct login_words login;
    struct schedule schedule = {0};
    struct engine_result result = {0};
    struct engine_settings settings = {
        .server = &server,
        .cluster = plan->cluster,
        .sentinel = plan->sentinel[0] ? plan->sentinel : NULL,
        .login = &login,
        .tls = &plan->tls,
        .workload = workload,
        .threads = (uint32_t)plan->spec.threads,
        .connections = (uint32_t)plan->spec.connections,
        .depth = (uint32_t)plan->spec.depth,
        .stamps = agent_kind_measures(plan->spec.kind) ? plan->stamps : STAMP_MODE_USER,
        .duration_ns = plan->duration_ns,
        .timeout_ns = plan->timeout_ns,
        .reconnect_ns = plan->reconnect_ns,
        .session = plan->session,
        .busy_poll_us = plan->spec.kind == AGENT_LATENCY ? AGENT_BUSY_POLL_US : 0,
        .keep_clock = true,
        .agree = begin_agree,
        .agree_context = agent,
    };
    int status = server_address_parse(plan->server, &server, err);
    if (status == 0)
        status = server_address_reach(&server, err);
    if (status == 0)
        status = login_make_words(&plan->login, workload->protocol, &login, err);
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

static int agent_serve(struct agent *agent, struct error *err)
{
    struct agent_plan plan;
    struct workload workload;
    struct error ignored;
    json_t *message = wait_plan(agent);
    int status = agent_plan_from_json(message, &plan, &workload, err);
    if (status == 0) {
        status = agent_load(agent, &plan, &workload, err);
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
    struct agent agent = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    const struct link_settings link = {
        .peer = "the controller", .take = take_frame, .context = &agent};
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
    // The engine receives these signals through a descriptor of its own; they must not interrupt
    // the keeper.
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    link_init(&agent.link, STDIN_FILENO, STDOUT_FILENO, &link);
    agent.wake = eventfd(0, EFD_CLOEXEC);
    if (agent.wake < 0 || pthread_create(&keeper, NULL, keep_link, &agent) != 0) {
        error_set(&err, ERROR_FAILED, "no thread can be started");
        return error_report(&err);
    }
    int status = agent_serve(&agent, &err);
    pthread_mutex_lock(&agent.lock);
    agent.ending = true;
    pthread_mutex_unlock(&agent.lock);
    eventfd_write(agent.wake, 1);
    pthread_join(keeper, NULL);
    close(agent.wake);
    link_fini(&agent.link);
    json_decref(agent.plan);
    return status < 0 ? (int)err.kind : 0;
}
