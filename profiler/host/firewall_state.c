// SPDX-License-Identifier: MIT
#include "profiler/host/firewall_state.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter_ipv4/ip_tables.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { ANSWER_BYTES = 65536 };

bool firewall_rules_in(const void *answer, size_t bytes, struct firewall_state *out)
{
    const struct nlmsghdr *message = answer;
    for (unsigned left = (unsigned)bytes; NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
        if (message->nlmsg_type == NLMSG_DONE)
            out->known = true;
        if (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR)
            return true;
        out->rules += message->nlmsg_type == (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE);
    }
    return false;
}

static void count_nft_rules(struct firewall_state *out)
{
    struct {
        struct nlmsghdr header;
        struct nfgenmsg family; // all of them
    } question = {.header = {.nlmsg_len = sizeof question,
                             .nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETRULE,
                             .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
    const struct timeval patience = {.tv_sec = 1};
    int kernel = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
    void *answer = malloc(ANSWER_BYTES);
    bool ended = kernel < 0 || !answer ||
                 setsockopt(kernel, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
                 send(kernel, &question, sizeof question, 0) < 0;
    while (!ended && out->rules < FIREWALL_MOST_RULES) {
        ssize_t got = recv(kernel, answer, ANSWER_BYTES, 0);
        ended = got <= 0 || firewall_rules_in(answer, (size_t)got, out);
    }
    out->known |= out->rules > 0;
    free(answer);
    if (kernel >= 0)
        close(kernel);
}

// Of tables that are there: to ask for another one would make it.
static void count_old_rules(struct firewall_state *out)
{
    FILE *tables = fopen("/proc/self/net/ip_tables_names", "re");
    int kernel = tables ? socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW) : -1;
    struct ipt_getinfo table = {0};
    while (kernel >= 0 && fscanf(tables, "%31s", table.name) == 1) {
        socklen_t bytes = sizeof table;
        if (getsockopt(kernel, IPPROTO_IP, IPT_SO_GET_INFO, &table, &bytes) == 0)
            out->rules += table.num_entries;
    }
    if (kernel >= 0)
        close(kernel);
    if (tables)
        fclose(tables);
}

uint64_t firewall_column_sum(const char *text, const char *column)
{
    uint64_t sum = 0;
    size_t at = 0, bytes = strlen(column);
    const char *name = text + strspn(text, " ");
    while (*name && *name != '\n' &&
           !(strncmp(name, column, bytes) == 0 && strchr(" \n", name[bytes]))) {
        name += strcspn(name, " \n");
        name += strspn(name, " ");
        at++;
    }
    if (!*name || *name == '\n')
        return 0;
    for (const char *line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        const char *value = line + 1;
        for (size_t i = 0; i < at; i++) {
            value += strcspn(value, " \n");
            value += strspn(value, " ");
        }
        sum += strtoull(value, NULL, 16);
    }
    return sum;
}

static uint64_t count_untracked(void)
{
    char text[32768];
    FILE *file = fopen("/proc/self/net/stat/nf_conntrack", "re");
    size_t got = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[got] = '\0';
    if (file)
        fclose(file);
    return firewall_column_sum(text, "drop");
}

void firewall_state_read(struct firewall_state *out)
{
    *out = (struct firewall_state){.untracked = count_untracked()};
    count_nft_rules(out);
    count_old_rules(out);
}

json_t *firewall_state_moved(const struct firewall_state *before)
{
    struct firewall_state now;
    firewall_state_read(&now);
    uint64_t rules = now.rules > before->rules ? now.rules : before->rules;
    uint64_t untracked = now.untracked > before->untracked ? now.untracked - before->untracked : 0;
    return json_pack("{s:o, s:I}", "rules",
                     now.known || before->known ? json_integer((json_int_t)rules) : json_null(),
                     "untracked", (json_int_t)untracked);
}
