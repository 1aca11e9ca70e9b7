// SPDX-License-Identifier: MIT
#include "experiments/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json_numbers.h"
#include "base/options.h"
#include "base/passing_folder.h"
#include "base/text.h"
#include "experiments/capture/capture_backend.h"
#include "experiments/common/supervisor.h"
#include "experiments/keeper/keeper_journal.h"
#include "experiments/remote/far_host.h"
#include "experiments/remote/left_results.h"
#include "experiments/remote/link_file.h"
#include "profiler/doctor/doctor.h"
#include "shim/ring_directory.h"

enum { EXAMINE_TIMEOUT_S = 60 };

struct command_options {
    struct doctor_options print;
    struct option_list ssh_options;
    const char *ssh_config, *directory, *into;
    bool restore;
};

static const struct option_spec options[] = {
    OPTION_FLAG("all", 'a', struct command_options, print.all,
                "list the BPF programs one by one too"),
    OPTION_FLAG("json", 0, struct command_options, print.json, "print one JSON document on stdout"),
    OPTION_FLAG("facts", 0, struct command_options, print.facts,
                "print what a run writes down as facts.json: as --json, but tries no capture"),
    OPTION_FLAG("quiet", 'q', struct command_options, print.quiet,
                "list only what is limited or missing"),
    OPTION_FLAG("restore", 0, struct command_options, restore,
                "undo what runs changed and did not live to undo, and fetch what they had measured "
                "on HOST; examine nothing"),
    OPTION_STRING("into", 0, "DIR", struct command_options, into,
                  "of HOST, with --restore: the run's folder, or where a new one is made (.)"),
    OPTION_STRING("ssh-config", 0, "FILE", struct command_options, ssh_config,
                  "of HOST: ssh's configuration (the user's)"),
    OPTION_LIST("ssh-option", 0, "NAME=VALUE", struct command_options, ssh_options,
                "of HOST: as ssh -o takes it"),
    OPTION_STRING("directory", 0, "DIR", struct command_options, directory,
                  "of HOST: where the program lies there meanwhile (/tmp)"),
    OPTION_END,
};

static const struct command_usage usage = {
    .name = "doctor",
    .arguments = "[HOST] [options]",
    .summary = "Lists what this host, or HOST behind ssh, can measure, and what each missing thing "
               "would take.",
    .details = "Everything is tried for a moment where it can be, and nothing is left changed. "
               "HOST is [user@]host as "
               "ssh takes it; the program copies itself there for the moment.\n"
               "Exit codes: 0 done, whatever is missing; 1 failed; 2 bad usage.",
    .options = options,
};

// --- another host --------------------------------------------------------------------------------

static int fill_plan(const struct command_options *o, const char *address,
                     struct experiment_host *plan, struct error *err)
{
    *plan = (struct experiment_host){.address = address,
                                     .ssh_config = o->ssh_config,
                                     .directory = o->directory ? o->directory : "/tmp"};
    if (!link_file_address_is_plain(address))
        return error_set(err, ERROR_INPUT, "\"%s\" is not a [user@]host as ssh takes it", address);
    if (!link_file_base_is_plain(plan->directory))
        return error_set(err, ERROR_INPUT,
                         "--directory: \"%s\" is not an absolute path of letters, digits, '.', "
                         "'_', '-' and '/'",
                         plan->directory);
    snprintf(plan->name, sizeof plan->name, "%.31s", address);
    for (size_t i = 0; i < o->ssh_options.count; i++)
        if (array_push(&plan->ssh_options, o->ssh_options.items[i]) < 0)
            return error_set(err, ERROR_FAILED, "out of memory");
    return array_push(&plan->ssh_options, NULL) < 0 ? error_set(err, ERROR_FAILED, "out of memory")
                                                    : 0;
}

// Runs `taillight doctor` on that host, which prints on our stdout; *code: its exit code.
static int examine_host(const struct far_host *far, const struct command_options *o, int *code,
                        struct error *err)
{
    char program[FAR_PATH_BYTES];
    const char *argv[8] = {far_host_path(far, "taillight", program), "doctor"};
    size_t n = 2;
    struct process process;
    int status = 0;
    const struct process_place here = {.netns = NULL}; // it prints on our stdout
    if (o->print.all)
        argv[n++] = "--all";
    if (o->print.json)
        argv[n++] = "--json";
    if (o->print.facts)
        argv[n++] = "--facts";
    if (o->print.quiet)
        argv[n++] = "--quiet";
    if (o->restore)
        argv[n++] = "--restore";
    int result = far_host_process(far, argv, &here, &process, err);
    if (result < 0)
        return result;
    result = process_wait(&process, EXAMINE_TIMEOUT_S * 1000, &status, err);
    process_stop(&process, 0);
    if (result == 0)
        return error_set(err, ERROR_FAILED, "%s: the doctor does not end", far->what);
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : ERROR_FAILED;
    return result < 0 ? result : 0;
}

// Names what runs that died have left there, or fetches it.
static int take_left_results(const struct command_options *o, const struct far_host *far,
                             struct keeper *keeper, const char *base, struct error *err)
{
    struct left_results left = {0};
    int result = left_results_find(keeper, base, &left, err);
    for (size_t i = 0; i < left.count && result == 0; i++) {
        char here[FAR_PATH_BYTES] = "";
        if (o->restore)
            result =
                left_results_fetch(far, keeper, &left.items[i], o->into ? o->into : ".", here, err);
        if (here[0] && result == 0)
            fprintf(stderr, "taillight: %s: %s is in %s now\n", far->what, left.items[i].path,
                    here);
        else if (result == 0)
            fprintf(stderr,
                    "taillight: %s: %s is what a run that died had measured there; --restore "
                    "fetches it%s\n",
                    far->what, left.items[i].path,
                    o->restore ? ", into that run's folder or one that is of no run" : "");
    }
    array_free(&left);
    return result;
}

static int examine_far(const struct command_options *o, const char *address, int *code,
                       struct error *err)
{
    struct passing_folder folder = {0};
    char log[sizeof folder.path + 8];
    struct experiment_host plan;
    struct far_host far;
    struct keeper keeper;
    struct error undone;
    int result = fill_plan(o, address, &plan, err);
    if (result == 0)
        result = passing_folder_make(&folder, "doctor", err);
    snprintf(log, sizeof log, "%s/log", folder.path);
    if (result == 0)
        result = far_host_start(&far, &keeper, &plan, log, err);
    if (result == 0) {
        result = examine_host(&far, o, code, err);
        if (result == 0)
            result = take_left_results(o, &far, &keeper, plan.directory, err);
        int ended = keeper_end(&keeper, &undone);
        far_host_end(&far);
        if (ended < 0 && result == 0) {
            *err = undone;
            result = ended;
        }
    }
    passing_folder_end(&folder);
    array_free(&plan.ssh_options);
    return result;
}

// --- what earlier runs left behind ---------------------------------------------------------------

static int restore_journals(const struct command_options *o, struct error *err)
{
    struct keeper_restored r;
    int result = keeper_journals_restore(&r, err);
    const unsigned rings = ring_directories_remove_abandoned(NULL);
    if (o->print.json) {
        json_t *document =
            json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "journals", (int)r.journals,
                      "settings", (int)r.settings, "directories", (int)r.directories, "rebooted",
                      (int)r.rebooted, "live", (int)r.live, "elsewhere", (int)r.elsewhere, "failed",
                      (int)r.failed, "rings", (int)rings);
        int printed =
            json_print_new(document, JSON_INDENT(2), "what was restored", result < 0 ? NULL : err);
        return result < 0 ? result : printed;
    }
    if (r.journals || !o->print.quiet)
        printf("%u runs had left something: %u settings restored, %u directories removed\n",
               r.journals, r.settings, r.directories);
    if (rings)
        printf("%u director%s of the shim's removed, left by captures that were killed\n", rings,
               rings == 1 ? "y" : "ies");
    if (r.rebooted)
        printf("%u setting%s ended with an earlier boot\n", r.rebooted, text_plural(r.rebooted));
    if (r.live)
        printf("%u run%s under way, and left alone\n", r.live, r.live == 1 ? " is" : "s are");
    if (r.elsewhere)
        printf("%u run%s in other network namespaces, and left alone\n", r.elsewhere,
               r.elsewhere == 1 ? " is" : "s are");
    return result;
}

int doctor_command(int argc, char **argv)
{
    struct command_options chosen = {.ssh_config = NULL};
    struct error err = {0};
    int positional = 0, code = 0, result;
    bool help = false;
    result = options_parse(&usage, argc, argv, &chosen, &positional, &help, &err);
    if (result == 0 && !help && positional > 1)
        result = error_set(&err, ERROR_INPUT, "doctor examines one host, not %d", positional);
    if (result == 0 && !help)
        result = positional == 1  ? examine_far(&chosen, argv[1], &code, &err)
                 : chosen.restore ? restore_journals(&chosen, &err)
                                  : doctor_print(&chosen.print, capture_backends_examine, &err);
    array_free(&chosen.ssh_options);
    return result < 0 ? error_report(&err) : code;
}
