// SPDX-License-Identifier: MIT
#include "loadgen/agents/agent_fleet.h"

#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/link.h"
#include "base/log_file.h"
#include "base/one_wish.h"
#include "base/process.h"
#include "base/text.h"
#include "base/units.h"
#include "loadgen/agents/agent_message.h"

// --- an agent's clock ----------------------------------------------------------------------------

int64_t agent_clock_now_ns(void)
{
    return monotonic_ns();
}

void agent_clock_asked(struct agent_clock *clock)
{
    clock->asked = true;
    clock->asked_ns = agent_clock_now_ns();
}

void agent_clock_answered(struct agent_clock *clock, int64_t at_ns)
{
    int64_t trip_ns = agent_clock_now_ns() - clock->asked_ns;
    if (!clock->asked)
        return; // an answer that nobody asked for relates to nothing
    clock->asked = false;
    if (clock->trips++ && (uint64_t)trip_ns >= clock->trip_ns)
        return;
    clock->trip_ns = (uint64_t)trip_ns;
    clock->offset_ns = at_ns - (clock->asked_ns + trip_ns / 2);
}

uint64_t agent_clock_bound_ns(const struct agent_clock *clock)
{
    return clock->trip_ns / 2;
}

// --- one time axis -------------------------------------------------------------------------------

struct axis {
    uint64_t from, to; // the agreed instant on both axes
    double scale;
};

static void stamp_rebase(uint64_t *tsc, const struct axis *axis)
{
    if (*tsc) // 0: the event did not happen
        *tsc = axis->to + (uint64_t)llround((double)(int64_t)(*tsc - axis->from) * axis->scale);
}

// A stamp in the CLOCK_REALTIME of the agent's host becomes one of this host's, by way of both
// TSCs.
static uint64_t stamp_move(uint64_t ns, const struct axis *axis,
                           const struct clock_knot_array *there,
                           const struct clock_knot_array *here)
{
    uint64_t tsc = (uint64_t)clock_knots_map(there, false, (int64_t)ns);
    stamp_rebase(&tsc, axis);
    return (uint64_t)clock_knots_map(here, true, (int64_t)tsc);
}

static void move_kernel_stamps(struct engine_result *result, struct sample *sample,
                               const struct axis *axis, const struct clock_knot_array *here)
{
    if (here && here->count > 1 && result->clock.count > 1) {
        if (sample->tx_source)
            sample->tx_ns = stamp_move(sample->tx_ns, axis, &result->clock, here);
        if (sample->rx_source)
            sample->rx_ns = stamp_move(sample->rx_ns, axis, &result->clock, here);
        return;
    }
    result->stamps_missing += sample->tx_source != STAMP_NONE;
    result->counts.rx_missing += sample->rx_source != STAMP_NONE;
    sample->tx_ns = sample->rx_ns = 0;
    sample->tx_source = sample->rx_source = STAMP_NONE;
}

void agent_clock_rebase(struct engine_result *result, uint64_t begin_tsc, double tsc_hz,
                        const struct clock_knot_array *here)
{
    const struct axis axis = {
        .from = result->start_tsc, .to = begin_tsc, .scale = tsc_hz / result->tsc_hz};
    for (size_t i = 0; i < result->sample_count; i++) {
        struct sample *sample = &result->samples[i];
        stamp_rebase(&sample->intended_tsc, &axis);
        stamp_rebase(&sample->send_tsc, &axis);
        stamp_rebase(&sample->sent_tsc, &axis);
        stamp_rebase(&sample->reply_tsc, &axis);
        move_kernel_stamps(result, sample, &axis, here);
    }
    for (uint32_t i = 0; i < result->connection_count; i++)
        stamp_rebase(&result->connections[i].opened_time, &axis);
    result->late_tsc = (uint64_t)llround((double)result->late_tsc * axis.scale);
    struct standstill *still = &result->standstill;
    still->lasted_tsc = (uint64_t)llround((double)still->lasted_tsc * axis.scale);
    stamp_rebase(&still->at_tsc, &axis);
    stamp_rebase(&result->start_tsc, &axis);
    stamp_rebase(&result->end_tsc, &axis);
    if (result->kernel_stamps && !(here && here->count > 1 && result->clock.count > 1)) {
        error_set(&result->stamps_why, ERROR_INPUT,
                  "of agents on other machines the kernel's stamps are in clocks of their own, and "
                  "it is not known how these relate to this one: they are left out");
        result->kernel_stamps = result->hardware_stamps = false;
    }
    result->spin_tsc = (uint64_t)llround((double)result->spin_tsc * axis.scale);
    result->asleep_tsc = (uint64_t)llround((double)result->asleep_tsc * axis.scale);
    result->tsc_hz = tsc_hz;
}

_Static_assert((int)AGENTS_MAX <= (int)LINK_POLL_LINKS, "one round serves them all");

enum {
    READY_MS = 60000,         // for all agents to connect and draw their schedules
    WAY_NS = 50000000,        // for the message "begin" to reach them
    RESULT_GRACE_MS = 120000, // after schedule and timeout: to judge, compress and send
    STOP_GRACE_MS = 30000,    // the same after a signal to stop
    END_GRACE_MS = 1000,
    // per connection, how many entries its table may hold (reconnects add entries)
    RECONNECTS = 1024,
};

enum member_state {
    MEMBER_PLANNED,
    MEMBER_READY,
    MEMBER_RUNNING,
    MEMBER_RESULT,
    MEMBER_DONE,
    MEMBER_LOST
};

struct member {
    struct fleet *fleet;
    struct agent_outcome *outcome;
    struct process process;
    struct link link;
    struct agent_unpack *unpack;
    enum member_state state;
    uint64_t needs_ns;
    struct agent_clock clock; // of one that is reached through an ssh link
    bool foreign;             // it runs on another boot of Linux, so its clocks are others
};

struct fleet {
    const struct fleet_settings *settings;
    struct fleet_outcome *outcome;
    struct member members[AGENTS_MAX];
    size_t count;
    int signal_fd;
    int64_t told_ns; // when a signal first told it to end; 0: none has
    bool begun, stopping;
    int64_t deadline_ms;
    // the agreed instant; when it was agreed on, and the TSC at that moment
    uint64_t begin_ns, began_ns;
    struct tsc_pair began;
    struct clock_follower clock; // of this host, where agents are on others
    char boot_id[40];
};

static bool is_live(const struct member *member)
{
    return member->state < MEMBER_DONE;
}

// --- losing and stopping -------------------------------------------------------------------------

static void send_all(struct fleet *fleet, json_t *message)
{
    struct error ignored; // an agent that has died is noticed when its link is served
    for (size_t i = 0; i < fleet->count; i++)
        if (is_live(&fleet->members[i]))
            link_send_json(&fleet->members[i].link, message, &ignored);
    json_decref(message);
}

static void stop_all(struct fleet *fleet)
{
    if (fleet->stopping)
        return;
    fleet->stopping = true;
    if (fleet->deadline_ms > monotonic_ms() + STOP_GRACE_MS)
        fleet->deadline_ms = monotonic_ms() + STOP_GRACE_MS;
    send_all(fleet, json_pack("{s:s}", "type", "stop"));
}

static void describe_end(struct member *member, char *out, size_t out_bytes)
{
    struct error ignored;
    int status = 0;
    if (process_wait(&member->process, END_GRACE_MS, &status, &ignored) <= 0)
        snprintf(out, out_bytes, "closed its link");
    else if (WIFSIGNALED(status))
        snprintf(out, out_bytes, "was killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(out, out_bytes, "ended with exit code %d", WEXITSTATUS(status));
}

static void member_lose(struct fleet *fleet, struct member *member, const char *why)
{
    text_clean(why, false, member->outcome->lost, sizeof member->outcome->lost);
    process_stop(&member->process, 0);
    engine_result_free(&member->outcome->result);
    json_decref(member->outcome->report);
    member->outcome->report = NULL;
    member->state = MEMBER_LOST;
    stop_all(fleet);
}

// --- messages from the agents --------------------------------------------------------------------

static int take_result(struct fleet *fleet, struct member *member, const json_t *message,
                       struct error *err)
{
    const struct agent_spec *spec = member->outcome->spec;
    const char *boot_id = json_string_value(json_object_get(message, "boot_id"));
    json_t *report = json_object_get(message, "report");
    double expected = spec->rate * (double)fleet->settings->duration_ns / 1e9 *
                      rate_pattern_integral(&fleet->settings->workload->pattern, 1);
    // Far more than any process draws, and little enough to cause no harm.
    size_t most = (size_t)(expected * 4) + 100000;
    if (member->state != MEMBER_RUNNING || !boot_id || !json_is_object(report))
        return error_set(err, ERROR_INPUT, "a result came that is none");
    // Stamps are in the TSC of their host, but there is only one pool.
    member->foreign = strcmp(boot_id, fleet->boot_id) != 0;
    if (member->foreign && !member->outcome->spec->link[0])
        return error_set(err, ERROR_INPUT, "its stamps are of another host's clock");
    const uint64_t session = fleet->settings->session;
    int status =
        agent_result_from_json(json_object_get(message, "run"), most,
                               spec->connections * RECONNECTS + (session ? most / session : 0),
                               &member->outcome->result, err);
    if (status < 0)
        return status;
    member->outcome->report = json_incref(report);
    member->unpack = agent_unpack_new(&member->outcome->result, err);
    if (!member->unpack)
        return -ERROR_FAILED;
    member->state = MEMBER_RESULT;
    return 0;
}

static int ask_clock(struct member *member, struct error *err)
{
    agent_clock_asked(&member->clock);
    return link_send_new(&member->link, json_pack("{s:s}", "type", "clock"), err);
}

static int take_message(struct fleet *fleet, struct member *member, const json_t *message,
                        struct error *err)
{
    const char *type = json_string_value(json_object_get(message, "type"));
    const char *text = json_string_value(json_object_get(message, "text"));
    if (!type)
        return 0; // a heartbeat
    if (strcmp(type, "clock") == 0 && member->clock.asked) {
        json_int_t at_ns = json_integer_value(json_object_get(message, "at_ns"));
        if (at_ns < 0 || at_ns > INT64_MAX / 4)
            return error_set(err, ERROR_INPUT, "what it says of its clock cannot be");
        agent_clock_answered(&member->clock, at_ns);
        return member->clock.trips < AGENT_CLOCK_TRIPS ? ask_clock(member, err) : 0;
    }
    if (strcmp(type, "ready") == 0 && member->state == MEMBER_PLANNED) {
        json_int_t needs_ns = json_integer_value(json_object_get(message, "needs_ns"));
        member->needs_ns = needs_ns > 0 && needs_ns < 60000000000 ? (uint64_t)needs_ns : 0;
        member->state = MEMBER_READY;
        return member->outcome->spec->link[0] ? ask_clock(member, err) : 0;
    }
    if (strcmp(type, "result") == 0)
        return take_result(fleet, member, message, err);
    if (strcmp(type, "done") == 0 && member->state == MEMBER_RESULT) {
        int status = agent_unpack_end(member->unpack, err);
        if (status == 0)
            member->state = MEMBER_DONE;
        return status;
    }
    if (strcmp(type, "failed") == 0) {
        bool input = json_integer_value(json_object_get(message, "kind")) == ERROR_INPUT;
        return error_set(err, input ? ERROR_INPUT : ERROR_FAILED, "%s", text ? text : "failed");
    }
    return error_set(err, ERROR_INPUT, "it said \"%.40s\" out of turn", type);
}

static int take_frame(void *context, const struct frame *frame, struct error *err)
{
    struct member *member = context;
    if (frame->kind == FRAME_JSON)
        return take_message(member->fleet, member, frame->json, err);
    return member->unpack ? agent_unpack_feed(member->unpack, frame->bytes, frame->byte_count, err)
                          : error_set(err, ERROR_INPUT, "bytes came out of turn");
}

// Handles links that have ended. An agent whose link ended before its part was done is lost; if
// that happens before the load began, the whole load ends.
static void check_link(struct fleet *fleet, struct member *member)
{
    char why[200];
    if (!is_live(member) || member->link.state == LINK_UP)
        return;
    if (member->link.state == LINK_CLOSED)
        describe_end(member, why, sizeof why);
    else
        snprintf(why, sizeof why, "fell silent for %d s", LINK_SILENCE_MS / 1000);
    member_lose(fleet, member, member->link.state == LINK_FAILED ? member->link.err.text : why);
}

// --- from start to end ---------------------------------------------------------------------------

// Starts the agent's process, in its place on this host, or as the link that leads to another host.
static int start_process(struct member *member, struct error *err)
{
    const struct agent_spec *spec = member->outcome->spec;
    bool far = spec->link[0];
    char self[PATH_MAX] = "", cores[1024] = "";
    const char *const here[] = {self, "agent", NULL};
    const char *const there[] = {self,  "link", spec->link,       "--inside", "--cores",
                                 cores, "--",   "/proc/self/exe", "agent",    NULL};
    const char *const anywhere_there[] = {self, "link",           spec->link, "--inside",
                                          "--", "/proc/self/exe", "agent",    NULL};
    const struct process_place place = {.netns = spec->netns[0] ? spec->netns : NULL,
                                        .cores = spec->has_cores && !far ? &spec->cores : NULL,
                                        .pipe_input = true,
                                        .pipe_output = true};
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot find this program's own path");
    if (spec->has_cores)
        units_format_cores(&spec->cores, cores, sizeof cores);
    return process_start(&member->process,
                         !far              ? here
                         : spec->has_cores ? there
                                           : anywhere_there,
                         &place, err);
}

static int start_agent(struct fleet *fleet, struct member *member, struct error *err)
{
    const struct fleet_settings *settings = fleet->settings;
    const struct agent_spec *spec = member->outcome->spec;
    struct agent_plan plan = {.spec = *spec,
                              .login = *settings->login,
                              .tls = *settings->tls,
                              .cluster = settings->cluster,
                              .duration_ns = settings->duration_ns,
                              .timeout_ns = settings->timeout_ns,
                              .reconnect_ns = settings->reconnect_ns,
                              .session = settings->session,
                              .stamps = settings->stamps,
                              .quantile = settings->quantile,
                              .confidence = settings->confidence};
    snprintf(plan.server, sizeof plan.server, "%s", settings->server);
    snprintf(plan.sentinel, sizeof plan.sentinel, "%s",
             settings->sentinel ? settings->sentinel : "");
    int status = start_process(member, err);
    if (status < 0)
        return error_prefix(err, "agent %s", spec->name);
    const struct link_settings link = {.peer = "its link", .take = take_frame, .context = member};
    link_init(&member->link, member->process.output, member->process.input, &link);
    status = link_send_new(&member->link, agent_plan_to_json(&plan, settings->workload), err);
    return status < 0 ? error_prefix(err, "agent %s", spec->name) : 0;
}

static bool is_ready(const struct member *member)
{
    return member->state == MEMBER_READY &&
           (!member->outcome->spec->link[0] || member->clock.trips >= AGENT_CLOCK_TRIPS);
}

// Converts an instant to the clock of the agent's host.
static void send_begin(struct member *member, uint64_t begin_ns)
{
    struct error ignored; // an agent that has died is noticed when its link is served
    link_send_new(&member->link,
                  json_pack("{s:s,s:I}", "type", "begin", "at_ns",
                            (json_int_t)begin_ns + member->clock.offset_ns),
                  &ignored);
    member->state = MEMBER_RUNNING;
}

// Where it cannot be followed, the agents' stamps are left out, which is said then.
static void follow_clock(struct fleet *fleet)
{
    struct error unknown;
    bool elsewhere = false;
    for (size_t i = 0; i < fleet->count; i++)
        elsewhere |= fleet->members[i].outcome->spec->link[0] != '\0';
    if (elsewhere)
        (void)clock_follower_begin(&fleet->clock, clock_read_host, -1, "CLOCK_REALTIME", &unknown);
}

// When all are ready: sends them the instant to begin, and reports it to the caller.
static void begin_if_ready(struct fleet *fleet)
{
    uint64_t needs_ns = 0, way_ns = WAY_NS;
    const struct fleet_settings *settings = fleet->settings;
    for (size_t i = 0; i < fleet->count; i++) {
        const struct member *member = &fleet->members[i];
        if (!is_ready(member))
            return;
        needs_ns = member->needs_ns > needs_ns ? member->needs_ns : needs_ns;
        if (WAY_NS + 2 * member->clock.trip_ns > way_ns)
            way_ns = WAY_NS + 2 * member->clock.trip_ns;
    }
    follow_clock(fleet);
    fleet->begin_ns = (uint64_t)agent_clock_now_ns() + needs_ns + way_ns;
    fleet->began = tsc_take_pair();
    fleet->began_ns = (uint64_t)agent_clock_now_ns();
    for (size_t i = 0; i < fleet->count; i++)
        send_begin(&fleet->members[i], fleet->begin_ns);
    fleet->begun = true;
    fleet->deadline_ms =
        monotonic_ms() +
        (int64_t)((needs_ns + way_ns + settings->duration_ns + settings->timeout_ns) / 1000000) +
        RESULT_GRACE_MS;
    if (settings->announce)
        settings->announce(settings->announce_context, fleet->begin_ns);
}

static void check_deadline(struct fleet *fleet)
{
    bool late = monotonic_ms() > fleet->deadline_ms;
    for (size_t i = 0; late && i < fleet->count; i++)
        if (is_live(&fleet->members[i]))
            member_lose(fleet, &fleet->members[i],
                        fleet->begun ? "did not end in time" : "was not ready within 60 s");
}

// The first signal asks the agents to end with what they have, the second kills them, unless it is
// the same wish.
static void take_signal(struct fleet *fleet)
{
    struct signalfd_siginfo info;
    if (read(fleet->signal_fd, &info, sizeof info) != sizeof info)
        return;
    const int64_t now_ns = monotonic_ns();
    if (fleet->told_ns && (now_ns - fleet->told_ns < ONE_WISH_MS * INT64_C(1000000) ||
                           one_wish_of_parent((int)info.ssi_signo)))
        return;
    fleet->told_ns = fleet->told_ns ? fleet->told_ns : now_ns;
    one_wish_note((int)info.ssi_signo);
    for (size_t i = 0; fleet->outcome->interrupted && i < fleet->count; i++)
        if (is_live(&fleet->members[i]))
            member_lose(fleet, &fleet->members[i], "was asked to end immediately");
    fleet->outcome->interrupted = true;
    stop_all(fleet);
}

static void wait_once(struct fleet *fleet)
{
    struct link *links[AGENTS_MAX];
    struct pollfd signals = {.fd = fleet->signal_fd, .events = POLLIN};
    int64_t left_ms = fleet->deadline_ms - monotonic_ms();
    size_t count = 0;
    for (size_t i = 0; i < fleet->count; i++)
        if (is_live(&fleet->members[i]))
            links[count++] = &fleet->members[i].link;
    left_ms = left_ms < 0 ? 0 : left_ms + 1;
    link_poll(links, count, &signals, 1, left_ms < INT_MAX ? (int)left_ms : INT_MAX);
    if (signals.revents)
        take_signal(fleet);
    for (size_t i = 0; i < fleet->count; i++)
        check_link(fleet, &fleet->members[i]);
}

static int fleet_follow(struct fleet *fleet, struct error *err)
{
    for (;;) {
        bool any = false;
        for (size_t i = 0; i < fleet->count; i++) {
            const struct agent_outcome *agent = fleet->members[i].outcome;
            if (!fleet->begun && agent->lost[0])
                return fleet->outcome->interrupted ? error_set(err, ERROR_FAILED, "interrupted")
                                                   : error_set(err, ERROR_FAILED, "agent %s: %s",
                                                               agent->spec->name, agent->lost);
            any |= is_live(&fleet->members[i]);
        }
        if (!any)
            return 0;
        if (!fleet->begun)
            begin_if_ready(fleet);
        check_deadline(fleet);
        wait_once(fleet);
    }
}

static void close_members(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->count; i++) {
        struct member *member = &fleet->members[i];
        struct error ignored;
        int status;
        // An agent that is done ends by itself; closing its link first makes any other end too.
        link_fini(&member->link);
        process_close_pipes(&member->process);
        if (member->process.pid > 0)
            process_wait(&member->process, END_GRACE_MS, &status, &ignored);
        process_stop(&member->process, 0);
        agent_unpack_free(member->unpack);
    }
}

static void measure_spread(const struct fleet *fleet, struct fleet_outcome *outcome)
{
    double first = INFINITY, last = 0;
    // the two greatest: the difference of two clocks is off by the sum of their errors at most
    uint64_t bounds_ns[2] = {0, 0};
    for (size_t i = 0; i < outcome->count; i++) {
        const struct engine_result *result = &outcome->agents[i].result;
        uint64_t bound_ns = agent_clock_bound_ns(&fleet->members[i].clock);
        if (outcome->agents[i].lost[0])
            continue;
        double late_us = (double)result->late_tsc / result->tsc_hz * 1e6;
        first = fmin(first, late_us);
        last = fmax(last, late_us);
        if (bound_ns > bounds_ns[1])
            bounds_ns[1] = bound_ns;
        if (bounds_ns[1] > bounds_ns[0]) {
            bounds_ns[1] = bounds_ns[0];
            bounds_ns[0] = bound_ns;
        }
    }
    outcome->start_spread_us = last >= first ? last - first : NAN;
    outcome->start_bound_us = (double)(bounds_ns[0] + bounds_ns[1]) / 1e3;
}

// Converts the measurements of agents with other clocks to this host's time axis.
static void rebase_foreign(struct fleet *fleet)
{
    struct tsc_pair ended = tsc_take_pair();
    double hz = tsc_rate_between(&fleet->began, &ended);
    double ahead_ns = (double)(int64_t)(fleet->begin_ns - fleet->began_ns);
    uint64_t begin_tsc = fleet->began.tsc + (uint64_t)(int64_t)(ahead_ns * hz / 1e9);
    for (size_t i = 0; i < fleet->count; i++)
        if (fleet->members[i].foreign && !fleet->members[i].outcome->lost[0])
            agent_clock_rebase(&fleet->members[i].outcome->result, begin_tsc, hz,
                               &fleet->clock.knots);
}

static int fleet_load(struct fleet *fleet, struct error *err)
{
    log_boot_id(fleet->boot_id);
    fleet->deadline_ms = monotonic_ms() + READY_MS;
    for (size_t i = 0; i < fleet->settings->count; i++) {
        struct member *member = &fleet->members[fleet->count++];
        member->fleet = fleet;
        member->outcome = &fleet->outcome->agents[i];
        member->outcome->spec = &fleet->settings->specs[i];
        member->process = (struct process){.input = -1, .output = -1};
        fleet->outcome->count = fleet->count;
        int status = start_agent(fleet, member, err);
        if (status < 0)
            return status;
    }
    return fleet_follow(fleet, err);
}

int fleet_run(const struct fleet_settings *settings, struct fleet_outcome *outcome,
              struct error *err)
{
    sigset_t signals, before;
    struct fleet *fleet = calloc(1, sizeof *fleet);
    *outcome = (struct fleet_outcome){.start_spread_us = NAN};
    if (!fleet)
        return error_set(err, ERROR_FAILED, "out of memory for the agents");
    fleet->settings = settings;
    fleet->outcome = outcome;
    fleet->clock = (struct clock_follower){.fd = -1, .wake = -1};
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, &before);
    fleet->signal_fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
    int status = fleet->signal_fd < 0 ? error_set_errno(err, ERROR_FAILED, "cannot watch signals")
                                      : fleet_load(fleet, err);
    close_members(fleet);
    if (fleet->signal_fd >= 0)
        close(fleet->signal_fd);
    if (fleet->told_ns)
        one_wish_take_rest(&signals, fleet->told_ns);
    one_wish_reopen(&before);
    if (status < 0) {
        fleet_outcome_free(outcome);
    } else {
        measure_spread(fleet, outcome);
        clock_follower_stop(&fleet->clock);
        rebase_foreign(fleet);
    }
    clock_follower_free(&fleet->clock);
    free(fleet);
    return status;
}

void fleet_outcome_free(struct fleet_outcome *outcome)
{
    for (size_t i = 0; i < outcome->count; i++) {
        engine_result_free(&outcome->agents[i].result);
        json_decref(outcome->agents[i].report);
    }
    *outcome = (struct fleet_outcome){.count = 0};
}
