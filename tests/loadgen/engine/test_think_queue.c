// SPDX-License-Identifier: MIT
//
// Connections come out of the queue when it is their time, the soonest first, however they went in.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/hash.h"
#include "loadgen/engine/think_queue.h"

enum { CONNECTIONS = 100 };

static void the_soonest_comes_first(void **state)
{
    (void)state;
    struct think_queue queue;
    struct client_connection *connections = calloc(CONNECTIONS, sizeof *connections);
    uint64_t popped = 0, now = 0;
    assert_int_equal(think_queue_make(&queue, CONNECTIONS, NULL, 1, 0), 0);
    assert_null(think_queue_pop(&queue, UINT64_MAX));
    for (uint64_t i = 0; i < CONNECTIONS; i++) {
        connections[i].wake_tsc = hash64(i) % 50; // several at once, too
        think_queue_push(&queue, &connections[i]);
    }
    // Each goes in again twice, for later.
    for (; queue.count; now++) {
        uint64_t least = UINT64_MAX;
        for (uint32_t i = 0; i < queue.count; i++)
            least = queue.items[i]->wake_tsc < least ? queue.items[i]->wake_tsc : least;
        assert_true(least >= now); // none was forgotten
        struct client_connection *connection;
        while ((connection = think_queue_pop(&queue, now))) {
            assert_int_equal(connection->wake_tsc, now);
            popped++;
            if (connection->put++ < 2) {
                connection->wake_tsc = now + 1 + hash64(popped) % 50;
                think_queue_push(&queue, connection);
            }
        }
    }
    assert_int_equal(popped, 3 * CONNECTIONS);
    free(queue.items);
    free(connections);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_soonest_comes_first)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
