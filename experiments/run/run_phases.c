// SPDX-License-Identifier: MIT
#include "experiments/run/run_phases.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "experiments/common/program_path.h"
#include "experiments/hosts/host_kind.h"

struct host *run_server_host(struct run *run)
{
    return &run->hosts.items[run->experiment->servers.items[run->experiment->load.to].host];
}

struct host *run_load_host(struct run *run)
{
    return &run->hosts.items[run->experiment->load.from];
}

void run_warn(struct run *run, const char *format, ...)
{
    char said[1200], text[2400];
    va_list args;
    va_start(args, format);
    vsnprintf(said, sizeof said, format, args);
    va_end(args);
    text_clean(said, false, text, sizeof text); // names, and what other machines say, may be in it
    progress_end(run->progress);
    if (!run->progress->quiet)
        fprintf(stderr, "warning: %s\n", text);
    command_log_write(&run->log, "run", "warning: %s", text);
    json_array_append_new(run->warnings, json_string(text));
}

int run_start_command(struct run *run, struct host *host, const struct run_command *command,
                      struct process *process, struct error *err)
{
    struct command_line *const line = command->line;
    char described[2000], program[RUN_PATH_BYTES];
    char directory_of_shim[sizeof run->shim_dir + 32];
    const char *const environment[] = {directory_of_shim, NULL};
    struct process_place place = {.netns = NULL};
    snprintf(directory_of_shim, sizeof directory_of_shim, "TAILLIGHT_SHIM_DIR=%s", run->shim_dir);
    int result = command_line_result(line, err);
    if (result == 0)
        result = host ? host->kind->find_program(host, "taillight", program, err)
                      : program_path_self(program, sizeof program, err);
    if (result < 0)
        goto done;
    const char **argv = line->words.items;
    argv[0] = program;
    if (host)
        place = host_place(host, command->cores ? command->cores
                                 : host->kind->is_elsewhere &&
                                         (command->input || host != run_load_host(run))
                                     ? &host->helpers
                                     : &run_load_host(run)->plan->cores);
    if (run->shim_dir[0] && host == run_server_host(run))
        place.environment = environment;
    place.dry = run->log.dry;
    place.log_path = command->log_path;
    place.directory = command->directory;
    place.pipe_input = command->input;
    place.as = command->as;
    place.pipe_output = true;
    place.writes_at_end = true;
    place.last_words = command->last_words;
    result = host ? host->kind->start_process(host, argv, &place, process, err)
                  : process_start(process, argv, &place, err);
    command_log_write(&run->log, host ? host->plan->name : "run", "%s%s",
                      process_describe(argv, described, sizeof described),
                      result < 0 ? ": failed" : "");
done:
    command_line_free(line);
    return result;
}

json_t *run_first_line(const struct text_buffer *output)
{
    const char *end = output->count ? memchr(output->items, '\n', output->count) : NULL;
    return end ? json_loadb(output->items, (size_t)(end - output->items), 0, NULL) : NULL;
}
