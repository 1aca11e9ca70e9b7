// SPDX-License-Identifier: MIT
#include "experiments/commands.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "analysis/run/run_analyze.h"
#include "analysis/run/input/run_segments.h"
#include "base/clock.h"
#include "base/folder.h"
#include "base/json_numbers.h"
#include "base/new_file.h"
#include "base/options.h"
#include "base/passing_folder.h"
#include "base/process.h"
#include "base/progress.h"
#include "base/rights.h"
#include "base/text.h"
#include "base/units.h"
#include "experiments/common/supervisor.h"
#include "experiments/common/way_out.h"
#include "experiments/watch/flight_recorder.h"
#include "experiments/watch/interval_analysis.h"
#include "experiments/watch/metrics.h"
#include "experiments/watch/watch_capture.h"
#include "experiments/watch/watch_interval.h"
#include "experiments/watch/watch_servers.h"
#include "profiler/host/listening_ports.h"

static const uint64_t USUAL_INTERVAL_NS = 5000000000;

struct watch_options {
    const char *pids, *ports, *cgroups, *units, *cores, *framing, *save, *trigger, *metrics;
    uint64_t interval_ns, for_ns, saves, keep_bytes, look_rate;
    double budget;
    bool json, quiet;
};

static const struct option_spec options[] = {
    OPTION_STRING("pid", 0, "LIST", struct watch_options, pids,
                  "watch these processes and those they start"),
    OPTION_STRING("port", 'p', "LIST", struct watch_options, ports,
                  "watch who listens on these TCP ports, in this network namespace"),
    OPTION_STRING("cgroup", 0, "LIST", struct watch_options, cgroups,
                  "watch the processes of these control groups, as a container's, also those that "
                  "come later"),
    OPTION_STRING("systemd", 0, "LIST", struct watch_options, units, "the same of systemd's units"),
    OPTION_STRING("cores", 'c', "LIST", struct watch_options, cores,
                  "cores to record (all): \"0-2,5\""),
    OPTION_STRING("framing", 0, "PROTOCOL", struct watch_options, framing,
                  "redis, memcached or http: look at the first bytes of the servers' socket calls, "
                  "and tell requests apart by them, also those that are pipelined"),
    OPTION_PERIOD("interval", 'i', "TIME", struct watch_options, interval_ns,
                  "how much is looked at together (5s, or all of a shorter --for)"),
    OPTION_PERIOD("for", 0, "TIME", struct watch_options, for_ns,
                  "end by itself after so long (never)"),
    OPTION_STRING("trigger", 0, "WORDS", struct watch_options, trigger,
                  "save what was recorded when an interval has '>5ms' (a request slower than that) "
                  "or 'p99>2ms'; SIGUSR1 saves in any case"),
    OPTION_STRING("save", 0, "DIR", struct watch_options, save,
                  "where that is saved (taillight-saved)"),
    OPTION_COUNT("saves", 0, "N", struct watch_options, saves,
                 "how many are kept; the oldest make room (10)"),
    OPTION_BYTES("keep", 0, "BYTES", struct watch_options, keep_bytes,
                 "of the records, for the time being (256MiB)"),
    OPTION_SHARE("budget", 0, "SHARE", struct watch_options, budget,
                 "what recording may take of a core (4%; 0: as much as it takes): where it takes "
                 "more, nine of ten intervals do without hand-offs, departures and softirqs, and "
                 "where that is not enough, only a part of each interval is recorded"),
    OPTION_COUNT("look", 0, "RATE", struct watch_options, look_rate,
                 "of a single server's requests so many a second, 2,000 at least, are taken apart: "
                 "those in a row with most of the slowest (2000; 0: all)"),
    OPTION_STRING("metrics", 0, "ADDRESS", struct watch_options, metrics,
                  "serve OpenMetrics there, as in \":9411\" (on 127.0.0.1): http://.../metrics"),
    OPTION_FLAG("json", 0, struct watch_options, json, "a line of JSON for each interval"),
    OPTION_FLAG("quiet", 'q', struct watch_options, quiet,
                "a line for each interval, without its causes"),
    OPTION_END,
};

static const struct command_usage usage = {
    .name = "watch",
    .arguments = "{--pid PID | --port PORT | --cgroup PATH | --systemd UNIT} [options]",
    .summary = "Watches a server as it runs, and says why its slowest requests are slow.",
    .details = "The server is neither restarted nor changed, and its clients may be anybody's: a "
               "request is what "
               "arrives on a connection until the server answers, or with --framing what its "
               "protocol says, and its "
               "latency the server's own. Ends at Ctrl-C.\n"
               "Exit codes: 0 ended as asked; 1 failed; 2 bad usage, or no such server.",
    .options = options,
};

enum {
    POLL_MS = 100,
    LOOK_MS = 500, // after a signal, so that it has ended within a second
    LEAST_INTERVAL_NS = 500000000,
    ANALYSIS_NICE = 10,            // it shares cores with what it watches
    ANALYSIS_SLICE_NS = 100000000, // the longest there is
    HISTORY = 12,                  // lines
    INTERVALS_BEHIND = 2,          // so far it lags at most
    INTERVALS_TOGETHER = 12,       // so many are looked at as one at most, ...
    BYTES_TOGETHER = 64 << 20,     // ... where their events have no more than that
    HEAP_BYTES = 256 << 20,        // more than that is not kept for the next interval
};
// Its last records are written, and said, that late at most: on a busy machine they take seconds.
static const int64_t LATE_INTERVAL_NS = 10000000000;

struct watch {
    struct watch_options options;
    struct flight_recorder recorder;
    struct interval_analysis analysis;
    struct metrics *metrics; // NULL: nobody asked for them
    struct watch_capture capture;
    int signals;
    struct way_out way_out; // at the second signal
    bool interrupted, save_asked;
    atomic_bool showing;          // what was looked at is handed to who reads it
    struct passing_folder folder; // the capture's
    char log[80], silence[220];
    int64_t until_ns;          // host time up to which requests were looked at; 0: none yet
    struct watch_segment next; // not looked at yet: the latest that there is; number 0: none
    int64_t armed_ns, interval_begin_ns;
    int64_t ended_ns; // host time, when it was to end
    bool terminal;
    struct summary_style style;
    struct watch_servers servers;
    char history[HISTORY][250];
    unsigned lines, intervals, ended;        // of the capture's segments, as far as it has said
    uint64_t not_saved;                      // windows
    uint64_t passed_over, passed_over_shown; // intervals that were not looked at
};

// --- the folder for the time being ---------------------------------------------------------------

static int make_folder(struct watch *watch, struct error *err)
{
    const int result = passing_folder_make(&watch->folder, "watch", err);
    snprintf(watch->log, sizeof watch->log, "%s/capture.log", watch->folder.path);
    return result;
}

// --- the capture ---------------------------------------------------------------------------------

static int start_capture(struct watch *watch, struct error *err)
{
    const struct watch_options *o = &watch->options;
    char segment[32], keep[32], budget[32];
    snprintf(segment, sizeof segment, "%lluns", (unsigned long long)o->interval_ns);
    snprintf(keep, sizeof keep, "%llu", (unsigned long long)o->keep_bytes);
    snprintf(budget, sizeof budget, "%.9f", o->budget);
    const struct watch_capture_option given[] = {{"--out", watch->folder.path},
                                                 {"--segment", segment},
                                                 {"--keep", keep},
                                                 {"--budget", budget},
                                                 {"--backend", "events"},
                                                 {"--calls", "kernel"},
                                                 {"--pid", o->pids},
                                                 {"--port", o->ports},
                                                 {"--cgroup", o->cgroups},
                                                 {"--systemd", o->units},
                                                 {"--cores", o->cores},
                                                 {"--framing", o->framing}};
    return watch_capture_start(&watch->capture, given, sizeof given / sizeof *given, watch->log,
                               err);
}

// --- what is shown -------------------------------------------------------------------------------

// On a terminal it is shown with those before it.
static int add_line(struct watch *watch, const struct watch_interval *interval,
                    const struct watch_server *server, struct error *err)
{
    char *line = watch->history[watch->lines++ % HISTORY];
    FILE *text = fmemopen(line, sizeof watch->history[0], "w");
    if (!text)
        return error_set(err, ERROR_FAILED, "no memory for a line");
    watch_interval_line(interval, server, text);
    fclose(text);
    if (!watch->terminal)
        fputs(line, stdout);
    return 0;
}

static int show(struct watch *watch, const struct watch_interval *interval, struct error *err)
{
    if (watch->options.json)
        return json_print_new(watch_interval_json(interval), JSON_COMPACT | JSON_REAL_PRECISION(9),
                              "a line", err);
    size_t count = watch->servers.all.count;
    int result = count < 2 ? add_line(watch, interval, NULL, err) : 0;
    for (size_t i = 0; i < count && count > 1 && result == 0; i++)
        result = add_line(watch, interval, &watch->servers.all.items[i], err);
    if (result < 0)
        return result;
    if (!watch->terminal) {
        if (!watch->options.quiet)
            watch_interval_details(interval, &watch->style, stdout);
    } else {
        unsigned shown = watch->lines < HISTORY ? watch->lines : HISTORY;
        printf("\033[H\033[J");
        for (unsigned i = watch->lines - shown; i < watch->lines; i++)
            fputs(watch->history[i % HISTORY], stdout);
        putchar('\n');
        watch_interval_details(interval, &watch->style, stdout);
        printf("\n  every %s; Ctrl-C ends\n", TEXT_NS((double)watch->options.interval_ns));
    }
    fflush(stdout);
    return ferror(stdout) ? error_set(err, ERROR_FAILED, "cannot write to stdout") : 0;
}

// The page names the one with the slowest request.
static void save_windows(struct watch *watch, struct run_segment_range segments,
                         const struct slow_windows *windows, struct watch_interval *interval)
{
    struct error err;
    double slowest_ns = -1;
    for (size_t i = 0; i < windows->count; i++) {
        const struct slow_window *window = &windows->items[i];
        if (window->goes_on &&
            flight_recorder_lengthen(&watch->recorder, watch->folder.path, segments, window))
            continue;
        if (flight_recorder_save(&watch->recorder, watch->folder.path, segments, window, &err) <
            0) {
            interval->unsaved = windows->count - i; // nor would the others be
            break;
        }
        interval->windows++;
        if (window->slowest_ns > slowest_ns) {
            slowest_ns = window->slowest_ns;
            snprintf(interval->saved, sizeof interval->saved, "%s", watch->recorder.path);
        }
    }
    watch->not_saved += interval->unsaved;
    if (interval->unsaved)
        fprintf(stderr, "taillight: %s stretch%s of slow requests %s not saved: %s\n",
                TEXT_COUNT(interval->unsaved), interval->unsaved == 1 ? "" : "es",
                text_were((double)interval->unsaved), err.text);
}

// run: NULL where the interval could not be looked at.
static int save_what_is_wanted(struct watch *watch, const struct run_analysis *run,
                               struct run_segment_range segments, int64_t from_ns,
                               struct watch_interval *interval, struct error *err)
{
    struct slow_windows windows = {0};
    int result = 0;
    if (run)
        result = flight_recorder_windows(&watch->recorder, run, &watch->analysis.excerpt.answers,
                                         from_ns, watch->until_ns, &windows, err);
    if (result == 0 && watch->save_asked && windows.count == 0)
        result =
            array_push(&windows, (struct slow_window){from_ns, watch->until_ns, 0, 0, false}) == 0
                ? 0
                : error_set(err, ERROR_FAILED, "no memory for what is to be saved");
    if (result == 0)
        save_windows(watch, segments, &windows, interval);
    watch->save_asked = false;
    array_free(&windows);
    return result;
}

// Why there was no request, as far as it is known.
static const char *silence_of(struct watch *watch)
{
    char lack[sizeof watch->silence - 32];
    bool lacks = listening_ports_lack(watch->options.ports, lack, sizeof lack);
    snprintf(watch->silence, sizeof watch->silence, "no request was answered%s%s",
             lacks ? ": " : "", lacks ? lack : "");
    return watch->silence;
}

// Whether nothing was recorded between what was looked at and this segment.
static bool stands_alone(const struct watch *watch, const struct watch_segment *next)
{
    return watch->until_ns && next->from_ns > watch->until_ns;
}

static int64_t since(const struct watch *watch, const struct watch_segment *next)
{
    if (stands_alone(watch, next))
        return next->from_ns;
    return watch->until_ns ? watch->until_ns : watch->capture.since_ns;
}

// When the interval ended, on the wall's clock, and how long it was: not when it is looked at,
// which may be later.
static void time_interval(const struct watch *watch, const struct watch_segment *next,
                          struct watch_interval *interval)
{
    const int64_t late_ns = clock_now_ns(CLOCK_MONOTONIC_RAW) - next->until_ns,
                  ended_ns = clock_now_ns(CLOCK_REALTIME) - late_ns;
    interval->ended =
        (struct timespec){.tv_sec = ended_ns / 1000000000, .tv_nsec = ended_ns % 1000000000};
    interval->seconds = (double)(next->until_ns - since(watch, next)) / 1e9;
    interval->recorded = next->recorded;
    interval->taken = next->taken;
}

// An interval has ended, or several while the one before was looked at: their records are on disk.
static int take_interval(struct watch *watch, struct watch_segment next, struct error *err)
{
    struct run_analysis run;
    struct error problem = {0};
    struct run_request request = {.run_dir = watch->folder.path,
                                  .answered_after_ns = watch->until_ns ? since(watch, &next) : 0,
                                  .answered_until_ns = next.until_ns,
                                  .whole_alone = true};
    const struct answer_array *answers = &watch->analysis.excerpt.answers;
    struct watch_interval interval = {.problem = "",
                                      .servers = &watch->servers,
                                      .answers = answers,
                                      .passed_over = watch->passed_over - watch->passed_over_shown};
    int64_t now = monotonic_ns(), before_ns = request.answered_after_ns;
    time_interval(watch, &next, &interval);
    const double own_seconds = watch_capture_seconds(&watch->capture);
    interval.own_share = own_seconds / fmax((double)(now - watch->interval_begin_ns) / 1e9, 0.1);
    watch->interval_begin_ns = now;
    bool any = interval_analyze(&watch->analysis, next.number, stands_alone(watch, &next), &request,
                                &run, &problem) == 0;
    watch->until_ns = next.until_ns;
    if (any)
        interval.run = &run;
    else if (problem.kind == ERROR_INCONCLUSIVE)
        interval.problem = silence_of(watch);
    else
        interval.problem = problem.text;
    watch_capture_charge(&watch->capture);
    int result =
        save_what_is_wanted(watch, any ? &run : NULL, request.segments, before_ns, &interval, err);
    if (result == 0)
        result = watch_servers_divide(&watch->servers, interval.run, answers, err);
    const struct metrics_interval counted = {.run = interval.run,
                                             .servers = &watch->servers,
                                             .answers = answers,
                                             .recorded_seconds = interval.seconds,
                                             .own_seconds = own_seconds,
                                             .passed_over = watch->passed_over,
                                             .saved = watch->recorder.saved,
                                             .not_saved = watch->not_saved};
    if (result == 0 && watch->metrics)
        result = metrics_add(watch->metrics, &counted, err);
    watch->showing = true;
    if (result == 0)
        result = show(watch, &interval, err);
    watch->showing = false;
    watch->intervals++;
    watch->passed_over_shown = watch->passed_over;
    if (any)
        run_analysis_free(&run);
    if (mallinfo2().arena > HEAP_BYTES)
        malloc_trim(0);
    return result;
}

// What waits is not looked at, nor with what comes later.
static void pass_over(struct watch *watch)
{
    watch->passed_over += watch->next.count;
    watch->analysis.looked_at = watch->next.number;
    watch->until_ns = watch->next.until_ns;
}

// A segment has ended while the one before waits to be looked at. They are looked at together,
// unless nothing was recorded between them: then each for itself, as long as that keeps up. Where
// that does not, the latest are: the longer an interval, the longer it takes to look at it.
static int take_next(struct watch *watch, const struct watch_segment *ended, struct error *err)
{
    struct watch_segment *next = &watch->next;
    const int64_t lag_ns = clock_now_ns(CLOCK_MONOTONIC_RAW) - next->until_ns;
    int result = 0;
    if (!next->number) {
        *next = *ended;
    } else if (ended->from_ns <= next->until_ns && next->count < INTERVALS_TOGETHER &&
               next->bytes + ended->bytes <= BYTES_TOGETHER) {
        watch_segment_join(next, since(watch, next), ended);
    } else {
        if (ended->from_ns <= next->until_ns ||
            lag_ns > INTERVALS_BEHIND * (int64_t)watch->options.interval_ns)
            pass_over(watch);
        else
            result = take_interval(watch, *next, err);
        *next = *ended;
    }
    return result;
}

// Takes one line of what the capture says; result as of watch_capture_listen.
static int hear(struct watch *watch, int wait_ms, struct error *err)
{
    struct watch_segment ended = {0};
    int result = watch_capture_listen(&watch->capture, wait_ms, &ended, err);
    if (result > 0 && ended.number) {
        watch->ended = ended.number;
        ended.bytes = interval_segment_bytes(watch->folder.path, ended.number);
        if (take_next(watch, &ended, err) < 0)
            result = -(int)err->kind;
    }
    return result;
}

// --- while it goes on ----------------------------------------------------------------------------

static void take_signals(struct watch *watch)
{
    struct signalfd_siginfo signal;
    while (read(watch->signals, &signal, sizeof signal) == sizeof signal) {
        if (signal.ssi_signo == SIGUSR1)
            watch->save_asked = true;
        else {
            watch->interrupted = true;
            way_out_take(&watch->way_out);
        }
    }
}

// An interval that ends with --for is still to come when that time has passed.
static bool goes_on(const struct watch *watch)
{
    const struct watch_options *o = &watch->options;
    int64_t left = (int64_t)o->for_ns - (monotonic_ns() - watch->armed_ns);
    if (watch->interrupted)
        return false;
    return !o->for_ns || left > 0 ||
           (watch->ended < o->for_ns / o->interval_ns && left > -LATE_INTERVAL_NS);
}

static int watch_until_end(struct watch *watch, struct error *err)
{
    watch->armed_ns = watch->interval_begin_ns = monotonic_ns();
    while (goes_on(watch)) {
        // All that has been said by now, before the latest interval is looked at.
        const int wait_ms = watch->next.number ? 0 : POLL_MS;
        int result = hear(watch, wait_ms, err);
        if (result == 0 && watch->next.number) {
            result = take_interval(watch, watch->next, err);
            watch->next.number = 0;
        } else if (result == 0) {
            result = watch_capture_check(&watch->capture, err);
        }
        if (result < 0)
            return result;
        take_signals(watch);
    }
    return 0;
}

// On a busy machine intervals may have ended that were not looked at yet, when the watch is to end.
static int look_at_the_rest(struct watch *watch, struct error *err)
{
    int result;
    watch->ended_ns = clock_now_ns(CLOCK_MONOTONIC_RAW);
    while ((result = hear(watch, 0, err)) > 0)
        ;
    if (result == 0 && watch->next.number)
        result = take_interval(watch, watch->next, err);
    if (result == 0 && watch->options.for_ns && !watch->interrupted && !watch->intervals)
        result = error_set(err, ERROR_FAILED,
                           "nothing was looked at: no interval of %s ended in time; the machine is "
                           "too busy, or the capture stands still",
                           TEXT_NS((double)watch->options.interval_ns));
    return result;
}

static int check_options(struct watch *watch, int positional, char **argv, struct error *err)
{
    struct watch_options *o = &watch->options;
    if (positional > 0)
        return error_set(err, ERROR_INPUT,
                         "%s: watch takes only options; see taillight watch --help", argv[1]);
    if (!o->pids && !o->ports && !o->cgroups && !o->units)
        return error_set(err, ERROR_INPUT,
                         "what is to be watched? --pid, --port, --cgroup or --systemd");
    if (!o->interval_ns)
        o->interval_ns = o->for_ns && o->for_ns < USUAL_INTERVAL_NS ? o->for_ns : USUAL_INTERVAL_NS;
    if (o->interval_ns < LEAST_INTERVAL_NS)
        return error_set(err, ERROR_INPUT, "--interval, and --for: half a second at least");
    if (o->for_ns && o->for_ns < o->interval_ns)
        return error_set(err, ERROR_INPUT,
                         "--for %s is shorter than --interval %s: nothing would be shown",
                         TEXT_NS((double)o->for_ns), TEXT_NS((double)o->interval_ns));
    if (o->saves == 0)
        return error_set(err, ERROR_INPUT, "--saves: 1 at least");
    watch->recorder.saves = o->saves;
    watch->recorder.folder = o->save ? o->save : "taillight-saved";
    if (o->trigger && flight_recorder_trigger(&watch->recorder, o->trigger, err) < 0)
        return -ERROR_INPUT;
    if (o->save || o->trigger)
        if (mkdir(watch->recorder.folder, 0700) < 0 && errno != EEXIST)
            return error_set_errno(err, ERROR_INPUT, "--save %s", watch->recorder.folder);
    return 0;
}

// Whoever is to be watched may still come: said at once, it is no error.
static void say_who_is_not_there(const struct watch *watch)
{
    char lack[200];
    if (!watch->options.quiet && listening_ports_lack(watch->options.ports, lack, sizeof lack))
        fprintf(stderr, "taillight: %s; it is waited for\n", lack);
}

// What came after the last interval has ended with the watch, and is no part of what --for asked
// for.
static void say_what_was_not_looked_at(const struct watch *watch)
{
    const struct watch_options *o = &watch->options;
    const int64_t from_ns = watch->until_ns ? watch->until_ns : watch->capture.since_ns,
                  left_ns = watch->ended_ns - from_ns;
    const bool was_all =
        o->for_ns && watch->ended >= o->for_ns / o->interval_ns && o->for_ns % o->interval_ns == 0;
    if (!o->quiet && left_ns > 0 && !was_all)
        fprintf(stderr, "taillight: the last %s were not looked at: no interval ended since\n",
                TEXT_NS((double)left_ns));
}

static void say_what_was_saved(const struct watch *watch)
{
    const struct flight_recorder *recorder = &watch->recorder;
    if (recorder->saved || watch->not_saved)
        fprintf(stderr, "taillight: %s saved in %s, %s folder%s made room since, %s could not be\n",
                TEXT_COUNT(recorder->saved), recorder->folder, TEXT_COUNT(recorder->gone),
                text_plural((double)recorder->gone), TEXT_COUNT(watch->not_saved));
    if (recorder->lengthened)
        fprintf(stderr, "taillight: %s of these reach%s into the next interval\n",
                TEXT_COUNT(recorder->lengthened), recorder->lengthened == 1 ? "es" : "");
    if (recorder->shared)
        fprintf(stderr,
                "taillight: %s stretch%s of slow requests %s saved with others in a folder: there "
                "were more than --saves in an interval\n",
                TEXT_COUNT(recorder->shared), recorder->shared == 1 ? "" : "es",
                text_were((double)recorder->shared));
    if (watch->passed_over)
        fprintf(stderr, "taillight: %s interval%s %s passed over: %s\n",
                TEXT_COUNT(watch->passed_over), text_plural((double)watch->passed_over),
                text_were((double)watch->passed_over), watch_passed_over_why);
    if (watch->analysis.given_up)
        fprintf(stderr,
                "taillight: %s interval%s could not be looked at: what was slow there is not "
                "saved\n",
                TEXT_COUNT(watch->analysis.given_up),
                text_plural((double)watch->analysis.given_up));
}

// The analysis shares cores with what it watches. Whoever wakes up gets the core from a thread that
// has asked for a longer slice at once (since Linux 6.12), not when that one's share is used up.
static void give_way(void)
{
    // struct sched_attr of sched_setattr(2), which libraries before glibc 2.41 do not have
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t slice_ns, deadline_ns, period_ns;
    } wish = {.size = sizeof wish,
              .policy = SCHED_BATCH,
              .nice = ANALYSIS_NICE,
              .slice_ns = ANALYSIS_SLICE_NS};
    if (syscall(SYS_sched_setattr, 0, &wish, 0) < 0)
        setpriority(PRIO_PROCESS, 0, ANALYSIS_NICE);
}

// Each interval needs what the one before has freed: given back to the kernel, it would come again
// a page fault at a time, some 1 for each request, which the capture would record, too.
static void keep_memory(void)
{
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
}

// A second signal, or an interval that is still looked at, or shown to nobody, LOOK_MS after the
// first: the capture ends with this process, and its folder goes.
static void leave(void *context, bool again)
{
    struct watch *watch = context;
    const bool unread = watch->showing;
    const int64_t from_ns = watch->until_ns ? watch->until_ns : watch->capture.since_ns;
    if (unread)
        way_out_say("taillight: interrupted: nobody reads what it says\n");
    way_out_say("taillight: interrupted%s: the last %s were not looked at\n", again ? " again" : "",
                TEXT_NS((double)(clock_now_ns(CLOCK_MONOTONIC_RAW) - from_ns)));
    if (progress_is_heard() && ftrylockfile(stderr) == 0) // else it is written just now
        say_what_was_saved(watch);
    if (watch->capture.process.pid > 0)
        kill(watch->capture.process.pid, SIGKILL);
    new_file_abandon_all();
    passing_folder_end(&watch->folder);
    if (watch->recorder.saving)
        folder_remove(watch->recorder.path);
    _exit(again || unread ? ERROR_FAILED : 0);
}

int watch_command(int argc, char **argv)
{
    struct watch watch = {
        .signals = -1,
        .way_out.signals = -1,
        .options = {.saves = 10, .keep_bytes = 256 << 20, .budget = 0.04, .look_rate = 2000},
        .recorder = {.slow_ended_ns = INT64_MIN}};
    struct error err = {0};
    int positional = 0;
    bool help = false;
    int result = options_parse(&usage, argc, argv, &watch.options, &positional, &help, &err);
    if (result == 0 && help)
        return 0;
    if (result == 0)
        result = check_options(&watch, positional, argv, &err);
    if (result < 0)
        return error_report(&err);
    watch.analysis.excerpt.rate = watch.options.look_rate;
    watch.terminal = isatty(STDOUT_FILENO) && !watch.options.json && !watch.options.quiet;
    watch.style = summary_style_for(stdout);
    result = watch.signals = supervisor_open_signals(SIGUSR1, NULL, &err);
    if (result >= 0)
        result = make_folder(&watch, &err);
    if (result >= 0)
        result = start_capture(&watch, &err);
    if (result >= 0)
        result =
            rights_give_up_capabilities(&err); // the capture needs them, not who reads its logs
    // A thread has the capabilities that there were when it began.
    if (result >= 0)
        result = way_out_open_second(&watch.way_out, LOOK_MS, leave, &watch, &err);
    if (result >= 0 && watch.options.metrics)
        result = metrics_open(watch.options.metrics, &watch.metrics, &err);
    give_way();
    keep_memory();
    if (result >= 0) {
        say_who_is_not_there(&watch);
        result = watch_until_end(&watch, &err);
        if (result == 0)
            result = look_at_the_rest(&watch, &err);
    }
    if (result >= 0)
        say_what_was_not_looked_at(&watch);
    watch_capture_stop(&watch.capture);
    way_out_close(&watch.way_out);
    passing_folder_end(&watch.folder);
    metrics_free(watch.metrics);
    watch_servers_free(&watch.servers);
    interval_analysis_free(&watch.analysis);
    say_what_was_saved(&watch);
    if (watch.signals >= 0)
        close(watch.signals);
    return result < 0 ? error_report(&err) : 0;
}
