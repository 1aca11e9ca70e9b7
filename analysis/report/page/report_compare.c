// SPDX-License-Identifier: MIT
#include "analysis/report/page/report_compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare/comparison_json.h"
#include "analysis/report/page/flame_columns.h"
#include "analysis/report/page/page_json.h"
#include "analysis/report/page/page_write.h"
#include "analysis/report/terminal/summary_pieces.h"
#include "base/text.h"
#include "base/units.h"

enum { NAME_COLUMNS = 44 };

static const char *const scripts[] = {"page_plot.js",          "page_views.js",   "page_flame.js",
                                      "page_compare_plots.js", "page_compare.js", NULL};

// --- on the terminal -----------------------------------------------------------------------------

static const char *duration(double ns, char out[32])
{
    if (isnan(ns))
        return "-";
    return isinf(ns) ? "never" : units_format_ns(ns, out, 32);
}

static const char *signed_duration(double ns, char out[32])
{
    if (!isfinite(ns))
        return "?";
    out[0] = ns < 0 ? '-' : '+';
    units_format_ns(fabs(ns), out + 1, 31);
    return out;
}

static const char *runs_of(const struct run_set *set, char out[40])
{
    snprintf(out, 40, "(%s run%s)", TEXT_COUNT(set->profiles.count),
             set->profiles.count == 1 ? "" : "s");
    return out;
}

static void write_percentiles(const struct comparison *comparison, FILE *out)
{
    char base[32], candidate[32], change[TEXT_NUMBER_BYTES], low[TEXT_NUMBER_BYTES],
        high[TEXT_NUMBER_BYTES];
    fprintf(out, "\n  %-8s %10s %10s %10s  99 %%\n", "latency", "base", "candidate", "change");
    for (size_t i = 0; i < comparison->percentiles.count; i++) {
        const struct compared_percentile *percentile = &comparison->percentiles.items[i];
        const struct percentile_shift *shift = &percentile->shift;
        fprintf(out, "  %-8s %10s %10s", percentile->name, duration(shift->ns[COMPARE_BASE], base),
                duration(shift->ns[COMPARE_CANDIDATE], candidate));
        if (shift->known)
            fprintf(out, " %8s %%  [%s, %s]", text_percent(shift->shift, change),
                    text_percent(shift->interval.low, low),
                    text_percent(shift->interval.high, high));
        fputc('\n', out);
    }
    fputc('\n', out);
    char clean[800];
    for (size_t i = 0; i < comparison->percentiles.count; i++)
        fprintf(out, "%s\n",
                text_clean(comparison->percentiles.items[i].verdict, false, clean, sizeof clean));
}

// A name that is longer than its column has a line of its own: what causes differ by may be their
// last words.
static void write_change(const struct cause_shift *cause, FILE *out)
{
    char name[300], clean[260], base[32], candidate[32], difference[32], low[32], high[32],
        interval[80], longer[COMPARE_SIDES][32];
    text_clean(cause->name, false, clean, sizeof clean);
    snprintf(name, sizeof name, "%s (%s)", clean, role_name(cause->role));
    snprintf(interval, sizeof interval, "[%s, %s]", signed_duration(cause->interval.low, low),
             signed_duration(cause->interval.high, high));
    fprintf(out, "  %-9s %-*s", change_kind_name(cause->kind), NAME_COLUMNS, name);
    if (strlen(name) > NAME_COLUMNS)
        fprintf(out, "\n  %-9s %-*s", "", NAME_COLUMNS, "");
    fprintf(out, " %9s %9s %9s %-20s %7s -> %s\n", duration(cause->mean_ns[COMPARE_BASE], base),
            duration(cause->mean_ns[COMPARE_CANDIDATE], candidate),
            signed_duration(cause->difference_ns, difference), interval,
            text_share(cause->longer[COMPARE_BASE], 1, longer[COMPARE_BASE]),
            text_share(cause->longer[COMPARE_CANDIDATE], 1, longer[COMPARE_CANDIDATE]));
}

// Those that differ by more than can be told apart, the first five.
static void write_categories(const struct slice_shift *slice, FILE *out)
{
    enum { SHOWN = 5 };
    char clean[200], difference[32];
    size_t shown = 0;
    while (shown < slice->categories.count && shown < SHOWN &&
           fabs(slice->categories.items[shown].difference_ns) >= slice->granularity_ns)
        shown++;
    for (size_t i = 0; i < shown; i++) {
        const struct category_shift *one = &slice->categories.items[i];
        text_clean(one->category, false, clean, sizeof clean);
        fprintf(out, "%s %s %s%s", i ? "," : "  by category:", clean,
                signed_duration(one->difference_ns, difference), i + 1 == shown ? "\n" : "");
    }
}

static void write_queue(const struct comparison *comparison, size_t index, FILE *out)
{
    const struct slice_profile *sides[COMPARE_SIDES];
    if (!comparison_is_single(comparison))
        return;
    for (int side = 0; side < COMPARE_SIDES; side++) {
        sides[side] = comparison_profile(comparison, side, 0, index);
        if (!sides[side]->has_views)
            return;
    }
    fputs("  ahead, on average:", out);
    for (int kind = 0; kind < QUEUE_KINDS; kind++)
        fprintf(out, "%s %s %.2f -> %.2f", kind ? "," : "", queue_kind_name((enum queue_kind)kind),
                sides[COMPARE_BASE]->queue[kind].sides[VIEW_SLICE].ahead.mean,
                sides[COMPARE_CANDIDATE]->queue[kind].sides[VIEW_SLICE].ahead.mean);
    fputc('\n', out);
}

// Those that changed, the first ten.
static void write_functions(const struct slice_shift *slice, FILE *out)
{
    enum { SHOWN = 10 };
    size_t changed = 0;
    if (slice->functions.count == 0)
        return;
    fprintf(out, "  functions by their own time, of %s and %s messages with known functions:\n",
            TEXT_COUNT(slice->function_messages[COMPARE_BASE]),
            TEXT_COUNT(slice->function_messages[COMPARE_CANDIDATE]));
    for (size_t i = 0; i < slice->functions.count; i++)
        if (slice->functions.items[i].kind != CHANGE_NONE && ++changed <= SHOWN)
            write_change(&slice->functions.items[i], out);
    if (changed > SHOWN)
        fprintf(out, "  and %s more functions that changed\n", TEXT_COUNT(changed - SHOWN));
    else if (changed == 0)
        fprintf(out, "  none of the %s changed, as far as these runs can tell\n",
                TEXT_COUNT(slice->functions.count));
}

static void write_slice(const struct comparison *comparison, size_t index, FILE *out)
{
    const struct compared_slice *one = &comparison->shifts.items[index];
    const struct slice_shift *slice = &one->shift;
    char clean[800];
    size_t unchanged = 0;
    fprintf(out, "\n%s\n", text_clean(one->verdict, false, clean, sizeof clean));
    if (!slice->available)
        return;
    fprintf(out, "  %-9s %-*s %9s %9s %9s %-20s messages\n", "", NAME_COLUMNS, "mean of a message",
            "base", "candidate", "change", "[99 %]");
    for (size_t i = 0; i < slice->causes.count; i++) {
        if (slice->causes.items[i].kind == CHANGE_NONE)
            unchanged++;
        else
            write_change(&slice->causes.items[i], out);
    }
    if (unchanged && isinf(slice->latency.interval.low))
        fprintf(out, "  %s of which nobody can tell: too few messages\n", TEXT_COUNT(unchanged));
    else if (unchanged)
        fprintf(out, "  %s unchanged, as far as these runs can tell\n", TEXT_COUNT(unchanged));
    write_categories(slice, out);
    write_functions(slice, out);
    write_queue(comparison, index, out);
}

void report_compare_text(const struct comparison *comparison, FILE *out)
{
    const struct run_set *base = comparison->sides[COMPARE_BASE],
                         *candidate = comparison->sides[COMPARE_CANDIDATE];
    char runs[40], clean[sizeof comparison->warning * 2];
    const bool doubtful = comparison_is_doubtful(comparison);
    if (doubtful)
        fprintf(out, "%s\n\n", text_clean(comparison->warning, false, clean, sizeof clean));
    fprintf(out, "%s %s", candidate->path, runs_of(candidate, runs));
    fprintf(out, " against %s %s", base->path, runs_of(base, runs));
    fprintf(out, candidate->load[0] ? ", load `%s`\n" : "\n", candidate->load);
    write_percentiles(comparison, out);
    for (size_t i = 0; i < comparison->asked; i++)
        write_slice(comparison, i, out);
    if (comparison->warning[0] && !doubtful)
        fprintf(out, "\nBeware: %s\n", text_clean(comparison->warning, false, clean, sizeof clean));
    if (base->profiles.count > 1 && candidate->profiles.count > 1)
        fputs("\nIntervals: from resampling the runs, and 40 blocks of time of each.\n", out);
    else
        fputs(
            "\nIntervals: from resampling 40 blocks of time of each run. With one run a side they "
            "do not know how much\nruns differ by themselves: repeat both to learn that.\n",
            out);
}

// --- the page ------------------------------------------------------------------------------------

enum { SHOWN_LIMIT = 3000 };

struct columns {
    json_t *id, *at, *latency, *first, *cause, *us;
};

static json_t *micros(double ns)
{
    return json_real(round(ns) / 1000);
}

// Which of the changes each component of the profile is; the caller frees. NULL: no memory.
static size_t *changes_of(const struct slice_shift *slice, const struct slice_profile *profile)
{
    size_t *change_of = malloc((profile->components.count + 1) * sizeof *change_of);
    for (size_t c = 0; change_of && c < profile->components.count; c++) {
        const struct profile_component *component = &profile->components.items[c];
        size_t at = 0;
        while (at < slice->causes.count &&
               (slice->causes.items[at].role != component->role ||
                strcmp(slice->causes.items[at].name, component->name) != 0))
            at++;
        change_of[c] = at;
    }
    return change_of;
}

static void add_message(struct columns *columns, const struct slice_shift *slice,
                        const struct slice_profile *profile, size_t number, const size_t *change_of)
{
    const struct profile_message *message = &profile->each.items[number];
    size_t end = number + 1 < profile->each.count ? message[1].first : profile->values.count;
    json_array_append_new(columns->id, json_integer((json_int_t)message->request));
    json_array_append_new(columns->at, json_real(round(message->at_ns / 1000) / 1e6));
    json_array_append_new(columns->latency, micros(message->latency_ns));
    json_array_append_new(columns->first, json_integer((json_int_t)json_array_size(columns->us)));
    for (size_t i = message->first; i < end; i++) {
        const struct profile_value *value = &profile->values.items[i];
        size_t change = change_of[value->component];
        if (change == slice->causes.count)
            continue;
        double more = (double)value->ns - slice->causes.items[change].normal_ns;
        if (more < profile->granularity_ns)
            continue;
        json_array_append_new(columns->cause, json_integer((json_int_t)change));
        json_array_append_new(columns->us, micros(more));
    }
}

// One side's messages, column by column: `id`, `at_s`, `latency_us`, and from `first` on to the
// next message's `cause` (index into the slice's changes) and `us`, what it has of the cause beyond
// the base's median. At most SHOWN_LIMIT, evenly chosen from all; `messages` says how many there
// are.
static json_t *balloons_json(const struct slice_shift *slice, const struct slice_profile *profile)
{
    struct columns c = {json_array(), json_array(), json_array(),
                        json_array(), json_array(), json_array()};
    size_t *change_of = changes_of(slice, profile);
    size_t count = slice->available && change_of ? profile->each.count : 0;
    size_t shown = count < SHOWN_LIMIT ? count : SHOWN_LIMIT;
    for (size_t i = 0; i < shown; i++)
        add_message(&c, slice, profile, i * count / shown, change_of);
    json_array_append_new(c.first, json_integer((json_int_t)json_array_size(c.us)));
    free(change_of);
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "messages", (json_int_t)count, "id",
                     c.id, "at_s", c.at, "latency_us", c.latency, "first", c.first, "cause",
                     c.cause, "us", c.us);
}

// The functions that both sides' samples were in, as the page draws them: columns, a parent before
// its children. null: a side was not sampled, or there is no memory.
static json_t *samples_json(const struct comparison *comparison)
{
    struct sample_stacks both = {0};
    struct flame_columns columns;
    bool sampled = true;
    flame_columns_begin(&columns, COMPARE_SIDES);
    for (unsigned side = 0; side < COMPARE_SIDES && sampled; side++)
        sampled = comparison->sides[side]->stacks.nodes.count > 0 &&
                  sample_stacks_join(&both, side, &comparison->sides[side]->stacks) == 0;
    for (size_t i = 0; sampled && i < both.nodes.count; i++) {
        const struct stack_node *node = &both.nodes.items[i];
        flame_columns_add(&columns, node->parent,
                          i ? name_pool_text(both.names, node->name) : "all", node->total);
    }
    sample_stacks_free(&both);
    static const char *const totals[] = {"base_totals", "candidate_totals"};
    json_t *object = flame_columns_json(&columns, totals);
    if (sampled && object)
        return object;
    json_decref(object);
    return json_null();
}

static json_t *document_of(const struct comparison *comparison)
{
    json_t *document = comparison_json(comparison), *slices = json_object_get(document, "slices");
    json_object_set_new(document, "doubtful", json_boolean(comparison_is_doubtful(comparison)));
    json_object_set_new(document, "samples", samples_json(comparison));
    for (size_t i = 0; i < comparison->asked && comparison_is_single(comparison); i++) {
        const struct slice_shift *slice = &comparison->shifts.items[i].shift;
        json_t *sides[COMPARE_SIDES];
        for (int side = 0; side < COMPARE_SIDES; side++)
            sides[side] = balloons_json(slice, comparison_profile(comparison, side, 0, i));
        json_object_set_new(json_array_get(slices, i), "balloons",
                            json_pack("{s:o, s:o}", "base", sides[COMPARE_BASE], "candidate",
                                      sides[COMPARE_CANDIDATE]));
    }
    return document;
}

int report_compare_html(const struct comparison *comparison, const char *path, struct error *err)
{
    const struct run_set *candidate = comparison->sides[COMPARE_CANDIDATE];
    char title[sizeof candidate->name + sizeof candidate->load + 16];
    snprintf(title, sizeof title, candidate->load[0] ? "%s, load `%s`" : "%s", candidate->name,
             candidate->load);
    const char *found = comparison->asked ? comparison->shifts.items[0].verdict : "";
    char doubted[32 + sizeof comparison->warning + sizeof comparison->shifts.items[0].verdict];
    if (comparison_is_doubtful(comparison)) {
        snprintf(doubted, sizeof doubted, "%s. As measured, %s", comparison->warning, found);
        found = doubted;
    }
    char words[2 * sizeof doubted];
    json_t *document = document_of(comparison);
    if (!document)
        return error_set(err, ERROR_FAILED, "no memory for the comparison's page");
    const struct page page = {.template_name = "page_compare.html",
                              .title = title,
                              .about = " compared",
                              .verdict = page_micro_signs(found, words, sizeof words),
                              .scripts = scripts,
                              .data = document};
    int result = page_write(&page, path, err);
    json_decref(document);
    return result;
}
