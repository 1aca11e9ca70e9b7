// SPDX-License-Identifier: MIT
#include "experiments/capsule/capsule_command.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_numbers.h"
#include "base/log_file.h"
#include "base/new_file.h"
#include "base/one_wish.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/text.h"
#include "base/units.h"
#include "experiments/capsule/hop_machines.h"
#include "experiments/common/way_out.h"
#include "profiler/capsule/hop_capture.h"
#include "profiler/capsule/hop_report.h"
#include "profiler/capsule/packet_words.h"

struct capsule_options {
    struct option_list hops, ssh_options;
    const char *filter, *sample, *flow_key, *part, *out, *ssh_config, *directory;
    uint64_t for_ns, ring_bytes, memory_bytes;
    bool carry, clocks, announce, json, quiet;
};

static const struct option_spec options[] = {
    OPTION_LIST("hop", 0, "IFACE[:WAY][@NETNS[=NAME]][@ssh:HOST]", struct capsule_options, hops,
                "a hop: an interface, and ingress or egress (both); of a network namespace, by "
                "name, process or path, which is called NAME; of another machine, [user@]host as "
                "ssh takes it; may be given several times"),
    OPTION_STRING("filter", 'f', "WORDS", struct capsule_options, filter,
                  "which packets: ip, ip6, tcp, udp, [src|dst] port N, [src|dst] host ADDRESS, all "
                  "of which must hold (all TCP and UDP)"),
    OPTION_STRING("sample", 0, "1/N", struct capsule_options, sample,
                  "of these, one in N, the same at every hop (1)"),
    OPTION_STRING("flow-key", 0, "KEY", struct capsule_options, flow_key,
                  "hash packets with this key, of up to 16 hexadecimal digits: hops on several "
                  "machines sample the same ones by it (random)"),
    OPTION_FLAG("carry", 0, struct capsule_options, carry,
                "packets carry their stamps, from the first hop to the last, in a trailer behind "
                "the IP packet"),
    OPTION_STRING(
        "part", 0, "RUN", struct capsule_options, part,
        "of --carry over several machines: hops of others (@ssh:) are theirs, and trailers "
        "have this number, of up to 16 hexadecimal digits; needs --flow-key and "
        "--announce"),
    OPTION_PERIOD("for", 0, "TIME", struct capsule_options, for_ns, "for how long (until Ctrl-C)"),
    OPTION_STRING("out", 'o', "DIR", struct capsule_options, out,
                  "write capsule.json and each packet's records, hops.tlog, there"),
    OPTION_BYTES("buffer", 0, "BYTES", struct capsule_options, ring_bytes,
                 "of the rings that the hops write into, one a core (16MiB, or 1MiB a core)"),
    OPTION_BYTES("memory", 0, "BYTES", struct capsule_options, memory_bytes,
                 "for records; more are counted, not kept (512MiB)"),
    OPTION_FLAG("clocks", 0, struct capsule_options, clocks,
                "write how this machine's clocks are related, clock.tlog, into --out too"),
    OPTION_STRING("ssh-config", 0, "FILE", struct capsule_options, ssh_config,
                  "of other machines: ssh's configuration (the user's)"),
    OPTION_LIST("ssh-option", 0, "NAME=VALUE", struct capsule_options, ssh_options,
                "of other machines: as ssh -o takes it"),
    OPTION_STRING("directory", 0, "DIR", struct capsule_options, directory,
                  "of other machines: where the program lies there meanwhile (/tmp)"),
    OPTION_FLAG(
        "announce", 0, struct capsule_options, announce,
        "print one line {\"ready\": true, \"warnings\": []} on stdout when it measures, and "
        "nothing else; end when stdin ends"),
    OPTION_FLAG("json", 0, struct capsule_options, json, "print one JSON document on stdout"),
    OPTION_FLAG("quiet", 'q', struct capsule_options, quiet, "no progress on stderr"),
    OPTION_END,
};

static const struct command_usage usage = {
    .name = "capsule",
    .arguments = "--hop IFACE[:ingress|:egress][@NETNS][@ssh:HOST] ... [--filter WORDS] [options]",
    .summary = "Says how long packets take from hop to hop on their way through virtual networks.",
    .details = "Stamps packets at interfaces of this machine, of its network namespaces and of "
               "machines behind ssh, "
               "changes none of them, and lists for each route they took: how long from hop to "
               "hop, and how many "
               "were not seen again.\n"
               "Exit codes: 0 done; 1 failed; 2 bad usage, or no such interface; 4 no packet that "
               "was asked for passed.",
    .options = options,
};

// Packets are of the measuring if they passed their first hop in it. So long before it hops are
// attached, and so long after it they stay, for packets that are under way.
enum { MARGIN_MS = 200, DRAIN_MS = 5, TRIP_MS = 250 };

struct measuring {
    struct capsule_options options;
    struct hop_machines machines;
    struct hop_spec here[HOPS_MAX]; // the hops of this machine
    uint8_t here_numbers[HOPS_MAX]; // among all
    struct hop_capture_settings settings;
    struct hop_capture *capture;  // NULL: no hop is here
    struct way_out way_out;       // at the second signal
    struct hop_record_array none; // what is recorded where no hop is here
    struct clock_recorder clocks;
    int64_t next_trip_ns; // CLOCK_MONOTONIC
    struct packet_join join;
    struct hop_report report;
    uint64_t begin_ns, end_ns; // CLOCK_MONOTONIC
    char told[64];             // the line of stdin that is being read
    bool ends;                 // somebody has asked it to
};

// --- what is asked for ---------------------------------------------------------------------------

static int take_hops(struct measuring *m, struct error *err)
{
    const struct capsule_options *o = &m->options;
    const struct hop_reach reach = {o->ssh_config, o->directory, &o->ssh_options};
    int result = 0;
    for (size_t i = 0; i < o->hops.count && result == 0; i++)
        result = hop_machines_take(&m->machines, o->hops.items[i], &reach, err);
    if (result == 0 && o->carry)
        result = hop_machines_carry(&m->machines, err);
    m->settings.hops = m->here;
    m->settings.hop_count = hop_machines_here(&m->machines, m->here, m->here_numbers);
    m->settings.way = m->machines.hops;
    m->settings.way_count = m->machines.hop_count;
    m->settings.numbers = m->here_numbers;
    m->settings.waits = o->carry && (m->machines.machine_count > 1 || o->part);
    if (result == 0 && o->part) {
        if (!o->carry || !o->flow_key || !o->announce || m->settings.hop_count == 0)
            return error_set(err, ERROR_INPUT,
                             "--part: only with --carry, --flow-key, --announce, and hops of this "
                             "machine");
        hop_machines_leave_others(&m->machines);
    }
    return result;
}

static int choose_number(uint64_t *number, struct error *err)
{
    if (*number)
        return 0;
    if (getrandom(number, sizeof *number, 0) != sizeof *number)
        return error_set_errno(err, ERROR_FAILED, "no random number");
    *number |= 1; // 0 would be another one on each
    return 0;
}

// Machines sample the same packets if they know them by the same hashes, and take a trailer for
// their own by its number.
static int choose_numbers(struct measuring *m, struct error *err)
{
    if (m->machines.machine_count == 1)
        return 0;
    int result = choose_number(&m->settings.flow_key, err);
    return result == 0 && m->options.carry ? choose_number(&m->settings.run, err) : result;
}

static int take_options(struct measuring *m, int positional, char **argv, struct error *err)
{
    const struct capsule_options *o = &m->options;
    m->settings.ring_bytes = o->ring_bytes;
    m->settings.memory_bytes = o->memory_bytes ? o->memory_bytes : UINT64_C(512) << 20;
    if (positional > 0)
        return error_set(err, ERROR_INPUT,
                         "%s: capsule takes only options; see taillight capsule --help", argv[1]);
    if (o->hops.count == 0)
        return error_set(err, ERROR_INPUT,
                         "--hop is needed, best several times: packets are "
                         "followed from one to the next");
    int result = take_hops(m, err);
    if (result < 0)
        return result;
    if (o->clocks && !o->out)
        return error_set(err, ERROR_INPUT,
                         "--clocks: says what to write into --out, which is "
                         "needed with it");
    if (packet_filter_parse(o->filter ? o->filter : "", &m->settings.filter, err) < 0)
        return -ERROR_INPUT;
    if (packet_sample_parse(o->sample ? o->sample : "1", &m->settings.one_in, err) < 0)
        return -ERROR_INPUT;
    if (o->flow_key && packet_key_parse("flow-key", o->flow_key, &m->settings.flow_key, err) < 0)
        return -ERROR_INPUT;
    if (o->part && packet_key_parse("part", o->part, &m->settings.run, err) < 0)
        return -ERROR_INPUT;
    if (o->announce && o->json)
        return error_set(err, ERROR_INPUT,
                         "--announce prints one line, and --json a document; "
                         "leave one of them out, and take --out");
    if (o->out && mkdir(o->out, 0700) < 0 && errno != EEXIST)
        return error_set_errno(err, ERROR_FAILED, "cannot create %s", o->out);
    return choose_numbers(m, err);
}

// --- measuring -----------------------------------------------------------------------------------

// What hop_machines_begin() and hop_machines_begin_no_more() tell it; other lines are nothing to
// it.
static void obey(struct measuring *m)
{
    unsigned room_bytes;
    if (sscanf(m->told, "begin %u", &room_bytes) == 1) {
        hop_capture_begin(m->capture, room_bytes);
        puts("{\"begun\": true}");
        fflush(stdout);
    } else if (strcmp(m->told, "begin no more") == 0)
        hop_capture_begin_no_more(m->capture);
}

// Whether the end of stdin asks it to end.
static bool input_ended(struct measuring *m, const struct pollfd *input)
{
    char bytes[256];
    ssize_t count = input->revents ? read(input->fd, bytes, sizeof bytes) : 1;
    for (ssize_t i = 0; i < count && input->revents && m->options.part; i++) {
        size_t length = strlen(m->told);
        if (bytes[i] == '\n') {
            obey(m);
            m->told[0] = '\0';
        } else if (length < sizeof m->told - 1) {
            m->told[length] = bytes[i];
            m->told[length + 1] = '\0';
        }
    }
    return count <= 0;
}

// Takes the signal, so that another one that comes later is seen (process_is_interrupted()).
static int take_signal(struct measuring *m, int interrupted, short revents)
{
    struct signalfd_siginfo taken;
    m->ends = true;
    if (revents && read(interrupted, &taken, sizeof taken) == sizeof taken) {
        way_out_take(&m->way_out);
        one_wish_note((int)taken.ssi_signo);
    }
    return 0;
}

// What is to be done every so often beside draining the ring.
static int keep_clocks(struct measuring *m, struct error *err)
{
    if (m->clocks.readings)
        clock_recorder_poll(&m->clocks);
    if (m->machines.machine_count == 1 || monotonic_ns() < m->next_trip_ns)
        return 0;
    int result = hop_machines_check(&m->machines, err);
    m->next_trip_ns = monotonic_ns() + TRIP_MS * INT64_C(1000000);
    return result;
}

// Drains until that time, or until somebody asks it to end, or has asked before, if `interrupted`
// is not -1. Fails if another machine is lost.
static int drain_until(struct measuring *m, int64_t end_ns, int interrupted, struct error *err)
{
    struct pollfd asked[2] = {
        {.fd = interrupted, .events = POLLIN},
        {.fd = m->options.announce && interrupted >= 0 ? STDIN_FILENO : -1, .events = POLLIN}};
    while (monotonic_ns() < end_ns && !(m->ends && interrupted >= 0)) {
        bool more = m->capture && hop_capture_drain(m->capture);
        if (keep_clocks(m, err) < 0)
            return -(int)err->kind;
        if (poll(asked, 2, more ? 0 : DRAIN_MS) > 0 &&
            (asked[0].revents || input_ended(m, &asked[1])))
            return take_signal(m, interrupted, asked[0].revents);
    }
    return 0;
}

// The cores on which who has the taps' other ends may run: what packets there wait for, a capture
// of kernel events sees on those.
static void announce_holders(const struct hop_capture *capture, size_t hop_count)
{
    cpu_set_t all, its;
    char cores[256];
    CPU_ZERO(&all);
    for (size_t i = 0; i < hop_count; i++) {
        tap_holder_cores(&hop_capture_link(capture, i)->holder, &its);
        CPU_OR(&all, &all, &its);
    }
    if (CPU_COUNT(&all))
        printf(", \"holder_cores\": \"%s\"", units_format_cores(&all, cores, sizeof cores));
}

static void announce(const struct measuring *m)
{
    if (!m->options.announce)
        return;
    printf("{\"ready\": true, \"warnings\": []");
    if (m->options.part)
        printf(", \"room_bytes\": %u", hop_capture_room(m->capture));
    if (m->capture)
        announce_holders(m->capture, m->settings.hop_count);
    puts("}");
    fflush(stdout);
}

// All hops are attached, on all machines.
static int begin_carrying(struct measuring *m, struct error *err)
{
    uint32_t room_bytes = m->capture ? hop_capture_room(m->capture) : UINT16_MAX;
    if (!m->machines.carry || m->machines.machine_count == 1)
        return 0;
    int result = hop_machines_begin(&m->machines, &room_bytes, err);
    if (result == 0 && m->capture)
        hop_capture_begin(m->capture, room_bytes);
    return result;
}

static int begin_no_more(struct measuring *m, struct error *err)
{
    if (m->capture)
        hop_capture_begin_no_more(m->capture);
    return m->machines.carry ? hop_machines_begin_no_more(&m->machines, err) : 0;
}

static int measure_window(struct measuring *m, struct progress *progress, int interrupted,
                          struct error *err)
{
    uint64_t for_ns = m->options.for_ns;
    char length[32] = "until it is told to end";
    int result = begin_carrying(m, err);
    if (result == 0)
        result = drain_until(m, monotonic_ns() + MARGIN_MS * 1000000, interrupted, err);
    if (result < 0)
        return result;
    if (for_ns)
        snprintf(length, sizeof length, "for %s", TEXT_NS((double)for_ns));
    progress_phase(progress, "measuring at %zu hops %s", m->machines.hop_count, length);
    announce(m);
    int64_t begin_ns = monotonic_ns();
    result = drain_until(m, for_ns ? begin_ns + (int64_t)for_ns : INT64_MAX, interrupted, err);
    int64_t end_ns = monotonic_ns();
    if (result == 0)
        result = begin_no_more(m, err);
    if (result == 0)
        result = drain_until(m, end_ns + MARGIN_MS * 1000000, -1, err);
    m->begin_ns = (uint64_t)begin_ns;
    m->end_ns = (uint64_t)end_ns;
    if (m->capture)
        hop_capture_stop(m->capture);
    return result;
}

// What the commands on other machines are given beside their hops.
static int start_machines(struct measuring *m, struct progress *progress, struct error *err)
{
    const struct capsule_options *o = &m->options;
    struct command_line common = {.failed = false};
    if (m->machines.machine_count == 1)
        return 0;
    progress_phase(progress, "attaching hops on %s other machine%s",
                   TEXT_COUNT(m->machines.machine_count - 1),
                   m->machines.machine_count == 2 ? "" : "s");
    command_line_add_option(&common, "--filter", "%s", o->filter ? o->filter : "");
    command_line_add_option(&common, "--sample", "1/%u", m->settings.one_in);
    command_line_add_option(&common, "--flow-key", "0x%016llx",
                            (unsigned long long)m->settings.flow_key);
    if (o->carry) {
        command_line_add(&common, "--carry");
        command_line_add_option(&common, "--part", "0x%016llx",
                                (unsigned long long)m->settings.run);
    }
    if (m->settings.ring_bytes)
        command_line_add_number(&common, "--buffer", m->settings.ring_bytes);
    command_line_add_number(&common, "--memory", m->settings.memory_bytes);
    int result = command_line_result(&common, err);
    if (result == 0)
        result = hop_machines_start(&m->machines, &common, o->out, err);
    command_line_free(&common);
    return result;
}

static int start_clocks(struct measuring *m, struct error *err)
{
    if (m->machines.machine_count == 1 && !m->options.clocks)
        return 0;
    int result =
        clock_recorder_start(&m->clocks, CLOCK_RECORDER_INTERVAL_NS, CLOCK_RECORDER_KNOTS, err);
    if (result == 0)
        clock_recorder_settle(&m->clocks);
    return result;
}

static int measure_all(struct measuring *m, struct progress *progress, int interrupted,
                       struct error *err)
{
    int result = start_clocks(m, err);
    if (result == 0)
        result = start_machines(m, progress, err);
    if (result == 0 && m->settings.hop_count)
        result = hop_capture_open(&m->settings, &m->capture, err);
    if (result == 0)
        result = measure_window(m, progress, interrupted, err);
    if (result == 0 && m->machines.machine_count > 1)
        progress_phase(progress, "bringing the other machines' records here");
    if (result == 0)
        result = hop_machines_finish(&m->machines, err);
    if (m->clocks.readings)
        clock_recorder_settle(&m->clocks);
    return result;
}

// A second signal: links and other machines' programs go with this process, and filters are taken
// away by their guard.
static void leave(void *context, bool again)
{
    (void)context;
    (void)again;
    way_out_say("taillight: interrupted again: nothing is reported\n");
    new_file_abandon_all();
    _exit(ERROR_FAILED);
}

// Signals that ask it to end are taken from a descriptor, so that what was measured is reported.
static int measure(struct measuring *m, struct progress *progress, struct error *err)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    int interrupted = signalfd(-1, &ends, SFD_CLOEXEC);
    if (interrupted < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot wait for signals");
    int result = way_out_open_second(&m->way_out, INT_MAX, leave, m, err);
    if (result == 0)
        result = measure_all(m, progress, interrupted, err);
    close(interrupted);
    return result;
}

// --- what comes of it ----------------------------------------------------------------------------

static int by_time(const void *a, const void *b)
{
    const struct hop_record *x = a, *y = b;
    return x->time != y->time ? order_of(x->time, y->time) : order_of(x->hop, y->hop);
}

static int write_log(const struct measuring *m, struct hop_record_array *records, struct error *err)
{
    char path[4096];
    uint64_t lost = hop_capture_forgotten(m->capture);
    for (size_t i = 0; i < m->settings.hop_count; i++)
        lost += m->report.counts[m->here_numbers[i]].dropped;
    array_sort(records, by_time);
    if (snprintf(path, sizeof path, "%s/hops.tlog", m->options.out) >= (int)sizeof path)
        return error_set(err, ERROR_INPUT, "--out: %s is too long", m->options.out);
    return log_write(path, LOG_HOPS, HOP_LOG_VERSION, sizeof *records->items, records->items,
                     records->count, lost, err);
}

static int write_document(const struct measuring *m, json_t *document, struct error *err)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/capsule.json", m->options.out) >= (int)sizeof path)
        return error_set(err, ERROR_INPUT, "--out: %s is too long", m->options.out);
    return json_write(document, JSON_FOR_PEOPLE, path, err);
}

static int write_clocks(struct measuring *m, struct error *err)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/clock.tlog", m->options.out) >= (int)sizeof path)
        return error_set(err, ERROR_INPUT, "--out: %s is too long", m->options.out);
    return clock_recorder_write(&m->clocks, path, err);
}

static int write_logs(struct measuring *m, struct hop_record_array *records, struct error *err)
{
    int result = m->capture ? write_log(m, records, err) : 0;
    return result == 0 && m->clocks.readings ? write_clocks(m, err) : result;
}

static void fill_report(struct measuring *m, size_t records)
{
    m->report = (struct hop_report){
        .filter = m->options.filter ? m->options.filter : "",
        .one_in = m->settings.one_in,
        .carry = m->options.carry,
        .flow_key = m->capture ? hop_capture_flow_key(m->capture) : m->settings.flow_key,
        .duration_ns = m->end_ns - m->begin_ns,
        .hop_count = m->machines.hop_count,
        .hops = m->machines.hops,
        .records = records,
        .forgotten = m->capture ? hop_capture_forgotten(m->capture) : 0,
        .translated = m->capture ? hop_capture_translated(m->capture) : 0,
        .join = &m->join,
    };
    for (size_t i = 0; i < m->machines.hop_count; i++) {
        unsigned machine = m->machines.hops[i].machine;
        m->report.machine[i] = machine == MACHINE_HERE ? NULL : m->machines.address[machine];
        m->report.link[i] = &m->machines.links[i];
    }
    for (size_t i = 0; i < m->settings.hop_count; i++) {
        size_t number = m->here_numbers[i];
        m->report.counts[number] = hop_capture_counts(m->capture, i);
        m->report.gone[number] = hop_capture_is_gone(m->capture, i);
        m->report.cut[number] = hop_capture_is_cut(m->capture, i);
        m->report.link[number] = hop_capture_link(m->capture, i);
    }
}

// All records, in one time: this machine's CLOCK_MONOTONIC where there is no other.
static int join_records(struct measuring *m, struct hop_record_array *records, struct error *err)
{
    int result = 0;
    if (m->options.part)
        return 0; // stamps of several clocks: who started this joins them
    if (m->machines.machine_count > 1)
        result =
            hop_machines_join(&m->machines, &m->clocks, records, &m->begin_ns, &m->end_ns, err);
    m->report.records = records->count;
    return result < 0 ? result
                      : packet_join_records(records->items, records->count, m->begin_ns, m->end_ns,
                                            &m->join, err);
}

static int report(struct measuring *m, struct error *err)
{
    const struct capsule_options *o = &m->options;
    struct hop_record_array *records = m->capture ? hop_capture_records(m->capture) : &m->none;
    struct error later; // than that the files cannot be written, which costs nothing but them
    fill_report(m, records->count);
    int result = hop_machines_report(&m->machines, &m->report, err);
    if (result < 0)
        return result;
    int written = o->out ? write_logs(m, records, err) : 0;
    result = join_records(m, records, written < 0 ? &later : err);
    if (result < 0)
        return written < 0 ? written : result;
    hop_report_sort(&m->report);
    json_t *document = o->json || o->out ? hop_report_json(&m->report) : NULL;
    if ((o->json || o->out) && !document)
        return error_set(err, ERROR_FAILED, "no memory for the report");
    if (document)
        json_object_set_new(document, "clocks", hop_machines_json(&m->machines));
    if (o->out && written == 0)
        written = write_document(m, document, err);
    one_wish_hand_over();
    if (o->json)
        result =
            json_print_new(document, JSON_FOR_PEOPLE, "the report", written < 0 ? &later : err);
    else
        json_decref(document);
    if (!o->json && !o->announce) {
        hop_report_print(&m->report, stdout);
        hop_machines_print(&m->machines, stdout);
    }
    return written < 0 ? written : result;
}

static int run(struct measuring *m, int argc, char **argv, bool *help, struct error *err)
{
    int positional = 0;
    struct progress progress;
    int result = options_parse(&usage, argc, argv, &m->options, &positional, help, err);
    if (result < 0 || *help)
        return result;
    progress_init(&progress, m->options.quiet);
    result = take_options(m, positional, argv, err);
    if (result == 0)
        result = measure(m, &progress, err);
    progress_end(&progress);
    if (result == 0)
        result = report(m, err);
    // A part's packets are joined by who started it.
    if (result == 0 && (m->options.part ? m->report.records : m->join.packets) == 0)
        result = error_set(err, ERROR_INCONCLUSIVE,
                           "no packet that is asked for was seen on its way from a hop: see what "
                           "each hop counted, and --filter");
    return result;
}

int capsule_command(int argc, char **argv)
{
    struct measuring *m = calloc(1, sizeof *m);
    struct error err = {.kind = ERROR_NONE};
    bool help = false;
    if (m)
        m->way_out.signals = -1;
    int result = m ? run(m, argc, argv, &help, &err)
                   : error_set(&err, ERROR_FAILED, "no memory for a measuring");
    if (m) {
        way_out_close(&m->way_out);
        packet_join_free(&m->join);
        hop_capture_free(m->capture);
        hop_machines_end(&m->machines);
        clock_recorder_free(&m->clocks);
        array_free(&m->none);
        array_free(&m->options.hops);
        array_free(&m->options.ssh_options);
        free(m);
    }
    return result < 0 ? error_report(&err) : 0;
}
