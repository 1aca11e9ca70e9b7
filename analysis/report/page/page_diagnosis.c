// SPDX-License-Identifier: MIT
//
// The page's data of one diagnosis: its causes with their box plots, and its messages in columns,
// slowest first. Large slices are cut, and the page says so: `total` messages were diagnosed,
// `shown` have their latency and causes here, `detailed` also their stages and places.
#include <math.h>

#include "analysis/diagnosis/remedies.h"
#include "analysis/export/findings_json.h"
#include "analysis/report/page/page_json.h"
#include "analysis/run/result_fields.h"
#include "analysis/run/run_culprits.h"
#include "analysis/run/run_analysis.h"
#include "analysis/run/run_judgement.h"
#include "analysis/run/run_lede.h"

enum {
    SHOWN_LIMIT = 100000, // shared between the diagnoses
    DETAILED_LIMIT = 2000,
};

static json_t *causes_build(struct page_builder *builder, const struct diagnosis *diagnosis)
{
    json_t *causes = json_array();
    for (size_t i = 0; i < diagnosis->causes.count; i++) {
        const struct cause *cause = &diagnosis->causes.items[i];
        const struct remedy *remedy = remedy_of(cause->category);
        char words[CAUSE_WORDS_BYTES];
        json_t *one = page_fields_build(builder, cause_fields, cause);
        page_put(builder, one, "words",
                 page_text(run_cause_words(builder->run, &diagnosis->causes, i, words)));
        page_put(builder, one, "remedy", remedy ? page_text(remedy->helps) : json_null());
        page_put(builder, one, "of_client", json_boolean(run_cause_is_client(cause)));
        page_append(builder, causes, one);
    }
    return causes;
}

// The messages, column by column; `first` says where a message's attributions begin.
enum message_column {
    ID,
    AT,
    LATENCY,
    DEVIATION,
    EXPLAINED,
    FIRST,
    OPERATION,
    CONNECTION,
    THREAD,
    RECEIVE_CORE,
    APPLICATION_CORE,
    STAGE_TIMES, // a column for each stage
    COLUMNS
};
static const char *const column_names[COLUMNS] = {
    "id",        "at_ns",      "latency_ns", "deviation_ns", "explained_ns",     "first",
    "operation", "connection", "thread",     "receive_core", "application_core", "stages"};

struct message_columns {
    json_t *column[COLUMNS];
    json_t *cause, *ns; // of the attributions
    uint64_t attributions;
};

static struct message_columns columns_new(struct page_builder *builder)
{
    struct message_columns c = {.cause = json_array(), .ns = json_array()};
    for (int i = 0; i < COLUMNS; i++)
        c.column[i] = json_array();
    for (int stage = 0; stage < STAGES; stage++)
        page_append(builder, c.column[STAGE_TIMES], json_array());
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
    page_append(builder, c->column[OPERATION], json_integer(life->operation));
    page_append(builder, c->column[CONNECTION], json_integer(life->connection));
    page_append(builder, c->column[THREAD], json_integer(life->thread));
    page_append(builder, c->column[RECEIVE_CORE], core_of(life, STAMP_NIC));
    page_append(builder, c->column[APPLICATION_CORE], core_of(life, STAMP_APPLICATION));
    for (size_t stage = 0; stage < STAGES; stage++)
        page_append(builder, json_array_get(c->column[STAGE_TIMES], stage),
                    page_ns(life->stage_ns[stage]));
}

// Takes the message's attributions, which follow one another from *next on.
static void add_attributions(struct page_builder *builder, struct message_columns *c,
                             const struct diagnosis *diagnosis, uint64_t lifetime, size_t *next)
{
    page_append(builder, c->column[FIRST], page_count(c->attributions));
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
    for (int i = 0; i < COLUMNS; i++)
        page_put(builder, messages, column_names[i], c->column[i]);
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
    // Without ordinary ones, how much longer than these a message took is not 0 but not known.
    const bool compared = isfinite(diagnosis->reference_latency_ns);
    for (; shown < diagnosis->messages.count && shown < limit; shown++) {
        const struct diagnosed_message *message = &diagnosis->messages.items[shown];
        const struct lifetime *life = &run->lifetimes.all.items[message->lifetime];
        page_append(builder, c.column[ID], page_count(life->request));
        page_append(builder, c.column[AT],
                    page_since_begin(builder, life->stamp_ns[STAMP_INTENDED]));
        page_append(builder, c.column[LATENCY], page_ns(life->latency_ns));
        page_append(builder, c.column[DEVIATION],
                    compared ? page_ns(message->deviation_ns) : json_null());
        page_append(builder, c.column[EXPLAINED],
                    compared ? page_ns(message->explained_ns) : json_null());
        add_attributions(builder, &c, diagnosis, message->lifetime, &next);
        if (detailed < DETAILED_LIMIT) {
            add_details(builder, &c, life);
            detailed++;
        }
    }
    page_append(builder, c.column[FIRST], page_count(c.attributions));
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

// What made the receive, service and send lifetimes slow, each on its own.
static json_t *lifetimes_build(struct page_builder *builder, size_t number)
{
    json_t *list = json_array();
    for (int part = PART_WHOLE + 1; part < PARTS; part++) {
        const struct diagnosis *of =
            run_diagnosis_of(builder->run, number, (enum lifetime_part)part);
        if (!of)
            continue;
        json_t *one = page_fields_build(builder, part_fields, of);
        page_put(builder, one, "name", page_text(lifetime_part_name(of->part)));
        page_put(builder, one, "from", page_text(stamp_name(lifetime_part_begin(of->part))));
        page_put(builder, one, "to", page_text(stamp_name(lifetime_part_end(of->part))));
        page_put(builder, one, "extra_ns", page_ns(run_diagnosis_extra_ns(of)));
        page_put(builder, one, "not_available", json_boolean(of->not_available));
        page_put(builder, one, "causes", causes_build(builder, of));
        page_append(builder, list, one);
    }
    return list;
}

json_t *page_diagnosis_build(struct page_builder *builder, size_t number)
{
    const struct diagnosis *diagnosis = &builder->run->findings.diagnoses.items[number];
    json_t *object = page_fields_build(builder, diagnosis_fields, diagnosis);
    put_slice(builder, diagnosis, object);
    json_t *left_out = json_array();
    for (int state = 0; state < LIFETIME_STATES; state++)
        page_append(builder, left_out, page_count(diagnosis->left_out[state]));
    page_put(builder, object, "left_out", left_out);
    page_put(builder, object, "not_available", json_boolean(diagnosis->not_available));
    page_put(builder, object, "extra_ns", page_ns(run_diagnosis_extra_ns(diagnosis)));
    page_put(builder, object, "causes", causes_build(builder, diagnosis));
    page_put(builder, object, "ordinary", ordinary_json(diagnosis));
    page_put(builder, object, "lifetimes", lifetimes_build(builder, number));
    put_messages(builder, diagnosis, object);
    return object;
}
