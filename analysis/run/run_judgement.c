// SPDX-License-Identifier: MIT
#include "analysis/run/run_judgement.h"

#include <math.h>
#include <string.h>

#include "analysis/run/run_analysis.h"
#include "analysis/run/run_holders.h"

#define STANDS_OUT_OF_NORMAL 0.25 // share of what an ordinary message takes
#define STANDS_OUT_NS        20e3 // each: what any kernel's interrupts, wake-ups and turns add
#define MOSTLY               0.5
#define NEARLY_ALL           0.8

static bool stands_out(const struct diagnosis *diagnosis, double total_ns)
{
    double each = total_ns / (double)diagnosis->messages.count;
    return total_ns >= STANDS_OUT_SHARE * run_diagnosis_extra_ns(diagnosis) &&
           each >= fmax(STANDS_OUT_NS, STANDS_OUT_OF_NORMAL * diagnosis->reference_latency_ns);
}

bool run_cause_stands_out(const struct diagnosis *diagnosis, const struct cause *cause)
{
    double held_ns = 0;
    for (size_t i = 0; i < diagnosis->causes.count; i++)
        if (run_same_holder(cause, &diagnosis->causes.items[i]))
            held_ns += diagnosis->causes.items[i].total_ns;
    return !cause->apart && stands_out(diagnosis, held_ns);
}

double run_crowd_ns(const struct diagnosis *diagnosis)
{
    double sum = 0, most = 0;
    for (size_t i = 0; i < diagnosis->causes.count; i++) {
        const struct cause *cause = &diagnosis->causes.items[i];
        if (cause->apart || strcmp(cause->category, "other programs") != 0)
            continue;
        sum += cause->total_ns;
        most = fmax(most, cause->total_ns);
    }
    return most < NEARLY_ALL * sum && stands_out(diagnosis, sum) ? sum : 0;
}

bool run_is_calm(const struct diagnosis *diagnosis)
{
    for (size_t i = 0; i < diagnosis->causes.count; i++)
        if (run_cause_stands_out(diagnosis, &diagnosis->causes.items[i]))
            return false;
    return true;
}

bool run_awaits_replies(const char *category)
{
    return strcmp(category, "full connections") == 0;
}

bool run_cause_is_client(const struct cause *cause)
{
    return cause->role == ROLE_CLIENT && !run_awaits_replies(cause->category) &&
           strcmp(cause->category, "connections") != 0;
}

const struct cause *run_clients_fault(const struct diagnosis *diagnosis)
{
    const struct cause *first = NULL;
    double client = 0, apart = 0, all = run_diagnosis_extra_ns(diagnosis);
    for (size_t i = 0; i < diagnosis->causes.count; i++) {
        const struct cause *cause = &diagnosis->causes.items[i];
        if (cause->apart)
            apart += cause->total_ns;
        else if (run_cause_is_client(cause))
            client += cause->total_ns, first = first ? first : cause;
    }
    return client > MOSTLY * (all - apart) && client > apart ? first : NULL;
}
