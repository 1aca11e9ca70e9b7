// SPDX-License-Identifier: MIT
#include "analysis/compare/gates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggestion.h"
#include "base/text.h"
#include "base/units.h"

const char *gate_outcome_name(enum gate_outcome outcome)
{
    static const char *const names[] = {"passed", "failed", "inconclusive"};
    return names[outcome];
}

double gate_confidence(size_t gates)
{
    return 1 - 0.01 / (double)(gates ? gates : 1);
}

enum gate_outcome gate_judge_increase(double value, double low, double high, double limit)
{
    if (low > 0 && value > limit)
        return GATE_FAILED;
    return high <= limit || high - value <= limit ? GATE_PASSED : GATE_INCONCLUSIVE;
}

enum gate_outcome gate_judge_absolute(double low, double high, double limit)
{
    return low > limit ? GATE_FAILED : high <= limit ? GATE_PASSED : GATE_INCONCLUSIVE;
}

#define say(result, ...) text_append((result)->words, sizeof(result)->words, __VA_ARGS__)

static const char *format_duration(double ns, char out[32])
{
    if (isnan(ns))
        return "?";
    if (ns > 1e12)
        return "over 1000 s"; // the end of an interval from too few runs may be infinite
    out[0] = '-';
    units_format_ns(fabs(ns), out + 1, 31);
    return ns < 0 ? out : out + 1;
}

static void say_ns(struct gate_result *result, double confidence)
{
    char value[32], low[32], high[32];
    say(result, "%s [%s, %s] (%.3g %%)", format_duration(result->value, value),
        format_duration(result->low, low), format_duration(result->high, high), 100 * confidence);
}

// --- percentiles ---------------------------------------------------------------------------------

static bool read_percentile(const char *name, struct gate *gate)
{
    double percentile;
    int end = 0;
    gate->quantile = sscanf(name, "p%lf%n", &percentile, &end) == 1 ? percentile / 100 : 0;
    return end > 0 && !name[end] && gate->quantile > 0 && gate->quantile < 1;
}

static void judge_unknown(const struct percentile_shift *shift, struct gate_result *result)
{
    bool never = shift->never[COMPARE_CANDIDATE];
    bool news = result->gate.limit == GATE_MAX || isfinite(shift->ns[COMPARE_BASE]);
    result->value = result->low = result->high = NAN;
    result->outcome = never && news ? GATE_FAILED : GATE_INCONCLUSIVE;
    if (never)
        say(result, "unanswered requests reach it in every run of the candidate%s",
            news ? "" : ", and the base's");
    else
        say(result, "not known: too few requests lie beyond it, or unanswered ones reach it");
}

static void judge_percentile_max(const struct percentile_shift *shift, struct gate_result *result)
{
    const struct resample_spread *spread = &shift->spread[COMPARE_CANDIDATE];
    double value = shift->ns[COMPARE_CANDIDATE];
    struct resample_interval interval =
        resample_single(log(fmax(value, 1)), spread, GATE_ABSOLUTE_CONFIDENCE);
    result->value = value;
    result->low = exp(interval.low);
    result->high = exp(interval.high);
    result->outcome = gate_judge_absolute(result->low, result->high, result->gate.value);
    say_ns(result, GATE_ABSOLUTE_CONFIDENCE);
    if (!interval.between_runs)
        say(result, ", from one run: how runs differ is not in it");
}

static void judge_shift(const struct compared_percentile *percentile, double confidence,
                        struct gate_result *result)
{
    struct resample_interval interval = percentile_shift_interval(&percentile->shift, confidence);
    result->value = percentile->shift.shift;
    result->low = interval.low;
    result->high = interval.high;
    result->outcome = interval.between_runs ? gate_judge_increase(result->value, result->low,
                                                                  result->high, result->gate.value)
                                            : GATE_INCONCLUSIVE;
    char value[TEXT_NUMBER_BYTES], low[TEXT_NUMBER_BYTES], high[TEXT_NUMBER_BYTES];
    say(result, "%s %% [%s, %s] (%.3g %%)", text_percent(result->value, value),
        text_percent(result->low, low), text_percent(result->high, high), 100 * confidence);
    if (!interval.between_runs)
        say(result, "; how runs differ by themselves takes at least two a side, better five");
    else if (result->outcome == GATE_INCONCLUSIVE)
        say(result, "; too few repetitions to see an increase of %s", result->gate.text);
    else if (result->outcome == GATE_FAILED) {
        const char *causes = strchr(percentile->verdict, ']'); // what follows the interval
        say(result, "%s", causes ? causes + 1 : "");
    }
}

static void judge_percentile(const struct comparison *comparison, double confidence,
                             struct gate_result *result)
{
    for (size_t i = 0; i < comparison->percentiles.count; i++) {
        const struct compared_percentile *percentile = &comparison->percentiles.items[i];
        if (fabs(percentile->shift.quantile - result->gate.quantile) > 1e-9)
            continue;
        if (!percentile->shift.known)
            judge_unknown(&percentile->shift, result);
        else if (result->gate.limit == GATE_MAX)
            judge_percentile_max(&percentile->shift, result);
        else
            judge_shift(percentile, confidence, result);
    }
}

// --- causes --------------------------------------------------------------------------------------

static bool read_cause(const char *name, struct gate *gate)
{
    (void)gate;
    size_t length = strlen(name);
    return length >= 4 && name[length - 1] == ')' && strchr(name, '(');
}

static const struct cause_shift *find_cause(const struct slice_shift *slice, const char *name)
{
    char text[100];
    for (size_t i = 0; i < slice->causes.count; i++)
        if (strcmp(cause_shift_name(&slice->causes.items[i], text, sizeof text), name) == 0)
            return &slice->causes.items[i];
    return NULL;
}

// --- names that no run has ---

// How long a name is without the role, "nginx (A)"; with `stem` without what follows its first
// colon, too.
static size_t name_bytes(const char *name, bool stem)
{
    const char *role = strrchr(name, '('), *colon = strstr(name, ": ");
    if (stem && colon)
        return (size_t)(colon - name);
    return role && role > name ? (size_t)(role - name) - 1 : strlen(name);
}

// Whether what the name is about is a part of another cause, and none itself (causes.tbl.h):
// "head-of-line blocking: page faults (A)".
static bool names_part(const char *name)
{
    static const char *const parts[] = {
#define COMPONENT_PART(NAME, WHOLE, part) part,
#include "analysis/decomposition/causes.tbl.h"
    };
    const size_t stem = name_bytes(name, true), whole = name_bytes(name, false);
    for (size_t i = 0; stem < whole && i < sizeof parts / sizeof *parts; i++)
        if (strlen(parts[i]) == whole - stem - 2 &&
            strncmp(name + stem + 2, parts[i], whole - stem - 2) == 0)
            return true;
    return false;
}

// Whether one of them may have been meant: they begin alike, up to a colon, or differ by what a
// typing mistake does.
static bool is_near(const char *written, const char *name)
{
    const size_t stem = name_bytes(written, true);
    return (stem == name_bytes(name, true) && strncmp(written, name, stem) == 0) ||
           suggestion_distance(written, name) < SUGGESTION_FAR;
}

// A name that is only a part's was a cause's own once: no run can have it, and that it has none is
// no news. Any other may have gone, as it should.
static void judge_missing(const struct slice_shift *slice, struct gate_result *result)
{
    enum { MOST_NEAR = 3 };
    const char *name = result->gate.name;
    char near[100];
    size_t found = 0;
    const bool part = names_part(name);
    result->value = result->low = result->high = part ? NAN : 0;
    result->outcome = part ? GATE_INCONCLUSIVE : GATE_PASSED;
    if (part)
        say(result, "no cause is called so: that is a part of `%.*s %s`; name that instead",
            (int)name_bytes(name, true), name, strrchr(name, '('));
    else
        say(result, "no message of %s has any of `%s`, in no run", slice->words, name);
    for (size_t i = 0; i < slice->causes.count && found < MOST_NEAR; i++) {
        cause_shift_name(&slice->causes.items[i], near, sizeof near);
        if (is_near(name, near))
            say(result, "%s`%s`", found++ ? ", " : "; there is ", near);
    }
    if (!part && found == 0)
        say(result, ", nor of anything of a similar name");
}

static void judge_cause_increase(const struct cause_shift *cause, double confidence,
                                 struct gate_result *result)
{
    struct resample_interval interval =
        resample_difference(cause->difference_ns, &cause->spread[COMPARE_BASE],
                            &cause->spread[COMPARE_CANDIDATE], confidence);
    result->value = cause->difference_ns;
    result->low = interval.low;
    result->high = interval.high;
    result->outcome = interval.between_runs ? gate_judge_increase(result->value, result->low,
                                                                  result->high, result->gate.value)
                                            : GATE_INCONCLUSIVE;
    say(result, "%s", result->value > 0 ? "+" : "");
    say_ns(result, confidence);
    say(result, " per message");
    if (!interval.between_runs)
        say(result, "; how runs differ by themselves takes at least two a side, better five");
}

static void judge_cause(const struct comparison *comparison, double confidence,
                        struct gate_result *result)
{
    const struct slice_shift *slice = &comparison->shifts.items[comparison->gate_slice].shift;
    if (!slice->available || slice->runs[COMPARE_CANDIDATE] == 0) {
        result->value = result->low = result->high = NAN;
        result->outcome = GATE_INCONCLUSIVE;
        say(result, "not known: %s",
            slice->reason[0] ? slice->reason : "no run of the candidate has its causes");
        return;
    }
    const struct cause_shift *cause = find_cause(slice, result->gate.name);
    if (!cause) {
        judge_missing(slice, result);
        return;
    }
    if (result->gate.limit == GATE_MAX_INCREASE) {
        judge_cause_increase(cause, confidence, result);
        return;
    }
    struct resample_interval interval =
        resample_single(cause->mean_ns[COMPARE_CANDIDATE], &cause->spread[COMPARE_CANDIDATE],
                        GATE_ABSOLUTE_CONFIDENCE);
    result->value = cause->mean_ns[COMPARE_CANDIDATE];
    result->low = fmax(interval.low, 0);
    result->high = interval.high;
    result->outcome = gate_judge_absolute(result->low, result->high, result->gate.value);
    say_ns(result, GATE_ABSOLUTE_CONFIDENCE);
    say(result, " per message of %s%s", slice->words,
        interval.between_runs ? "" : ", from one run: how runs differ is not in it");
}

// --- the table -----------------------------------------------------------------------------------

// A row each: key, its line in the manual, what its value must be, and the forms of `max` and
// `max_increase`. read_KEY reads its value, judge_KEY judges it.
#define GATE_SUBJECTS(SUBJECT)                                                                     \
    SUBJECT(percentile, "p99.9, or", "a percentile, like p99.9", GATE_DURATION, GATE_SHARE)        \
    SUBJECT(cause, "one with its role: nginx (A)",                                                 \
            "a cause with its role, as the summary and the comparison name them, like "            \
            "\"nginx (A)\"",                                                                       \
            GATE_DURATION, GATE_DURATION)

static const struct gate_subject gate_subjects[] = {
#define AS_SUBJECT(key, help, is, max, increase)                                                   \
    {#key, is, {max, increase}, read_##key, judge_##key},
    GATE_SUBJECTS(AS_SUBJECT)};
enum { SUBJECTS = sizeof gate_subjects / sizeof *gate_subjects };

// --- reading and writing -------------------------------------------------------------------------

#define EXAMPLE                                                                                    \
    "e.g. `{percentile: p99, max_increase: 5%}` or `{cause: \"head-of-line blocking (A)\", max: "  \
    "10us}`"

static const char *const limit_keys[GATE_LIMITS] = {"max", "max_increase"};

// "5%", more than 0.
static int read_share_limit(const struct binding *binding, const struct node *node,
                            struct gate *gate)
{
    double percent;
    int end = 0;
    if (sscanf(gate->text, "%lf %%%n", &percent, &end) != 1 || end == 0 || gate->text[end] ||
        !(percent > 0) || !isfinite(percent))
        return document_error(
            binding->document, node, binding->err, "%s: `%s` is not a share above 0, like 5%%%s",
            limit_keys[gate->limit], gate->text,
            gate->limit == GATE_MAX ? "" : "; that nothing at all was added cannot be shown");
    gate->value = percent / 100;
    return 0;
}

static int read_limit(const struct binding *binding, const struct node *node, struct gate *gate)
{
    struct error inner;
    uint64_t ns;
    const char *text = node_text(node), *key = limit_keys[gate->limit];
    if (strlen(text) >= sizeof gate->text)
        return document_error(binding->document, node, binding->err,
                              "%s: `%.40s...` is too long for a limit", key, text);
    strcpy(gate->text, text);
    if (gate->subject->forms[gate->limit] == GATE_SHARE)
        return read_share_limit(binding, node, gate);
    if (units_parse_duration_ns(text, &ns, &inner) < 0)
        return document_error(binding->document, node, binding->err, "%s: %s", key, inner.text);
    if (ns == 0)
        return document_error(binding->document, node, binding->err,
                              "%s: a limit of 0 cannot be kept", key);
    gate->value = (double)ns;
    return 0;
}

static int refuse_subjects(const struct binding *binding, const struct node *node)
{
    char keys[300] = "";
    for (int i = 0; i < SUBJECTS; i++)
        text_append(keys, sizeof keys, "%sof a `%s`",
                    i == 0             ? ""
                    : i + 1 < SUBJECTS ? ", "
                                       : " or ",
                    gate_subjects[i].key);
    return document_error(binding->document, node, binding->err, "a gate is %s, %s", keys, EXAMPLE);
}

static int read_gate(const struct binding *binding, const struct node *node, void *object)
{
    struct gate *gate = object;
    const struct node *subject = NULL, *max = node_child(node, limit_keys[GATE_MAX]),
                      *increase = node_child(node, limit_keys[GATE_MAX_INCREASE]);
    for (int i = 0; i < SUBJECTS; i++) {
        const struct node *value = node_child(node, gate_subjects[i].key);
        if (value && gate->subject)
            return refuse_subjects(binding, node);
        if (value)
            gate->subject = &gate_subjects[i], subject = value;
    }
    if (!subject)
        return refuse_subjects(binding, node);
    if (!max == !increase)
        return document_error(binding->document, node, binding->err,
                              "a gate has `max` or `max_increase`, one of them; write two gates "
                              "for both");
    gate->limit = increase ? GATE_MAX_INCREASE : GATE_MAX;
    const char *name = node_text(subject);
    if (strlen(name) >= sizeof gate->name || !gate->subject->read(name, gate))
        return document_error(binding->document, subject, binding->err, "%s: `%s` is not %s",
                              gate->subject->key, name, gate->subject->is);
    strcpy(gate->name, name);
    const struct node *load = node_child(node, "load");
    if (load && (!node_text(load)[0] || strlen(node_text(load)) >= sizeof gate->load))
        return document_error(binding->document, load, binding->err,
                              "load: `%.40s` is not a load's name", node_text(load));
    if (load)
        strcpy(gate->load, node_text(load));
    return read_limit(binding, increase ? increase : max, gate);
}

static const struct field gate_rows[] = {
#define AS_FIELD(key, text, ...) {#key, FIELD_TEXT, .help = text},
    GATE_SUBJECTS(AS_FIELD){"load", FIELD_TEXT,
                            .help = "of several loads the one called so; else each of them"},
    {"max", FIELD_TEXT, .help = "at most so long: 200us, or"},
    {"max_increase", FIELD_TEXT, .help = "so much more than the base: 5%, of a cause 10us"},
};
const struct fields gate_fields =
    FIELDS(gate_rows, struct gate, .example = EXAMPLE, .check = read_gate);

int gates_read(const struct document *document, const struct node *node, struct gate_array *out,
               struct error *err)
{
    static const struct field list = {
        .key = "gates", .kind = FIELD_LIST, .fields = &gate_fields, .size = sizeof *out};
    const struct binding binding = {.document = document, .err = err};
    return field_read(&binding, &list, node, out);
}

int gates_load(const char *path, bool needed, struct gate_array *out, struct error *err)
{
    struct document *document;
    int result = document_open(path, &document, err);
    if (result < 0)
        return result;
    result = gates_read(document, node_child(document_root(document), "gates"), out, err);
    if (result == 0 && needed && out->count == 0)
        result = document_error(document, NULL, err,
                                "there are no gates in it: `gates: [{...}]`, %s", EXAMPLE);
    document_free(document);
    return result;
}

json_t *gates_json(const struct gate_array *gates)
{
    json_t *list = json_array();
    for (size_t i = 0; i < gates->count; i++) {
        const struct gate *gate = &gates->items[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:s*}", gate->subject->key, gate->name,
                                              limit_keys[gate->limit], gate->text, "load",
                                              gate->load[0] ? gate->load : NULL));
    }
    return list;
}

// Whether a gate is of a load, whose it is then by name.
static bool take_load(struct gate *gate, const char *load)
{
    if (gate->load[0] && strcmp(gate->load, load) != 0)
        return false;
    snprintf(gate->load, sizeof gate->load, "%s", load);
    return true;
}

// What a load that cannot be trusted measured neither passes nor fails a build.
static void doubt_loads(const struct comparison *comparison, struct gate_result *result)
{
    const int first = result->gate.limit == GATE_MAX_INCREASE ? COMPARE_BASE : COMPARE_CANDIDATE;
    for (int side = first; side < COMPARE_SIDES; side++) {
        const struct run_set *set = comparison->sides[side];
        if (!set || !set->inconclusive)
            continue;
        result->outcome = GATE_INCONCLUSIVE;
        say(result, "; the %s's load cannot be trusted: %s",
            side == COMPARE_BASE ? "base" : "candidate", set->reason);
        return;
    }
}

int gates_judge(const struct gate_array *gates, const struct comparison *comparison, size_t loads,
                struct gate_result_array *out, struct error *err)
{
    const char *load = comparison->sides[COMPARE_CANDIDATE]->load;
    double confidence = gate_confidence(gates->count * loads);
    for (size_t i = 0; i < gates->count; i++) {
        struct gate_result result = {.gate = gates->items[i]};
        if (result.gate.limit == GATE_MAX_INCREASE && !comparison->has_base)
            continue;
        if (!take_load(&result.gate, load))
            continue;
        result.gate.subject->judge(comparison, confidence, &result);
        doubt_loads(comparison, &result);
        if (array_push(out, result) < 0)
            return error_set(err, ERROR_FAILED, "out of memory for the gates' results");
    }
    return 0;
}

int gates_without_base(const struct gate_array *gates, const char *load,
                       struct gate_result_array *out, struct error *err)
{
    for (size_t i = 0; i < gates->count; i++) {
        struct gate_result result = {.gate = gates->items[i],
                                     .outcome = GATE_INCONCLUSIVE,
                                     .value = NAN,
                                     .low = NAN,
                                     .high = NAN};
        if (!take_load(&result.gate, load))
            continue;
        say(&result, "not compared: the base has no load `%s`", load);
        if (array_push(out, result) < 0)
            return error_set(err, ERROR_FAILED, "out of memory for the gates' results");
    }
    return 0;
}
