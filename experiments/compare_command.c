// SPDX-License-Identifier: MIT
#include "experiments/commands.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "analysis/compare/comparison_json.h"
#include "analysis/diagnosis/slice_options.h"
#include "analysis/report/page/report_compare.h"
#include "base/json_numbers.h"
#include "base/new_file.h"
#include "base/options.h"
#include "base/rights.h"
#include "base/text.h"
#include "experiments/results/gate_report.h"
#include "analysis/compare/gates.h"

struct compare_options {
    struct slice_options slices;
    const char *output, *gates, *categories, *load;
    struct gate_report_options report;
    bool json, quiet;
};

static const struct option_spec options[] = {
    SLICE_OPTIONS(struct compare_options, slices),
    OPTION_STRING("out", 'o', "FILE", struct compare_options, output,
                  "write the comparison's page there"),
    OPTION_STRING("output", 0, "FILE", struct compare_options, output, "the same as --out"),
    OPTION_STRING("categories", 0, "FILE", struct compare_options, categories,
                  "categories of causes of your own, before those of the runs"),
    OPTION_STRING("load", 0, "NAME", struct compare_options, load,
                  "of several loads only this one (each of them)"),
    OPTION_STRING("gates", 'g', "FILE", struct compare_options, gates,
                  "judge the gates of this file (those of the candidate's experiment)"),
    GATE_REPORT_OPTIONS(struct compare_options, report),
    OPTION_FLAG("json", 0, struct compare_options, json,
                "print the comparison as one JSON document on stdout"),
    OPTION_FLAG("quiet", 'q', struct compare_options, quiet, "no progress on stderr"),
    OPTION_END,
};

static const struct command_usage usage = {
    .name = "compare",
    .arguments = "BASE CANDIDATE [options]",
    .summary = "What changed between two builds, by how much, because of what.",
    .details = "Each is a run folder, or a folder of repetitions, which make the intervals know "
               "how runs differ by "
               "themselves. Each percentile is compared, and the messages of a slice of the one "
               "with those of the "
               "same slice of the other; without --slice the slowest percent (p99-100) and the "
               "ordinary ones "
               "(p45-55). Of several loads each is compared with the one of the same name.\n"
               "Exit codes: 0 done; 1 failed; 2 bad usage or input; 3 a gate failed; 4 a gate or "
               "the load of a side is inconclusive, or nothing could be "
               "compared (and why).",
    .options = options,
};

// Reads the gates of a file, or, without one, those of the candidate's experiment.
static int read_gates(const char *file, const char *candidate, struct gate_array *out,
                      struct error *err)
{
    char folder[4200], path[4300];
    if (file)
        return gates_load(file, true, out, err);
    run_set_folder(candidate, 0, folder, sizeof folder);
    snprintf(path, sizeof path, "%s/experiment.json", folder);
    return access(path, F_OK) == 0 ? gates_load(path, false, out, err) : 0;
}

// What is being compared, load by load.
struct comparing {
    const struct compare_options *chosen;
    struct run_set_array loads[COMPARE_SIDES]; // by name alone
    struct gate_array gates;
    struct gate_report judged;
    json_t *document;     // of the first; NULL: none is wanted, or none is there yet
    char name[128];       // of the candidate's experiment
    size_t count;         // how many loads were compared
    bool is_inconclusive; // at least one of them
};

// FILE of the first load, and of another one FILE with its name before what it ends with.
static const char *page_of(const struct comparing *c, const char *load, char out[4300])
{
    const char *file = c->chosen->output, *slash = strrchr(file, '/'), *end = strrchr(file, '.');
    if (!end || (slash && end < slash))
        end = file + strlen(file);
    if (c->count == 0)
        snprintf(out, 4300, "%s", file);
    else
        snprintf(out, 4300, "%.*s-%s%s", (int)(end - file), file, load, end);
    return out;
}

// The first load's document holds those of the others.
static int keep_document(struct comparing *c, const struct comparison *comparison,
                         struct error *err)
{
    json_t *document = comparison_json(comparison);
    if (!document)
        return error_set(err, ERROR_FAILED, "out of memory for the comparison");
    if (!c->document)
        c->document = document;
    else if (json_array_append_new(json_object_get(c->document, "other_loads"), document) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for the comparison");
    if (c->count == 0 && c->loads[COMPARE_CANDIDATE].count + c->loads[COMPARE_BASE].count > 2)
        json_object_set_new(c->document, "other_loads", json_array());
    return 0;
}

// Judges and writes one load's comparison.
static int take_comparison(struct comparing *c, const struct comparison *comparison,
                           struct error *err)
{
    const size_t before = c->judged.results.count;
    char page[4300] = "";
    int result = gates_judge(&c->gates, comparison, c->loads[COMPARE_CANDIDATE].count,
                             &c->judged.results, err);
    if (result == 0 && c->chosen->output)
        result = report_compare_html(
            comparison, page_of(c, comparison->sides[COMPARE_CANDIDATE]->load, page), err);
    if (result == 0 && c->chosen->json)
        result = keep_document(c, comparison, err);
    else if (result == 0) {
        fputs(c->count ? "\n" : "", stdout);
        report_compare_text(comparison, stdout);
        if (page[0])
            printf("\nReport: %s\n", page);
    }
    // Where there are gates, they alone decide the result of comparing two single runs.
    bool decided = c->judged.results.count > before && comparison_is_single(comparison);
    c->is_inconclusive |=
        comparison_is_doubtful(comparison) || !(decided || comparison_any_known(comparison));
    snprintf(c->name, sizeof c->name, "%s", comparison->sides[COMPARE_CANDIDATE]->name);
    c->count++;
    return result;
}

static bool is_asked(const struct comparing *c, const struct run_set *load)
{
    return !c->chosen->load || strcmp(c->chosen->load, load->load) == 0;
}

static int compare_all(struct comparing *c, struct comparison_request *request,
                       struct progress *progress, struct error *err)
{
    const struct run_set_array *mine = &c->loads[COMPARE_CANDIDATE];
    int result = 0;
    for (size_t i = 0; i < mine->count && result == 0; i++) {
        const struct run_set *base = run_sets_match(&c->loads[COMPARE_BASE], mine, i);
        struct comparison comparison = {.has_base = true};
        if (!base || !is_asked(c, &mine->items[i]))
            continue;
        request->loads[COMPARE_BASE] = base->load[0] ? base->load : NULL;
        request->loads[COMPARE_CANDIDATE] = mine->items[i].load[0] ? mine->items[i].load : NULL;
        result = comparison_make(&comparison, request, progress, err);
        if (result == 0)
            result = take_comparison(c, &comparison, err);
        comparison_free(&comparison);
    }
    return result;
}

// Loads that one side has alone: said, and what gates are of them is inconclusive.
static int tell_missing(struct comparing *c, struct error *err)
{
    static const char *const names[COMPARE_SIDES] = {"base", "candidate"};
    json_t *missing = json_object_get(c->document, "other_loads") ? json_object() : NULL;
    int result = 0;
    for (int side = 0; side < COMPARE_SIDES; side++) {
        const struct run_set_array *all = &c->loads[side], *others = &c->loads[!side];
        json_t *list = json_array();
        for (size_t i = 0; i < all->count && result == 0; i++) {
            const char *load = all->items[i].load;
            if (run_sets_match(others, all, i) || !is_asked(c, &all->items[i]))
                continue;
            if (side == COMPARE_CANDIDATE)
                result = gates_without_base(&c->gates, load, &c->judged.results, err);
            if (!c->chosen->json)
                printf("\nOnly the %s has the load `%s`.\n", names[side], load);
            json_array_append_new(list, json_string(load));
        }
        if (missing)
            json_object_set_new(missing, names[side], list);
        else
            json_decref(list);
    }
    if (missing)
        json_object_set_new(c->document, "loads_only_in", missing);
    return result;
}

static int write_gates(struct comparing *c, struct error *err)
{
    const bool json = c->chosen->json;
    if (json &&
        json_object_set_new(c->document, "gates", gate_results_json(&c->judged.results)) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for the comparison");
    int result =
        json ? json_print_new(json_incref(c->document), JSON_FOR_PEOPLE, "the comparison", err) : 0;
    if (!json && c->judged.results.count)
        putchar('\n');
    return result < 0 ? result
                      : gate_report_write(&c->judged, &c->chosen->report, c->name, json,
                                          json ? NULL : stdout, err);
}

static void list_names(const struct run_set_array *loads, char out[600])
{
    out[0] = '\0';
    for (size_t i = 0; i < loads->count; i++)
        text_append(out, 600, loads->items[i].load[0] ? "%s`%s`" : "%sone without a name",
                    i ? ", " : "", loads->items[i].load);
}

static bool has_load(const struct run_set_array *loads, const char *name)
{
    bool found = false;
    for (size_t i = 0; i < loads->count; i++)
        found |= strcmp(loads->items[i].load, name) == 0;
    return found;
}

// Before anything is analysed: there is something to compare, and the loads that are named are
// there.
static int check_loads(const struct comparing *c, char *const folders[COMPARE_SIDES],
                       struct error *err)
{
    const struct run_set_array *mine = &c->loads[COMPARE_CANDIDATE];
    char names[COMPARE_SIDES][600];
    size_t pairs = 0;
    for (int side = 0; side < COMPARE_SIDES; side++)
        list_names(&c->loads[side], names[side]);
    for (size_t i = 0; i < mine->count; i++)
        pairs += run_sets_match(&c->loads[COMPARE_BASE], mine, i) && is_asked(c, &mine->items[i]);
    if (c->chosen->load && !has_load(mine, c->chosen->load))
        return error_set(err, ERROR_INPUT, "--load: there is no load `%s` in %s; it has %s",
                         c->chosen->load, folders[COMPARE_CANDIDATE], names[COMPARE_CANDIDATE]);
    if (pairs == 0)
        return error_set(err, ERROR_INPUT, "no load%s is on both sides: %s has %s, and %s has %s",
                         c->chosen->load ? " that was asked for" : "", folders[COMPARE_BASE],
                         names[COMPARE_BASE], folders[COMPARE_CANDIDATE], names[COMPARE_CANDIDATE]);
    if (pairs > 1 && c->chosen->slices.messages.count)
        return error_set(err, ERROR_INPUT,
                         "--message: a request is one load's, and there are %s: name one with "
                         "--load",
                         names[COMPARE_CANDIDATE]);
    for (size_t i = 0; i < c->gates.count; i++)
        if (c->gates.items[i].load[0] && !has_load(mine, c->gates.items[i].load))
            return error_set(err, ERROR_INPUT, "gates: there is no load `%s` in %s; it has %s",
                             c->gates.items[i].load, folders[COMPARE_CANDIDATE],
                             names[COMPARE_CANDIDATE]);
    return 0;
}

static int read_sides(struct comparing *c, char *const folders[COMPARE_SIDES], struct error *err)
{
    int result = 0;
    for (int side = 0; side < COMPARE_SIDES && result == 0; side++)
        result = run_set_check(folders[side], err);
    for (int side = 0; side < COMPARE_SIDES && result == 0; side++)
        result = run_sets_list(folders[side], &c->loads[side], err);
    return result;
}

static int compare_folders(char *const folders[COMPARE_SIDES], const struct compare_options *chosen,
                           struct error *err)
{
    struct comparing c = {.chosen = chosen};
    struct diagnosis_slice_array slices = {0};
    struct progress progress;
    progress_init(&progress, chosen->quiet);
    // All that can be wrong, before either is analysed, which may take minutes.
    int result = chosen->output ? new_file_try(chosen->output, err) : 0;
    if (result == 0)
        result = gate_report_try(&chosen->report, err);
    if (result == 0)
        result = read_sides(&c, folders, err);
    if (result == 0)
        result = read_gates(chosen->gates, folders[COMPARE_CANDIDATE], &c.gates, err);
    if (result == 0)
        result = check_loads(&c, folders, err);
    if (result == 0)
        result = slice_options_read(&chosen->slices, &slices, err);
    if (result == 0 && chosen->slices.messages.count &&
        !(run_set_is_run(folders[COMPARE_BASE]) && run_set_is_run(folders[COMPARE_CANDIDATE])))
        result = error_set(err, ERROR_INPUT,
                           "--message: a request is one run's; name one of each side's "
                           "repetitions, e.g. BASE/repetition-1");
    struct comparison_request request = {.base = folders[COMPARE_BASE],
                                         .candidate = folders[COMPARE_CANDIDATE],
                                         .slices = &slices,
                                         .gates = &c.gates,
                                         .gate_slice =
                                             chosen->slices.slices.count ? slices.items : NULL,
                                         .categories = chosen->categories};
    if (result == 0)
        result = compare_all(&c, &request, &progress, err);
    if (result == 0)
        result = tell_missing(&c, err);
    if (result == 0)
        result = write_gates(&c, err);
    if (result == 0)
        result = gate_results_exit_code(&c.judged.results);
    for (int side = 0; side < COMPARE_SIDES; side++)
        run_sets_free(&c.loads[side]);
    gate_report_free(&c.judged);
    json_decref(c.document);
    array_free(&slices);
    array_free(&c.gates);
    return result == 0 && c.is_inconclusive ? ERROR_INCONCLUSIVE : result;
}

int compare_command(int argc, char **argv)
{
    struct compare_options chosen = {0};
    struct error err = {0};
    int positional;
    bool help;
    int result = options_parse(&usage, argc, argv, &chosen, &positional, &help, &err);
    if (result == 0 && !help && positional != COMPARE_SIDES)
        result = error_set(&err, ERROR_INPUT,
                           "compare takes two run folders, the base and the candidate, not %d; see "
                           "taillight compare --help",
                           positional);
    else if (result == 0 && !help)
        result =
            rights_become_owner((const char *const *)(argv + 1), COMPARE_SIDES, chosen.quiet, &err);
    if (result == 0 && !help)
        result = compare_folders(argv + 1, &chosen, &err);
    slice_options_free(&chosen.slices);
    return result < 0 ? error_report(&err) : result;
}
