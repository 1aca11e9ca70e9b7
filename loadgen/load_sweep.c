// SPDX-License-Identifier: MIT

#include <stdio.h>
#include <string.h>

#include "loadgen/engine/load_signals.h"
#include "base/text.h"
#include "loadgen/load_curve.h"
#include "loadgen/load_run.h"

enum { SATURATED_SURELY = 2 }; // saturated rates in a row, after which the sweep ends

struct sweep {
    struct load_curve curve;
    unsigned saturated; // rates in a row
    const char *stop;   // why it ended
};

static bool may_go_on(struct sweep *sweep)
{
    const struct curve_point *last = &sweep->curve.points.items[sweep->curve.points.count - 1];
    sweep->saturated = last->saturation.who == SATURATION_NONE ? 0 : sweep->saturated + 1;
    if (last->interrupted)
        sweep->stop = "interrupted";
    else if (last->broken)
        sweep->stop = "broken";
    else if (sweep->saturated == SATURATED_SURELY)
        sweep->stop = "saturated";
    else
        return true;
    return false;
}

static int run_rates(struct load_plan *plan, struct sweep *sweep, struct error *err)
{
    const struct sweep_range *range = &plan->sweep;
    bool table = !plan->options.json;
    sweep->stop = "range";
    if (table)
        load_curve_print_head();
    for (size_t i = 0; i < range->count; i++) {
        struct load_outcome outcome;
        int status = load_curve_take(&sweep->curve, plan, sweep_range_rate(range, i),
                                     plan->options.duration_ns, &outcome, err);
        if (status < 0)
            return status;
        if (table)
            load_curve_print(&sweep->curve.points.items[i]);
        if (!may_go_on(sweep))
            break;
    }
    return 0;
}

// The first of the saturated rates that ended it, or with which it ends; NULL: none.
static const struct curve_point *first_saturated(const struct sweep *sweep)
{
    size_t count = sweep->curve.points.count;
    return sweep->saturated ? &sweep->curve.points.items[count - sweep->saturated] : NULL;
}

// The highest rate with a trustworthy result; NULL: none.
static const struct curve_point *highest_ok(const struct sweep *sweep)
{
    for (size_t i = sweep->curve.points.count; i-- > 0;)
        if (sweep->curve.points.items[i].summary.ok)
            return &sweep->curve.points.items[i];
    return NULL;
}

static json_t *sweep_json(const struct sweep *sweep, const struct load_plan *plan)
{
    const struct curve_point *saturated = first_saturated(sweep), *ok = highest_ok(sweep);
    json_t *json = load_curve_json(&sweep->curve, plan, "sweep");
    if (!json)
        return NULL;
    json_object_set_new(json, "stop", json_string(sweep->stop));
    json_object_set_new(json, "highest_ok", ok ? json_real(ok->asked.rate) : json_null());
    json_object_set_new(json, "saturation",
                        saturated ? json_pack("{s:f,s:s,s:s}", "rate", saturated->asked.rate, "who",
                                              saturation_names[saturated->saturation.who], "why",
                                              saturated->saturation.why)
                                  : json_null());
    return json;
}

static void print_end(const struct sweep *sweep)
{
    const struct curve_point *saturated = first_saturated(sweep);
    char rate[TEXT_NUMBER_BYTES];
    if (saturated)
        printf("from %s requests/s on %s\n", text_rate(saturated->asked.rate, rate),
               saturated->saturation.why);
    else if (strcmp(sweep->stop, "range") == 0)
        printf("neither the server nor this client was saturated\n");
    else
        printf("ended early: %s\n", sweep->stop);
}

int load_sweep(struct load_plan *plan, struct error *err)
{
    struct sweep sweep = {0};
    struct load_signals signals;
    int status = load_check_memory(plan, plan->sweep.to, plan->options.duration_ns,
                                   "--sweep or --duration", err);
    if (status < 0)
        return status;
    load_signals_hold(&signals);
    status = run_rates(plan, &sweep, err);
    load_signals_release(&signals);
    // The points measured so far are kept even if a later rate could not begin.
    if (sweep.curve.points.count) {
        struct error printing;
        if (status < 0)
            sweep.stop = "failed";
        one_wish_hand_over();
        if (!plan->options.json)
            print_end(&sweep);
        int finished =
            load_document_finish(&plan->options, sweep_json(&sweep, plan), "sweep.json", &printing);
        if (status == 0 && finished < 0) {
            *err = printing;
            status = finished;
        }
    }
    if (status == 0 && !highest_ok(&sweep))
        status = error_set(err, ERROR_INCONCLUSIVE,
                           "inconclusive: the figures of no rate can be trusted; of the first: %s",
                           sweep.curve.points.items[0].summary.reasons[0]);
    load_curve_free(&sweep.curve);
    return status;
}
