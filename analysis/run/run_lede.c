// SPDX-License-Identifier: MIT
#include "analysis/run/run_lede.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/decomposition/components.h"
#include "analysis/diagnosis/remedies.h"
#include "analysis/run/run_groups.h"
#include "analysis/run/run_judgement.h"
#include "analysis/run/run_network.h"
#include "base/text.h"
#include "base/units.h"

enum { NAMED_CAUSES = 2, COMPARED_CAUSES = 128 };
#define WORTH_A_CLAUSE  0.2  // share of the extra time: the second cause is named from there on
#define WORTH_A_DOUBT   0.25 // the share of which nobody knows where it went
#define MOST_NOT_JOINED 0.01 // of the answered requests that could not be followed, without a word

// --- a cause in words ----------------------------------------------------------------------------

// The server that a cause is about: another one behind it, by whose name the cause's begins, else
// the only one. That it waited for another one is the cause of the one that waits.
static void put_server(const struct run_analysis *run, const struct cause *cause, char *out,
                       size_t bytes)
{
    const struct applications *servers = &run->lifetimes.applications;
    const char *name = component_is_at_tier(cause->name, cause->tier) ? cause->tier
                       : servers->items.count == 1                    ? servers->items.items[0].name
                                                                      : "";
    text_clean(name[0] ? name : "the server", false, out, bytes);
}

static void put_core(const char *server, unsigned roles, char *out, size_t bytes)
{
    if (roles & 1u << ROLE_CLIENT)
        snprintf(out, bytes, "the load generator's CPU core");
    else if (roles == 1u << ROLE_R)
        snprintf(out, bytes, "the CPU core that received packets for %s", server);
    else if (roles == 1u << ROLE_A)
        snprintf(out, bytes, "%s's CPU core", server);
    else
        snprintf(out, bytes, "the CPU that %s needed", server);
}

// A name in quotes, which are its only ones.
static void put_quoted(const char *name, char *out, size_t bytes)
{
    char clean[CAUSE_NAME_BYTES + 100];
    text_clean(name, false, clean, sizeof clean);
    for (char *at = clean; *at; at++)
        if (*at == '`')
            *at = '\'';
    snprintf(out, bytes, "`%s`", clean);
}

// The clause with what stands for its braces.
static void fill_clause(const char *clause, const char *const values[][2], size_t count, char *out)
{
    out[0] = '\0';
    while (*clause) {
        size_t plain = strcspn(clause, "{"), length = strcspn(clause + plain, "}");
        text_append(out, CAUSE_WORDS_BYTES, "%.*s", (int)plain, clause);
        clause += plain;
        if (!*clause)
            return;
        for (size_t i = 0; i < count; i++)
            if (strlen(values[i][0]) == length - 1 &&
                strncmp(values[i][0], clause + 1, length - 1) == 0)
                text_append(out, CAUSE_WORDS_BYTES, "%s", values[i][1]);
        clause += length + (clause[length] == '}');
    }
}

// --- causes --------------------------------------------------------------------------------------

// Whether a reader takes two for one cause: the same program on the core that received and on the
// one that served.
static bool is_same(const struct cause *a, const struct cause *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->category, b->category) == 0 &&
           strcmp(a->tier, b->tier) == 0 && run_cause_is_client(a) == run_cause_is_client(b);
}

char *run_cause_words(const struct run_analysis *run, const struct cause_array *causes,
                      size_t index, char out[CAUSE_WORDS_BYTES])
{
    char server[80], core[160], name[300], group[GROUP_WORDS_BYTES];
    char refusal[NETWORK_WORDS_BYTES], rules[NETWORK_WORDS_BYTES];
    const struct cause *cause = &causes->items[index];
    const struct remedy *known = remedy_of(cause->category);
    unsigned roles = 0;
    for (size_t i = 0; i < causes->count; i++)
        roles |= is_same(&causes->items[i], cause) ? 1u << causes->items[i].role : 0;
    put_server(run, cause, server, sizeof server);
    put_core(server, roles, core, sizeof core);
    put_quoted(cause->name, name, sizeof name);
    const char *const values[][2] = {{"server", server},
                                     {"core", core},
                                     {"cause", name},
                                     {"group", run_group_words(run, cause, group)},
                                     {"refusal", run_refusal_words(run, refusal)},
                                     {"rules", run_rules_words(run, rules)}};
    fill_clause(known ? known->happened : "it was {cause}", values, sizeof values / sizeof *values,
                out);
    if (known && cause->class == CAUSE_FUNCTION)
        text_append(out, CAUSE_WORDS_BYTES, ": %s", name);
    return out;
}

// The i-th cause with those after it that are the same; no cause where it was counted before.
static struct named_cause gather(const struct cause_array *causes, size_t i)
{
    struct named_cause out = {.cause = &causes->items[i], .index = i};
    for (size_t j = 0; j < causes->count; j++) {
        if (!is_same(&causes->items[j], out.cause))
            continue;
        if (j < i)
            return (struct named_cause){0};
        out.total_ns += causes->items[j].total_ns;
    }
    return out;
}

static bool is_of(const struct cause *cause, enum whose_causes whose)
{
    return whose == ALL_CAUSES ||
           (whose == CLIENTS_CAUSES ? run_cause_is_client(cause)
                                    : cause->apart == (whose == CAUSES_APART));
}

size_t run_named_causes(const struct diagnosis *diagnosis, enum whose_causes whose,
                        struct named_cause *out, size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < diagnosis->causes.count; i++) {
        struct named_cause one = gather(&diagnosis->causes, i);
        if (!one.cause || !is_of(one.cause, whose))
            continue;
        size_t at = count;
        for (; at > 0 && out[at - 1].total_ns < one.total_ns; at--)
            if (at < most)
                out[at] = out[at - 1];
        if (at < most)
            out[at] = one;
        count += count < most;
    }
    return count;
}

size_t run_causes_by_words(const struct run_analysis *run, const struct diagnosis *diagnosis,
                           enum whose_causes whose, struct named_cause *out, size_t most)
{
    struct named_cause all[COMPARED_CAUSES];
    char first[CAUSE_WORDS_BYTES], other[CAUSE_WORDS_BYTES];
    const struct cause_array *causes = &diagnosis->causes;
    size_t count = run_named_causes(diagnosis, whose, all, COMPARED_CAUSES), kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct named_cause one = all[i];
        size_t same = 0;
        run_cause_words(run, causes, one.index, other);
        while (same < kept &&
               strcmp(run_cause_words(run, causes, all[same].index, first), other) != 0)
            same++;
        if (same < kept) {
            one = all[same];
            one.total_ns += all[i].total_ns;
            one.several = true;
        } else {
            kept++;
        }
        for (; same > 0 && all[same - 1].total_ns < one.total_ns; same--)
            all[same] = all[same - 1];
        all[same] = one;
    }
    kept = kept < most ? kept : most;
    memcpy(out, all, kept * sizeof *out);
    return kept;
}

// Whether a cause is said after the first: a good part of the time, or the first that either side
// can mend.
static bool is_worth_a_clause(const struct diagnosis *diagnosis, const struct named_cause *named,
                              bool after_apart)
{
    return named->total_ns >= WORTH_A_CLAUSE * run_diagnosis_extra_ns(diagnosis) ||
           (after_apart && run_cause_stands_out(diagnosis, named->cause));
}

const char *run_what_helps(const struct run_analysis *run, const struct cause *cause)
{
    const struct remedy *remedy = remedy_of(cause->category);
    if (strcmp(cause->category, "connections") == 0 && run_refusal_helps(run))
        return run_refusal_helps(run);
    if (strcmp(cause->category, "application") == 0) {
        if (cause->class == CAUSE_FUNCTION)
            return "look at that function: the report shows when it ran, and who called it";
        if (run->evidence.trace.asked)
            return "trace more of what it does: a larger buffer, less detail, a shorter window "
                   "(capture: buffer, detail, window)";
        if (run->evidence.samples.present)
            return "see in which functions its samples are: the report has them";
    }
    return remedy ? remedy->helps : "";
}

// "For 78 % of that extra time another program, `yes`, had memcached's CPU core; for 20 % ..."
// Returns what helps against the first, "" if nothing is known or there is none.
static const char *append_shares(struct run_lede *out, const struct run_analysis *run,
                                 const struct diagnosis *diagnosis, enum whose_causes whose)
{
    struct named_cause picked[NAMED_CAUSES] = {0};
    char words[CAUSE_WORDS_BYTES];
    double whole = run_diagnosis_extra_ns(diagnosis);
    size_t count = run_causes_by_words(run, diagnosis, whose, picked, NAMED_CAUSES), named = 0;
    bool after_apart = whose == ALL_CAUSES && count && picked[0].cause->apart;
    if (after_apart)
        count = 1 + run_causes_by_words(run, diagnosis, OTHER_CAUSES, picked + 1, 1);
    for (; named < count; named++) {
        if ((named || whose == CAUSES_APART) &&
            !is_worth_a_clause(diagnosis, &picked[named], after_apart))
            break;
        text_append(out->text, LEDE_BYTES, "%s %d %%%s %s", named ? "; for" : " For",
                    text_whole_percent(picked[named].total_ns, whole),
                    named ? "" : " of that extra time",
                    run_cause_words(run, &diagnosis->causes, picked[named].index, words));
    }
    text_append(out->text, LEDE_BYTES, "%s", named ? "." : "");
    return named ? run_what_helps(run, picked[0].cause) : "";
}

// Where nothing stands out. "The largest small things: memcached was woken late, or waited for its
// turn (12.0 us of each on average); ..."
static void append_small(struct run_lede *out, const struct run_analysis *run,
                         const struct diagnosis *diagnosis)
{
    struct named_cause picked[NAMED_CAUSES] = {0};
    char words[CAUSE_WORDS_BYTES], each[32];
    size_t count = run_causes_by_words(run, diagnosis, OTHER_CAUSES, picked, NAMED_CAUSES);
    for (size_t i = 0; i < count; i++)
        text_append(out->text, LEDE_BYTES, "%s%s (%s%s)",
                    i           ? "; "
                    : count > 1 ? " The largest small things: "
                                : " The largest small thing: ",
                    run_cause_words(run, &diagnosis->causes, picked[i].index, words),
                    units_format_ns(picked[i].total_ns / (double)diagnosis->messages.count, each,
                                    sizeof each),
                    i ? "" : " of each on average");
    text_append(out->text, LEDE_BYTES, "%s", count ? "." : "");
}

static void append_causes(struct run_lede *out, const struct run_analysis *run,
                          const struct diagnosis *diagnosis, bool client)
{
    double whole = run_diagnosis_extra_ns(diagnosis), all = 0;
    bool calm = run_is_calm(diagnosis);
    const char *helps = append_shares(out, run, diagnosis,
                                      calm     ? CAUSES_APART
                                      : client ? CLIENTS_CAUSES
                                               : ALL_CAUSES);
    if (calm)
        append_small(out, run, diagnosis);
    for (size_t i = 0; i < diagnosis->causes.count; i++)
        all += diagnosis->causes.items[i].total_ns;
    if ((!calm || helps[0]) && whole - all >= WORTH_A_DOUBT * whole)
        text_append(out->text, LEDE_BYTES, " Of another %d %% nobody knows where it went.",
                    text_whole_percent(whole - all, whole));
    text_append(out->remedy, sizeof out->remedy, "%s", helps);
}

// --- how slow ------------------------------------------------------------------------------------

// "1 in 100 requests", of those that were slowest.
static void append_share(char *out, double share)
{
    double one_in = 1 / share;
    char count[32];
    if (share >= 1)
        text_append(out, LEDE_BYTES, "all requests");
    else if (fabs(one_in - round(one_in)) < 1e-3 * one_in)
        text_append(out, LEDE_BYTES, "1 in %s requests",
                    text_count((uint64_t)round(one_in), count));
    else
        text_append(out, LEDE_BYTES, "%.4g %% of requests", 100 * share);
}

static void append_window(char *out, const struct run_analysis *run,
                          const struct diagnosis_slice *slice)
{
    if (slice->from_ns != slice->to_ns)
        text_append(out, LEDE_BYTES, "from %s to %s ",
                    TEXT_INSTANT((double)(slice->from_ns - run->lifetimes.begin_ns)),
                    TEXT_INSTANT((double)(slice->to_ns - run->lifetimes.begin_ns)));
}

// "1 in 100 requests took 3.80 ms or more (usually 53.2 us)"
static void append_latency(char *out, const struct run_analysis *run,
                           const struct diagnosis *diagnosis)
{
    const struct diagnosis_slice *slice = &diagnosis->slice;
    char low[32], high[32], usual[32], count[32];
    units_format_ns(diagnosis->slice_low_ns, low, sizeof low);
    units_format_ns(diagnosis->slice_high_ns, high, sizeof high);
    units_format_ns(diagnosis->reference_latency_ns, usual, sizeof usual);
    append_window(out, run, slice);
    if (slice->one) {
        text_append(out, LEDE_BYTES, "request %llu took %s", (unsigned long long)slice->request,
                    low);
    } else if (slice->min_latency_ns > 0) {
        units_format_ns(slice->min_latency_ns, low, sizeof low);
        text_append(out, LEDE_BYTES, "%s request%s took longer than %s",
                    text_count(diagnosis->messages.count + diagnosis->passed_over, count),
                    text_plural((double)diagnosis->messages.count), low);
    } else if (slice->high >= 1) {
        append_share(out, 1 - slice->low);
        text_append(out, LEDE_BYTES, " took %s or more", low);
    } else {
        text_append(out, LEDE_BYTES, "the requests between the fastest %.4g %% and %.4g %% took ",
                    100 * slice->low, 100 * slice->high);
        text_append(out, LEDE_BYTES, "%s to %s", low, high);
    }
    text_append(out, LEDE_BYTES, " %s(usually %s)",
                run->evidence.without_client ? "in the server " : "", usual);
}

// Where there is no diagnosis: what is known all the same. Returns whether that is how many
// requests were never answered.
static bool append_quantiles(char *out, const struct run_analysis *run)
{
    enum { P50 = 0, P99 = 2 };
    const struct run_lifetimes *lives = &run->lifetimes;
    const double *value = lives->latency.value_ns;
    char p50[32], p99[32], unanswered[32], all[32];
    if (lives->answered == 0 || !(value[P99] > 0))
        return false;
    if (isinf(value[P99]))
        text_append(out, LEDE_BYTES, " More than 1 in 100 requests were never answered: %s of %s.",
                    text_count(lives->scheduled - lives->answered, unanswered),
                    text_count(lives->scheduled, all));
    else
        text_append(out, LEDE_BYTES,
                    " 1 in 100 requests took %s or more, half of them %s or less; why is not "
                    "known.",
                    units_format_ns(value[P99], p99, sizeof p99),
                    units_format_ns(value[P50], p50, sizeof p50));
    return isinf(value[P99]);
}

// Which requests all of that is not about; told: of those without an answer it has been said.
static void append_left_out(char *out, const struct run_analysis *run, bool told)
{
    char count[32];
    const struct run_lifetimes *lives = &run->lifetimes;
    uint64_t unanswered = lives->scheduled - lives->answered;
    uint64_t lost = lives->answered - lives->states[LIFETIME_WHOLE];
    if (unanswered && !told)
        text_append(out, LEDE_BYTES, " Besides, %s request%s never answered.",
                    text_count(unanswered, count), unanswered == 1 ? " was" : "s were");
    if (lives->states[LIFETIME_WHOLE] && (double)lost > MOST_NOT_JOINED * (double)lives->answered)
        text_append(out, LEDE_BYTES,
                    " %d %% of the answered requests could not be followed and are not in this.",
                    text_whole_percent((double)lost, (double)lives->answered));
}

// --- the whole -----------------------------------------------------------------------------------

// As the beginning of a sentence.
static void capitalise(char *text)
{
    if (text[0] >= 'a' && text[0] <= 'z')
        text[0] = (char)(text[0] - 'a' + 'A');
}

static bool client_was_late(const struct diagnosis *diagnosis)
{
    return !run_is_calm(diagnosis) && run_clients_fault(diagnosis);
}

static void append_diagnosis(struct run_lede *out, const struct run_analysis *run,
                             const struct diagnosis *diagnosis)
{
    bool calm = run_is_calm(diagnosis), client = client_was_late(diagnosis);
    bool any = diagnosis->causes.count > 0 && run_diagnosis_extra_ns(diagnosis) > 0;
    text_append(out->text, LEDE_BYTES, "%s", any && calm ? "nothing stands out: " : "");
    append_latency(out->text, run, diagnosis);
    text_append(out->text, LEDE_BYTES, "%s.",
                !any     ? "; nothing was found that explains it"
                : client ? ", but it was the load generator that was late, not the server"
                         : "");
    if (any)
        append_causes(out, run, diagnosis, client);
}

// Why the run is inconclusive, without the details in parentheses; NULL: it is not, or only why its
// slow requests were slow.
static const char *doubt_of(const struct run_analysis *run, const struct diagnosis *first,
                            char words[RUN_TRACE_WORDS])
{
    const char *doubt = run_load_doubt(run), *plain = run_load_doubt_words(run).words;
    if (doubt)
        return plain ? plain : doubt;
    if (!run->findings.verdict_available)
        return first ? first->reason : "nothing was recorded that could say why";
    return run->evidence.trace.asked && run_trace_lack(&run->evidence.trace, words)[0]
               ? run_trace_lack(&run->evidence.trace, words)
               : NULL;
}

void run_lede(const struct run_analysis *run, struct run_lede *out)
{
    const struct diagnosis *first =
        run->findings.diagnoses.count ? run->findings.diagnoses.items : NULL;
    char words[RUN_TRACE_WORDS], clean[600];
    const char *doubt = doubt_of(run, first, words), *helps = run_load_doubt_words(run).helps;
    const enum load_doubt kind = run_load_doubt_kind(run);
    const bool unopened = kind == DOUBT_UNOPENED || kind == DOUBT_PORTLESS;
    char refusal[NETWORK_WORDS_BYTES] = ""; // else the cause says it
    bool told = false;
    *out = (struct run_lede){0};
    if (doubt) {
        text_clean(doubt, false, clean, sizeof clean);
        int length =
            run->findings.verdict_available ? (int)strlen(clean) : (int)strcspn(clean, "(");
        while (length > 0 && (clean[length - 1] == ' ' || clean[length - 1] == '.'))
            length--;
        if (unopened && !run->findings.verdict_available)
            run_refusal_words(run, refusal);
        text_append(out->text, LEDE_BYTES, "Inconclusive: %.*s%s.", length, clean, refusal);
    }
    if (run->findings.verdict_available) {
        text_append(out->text, LEDE_BYTES, "%s", doubt ? " As measured, " : "");
        append_diagnosis(out, run, first);
    } else {
        told = append_quantiles(out->text, run);
    }
    append_left_out(out->text, run, told);
    // First of all, a run that can be trusted. Where the requests were late before they were sent,
    // it takes what helps against that, and what that made of the server's numbers is no matter.
    const bool late_first = kind >= DOUBT_SILENT && kind < LOAD_DOUBTS &&
                            run->findings.verdict_available && client_was_late(first);
    if (unopened && run_refusal_helps(run))
        helps = run_refusal_helps(run);
    if (doubt && !late_first)
        snprintf(out->remedy, sizeof out->remedy, "%s", helps ? helps : "");
    capitalise(out->text);
    capitalise(out->remedy);
}

void run_lede_write_doubt(const struct run_analysis *run, FILE *out)
{
    struct run_lede lede;
    if (run_is_conclusive(run))
        return;
    run_lede(run, &lede);
    const char *end = strstr(lede.text, ". ");
    fprintf(out, "%.*s\n", (int)(end ? (size_t)(end - lede.text) : strlen(lede.text)), lede.text);
}
