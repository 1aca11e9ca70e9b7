// SPDX-License-Identifier: MIT
//
// The texts of --sweep, --slo, --agent and --server: what is accepted makes sense.
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "loadgen/agents/agent.h"
#include "loadgen/client/server_address.h"
#include "loadgen/load_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void check_agent(const char *text)
{
    struct agent_spec specs[2];
    struct error err;
    double rate = 0;
    if (agent_spec_parse(text, &specs[0], &err) < 0)
        return;
    assert(specs[0].rate >= 0 && memchr(specs[0].name, '\0', sizeof specs[0].name));
    specs[1] = specs[0];
    if (agent_specs_resolve(specs, 1, 16, 1, 8, 1, &rate, &err) == 0)
        assert(rate > 0 && specs[0].connections >= 1 && specs[0].threads >= 1);
    if (specs[1].name[0]) // two of one name
        assert(agent_specs_resolve(specs, 2, 16, 1, 8, 1, &rate, &err) < 0);
}

static void check_server(const char *text)
{
    struct server_address address;
    struct error err;
    if (server_address_parse(text, &address, &err) < 0)
        return;
    assert(address.host[0] && memchr(address.host, '\0', sizeof address.host));
    assert((address.port == 0) == (address.transport == SERVER_UNIX));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char text[400];
    struct sweep_range range;
    struct slo slo;
    struct error err;
    if (count >= sizeof text)
        return 0;
    memcpy(text, bytes, count);
    text[count] = '\0';
    if (sweep_range_parse(text, &range, &err) == 0) {
        assert(range.count >= 1 && range.count <= SWEEP_RATES_MAX);
        assert(sweep_range_rate(&range, range.count - 1) <= range.to);
        assert(sweep_range_rate(&range, 0) == range.from);
    }
    if (slo_parse(text, &slo, &err) == 0)
        assert(slo.quantile > 0 && slo.quantile < 1 && slo.limit_us > 0 &&
               slo_is_met(&slo, slo.limit_us) != slo.strict);
    check_agent(text);
    check_server(text);
    return 0;
}
