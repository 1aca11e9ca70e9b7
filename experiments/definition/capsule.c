// SPDX-License-Identifier: MIT
//
// The keys of `capsule`: at which interfaces packets are stamped during the run.
#include <stdio.h>
#include <string.h>

#include "experiments/definition/tables.h"
#include "experiments/hosts/host_kind.h"
#include "profiler/capsule/packet_words.h"

static const struct field capsule_rows[] = {
    {"hops", FIELD_TEXTS, .low = "1", INTO(struct experiment_capsule, words),
     .needed = "capsule: `hops` is missing, e.g. `hops: [to2@client, to0@switch, to1@switch, "
               "to2@server]`",
     .help = "where packets are stamped, IFACE[:ingress|:egress][@HOST] each: an interface of a "
             "host of the run (the server's), one direction or both"},
    {"filter", FIELD_TEXT, .otherwise = "tcp or udp, and the loaded server's port",
     INTO(struct experiment_capsule, filter),
     .help = "which packets, in the words of pcap-filter(7) that taillight-capsule(1) takes"},
    {"sample", FIELD_TEXT, "1", INTO(struct experiment_capsule, sample),
     .help = "of these, one in N, the same at every hop: 1/16"},
    {"carry", FIELD_SWITCH, "false", INTO(struct experiment_capsule, carry),
     .help = "packets carry their stamps, from the first hop to the last, in a trailer behind the "
             "IP packet; else hops only look"},
};
const struct fields capsule_fields = FIELDS(capsule_rows, struct experiment_capsule);

// The machine of the load, whose clock its requests relate to the server's; NULL: its agents are on
// several.
static const struct experiment_host *load_machine(const struct experiment *experiment)
{
    const struct experiment_host *hosts = experiment->hosts.items;
    for (size_t i = 0; i < experiment->load.agents.count; i++)
        if (hosts[experiment->load.agents.items[i].host].kind->is_elsewhere)
            return NULL;
    return &hosts[experiment->load.from];
}

static bool is_same_machine(const struct experiment_host *a, const struct experiment_host *b)
{
    return a == b || (!a->kind->is_elsewhere && !b->kind->is_elsewhere);
}

// The clocks of two machines have a relation: the server's and the load's.
static int find_machine(const struct binding *binding, const struct node *node,
                        struct experiment_hop *hop)
{
    const struct experiment *experiment = ((const struct reading *)binding->context)->experiment;
    const struct experiment_host *hosts = experiment->hosts.items, *load = load_machine(experiment);
    const struct experiment_host *server =
        &hosts[experiment->servers.items[experiment->load.to].host];
    hop->at_client = !is_same_machine(&hosts[hop->host], server);
    if (!hop->at_client || (load && is_same_machine(&hosts[hop->host], load)))
        return 0;
    return document_error(binding->document, node, binding->err,
                          "hops: the host `%s` is neither the server's machine nor the one machine "
                          "that the load comes from, and no other's clock is related to theirs; "
                          "name hops there",
                          hosts[hop->host].name);
}

// What is wrong with an option of the command, without the option's name.
static const char *without_option(const struct error *err)
{
    const char *colon = strstr(err->text, ": ");
    return colon ? colon + 2 : err->text;
}

static bool is_same_place(const struct hop_spec *a, const struct hop_spec *b)
{
    return strcmp(a->name, b->name) == 0;
}

static int add_hop(const struct binding *binding, const struct node *node,
                   struct experiment_capsule *capsule)
{
    const struct experiment *experiment = ((const struct reading *)binding->context)->experiment;
    const char *text = node_text(node), *at = strchr(text, '@');
    struct experiment_hop hop = {.host = experiment->servers.items[experiment->load.to].host};
    struct hop_spec specs[2];
    struct error inner;
    size_t count;
    int length = at ? (int)(at - text) : (int)strlen(text);
    if (hop_spec_parse(text, specs, &count, &inner) < 0)
        return document_error(binding->document, node, binding->err, "hops: %s",
                              without_option(&inner));
    snprintf(hop.where, sizeof hop.where, "%.*s", length, text);
    if (at && find_named(binding, node, "hops: no host", at + 1, experiment->hosts.items,
                         sizeof *experiment->hosts.items, experiment->hosts.count, &hop.host) < 0)
        return -ERROR_INPUT;
    if (find_machine(binding, node, &hop) < 0)
        return -ERROR_INPUT;
    capsule->is_divided |= hop.at_client;
    for (size_t i = 0; i < count; i++) {
        if (capsule->spec_count == HOPS_MAX)
            return document_error(binding->document, node, binding->err,
                                  "hops: %d at most; an interface without :ingress or :egress is "
                                  "two",
                                  HOPS_MAX);
        for (size_t k = 0; k < capsule->spec_count; k++)
            if (is_same_place(&capsule->specs[k], &specs[i]))
                return document_error(binding->document, node, binding->err,
                                      "hops: %s is there twice", specs[i].name);
        capsule->specs[capsule->spec_count++] = specs[i];
    }
    return array_push(&capsule->hops, hop) < 0 ? field_out_of_memory(binding) : 0;
}

// What the command would refuse when the run has begun.
static int check_words(const struct binding *binding, const struct node *node,
                       struct experiment_capsule *capsule)
{
    struct packet_filter filter;
    struct error inner;
    uint32_t one_in;
    if (capsule->filter && packet_filter_parse(capsule->filter, &filter, &inner) < 0)
        return document_error(binding->document, node_child(node, "filter"), binding->err,
                              "filter: %s", without_option(&inner));
    if (packet_sample_parse(capsule->sample, &one_in, &inner) < 0)
        return document_error(binding->document, node_child(node, "sample"), binding->err,
                              "sample: %s", without_option(&inner));
    if (capsule->carry && hop_specs_carry(capsule->specs, capsule->spec_count, &inner) < 0)
        return document_error(binding->document, node_child(node, "carry"), binding->err,
                              "carry: %s", without_option(&inner));
    return 0;
}

int read_capsule(const struct binding *binding, const struct node *node)
{
    struct experiment_capsule *capsule =
        &((const struct reading *)binding->context)->experiment->capsule;
    const struct node *hops = node_child(node, "hops");
    int result = 0;
    for (size_t i = 0; i < node_count(hops) && result == 0; i++)
        result = add_hop(binding, node_entry(hops, i), capsule);
    return result == 0 && node ? check_words(binding, node, capsule) : result;
}
