// SPDX-License-Identifier: MIT
#include "experiments/hosts/host.h"

#include "base/clock.h"
#include "experiments/hosts/host_kind.h"

enum { COMMAND_TIMEOUT_MS = 10000 };

struct process_place host_place(const struct host *host, const cpu_set_t *cores)
{
    cpu_set_t both;
    cores = cores ? cores : &host->plan->cores;
    CPU_AND(&both, cores, &host->cgroup_cores);
    return (struct process_place){
        .netns = host->netns[0] ? host->netns : NULL,
        .cgroup = host->cgroup[0] && CPU_EQUAL(&both, cores) ? host->cgroup : NULL,
        .cores = cores,
        .dry = host->keeper.dry};
}

struct keeper *host_machine_keeper(struct host *host, struct error *err)
{
    if (!host->keeper.isolated)
        return &host->keeper;
    if (host->keeper.dry)
        host->outside = (struct keeper){.channel = -1, .dry = true};
    else if (host->outside.pid == 0 && (keeper_start(&host->outside, false, err) < 0 ||
                                        keeper_own(&host->outside, host->mark, err) < 0))
        return NULL;
    return &host->outside;
}

int host_run(const struct host *host, const char *const *argv, struct command_log *log,
             struct error *err)
{
    char described[600];
    struct process_place place = host_place(host, NULL);
    int result = process_run(argv, &place, COMMAND_TIMEOUT_MS, NULL, 0, err);
    command_log_write(log, host->plan->name, "%s%s%s",
                      process_describe(argv, described, sizeof described), result < 0 ? ": " : "",
                      result < 0 ? err->text : "");
    return result;
}

const char *const *host_environment(const struct host *host, const struct process_place *place,
                                    const char *list[HOST_VARIABLES + 1])
{
    size_t count = 0;
    for (const char *const *one = place->environment; one && *one && count < HOST_VARIABLES - 1;
         one++)
        list[count++] = *one;
    list[count++] = host->mark;
    list[count] = NULL;
    return list;
}

// --- starting and ending -------------------------------------------------------------------------

// as: the kind of which all hosts are made; NULL: each of its own.
static int start_hosts(struct host_array *hosts, const struct experiment *experiment,
                       const struct host_kind *as, const struct run_folder *folder,
                       struct command_log *log, struct error *err)
{
    struct error ignored;
    uint64_t began = (uint64_t)clock_now_ns(CLOCK_REALTIME);
    if (array_reserve(hosts, experiment->hosts.count) < 0)
        return error_set(err, ERROR_FAILED, "out of memory");
    for (size_t i = 0; i < experiment->hosts.count; i++) {
        const struct experiment_host *plan = &experiment->hosts.items[i];
        struct host *host = &hosts->items[i];
        *host = (struct host){.plan = plan, .kind = as ? as : plan->kind};
        host->keeper.dry = log->dry;
        int result = host->kind->start(host, i, folder, log, err);
        process_tree_make_mark(host->mark, began, (unsigned)i);
        if (result == 0 && (result = keeper_own(&host->keeper, host->mark, err)) < 0)
            hosts->count++;
        if (result < 0) {
            hosts_end(hosts, process_is_interrupted(), log, &ignored);
            return result;
        }
        hosts->count++;
    }
    return 0;
}

int hosts_start(struct host_array *hosts, const struct experiment *experiment,
                const struct run_folder *folder, struct command_log *log, struct error *degraded,
                struct error *err)
{
    struct error ignored;
    const struct host_kind *kind = experiment->hosts.items[0].kind;
    *hosts = (struct host_array){0};
    degraded->kind = ERROR_NONE;
    int result = start_hosts(hosts, experiment, NULL, folder, log, kind->fallback ? degraded : err);
    if (result < 0 && kind->fallback && process_is_interrupted())
        *err = *degraded;
    else if (result < 0 && kind->fallback) {
        kind = kind->fallback;
        result = start_hosts(hosts, experiment, kind, folder, log, err);
    }
    if (result == 0)
        result = kind->join(hosts, log, err);
    if (result < 0)
        hosts_end(hosts, process_is_interrupted(), log, &ignored);
    return result;
}

int hosts_end(struct host_array *hosts, bool hurried, struct command_log *log, struct error *err)
{
    int result = 0;
    for (size_t i = hosts->count; i-- > 0;) {
        struct error one, other;
        hosts->items[i].keeper.hurried = hurried;
        int ended = keeper_end(&hosts->items[i].outside, &one);
        int last = keeper_end(&hosts->items[i].keeper, ended < 0 ? &other : &one);
        ended = ended < 0 ? ended : last;
        hosts->items[i].kind->end(&hosts->items[i]);
        command_log_write(log, hosts->items[i].plan->name, "%s",
                          ended < 0  ? one.text
                          : log->dry ? "undo everything"
                                     : "everything undone");
        if (ended < 0 && result == 0) {
            *err = one;
            result = ended;
        }
    }
    array_free(hosts);
    return result;
}
