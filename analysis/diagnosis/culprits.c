// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/culprits.h"

#include <math.h>
#include <stdlib.h>

#include "base/quantile.h"

static double request_ns(const struct service *service)
{
    return service->running_ns / (service->count ? service->count : 1);
}

// What is usual for a request, and by how much it varies: median and median absolute deviation.
static int measure_usual(struct culprits *culprits)
{
    const struct service_order *order = culprits->order;
    double *values = malloc((2 * order->services.count + 1) * sizeof *values);
    size_t count = 0;
    if (!values)
        return -1;
    double *work = values + order->services.count;
    for (size_t i = 0; i < order->services.count; i++)
        if (order->services.items[i].count)
            values[count++] = request_ns(&order->services.items[i]);
    if (count) {
        culprits->usual_ns = quantile_of(values, count, 0.5, work);
        for (size_t i = 0; i < count; i++)
            values[i] = fabs(values[i] - culprits->usual_ns);
        double spread = 6 * 1.4826 * quantile_of(values, count, 0.5, work);
        culprits->heavy_ns = culprits->usual_ns + fmax(spread, culprits->usual_ns);
    }
    free(values);
    return 0;
}

int culprits_init(struct culprits *culprits, const struct service_order *order,
                  const struct lifetime *lifetimes, bool without_client)
{
    *culprits =
        (struct culprits){.order = order, .lifetimes = lifetimes, .without_client = without_client};
    culprits->of_service = malloc((order->services.count + 1) * sizeof *culprits->of_service);
    if (!culprits->of_service)
        return -1;
    for (size_t i = 0; i < order->services.count; i++)
        culprits->of_service[i] = NOT_SERVED;
    return measure_usual(culprits);
}

void culprits_free(struct culprits *culprits)
{
    array_free(&culprits->items);
    free(culprits->of_service);
    *culprits = (struct culprits){0};
}

static struct culprit culprit_of(const struct culprits *culprits, const struct service *service,
                                 bool sleeps)
{
    bool heavy = request_ns(service) > culprits->heavy_ns;
    bool foreign = service->foreign || (culprits->without_client && (heavy || sleeps));
    struct culprit one = {.foreign = foreign,
                          .known = service->count > 0,
                          .connection = service->connection,
                          .client = service->client,
                          .command = foreign ? service->command : 0,
                          .key = SEVERAL,
                          .heavy = heavy};
    if (one.known) {
        const struct lifetime *life =
            &culprits->lifetimes[culprits->order->members[service->first]];
        one.load = life->load;
        one.operation = life->operation;
        one.connection = foreign ? service->connection : life->connection;
        one.key = service->count == 1 ? life->key : SEVERAL;
    }
    return one;
}

// Another client's requests are taken together where their command is not known, else by command,
// as the load's by operation.
static bool is_same(const struct culprit *a, const struct culprit *b)
{
    return a->foreign == b->foreign && a->known == b->known && a->heavy == b->heavy &&
           (a->foreign ? a->client == b->client && a->command == b->command
                       : a->load == b->load && a->operation == b->operation);
}

static uint32_t find_or_add(struct culprits *culprits, const struct culprit *wanted)
{
    for (size_t i = 0; i < culprits->items.count; i++)
        if (is_same(&culprits->items.items[i], wanted))
            return (uint32_t)i;
    return array_push(&culprits->items, *wanted) < 0 ? NOT_SERVED
                                                     : (uint32_t)culprits->items.count - 1;
}

int culprits_add(struct culprits *culprits, uint32_t number, uint64_t message, double ran_ns,
                 double slept_ns)
{
    const struct service *service = &culprits->order->services.items[number];
    bool first = culprits->of_service[number] == NOT_SERVED;
    if (first) {
        struct culprit wanted = culprit_of(culprits, service, slept_ns > 0);
        culprits->of_service[number] = find_or_add(culprits, &wanted);
        if (culprits->of_service[number] == NOT_SERVED)
            return -1;
        struct culprit *of = &culprits->items.items[culprits->of_service[number]];
        of->connection = of->connection == wanted.connection ? of->connection : SEVERAL;
        of->key = of->key == wanted.key ? of->key : SEVERAL;
        of->services += service->count ? service->count : 1;
        of->each_ns += service->running_ns;
        of->each_bytes += service->bytes;
    }
    struct culprit *of = &culprits->items.items[culprits->of_service[number]];
    of->messages += of->last != message + 1;
    of->last = message + 1;
    of->total_ns += ran_ns;
    of->slept_ns += slept_ns;
    return 0;
}

static int longest_first(const void *left, const void *right)
{
    const struct culprit *a = left, *b = right;
    return order_of(b->total_ns, a->total_ns) ?:
           order_of(a->foreign, b->foreign) ?:
           order_of(a->connection, b->connection) ?:
           order_of(a->load, b->load) ?:
           order_of(a->operation, b->operation) ?:
           order_of(a->command, b->command);
}

// Lets `of_service` name their places after they were sorted.
static int renumber(struct culprits *culprits)
{
    uint32_t *place = malloc((culprits->items.count + 1) * sizeof *place);
    if (!place)
        return -1;
    for (size_t i = 0; i < culprits->items.count; i++)
        place[culprits->items.items[i].number] = (uint32_t)i;
    for (size_t i = 0; i < culprits->order->services.count; i++)
        if (culprits->of_service[i] != NOT_SERVED)
            culprits->of_service[i] = place[culprits->of_service[i]];
    free(place);
    return 0;
}

int culprits_finish(struct culprits *culprits)
{
    for (size_t i = 0; i < culprits->items.count; i++) {
        struct culprit *one = &culprits->items.items[i];
        one->each_ns /= (double)one->services;
        one->each_bytes /= (double)one->services;
        one->number = (uint32_t)i;
    }
    array_sort(&culprits->items, longest_first);
    return renumber(culprits);
}
