// SPDX-License-Identifier: MIT
#include "analysis/report/page/report_html.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/export/findings_json.h"
#include "analysis/export/run_summary.h"
#include "analysis/report/page/page_json.h"
#include "analysis/report/page/page_write.h"
#include "analysis/report/terminal/summary_text.h"
#include "analysis/run/result_fields.h"
#include "analysis/run/run_lede.h"
#include "analysis/run/run_verdict.h"

// --- the page's data -----------------------------------------------------------------------------

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static json_t *measures_build(struct page_builder *builder)
{
    const struct run_analysis *run = builder->run;
    json_t *object = page_fields_build(builder, run_measures, run);
    page_put(builder, object, "duration_ns",
             page_ns((double)(run->lifetimes.end_ns - run->lifetimes.begin_ns)));
    const struct two_hosts *hosts = &run->lifetimes.join.hosts; // null where they are one
    bool related = hosts->apart && hosts->exchanges > 0;
    const double none = (double)NAN;
    page_put(builder, object, "hosts_bound_ns", page_ns(related ? hosts->bound_p99_ns : none));
    page_put(builder, object, "round_trip_p50_ns",
             page_ns(related ? hosts->round_trip_ns[0] : none));
    page_put(builder, object, "round_trip_p99_ns",
             page_ns(related ? hosts->round_trip_ns[2] : none));
    return object;
}

static json_t *latency_build(struct page_builder *builder, const struct latency_summary *latency)
{
    json_t *object = json_object(), *value = json_array(), *low = json_array(),
           *high = json_array(), *few = json_array(), *known = json_array();
    for (int i = 0; i < LATENCY_QUANTILES; i++) {
        const struct quantile_interval *interval = &latency->interval_ns[i];
        page_append(builder, value, page_ns(latency->value_ns[i]));
        page_append(builder, few, json_boolean(isnan(latency->value_ns[i])));
        page_append(builder, known, json_boolean(interval->known));
        page_append(builder, low, interval->known ? page_ns(interval->low) : json_null());
        page_append(builder, high, interval->known ? page_ns(interval->high) : json_null());
    }
    page_put(builder, object, "value", value);
    page_put(builder, object, "low", low);
    page_put(builder, object, "high", high);
    page_put(builder, object, "known", known); // else low and high are; never answered where null
    page_put(builder, object, "few", few);     // else a value that is not finite was never answered
    return object;
}

// Over UDP: how many requests were lost where, in words; else none.
static json_t *datagrams_lost_build(struct page_builder *builder)
{
    const struct datagram_losses *lost = &builder->run->lifetimes.join.datagrams_lost;
    char by[DATAGRAM_LOSS_WORDS], words[DATAGRAM_LOSS_WORDS + 100], between[HOP_LOSS_WORDS];
    json_t *list = json_array();
    for (unsigned i = 0; i < DATAGRAM_LOSSES; i++) {
        if (lost->at[i] == 0)
            continue;
        json_t *one = json_object();
        snprintf(words, sizeof words, "%s%s", datagram_loss_words((enum datagram_loss)i),
                 datagram_loss_by_words(lost, (enum datagram_loss)i, by));
        page_put(builder, one, "words", page_text(words));
        page_put(builder, one, "count", page_count(lost->at[i]));
        page_append(builder, list, one);
    }
    const struct run_hops *hops = &builder->run->lifetimes.hops;
    for (size_t i = 0; i < hops->losses.places.count; i++) {
        const struct hop_loss *loss = &hops->losses.places.items[i];
        json_t *one = json_object();
        page_put(builder, one, "words", page_text(run_hops_loss_words(hops, loss, between)));
        page_put(builder, one, "count", page_count(loss->requests));
        page_append(builder, list, one);
    }
    return list;
}

// The names the columns refer to by number: stamps, stages, roles, states, quantiles.
static void put_vocabulary(struct page_builder *builder, json_t *page)
{
    json_t *stamps = json_array(), *stages = json_array(), *roles = json_array(),
           *states = json_array(), *quantiles = json_array();
    for (int kind = 0; kind < STAMP_KINDS; kind++) {
        json_t *stage = json_object();
        page_append(builder, stamps, page_text(stamp_name((enum stamp_kind)kind)));
        bool ends_stage = kind != STAMP_INTENDED;
        page_put(builder, stage, "name",
                 page_text(ends_stage ? stage_name((enum stamp_kind)kind,
                                                   join_undivided(&builder->run->lifetimes.join))
                                      : ""));
        page_put(builder, stage, "role",
                 ends_stage ? json_integer(stage_role((enum stamp_kind)kind)) : json_null());
        page_put(builder, stage, "machine",
                 page_text(run_stage_machine(builder->run, (enum stamp_kind)kind)));
        page_append(builder, stages, stage);
    }
    for (int role = 0; role < ROLES; role++)
        page_append(builder, roles, page_text(role_name((enum core_role)role)));
    for (int state = 0; state < LIFETIME_STATES; state++) {
        json_t *one = json_object();
        page_put(builder, one, "name", page_text(lifetime_state_name((enum lifetime_state)state)));
        page_put(builder, one, "count", page_count(builder->run->lifetimes.states[state]));
        page_append(builder, states, one);
    }
    for (int i = 0; i < LATENCY_QUANTILES; i++)
        page_append(builder, quantiles, page_text(latency_quantile_names[i]));
    page_put(builder, page, "stamps", stamps);
    page_put(builder, page, "stages", stages);
    page_put(builder, page, "roles", roles);
    page_put(builder, page, "states", states);
    page_put(builder, page, "datagrams_lost", datagrams_lost_build(builder));
    page_put(builder, page, "quantiles", quantiles);
    page_put(builder, page, "span_kinds", page_span_kinds());
}

static json_t *stage_table_build(struct page_builder *builder)
{
    json_t *table = json_array();
    for (int i = 0; i < LATENCY_QUANTILES; i++) {
        json_t *row = json_array();
        for (int stage = 0; stage < STAGES; stage++)
            page_append(builder, row,
                        page_ns(builder->run->lifetimes.stage_at_quantile_ns[i][stage]));
        page_append(builder, table, row);
    }
    return table;
}

static json_t *off_core_build(struct page_builder *builder)
{
    json_t *row = json_array();
    for (int i = 0; i < LATENCY_QUANTILES; i++)
        page_append(builder, row, page_ns(builder->run->lifetimes.off_core_at_quantile_ns[i]));
    return row;
}

// How it was measured, as the parts of the run wrote it down.
static json_t *documents_build(struct page_builder *builder)
{
    const struct run_analysis *run = builder->run;
    json_t *object = json_object();
    json_t *const documents[] = {run->evidence.experiment, run->evidence.load,
                                 run->evidence.capture, run->evidence.facts};
    static const char *const names[] = {"experiment", "load", "capture", "facts"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        page_put(builder, object, names[i], documents[i] ? json_incref(documents[i]) : json_null());
    return object;
}

static json_t *curves_build(struct page_builder *builder)
{
    json_t *curves = json_object();
    page_put(builder, curves, "corrected", page_curve_build(builder, true));
    page_put(builder, curves, "uncorrected", page_curve_build(builder, false));
    return curves;
}

static json_t *diagnoses_build(struct page_builder *builder)
{
    json_t *diagnoses = json_array();
    for (size_t i = 0; i < builder->run->findings.diagnoses.count; i++)
        page_append(builder, diagnoses, page_diagnosis_build(builder, i));
    return diagnoses;
}

// What a thread can do, as the page draws it: [name, colour] by number.
static json_t *budget_states_build(struct page_builder *builder)
{
    json_t *states = json_array();
    for (int state = 0; state < BUDGET_STATES; state++) {
        json_t *one = json_array();
        page_append(builder, one, page_text(budget_state_name((enum budget_state)state)));
        page_append(builder, one, page_text(budget_state_colour((enum budget_state)state)));
        page_append(builder, states, one);
    }
    return states;
}

// The loads beside, by their own account, and where their pages are.
static json_t *other_loads_build(struct page_builder *builder)
{
    const struct run_load_array *others = &builder->run->evidence.other_loads;
    json_t *list = json_array();
    for (size_t i = 0; i < others->count; i++) {
        static const char *const keys[] = {"offered_rate", "achieved_rate", "latency_us"};
        const struct run_load *load = &others->items[i];
        json_t *one = json_object();
        char file[RUN_LOAD_NAME_BYTES + 32];
        snprintf(file, sizeof file, "report%s.html", load->folder + strlen("client"));
        page_put(builder, one, "name", page_text(load->name));
        page_put(builder, one, "page", page_text(file));
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            json_t *value = json_object_get(load->summary, keys[k]);
            page_put(builder, one, keys[k], value ? json_incref(value) : json_null());
        }
        page_append(builder, list, one);
    }
    return list;
}

static json_t *page_build(struct page_builder *builder)
{
    const struct run_analysis *run = builder->run;
    json_t *page = json_object();
    struct run_lede lede;
    char words[VERDICT_BYTES];
    run_lede(run, &lede);
    put_vocabulary(builder, page);
    page_put(builder, page, "version", page_text(TAILLIGHT_VERSION));
    char title[256];
    page_put(builder, page, "name", page_text(run_title(run, title, sizeof title)));
    page_put(builder, page, "other_loads", other_loads_build(builder));
    page_put(builder, page, "run", page_text(base_name(run->evidence.run_dir)));
    page_put(builder, page, "lede", page_text(page_micro_signs(lede.text, words, sizeof words)));
    page_put(builder, page, "remedy", page_text(lede.remedy));
    page_put(builder, page, "verdict",
             page_text(page_micro_signs(run_verdict_details(run), words, sizeof words)));
    page_put(builder, page, "available", json_boolean(run->findings.verdict_available));
    page_put(builder, page, "captured", json_boolean(run_has_server_events(run)));
    page_put(builder, page, "counts", page_fields_build(builder, run_counts, run));
    page_put(builder, page, "measures", measures_build(builder));
    page_put(builder, page, "latency", latency_build(builder, &run->lifetimes.latency));
    page_put(builder, page, "uncorrected",
             latency_build(builder, &run->lifetimes.uncorrected_latency));
    page_put(builder, page, "curves", curves_build(builder));
    page_put(builder, page, "heat", page_heat_build(builder));
    page_put(builder, page, "stage_ns", stage_table_build(builder));
    page_put(builder, page, "off_core_ns", off_core_build(builder));
    page_put(builder, page, "off_core_of", json_integer(STAMP_REPLY));
    page_put(builder, page, "hops",
             run_hops_json(&run->lifetimes.hops,
                           run->findings.diagnoses.count ? run->findings.diagnoses.items : NULL));
    page_put(builder, page, "hop_heats", page_hop_heats_build(builder));
    page_put(builder, page, "shared", shared_traits_json(run));
    page_put(builder, page, "budget", time_budget_json(&run->findings.budget));
    page_put(builder, page, "budget_states", budget_states_build(builder));
    page_put(builder, page, "diagnoses", diagnoses_build(builder));
    page_put(builder, page, "timelines", page_timelines_build(builder));
    page_put(builder, page, "names", json_incref(builder->names)); // which the timelines gathered
    page_put(builder, page, "documents", documents_build(builder));
    page_put(builder, page, "categories", run_summary_categories(run));
    page_put(builder, page, "samples", page_samples_build(builder));
    page_put(builder, page, "trace", run_summary_trace(&run->evidence.trace));
    return page;
}

json_t *page_data_build(const struct run_analysis *run, struct error *err)
{
    size_t names = run->evidence.server.names.count;
    struct page_builder builder = {.run = run, .names = json_array()};
    builder.name_page = malloc((names + 1) * sizeof *builder.name_page);
    builder.failed = !builder.name_page;
    for (size_t i = 0; builder.name_page && i < names; i++)
        builder.name_page[i] = -1;
    json_t *page = builder.failed ? NULL : page_build(&builder);
    json_decref(builder.names);
    free(builder.name_page);
    if (page && !builder.failed)
        return page;
    json_decref(page);
    error_set(err, ERROR_FAILED, "the report of %s does not fit into memory; free some and retry",
              run->evidence.run_dir);
    return NULL;
}

// What the sections share comes before them. Each section_*.js adds itself; page.js runs them.
static const char *const scripts[] = {
    "page_plot.js",  "page_terms.js",    "page_views.js", "page_causes.js", "page_chosen.js",
    "page_flame.js", "page_timeline.js", "section_*.js",  "page.js",        NULL};

// The terminal summary, for browsers without scripts. The caller frees; NULL: no memory.
static char *plain_summary(const struct run_analysis *run)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    if (!memory)
        return NULL;
    summary_text_write(run, &(struct summary_style){.unicode = true, .full = true, .width = 100},
                       memory);
    if (fclose(memory) == 0)
        return text;
    free(text);
    return NULL;
}

#define BAR_SMALL 0.005 // of the bar: not to be seen
enum { BAR_CAUSES = 6, BAR_PARTS = BAR_CAUSES + 2 };

static struct page_bar_part bar_part(double ns, double whole, const char *name, const char *words)
{
    struct page_bar_part part = {.share = ns / whole};
    snprintf(part.name, sizeof part.name, "%s", name);
    snprintf(part.words, sizeof part.words, "%s", words);
    return part;
}

// The bar of causes of the first diagnosis, as section_bar.js has it. Returns how many parts.
static size_t bar_build(const struct run_analysis *run, struct page_bar_part out[BAR_PARTS])
{
    const struct diagnosis *first = run->findings.diagnoses.items;
    struct named_cause named[BAR_CAUSES];
    char name[CAUSE_NAME_BYTES + 20], words[CAUSE_WORDS_BYTES];
    double rest = 0, all = 0;
    size_t parts = 0;
    const double whole = run->findings.verdict_available ? run_diagnosis_extra_ns(first) : 0;
    if (!(whole > 0))
        return 0;
    for (size_t i = 0; i < first->causes.count; i++)
        all += first->causes.items[i].total_ns;
    rest = all;
    size_t count = run_causes_by_words(run, first, ALL_CAUSES, named, BAR_CAUSES);
    for (size_t i = 0; i < count; i++) {
        const struct cause *cause = named[i].cause;
        snprintf(name, sizeof name, "%s%s", named[i].several ? cause->category : cause->name,
                 cause->role == ROLE_CLIENT ? " (client)" : "");
        out[parts++] = bar_part(named[i].total_ns, whole, name,
                                run_cause_words(run, &first->causes, named[i].index, words));
        rest -= named[i].total_ns;
    }
    if (rest > BAR_SMALL * whole)
        out[parts++] = bar_part(rest, whole, "smaller causes", "smaller causes");
    if (whole - all > BAR_SMALL * whole)
        out[parts++] = bar_part(whole - all, whole, "not known", "nobody knows where it went");
    return parts;
}

int report_write_html(const struct run_analysis *run, const char *path, struct error *err)
{
    json_t *data = page_data_build(run, err);
    if (!data)
        return -ERROR_FAILED;
    char *summary = plain_summary(run);
    struct run_lede lede;
    char words[VERDICT_BYTES], title[256];
    run_lede(run, &lede);
    struct page_bar_part bar[BAR_PARTS];
    const struct page page = {.template_name = "page.html",
                              .remedy = lede.remedy,
                              .bar = bar,
                              .bar_parts = bar_build(run, bar),
                              .title = run_title(run, title, sizeof title),
                              .verdict = page_micro_signs(lede.text, words, sizeof words),
                              .summary = summary ? summary : "",
                              .scripts = scripts,
                              .data = data};
    int result = page_write(&page, path, err);
    free(summary);
    json_decref(data);
    return result;
}
