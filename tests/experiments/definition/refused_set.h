// SPDX-License-Identifier: MIT
//
// An experiment's text that must be refused with exactly this sentence. Header-only.
#ifndef TESTS_EXPERIMENTS_DEFINITION_REFUSED_SET_H
#define TESTS_EXPERIMENTS_DEFINITION_REFUSED_SET_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "experiments/definition/experiment_set.h"

static inline void refuse(const char *text, const char *sentence)
{
    struct experiment_set set;
    struct error err = {0};
    int result = experiment_set_parse("x.yaml", text, strlen(text), NULL, &set, &err);
    assert_int_equal(result, -ERROR_INPUT);
    assert_string_equal(err.text, sentence);
}

#endif
