// SPDX-License-Identifier: MIT
#include "profiler/capsule/hop_report.h"

#include <string.h>

#include "base/json_numbers.h"
#include "base/json_rows.h"
#include "base/quantile.h"
#include "base/text.h"
#include "base/units.h"

#define CONFIDENCE 0.95

static const struct reported_quantile {
    const char *name;
    double q;
} quantiles[] = {{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}};

enum { QUANTILES = sizeof quantiles / sizeof *quantiles };

void hop_report_sort(struct hop_report *report)
{
    for (size_t i = 0; i < report->join->route_count; i++)
        for (size_t k = 0; k < HOPS_MAX; k++) {
            struct packet_route *route = &report->join->routes[i];
            quantile_sort(route->delays[k].items, route->delays[k].count);
            quantile_sort(route->queued[k].items, route->queued[k].count);
        }
}

// --- for people ----------------------------------------------------------------------------------

// "12.3 us [12.1 us, 12.6 us]"
static void print_quantile(const struct delay_array *delays, double q, FILE *out)
{
    char value[32], low[32], high[32], text[100];
    struct quantile_interval interval =
        quantile_interval_sorted(delays->items, delays->count, q, CONFIDENCE);
    units_format_ns(quantile_sorted(delays->items, delays->count, q), value, sizeof value);
    if (interval.known)
        snprintf(text, sizeof text, "%s [%s, %s]", value,
                 units_format_ns(interval.low, low, sizeof low),
                 units_format_ns(interval.high, high, sizeof high));
    else
        snprintf(text, sizeof text, "%s [?]", value);
    fprintf(out, "  %-30s", text);
}

static void print_delays(const struct delay_array *delays, FILE *out)
{
    char text[32];
    for (size_t i = 0; i < QUANTILES; i++)
        print_quantile(delays, quantiles[i].q, out);
    fprintf(out, "  %10s", units_format_ns(delays->items[delays->count - 1], text, sizeof text));
}

// Of the time to the next hop, which stands below, what passed in the queueing discipline of this
// one.
static void print_queue(const struct hop_report *report, const struct packet_route *route, size_t i,
                        FILE *out)
{
    const struct delay_array *queued = &route->queued[i];
    char name[64], count[32];
    if (queued->count == 0)
        return;
    snprintf(name, sizeof name, "  in its queue (%s)", report->link[route->hops[i]]->qdisc);
    fprintf(out, "  %-32s", name);
    print_delays(queued, out);
    if (queued->count < route->complete)
        fprintf(out, "  (of %s packets)", text_count(queued->count, count));
    fputc('\n', out);
}

// Where records are missing, so may be what is not seen again. Of packets that carry it is known by
// counts.
static bool misses_records(const struct hop_report *report)
{
    bool misses = report->forgotten > 0 && !report->carry;
    for (size_t i = 0; i < report->hop_count; i++)
        misses |= (report->counts[i].dropped > 0 && !report->carry) || report->gone[i];
    return misses;
}

// How many packets passed a hop of a way on which they carry.
static uint64_t passed(const struct hop_report *report, uint8_t hop)
{
    const struct hop_counts *counts = &report->counts[hop];
    switch (report->hops[hop].role) {
    case HOP_BEGINS:
        return counts->begun;
    case HOP_ENDS:
        return counts->ended;
    default:
        return counts->stamped + counts->not_stamped;
    }
}

static bool has_hop(const struct packet_route *route, uint8_t hop)
{
    return memchr(route->hops, hop, route->hop_count) != NULL;
}

// Whether every packet that passed two hops of a way went from one to the other, as it was.
static bool is_one_way(const struct hop_report *report, const struct packet_route *route,
                       uint8_t from, uint8_t to)
{
    bool one = route->merged == 0 && report->join->pieces == 0;
    for (size_t i = 0; i < report->join->route_count; i++) {
        const struct packet_route *other = &report->join->routes[i];
        one &= other == route || (!has_hop(other, from) && !has_hop(other, to));
    }
    return one;
}

// Packets that were seen last at a route's hop i. Of those that carry only what came to its end has
// a record, but each hop has counted what passed it.
static uint64_t lost_after(const struct hop_report *report, const struct packet_route *route,
                           size_t i)
{
    if (!report->carry || i + 1 == route->hop_count)
        return route->lost_after[i];
    const uint8_t from = route->hops[i], to = route->hops[i + 1];
    const uint64_t here = passed(report, from), next = passed(report, to);
    return here > next && is_one_way(report, route, from, to) ? here - next : 0;
}

static void print_losses(const struct hop_report *report, const struct packet_route *route,
                         FILE *out)
{
    char count[32];
    for (size_t i = 0; i + 1 < route->hop_count; i++)
        if (lost_after(report, route, i))
            fprintf(out, "  %s between %s and %s: %s\n",
                    misses_records(report) ? "lost, or not recorded,"
                    : report->carry        ? "lost, or without their trailer,"
                                           : "lost",
                    report->hops[route->hops[i]].name, report->hops[route->hops[i + 1]].name,
                    text_count(lost_after(report, route, i), count));
}

static void print_route(const struct hop_report *report, size_t number, FILE *out)
{
    const struct packet_route *route = &report->join->routes[number];
    char count[2][32];
    fprintf(out, "\nRoute %zu: %s packets, %s of them seen at every hop", number + 1,
            text_count(route->packets, count[0]), text_count(route->complete, count[1]));
    if (route->merged)
        fprintf(out, " (%s inside larger ones)", text_count(route->merged, count[0]));
    fprintf(out, "\n  %-32s", "to hop, from the one above");
    for (size_t i = 0; i < QUANTILES; i++)
        fprintf(out, "  %-30s", quantiles[i].name);
    fprintf(out, "  %10s  seen last\n", "max");
    for (size_t i = 0; i < route->hop_count; i++) {
        fprintf(out, "  %-32s", report->hops[route->hops[i]].name);
        if (i > 0 && route->complete)
            print_delays(&route->delays[i], out);
        if (lost_after(report, route, i))
            fprintf(out, "%*s%s", i > 0 && route->complete ? 2 : 3 * 32 + 14, "",
                    text_count(lost_after(report, route, i), count[0]));
        fputc('\n', out);
        print_queue(report, route, i, out);
    }
    if (route->hop_count > 1 && route->complete) {
        fprintf(out, "  %-32s", "from the first to the last");
        print_delays(&route->delays[0], out);
        fputc('\n', out);
    }
    print_losses(report, route, out);
    if (route->gaps)
        fprintf(out, "  %s packets were not seen at a hop, but at a later one.\n",
                text_count(route->gaps, count[0]));
}

// A sentence, if there is anything to say.
static void print_note(uint64_t number, const char *sentence, FILE *out)
{
    char count[32];
    if (number)
        fprintf(out, "  %s %s\n", text_count(number, count), sentence);
}

// Of packets that carry: how many came to the end of their way, and why others were left alone.
static void print_carried(const struct hop_report *report, FILE *out)
{
    struct hop_counts all = {.matched = 0};
    char count[2][32];
    bool cut = false;
    for (size_t i = 0; i < report->hop_count; i++) {
        const struct hop_counts *hop = &report->counts[i];
        all.begun += hop->begun;
        all.ended += hop->ended;
        all.no_room += hop->no_room;
        all.bundled += hop->bundled;
        all.sent_again += hop->sent_again;
        all.foreign += hop->foreign;
        all.damaged += hop->damaged;
        all.not_stamped += hop->not_stamped;
        cut |= report->cut[i];
    }
    fprintf(out, "  %s packets got a trailer, which was taken off %s.\n",
            text_count(all.begun, count[0]), text_count(all.ended, count[1]));
    if (all.begun && !all.ended)
        fprintf(out, "  None came to the last hop: are the hops in the order of the way? What lies "
                     "between them may cut trailers off, too.\n");
    if (cut)
        fprintf(out, "  Bridges here hand packets to iptables (bridge-nf-call-iptables=1), which "
                     "cuts trailers off.\n");
    print_note(all.no_room, "packets were left alone: too long with a trailer.", out);
    print_note(all.bundled, "packets were left alone: the kernel divides or has merged them.", out);
    print_note(all.sent_again, "packets were left alone: they had been sent before.", out);
    print_note(all.foreign, "packets were left alone: something else lies behind them.", out);
    print_note(all.damaged, "trailers were damaged on the way, or forged.", out);
    print_note(all.not_stamped, "packets the kernel did not let be changed.", out);
}

static void print_tagged(const struct hop_report *report, FILE *out)
{
    uint64_t tagged = 0;
    for (size_t i = 0; i < report->hop_count; i++)
        tagged += report->counts[i].tagged;
    print_note(tagged, "packets have more than three VLAN tags: they were left alone.", out);
}

// Of the packets that a hop followed and that came to a later hop all the same: those that were
// divided, and those at which the kernel ran no program as they left.
static void unseen_leavings(const struct hop_report *report, size_t hop, uint64_t *divided,
                            uint64_t *unwatched)
{
    *divided = *unwatched = 0;
    for (size_t i = 0; i < report->join->route_count; i++) {
        const struct packet_route *route = &report->join->routes[i];
        for (size_t k = 0; k < route->hop_count; k++)
            if (route->hops[k] == hop) {
                *divided += route->divided[k];
                *unwatched += route->unwatched[k];
            }
    }
}

// Of the queueing disciplines, what is not told apart.
static void print_queues(const struct hop_report *report, FILE *out)
{
    char count[4][32];
    uint64_t divided, unwatched;
    for (size_t i = 0; i < report->hop_count; i++) {
        const struct hop_link *link = report->link[i];
        const struct hop_counts *counts = &report->counts[i];
        if (link->unseen[0])
            fprintf(out, "  %s: how long packets are in its queue (%s) is not known: %s.\n",
                    report->hops[i].name, link->qdisc, link->unseen);
        if (counts->left >= counts->queued)
            continue;
        unseen_leavings(report, i, &divided, &unwatched);
        fprintf(out,
                "  %s: %s of %s packets were not seen as they left its queue (%s): %s it divided "
                "(GSO), at %s the kernel ran no tracing program; others it dropped, or has.\n",
                report->hops[i].name, text_count(counts->queued - counts->left, count[0]),
                text_count(counts->queued, count[1]), link->qdisc, text_count(divided, count[2]),
                text_count(unwatched, count[3]));
    }
}

// Whether what ends in a namespace may be what as often begins there at another of its interfaces.
static bool may_go_on(const struct hop_report *report, const struct packet_route *route,
                      const struct packet_route *next)
{
    enum { ALIKE = 10 }; // as many, but for a tenth
    const uint8_t from = route->hops[route->hop_count - 1], to = next->hops[0];
    const struct hop_spec *last = &report->hops[from], *first = &report->hops[to];
    const uint64_t more = route->packets > next->packets ? route->packets - next->packets
                                                         : next->packets - route->packets;
    for (size_t i = 0; i < next->hop_count; i++)
        if (has_hop(route, next->hops[i]))
            return false;
    return last->direction == HOP_INGRESS && first->direction == HOP_EGRESS &&
           report->machine[from] == report->machine[to] &&
           strcmp(last->namespace, first->namespace) == 0 &&
           strcmp(last->interface, first->interface) != 0 && more * ALIKE <= next->packets;
}

// Where addresses are translated and nobody can be asked, one way is two routes.
static void print_parted(const struct hop_report *report, FILE *out)
{
    const struct packet_join *join = report->join;
    for (size_t i = 0; i < join->route_count; i++)
        for (size_t k = 0; k < join->route_count; k++) {
            const struct packet_route *route = &join->routes[i], *next = &join->routes[k];
            if (!may_go_on(report, route, next))
                continue;
            fprintf(
                out,
                "  What ends at %s (route %zu) and begins as often at %s (route %zu) may be the "
                "same packets, not known again, since something gives them other addresses "
                "that the kernel's connection tracking does not know of.\n",
                report->hops[route->hops[route->hop_count - 1]].name, i + 1,
                report->hops[next->hops[0]].name, k + 1);
        }
}

static void print_notes(const struct hop_report *report, FILE *out)
{
    const struct packet_join *join = report->join;
    fputc('\n', out);
    for (size_t i = 0; i < report->hop_count; i++) {
        const struct hop_counts *counts = &report->counts[i];
        if (report->gone[i])
            fprintf(out, "  %s: its interface went away.\n", report->hops[i].name);
        if (!counts->matched && !report->gone[i])
            fprintf(out, "  %s: no packet that is asked for passed.\n", report->hops[i].name);
        if (counts->dropped || counts->unreadable || counts->fragments)
            fprintf(out,
                    "  %s: %s not recorded because the ring was full, %s later fragments, %s whose "
                    "headers cannot be read.\n",
                    report->hops[i].name, TEXT_COUNT(counts->dropped),
                    TEXT_COUNT(counts->fragments), TEXT_COUNT(counts->unreadable));
    }
    print_tagged(report, out);
    print_queues(report, out);
    if (report->carry)
        print_carried(report, out);
    print_note(
        report->translated,
        "records are of packets whose addresses are translated (NAT): they were followed, as "
        "the kernel's connection tracking knows them.",
        out);
    print_parted(report, out);
    print_note(report->forgotten, "records found no room in memory (--memory).", out);
    print_note(join->rare, "packets went ways that are too rare to be listed.", out);
    print_note(join->repeated, "packets came again before they were seen at the end of their way.",
               out);
    print_note(join->pieces, "packets are pieces of larger ones, which are counted.", out);
}

void hop_report_print(const struct hop_report *report, FILE *out)
{
    char count[32];
    fprintf(out, "%s, %s", report->filter[0] ? report->filter : "all TCP and UDP packets",
            report->one_in == 1 ? "each" : "sampled");
    if (report->one_in > 1)
        fprintf(out, " 1/%s", TEXT_COUNT(report->one_in));
    fprintf(out, ", for %s: %s packets\n", TEXT_NS((double)report->duration_ns),
            text_count(report->join->packets, count));
    for (size_t i = 0; i < report->join->route_count; i++)
        print_route(report, i, out);
    print_notes(report, out);
}

// --- for scripts ---------------------------------------------------------------------------------

static json_t *delays_json(const struct delay_array *delays)
{
    json_t *object = json_object();
    char key[32];
    for (size_t i = 0; i < QUANTILES && delays->count; i++) {
        struct quantile_interval interval =
            quantile_interval_sorted(delays->items, delays->count, quantiles[i].q, CONFIDENCE);
        snprintf(key, sizeof key, "%s_ns", quantiles[i].name);
        json_object_set_new(
            object, key,
            json_number_or_null(quantile_sorted(delays->items, delays->count, quantiles[i].q)));
        snprintf(key, sizeof key, "%s_ci_ns", quantiles[i].name);
        json_object_set_new(object, key, json_interval_or_null(&interval));
    }
    if (delays->count) {
        double sum = 0;
        for (size_t i = 0; i < delays->count; i++)
            sum += delays->items[i];
        json_object_set_new(object, "mean_ns", json_real(sum / (double)delays->count));
        json_object_set_new(object, "max_ns", json_real(delays->items[delays->count - 1]));
    }
    return object;
}

static const struct json_row route_rows[] = {
    JSON_ROW("packets", struct packet_route, packets),
    JSON_ROW("complete", struct packet_route, complete),
    JSON_ROW("merged", struct packet_route, merged),
    JSON_ROW("gaps", struct packet_route, gaps),
};

static json_t *route_json(const struct hop_report *report, const struct packet_route *route)
{
    json_t *object = json_rows_set(json_object(), route_rows, route);
    json_t *hops = json_array();
    for (size_t i = 0; i < route->hop_count; i++) {
        json_t *hop = json_pack("{s:s, s:I}", "hop", report->hops[route->hops[i]].name, "seen_last",
                                (json_int_t)lost_after(report, route, i));
        if (i > 0) {
            json_object_set_new(hop, "from_previous", delays_json(&route->delays[i]));
            json_object_set_new(hop, "lost_from_previous",
                                json_integer((json_int_t)lost_after(report, route, i - 1)));
        }
        if (route->queued[i].count) {
            json_object_set_new(hop, "queued", delays_json(&route->queued[i]));
            json_object_set_new(hop, "queued_packets",
                                json_integer((json_int_t)route->queued[i].count));
        }
        json_array_append_new(hops, hop);
    }
    json_object_set_new(object, "hops", hops);
    json_object_set_new(object, "end_to_end", delays_json(&route->delays[0]));
    return object;
}

static const struct json_row count_rows[] = {
    JSON_ROW("matched", struct hop_counts, matched),
    JSON_ROW("recorded", struct hop_counts, recorded),
    JSON_ROW("unsampled", struct hop_counts, unsampled),
    JSON_ROW("bare", struct hop_counts, bare),
    JSON_ROW("dropped", struct hop_counts, dropped),
    JSON_ROW("queued", struct hop_counts, queued),
    JSON_ROW("left", struct hop_counts, left),
    JSON_ROW("fragments", struct hop_counts, fragments),
    JSON_ROW("unreadable", struct hop_counts, unreadable),
    JSON_ROW("tagged", struct hop_counts, tagged),
    JSON_ROW("begun", struct hop_counts, begun),
    JSON_ROW("stamped", struct hop_counts, stamped),
    JSON_ROW("ended", struct hop_counts, ended),
    JSON_ROW("no_room", struct hop_counts, no_room),
    JSON_ROW("bundled", struct hop_counts, bundled),
    JSON_ROW("sent_again", struct hop_counts, sent_again),
    JSON_ROW("foreign", struct hop_counts, foreign),
    JSON_ROW("damaged", struct hop_counts, damaged),
    JSON_ROW("not_stamped", struct hop_counts, not_stamped),
};

static json_t *holder_json(const struct tap_holder *holder)
{
    if (!holder->process)
        return json_null();
    json_t *threads = json_array();
    for (size_t i = 0; i < holder->thread_count; i++)
        json_array_append_new(threads, json_pack("{s:I, s:s, s:b}", "thread",
                                                 (json_int_t)holder->threads[i].thread, "name",
                                                 holder->threads[i].name, "reads",
                                                 (int)holder->threads[i].reads));
    return json_pack("{s:I, s:b, s:o}", "process", (json_int_t)holder->process, "takes_received",
                     (int)holder->takes_received, "threads", threads);
}

void hop_report_take_holder(const json_t *holder, struct tap_holder *out)
{
    const json_t *thread;
    const json_int_t process = json_integer_value(json_object_get(holder, "process"));
    size_t i;
    *out = (struct tap_holder){.process = 0};
    if (process <= 0 || process > INT32_MAX)
        return;
    out->process = (uint32_t)process;
    out->takes_received = json_is_true(json_object_get(holder, "takes_received"));
    json_array_foreach((json_t *)(uintptr_t)json_object_get(holder, "threads"), i, thread)
    {
        const json_int_t number = json_integer_value(json_object_get(thread, "thread"));
        const char *name = json_string_value(json_object_get(thread, "name"));
        if (number <= 0 || number > INT32_MAX || !name || out->thread_count == TAP_THREADS_MAX)
            continue;
        struct tap_thread *at = &out->threads[out->thread_count++];
        at->thread = (uint32_t)number;
        at->reads = json_is_true(json_object_get(thread, "reads"));
        text_clean(name, false, at->name, sizeof at->name);
    }
}

static json_t *hop_json(const struct hop_report *report, size_t i)
{
    const struct hop_spec *spec = &report->hops[i];
    const struct hop_link *link = report->link[i];
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:b, s:b}", "name",
                  spec->name, "machine", report->machine[i] ? report->machine[i] : "", "interface",
                  spec->interface, "direction", hop_direction_name(spec->direction), "namespace",
                  spec->namespace, "role", hop_role_name(spec->role), "qdisc", link->qdisc,
                  "queue_unseen", link->unseen, "number", link->interface, "peer", link->peer,
                  "gone", (int)report->gone[i], "cut", (int)report->cut[i]);
    uint64_t divided, unwatched;
    unseen_leavings(report, i, &divided, &unwatched);
    json_object_set_new(object, "holder", holder_json(&link->holder));
    json_object_set_new(object, "left_divided", json_integer((json_int_t)divided));
    json_object_set_new(object, "left_unwatched", json_integer((json_int_t)unwatched));
    return object ? json_rows_set(object, count_rows, &report->counts[i]) : NULL;
}

const char *hop_report_take(struct hop_report *report, size_t number, const json_t *hop,
                            struct hop_link *link)
{
    const char *qdisc = json_string_value(json_object_get(hop, "qdisc"));
    const char *unseen = json_string_value(json_object_get(hop, "queue_unseen"));
    if (!qdisc || !unseen)
        return qdisc ? "queue_unseen" : "qdisc";
    text_clean(qdisc, false, link->qdisc, sizeof link->qdisc);
    text_clean(unseen, false, link->unseen, sizeof link->unseen);
    link->interface = (int)json_integer_value(json_object_get(hop, "number"));
    link->peer = (int)json_integer_value(json_object_get(hop, "peer"));
    hop_report_take_holder(json_object_get(hop, "holder"), &link->holder);
    report->gone[number] = json_is_true(json_object_get(hop, "gone"));
    report->cut[number] = json_is_true(json_object_get(hop, "cut"));
    return json_rows_read(hop, count_rows, &report->counts[number]);
}

static const struct json_row join_rows[] = {
    JSON_ROW("packets", struct packet_join, packets),
    JSON_ROW("rare", struct packet_join, rare),
    JSON_ROW("repeated", struct packet_join, repeated),
    JSON_ROW("pieces", struct packet_join, pieces),
    JSON_ROW("outside", struct packet_join, outside),
};

json_t *hop_report_json(const struct hop_report *report)
{
    json_t *hops = json_array(), *routes = json_array();
    for (size_t i = 0; i < report->hop_count; i++)
        json_array_append_new(hops, hop_json(report, i));
    for (size_t i = 0; i < report->join->route_count; i++)
        json_array_append_new(routes, route_json(report, &report->join->routes[i]));
    char key[32];
    snprintf(key, sizeof key, "0x%016llx", (unsigned long long)report->flow_key);
    json_t *document = json_pack(
        "{s:s, s:I, s:s, s:I, s:I, s:I, s:I, s:o}", "filter", report->filter, "one_in",
        (json_int_t)report->one_in, "flow_key", key, "duration_ns", (json_int_t)report->duration_ns,
        "records", (json_int_t)report->records, "forgotten", (json_int_t)report->forgotten,
        "translated", (json_int_t)report->translated, "hops", hops);
    if (!document) {
        json_decref(routes);
        return NULL;
    }
    json_rows_set(document, join_rows, report->join);
    json_object_set_new(document, "routes", routes);
    return document;
}
