// SPDX-License-Identifier: MIT
#include "experiments/run/divided_run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

// --- the end that makes runs ---------------------------------------------------------------------

struct server {
    struct run_orders orders;
    struct run_settings settings;
    char top[RUN_PATH_BYTES]; // the first folder that was made; empty: none yet
};

// The first folder is the one that the user asked for, all others are inside of it.
static int check_order(const struct server *server, const struct order *order, struct error *err)
{
    const char *asked = server->settings.folder ? server->settings.folder : "";
    size_t top = strlen(server->top);
    bool ends = memchr(order->wanted, '\0', sizeof order->wanted) &&
                memchr(order->name, '\0', sizeof order->name);
    bool known = order->folder_only ? order->name[0] && !strchr(order->name, '/')
                                    : order->experiment < server->orders.experiments->count;
    bool inside =
        ends && (top ? strncmp(order->wanted, server->top, top) == 0 && order->wanted[top] == '/' &&
                           !strstr(order->wanted + top, "/..")
                     : strcmp(order->wanted, asked) == 0);
    return known && inside
               ? 0
               : error_set(err, ERROR_FAILED, "refused to make a run that was not asked for");
}

static int carry_out(struct server *server, const struct order *order, struct run_folder *folder,
                     struct error *err)
{
    struct run_settings settings = server->settings;
    int result = check_order(server, order, err);
    if (result < 0)
        return result;
    settings.folder = order->wanted[0] ? order->wanted : NULL;
    if (order->folder_only) {
        result = run_make_folder(order->name, &settings, folder, err);
    } else {
        struct experiment *experiment = server->orders.experiments->items[order->experiment];
        result = experiment->load.seed == order->seed
                     ? 0
                     : experiment_set_seed(experiment, order->seed, err);
        if (result == 0)
            result = run_experiment(experiment, &settings, folder, err);
    }
    if (!server->top[0])
        snprintf(server->top, sizeof server->top, "%s", folder->path);
    return result;
}

// Until the other end is closed.
static void serve(struct server *server)
{
    struct order order;
    for (;;) {
        ssize_t got = recv(server->orders.channel, &order, sizeof order, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got != sizeof order)
            return;
        struct answer answer = {.result = 0};
        answer.result = carry_out(server, &order, &answer.folder, &answer.err);
        if (send(server->orders.channel, &answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer)
            return;
    }
}

// --- both ----------------------------------------------------------------------------------------

// The child: has no rights before it does anything else. A group of its own: what a terminal sends
// goes to the process that undoes things, and with that process it ends.
static void work_without_rights(struct run_orders *orders, const struct run_settings *settings,
                                pid_t parent,
                                int (*work)(const struct run_settings *settings, void *context),
                                void *context)
{
    static const struct person root = {.user = 0, .name = "root"};
    struct error err;
    struct run_settings mine = *settings;
    mine.orders = orders;
    setpgid(0, 0);
    if (rights_give_up(settings->owner ? settings->owner : &root, &err) < 0)
        _exit(error_report(&err));
    // Not SIGKILL: what it is writing it removes.
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent)
        _exit(ERROR_FAILED);
    int code = work(&mine, context);
    fflush(NULL);
    _exit(code);
}

static int exit_code_of(pid_t child, struct error *err)
{
    int status;
    pid_t ended;
    while ((ended = waitpid(child, &status, 0)) < 0 && errno == EINTR)
        ;
    if (ended == child && WIFEXITED(status))
        return WEXITSTATUS(status);
    return error_set(err, ERROR_FAILED, "the process that reads what the runs recorded %s",
                     ended == child ? strsignal(WTERMSIG(status)) : "was lost");
}

int run_divided(const struct run_settings *settings, const struct person *owner,
                const struct experiment_list *experiments,
                int (*work)(const struct run_settings *settings, void *context), void *context,
                struct error *err)
{
    int ends[2];
    struct server *server = calloc(1, sizeof *server);
    if (!server || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        free(server);
        return error_set_errno(err, ERROR_FAILED, "cannot divide the work");
    }
    *server = (struct server){.orders = {.experiments = experiments}, .settings = *settings};
    server->settings.owner = owner;
    fflush(NULL);
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        close(ends[0]);
        server->orders.channel = ends[1];
        work_without_rights(&server->orders, &server->settings, parent, work, context);
    }
    int result = child < 0 ? error_set_errno(err, ERROR_FAILED, "cannot divide the work") : 0;
    close(ends[1]);
    server->orders.channel = ends[0];
    server->settings.spared = child;
    if (result == 0)
        serve(server);
    close(ends[0]);
    if (result == 0)
        result = exit_code_of(child, err);
    free(server);
    return result;
}

// --- for whom ------------------------------------------------------------------------------------

bool run_find_owner(const char *folder, struct person *owner)
{
    char there[RUN_PATH_BYTES];
    if (!rights_invoker(owner))
        return false;
    snprintf(there, sizeof there, "%s", folder ? folder : "runs");
    // What is missing of the path will be his.
    while (access(there, F_OK) < 0) {
        char *slash = strrchr(there, '/');
        if (slash && slash != there)
            *slash = '\0';
        else
            strcpy(there, slash ? "/" : ".");
    }
    if (rights_reach(owner, there, X_OK))
        return true;
    fprintf(stderr,
            "warning: %s cannot reach %s, so the run's folder stays root's; --out names another\n",
            owner->name, there);
    return false;
}
