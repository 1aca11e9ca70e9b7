// SPDX-License-Identifier: MIT
//
// One diagnosis as the page gets it: its causes with their box plots, and its messages in columns,
// slowest first. Large slices are cut, and the cut is stated: `total` messages were diagnosed,
// `shown` have their latency and causes here, `detailed` also their stages and places.
#include <math.h>

#include "analysis/report/page_json.h"
#include "analysis/run/result_fields.h"
#include "base/json_numbers.h"

enum {
    SHOWN_LIMIT = 100000, // shared between the diagnoses
    DETAILED_LIMIT = 2000,
};

static json_t *field_build(const struct result_field *field, const void *record)
{
    switch (field->form) {
    case RESULT_TEXT:
        return page_text(result_text(field, record));
    case RESULT_FLAG:
        return json_boolean(result_whole(field, record));
    case RESULT_NS:
        return page_ns(result_number(field, record));
    case RESULT_SHARE:
        return json_number_or_null(result_number(field, record));
    default:
        return json_integer(result_whole(field, record));
    }
}

static void put_fields(struct page_builder *builder, json_t *object,
                       const struct result_field *field, const void *record)
{
    for (; field->summary || field->column || field->page; field++)
        if (field->page)
            page_put(builder, object, field->page, field_build(field, record));
}

static json_t *causes_build(struct page_builder *builder, const struct diagnosis *diagnosis)
{
    json_t *causes = json_array();
    for (size_t i = 0; i < diagnosis->causes.count; i++) {
        json_t *one = json_object();
        put_fields(builder, one, cause_fields, &diagnosis->causes.items[i]);
        page_append(builder, causes, one);
    }
    return causes;
}

// Column by column; `first` says where a message's attributions begin.
struct message_columns {
    json_t *id, *at, *latency, *deviation, *explained, *first;
    json_t *operation, *connection, *thread, *receive_core, *application_core, *stages;
    json_t *cause, *ns;
    uint64_t attributions;
};

static struct message_columns columns_new(struct page_builder *builder)
{
    struct message_columns c = {
        json_array(), json_array(), json_array(), json_array(), json_array(),
        json_array(), json_array(), json_array(), json_array(), json_array(),
        json_array(), json_array(), json_array(), json_array(), 0};
    for (int stage = 0; stage < STAGES; stage++)
        page_append(builder, c.stages, json_array());
    return c;
}

static json_t *core_of(const struct lifetime *life, enum stamp_kind kind)
{
    bool known = lifetime_has(life, kind) && life->stamp_core[kind] != NO_CORE;
    return known ? json_integer(life->stamp_core[kind]) : json_null();
}

static void add_details(struct page_builder *builder, struct message_columns *c,
                        const struct lifetime *life)
{
    page_append(builder, c->operation, json_integer(life->operation));
    page_append(builder, c->connection, json_integer(life->connection));
    page_append(builder, c->thread, json_integer(life->thread));
    page_append(builder, c->receive_core, core_of(life, STAMP_NIC));
    page_append(builder, c->application_core, core_of(life, STAMP_APPLICATION));
    for (size_t stage = 0; stage < STAGES; stage++)
        page_append(builder, json_array_get(c->stages, stage), page_ns(life->stage_ns[stage]));
}

// Takes the message's attributions, which follow one another from *next on.
static void add_attributions(struct page_builder *builder, struct message_columns *c,
                             const struct diagnosis *diagnosis, uint64_t lifetime, size_t *next)
{
    page_append(builder, c->first, page_count(c->attributions));
    for (; *next < diagnosis->attributions.count; ++*next) {
        const struct attribution *one = &diagnosis->attributions.items[*next];
        if (one->lifetime != lifetime)
            break;
        page_append(builder, c->cause, json_integer(one->cause));
        page_append(builder, c->ns, page_ns((double)one->ns));
        c->attributions++;
    }
}

static void columns_put(struct page_builder *builder, struct message_columns *c, json_t *object)
{
    json_t *messages = json_object();
    page_put(builder, messages, "id", c->id);
    page_put(builder, messages, "at_ns", c->at);
    page_put(builder, messages, "latency_ns", c->latency);
    page_put(builder, messages, "deviation_ns", c->deviation);
    page_put(builder, messages, "explained_ns", c->explained);
    page_put(builder, messages, "first", c->first);
    page_put(builder, messages, "operation", c->operation);
    page_put(builder, messages, "connection", c->connection);
    page_put(builder, messages, "thread", c->thread);
    page_put(builder, messages, "receive_core", c->receive_core);
    page_put(builder, messages, "application_core", c->application_core);
    page_put(builder, messages, "stages", c->stages);
    page_put(builder, object, "messages", messages);
    json_t *attributions = json_object();
    page_put(builder, attributions, "cause", c->cause);
    page_put(builder, attributions, "ns", c->ns);
    page_put(builder, object, "attributions", attributions);
}

static void put_messages(struct page_builder *builder, const struct diagnosis *diagnosis,
                         json_t *object)
{
    const struct run_analysis *run = builder->run;
    struct message_columns c = columns_new(builder);
    size_t next = 0, shown = 0, detailed = 0, limit = SHOWN_LIMIT / run->findings.diagnoses.count;
    for (; shown < diagnosis->messages.count && shown < limit; shown++) {
        const struct diagnosed_message *message = &diagnosis->messages.items[shown];
        const struct lifetime *life = &run->lifetimes.all.items[message->lifetime];
        page_append(builder, c.id, page_count(life->request));
        page_append(builder, c.at, page_since_begin(builder, life->stamp_ns[STAMP_INTENDED]));
        page_append(builder, c.latency, page_ns(life->latency_ns));
        page_append(builder, c.deviation, page_ns(message->deviation_ns));
        page_append(builder, c.explained, page_ns(message->explained_ns));
        add_attributions(builder, &c, diagnosis, message->lifetime, &next);
        if (detailed < DETAILED_LIMIT) {
            add_details(builder, &c, life);
            detailed++;
        }
    }
    page_append(builder, c.first, page_count(c.attributions));
    columns_put(builder, &c, object);
    page_put(builder, object, "shown", page_count(shown));
    page_put(builder, object, "detailed", page_count(detailed));
    page_put(builder, object, "views", page_views_build(builder, diagnosis, detailed));
}

static void put_slice(struct page_builder *builder, const struct diagnosis *diagnosis,
                      json_t *object)
{
    char label[160];
    const struct diagnosis_slice *slice = &diagnosis->slice;
    bool window = slice->from_ns != slice->to_ns;
    diagnosis_slice_label(slice, builder->run->lifetimes.begin_ns, label, sizeof label);
    page_put(builder, object, "label", page_text(label));
    page_put(builder, object, "min_latency_ns", page_ns(slice->min_latency_ns));
    page_put(builder, object, "from_ns",
             window ? page_since_begin(builder, slice->from_ns) : json_null());
    page_put(builder, object, "to_ns",
             window ? page_since_begin(builder, slice->to_ns) : json_null());
}

// How much longer the messages took than an ordinary one, in all.
static double extra_ns(const struct diagnosis *diagnosis)
{
    double sum = 0;
    for (size_t i = 0; i < diagnosis->messages.count; i++) {
        double deviation = diagnosis->messages.items[i].deviation_ns;
        sum += isfinite(deviation) && deviation > 0 ? deviation : 0;
    }
    return sum;
}

// What made the receive, service and send lifetimes slow, each on its own.
static json_t *lifetimes_build(struct page_builder *builder, size_t number)
{
    json_t *list = json_array();
    for (int part = PART_WHOLE + 1; part < PARTS; part++) {
        const struct diagnosis *of =
            run_diagnosis_of(builder->run, number, (enum lifetime_part)part);
        if (!of)
            continue;
        json_t *one = json_object();
        page_put(builder, one, "name", page_text(lifetime_part_name(of->part)));
        page_put(builder, one, "from", page_text(stamp_name(lifetime_part_begin(of->part))));
        page_put(builder, one, "to", page_text(stamp_name(lifetime_part_end(of->part))));
        page_put(builder, one, "messages", page_count(of->messages.count));
        page_put(builder, one, "without_stamp", page_count(of->without_part));
        page_put(builder, one, "slice_low_ns", page_ns(of->slice_low_ns));
        page_put(builder, one, "reference_ns", page_ns(of->reference_latency_ns));
        page_put(builder, one, "extra_ns", page_ns(extra_ns(of)));
        page_put(builder, one, "coverage_total", json_number_or_null(of->coverage_total));
        page_put(builder, one, "not_available", json_boolean(of->not_available));
        page_put(builder, one, "reason", page_text(of->reason));
        page_put(builder, one, "causes", causes_build(builder, of));
        page_append(builder, list, one);
    }
    return list;
}

json_t *page_diagnosis_build(struct page_builder *builder, size_t number)
{
    const struct diagnosis *diagnosis = &builder->run->findings.diagnoses.items[number];
    json_t *object = json_object();
    put_slice(builder, diagnosis, object);
    json_t *left_out = json_array();
    for (int state = 0; state < LIFETIME_STATES; state++)
        page_append(builder, left_out, page_count(diagnosis->left_out[state]));
    page_put(builder, object, "left_out", left_out);
    put_fields(builder, object, diagnosis_fields, diagnosis);
    page_put(builder, object, "not_available", json_boolean(diagnosis->not_available));
    page_put(builder, object, "causes", causes_build(builder, diagnosis));
    page_put(builder, object, "lifetimes", lifetimes_build(builder, number));
    put_messages(builder, diagnosis, object);
    return object;
}
