// SPDX-License-Identifier: MIT
//
// What class of remedy a function or a context asks for (NSight §5.2): patterns of names to
// categories. The program contains a table of them (categories.csv, which explains the form); the
// user's own files take precedence over it.
#ifndef ANALYSIS_DECOMPOSITION_CATEGORIES_H
#define ANALYSIS_DECOMPOSITION_CATEGORIES_H

#include <stdbool.h>
#include <stddef.h>

#include "analysis/timeline/span.h"
#include "base/array.h"
#include "base/error.h"

enum { LONGEST_CATEGORY = 31 };

struct category_rule {
    const char *pattern, *category; // in one of the texts
};
struct category_rule_array ARRAY_OF(struct category_rule);
struct category_text_array ARRAY_OF(char *);

struct categories {
    struct category_rule_array rules; // the first that matches counts
    size_t own;                       // so many of them, the first, are the user's own
    struct category_text_array texts; // owned
};

// The program's own table. The caller frees, also after a failure.
int categories_init(struct categories *categories, struct error *err);
void categories_free(struct categories *categories);

// Puts the rules of a text before the present ones. `name` stands for the text in error messages.
// ERROR_INPUT names the line and what is wrong with it; nothing is added then.
int categories_add(struct categories *categories, const char *text, size_t bytes, const char *name,
                   struct error *err);

// The same for a file.
int categories_add_file(struct categories *categories, const char *path, struct error *err);

// The category of a function of the kernel's or of a program's, NULL when no pattern matches. The
// pattern may leave out leading underscores and the suffix that the compiler appends after a dot.
// What the program's own patterns say of the kernel's functions, they do not of a program's, which
// may well have a worker_thread too.
const char *categories_of_function(const struct categories *categories, const char *name,
                                   bool kernel);

// The category of a task, softirq, interrupt or system vector by its name; NULL: none.
const char *categories_of_context(const struct categories *categories, enum span_kind kind,
                                  const char *name);

// The category of a reason for which a thread was paused (pauses.h); NULL: none.
const char *categories_of_wait(const struct categories *categories, const char *reason);

#endif
