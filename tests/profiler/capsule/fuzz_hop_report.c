// SPDX-License-Identifier: MIT
//
// Any text as what another machine's capsule.json says of a hop: it is refused, by the name of what
// is wrong, or it can be shown on a terminal, and the document that is made of it says the same.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/capsule/hop_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_shown(const struct hop_report *report)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    must(out != NULL);
    hop_report_print(report, out);
    must(fclose(out) == 0);
    for (size_t i = 0; i < bytes; i++)
        must(text[i] == '\n' || ((unsigned char)text[i] >= ' ' && text[i] != 127));
    free(text);
}

static void check_document(const struct hop_report *report, const struct hop_link *link)
{
    struct hop_report again = {.hop_count = 1};
    struct hop_link link_again = {.socket = -1};
    json_t *document = hop_report_json(report);
    const json_t *hop = json_array_get(json_object_get(document, "hops"), 0);
    must(hop != NULL && hop_report_take(&again, 0, hop, &link_again) == NULL);
    must(strcmp(link->qdisc, link_again.qdisc) == 0 &&
         strcmp(link->unseen, link_again.unseen) == 0);
    must(link->interface == link_again.interface && link->peer == link_again.peer);
    must(memcmp(&report->counts[0], &again.counts[0], sizeof again.counts[0]) == 0);
    must(report->gone[0] == again.gone[0] && report->cut[0] == again.cut[0]);
    json_decref(document);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const struct hop_spec spec = {.interface = "eth0", .name = "eth0:egress"};
    struct packet_join join = {.route_count = 0};
    struct hop_link link = {.socket = -1};
    struct hop_report report = {
        .filter = "", .one_in = 1, .hop_count = 1, .hops = &spec, .link = {&link}, .join = &join};
    json_t *hop = json_loadb((const char *)data, bytes, 0, NULL);
    const char *wrong = hop ? hop_report_take(&report, 0, hop, &link) : "";
    if (!wrong) {
        must(memchr(link.qdisc, '\0', sizeof link.qdisc) != NULL);
        check_shown(&report);
        check_document(&report, &link);
    }
    json_decref(hop);
    return 0;
}
