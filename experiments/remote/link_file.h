// SPDX-License-Identifier: MIT
//
// How a host behind ssh is reached, as a file in a private directory of the run. Whatever starts a
// process there (the run, a fleet of load agents) passes this file to `taillight link`.
//
//   {"host": "server",            its name in the experiment
//    "address": "user@host",      what ssh is given
//    "ssh": ["ssh", "-o", ...],   its command line up to the address
//    "base": "/tmp",              where a directory for the run is made there
//    "directory": "/tmp/taillight-...",  that directory, once it is there
//    "silence_ms": 5000,          after so long without a word the link is down; or not given
//    "server_cores": "0-1"}       which of its cores our own work keeps off, if it can
#ifndef EXPERIMENTS_REMOTE_LINK_FILE_H
#define EXPERIMENTS_REMOTE_LINK_FILE_H

#include <jansson.h>

#include "base/error.h"
#include "experiments/plan/experiment.h"

enum { LINK_WORDS_MAX = 96 };

struct link_file {
    json_t *document; // owns the text
    const char *host, *address, *base, *server_cores;
    const char *directory; // NULL: not there yet
    int silence_ms;
};

// The document for a host; `control` is the path of the socket that its connections share. The
// caller owns it; NULL: out of memory.
json_t *link_file_make(const struct experiment_host *plan, const char *control);

// Reads and checks one. link_file_free frees, also after an error.
int link_file_load(const char *path, struct link_file *link, struct error *err);
void link_file_free(struct link_file *link);

// The command line of ssh that runs `command` there, NULL-terminated; the words are the link's and
// the caller's. first: the connection that others share.
int link_file_words(const struct link_file *link, bool first, const char *command,
                    const char *words[LINK_WORDS_MAX], struct error *err);

// Whether ssh takes a text as its destination, and not as an option or as two words.
bool link_file_address_is_plain(const char *address);

// Whether a path for that directory may stand in a shell's command without quotes.
bool link_file_base_is_plain(const char *base);

// Whether a directory that the other end reports may stand in a shell's command: absolute, made by
// the bootstrap below `base`, and of plain characters.
bool link_file_directory_is_plain(const char *base, const char *directory);

#endif
