// SPDX-License-Identifier: MIT
//
// Which node has which keys: what was read is taken in, nodes keep their places, and owners change.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <cmocka.h>

#include "loadgen/client/node_map.h"

static struct node_map *new_map(void)
{
    struct node_map *map = malloc(sizeof *map);
    assert_non_null(map);
    node_map_init(map, true);
    return map;
}

static int take(struct node_map *map, struct cluster_range *ranges, size_t count, struct error *err)
{
    return node_map_take(map, &(struct cluster_ranges){.items = ranges, .count = count}, err);
}

static void what_was_read_is_taken_in(void **state)
{
    (void)state;
    struct error err = {0};
    struct node_map *map = new_map();
    struct cluster_range ranges[] = {{0, 99, "127.0.0.1", 7000},
                                     {100, 16383, "::1", 7000},
                                     {50, 50, "127.0.0.1", 7001},
                                     {16000, 16383, "127.0.0.1", 7000}};
    assert_int_equal(node_map_unserved(map), CLUSTER_SLOTS);
    assert_int_equal(take(map, ranges, 4, &err), 0);
    assert_int_equal(node_map_unserved(map), 0);
    assert_int_equal(node_map_count(map), 3);
    assert_int_equal(node_map_owner(map, 0), 0);
    assert_int_equal(node_map_owner(map, 50), 2);
    assert_int_equal(node_map_owner(map, 100), 1);
    assert_int_equal(node_map_owner(map, 16383), 0);
    assert_string_equal(map->nodes[1].text, "[::1]:7000");
    assert_int_equal(map->nodes[1].socket_address.ss_family, AF_INET6);
    free(map);
}

static void only_changes_count_as_changes(void **state)
{
    (void)state;
    struct error err = {0};
    struct node_map *map = new_map();
    struct cluster_range ranges[] = {{0, 16383, "127.0.0.1", 7000}, {7, 7, "127.0.0.1", 7001}};
    assert_int_equal(take(map, ranges, 2, &err), 0);
    uint32_t changes = node_map_changes(map);
    node_map_move(map, 7, node_map_find(map, "127.0.0.1", 7001));
    assert_int_equal(node_map_changes(map), changes);
    node_map_move(map, 7, node_map_find(map, "127.0.0.1", 7000));
    assert_int_equal(node_map_changes(map), changes + 1);
    assert_int_equal(node_map_owner(map, 7), 0);
    assert_int_equal(node_map_find(map, "127.0.0.1", 7002), NODE_NONE);
    assert_int_equal(node_map_find(map, "127.0.0.2", 7000), NODE_NONE);
    free(map);
}

// What came before it stays.
static void a_node_that_cannot_be_is_refused(void **state)
{
    (void)state;
    struct error err = {0};
    struct node_map *map = new_map();
    struct cluster_range ranges[] = {{0, 9, "127.0.0.1", 7000}, {10, 19, "", 7000}};
    assert_int_equal(take(map, ranges, 2, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "names no host"));
    assert_int_equal(node_map_count(map), 1);
    assert_int_equal(node_map_owner(map, 9), 0);
    assert_int_equal(node_map_owner(map, 10), NODE_NONE);
    free(map);
}

static void too_many_nodes_are_refused(void **state)
{
    (void)state;
    struct error err = {0};
    struct node_map *map = new_map();
    int status = 0;
    for (unsigned i = 0; i <= NODES_MOST && status == 0; i++) {
        struct cluster_range range = {i, i, "127.0.0.1", (uint16_t)(7000 + i)};
        status = take(map, &range, 1, &err);
        assert_int_equal(status, i < NODES_MOST ? 0 : -ERROR_FAILED);
    }
    assert_int_equal(node_map_count(map), NODES_MOST);
    free(map);
}

static void the_map_is_asked_for_once(void **state)
{
    (void)state;
    struct node_map *map = new_map();
    uint64_t asked = 0;
    node_map_want(map); // nobody watches: nothing happens
    atomic_store(&map->wanted, false);
    map->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    node_map_want(map);
    node_map_want(map);
    assert_int_equal(read(map->wake, &asked, sizeof asked), sizeof asked);
    assert_int_equal(asked, 1);
    close(map->wake);
    free(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_read_is_taken_in),
        cmocka_unit_test(only_changes_count_as_changes),
        cmocka_unit_test(a_node_that_cannot_be_is_refused),
        cmocka_unit_test(too_many_nodes_are_refused),
        cmocka_unit_test(the_map_is_asked_for_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
