// SPDX-License-Identifier: MIT
//
// The keys of a host. Which of them a kind takes is in its row of HOST_KINDS.
#include <string.h>

#include "experiments/definition/tables.h"
#include "experiments/hosts/host_kind.h"

static const char *kind_word(unsigned index)
{
    return host_kinds[index] ? host_kinds[index]->name : NULL;
}

static const char *const *kind_keys(unsigned index)
{
    return host_kinds[index] ? host_kinds[index]->keys : NULL;
}

static int begin_host(const struct binding *binding, const struct node *node, void *object)
{
    struct experiment_host *host = object;
    unsigned other, kind = read_kind(node, kind_word);
    host->kind = host_kinds[kind];
    const struct node *key = find_key_of_another(node, kind_keys, kind, &other);
    return key ? document_error(binding->document, key, binding->err,
                                "`%s` is for hosts of `kind: %s`", node_text(key),
                                host_kinds[other]->name)
               : 0;
}

// Has the kind check its own keys, and reports an error where the wrong one is.
static int check_kind(const struct binding *binding, const struct node *node,
                      const struct experiment_host *host)
{
    struct error inner;
    const char *key = NULL;
    size_t entry = SIZE_MAX;
    if (host->kind->check(host, &key, &entry, &inner) == 0)
        return 0;
    if (key)
        node = node_child(node, key);
    if (entry != SIZE_MAX)
        node = node_entry(node, entry);
    return document_error(binding->document, node, binding->err, "%s", inner.text);
}

static int check_host(const struct binding *binding, const struct node *node, void *object)
{
    const struct reading *reading = binding->context;
    struct experiment_host *host = object;
    const struct experiment_host *first = &reading->experiment->hosts.items[0];
    host->cores = reading->machine;
    int result = read_cores(binding, node, host, &host->cores);
    if (result == 0)
        result = check_kind(binding, node, host);
    if (result < 0)
        return result;
    if (host->kind->is_elsewhere && !node_child(node, "cores"))
        return document_error(binding->document, node, binding->err,
                              "a host of kind %s needs `cores`, e.g. `cores: [0-3]`",
                              host->kind->name);
    for (const struct experiment_host *other = first; other < host && host->kind->is_bridge;
         other++)
        if (other->kind->is_bridge)
            return document_error(binding->document, node, binding->err,
                                  "`%s` is a bridge already, and one joins all hosts; leave one of "
                                  "them out",
                                  other->name);
    if (host->kind->is_joined == first->kind->is_joined)
        return 0;
    return document_error(binding->document, node, binding->err,
                          "`%s` is of kind %s and `%s` of kind %s, and no network joins them; "
                          "make all hosts of one kind",
                          host->name, host->kind->name, first->name, first->kind->name);
}

static const struct field host_rows[] = {
    {"kind", FIELD_WORD, .word = kind_word, .otherwise = "local",
     .help =
         "local: here, on 127.0.0.1; netns: here, in a network namespace made for the run; "
         "bridge: the same, and a bridge by which the others are joined, in place of a cable "
         "between each two; ssh: another machine, through the user's own OpenSSH (docs/ssh.md)"},
    {"cores", FIELD_TEXTS, .otherwise = "all; of kind ssh: needed",
     .help = "what runs there runs on these: [0, 2-3]"},
    {"address", FIELD_TEXT, INTO(struct experiment_host, address),
     .help = "of kind ssh, needed: [user@]host, or a name of ssh's configuration"},
    {"nic", FIELD_TEXT, .otherwise = "the one ssh reached", INTO(struct experiment_host, nic),
     .help = "of kind ssh: the card whose IPv4 address its servers get"},
    {"directory", FIELD_TEXT, "/tmp", INTO(struct experiment_host, directory),
     .help = "of kind ssh: where the program lies there for the run"},
    {"ssh_config", FIELD_TEXT, .otherwise = "the user's", INTO(struct experiment_host, ssh_config),
     .help = "of kind ssh: a file"},
    {"ssh_options", FIELD_TEXTS, .otherwise = "none", INTO(struct experiment_host, ssh_options),
     .help = "of kind ssh: as its -o takes them: [\"Port=2222\"]"},
    {"silence", FIELD_DURATION, "5s", .low = "2s", .high = "1h",
     INTO(struct experiment_host, silence_ns),
     .help = "of kind ssh: after so long without a word from it the link counts as down; longer "
             "where it may be kept from running for seconds"},
};
const struct fields host_fields =
    FIELDS(host_rows, struct experiment_host, .begin = begin_host, .check = check_host);

static int check_load_meets(const struct binding *binding, const struct node *root,
                            const struct experiment_load *load)
{
    const struct reading *reading = binding->context;
    const struct experiment_host *hosts = reading->experiment->hosts.items;
    const struct experiment_server *server = &reading->experiment->servers.items[load->to];
    const struct experiment_host *far =
        hosts[load->from].kind->is_elsewhere ? &hosts[load->from] : NULL;
    for (size_t i = 0; i < load->agents.count && !far; i++)
        if (hosts[load->agents.items[i].host].kind->is_elsewhere)
            far = &hosts[load->agents.items[i].host];
    // One that runs already is where its address says.
    if (!far || !hosts[server->host].kind->is_alone ||
        (server->address && strncmp(server->address, "127.", 4) != 0))
        return 0;
    return document_error(binding->document, node_key(node_child(root, "servers"), server->name),
                          binding->err,
                          "the server `%s` is on the %s host `%s`, on 127.0.0.1, where load from a "
                          "host of kind %s does not reach it; make that host %s, too, or say the "
                          "`address` of a server that runs already (kind: running)",
                          server->name, hosts[server->host].kind->name, hosts[server->host].name,
                          far->kind->name, far->kind->name);
}

int check_hosts_meet(const struct binding *binding, const struct node *root)
{
    const struct reading *reading = binding->context;
    int result = 0;
    for (size_t i = 0; i < experiment_load_count(reading->experiment) && result == 0; i++)
        result = check_load_meets(binding, root, experiment_load_at(reading->experiment, i));
    return result;
}
