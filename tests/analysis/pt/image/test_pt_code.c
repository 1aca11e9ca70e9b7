// SPDX-License-Identifier: MIT
//
// What functions of programs without symbols are called: the same wherever the program was loaded.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "analysis/code/code_build.h"
#include "analysis/pt/pt_trace.h"

enum { WITHIN = 0x40 }; // a function, so far behind the begin of the code

static void a_function_without_a_symbol_is_named_by_its_place(void **state)
{
    (void)state;
    static const uint64_t bases[] = {0x555555554000, 0x7f0012340000};
    struct error err;
    struct pt_trace traces[2];
    char names[2][PT_LABEL_BYTES], text[PT_LABEL_BYTES];
    char folder[] = "/tmp/taillight-code-XXXXXX", path[64], command[256];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/bare", folder);
    snprintf(command, sizeof command, "strip --strip-all -o %s /proc/%d/exe", path, getpid());
    assert_int_equal(system(command), 0);
    for (int i = 0; i < 2; i++) {
        struct code_given given = {.path = path, .address = bases[i], .has_address = true};
        assert_int_equal(pt_trace_init(&traces[i], &err), 0);
        if (pt_trace_add_code(&traces[i], &given, 1, &err) < 0)
            fail_msg("%s", err.text);
        uint64_t code = traces[i].memory.sections.items[0].address;
        assert_string_equal(pt_label(&traces[i], PT_SPAN_FUNCTION, code + WITHIN, false, names[i]),
                            names[i]);
        snprintf(text, sizeof text, "bare+0x%llx", (unsigned long long)(code - bases[i] + WITHIN));
        assert_string_equal(names[i], text);
        // where no file is, the address is all
        pt_label(&traces[i], PT_SPAN_FUNCTION, 0x1234, false, text);
        assert_string_equal(text, "0x1234");
        pt_trace_free(&traces[i]);
    }
    assert_string_equal(names[0], names[1]);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_without_a_symbol_is_named_by_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
