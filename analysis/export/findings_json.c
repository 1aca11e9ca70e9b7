// SPDX-License-Identifier: MIT
#include "analysis/export/findings_json.h"

#include "analysis/timeline/pauses.h"
#include "base/json_numbers.h"
#include "base/text.h"

static json_t *micros(double ns)
{
    return json_number_or_null(ns / 1000);
}

// A name that may be anything.
static json_t *name_json(const char *name)
{
    char clean[300];
    return json_string(text_clean(name, false, clean, sizeof clean));
}

// --- the time budget -----------------------------------------------------------------------------

static json_t *thread_budget_json(const struct thread_budget *budget)
{
    json_t *states = json_object(), *waits = json_array();
    for (int state = 0; state < BUDGET_STATES; state++)
        json_object_set_new(states, budget_state_name((enum budget_state)state),
                            micros(budget->ns[state]));
    for (size_t i = 0; i < budget->waits.count; i++) {
        const struct budget_wait *wait = &budget->waits.items[i];
        char name[64];
        pause_name(wait->pause, name, sizeof name);
        json_array_append_new(waits, json_pack("{s:s, s:I, s:o}", "wait", name, "times",
                                               (json_int_t)wait->times, "us", micros(wait->ns)));
    }
    return json_pack("{s:o, s:o, s:i, s:o, s:o, s:o, s:o}", "name", name_json(budget->name),
                     "thread", budget->thread ? json_integer(budget->thread) : json_null(),
                     "threads", (int)budget->threads, "us", micros(budget->whole_ns), "busy_us",
                     micros(budget->busy_ns), "states_us", states, "blocked", waits);
}

static json_t *budgets_json(const struct thread_budget_array *budgets)
{
    json_t *list = json_array();
    for (size_t i = 0; i < budgets->count; i++)
        json_array_append_new(list, thread_budget_json(&budgets->items[i]));
    return list;
}

json_t *time_budget_json(const struct time_budget *budget)
{
    if (budget->threads.count == 0)
        return json_null();
    return json_pack("{s:o, s:b, s:o, s:o}", "window_us",
                     micros((double)(budget->end_ns - budget->begin_ns)), "calls",
                     budget->has_calls, "by_name", budgets_json(&budget->names), "threads",
                     budgets_json(&budget->threads));
}

// --- the ordinary request ------------------------------------------------------------------------

json_t *ordinary_json(const struct diagnosis *diagnosis)
{
    json_t *list = json_array();
    for (size_t i = 0; i < diagnosis->ordinary.count; i++) {
        const struct ordinary_part *part = &diagnosis->ordinary.items[i];
        json_array_append_new(
            list,
            json_pack("{s:o, s:s, s:s, s:o, s:o, s:o, s:b, s:o}", "part", name_json(part->name),
                      "role", role_name(part->role), "category", part->category, "mean_us",
                      micros(part->mean_ns), "fast_us", micros(part->fast_ns), "met",
                      json_number_or_null(part->met), "concerns", part->concerns, "remedy",
                      part->remedy ? json_string(part->remedy) : json_null()));
    }
    return list;
}

// --- what slow requests share --------------------------------------------------------------------

json_t *shared_traits_json(const struct run_analysis *run)
{
    json_t *list = json_array();
    for (size_t i = 0; i < run->findings.shared.count; i++) {
        const struct shared_trait *trait = &run->findings.shared.items[i];
        char words[100];
        shared_trait_words(trait, run_operation_name(run, 0, trait->value), words, sizeof words);
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:I, s:I, s:I, s:f, s:f, s:o, s:o, s:o, s:o, s:o}", "trait",
                      words, "kind", trait_kind_name(trait->kind), "value",
                      (json_int_t)trait->value, "requests", (json_int_t)trait->requests, "slow",
                      (json_int_t)trait->slow, "slow_share", trait->slow_share, "share",
                      trait->share, "odds_ratio", json_number_or_null(trait->odds_ratio),
                      "odds_low", json_number_or_null(trait->odds_low), "median_us",
                      micros(trait->median_ns), "other_median_us", micros(trait->other_median_ns),
                      "rank_correlation", json_number_or_null(trait->rank_correlation)));
    }
    return list;
}
