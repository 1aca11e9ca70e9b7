// SPDX-License-Identifier: MIT
//
// Command-line options as a table bound to a struct. One table makes the parsing, the --help text
// and the options section of the man page.
//
//     static const struct option_spec options[] = {
//         OPTION_COUNT("connections", 'c', "N", struct load_options, connections, "TCP
//         connections"), OPTION_FLAG("json", 0, struct load_options, json, "print one JSON document
//         on stdout"), OPTION_END,
//     };
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"

enum option_type {
    OPTION_TYPE_END,
    OPTION_TYPE_FLAG,     // bool, set to true
    OPTION_TYPE_STRING,   // const char *, points into argv
    OPTION_TYPE_COUNT,    // uint64_t, "20k"
    OPTION_TYPE_NUMBER,   // double, "20k"
    OPTION_TYPE_SHARE,    // double, "5%"
    OPTION_TYPE_DURATION, // uint64_t nanoseconds, "10s"
    OPTION_TYPE_PERIOD,   // a duration of which 0, the value of one not given, is none
    OPTION_TYPE_BYTES,    // uint64_t, "256MiB"
    OPTION_TYPE_CORES,    // cpu_set_t, "0-2,5"
    OPTION_TYPE_LIST,     // struct option_list, one item for each time the option is given
};

// The items point into argv; the caller frees the array (array_free), also after an error.
struct option_list ARRAY_OF(const char *);

struct option_spec {
    const char *name; // long name, without the dashes
    char letter;      // short name; 0: none
    enum option_type type;
    size_t offset;        // offset of the member in the struct passed to options_parse
    const char *argument; // how --help names the value; NULL for a flag
    const char *help;     // what it does, wrapped where --help is printed
};

#define OPTION_(kind, name, letter, argument, type, member, help)                                  \
    {                                                                                              \
        name, letter, OPTION_TYPE_##kind, offsetof(type, member), argument, help                   \
    }
#define OPTION_FLAG(name, letter, type, member, help)                                              \
    OPTION_(FLAG, name, letter, NULL, type, member, help)
#define OPTION_STRING(name, letter, argument, type, member, help)                                  \
    OPTION_(STRING, name, letter, argument, type, member, help)
#define OPTION_COUNT(name, letter, argument, type, member, help)                                   \
    OPTION_(COUNT, name, letter, argument, type, member, help)
#define OPTION_NUMBER(name, letter, argument, type, member, help)                                  \
    OPTION_(NUMBER, name, letter, argument, type, member, help)
#define OPTION_SHARE(name, letter, argument, type, member, help)                                   \
    OPTION_(SHARE, name, letter, argument, type, member, help)
#define OPTION_DURATION(name, letter, argument, type, member, help)                                \
    OPTION_(DURATION, name, letter, argument, type, member, help)
#define OPTION_PERIOD(name, letter, argument, type, member, help)                                  \
    OPTION_(PERIOD, name, letter, argument, type, member, help)
#define OPTION_BYTES(name, letter, argument, type, member, help)                                   \
    OPTION_(BYTES, name, letter, argument, type, member, help)
#define OPTION_CORES(name, letter, argument, type, member, help)                                   \
    OPTION_(CORES, name, letter, argument, type, member, help)
#define OPTION_LIST(name, letter, argument, type, member, help)                                    \
    OPTION_(LIST, name, letter, argument, type, member, help)
#define OPTION_END                                                                                 \
    {                                                                                              \
        NULL, 0, OPTION_TYPE_END, 0, NULL, NULL                                                    \
    }

// What another program of the kind calls something, and what to say here instead.
struct option_elsewhere {
    const char *names; // between blanks, with their dashes: " --pipeline -P "; NULL ends a table
    const char *here;  // "--depth N"
};

struct command_usage {
    const char *name;      // "load"
    const char *arguments; // "--server HOST:PORT [options]"
    const char *summary;   // a sentence
    const char *details;   // sentences, wrapped where --help is printed; "\n" ends a line; or NULL
    const struct option_spec *options;
    const struct option_elsewhere *elsewhere; // for who types an option of another one; or NULL
};

// Parses argv[1..argc) into *values. Options may stand before, between and after positional
// arguments; "--" ends them; "--name=value" and "--name value" are both taken. Positional
// arguments are moved to the front of argv[1..] and their number stored in *positional.
// `--help` prints to stdout and sets *help; the caller then returns 0.
// Returns 0 or -ERROR_INPUT; the text names the option and what it takes.
int options_parse(const struct command_usage *usage, int argc, char **argv, void *values,
                  int *positional, bool *help, struct error *err);

#endif
