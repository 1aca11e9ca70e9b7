// SPDX-License-Identifier: MIT
#include "experiments/run/run_orders.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

static int place_order(struct run_orders *orders, const struct order *order,
                       struct run_folder *folder, struct error *err)
{
    struct answer answer;
    ssize_t got = send(orders->channel, order, sizeof *order, MSG_NOSIGNAL);
    while (got == sizeof *order || (got < 0 && errno == EINTR)) {
        got = recv(orders->channel, &answer, sizeof answer, 0);
        if (got == sizeof answer)
            break;
        got = got < 0 && errno == EINTR ? -1 : 0;
    }
    if (got != sizeof answer)
        return error_set(err, ERROR_FAILED, "the process that makes the runs is gone");
    *folder = answer.folder;
    *err = answer.err;
    return answer.result;
}

static void set_wanted(struct order *order, const char *wanted)
{
    snprintf(order->wanted, sizeof order->wanted, "%s", wanted ? wanted : "");
}

int run_order(struct run_orders *orders, const struct experiment *experiment, const char *wanted,
              struct run_folder *folder, struct error *err)
{
    struct order order = {.seed = experiment->load.seed};
    while (order.experiment < orders->experiments->count &&
           orders->experiments->items[order.experiment] != experiment)
        order.experiment++;
    set_wanted(&order, wanted);
    return place_order(orders, &order, folder, err);
}

int run_order_folder(struct run_orders *orders, const char *wanted, const char *name,
                     struct run_folder *folder, struct error *err)
{
    struct order order = {.folder_only = true};
    snprintf(order.name, sizeof order.name, "%s", name);
    set_wanted(&order, wanted);
    return place_order(orders, &order, folder, err);
}
