// SPDX-License-Identifier: MIT
#include "experiments/capsule/hop_machines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_numbers.h"
#include "base/json_rows.h"
#include "base/text.h"
#include "base/units.h"

#define FAR_MARK        "@ssh:"
#define HERE_FROM_THERE FAR_MARK "here.invalid" // to the others; no host has that name (RFC 2606)

// --- which hop is where --------------------------------------------------------------------------

static const char *host_of(const char *address)
{
    const char *at = strrchr(address, '@');
    return at ? at + 1 : address;
}

static int find_machine(struct hop_machines *m, const char *address, const struct hop_reach *reach,
                        size_t *number, struct error *err)
{
    for (*number = 1; *number < m->machine_count; ++*number)
        if (strcmp(m->address[*number], address) == 0)
            return 0;
    if (m->machine_count == MACHINES_MAX)
        return error_set(err, ERROR_INPUT, "--hop: hops of %d other machines at most",
                         FAR_MACHINES_MAX);
    m->address[m->machine_count++] = address;
    return far_hops_plan(&m->far[*number], address, reach->ssh_config, reach->ssh_options,
                         reach->directory, err);
}

static int add_spec(struct hop_machines *m, const struct hop_spec *spec, size_t machine,
                    struct error *err)
{
    struct hop_spec *added = &m->hops[m->hop_count];
    struct hop_spec there = *spec;
    there.machine = (unsigned)machine;
    if (m->hop_count == HOPS_MAX)
        return error_set(err, ERROR_INPUT,
                         "--hop: %d hops at most; an interface without :ingress or :egress is two",
                         HOPS_MAX);
    for (size_t k = 0; k < m->hop_count; k++)
        if (there.direction == m->hops[k].direction && hop_specs_share(&there, &m->hops[k]))
            return error_set(err, ERROR_INPUT, "--hop %s is given twice", m->hops[k].name);
    *added = there;
    if (machine != MACHINE_HERE)
        text_append(added->name, sizeof added->name, "@%s", host_of(m->address[machine]));
    m->hop_count++;
    return 0;
}

int hop_machines_take(struct hop_machines *m, const char *text, const struct hop_reach *reach,
                      struct error *err)
{
    const char *mark = strstr(text, FAR_MARK);
    char where[HOP_NAME_BYTES];
    struct hop_spec specs[2];
    size_t count, machine = MACHINE_HERE;
    int length = mark ? (int)(mark - text) : (int)strlen(text);
    if (snprintf(where, sizeof where, "%.*s", length, text) >= (int)sizeof where)
        return error_set(err, ERROR_INPUT, "--hop: \"%.60s...\" is too long", text);
    m->machine_count = m->machine_count ? m->machine_count : 1;
    int result = hop_spec_parse(where, specs, &count, err);
    if (result == 0 && mark)
        result = find_machine(m, mark + strlen(FAR_MARK), reach, &machine, err);
    for (size_t i = 0; i < count && result == 0; i++)
        result = add_spec(m, &specs[i], machine, err);
    if (result == 0)
        m->texts[m->text_count++] = text;
    return result;
}

// The numbers of a machine's hops, in the order in which it was given them.
static size_t numbers_of(const struct hop_machines *m, size_t machine, uint8_t numbers[HOPS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < m->hop_count; i++)
        if (m->hops[i].machine == machine)
            numbers[count++] = (uint8_t)i;
    return count;
}

size_t hop_machines_here(const struct hop_machines *m, struct hop_spec hops[HOPS_MAX],
                         uint8_t numbers[HOPS_MAX])
{
    size_t count = numbers_of(m, MACHINE_HERE, numbers);
    for (size_t i = 0; i < count; i++)
        hops[i] = m->hops[numbers[i]];
    return count;
}

int hop_machines_carry(struct hop_machines *m, struct error *err)
{
    m->carry = true;
    return hop_specs_carry(m->hops, m->hop_count, err);
}

void hop_machines_leave_others(struct hop_machines *m)
{
    hop_machines_end(m);
    m->machine_count = 1;
}

// Gives a machine its hops; where packets carry, all of the way, as it is seen from there.
static void add_hops(struct hop_machines *m, size_t machine)
{
    struct command_line *arguments = &m->arguments[machine];
    for (size_t i = 0; i < m->text_count; i++) {
        const char *text = m->texts[i], *mark = strstr(text, FAR_MARK);
        bool is_there = mark && strcmp(mark + strlen(FAR_MARK), m->address[machine]) == 0;
        if (is_there)
            command_line_add_option(arguments, "--hop", "%.*s", (int)(mark - text), text);
        else if (m->carry)
            command_line_add_option(arguments, "--hop", "%s%s", text, mark ? "" : HERE_FROM_THERE);
    }
}

// --- while packets are stamped -------------------------------------------------------------------

int hop_machines_start(struct hop_machines *m, const struct command_line *common, const char *out,
                       struct error *err)
{
    int result = 0;
    for (size_t i = 1; i < m->machine_count && result == 0; i++) {
        char folder[4096];
        add_hops(m, i);
        for (const char *const *word = common->words.items; *word; word++)
            command_line_add_copy(&m->arguments[i], *word);
        if (out &&
            snprintf(folder, sizeof folder, "%s/%s", out, m->address[i]) >= (int)sizeof folder)
            return error_set(err, ERROR_INPUT, "--out: %s is too long", out);
        result = far_hops_start(&m->far[i], &m->arguments[i], out ? folder : NULL, err);
    }
    return result;
}

int hop_machines_check(struct hop_machines *m, struct error *err)
{
    int result = 0;
    for (size_t i = 1; i < m->machine_count && result == 0; i++)
        result = far_hops_check(&m->far[i], err);
    return result;
}

int hop_machines_finish(struct hop_machines *m, struct error *err)
{
    int result = 0;
    for (size_t i = 1; i < m->machine_count && result == 0; i++)
        result = far_hops_finish(&m->far[i], err);
    return result;
}

int hop_machines_begin(struct hop_machines *m, uint32_t *room_bytes, struct error *err)
{
    char line[64];
    int result = 0;
    for (size_t i = 1; i < m->machine_count; i++) {
        if (m->far[i].room_bytes == 0)
            return error_set(err, ERROR_FAILED, "%s does not say how long packets may be there",
                             m->far[i].far.what);
        if (m->far[i].room_bytes < *room_bytes)
            *room_bytes = m->far[i].room_bytes;
    }
    snprintf(line, sizeof line, "begin %u", *room_bytes);
    for (size_t i = 1; i < m->machine_count && result == 0; i++)
        result = far_hops_tell(&m->far[i], line, err);
    return result;
}

int hop_machines_begin_no_more(struct hop_machines *m, struct error *err)
{
    int result = 0;
    for (size_t i = 1; i < m->machine_count && result == 0; i++)
        result = far_hops_tell(&m->far[i], "begin no more", err);
    return result;
}

int hop_machines_report(struct hop_machines *m, struct hop_report *report, struct error *err)
{
    for (size_t i = 1; i < m->machine_count; i++) {
        uint8_t numbers[HOPS_MAX];
        size_t count = numbers_of(m, i, numbers);
        const json_t *hops = json_object_get(m->far[i].document, "hops");
        report->forgotten += m->far[i].lost;
        report->translated +=
            (uint64_t)json_integer_value(json_object_get(m->far[i].document, "translated"));
        if (json_array_size(hops) != (m->carry ? m->hop_count : count))
            return error_set(err, ERROR_INPUT, "%s: its capsule.json has not the hops asked for",
                             m->far[i].far.what);
        for (size_t k = 0; k < count; k++) {
            report->machine[numbers[k]] = m->address[i];
            report->link[numbers[k]] = &m->links[numbers[k]];
            const json_t *hop = json_array_get(hops, m->carry ? numbers[k] : k);
            const char *wrong = hop_report_take(report, numbers[k], hop, &m->links[numbers[k]]);
            if (wrong)
                return error_set(err, ERROR_INPUT, "%s: its capsule.json has no proper `%s`",
                                 m->far[i].far.what, wrong);
        }
    }
    return 0;
}

// --- one time for all ----------------------------------------------------------------------------

struct machine_time {
    const struct clock_map *map;
    struct hop_recording recording;
};

static struct link_trip trip_near(const struct hop_machines *m, size_t machine, int64_t at_ns)
{
    struct link_trip best = {.at_ns = at_ns};
    const struct far_hops *far = &m->far[machine];
    for (size_t i = 0; i < far->trips.count; i++) {
        const struct link_trip *trip = &far->trips.items[i];
        if (i == 0 || llabs(trip->at_ns - at_ns) < llabs(best.at_ns - at_ns))
            best = *trip;
    }
    return best;
}

// A round trip between the reference and a machine, by way of this one.
static struct exchange exchange_of(const struct hop_machines *m, const struct machine_time *times,
                                   const struct link_trip *trip, size_t machine)
{
    struct link_trip reference = trip_near(m, m->reference, trip->at_ns);
    int64_t apart_ns = llabs(trip->at_ns - reference.at_ns);
    int64_t bound_ns = (int64_t)(trip->bound_ns + reference.bound_ns) +
                       (int64_t)((double)apart_ns * CLOCK_RELATION_RATE) + 1;
    int64_t here_ns = clock_map_to_host(times[m->reference].map, HOST_CLOCK_MONOTONIC,
                                        (uint64_t)(trip->at_ns + reference.offset_ns));
    int64_t there_ns = clock_map_to_host(times[machine].map, HOST_CLOCK_MONOTONIC,
                                         (uint64_t)(trip->at_ns + trip->offset_ns));
    return (struct exchange){here_ns - bound_ns, there_ns, there_ns, here_ns + bound_ns};
}

static int relate(struct hop_machines *m, struct machine_time *times, size_t machine,
                  const bool is_ingress[HOPS_MAX], struct error *err)
{
    const struct far_hops *far = &m->far[machine];
    struct exchange *trips = malloc((far->trips.count + 1) * sizeof *trips);
    if (!trips)
        return error_set(err, ERROR_FAILED, "out of memory");
    for (size_t i = 0; i < far->trips.count; i++)
        trips[i] = exchange_of(m, times, &far->trips.items[i], machine);
    int result = hop_clocks_join(&times[m->reference].recording, &times[machine].recording,
                                 is_ingress, trips, far->trips.count, &m->clock[machine], err);
    free(trips);
    return result;
}

// A machine's records into its host time. Returns how far off one may be.
static double to_host_time(const struct clock_map *map, struct hop_record_array *records)
{
    double error_ns = 0;
    for (size_t i = 0; i < records->count; i++) {
        uint64_t *time = &records->items[i].time;
        error_ns = fmax(error_ns, clock_map_error_ns(map, HOST_CLOCK_MONOTONIC, *time));
        *time = (uint64_t)clock_map_to_host(map, HOST_CLOCK_MONOTONIC, *time);
    }
    return error_ns;
}

static void number_hops(const struct hop_machines *m, size_t machine,
                        struct hop_record_array *records)
{
    uint8_t numbers[HOPS_MAX];
    size_t count = numbers_of(m, machine, numbers), kept = 0;
    for (size_t i = 0; i < records->count; i++) {
        struct hop_record record = records->items[i];
        if (record.hop >= count)
            continue; // of no hop: damaged
        record.hop = numbers[record.hop];
        records->items[kept++] = record;
    }
    records->count = kept;
}

// Where packets carry, the machine at the end of their way recorded the stamps of all: each goes to
// the machine whose clock it is of. Packets are numbered by the machine that recorded them.
static int sort_by_clock(struct hop_machines *m, struct hop_record_array *here, struct error *err)
{
    struct hop_record_array sorted[MACHINES_MAX] = {{.items = NULL}};
    int failed = 0;
    for (size_t i = 0; i < m->machine_count; i++) {
        struct hop_record_array *records = i == MACHINE_HERE ? here : &m->far[i].records;
        for (size_t k = 0; k < records->count && !failed; k++) {
            struct hop_record record = records->items[k];
            if (record.hop >= m->hop_count)
                continue; // of no hop: damaged
            record.datagram |= (uint64_t)i << 56;
            failed = array_push(&sorted[m->hops[record.hop].machine], record);
        }
        array_free(records);
    }
    *here = sorted[MACHINE_HERE];
    for (size_t i = 1; i < m->machine_count; i++)
        m->far[i].records = sorted[i];
    return failed ? error_set(err, ERROR_FAILED, "no memory to join the machines' records") : 0;
}

static int join_machines(struct hop_machines *m, struct machine_time times[MACHINES_MAX],
                         struct hop_record_array *records, struct error *err)
{
    bool is_ingress[HOPS_MAX] = {false};
    uint8_t numbers[HOPS_MAX];
    int result = m->carry ? sort_by_clock(m, records, err) : 0;
    for (size_t i = 0; i < m->hop_count; i++)
        is_ingress[i] = m->hops[i].direction == HOP_INGRESS;
    times[MACHINE_HERE].recording = (struct hop_recording){
        records->items, records->count, to_host_time(times[MACHINE_HERE].map, records)};
    for (size_t i = 1; i < m->machine_count; i++) {
        struct far_hops *far = &m->far[i];
        if (!m->carry)
            number_hops(m, i, &far->records);
        times[i].map = far->clocks;
        times[i].recording = (struct hop_recording){far->records.items, far->records.count,
                                                    to_host_time(far->clocks, &far->records)};
    }
    m->reference = numbers_of(m, MACHINE_HERE, numbers) ? MACHINE_HERE : 1;
    for (size_t i = 1; i < m->machine_count && result == 0; i++)
        if (i != m->reference)
            result = relate(m, times, i, is_ingress, err);
    for (size_t i = 1; i < m->machine_count; i++)
        for (size_t k = 0; k < m->far[i].records.count && result == 0; k++)
            if (array_push(records, m->far[i].records.items[k]) < 0)
                result = error_set(err, ERROR_FAILED, "no memory to join the machines' records");
    return result;
}

int hop_machines_join(struct hop_machines *m, const struct clock_recorder *clocks,
                      struct hop_record_array *records, uint64_t *begin_ns, uint64_t *end_ns,
                      struct error *err)
{
    struct machine_time times[MACHINES_MAX] = {{.map = NULL}};
    struct clock_map *here;
    uint64_t *const bounds[] = {begin_ns, end_ns};
    int result = clock_map_build(clocks->readings, clocks->knots * (HOST_CLOCKS - 1), &here, err);
    if (result < 0)
        return result;
    times[MACHINE_HERE].map = here;
    result = join_machines(m, times, records, err);
    for (int i = 0; i < 2; i++) {
        struct link_trip trip = trip_near(m, m->reference, (int64_t)*bounds[i]);
        *bounds[i] = (uint64_t)clock_map_to_host(times[m->reference].map, HOST_CLOCK_MONOTONIC,
                                                 *bounds[i] + (uint64_t)trip.offset_ns);
    }
    clock_map_free(here);
    return result;
}

// --- what is said of it --------------------------------------------------------------------------

// "12.3 us"; "nothing known": unbounded.
static const char *bound_text(double bound_ns, char text[32])
{
    return isfinite(bound_ns) ? units_format_ns(bound_ns, text, 32) : "an unknown time";
}

static void print_clock(const struct hop_machines *m, size_t machine, FILE *out)
{
    const struct hop_clock *clock = &m->clock[machine];
    char text[3][32];
    fprintf(out,
            "  The clock of %s is related within %s (p99): by %s round trips of the link within "
            "%s, by ",
            m->address[machine], bound_text(clock->bound_p99_ns, text[0]), TEXT_COUNT(clock->trips),
            bound_text(clock->link_bound_p99_ns, text[1]));
    fprintf(out, "%s packets within %s; %.2f ppm.\n", TEXT_COUNT(clock->crossings),
            bound_text(clock->packet_bound_p99_ns, text[2]), clock->rate * 1e6);
    if (clock->compared)
        fprintf(out, "  The two differ by %s (median), %s (max).\n",
                bound_text(clock->difference_p50_ns, text[0]),
                bound_text(clock->difference_max_ns, text[1]));
    if (clock->disagreeing)
        fprintf(out,
                "  At %s packets they differ by more than both bounds: one of them is wrong.\n",
                TEXT_COUNT(clock->disagreeing));
    if (clock->backwards)
        fprintf(out,
                "  %s packets were at the next machine before they left, by more than the bound.\n",
                TEXT_COUNT(clock->backwards));
    if (clock->unrelated)
        fprintf(out, "  %s records are of a time at which the clocks are not related.\n",
                TEXT_COUNT(clock->unrelated));
}

void hop_machines_print(const struct hop_machines *m, FILE *out)
{
    for (size_t i = 1; i < m->machine_count; i++)
        if (i != m->reference)
            print_clock(m, i, out);
}

static const struct json_row clock_rows[] = {
    JSON_ROW("trips", struct hop_clock, trips),
    JSON_ROW("crossings", struct hop_clock, crossings),
    JSON_ROW("bound_p99_ns", struct hop_clock, bound_p99_ns),
    JSON_ROW("link_bound_p99_ns", struct hop_clock, link_bound_p99_ns),
    JSON_ROW("packet_bound_p99_ns", struct hop_clock, packet_bound_p99_ns),
    JSON_ROW("rate", struct hop_clock, rate),
    JSON_ROW("compared", struct hop_clock, compared),
    JSON_ROW("difference_p50_ns", struct hop_clock, difference_p50_ns),
    JSON_ROW("difference_max_ns", struct hop_clock, difference_max_ns),
    JSON_ROW("disagreeing", struct hop_clock, disagreeing),
    JSON_ROW("backwards", struct hop_clock, backwards),
    JSON_ROW("unrelated", struct hop_clock, unrelated),
};

json_t *hop_machines_json(const struct hop_machines *m)
{
    json_t *array = json_array();
    for (size_t i = 1; i < m->machine_count; i++)
        if (i != m->reference)
            json_array_append_new(
                array, json_rows_set(json_pack("{s:s, s:I}", "machine", m->address[i], "offset_ns",
                                               (json_int_t)m->clock[i].offset_ns),
                                     clock_rows, &m->clock[i]));
    return array;
}

void hop_machines_end(struct hop_machines *m)
{
    for (size_t i = 1; i < m->machine_count; i++) {
        far_hops_end(&m->far[i]);
        command_line_free(&m->arguments[i]);
    }
}
