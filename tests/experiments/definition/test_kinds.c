// SPDX-License-Identifier: MIT
//
// The tables of kinds have no holes: every row has a name of its own, a line of help and all
// operations, among them those that are added after this was written.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/program_package.h"
#include "experiments/capture/capture_backend.h"
#include "experiments/definition/resolve.h"
#include "experiments/definition/study.h"
#include "experiments/hosts/host_kind.h"
#include "experiments/servers/server_kind.h"

typedef void (*operation)(void);

// All of a row from its first operation on are operations; this sees a missing one of any name.
static bool has_all(const void *row, size_t first, size_t row_bytes)
{
    assert_int_equal((row_bytes - first) % sizeof(operation), 0);
    for (size_t at = first; at < row_bytes; at += sizeof(operation)) {
        operation one;
        memcpy(&one, (const char *)row + at, sizeof one);
        if (!one)
            return false;
    }
    return true;
}

static void has_words(const char *name, const char *help)
{
    assert_non_null(name);
    assert_true(name[0]);
    assert_non_null(help);
    assert_true(help[0]);
}

static void server_kinds_are_whole(void **state)
{
    (void)state;
    size_t count = 0;
    for (; server_kinds[count]; count++) {
        const struct server_kind *kind = server_kinds[count];
        has_words(kind->name, kind->help);
        assert_non_null(kind->keys);
        assert_non_null(kind->protocol);
        assert_true(kind->port > 0 || kind->runs_already);
        assert_true(has_all(kind, offsetof(struct server_kind, speaks), sizeof *kind));
        assert_true(!kind->protocol[0] || kind->speaks(kind->protocol));
        for (size_t i = 0; i < count; i++)
            assert_string_not_equal(server_kinds[i]->name, kind->name);
    }
    assert_true(count >= 5);
    assert_string_equal(server_kinds[0]->name, "memcached"); // the documented default
}

static void host_kinds_are_whole(void **state)
{
    (void)state;
    size_t count = 0, first = offsetof(struct host_kind, check);
    for (; host_kinds[count]; count++) {
        const struct host_kind *kind = host_kinds[count];
        has_words(kind->name, kind->help);
        assert_non_null(kind->keys);
        assert_true(
            has_all(kind, first,
                    kind->is_elsewhere ? sizeof *kind : offsetof(struct host_kind, start_copy)));
        if (kind->program)
            assert_non_null(program_package(kind->program));
        for (size_t i = 0; i < count; i++)
            assert_string_not_equal(host_kinds[i]->name, kind->name);
    }
    assert_true(count >= 3);
    assert_string_equal(host_kinds[0]->name, "local"); // the documented default
}

static void capture_backends_are_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT; i++) {
        const struct capture_backend *backend = capture_backends[i];
        has_words(backend->name, backend->help);
        has_words(backend->lack, backend->files);
        assert_true(has_all(backend, offsetof(struct capture_backend, examine), sizeof *backend));
        assert_string_equal(capture_choice_name((unsigned)i + 1), backend->name);
        assert_true(capture_choice_records((unsigned)i + 1));
    }
    assert_string_equal(capture_choice_name(0), "auto");
    assert_string_equal(capture_choice_name(CAPTURE_BACKENDS_COUNT + 1), "none");
    assert_false(capture_choice_records(CAPTURE_BACKENDS_COUNT + 1));
    assert_null(capture_choice_name(CAPTURE_BACKENDS_COUNT + 2));
}

static void neighbour_kinds_are_whole(void **state)
{
    (void)state;
    size_t serving = 0, count = 0;
    for (; neighbour_kinds[count]; count++) {
        has_words(neighbour_kinds[count]->name, neighbour_kinds[count]->help);
        assert_non_null(neighbour_kinds[count]->keys);
        serving += neighbour_kinds[count]->server != NULL;
    }
    assert_true(count > serving && serving > 0);
    assert_null(neighbour_kinds[0]->server);
}

// Each key of a mapping and of those in it has a line of help.
static void keys_have_help(const struct fields *fields, int depth)
{
    assert_true(depth < 8);
    for (size_t i = 0; i < fields->count; i++) {
        const struct field *field = &fields->rows[i];
        has_words(field->key, field->help);
        if (field->fields)
            keys_have_help(field->fields, depth + 1);
    }
}

static void keys_are_whole(void **state)
{
    (void)state;
    keys_have_help(&experiment_fields, 0);
    keys_have_help(&study_fields, 0);
}

static void a_missing_operation_is_seen(void **state)
{
    (void)state;
    struct server_kind first = *server_kinds[0], last = *server_kinds[0];
    first.speaks = NULL;
    last.make_command = NULL;
    assert_false(has_all(&first, offsetof(struct server_kind, speaks), sizeof first));
    assert_false(has_all(&last, offsetof(struct server_kind, speaks), sizeof last));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server_kinds_are_whole),
        cmocka_unit_test(host_kinds_are_whole),
        cmocka_unit_test(capture_backends_are_whole),
        cmocka_unit_test(neighbour_kinds_are_whole),
        cmocka_unit_test(keys_are_whole),
        cmocka_unit_test(a_missing_operation_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
