// SPDX-License-Identifier: MIT
//
// Who is one client: connections of one or two exchanges from the same address are.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analysis/lifetime/service_order.h"

static void short_connections_of_an_address_are_one_client(void **state)
{
    (void)state;
    enum { LONG = 5, LOAD = 9, OTHER = 11 };
    static const uint32_t connections[] = {LONG, 7, LONG, 8, LOAD, LONG, OTHER, 12, 8};
    static const uint32_t clients[] = {LONG, 7, LONG, 7, LOAD, LONG, OTHER, 7, 7};
    struct connection table[] = {{.id = OTHER, .peer = {2}}, {.id = LONG, .peer = {1}},
                                 {.id = 12, .peer = {1}},    {.id = 7, .peer = {1}},
                                 {.id = LOAD, .peer = {1}},  {.id = 8, .peer = {1}}};
    struct service services[sizeof connections / sizeof *connections];
    for (size_t i = 0; i < sizeof services / sizeof *services; i++)
        services[i] = (struct service){.connection = connections[i],
                                       .client = connections[i],
                                       .foreign = connections[i] != LOAD};
    struct service_order order = {
        .services = {.items = services, .count = sizeof services / sizeof *services}};
    assert_int_equal(service_order_group_clients(&order, table, sizeof table / sizeof *table), 0);
    for (size_t i = 0; i < sizeof services / sizeof *services; i++)
        assert_int_equal(services[i].client, clients[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_connections_of_an_address_are_one_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
