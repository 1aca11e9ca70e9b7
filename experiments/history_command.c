// SPDX-License-Identifier: MIT
#include "experiments/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare/history.h"
#include "analysis/report/page/page_history.h"
#include "analysis/report/terminal/summary_text.h"
#include "base/json_numbers.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/rights.h"

struct history_options {
    const char *db, *experiment, *series, *label, *html;
    bool full, json, quiet;
};

static const struct option_spec options[] = {
    OPTION_STRING("db", 0, "FILE", struct history_options, db,
                  "the database (taillight-history.db)"),
    OPTION_STRING("label", 0, "TEXT", struct history_options, label,
                  "of add: what the run is called, e.g. its commit (its folder's name)"),
    OPTION_STRING("experiment", 0, "NAME", struct history_options, experiment,
                  "only runs of this experiment (all)"),
    OPTION_STRING("series", 0, "NAME", struct history_options, series,
                  "a percentile or cause of every load, such as p99 (list: all; plot: p99)"),
    OPTION_STRING("html", 0, "FILE", struct history_options, html,
                  "of plot: write a page with all series there"),
    OPTION_FLAG("full", 0, struct history_options, full,
                "of list: the small causes whose level has not changed as well"),
    OPTION_FLAG("json", 0, struct history_options, json,
                "print the series and their changes as one JSON document on stdout"),
    OPTION_FLAG("quiet", 'q', struct history_options, quiet, "no progress on stderr"),
    OPTION_END,
};

static const struct command_usage usage = {
    .name = "history",
    .arguments = "[add RUN... | list | plot] [options]",
    .summary = "Runs over time, and where their latency changed its level.",
    .details = "add: takes up a run folder, or a folder of repetitions as one.\n"
               "list: each percentile, and each cause that is large or whose level has changed.\n"
               "plot: drawn, a bar a run, or as a page (--html).\n"
               "Exit codes: 0 done; 1 failed; 2 bad usage or input.",
    .options = options,
};

static int add_run(struct history *history, const char *run, const struct history_options *chosen,
                   struct error *err)
{
    struct progress progress;
    struct run_set_array names = {0};
    struct comparison *loads = NULL;
    char folder[4096];
    size_t count = 0;
    int64_t id;
    progress_init(&progress, chosen->quiet);
    if (!realpath(run, folder))
        return error_set_errno(err, ERROR_INPUT, "%s", run);
    int result = run_sets_list(folder, &names, err);
    if (result == 0 && !(loads = calloc(names.count, sizeof *loads)))
        result = error_set(err, ERROR_FAILED, "out of memory");
    for (; count < names.count && result == 0; count++) {
        const char *load = names.items[count].load;
        const struct comparison_request request = {
            .candidate = run, .loads[COMPARE_CANDIDATE] = load[0] ? load : NULL};
        result = comparison_make(&loads[count], &request, &progress, err);
    }
    if (result == 0)
        result = history_add(history, loads, count, folder, chosen->label, &id, err);
    if (result == 0 && !chosen->json)
        printf("#%lld %s\n", (long long)id, folder);
    for (size_t i = 0; i < count; i++)
        comparison_free(&loads[i]);
    free(loads);
    run_sets_free(&names);
    return result;
}

static int print_series(struct history *history, bool plot, const struct history_options *chosen,
                        struct error *err)
{
    struct history_series_array all;
    bool all_of_them = chosen->json || chosen->html || !plot;
    const char *name = chosen->series ? chosen->series : all_of_them ? NULL : "p99";
    int result = history_read(history, chosen->experiment, name, &all, err);
    if (result == 0 && all.count == 0)
        result = error_set(err, ERROR_INPUT, "%s: nothing of %s is in there", chosen->db,
                           name ? name : "any run");
    struct summary_style style = summary_style_for(stdout);
    if (result == 0 && chosen->html)
        result = history_page_write(&all, chosen->html, err);
    if (result == 0 && chosen->json)
        result = json_print_new(history_json(&all), JSON_FOR_PEOPLE, "the history", err);
    else if (result == 0 && chosen->html)
        printf("%s%s\n", chosen->quiet ? "" : "Report: ", chosen->html);
    else if (result == 0 && !plot)
        history_list(&all, chosen->full || chosen->series, stdout);
    else
        for (size_t i = 0; i < all.count && result == 0; i++)
            history_plot(&all.items[i], style.unicode, stdout);
    history_series_free(&all);
    return result;
}

static int run_subcommand(char *const *words, int count, const struct history_options *chosen,
                          struct error *err)
{
    const char *what = count ? words[0] : "list";
    bool add = strcmp(what, "add") == 0, plot = strcmp(what, "plot") == 0;
    struct history *history = NULL;
    if (!add && !plot && strcmp(what, "list") != 0)
        return error_set(err, ERROR_INPUT, "history does not know `%s`; it may be: add, list, plot",
                         what);
    if (chosen->html && !plot)
        return error_set(err, ERROR_INPUT, "--html is of plot: taillight history plot --html %s",
                         chosen->html);
    if (add ? count < 2 : count > 1)
        return error_set(err, ERROR_INPUT, "%s; see taillight history --help",
                         add ? "add takes the folders of runs"
                             : "only add takes the folders of runs");
    int result = add ? rights_become_owner((const char *const *)(words + 1), (size_t)count - 1,
                                           chosen->quiet, err)
                     : 0;
    if (result == 0)
        result = history_open(chosen->db, add, &history, err);
    for (int i = 1; i < count && result == 0; i++)
        result = add_run(history, words[i], chosen, err);
    if (result == 0 && (!add || chosen->json))
        result = print_series(history, plot, chosen, err);
    history_close(history);
    return result;
}

int history_command(int argc, char **argv)
{
    struct history_options chosen = {.db = "taillight-history.db"};
    struct error err = {0};
    int positional;
    bool help;
    int result = options_parse(&usage, argc, argv, &chosen, &positional, &help, &err);
    if (result == 0 && !help)
        result = run_subcommand(argv + 1, positional, &chosen, &err);
    return result < 0 ? error_report(&err) : result;
}
