// SPDX-License-Identifier: MIT
#include "analysis/run/run_hops.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/decomposition/components.h"
#include "analysis/run/input/run_path.h"
#include "base/input_file.h"
#include "base/json_numbers.h"
#include "base/log_file.h"
#include "base/quantile.h"
#include "base/text.h"
#include "profiler/capsule/hop_report.h"

const double hop_quantiles[HOP_QUANTILES] = {0.5, 0.9, 0.99, 0.999, 1};
const char *const hop_quantile_names[HOP_QUANTILES] = {"p50", "p90", "p99", "p99.9", "max"};

static const char *const way_names[HOP_WAYS] = {"to server", "to client"};

// --- reading -------------------------------------------------------------------------------------

struct record_array ARRAY_OF(struct hop_record);

enum { HOP_ELSEWHERE = UINT8_MAX };

// A machine's part of a run's folder.
struct machine_files {
    const char *folder; // "server"
    const char *host;
    struct log_reader log;
    bool is_open;
    // The hops in its capsule.json: which of the machine's own each is, or HOP_ELSEWHERE, where
    // packets carry their stamps from machine to machine.
    uint8_t own[HOPS_MAX];
    size_t listed;
    struct hop_machine *machine;
    struct record_array stamps; // that are of its own hops, whoever recorded them
};

// Takes "to0:ingress@switch" as "to0@switch", and "eth0:ingress" as that of the host. Another
// machine may have written them.
static void take_place(const char *told, const char *host, const json_t *hop, bool at_client,
                       struct hop_place *out)
{
    char name[2 * HOP_NAME_BYTES];
    text_clean(told, false, name, sizeof name);
    size_t interface = strcspn(name, ":@");
    const char *space = strchr(name, '@');
    const char *direction = json_string_value(json_object_get(hop, "direction"));
    const char *qdisc = json_string_value(json_object_get(hop, "qdisc"));
    snprintf(out->name, sizeof out->name, "%.*s", (int)interface, name);
    if (space || host[0])
        text_append(out->name, sizeof out->name, "@%s", space ? space + 1 : host);
    out->is_ingress = direction && strcmp(direction, hop_direction_name(HOP_INGRESS)) == 0;
    out->number = json_integer_value(json_object_get(hop, "number"));
    out->peer = json_integer_value(json_object_get(hop, "peer"));
    out->at_client = at_client;
    hop_report_take_holder(json_object_get(hop, "holder"), &out->holder);
    text_clean(qdisc && direction ? qdisc : "", false, out->qdisc, sizeof out->qdisc);
}

static int damaged(struct run_hops *out, const char *folder, const char *what)
{
    snprintf(out->problem, sizeof out->problem, "%s/capsule.json has no %s", folder, what);
    return -1;
}

static uint64_t left_alone_at(const json_t *hop)
{
    static const char *const counts[] = {"no_room", "bundled", "sent_again", "fragments",
                                         "not_stamped"};
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        sum += (uint64_t)json_integer_value(json_object_get(hop, counts[i]));
    return sum;
}

// What of capsule.json the records cannot be understood without. -1: it lacks some of it.
static int take_document(const json_t *document, struct machine_files *files, struct run_hops *out,
                         struct hop_machine *machine)
{
    const char *key = json_string_value(json_object_get(document, "flow_key"));
    const json_t *hops = json_object_get(document, "hops"), *hop;
    const json_int_t one_in = json_integer_value(json_object_get(document, "one_in"));
    bool looks = true;
    char *end = NULL;
    size_t i;
    errno = 0;
    machine->flow_key = key ? strtoull(key, &end, 16) : 0;
    if (!key || end == key || *end || errno)
        return damaged(out, files->folder, "flow_key");
    if (json_array_size(hops) == 0 || json_array_size(hops) > HOPS_MAX)
        return damaged(out, files->folder, "list of hops");
    if (one_in < 1 || one_in > UINT32_MAX)
        return damaged(out, files->folder, "one_in");
    machine->first_hop = out->hop_count;
    json_array_foreach((json_t *)(uintptr_t)hops, i, hop)
    {
        const char *name = json_string_value(json_object_get(hop, "name"));
        const char *role = json_string_value(json_object_get(hop, "role"));
        const char *elsewhere = json_string_value(json_object_get(hop, "machine"));
        if (!name || !name[0] || !role)
            return damaged(out, files->folder, "name or role of a hop");
        looks &= strcmp(role, hop_role_name(HOP_LOOKS)) == 0;
        files->own[files->listed++] = HOP_ELSEWHERE;
        if (elsewhere && elsewhere[0])
            continue;
        if (out->hop_count == HOPS_MAX)
            return damaged(out, files->folder, "list of hops");
        files->own[files->listed - 1] = (uint8_t)machine->hop_count++;
        if (strcmp(role, hop_role_name(HOP_BEGINS)) == 0)
            out->left_alone += left_alone_at(hop);
        take_place(name, files->host, hop, machine->is_client, &out->places[out->hop_count++]);
    }
    machine->one_in =
        looks ? (uint32_t)one_in : 1; // that a packet carries stamps says that it is sampled
    return 0;
}

static bool file_path(const struct run_hops_input *in, const struct machine_files *files,
                      const char *file, char path[RUN_FILE_PATH_BYTES])
{
    char name[32];
    snprintf(name, sizeof name, "%s/%s", files->folder, file);
    run_path(path, in->run_dir, name);
    return access(path, F_OK) == 0;
}

static int read_document(const struct run_hops_input *in, struct machine_files *files,
                         struct run_hops *out, struct hop_machine *machine)
{
    char path[RUN_FILE_PATH_BYTES];
    json_error_t problem;
    file_path(in, files, "capsule.json", path);
    json_t *document = input_json(path, &problem);
    int result = document ? take_document(document, files, out, machine) : -1;
    if (!document)
        snprintf(out->problem, sizeof out->problem, "%s/capsule.json cannot be read: %.300s",
                 files->folder, problem.text);
    json_decref(document);
    return result;
}

// Which of the run's clocks the records have, by the boot. -1: none.
static int take_clock(const struct run_hops_input *in, const struct machine_files *files,
                      struct run_hops *out, struct hop_machine *machine)
{
    const struct log_header *header = &files->log.header;
    machine->is_client = in->apart && strcmp(files->folder, "client") == 0;
    const char *boot = machine->is_client ? in->client_boot_id : in->boot_id;
    machine->clock = machine->is_client ? in->client_clock : in->clock;
    if (memcmp(header->boot_id, boot, sizeof header->boot_id) == 0)
        return 0;
    snprintf(out->problem, sizeof out->problem,
             "%s/hops.tlog is of another boot than the clock.tlog beside it", files->folder);
    return -1;
}

// Whether the records are of the time of the clock log beside them. -1: of another run.
static int check_time(const struct run_hops_input *in, const struct machine_files *files,
                      struct run_hops *out, const struct hop_machine *machine)
{
    const struct clock_map *map = machine->is_client ? in->client_clock_map : in->clock_map;
    const struct hop_record *records = files->log.records;
    uint64_t first = UINT64_MAX, last = 0;
    for (size_t i = 0; i < files->log.count; i++) {
        first = records[i].time < first ? records[i].time : first;
        last = records[i].time > last ? records[i].time : last;
    }
    const int64_t apart =
        files->log.count ? clock_map_apart_ns(map, HOST_CLOCK_MONOTONIC, first, last) : 0;
    if (apart == 0)
        return 0;
    snprintf(out->problem, sizeof out->problem,
             "%s/hops.tlog is of another run than the clock.tlog beside it, all of it at least %s "
             "%s that: copy both from where they were",
             files->folder, TEXT_INSTANT((double)llabs(apart)), apart < 0 ? "before" : "after");
    return -1;
}

// Adds a machine's hops, if it has any. -1: it has, and they cannot be read.
static int read_machine(const struct run_hops_input *in, struct machine_files *files,
                        struct run_hops *out, struct hop_machine *machines, size_t *count)
{
    char path[RUN_FILE_PATH_BYTES];
    struct error unusable = {0};
    struct hop_machine *machine = &machines[*count];
    *machine = (struct hop_machine){.records = NULL};
    if (!file_path(in, files, "hops.tlog", path)) {
        if (!file_path(in, files, "capsule.json", path))
            return 0;
        snprintf(out->problem, sizeof out->problem,
                 "%s/hops.tlog is missing, though %s/capsule.json is there: copy it from where it "
                 "was",
                 files->folder, files->folder);
        return -1;
    }
    if (log_reader_open(&files->log, path, LOG_HOPS, HOP_LOG_VERSION, sizeof(struct hop_record),
                        &unusable) < 0) {
        snprintf(out->problem, sizeof out->problem, "%.390s", unusable.text);
        return -1;
    }
    files->is_open = true;
    if (take_clock(in, files, out, machine) < 0 || check_time(in, files, out, machine) < 0 ||
        read_document(in, files, out, machine) < 0)
        return -1;
    files->machine = machine;
    machine->records = files->log.records;
    machine->record_count = files->log.count;
    out->records += files->log.count;
    out->dropped += files->log.header.dropped;
    ++*count;
    return 0;
}

// Whose hop has that number of the way: the machine's own number of it. NULL: nobody's.
static struct machine_files *owner_of(struct machine_files files[HOP_MACHINES], size_t hop)
{
    for (size_t i = 0; i < HOP_MACHINES; i++)
        if (hop < files[i].listed && files[i].own[hop] != HOP_ELSEWHERE)
            return &files[i];
    return NULL;
}

static bool is_carried_over(const struct machine_files files[HOP_MACHINES])
{
    bool over = false;
    for (size_t i = 0; i < HOP_MACHINES; i++)
        for (size_t hop = 0; hop < files[i].listed; hop++)
            over |= files[i].own[hop] == HOP_ELSEWHERE;
    return over;
}

static int by_time(const void *a, const void *b)
{
    const struct hop_record *x = a, *y = b;
    return order_of(x->time, y->time);
}

// Where packets carry from machine to machine, the one at the end of their way recorded the stamps
// of all: each goes to the machine whose clock it is of. -1: one machine's are not there, which the
// problem says, or there is no memory.
static int sort_by_clock(struct machine_files files[HOP_MACHINES], struct run_hops *out)
{
    int result = 0;
    for (size_t i = 0; i < HOP_MACHINES; i++)
        for (size_t hop = 0; hop < files[i].listed; hop++)
            if (!owner_of(files, hop)) {
                snprintf(out->problem, sizeof out->problem,
                         "%s/capsule.json names hops of another machine, and what that recorded "
                         "is not there",
                         files[i].folder);
                return -1;
            }
    for (size_t i = 0; i < HOP_MACHINES; i++)
        for (size_t k = 0; files[i].is_open && k < files[i].log.count && result == 0; k++) {
            struct hop_record record = ((const struct hop_record *)files[i].log.records)[k];
            struct machine_files *owner = owner_of(files, record.hop);
            record.hop = owner ? owner->own[record.hop] : HOP_ELSEWHERE; // which counts as strange
            result = array_push(owner ? &owner->stamps : &files[i].stamps, record);
        }
    for (size_t i = 0; i < HOP_MACHINES && files[i].machine; i++) {
        array_sort(&files[i].stamps, by_time);
        files[i].machine->records = files[i].stamps.items;
        files[i].machine->record_count = files[i].stamps.count;
    }
    return result;
}

// --- the table -----------------------------------------------------------------------------------

struct values ARRAY_OF(double);

// What the messages of one way say of its parts: links by from and to, the queues that they begin
// with, and the three others.
enum {
    LINKS = HOPS_MAX * HOPS_MAX,
    LINKS_AND_QUEUES = 2 * LINKS,
    BEFORE = LINKS_AND_QUEUES,
    BEHIND,
    WHOLE,
    PARTS_OF_WAY
};

struct way_table {
    struct values parts[PARTS_OF_WAY];
    uint64_t before[HOPS_MAX][HOPS_MAX]; // messages that passed the first before the second
};

static int add_part(struct way_table *table, size_t part, int64_t begin_ns, int64_t end_ns)
{
    return array_push(&table->parts[part], (double)(end_ns - begin_ns));
}

// The hops that a message passed, a bit each, and another one that it came to behind them.
static void add_order(struct way_table *table, uint32_t passed, uint8_t next)
{
    for (uint8_t hop = 0; hop < HOPS_MAX; hop++)
        if (hop != next && passed >> hop & 1)
            table->before[hop][next]++;
}

// Adds a message that some hops saw on this way.
static int add_message(struct way_table *table, const struct run_hops *hops,
                       const struct lifetime *lives, uint64_t request, enum hop_way way)
{
    size_t count;
    int64_t begin, end, at;
    const struct hop_stay *stays = hop_stays_of(&hops->stays, request, &count);
    bool any = false;
    uint32_t passed = 0;
    if (!hop_way_of(&hops->stays, lives, request, way, &begin, &end))
        return 0;
    at = begin;
    for (size_t i = 0; i < count; i++) {
        const struct hop_stay *stay = &stays[i];
        if (hop_stay_way(stay, &lives[request]) != way)
            continue;
        if (!any && add_part(table, BEFORE, at, stay->begin_ns) < 0)
            return -1;
        passed |= 1u << stay->from;
        if (stay->part != STAY_IN_QUEUE)
            add_order(table, passed, stay->to);
        any = true;
        at = stay->end_ns;
        size_t part =
            stay->from * (size_t)HOPS_MAX + stay->to + (stay->part == STAY_IN_QUEUE ? LINKS : 0);
        if (add_part(table, part, stay->begin_ns, stay->end_ns) < 0)
            return -1;
    }
    if (any && (add_part(table, BEHIND, at, end) < 0 || add_part(table, WHOLE, begin, end) < 0))
        return -1;
    return 0;
}

struct placed_row {
    struct hop_row row;
    unsigned place; // on the way
};
struct placed_row_array ARRAY_OF(struct placed_row);

static int by_place(const void *a, const void *b)
{
    const struct placed_row *x = a, *y = b;
    return order_of(x->place, y->place);
}

// How many other hops most messages passed before this one. When it was passed is no measure: a
// queue is known of some messages only, and those may be the ones that were late there.
static unsigned place_of_hop(const struct way_table *table, size_t hop)
{
    unsigned place = 0;
    for (size_t other = 0; other < HOPS_MAX; other++)
        place += table->before[other][hop] > table->before[hop][other];
    return place;
}

// By the hop that a part begins with, then the queue there, then where it ends.
static unsigned place_of_part(const struct way_table *table, size_t part)
{
    if (part == BEFORE || part == BEHIND)
        return part == BEFORE ? 0 : UINT_MAX;
    size_t from = part % LINKS / HOPS_MAX, to = part % HOPS_MAX;
    return 1 + place_of_hop(table, from) * 2 * HOPS_MAX + (part < LINKS ? HOPS_MAX : 0) +
           place_of_hop(table, to);
}

static struct hop_row row_of(const struct run_hops *hops, size_t part, enum hop_way way,
                             struct values *values)
{
    struct hop_row row = {.way = way, .from = HOPS_MAX, .to = HOPS_MAX, .messages = values->count};
    if (part < LINKS_AND_QUEUES) {
        row.from = (uint8_t)(part % LINKS / HOPS_MAX);
        row.to = (uint8_t)(part % HOPS_MAX);
        row.in_queue = part >= LINKS;
    }
    if (row.in_queue)
        snprintf(row.name, sizeof row.name, "in the queue of %s (%s)", hops->places[row.from].name,
                 hops->places[row.from].qdisc);
    else if (part < LINKS)
        snprintf(row.name, sizeof row.name, "%s -> %s", hops->places[row.from].name,
                 hops->places[row.to].name);
    else
        snprintf(row.name, sizeof row.name, "%s%s",
                 part == BEFORE   ? "before the first hop"
                 : part == BEHIND ? "behind the last hop"
                                  : "all of the way ",
                 part == WHOLE ? way_names[way] : "");
    quantile_sort(values->items, values->count);
    for (size_t i = 0; i < values->count; i++)
        row.mean_ns += values->items[i] / (double)values->count;
    for (size_t i = 0; i < HOP_QUANTILES; i++)
        row.value_ns[i] =
            quantile_if_seen(quantile_sorted(values->items, values->count, hop_quantiles[i]),
                             values->count, hop_quantiles[i]);
    return row;
}

static int add_rows(struct run_hops *hops, struct way_table *table, enum hop_way way)
{
    struct placed_row_array rows = {0};
    int result = 0;
    for (size_t part = 0; part < PARTS_OF_WAY && result == 0; part++) {
        struct values *values = &table->parts[part];
        if (values->count == 0)
            continue;
        struct placed_row one = {.row = row_of(hops, part, way, values)};
        if (part == WHOLE)
            continue;
        one.place = place_of_part(table, part);
        result = array_push(&rows, one);
    }
    array_sort(&rows, by_place);
    for (size_t i = 0; i < rows.count && result == 0; i++)
        result = array_push(&hops->rows, rows.items[i].row);
    if (result == 0 && table->parts[WHOLE].count)
        result = array_push(&hops->rows, row_of(hops, WHOLE, way, &table->parts[WHOLE]));
    array_free(&rows);
    return result;
}

static int make_rows(struct run_hops *hops, const struct lifetime *lives, size_t count)
{
    int result = 0;
    for (int way = 0; way < HOP_WAYS && result == 0; way++) {
        struct way_table *table = calloc(1, sizeof *table);
        result = table ? 0 : -1;
        for (size_t i = 0; i < count && result == 0; i++)
            result = add_message(table, hops, lives, i, (enum hop_way)way);
        if (result == 0)
            result = add_rows(hops, table, (enum hop_way)way);
        for (size_t part = 0; table && part < PARTS_OF_WAY; part++)
            array_free(&table->parts[part]);
        free(table);
    }
    return result;
}

static int find_all(const struct hops_input *in, struct run_hops *out)
{
    struct hop_sightings sightings;
    int result = hop_sightings_build(in, &sightings);
    out->strange = sightings.strange;
    if (result == 0)
        result = hop_stays_find(&sightings, &out->stays);
    if (result == 0)
        result = hop_losses_find(&sightings, &out->stays.order, &out->losses);
    hop_sightings_free(&sightings);
    return result;
}

int run_hops_add(const struct run_hops_input *input, struct run_hops *out, struct error *err)
{
    struct machine_files files[HOP_MACHINES] = {{.folder = "server", .host = ""},
                                                {.folder = "client", .host = ""}};
    struct hop_machine machines[HOP_MACHINES];
    struct hops_input in = input->requests;
    char path[RUN_FILE_PATH_BYTES];
    int result = 0, unread = 0;
    *out = (struct run_hops){.present = false};
    in.machines = machines;
    if (file_path(input, &files[1], "hops.tlog", path)) { // names of either may be the other's
        files[0].host = input->server;
        files[1].host = input->client;
    }
    for (size_t i = 0; i < HOP_MACHINES && unread == 0; i++)
        unread = read_machine(input, &files[i], out, machines, &in.machine_count);
    if (unread == 0 && is_carried_over(files)) {
        result = sort_by_clock(files, out);
        unread = out->problem[0] ? -1 : 0;
        result = unread ? 0 : result;
    }
    if (unread == 0 && result == 0 && in.machine_count) {
        out->present = true;
        in.hop_count = out->hop_count;
        in.places = out->places;
        result = find_all(&in, out);
        if (result == 0)
            result = make_rows(out, in.lives, in.life_count);
    }
    for (size_t i = 0; i < HOP_MACHINES; i++) {
        array_free(&files[i].stamps);
        if (files[i].is_open)
            log_reader_close(&files[i].log);
    }
    return result < 0 ? error_set(err, ERROR_FAILED, "no memory for %s records of hops",
                                  TEXT_COUNT(out->records))
                      : 0;
}

void run_hops_free(struct run_hops *hops)
{
    hop_stays_free(&hops->stays);
    hop_losses_free(&hops->losses);
    array_free(&hops->rows);
}

// --- words ---------------------------------------------------------------------------------------

const char *run_hops_lack(const struct run_hops *hops, char out[RUN_HOPS_WORDS])
{
    char count[32];
    out[0] = '\0';
    if (hops->problem[0])
        text_append(out, RUN_HOPS_WORDS, "the network is not divided by hops: %.400s",
                    hops->problem);
    if (!hops->present)
        return out;
    uint64_t there = hops->stays.whole - hops->stays.divided[WAY_TO_SERVER];
    uint64_t back = hops->stays.whole - hops->stays.divided[WAY_TO_CLIENT];
    if (there)
        text_append(out, RUN_HOPS_WORDS,
                    "on the way to the server no hop has stamps of %s request%s",
                    text_count(there, count), there == 1 ? "" : "s");
    if (back)
        text_append(out, RUN_HOPS_WORDS, "%s no hop has stamps of %s repl%s",
                    there ? " and on the way back" : "on the way back", text_count(back, count),
                    back == 1 ? "y" : "ies");
    if (out[0] && hops->left_alone)
        text_append(out, RUN_HOPS_WORDS, ": %s packet%s could not carry any",
                    text_count(hops->left_alone, count), hops->left_alone == 1 ? "" : "s");
    if (hops->dropped)
        text_append(out, RUN_HOPS_WORDS, "%s%s records of hops were lost", out[0] ? ", " : "",
                    text_count(hops->dropped, count));
    if (hops->strange)
        text_append(out, RUN_HOPS_WORDS, "%s%s records are of no hop", out[0] ? ", " : "",
                    text_count(hops->strange, count));
    if (hops->stays.backwards)
        text_append(out, RUN_HOPS_WORDS,
                    "%s%s packets are at the next machine before they left the other, by more than "
                    "the clocks' error",
                    out[0] ? ", " : "", text_count(hops->stays.backwards, count));
    if (hops->stays.clock.disagreeing)
        text_append(out, RUN_HOPS_WORDS,
                    "%sat %s requests packets and requests say different things of the two "
                    "machines' clocks",
                    out[0] ? ", " : "", text_count(hops->stays.clock.disagreeing, count));
    return out;
}

const char *run_hops_loss_words(const struct run_hops *hops, const struct hop_loss *loss,
                                char out[HOP_LOSS_WORDS])
{
    const char *after = hops->places[loss->after].name;
    if (loss->before < HOPS_MAX)
        snprintf(out, HOP_LOSS_WORDS, "lost between %s and %s", after,
                 hops->places[loss->before].name);
    else
        snprintf(out, HOP_LOSS_WORDS, "last seen at %s, on the way %s", after,
                 loss->way == WAY_TO_SERVER ? "to the server" : "to the client");
    return out;
}

static json_t *losses_json(const struct run_hops *hops)
{
    json_t *all = json_array();
    for (size_t i = 0; i < hops->losses.places.count; i++) {
        const struct hop_loss *loss = &hops->losses.places.items[i];
        const char *before = loss->before < HOPS_MAX ? hops->places[loss->before].name : NULL;
        json_array_append_new(all, json_pack("{s:s, s:s, s:s?, s:I}", "way", way_names[loss->way],
                                             "after", hops->places[loss->after].name, "before",
                                             before, "requests", (json_int_t)loss->requests));
    }
    return all;
}

static json_t *clock_json(const struct packet_clock *clock)
{
    if (clock->exchanges == 0)
        return json_null();
    return json_pack(
        "{s:I, s:I, s:f, s:o, s:I, s:f, s:f, s:I}", "exchanges", (json_int_t)clock->exchanges,
        "offset_ns", (json_int_t)clock->offset_ns, "rate_ppm", clock->rate * 1e6, "bound_p99_us",
        json_number_or_null(clock->bound_p99_ns / 1000), "compared", (json_int_t)clock->compared,
        "difference_p50_us", clock->difference_p50_ns / 1000, "difference_max_us",
        clock->difference_max_ns / 1000, "disagreeing", (json_int_t)clock->disagreeing);
}

const char *run_hops_wait(const struct run_hops *hops, const struct hop_row *row,
                          const struct cause *cause)
{
    return row->from < HOPS_MAX && row->to < HOPS_MAX && !row->in_queue
               ? component_hop_wait(cause->name, &hops->places[row->from], &hops->places[row->to])
               : NULL;
}

static json_t *waits_json(const struct run_hops *hops, const struct hop_row *row,
                          const struct diagnosis *diagnosis)
{
    json_t *all = json_array();
    for (size_t i = 0; diagnosis && i < diagnosis->causes.count; i++) {
        const struct cause *cause = &diagnosis->causes.items[i];
        const char *wait = run_hops_wait(hops, row, cause);
        if (wait)
            json_array_append_new(all, json_pack("{s:s, s:I, s:o}", "for", wait, "messages",
                                                 (json_int_t)cause->messages, "total_us",
                                                 json_number_or_null(cause->total_ns / 1000)));
    }
    return all;
}

json_t *run_hops_json(const struct run_hops *hops, const struct diagnosis *diagnosis)
{
    if (!hops->present && !hops->problem[0])
        return json_null();
    json_t *rows = json_array();
    for (size_t i = 0; i < hops->rows.count; i++) {
        const struct hop_row *row = &hops->rows.items[i];
        json_t *one = json_pack("{s:s, s:s, s:I, s:o}", "way", way_names[row->way], "part",
                                row->name, "messages", (json_int_t)row->messages, "mean_us",
                                json_number_or_null(row->mean_ns / 1000));
        for (size_t q = 0; q < HOP_QUANTILES; q++) {
            char key[32];
            snprintf(key, sizeof key, "%s_us", hop_quantile_names[q]);
            json_object_set_new(one, key, json_number_or_null(row->value_ns[q] / 1000));
        }
        json_object_set_new(one, "waits", waits_json(hops, row, diagnosis));
        json_array_append_new(rows, one);
    }
    return json_pack("{s:s*, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:I}", "problem",
                     hops->problem[0] ? hops->problem : NULL, "records", (json_int_t)hops->records,
                     "dropped", (json_int_t)hops->dropped, "strange", (json_int_t)hops->strange,
                     "requests", (json_int_t)hops->stays.whole, "divided_to_server",
                     (json_int_t)hops->stays.divided[WAY_TO_SERVER], "divided_to_client",
                     (json_int_t)hops->stays.divided[WAY_TO_CLIENT], "backwards",
                     (json_int_t)hops->stays.backwards, "clock", clock_json(&hops->stays.clock),
                     "parts", rows, "lost", losses_json(hops), "lost_unseen",
                     (json_int_t)hops->losses.unseen);
}
