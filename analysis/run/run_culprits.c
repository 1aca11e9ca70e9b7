// SPDX-License-Identifier: MIT
#include "analysis/run/run_culprits.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/command_words.h"
#include "base/text.h"
#include "base/units.h"

static const struct connection *find_connection(const struct run_analysis *run, uint32_t id)
{
    for (size_t i = 0; i < run->evidence.connections.count; i++)
        if (run->evidence.connections.items[i].id == id)
            return &run->evidence.connections.items[i];
    return NULL;
}

// id: of its connection; SEVERAL: of many, of which `one` is one.
static void foreign_words(const struct run_analysis *run, uint32_t id, uint32_t one,
                          unsigned command, char *out, size_t out_bytes)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    const struct connection *connection = find_connection(run, id == SEVERAL ? one : id);
    char address[INET6_ADDRSTRLEN] = "an unknown address";
    if (connection && memcmp(connection->peer, mapped, sizeof mapped) == 0)
        inet_ntop(AF_INET, connection->peer + sizeof mapped, address, sizeof address);
    else if (connection)
        inet_ntop(AF_INET6, connection->peer, address, sizeof address);
    const char *word = command_word_name(command);
    const char *load = run->evidence.without_client ? "" : " (not of this load)";
    snprintf(out, out_bytes, "%s%s", word ? word : "", word ? " of " : "");
    if (id == SEVERAL)
        text_append(out, out_bytes, "connections from %s, a new one each time%s", address, load);
    else if (connection && connection->peer_port)
        text_append(out, out_bytes, "connection %u from %s:%u%s", id, address,
                    connection->peer_port, load);
    else
        text_append(out, out_bytes, "connection %u%s", id, load);
}

static void unknown_words(uint32_t id, char *out, size_t out_bytes)
{
    if (id == SEVERAL)
        snprintf(out, out_bytes, "requests of the load that are not whole");
    else
        snprintf(out, out_bytes, "requests of the server's connection %u that are not whole", id);
}

// Whose a service is that is none of the load's known requests.
static char *service_owner(const struct run_analysis *run, uint32_t number, char *out,
                           size_t out_bytes)
{
    const struct service *service = &run->lifetimes.order.services.items[number];
    if (service->foreign)
        foreign_words(run, service->connection, service->connection, service->command, out,
                      out_bytes);
    else
        unknown_words(service->connection, out, out_bytes);
    return out;
}

char *run_blocker_owner(const struct run_analysis *run, uint64_t lifetime, uint32_t service,
                        char *out, size_t out_bytes)
{
    if (lifetime == NO_LIFETIME)
        return service_owner(run, service, out, out_bytes);
    const struct lifetime *life = &run->lifetimes.all.items[lifetime];
    const char *operation = run_operation_name(run, life->load, life->operation);
    if (life->earlier)
        snprintf(out, out_bytes, "a request before what is looked at");
    if (!life->load)
        return life->earlier ? out : NULL;
    snprintf(out, out_bytes, "%s of load `%s`", operation ? operation : "a request",
             run_other_load_name(run, life->load));
    return out;
}

static void append_bytes(double bytes, char *out, size_t out_bytes)
{
    if (bytes >= 1e6)
        text_append(out, out_bytes, ", replies of %.1f MB", bytes / 1e6);
    else if (bytes >= 1e4)
        text_append(out, out_bytes, ", replies of %.0f kB", bytes / 1e3);
}

char *run_culprit_name(const struct run_analysis *run, const struct culprit *culprit, char *out,
                       size_t out_bytes)
{
    out[0] = '\0';
    if (culprit->foreign) {
        foreign_words(run, culprit->connection, culprit->client, culprit->command, out, out_bytes);
    } else if (!culprit->known) {
        unknown_words(culprit->connection, out, out_bytes);
    } else if (run->evidence.without_client && culprit->connection == SEVERAL) {
        snprintf(out, out_bytes, "requests of several connections");
    } else if (run->evidence.without_client) {
        foreign_words(run, culprit->connection, culprit->connection, 0, out, out_bytes);
    } else {
        const char *operation = run_operation_name(run, culprit->load, culprit->operation);
        if (operation)
            snprintf(out, out_bytes, "%s", operation);
        else
            snprintf(out, out_bytes, "operation %u", culprit->operation);
        if (culprit->load)
            text_append(out, out_bytes, " of load `%s`", run_other_load_name(run, culprit->load));
        if (culprit->connection != SEVERAL)
            text_append(out, out_bytes, " of connection %u", culprit->connection);
        if (culprit->key != SEVERAL)
            text_append(out, out_bytes, ", key %u", culprit->key);
    }
    return out;
}

char *run_culprit_words(const struct run_analysis *run, const struct culprit *culprit, char *out,
                        size_t out_bytes)
{
    char each[32], count[32];
    run_culprit_name(run, culprit, out, out_bytes);
    text_append(out, out_bytes, " (%s each, %s of them",
                units_format_ns(culprit->each_ns, each, sizeof each),
                text_count(culprit->services, count));
    append_bytes(culprit->each_bytes, out, out_bytes);
    text_append(out, out_bytes, "%s)", culprit->heavy ? ", far longer than usual" : "");
    return out;
}

double run_blocking_ns(const struct diagnosis *diagnosis)
{
    double ns = 0;
    for (size_t i = 0; i < diagnosis->causes.count; i++) {
        const struct cause *cause = &diagnosis->causes.items[i];
        if (cause->role == ROLE_A && strncmp(cause->name, "head-of-line blocking", 21) == 0)
            ns += cause->total_ns;
    }
    return ns;
}
