// SPDX-License-Identifier: MIT
#include "experiments/server_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "experiments/nginx.h"

static int add(struct command_line *line, const char *word)
{
    return array_push(&line->words, word);
}

static int add_number(struct command_line *line, const char *option, uint64_t number)
{
    char *text;
    if (line->made.count == 16 || asprintf(&text, "%llu", (unsigned long long)number) < 0)
        return -1;
    line->made.items[line->made.count++] = text;
    return add(line, option) < 0 || add(line, text) < 0 ? -1 : 0;
}

// A word of a command with {address} and {port} filled in.
static int add_filled(struct command_line *line, const char *word, const char *address,
                      uint16_t port)
{
    char filled[4200], *copy;
    size_t used = 0;
    if (!strstr(word, "{address}") && !strstr(word, "{port}"))
        return add(line, word);
    while (*word && used + 1 < sizeof filled) {
        int n;
        if (strncmp(word, "{address}", 9) == 0) {
            n = snprintf(filled + used, sizeof filled - used, "%s", address);
            word += 9;
        } else if (strncmp(word, "{port}", 6) == 0) {
            n = snprintf(filled + used, sizeof filled - used, "%u", port);
            word += 6;
        } else {
            n = snprintf(filled + used, sizeof filled - used, "%c", *word++);
        }
        used += (size_t)n;
    }
    if (line->made.count == 16 || !(copy = strdup(filled)))
        return -1;
    line->made.items[line->made.count++] = copy;
    return add(line, copy);
}

void server_command_free(struct command_line *line)
{
    for (size_t i = 0; i < line->made.count; i++)
        free(line->made.items[i]);
    array_free(&line->words);
}

static int add_options(struct command_line *line, const struct experiment_server *plan)
{
    int failed = 0;
    for (size_t i = 0; i + 1 < plan->options.count; i++)
        failed |= add(line, plan->options.items[i]);
    return failed | array_push(&line->words, NULL);
}

static int memcached_line(struct command_line *line, const struct experiment_server *plan,
                          const struct host *host)
{
    int failed = add(line, "memcached");
    if (host_is_root(host)) // it refuses to be root without being told whom to become
        failed |= add(line, "-u") | add(line, "root");
    failed |= add(line, "-l") | add(line, host->address);
    failed |= add_number(line, "-p", plan->port) | add_number(line, "-U", 0);
    failed |= add_number(line, "-t", plan->threads);
    failed |= add_number(line, "-m", plan->memory_bytes >> 20);
    return failed | add_options(line, plan);
}

// Nothing is written to disk, and everybody on the run's own network may connect.
static int redis_line(struct command_line *line, const struct experiment_server *plan,
                      const struct host *host)
{
    static const char *const fixed[] = {"--save",           "",   "--appendonly", "no",
                                        "--protected-mode", "no", "--daemonize",  "no"};
    int failed = add(line, "redis-server") | add(line, "--bind") | add(line, host->address);
    failed |= add_number(line, "--port", plan->port);
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        failed |= add(line, fixed[i]);
    failed |= add_number(line, "--maxmemory", plan->memory_bytes);
    failed |= add_number(line, "--io-threads", plan->threads);
    return failed | add_options(line, plan);
}

static int labserver_line(struct command_line *line, const struct experiment_server *plan,
                          const struct host *host, struct error *err)
{
    char path[RUN_PATH_BYTES], *copy;
    int result = host_program(host, "labserver", path, err);
    if (result < 0)
        return result;
    copy = strdup(path);
    if (copy)
        line->made.items[line->made.count++] = copy;
    int failed = copy ? add(line, copy) : -1;
    failed |= add_number(line, "--port", plan->port) | add_number(line, "--threads", plan->threads);
    failed |= add(line, "--protocol") | add(line, plan->protocol);
    return failed | add_options(line, plan);
}

int server_command_make(struct command_line *line, const struct experiment_server *plan,
                        const struct host *host, const char *folder, struct error *err)
{
    int failed = 0;
    *line = (struct command_line){.made.count = 0};
    *err = (struct error){.kind = ERROR_NONE};
    switch (plan->kind) {
    case SERVER_KIND_MEMCACHED:
        failed = memcached_line(line, plan, host);
        break;
    case SERVER_KIND_REDIS:
        failed = redis_line(line, plan, host);
        break;
    case SERVER_KIND_LABSERVER:
        failed = labserver_line(line, plan, host, err);
        break;
    case SERVER_KIND_NGINX:
        for (const char *const *word = (const char *[])NGINX_COMMAND(folder); *word; word++)
            failed |= add(line, *word);
        failed |= array_push(&line->words, NULL);
        break;
    case SERVER_KIND_COMMAND:
        for (size_t i = 0; i + 1 < plan->command.count; i++)
            failed |= add_filled(line, plan->command.items[i], host->address, plan->port);
        failed |= array_push(&line->words, NULL);
        break;
    }
    if (failed == 0)
        return 0;
    return err->kind
               ? -(int)err->kind
               : error_set(err, ERROR_FAILED, "the command of server `%s` is too long", plan->name);
}

const char *server_program(enum server_kind kind)
{
    return kind == SERVER_KIND_MEMCACHED ? "memcached"
           : kind == SERVER_KIND_REDIS   ? "redis-server"
           : kind == SERVER_KIND_NGINX   ? nginx_program()
                                         : NULL;
}
