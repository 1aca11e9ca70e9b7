// SPDX-License-Identifier: MIT
#include "experiments/watch/watch_servers.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

// Of a control group in which servers come and go; further ones are named while they are asked.
enum { SERVERS_REMEMBERED = 64 };

static const struct diagnosis *diagnosis_of(const struct run_analysis *run)
{
    return run->findings.diagnoses.count ? run->findings.diagnoses.items : NULL;
}

static void count_life(struct watch_requests *requests, const struct lifetime *life)
{
    requests->count++;
    requests->looked_at++;
    if (life->state != LIFETIME_WHOLE)
        return;
    requests->joined++;
    if (!requests->slowest || life->latency_ns > requests->slowest->latency_ns)
        requests->slowest = life;
}

struct watch_requests watch_requests_of_all(const struct run_analysis *run,
                                            const struct answer_array *answers)
{
    struct watch_requests requests = {.latency = &run->lifetimes.latency,
                                      .diagnosis = diagnosis_of(run)};
    for (size_t i = 0; i < run->lifetimes.all.count; i++)
        count_life(&requests, &run->lifetimes.all.items[i]);
    if (answers->count)
        requests.count = answers->count;
    return requests;
}

static bool same_server(const struct application *known, const struct application *application)
{
    return strcmp(known->program, application->program) == 0 &&
           (application_place(known) == application_place(application) ||
            (known->process && known->process == application->process));
}

// By program and port; of several that have both, as in containers, the later with a process as
// well.
static void name_server(const struct watch_servers *servers, struct watch_server *new)
{
    const struct application *first = &new->first;
    char program[sizeof first->program];
    bool taken = false;
    if (first->program[0])
        snprintf(new->name, sizeof new->name, "%s:%u",
                 text_clean(first->program, false, program, sizeof program), first->port);
    else
        snprintf(new->name, sizeof new->name, "server on port %u", first->port);
    for (size_t i = 0; i < servers->all.count; i++)
        taken |= strcmp(servers->all.items[i].name, new->name) == 0;
    if (taken)
        text_append(new->name, sizeof new->name, " (%u)", first->process ?: first->namespace);
}

// Where it is among the servers; one that is new is added. -1: no memory.
static int64_t find_server(struct watch_servers *servers, const struct application *application)
{
    struct watch_server new = {.first = *application, .application = NO_APPLICATION};
    for (size_t i = 0; i < servers->all.count; i++)
        if (servers->all.items[i].application == NO_APPLICATION &&
            same_server(&servers->all.items[i].first, application))
            return (int64_t)i;
    name_server(servers, &new);
    if (array_push(&servers->all, new) < 0)
        return -1;
    servers->not_kept += servers->all.count > SERVERS_REMEMBERED;
    return (int64_t)servers->all.count - 1;
}

static int judge_server(struct watch_server *server, const struct run_analysis *run,
                        struct error *err)
{
    const struct diagnosis *whole = diagnosis_of(run);
    struct diagnosis_input in;
    int result = run_latency_of_application(run, server->application, &server->latency, err);
    server->requests.latency = &server->latency;
    server->requests.diagnosis = whole;
    if (result < 0 || !whole || server->requests.count == run->lifetimes.all.count)
        return result;
    struct diagnosis_slice slice = whole->slice;
    slice.of_application = true;
    slice.application = server->application;
    run_diagnosis_input(run, &in);
    server->requests.diagnosis = &server->diagnosis;
    return diagnose(&in, &slice, &server->diagnosis, err);
}

static void begin_interval(struct watch_servers *servers)
{
    for (size_t i = 0; i < servers->all.count; i++) {
        struct watch_server *server = &servers->all.items[i];
        diagnosis_free(&server->diagnosis);
        server->diagnosis = (struct diagnosis){0};
        server->requests = (struct watch_requests){0};
        server->application = NO_APPLICATION;
    }
    servers->all.count -= servers->not_kept;
    servers->not_kept = 0;
}

// The server of each application that answered something, which are added.
static int find_asked(struct watch_servers *servers, const struct run_analysis *run)
{
    const struct applications *applications = &run->lifetimes.applications;
    for (size_t i = 0; i < run->lifetimes.all.count; i++) {
        const struct lifetime *life = &run->lifetimes.all.items[i];
        size_t at = 0;
        while (at < servers->all.count && servers->all.items[at].application != life->application)
            at++;
        if (at == servers->all.count && life->application < applications->items.count) {
            int64_t found = find_server(servers, &applications->items.items[life->application]);
            if (found < 0)
                return -1;
            at = (size_t)found;
            servers->all.items[at].application = life->application;
        }
        if (at < servers->all.count)
            count_life(&servers->all.items[at].requests, life);
    }
    return 0;
}

// There is an excerpt of one server alone.
static void take_answers(struct watch_server *server, const struct run_analysis *run,
                         const struct answer_array *answers)
{
    server->requests.count = answers->count;
    server->latency = run->lifetimes.latency;
}

int watch_servers_divide(struct watch_servers *servers, const struct run_analysis *run,
                         const struct answer_array *answers, struct error *err)
{
    int result = 0;
    begin_interval(servers);
    if (!run)
        return 0;
    if (find_asked(servers, run) < 0)
        return error_set(err, ERROR_FAILED, "no memory for the servers");
    for (size_t i = 0; i < servers->all.count && result == 0; i++)
        if (servers->all.items[i].application != NO_APPLICATION)
            result = judge_server(&servers->all.items[i], run, err);
    for (size_t i = 0; i < servers->all.count && answers->count; i++)
        if (servers->all.items[i].application != NO_APPLICATION)
            take_answers(&servers->all.items[i], run, answers);
    return result;
}

void watch_servers_free(struct watch_servers *servers)
{
    begin_interval(servers);
    array_free(&servers->all);
}
