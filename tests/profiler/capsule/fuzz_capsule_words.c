// SPDX-License-Identifier: MIT
//
// The texts of --hop, --filter and --sample: what is accepted makes sense.
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "profiler/capsule/hop_spec.h"
#include "profiler/capsule/packet_words.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void check_hop(const char *text)
{
    struct hop_spec specs[2];
    struct error err;
    size_t count;
    if (hop_spec_parse(text, specs, &count, &err) < 0)
        return;
    assert(count == 1 || count == 2);
    for (size_t i = 0; i < count; i++) {
        assert(specs[i].interface[0] && !strpbrk(specs[i].interface, "/@: "));
        assert(memchr(specs[i].interface, '\0', sizeof specs[i].interface));
        assert(specs[i].namespace[0] == '\0' || specs[i].namespace[0] == '/');
        const char *at = text + strcspn(text, "@");
        assert(!strcmp(text, specs[i].name) ==
               (strchr(text, ':') != NULL && strchr(text, ':') < at && !strchr(at, '=')));
    }
    assert(count == 1 || specs[0].direction != specs[1].direction);
}

static void check_filter(const char *text)
{
    struct packet_filter filter;
    struct error err;
    if (packet_filter_parse(text, &filter, &err) < 0)
        return;
    struct packet_head head = {
        .source = filter.has_source ? filter.source : filter.host,
        .destination = filter.has_destination ? filter.destination : filter.host,
        .source_port = filter.source_port ? filter.source_port : filter.port,
        .destination_port = filter.destination_port ? filter.destination_port : filter.port,
        .family = filter.family ? filter.family : PACKET_IPV4,
        .protocol = filter.protocol ? filter.protocol : PACKET_TCP,
    };
    // Some packet is taken, unless both ends are given, and neither is the third.
    if ((!filter.port || !filter.source_port || !filter.destination_port) &&
        (!filter.has_host || !filter.has_source || !filter.has_destination))
        assert(packet_filter_matches(&filter, &head) && packet_filter_matches_ends(&filter, &head));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char text[400];
    struct error err;
    uint32_t one_in;
    if (count >= sizeof text)
        return 0;
    memcpy(text, bytes, count);
    text[count] = '\0';
    check_hop(text);
    check_filter(text);
    if (packet_sample_parse(text, &one_in, &err) == 0)
        assert(one_in >= 1 && packet_sample_limit(one_in) >= 1);
    return 0;
}
