// SPDX-License-Identifier: MIT
//
// nghttp2's memory: what is freed is taken again, and holds what it is asked for.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "workloads/protocols/http2_memory.h"

static void a_block_that_is_free_is_taken_again(void **state)
{
    (void)state;
    struct http2_memory memory = {0};
    const nghttp2_mem use = http2_memory_use(&memory);
    void *one = use.malloc(100, use.mem_user_data), *other = use.malloc(100, use.mem_user_data);
    assert_non_null(one);
    assert_non_null(other);
    use.free(one, use.mem_user_data);
    use.free(other, use.mem_user_data);
    assert_ptr_equal(use.malloc(90, use.mem_user_data), other);
    assert_ptr_equal(use.malloc(128, use.mem_user_data), one);
    use.free(one, use.mem_user_data);
    use.free(other, use.mem_user_data);
    use.free(NULL, use.mem_user_data);
    http2_memory_fini(&memory);
}

// Also where it was used before, and of sizes that are not kept.
static void what_is_to_be_zeroed_is(void **state)
{
    (void)state;
    static const char zeros[2000];
    struct http2_memory memory = {0};
    const nghttp2_mem use = http2_memory_use(&memory);
    for (size_t bytes = 1; bytes < sizeof zeros; bytes += 61) {
        char *taken = use.malloc(bytes, use.mem_user_data);
        memset(taken, 'x', bytes);
        use.free(taken, use.mem_user_data);
        taken = use.calloc(1, bytes, use.mem_user_data);
        assert_memory_equal(taken, zeros, bytes);
        use.free(taken, use.mem_user_data);
    }
    assert_null(use.calloc(SIZE_MAX / 2, 4, use.mem_user_data));
    assert_null(use.malloc(SIZE_MAX, use.mem_user_data));
    http2_memory_fini(&memory);
}

static void what_grows_keeps_its_content(void **state)
{
    (void)state;
    char expected[4096];
    struct http2_memory memory = {0};
    const nghttp2_mem use = http2_memory_use(&memory);
    char *taken = use.realloc(NULL, 1, use.mem_user_data);
    for (size_t bytes = 1; bytes <= sizeof expected; bytes++) {
        taken = use.realloc(taken, bytes, use.mem_user_data);
        taken[bytes - 1] = expected[bytes - 1] = (char)(bytes * 7);
    }
    assert_memory_equal(taken, expected, sizeof expected);
    taken = use.realloc(taken, 10, use.mem_user_data);
    assert_memory_equal(taken, expected, 10);
    assert_null(use.realloc(taken, SIZE_MAX, use.mem_user_data));
    assert_memory_equal(taken, expected, 10);
    use.free(taken, use.mem_user_data);
    http2_memory_fini(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_that_is_free_is_taken_again),
        cmocka_unit_test(what_is_to_be_zeroed_is),
        cmocka_unit_test(what_grows_keeps_its_content),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
