// SPDX-License-Identifier: MIT
#include "analysis/decomposition/categories.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/input_file.h"

enum { LARGEST_FILE = 16 << 20, LONGEST_NAME = 200 };

__asm__(".section .rodata\n"
        ".local categories_begin, categories_end\n"
        "categories_begin: .incbin \"analysis/decomposition/categories.csv\"\n"
        "categories_end: .byte 0\n"
        ".previous\n");
extern const char categories_begin[], categories_end[];

int categories_init(struct categories *categories, struct error *err)
{
    *categories = (struct categories){0};
    int result =
        categories_add(categories, categories_begin, (size_t)(categories_end - categories_begin),
                       "analysis/decomposition/categories.csv", err);
    categories->own = 0;
    return result;
}

void categories_free(struct categories *categories)
{
    for (size_t i = 0; i < categories->texts.count; i++)
        free(categories->texts.items[i]);
    array_free(&categories->texts);
    array_free(&categories->rules);
}

static char *trim_blanks(char *text)
{
    while (*text == ' ' || *text == '\t')
        text++;
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r", text[length - 1]))
        text[--length] = '\0';
    return text;
}

// Reads one line; *rule stays empty for a blank line or a comment.
static int read_line(char *line, bool first, const char *name, size_t number,
                     struct category_rule *rule, struct error *err)
{
    *rule = (struct category_rule){0};
    line = trim_blanks(line);
    if (line[0] == '\0' || line[0] == '#')
        return 0;
    char *comma = strchr(line, ',');
    if (!comma)
        return error_set(err, ERROR_INPUT,
                         "%s:%zu: no comma: a line is a pattern, a comma and a category", name,
                         number);
    *comma = '\0';
    const char *pattern = trim_blanks(line), *category = trim_blanks(comma + 1);
    if (first && strcmp(pattern, "pattern") == 0 && strcmp(category, "category") == 0)
        return 0;
    if (pattern[0] == '\0')
        return error_set(err, ERROR_INPUT, "%s:%zu: there is no pattern before the comma", name,
                         number);
    if (category[0] == '\0')
        return error_set(err, ERROR_INPUT, "%s:%zu: there is no category after the comma", name,
                         number);
    if (strchr(category, ','))
        return error_set(err, ERROR_INPUT,
                         "%s:%zu: more than one comma: neither patterns nor categories have any",
                         name, number);
    if (strlen(category) > LONGEST_CATEGORY)
        return error_set(err, ERROR_INPUT,
                         "%s:%zu: the category is longer than %d characters: shorten it", name,
                         number, LONGEST_CATEGORY);
    for (const char *at = category; *at; at++)
        if (*at < ' ' || *at > '~')
            return error_set(err, ERROR_INPUT,
                             "%s:%zu: the category has a character that is no printable ASCII",
                             name, number);
    *rule = (struct category_rule){pattern, category};
    return 0;
}

static int read_lines(struct category_rule_array *rules, char *text, size_t bytes, const char *name,
                      struct error *err)
{
    bool first = true;
    char *line = text, *end = text + bytes;
    for (size_t number = 1; line < end; number++) {
        char *newline = memchr(line, '\n', (size_t)(end - line));
        char *after = newline ? newline : end;
        if (memchr(line, '\0', (size_t)(after - line)))
            return error_set(err, ERROR_INPUT, "%s:%zu: a NUL byte: this is no text", name, number);
        *after = '\0';
        struct category_rule rule;
        int result = read_line(line, first, name, number, &rule, err);
        if (result < 0)
            return result;
        first = first && !rule.pattern && (line[0] == '#' || line[0] == '\0');
        if (rule.pattern && array_push(rules, rule) < 0)
            return error_set(err, ERROR_FAILED, "no memory for the categories of %s", name);
        line = after + 1;
    }
    return 0;
}

int categories_add(struct categories *categories, const char *text, size_t bytes, const char *name,
                   struct error *err)
{
    struct category_rule_array rules = {0};
    size_t own = 0;
    char *copy = malloc(bytes + 1);
    if (!copy)
        return error_set(err, ERROR_FAILED, "no memory for the categories of %s", name);
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    int result = read_lines(&rules, copy, bytes, name, err);
    own = categories->own + rules.count;
    for (size_t i = 0; result == 0 && i < categories->rules.count; i++)
        if (array_push(&rules, categories->rules.items[i]) < 0)
            result = error_set(err, ERROR_FAILED, "no memory for the categories of %s", name);
    if (result == 0 && array_push(&categories->texts, copy) < 0)
        result = error_set(err, ERROR_FAILED, "no memory for the categories of %s", name);
    if (result < 0) {
        array_free(&rules);
        free(copy);
        return result;
    }
    array_free(&categories->rules);
    categories->rules = rules;
    categories->own = own;
    return 0;
}

int categories_add_file(struct categories *categories, const char *path, struct error *err)
{
    FILE *file = input_stream_any(path, err);
    if (!file)
        return error_prefix(err, "the categories");
    char *text = malloc(LARGEST_FILE);
    size_t bytes = text ? fread(text, 1, LARGEST_FILE, file) : 0;
    int result;
    if (!text)
        result = error_set(err, ERROR_FAILED, "no memory to read %s", path);
    else if (ferror(file))
        result = error_set_errno(err, ERROR_INPUT, "cannot read the categories %s", path);
    else if (bytes == LARGEST_FILE)
        result = error_set(err, ERROR_INPUT,
                           "%s: larger than 16 MiB: this is no list of categories", path);
    else
        result = categories_add(categories, text, bytes, path, err);
    free(text);
    fclose(file);
    return result;
}

// By the first so many rules.
static const char *category_by(const struct categories *categories, size_t rules, const char *name)
{
    for (size_t i = 0; i < rules; i++)
        if (fnmatch(categories->rules.items[i].pattern, name, 0) == 0)
            return categories->rules.items[i].category;
    return NULL;
}

static const char *category_of_name(const struct categories *categories, const char *name)
{
    return categories ? category_by(categories, categories->rules.count, name) : NULL;
}

// The same with the name as it is, or bare.
static const char *category_of_symbol(const struct categories *categories, size_t rules,
                                      const char *name)
{
    if (strncmp(name, "__pfx_", 6) == 0) // the padding before a function, where one is patched in
        name += 6;
    const char *category = category_by(categories, rules, name);
    const char *bare = name + strspn(name, "_");
    if (!category && bare != name)
        category = category_by(categories, rules, bare);
    const char *dot = strchr(bare, '.'); // ".isra.0", ".constprop.0", ".cold"
    char whole[LONGEST_NAME];
    if (category || !dot || (size_t)(dot - bare) >= sizeof whole)
        return category;
    snprintf(whole, sizeof whole, "%.*s", (int)(dot - bare), bare);
    return category_by(categories, rules, whole);
}

const char *categories_of_function(const struct categories *categories, const char *name,
                                   bool kernel)
{
    if (!categories)
        return NULL;
    if (kernel)
        return category_of_symbol(categories, categories->rules.count, name);
    const char *category = category_of_symbol(categories, categories->own, name);
    char text[LONGEST_NAME];
    snprintf(text, sizeof text, "program %s", name);
    return category ? category : category_of_name(categories, text);
}

const char *categories_of_context(const struct categories *categories, enum span_kind kind,
                                  const char *name)
{
    char text[LONGEST_NAME];
    snprintf(text, sizeof text, "%s %s", span_kind_word(kind), name);
    return category_of_name(categories, text);
}

const char *categories_of_wait(const struct categories *categories, const char *reason)
{
    char text[LONGEST_NAME];
    snprintf(text, sizeof text, "wait %s", reason);
    return category_of_name(categories, text);
}
