// SPDX-License-Identifier: MIT
#include "base/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/suggestion.h"
#include "base/text.h"
#include "base/units.h"

enum { OPTIONS_MAX = 64 }; // of a command, that are thought of for suggestions

// In columns: what COLUMNS says, as of other programs, else the terminal, else 80.
static int help_width(void)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    const long said = columns ? strtol(columns, NULL, 10) : 0;
    if (said > 0 && said <= UINT16_MAX)
        return (int)said;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

static void print_option(const char *left, const char *help, int width)
{
    // Beside each other; on a narrow terminal the help stands below, as below a long option.
    const int indent = width < 60 ? 8 : 33;
    if (width < 60 || text_columns(left) > 30)
        printf("  %s\n%*s", left, indent, "");
    else
        printf("  %-30s ", left);
    text_wrap(stdout, help, indent, width);
}

static void print_help(const struct command_usage *usage)
{
    const int width = help_width();
    printf("usage: taillight %s ", usage->name);
    text_wrap(stdout, usage->arguments,
              (int)strlen("usage: taillight  ") + text_columns(usage->name), width);
    printf("\n");
    text_wrap(stdout, usage->summary, 0, width);
    if (usage->details)
        printf("\n");
    for (const char *line = usage->details; line; line = strchr(line, '\n')) {
        char text[1024];
        line += *line == '\n';
        snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\n"), line);
        text_wrap(stdout, text, 0, width);
    }
    printf("\nOptions:\n");
    for (const struct option_spec *o = usage->options; o->name; o++) {
        char left[128], letter[8] = "    ";
        if (o->letter)
            snprintf(letter, sizeof letter, "-%c, ", o->letter);
        snprintf(left, sizeof left, "%s--%s%s%s", letter, o->name, o->argument ? " " : "",
                 o->argument ? o->argument : "");
        print_option(left, o->help, width);
    }
    print_option("-h, --help", "print this and exit", width);
}

// As units_parse_duration_ns, and a bare number is seconds, as sleep(1) and others have it.
static int parse_duration(const char *text, uint64_t *out, struct error *err)
{
    char seconds[32];
    size_t bytes = strlen(text);
    if (bytes && bytes + 2 <= sizeof seconds && strspn(text, "0123456789.") == bytes) {
        snprintf(seconds, sizeof seconds, "%ss", text);
        text = seconds;
    }
    return units_parse_duration_ns(text, out, err);
}

static int option_store(const struct option_spec *option, const char *text, void *values,
                        struct error *err)
{
    char *at = (char *)values + option->offset;
    int result = 0;
    switch (option->type) {
    case OPTION_TYPE_FLAG:
        *(bool *)at = true;
        return 0;
    case OPTION_TYPE_STRING:
        *(const char **)at = text;
        return 0;
    case OPTION_TYPE_COUNT:
        result = units_parse_count(text, (uint64_t *)(void *)at, err);
        break;
    case OPTION_TYPE_NUMBER:
        result = units_parse_number(text, (double *)(void *)at, err);
        break;
    case OPTION_TYPE_SHARE:
        result = units_parse_share(text, (double *)(void *)at, err);
        break;
    case OPTION_TYPE_DURATION:
    case OPTION_TYPE_PERIOD:
        result = parse_duration(text, (uint64_t *)(void *)at, err);
        if (result == 0 && option->type == OPTION_TYPE_PERIOD && *(uint64_t *)(void *)at == 0)
            result = error_set(err, ERROR_INPUT, "must be more than 0");
        break;
    case OPTION_TYPE_BYTES:
        result = units_parse_bytes(text, (uint64_t *)(void *)at, err);
        break;
    case OPTION_TYPE_CORES:
        result = units_parse_cores(text, (cpu_set_t *)(void *)at, err);
        break;
    case OPTION_TYPE_LIST:
        if (array_push((struct option_list *)(void *)at, text) < 0)
            result = error_set(err, ERROR_FAILED, "out of memory for its values");
        break;
    case OPTION_TYPE_END:
        break;
    }
    return result < 0 ? error_prefix(err, "--%s", option->name) : 0;
}

static const struct option_spec *option_find(const struct option_spec *options, const char *name,
                                             size_t name_bytes)
{
    for (; options->name; options++) {
        if (name_bytes == 1 && options->letter == name[0])
            return options;
        if (strlen(options->name) == name_bytes && strncmp(options->name, name, name_bytes) == 0)
            return options;
    }
    return NULL;
}

// What is said here for what another program calls so; NULL: no other is known to.
static const char *said_here(const struct command_usage *usage, const char *word)
{
    char typed[64];
    snprintf(typed, sizeof typed, " %.*s ", (int)strcspn(word, "="), word);
    for (const struct option_elsewhere *e = usage->elsewhere; e && e->names; e++)
        if (strstr(e->names, typed))
            return e->here;
    return NULL;
}

static int refuse_unknown(const struct command_usage *usage, const char *word, struct error *err)
{
    const char *names[OPTIONS_MAX];
    char typed[64];
    size_t count = 0;
    const char *name = word + strspn(word, "-");
    snprintf(typed, sizeof typed, "%.*s", (int)strcspn(name, "="), name);
    for (const struct option_spec *o = usage->options; o->name && count < OPTIONS_MAX; o++)
        names[count++] = o->name;
    const char *here = said_here(usage, word);
    if (here)
        return error_set(err, ERROR_INPUT, "%s: unknown option; what others call so is %s", word,
                         here);
    const char *near = word[1] == '-' ? suggestion_nearest(typed, names, count) : NULL;
    if (near)
        return error_set(err, ERROR_INPUT, "%s: unknown option; did you mean `--%s`?", word, near);
    return error_set(err, ERROR_INPUT, "%s: unknown option; see taillight %s --help", word,
                     usage->name);
}

int options_parse(const struct command_usage *usage, int argc, char **argv, void *values,
                  int *positional, bool *help, struct error *err)
{
    int kept = 1;
    *help = false;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (strcmp(word, "--") == 0) {
            while (++i < argc)
                argv[kept++] = argv[i];
            break;
        }
        if (word[0] != '-' || word[1] == '\0') {
            argv[kept++] = argv[i];
            continue;
        }
        bool is_long = word[1] == '-';
        const char *name = word + (is_long ? 2 : 1);
        size_t name_bytes = strcspn(name, "=");
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            print_help(usage);
            *help = true;
            return 0;
        }
        const struct option_spec *option = NULL;
        if (is_long ? name_bytes > 1 : name_bytes == 1)
            option = option_find(usage->options, name, name_bytes);
        if (!option)
            return refuse_unknown(usage, word, err);
        const char *text = name[name_bytes] == '=' ? name + name_bytes + 1 : NULL;
        if (option->type == OPTION_TYPE_FLAG) {
            if (text)
                return error_set(err, ERROR_INPUT, "--%s takes no value", option->name);
        } else if (!text) {
            if (i + 1 >= argc)
                return error_set(err, ERROR_INPUT, "--%s needs a value: %s", option->name,
                                 option->argument);
            text = argv[++i];
        }
        int result = option_store(option, text, values, err);
        if (result < 0)
            return result;
    }
    *positional = kept - 1;
    return 0;
}
