// SPDX-License-Identifier: MIT
#include "profiler/capsule/capsule_command.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json_numbers.h"
#include "base/log_file.h"
#include "base/options.h"
#include "base/progress.h"
#include "profiler/capsule/hop_capture.h"
#include "profiler/capsule/hop_report.h"
#include "profiler/capsule/packet_words.h"

struct capsule_options {
    struct option_list hops;
    const char *filter, *sample, *flow_key, *out;
    uint64_t for_ns, ring_bytes, memory_bytes;
    bool carry, announce, json, quiet;
};

static const struct option_spec options[] = {
    OPTION_LIST("hop", 0, "IFACE[:WAY][@NETNS[=NAME]]", struct capsule_options, hops,
                "a hop: an interface, and ingress or egress (both); of a network namespace, by "
                "name, process or path, which is called NAME; may be given several times"),
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
    OPTION_DURATION("for", 0, "TIME", struct capsule_options, for_ns,
                    "for how long (until Ctrl-C)"),
    OPTION_STRING("out", 'o', "DIR", struct capsule_options, out,
                  "write capsule.json and each packet's records, hops.tlog, there"),
    OPTION_BYTES("buffer", 0, "BYTES", struct capsule_options, ring_bytes,
                 "of the ring that the hops write into (16MiB)"),
    OPTION_BYTES("memory", 0, "BYTES", struct capsule_options, memory_bytes,
                 "for records; more are counted, not kept (512MiB)"),
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
    .arguments = "--hop IFACE[:ingress|:egress][@NETNS] ... [--filter WORDS] [options]",
    .summary = "Says how long packets take from hop to hop on their way through virtual networks.",
    .details =
        "Stamps packets at interfaces of this machine and of its network namespaces, changes "
        "none of them, and\nlists for each route they took: how long from hop to hop, and "
        "how many were not seen again.\nExit code 4: no packet that was asked for passed.",
    .options = options,
};

// Packets are of the measuring if they passed their first hop in it. So long before it hops are
// attached, and so long after it they stay, for packets that are under way.
enum { MARGIN_MS = 200, DRAIN_MS = 5 };

struct measuring {
    struct capsule_options options;
    struct hop_spec hops[HOPS_MAX];
    struct hop_capture_settings settings;
    struct hop_capture *capture;
    struct packet_join join;
    struct hop_report report;
    uint64_t begin_ns, end_ns; // CLOCK_MONOTONIC
};

// --- what is asked for ---------------------------------------------------------------------------

static int take_hop(struct measuring *m, const char *text, struct error *err)
{
    struct hop_spec specs[2];
    size_t count;
    int result = hop_spec_parse(text, specs, &count, err);
    for (size_t i = 0; i < count && result == 0; i++) {
        for (size_t k = 0; k < m->settings.hop_count; k++)
            if (specs[i].direction == m->hops[k].direction &&
                strcmp(specs[i].interface, m->hops[k].interface) == 0 &&
                strcmp(specs[i].namespace, m->hops[k].namespace) == 0)
                return error_set(err, ERROR_INPUT, "--hop %s is given twice", specs[i].name);
        if (m->settings.hop_count == HOPS_MAX)
            return error_set(err, ERROR_INPUT,
                             "--hop: %d hops at most; an interface without :ingress or :egress is "
                             "two",
                             HOPS_MAX);
        m->hops[m->settings.hop_count++] = specs[i];
    }
    return result;
}

static int take_options(struct measuring *m, int positional, char **argv, struct error *err)
{
    const struct capsule_options *o = &m->options;
    m->settings.hops = m->hops;
    m->settings.ring_bytes = o->ring_bytes ? o->ring_bytes : UINT64_C(16) << 20;
    m->settings.memory_bytes = o->memory_bytes ? o->memory_bytes : UINT64_C(512) << 20;
    if (positional > 0)
        return error_set(err, ERROR_INPUT,
                         "%s: capsule takes only options; see taillight capsule --help", argv[1]);
    if (o->hops.count == 0)
        return error_set(err, ERROR_INPUT,
                         "--hop is needed, best several times: packets are "
                         "followed from one to the next");
    for (size_t i = 0; i < o->hops.count; i++)
        if (take_hop(m, o->hops.items[i], err) < 0)
            return -ERROR_INPUT;
    if (o->carry && hop_specs_carry(m->hops, m->settings.hop_count, err) < 0)
        return -ERROR_INPUT;
    if (packet_filter_parse(o->filter ? o->filter : "", &m->settings.filter, err) < 0)
        return -ERROR_INPUT;
    if (packet_sample_parse(o->sample ? o->sample : "1", &m->settings.one_in, err) < 0)
        return -ERROR_INPUT;
    if (o->flow_key && packet_key_parse(o->flow_key, &m->settings.flow_key, err) < 0)
        return -ERROR_INPUT;
    if (o->announce && o->json)
        return error_set(err, ERROR_INPUT,
                         "--announce prints one line, and --json a document; "
                         "leave one of them out, and take --out");
    if (o->out && mkdir(o->out, 0700) < 0 && errno != EEXIST)
        return error_set_errno(err, ERROR_FAILED, "cannot create %s", o->out);
    return 0;
}

// --- measuring -----------------------------------------------------------------------------------

// Whether the end of stdin asks it to end; what is written there is nothing to it.
static bool input_ended(const struct pollfd *input)
{
    char bytes[256];
    return input->revents && read(input->fd, bytes, sizeof bytes) <= 0;
}

// Drains until that time, or until somebody asks it to end if `interrupted` is not -1.
static void drain_until(struct measuring *m, int64_t end_ns, int interrupted)
{
    struct pollfd asked[2] = {
        {.fd = interrupted, .events = POLLIN},
        {.fd = m->options.announce && interrupted >= 0 ? STDIN_FILENO : -1, .events = POLLIN}};
    while (monotonic_ns() < end_ns) {
        bool more = hop_capture_drain(m->capture);
        if (poll(asked, 2, more ? 0 : DRAIN_MS) > 0 && (asked[0].revents || input_ended(&asked[1])))
            return;
    }
}

static void announce(const struct measuring *m)
{
    if (!m->options.announce)
        return;
    puts("{\"ready\": true, \"warnings\": []}");
    fflush(stdout);
}

static void measure_window(struct measuring *m, struct progress *progress, int interrupted)
{
    uint64_t for_ns = m->options.for_ns;
    char length[32] = "until it is told to end";
    drain_until(m, monotonic_ns() + MARGIN_MS * 1000000, interrupted);
    if (for_ns)
        snprintf(length, sizeof length, "for %.3g s", (double)for_ns / 1e9);
    progress_phase(progress, "measuring at %zu hops %s", m->settings.hop_count, length);
    announce(m);
    int64_t begin_ns = monotonic_ns();
    drain_until(m, for_ns ? begin_ns + (int64_t)for_ns : INT64_MAX, interrupted);
    int64_t end_ns = monotonic_ns();
    hop_capture_begin_no_more(m->capture);
    drain_until(m, end_ns + MARGIN_MS * 1000000, -1);
    m->begin_ns = (uint64_t)begin_ns;
    m->end_ns = (uint64_t)end_ns;
    hop_capture_stop(m->capture);
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
    int result = hop_capture_open(&m->settings, &m->capture, err);
    if (result == 0)
        measure_window(m, progress, interrupted);
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
    uint64_t lost = m->report.forgotten;
    for (size_t i = 0; i < m->report.hop_count; i++)
        lost += m->report.counts[i].dropped;
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

static void fill_report(struct measuring *m, size_t records)
{
    m->report = (struct hop_report){
        .filter = m->options.filter ? m->options.filter : "",
        .one_in = m->settings.one_in,
        .carry = m->options.carry,
        .flow_key = hop_capture_flow_key(m->capture),
        .duration_ns = m->end_ns - m->begin_ns,
        .hop_count = m->settings.hop_count,
        .hops = m->hops,
        .records = records,
        .forgotten = hop_capture_forgotten(m->capture),
        .join = &m->join,
    };
    for (size_t i = 0; i < m->report.hop_count; i++) {
        m->report.counts[i] = hop_capture_counts(m->capture, i);
        m->report.gone[i] = hop_capture_is_gone(m->capture, i);
        m->report.cut[i] = hop_capture_is_cut(m->capture, i);
        m->report.link[i] = hop_capture_link(m->capture, i);
    }
}

static int report(struct measuring *m, struct error *err)
{
    const struct capsule_options *o = &m->options;
    struct hop_record_array *records = hop_capture_records(m->capture);
    fill_report(m, records->count);
    struct error later; // than that the files cannot be written, which costs nothing but them
    int written = o->out ? write_log(m, records, err) : 0;
    int result = packet_join_records(records->items, records->count, m->begin_ns, m->end_ns,
                                     &m->join, written < 0 ? &later : err);
    if (result < 0)
        return written < 0 ? written : result;
    hop_report_sort(&m->report);
    json_t *document = o->json || o->out ? hop_report_json(&m->report) : NULL;
    if ((o->json || o->out) && !document)
        return error_set(err, ERROR_FAILED, "no memory for the report");
    if (o->out && written == 0)
        written = write_document(m, document, err);
    if (o->json)
        result =
            json_print_new(document, JSON_FOR_PEOPLE, "the report", written < 0 ? &later : err);
    else
        json_decref(document);
    if (!o->json && !o->announce)
        hop_report_print(&m->report, stdout);
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
    if (result == 0 && m->join.packets == 0)
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
    int result = m ? run(m, argc, argv, &help, &err)
                   : error_set(&err, ERROR_FAILED, "no memory for a measuring");
    if (m) {
        packet_join_free(&m->join);
        hop_capture_free(m->capture);
        array_free(&m->options.hops);
        free(m);
    }
    return result < 0 ? error_report(&err) : 0;
}
