// SPDX-License-Identifier: MIT
//
// The command table, nothing else. Each command lives in the folder that does its work.
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "analysis/analyze_command.h"
#include "analysis/report_command.h"
#include "base/error.h"
#include "base/standard_streams.h"
#include "base/suggestion.h"
#include "experiments/capture/capture_command.h"
#include "experiments/commands.h"
#include "experiments/remote/far_end.h"
#include "experiments/remote/near_end.h"
#include "loadgen/load_command.h"
#include "experiments/capsule/capsule_command.h"

struct command {
    const char *name;
    int (*main)(int argc, char **argv); // argv[0] is the command's name; returns an exit code
    const char *summary;                // NULL: internal, not listed
};

static const struct command commands[] = {
    {"doctor", doctor_command, "what this host can measure, and how to get the rest"},
    {"run", run_command, "one experiment, end to end: deploy, load, capture, explain, report"},
    {"load", load_command, "load a server, open-loop, and report its latency"},
    {"capture", capture_command, "watch a server on this host: events, socket calls, clocks"},
    {"watch", watch_command, "a server as it runs: its latency, and why its slowest are slow"},
    {"capsule", capsule_command, "how long packets take from hop to hop of virtual networks"},
    {"analyze", analyze_command, "lifetimes and diagnosis of a run; what ran in an Intel PT trace"},
    {"report", report_command, "the report of a run: the page and the terminal summary"},
    {"compare", compare_command, "what changed between two builds, by how much, because of what"},
    {"history", history_command, "runs over time, and where their latency changed its level"},
    {"agent", agent_roles_command, NULL},
    {"link", link_command, NULL},
    {NULL, NULL, NULL},
};

static void print_help(FILE *out)
{
    fprintf(out, "usage: taillight COMMAND [ARGUMENTS]\n\n"
                 "Loads a server, watches it from the inside, and says why its slow requests are "
                 "slow.\n\nCommands:\n");
    for (const struct command *c = commands; c->name; c++)
        if (c->summary)
            fprintf(out, "  %-10s %s\n", c->name, c->summary);
    fprintf(out, "\n`taillight COMMAND --help` says the rest.\n"
                 "Exit codes: 0 done, 1 failed, 2 bad usage or input, 3 a gate failed, "
                 "4 inconclusive (N/A).\n");
}

static bool is_word(const char *word, const char *plain, const char *option, const char *letter)
{
    return strcmp(word, plain) == 0 || strcmp(word, option) == 0 || strcmp(word, letter) == 0;
}

static int refuse_unknown(const char *word)
{
    const char *names[sizeof commands / sizeof *commands];
    size_t count = 0;
    for (const struct command *c = commands; c->name; c++)
        if (c->summary)
            names[count++] = c->name;
    const char *near = suggestion_nearest(word, names, count);
    if (near)
        fprintf(stderr, "taillight: %s: unknown command; did you mean `%s`?\n", word, near);
    else
        fprintf(stderr, "taillight: %s: unknown command; see taillight --help\n", word);
    return ERROR_INPUT;
}

static const struct command *find_command(const char *name)
{
    for (const struct command *c = commands; c->name; c++)
        if (strcmp(name, c->name) == 0)
            return c;
    return NULL;
}

// "help run" is "run --help".
static int help_on(char *name)
{
    const struct command *command = find_command(name);
    char option[] = "--help", *arguments[] = {name, option, NULL};
    return command ? command->main(2, arguments) : refuse_unknown(name);
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return ERROR_INPUT;
    }
    if (strcmp(argv[1], "help") == 0 && argc > 2)
        return help_on(argv[2]);
    if (is_word(argv[1], "help", "--help", "-h")) {
        print_help(stdout);
        return 0;
    }
    if (is_word(argv[1], "version", "--version", "-V")) {
        printf("taillight %s\n", TAILLIGHT_VERSION);
        return 0;
    }
    const struct command *command = find_command(argv[1]);
    if (command)
        return command->main(argc - 1, argv + 1);
    return refuse_unknown(argv[1]);
}

int main(int argc, char **argv)
{
    // writing to a closed pipe shall return an error, not kill the program
    signal(SIGPIPE, SIG_IGN);
    standard_streams_open();
    return standard_output_end(run(argc, argv));
}
