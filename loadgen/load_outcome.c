// SPDX-License-Identifier: MIT
#include "loadgen/load_outcome.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/histogram.h"
#include "base/json_numbers.h"
#include "base/log_file.h"
#include "base/new_file.h"
#include "base/one_wish.h"
#include "base/text.h"
#include "loadgen/method/logical_requests.h"

void load_outcome_free(struct load_outcome *outcome)
{
    engine_result_free(&outcome->result);
    json_decref(outcome->agents);
}

int load_make_directory(const char *path, struct error *err)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return error_set_errno(err, ERROR_FAILED, "cannot create %s", path);
    return 0;
}

static int check_spool(const struct sample_totals *totals, const char *path, struct error *err)
{
    const uint64_t drawn = totals->counts.scheduled - totals->undrawn;
    if (!totals->spooled || totals->spool_count == drawn)
        return 0;
    return error_set(err, ERROR_FAILED, "%s has only the first %s of %s samples: %s", path,
                     TEXT_COUNT(totals->spool_count), TEXT_COUNT(drawn), totals->spool_why.text);
}

// Writes the samples in their order over those that were written as they came. Where the disk is
// full, as many as there is room for, the first.
static int finish_journal(struct log_writer *journal, const struct engine_result *result,
                          const char *path, struct error *err)
{
    struct error ignored, why;
    if (log_writer_rewrite(journal, result->samples, result->sample_count, &why) == 0)
        return log_writer_close(journal, 0, err);
    const size_t all = result->sample_count;
    const bool cut = log_writer_cut(journal, &ignored) == 0 && journal->header.records > 0;
    const uint64_t kept = cut ? journal->header.records : 0;
    if (!cut || log_writer_close(journal, all - kept, &ignored) < 0) {
        log_writer_discard(journal);
        *err = why;
        return -(int)err->kind;
    }
    return error_set(err, ERROR_FAILED, "%s has only the first %s of %s samples: %s", path,
                     TEXT_COUNT(kept), TEXT_COUNT(all), why.text);
}

int load_write_logs(const char *directory, const struct engine_result *result,
                    const struct connection *connections, uint32_t connection_count,
                    struct error *err)
{
    char path[4200], samples[4200];
    struct error whole;
    snprintf(path, sizeof path, "%s/connections.tlog", directory);
    snprintf(samples, sizeof samples, "%s/samples.tlog", directory);
    int status = log_write(path, LOG_CONNECTIONS, SAMPLE_LOG_VERSION, sizeof *connections,
                           connections, connection_count, 0, err);
    if (result->totals && check_spool(result->totals, samples, &whole) < 0) {
        *err = whole; // what filled the disk, if it is full
        return -(int)err->kind;
    }
    if (result->totals)
        return status;
    if (result->journal) { // also where the other could not be written anew
        int finished = finish_journal(result->journal, result, samples, &whole);
        if (finished < 0)
            *err = whole;
        return finished < 0 ? finished : status;
    }
    if (status == 0)
        status = log_write(samples, LOG_SAMPLES, SAMPLE_LOG_VERSION, sizeof *result->samples,
                           result->samples, result->sample_count, 0, err);
    return status;
}

json_t *load_result_json(const struct engine_result *result, const struct load_facts *facts,
                         const struct load_summary *summary, const struct method *method,
                         const struct rounds *rounds, json_t *agents)
{
    json_t *json = load_summary_json(summary, result, facts);
    json_t *findings = method_json(method), *place = json_object_get(json, "method");
    if (!json || !findings || json_object_update(place, findings) < 0) {
        json_decref(findings);
        json_decref(json);
        return NULL;
    }
    json_decref(findings);
    if (agents)
        json_object_set(json, "agents", agents);
    if (rounds) {
        json_object_set_new(place, "stop", json_string(rounds->stop));
        json_object_set_new(place, "rounds", json_integer(rounds->measured));
        json_object_set_new(place, "stabilising_rounds", json_integer(rounds->stabilising));
    }
    return json;
}

json_t *load_outcome_json(const struct load_plan *plan, const struct load_point *point,
                          const struct load_outcome *outcome)
{
    struct load_facts facts = load_plan_facts(plan);
    facts.rate = point->rate;
    facts.seed = point->seed;
    return load_result_json(&outcome->result, &facts, &outcome->summary, &outcome->method, NULL,
                            outcome->agents);
}

int load_verdict(const struct load_summary *summary, struct error *err)
{
    if (summary->answered == 0 && (summary->scheduled || summary->hindered))
        return error_set(err, ERROR_FAILED, "nothing was answered: %s",
                         summary->reason_count ? summary->reasons[0] : "no reason known");
    if (!summary->ok)
        return error_set(err, ERROR_INCONCLUSIVE, "inconclusive: %s", summary->reasons[0]);
    return 0;
}

// In nanoseconds. NULL: out of memory.
static struct histogram *histogram_of_samples(const struct engine_result *result)
{
    struct histogram *histogram = calloc(1, sizeof *histogram);
    for (size_t i = 0; histogram && i < result->sample_count; i++) {
        const struct sample *sample = &result->samples[i];
        double ns = (double)(int64_t)(sample->reply_tsc - sample->intended_tsc) / result->tsc_hz;
        if (sample_is_answered(sample))
            histogram_record(histogram, (uint64_t)fmax(ns * 1e9, 0));
        else
            histogram_record_infinite(histogram);
    }
    return histogram;
}

// Latency from the intended time; what was never answered is infinite.
static int write_percentiles(const char *path, const struct engine_result *result,
                             struct error *err)
{
    const struct sample_totals *totals = result->totals;
    struct engine_result logical;
    int status = logical_requests_make(result, &logical, err);
    if (status < 0)
        return status;
    struct histogram *made = totals ? NULL : histogram_of_samples(&logical);
    logical_requests_free(result, &logical);
    const struct histogram *histogram = totals ? &totals->latency.histogram : made;
    struct new_file out;
    status = histogram ? new_file_open(&out, path, err)
                       : error_set(err, ERROR_FAILED, "out of memory for %s", path);
    if (status < 0) {
        free(made);
        return status;
    }
    status = histogram_write_percentiles(
        histogram, totals ? result->tsc_hz / 1e6 : 1000,
        fanout_of(result) > 1
            ? "latency in us of logical requests, from the intended time to the last of their "
              "replies; those of which a request was never sent, lost or unanswered lie above all"
            : "latency in us from the intended time to the reply; requests never sent, lost or "
              "unanswered lie above all",
        out.file, err);
    free(made);
    return new_file_finish(&out, status, err);
}

int load_write_files(const struct load_options *o, const struct engine_result *result,
                     const struct connection *connections, uint32_t connection_count,
                     struct error *err)
{
    int status = 0;
    if (o->samples)
        status = load_write_logs(o->samples, result, connections, connection_count, err);
    one_wish_hand_over(); // what follows may be a pipe
    if (status == 0 && o->hgrm)
        status = write_percentiles(o->hgrm, result, err);
    return status;
}

int load_document_finish(const struct load_options *o, json_t *document, const char *name,
                         struct error *err)
{
    char path[4200];
    struct error printing;
    one_wish_hand_over();
    if (!document)
        return error_set(err, ERROR_FAILED, "out of memory for the result");
    snprintf(path, sizeof path, "%s/%s", o->out ? o->out : "", name);
    int written = o->out ? json_write(document, LOAD_JSON, path, err) : 0, printed = 0;
    if (o->json)
        printed = json_print_new(document, LOAD_JSON, "the result", &printing);
    else
        json_decref(document);
    if (written == 0 && printed < 0)
        *err = printing;
    return written < 0 ? written : printed;
}

// A file is begun, and not finished: nothing is left of it, and what was there before stays. A pipe
// would notice.
static int try_file(const char *path, struct error *err)
{
    struct stat there;
    struct new_file file;
    struct error ignored;
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode))
        return 0;
    int status = new_file_open(&file, path, err);
    if (status == 0)
        new_file_finish(&file, -1, &ignored);
    return status;
}

int load_try_files(const struct load_options *o, struct error *err)
{
    const struct {
        const char *folder, *file;
    } files[] = {{o->samples, "samples.tlog"},
                 {o->out, o->sweep || o->slo ? "sweep.json" : "load.json"}};
    int status = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files && status == 0; i++) {
        char path[4200];
        if (!files[i].folder)
            continue;
        snprintf(path, sizeof path, "%s/%s", files[i].folder, files[i].file);
        status = load_make_directory(files[i].folder, err);
        if (status == 0)
            status = try_file(path, err);
    }
    return status == 0 && o->hgrm ? try_file(o->hgrm, err) : status;
}
