// SPDX-License-Identifier: MIT
//
// What happened on the cores that handled a message, from its first to its last stamp and a while
// before and after: nested spans clipped to that, and the other messages of the same thread
// meanwhile. For some messages of each diagnosis: of each large cause and of each operation the
// worst in each part of the time, the worst of each other cause, the slowest; and for a few
// ordinary ones to compare with. Where spans are too many for a page the shortest are left out, and
// counted.
#include "analysis/lifetime/off_core.h"
#include "analysis/report/page/page_json.h"
#include "base/array.h"

#include <math.h>
#include <stdlib.h>

enum {
    SLOW_TIMELINES = 200, // shared between the diagnoses
    LARGE_CAUSES = 6,
    OPERATIONS = 6, // the first ones
    GROUPS = LARGE_CAUSES + OPERATIONS,
    MOST_PARTS = SLOW_TIMELINES, // of the time
    REFERENCE_TIMELINES = 5,
    SPANS_PER_CORE = 500,
    OTHERS_PER_MESSAGE = 150,
    OFF_CORE_PIECES = 500, // of a life, the shortest to be shown
    AROUND_SHARE = 5,      // before and after a life: this part of it each, ...
    AROUND_LEAST_NS = 20000,
};

struct chosen_array ARRAY_OF(size_t);
struct interval_array ARRAY_OF(struct interval);

// What is shown of a message: its life, and as long before and after it.
struct surroundings {
    int64_t begin_ns, end_ns, around_ns;
};

// The part of a span that lies within the message's surroundings.
struct interval {
    const struct span *span;
    int64_t begin_ns, end_ns;
};

static json_t *span_name(struct page_builder *builder, uint32_t name)
{
    const struct name_array *names = &builder->run->evidence.server.names;
    if (name >= names->count)
        return json_integer(-1);
    if (builder->name_page[name] < 0) {
        builder->name_page[name] = (int32_t)json_array_size(builder->names);
        page_append(builder, builder->names, page_text(names->items[name]));
    }
    return json_integer(builder->name_page[name]);
}

// Kinds as the page knows them: those of enum span_kind, and the server's own threads apart.
enum { PAGE_SPAN_APPLICATION = SPAN_KINDS };

static void add_kind(json_t *kinds, const char *label, const char *colour, const char *ink)
{
    json_array_append_new(kinds, json_pack("[s, s?, s?]", label, colour, ink));
}

json_t *page_span_kinds(void)
{
    json_t *kinds = json_array();
#define SPAN_KIND(NAME, number, word, label, colour, ink, means)                                   \
    add_kind(kinds, label, colour, ink);
#include "analysis/timeline/span_kinds.tbl.h"
    add_kind(kinds, "the server’s task", "#e2cfa4", "#1d1e21"); // PAGE_SPAN_APPLICATION
    return kinds;
}

static json_t *span_kind(const struct page_builder *builder, const struct span *span)
{
    const struct run_analysis *run = builder->run;
    if (span->kind == SPAN_TASK &&
        application_of_thread(&run->lifetimes.applications, span->id) != NO_APPLICATION)
        return json_integer(PAGE_SPAN_APPLICATION);
    return json_integer(span->kind);
}

// How short a span must be to be left out so that at most SPANS_PER_CORE remain.
static int64_t shortest_kept(const struct interval_array *spans)
{
    if (spans->count <= SPANS_PER_CORE)
        return 0;
    double *lengths = malloc(spans->count * sizeof *lengths);
    if (!lengths)
        return INT64_MAX; // shows none; the count says so
    for (size_t i = 0; i < spans->count; i++)
        lengths[i] = (double)(spans->items[i].end_ns - spans->items[i].begin_ns);
    quantile_sort(lengths, spans->count);
    int64_t bound = (int64_t)lengths[spans->count - SPANS_PER_CORE - 1] + 1;
    free(lengths);
    return bound;
}

static void collect_spans(struct page_builder *builder, const struct core_timeline *timeline,
                          int64_t begin, int64_t end, struct interval_array *out)
{
    for (size_t i = core_timeline_from(timeline, begin); i < timeline->spans.count; i++) {
        const struct span *span = &timeline->spans.items[i];
        if (span->begin_ns >= end)
            break;
        if (span->end_ns <= begin)
            continue;
        struct interval part = {span, span->begin_ns > begin ? span->begin_ns : begin,
                                span->end_ns < end ? span->end_ns : end};
        if (array_push(out, part) < 0)
            builder->failed = true;
    }
}

static json_t *spans_build(struct page_builder *builder, const struct interval_array *parts,
                           int64_t begin, uint64_t *omitted)
{
    json_t *spans = json_object(), *from = json_array(), *length = json_array(),
           *whole = json_array(), *depth = json_array(), *kind = json_array(), *name = json_array();
    int64_t bound = shortest_kept(parts);
    *omitted = 0;
    for (size_t i = 0; i < parts->count; i++) {
        const struct interval *part = &parts->items[i];
        if (part->end_ns - part->begin_ns < bound) {
            ++*omitted;
            continue;
        }
        page_append(builder, from, page_ns((double)(part->begin_ns - begin)));
        page_append(builder, length, page_ns((double)(part->end_ns - part->begin_ns)));
        page_append(builder, whole, page_ns((double)(part->span->end_ns - part->span->begin_ns)));
        page_append(builder, depth, json_integer(part->span->depth));
        page_append(builder, kind, span_kind(builder, part->span));
        page_append(builder, name, span_name(builder, part->span->name));
    }
    page_put(builder, spans, "from", from);
    page_put(builder, spans, "length", length);
    page_put(builder, spans, "whole", whole);
    page_put(builder, spans, "depth", depth);
    page_put(builder, spans, "kind", kind);
    page_put(builder, spans, "name", name);
    return spans;
}

static json_t *core_build(struct page_builder *builder, uint16_t core, const char *roles,
                          const struct surroundings *shown)
{
    json_t *object = json_object();
    // Of a capture for the load alone the core's timeline is what the load's own cores tell of it.
    const struct core_timeline *timeline =
        run_has_server_events(builder->run)
            ? host_timeline_core(&builder->run->evidence.server, core)
            : NULL;
    page_put(builder, object, "core", json_integer(core));
    page_put(builder, object, "roles", json_string(roles));
    page_put(builder, object, "captured", json_boolean(timeline != NULL));
    if (!timeline)
        return object;
    struct interval_array parts = {0};
    uint64_t omitted;
    collect_spans(builder, timeline, shown->begin_ns - shown->around_ns,
                  shown->end_ns + shown->around_ns, &parts);
    page_put(builder, object, "spans", spans_build(builder, &parts, shown->begin_ns, &omitted));
    page_put(builder, object, "omitted", page_count(omitted));
    array_free(&parts);
    return object;
}

// The cores the message lived on at the server: R before the hand-off, A after it.
static json_t *cores_build(struct page_builder *builder, const struct lifetime *life,
                           const struct surroundings *shown)
{
    uint16_t seen[LIFETIME_CORES];
    json_t *cores = json_array();
    size_t count = lifetime_cores(life, seen);
    for (size_t i = 0; i < count; i++) {
        uint16_t core = seen[i];
        bool receives = false, applies = false;
        for (int kind = STAMP_NIC; kind <= STAMP_SERVER_TX; kind++) {
            bool here = lifetime_has(life, (enum stamp_kind)kind) && life->stamp_core[kind] == core;
            receives = receives || (here && kind <= STAMP_HANDOFF);
            applies = applies || (here && kind >= STAMP_APPLICATION);
        }
        const char *roles = receives && applies ? "RA" : receives ? "R" : "A";
        page_append(builder, cores, core_build(builder, core, roles, shown));
    }
    return cores;
}

static bool handled(const struct lifetime *life)
{
    return lifetime_has(life, STAMP_NIC) && lifetime_has(life, STAMP_APPLICATION) &&
           lifetime_has(life, STAMP_REPLY);
}

// The first lifetime that was intended at that time or later.
static size_t first_life(const struct lifetime_array *lives, int64_t time_ns)
{
    return array_bound(0, lives->count, at, lives->items[at].stamp_ns[STAMP_INTENDED] < time_ns);
}

// Other messages of the same thread that were at the server when this one was: from M(n), by way
// of M(a), to the reply. Lifetimes stand in intended order; none begins after `end`.
static json_t *others_build(struct page_builder *builder, size_t index, int64_t begin)
{
    const struct lifetime_array *lives = &builder->run->lifetimes.all;
    const struct lifetime *life = &lives->items[index];
    json_t *others = json_object(), *id = json_array(), *from = json_array(),
           *received = json_array(), *until = json_array(), *connection = json_array();
    uint64_t omitted = 0;
    size_t first = handled(life) && life->thread != 0
                       ? first_life(lives, life->stamp_ns[STAMP_NIC] - builder->longest_life_ns)
                       : lives->count;
    for (size_t i = first; i < lives->count; i++) {
        const struct lifetime *other = &lives->items[i];
        if (other->stamp_ns[STAMP_INTENDED] > life->stamp_ns[STAMP_REPLY])
            break;
        if (i == index || other->thread != life->thread || !handled(other) ||
            other->stamp_ns[STAMP_REPLY] <= life->stamp_ns[STAMP_NIC] ||
            other->stamp_ns[STAMP_NIC] >= life->stamp_ns[STAMP_REPLY])
            continue;
        if (json_array_size(id) >= OTHERS_PER_MESSAGE) {
            omitted++;
            continue;
        }
        page_append(builder, id, page_count(other->request));
        page_append(builder, from, page_ns((double)(other->stamp_ns[STAMP_NIC] - begin)));
        page_append(builder, received,
                    page_ns((double)(other->stamp_ns[STAMP_APPLICATION] - begin)));
        page_append(builder, until, page_ns((double)(other->stamp_ns[STAMP_REPLY] - begin)));
        page_append(builder, connection, json_integer(other->connection));
    }
    page_put(builder, others, "id", id);
    page_put(builder, others, "from", from);
    page_put(builder, others, "received", received);
    page_put(builder, others, "until", until);
    page_put(builder, others, "connection", connection);
    page_put(builder, others, "omitted", page_count(omitted));
    return others;
}

static json_t *stamps_build(struct page_builder *builder, const struct lifetime *life,
                            int64_t begin)
{
    json_t *stamps = json_array();
    for (int kind = 0; kind < STAMP_KINDS; kind++) {
        if (!run_shows_stamp(builder->run, life, (enum stamp_kind)kind))
            continue;
        json_t *stamp = json_object();
        uint16_t core = life->stamp_core[kind];
        page_put(builder, stamp, "kind", json_integer(kind));
        page_put(builder, stamp, "at", page_ns((double)(life->stamp_ns[kind] - begin)));
        page_put(builder, stamp, "core", core != NO_CORE ? json_integer(core) : json_null());
        page_put(builder, stamp, "disordered", json_boolean(life->disordered >> kind & 1));
        page_append(builder, stamps, stamp);
    }
    return stamps;
}

// Its packets' way: from one hop to the next, there and back.
static json_t *hops_build(struct page_builder *builder, size_t index, int64_t begin)
{
    const struct run_hops *hops = &builder->run->lifetimes.hops;
    json_t *array = json_array();
    size_t count;
    const struct hop_stay *stays = hop_stays_of(&hops->stays, index, &count);
    for (size_t i = 0; i < count; i++) {
        json_t *hop = json_object();
        page_put(builder, hop, "at", page_ns((double)(stays[i].begin_ns - begin)));
        page_put(builder, hop, "until", page_ns((double)(stays[i].end_ns - begin)));
        page_put(builder, hop, "from", json_string(hops->places[stays[i].from].name));
        page_put(builder, hop, "to", json_string(hops->places[stays[i].to].name));
        page_put(builder, hop, "queue", json_boolean(stays[i].part == STAY_IN_QUEUE));
        page_put(builder, hop, "qdisc", json_string(hop_stay_qdisc(&stays[i], hops->places)));
        page_append(builder, array, hop);
    }
    return array;
}

struct off_core {
    struct page_builder *builder;
    json_t *from, *length;
    int64_t begin_ns, shortest_ns;
};

static void add_off_core(int64_t begin_ns, int64_t end_ns, void *context)
{
    struct off_core *off = context;
    if (end_ns - begin_ns < off->shortest_ns)
        return; // not to be seen; the sum has it
    page_append(off->builder, off->from, page_ns((double)(begin_ns - off->begin_ns)));
    page_append(off->builder, off->length, page_ns((double)(end_ns - begin_ns)));
}

// When its thread did not run, though the message was with the application.
static json_t *off_core_build(struct page_builder *builder, const struct lifetime *life,
                              const struct surroundings *shown)
{
    const struct run_analysis *run = builder->run;
    struct off_core off = {builder, json_array(), json_array(), shown->begin_ns,
                           (shown->end_ns - shown->begin_ns) / OFF_CORE_PIECES};
    json_t *object = json_object();
    off_core_visit(&run->evidence.server, &run->evidence.calls, life, add_off_core, &off);
    page_put(builder, object, "from", off.from);
    page_put(builder, object, "length", off.length);
    page_put(builder, object, "sum", page_ns(run_off_core_ns(run, life)));
    return object;
}

static json_t *timeline_build(struct page_builder *builder, size_t index, bool reference)
{
    const struct lifetime *life = &builder->run->lifetimes.all.items[index];
    json_t *object = json_object(), *stages = json_array();
    const struct time_range extent = lifetime_extent(life);
    int64_t begin = extent.begin_ns, end = extent.end_ns, around = (end - begin) / AROUND_SHARE;
    const struct surroundings shown = {begin, end,
                                       around > AROUND_LEAST_NS ? around : AROUND_LEAST_NS};
    for (int stage = 0; stage < STAGES; stage++)
        page_append(builder, stages, page_ns(life->stage_ns[stage]));
    page_put(builder, object, "id", page_count(life->request));
    page_put(builder, object, "reference", json_boolean(reference));
    page_put(builder, object, "begin_ns", page_since_begin(builder, begin));
    page_put(builder, object, "life_ns", page_ns((double)(end - begin)));
    page_put(builder, object, "around_ns", page_ns((double)shown.around_ns));
    page_put(builder, object, "latency_ns", page_ns(life->latency_ns));
    page_put(builder, object, "state", json_integer(life->state));
    page_put(builder, object, "operation", json_integer(life->operation));
    page_put(builder, object, "connection", json_integer(life->connection));
    page_put(builder, object, "thread", json_integer(life->thread));
    page_put(builder, object, "batch", json_integer(life->batch));
    page_put(builder, object, "batch_position", json_integer(life->batch_position));
    page_put(builder, object, "stages", stages);
    page_put(builder, object, "stamps", stamps_build(builder, life, begin));
    page_put(builder, object, "off_core", off_core_build(builder, life, &shown));
    page_put(builder, object, "hops", hops_build(builder, index, begin));
    page_put(builder, object, "cores", cores_build(builder, life, &shown));
    page_put(builder, object, "others", others_build(builder, index, begin));
    return object;
}

static void choose(struct page_builder *builder, struct chosen_array *chosen, size_t index)
{
    if (builder->run->lifetimes.all.items[index].present == 0)
        return; // no stamp, nothing to draw
    for (size_t i = 0; i < chosen->count; i++)
        if (chosen->items[i] == index)
            return;
    if (array_push(chosen, index) < 0)
        builder->failed = true;
}

// The message that each cause slowed most.
static void choose_worst_of_causes(struct page_builder *builder, const struct diagnosis *diagnosis,
                                   struct chosen_array *chosen)
{
    for (size_t cause = 0; cause < diagnosis->causes.count; cause++) {
        const struct attribution *worst = NULL;
        for (size_t i = 0; i < diagnosis->attributions.count; i++) {
            const struct attribution *one = &diagnosis->attributions.items[i];
            if (one->cause == cause && (!worst || one->ns > worst->ns))
                worst = one;
        }
        if (worst)
            choose(builder, chosen, (size_t)worst->lifetime);
    }
}

// The worst message of a group in a part of the time.
struct worst {
    double ns;
    size_t message; // its place among the diagnosis's + 1; 0: none
};

static void keep_worst(struct worst *worst, double ns, size_t message)
{
    if (worst->message == 0 || ns > worst->ns)
        *worst = (struct worst){ns, message + 1};
}

// The large causes and the operations, each over the time: in each part of it the message that it
// slowed most, and the slowest. The causes are ordered by their totals, messages by latency, and
// attributions as messages.
static void choose_over_time(struct page_builder *builder, const struct diagnosis *diagnosis,
                             size_t parts, struct chosen_array *chosen)
{
    const struct run_lifetimes *lives = &builder->run->lifetimes;
    const struct diagnosis_slice *slice = &diagnosis->slice;
    bool window = slice->from_ns != slice->to_ns;
    int64_t from = window ? slice->from_ns : lives->begin_ns,
            to = window ? slice->to_ns : lives->end_ns;
    double part_ns = (double)(to > from ? to - from : 1) / (double)parts;
    struct worst worst[GROUPS][MOST_PARTS] = {0};
    size_t at = 0;
    for (size_t m = 0; m < diagnosis->messages.count; m++) {
        uint64_t index = diagnosis->messages.items[m].lifetime;
        const struct lifetime *life = &lives->all.items[index];
        double place = (double)(life->stamp_ns[STAMP_INTENDED] - from) / part_ns;
        size_t part = place < 0 ? 0 : place >= (double)parts ? parts - 1 : (size_t)place;
        if (life->operation < OPERATIONS)
            keep_worst(&worst[LARGE_CAUSES + life->operation][part], life->latency_ns, m);
        for (; at < diagnosis->attributions.count &&
               diagnosis->attributions.items[at].lifetime == index;
             at++) {
            const struct attribution *one = &diagnosis->attributions.items[at];
            if (one->cause < LARGE_CAUSES)
                keep_worst(&worst[one->cause][part], (double)one->ns, m);
        }
    }
    for (size_t group = 0; group < GROUPS; group++)
        for (size_t part = 0; part < parts; part++)
            if (worst[group][part].message)
                choose(builder, chosen,
                       (size_t)diagnosis->messages.items[worst[group][part].message - 1].lifetime);
}

struct ranked {
    double latency_ns;
    size_t index;
};

static int compare_ranked(const void *a, const void *b)
{
    double x = ((const struct ranked *)a)->latency_ns, y = ((const struct ranked *)b)->latency_ns;
    return order_of(x, y);
}

// Whole lifetimes in the middle of the latency distribution.
static void choose_references(struct page_builder *builder, struct chosen_array *chosen)
{
    const struct lifetime_array *lives = &builder->run->lifetimes.all;
    struct ranked *ranked = malloc((lives->count + 1) * sizeof *ranked);
    size_t count = 0;
    for (size_t i = 0; ranked && i < lives->count; i++)
        if (lives->items[i].state == LIFETIME_WHOLE)
            ranked[count++] = (struct ranked){lives->items[i].latency_ns, i};
    if (!ranked)
        builder->failed = true;
    else if (count)
        qsort(ranked, count, sizeof *ranked, compare_ranked);
    size_t first = count > REFERENCE_TIMELINES ? (count - REFERENCE_TIMELINES) / 2 : 0;
    for (size_t i = first; i < count && i < first + REFERENCE_TIMELINES; i++)
        choose(builder, chosen, ranked[i].index);
    free(ranked);
}

// The longest time from a request's intended time to its reply.
static int64_t longest_life(const struct lifetime_array *lives)
{
    int64_t longest = 0;
    for (size_t i = 0; i < lives->count; i++) {
        const struct lifetime *life = &lives->items[i];
        int64_t lived = life->stamp_ns[STAMP_REPLY] - life->stamp_ns[STAMP_INTENDED];
        if (handled(life) && lived > longest)
            longest = lived;
    }
    return longest;
}

json_t *page_timelines_build(struct page_builder *builder)
{
    const struct run_analysis *run = builder->run;
    builder->longest_life_ns = longest_life(&run->lifetimes.all);
    struct chosen_array chosen = {0};
    for (size_t i = 0; i < run->findings.diagnoses.count; i++) {
        const struct diagnosis *diagnosis = &run->findings.diagnoses.items[i];
        size_t share = SLOW_TIMELINES / run->findings.diagnoses.count, before = chosen.count;
        size_t parts = share / 2 / GROUPS;
        if (diagnosis->messages.count) // the one that the page begins with
            choose(builder, &chosen, (size_t)diagnosis->messages.items[0].lifetime);
        choose_over_time(builder, diagnosis, parts ? parts : 1, &chosen);
        for (size_t m = 0; m < diagnosis->messages.count && chosen.count < before + share; m++)
            choose(builder, &chosen, (size_t)diagnosis->messages.items[m].lifetime);
        choose_worst_of_causes(builder, diagnosis, &chosen);
    }
    size_t slow = chosen.count;
    choose_references(builder, &chosen);
    json_t *timelines = json_array();
    for (size_t i = 0; i < chosen.count; i++)
        page_append(builder, timelines, timeline_build(builder, chosen.items[i], i >= slow));
    array_free(&chosen);
    return timelines;
}
