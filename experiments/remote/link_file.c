// SPDX-License-Identifier: MIT
#include "experiments/remote/link_file.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/input_file.h"
#include "base/link.h"
#include "base/units.h"

static int add_option(json_t *words, const char *option)
{
    return json_array_append_new(words, json_string("-o")) |
           json_array_append_new(words, json_string(option));
}

static int silence_ms(const struct experiment_host *plan)
{
    return plan->silence_ns ? (int)(plan->silence_ns / 1000000) : LINK_SILENCE_MS;
}

// ssh takes the first of options that are given twice. So first those that must hold, then the
// user's, then ours that are only better than ssh's own defaults.
static json_t *ssh_words(const struct experiment_host *plan, const char *control)
{
    static const char *const must[] = {
        "BatchMode=yes",   "ControlPersist=no", "RequestTTY=no",      "ClearAllForwardings=yes",
        "ForwardAgent=no", "ForwardX11=no",     "RemoteCommand=none", "PermitLocalCommand=no"};
    // ssh asks twice within the time that the link may be silent: of 5 s, each 2 s.
    const int silence_s = silence_ms(plan) / 1000, connect_s = silence_s > 8 ? silence_s : 8;
    char path[200], connect[40], alive[40];
    snprintf(connect, sizeof connect, "ConnectTimeout=%d", connect_s);
    snprintf(alive, sizeof alive, "ServerAliveInterval=%d", silence_s < 5 ? 1 : silence_s * 2 / 5);
    const char *const better[] = {connect, alive, "ServerAliveCountMax=2"};
    json_t *words = json_pack("[s]", "ssh");
    int failed = 0;
    snprintf(path, sizeof path, "ControlPath=%s", control);
    if (plan->ssh_config)
        failed |= json_array_append_new(words, json_string("-F")) |
                  json_array_append_new(words, json_string(plan->ssh_config));
    failed |= add_option(words, path);
    for (size_t i = 0; i < sizeof must / sizeof *must; i++)
        failed |= add_option(words, must[i]);
    for (size_t i = 0; i + 1 < plan->ssh_options.count; i++)
        failed |= add_option(words, plan->ssh_options.items[i]);
    for (size_t i = 0; i < sizeof better / sizeof *better; i++)
        failed |= add_option(words, better[i]);
    if (failed == 0)
        return words;
    json_decref(words);
    return NULL;
}

json_t *link_file_make(const struct experiment_host *plan, const char *control)
{
    char cores[1024];
    units_format_cores(&plan->cores, cores, sizeof cores);
    return json_pack("{s:s, s:s, s:o, s:s, s:s, s:i}", "host", plan->name, "address", plan->address,
                     "ssh", ssh_words(plan, control), "base", plan->directory, "server_cores",
                     cores, "silence_ms", silence_ms(plan));
}

int link_file_load(const char *path, struct link_file *link, struct error *err)
{
    json_error_t where;
    const json_t *ssh;
    *link = (struct link_file){.document = input_json(path, &where), .silence_ms = LINK_SILENCE_MS};
    if (!link->document)
        return error_set(err, ERROR_INPUT, "%s cannot be read: %s", path, where.text);
    if (json_unpack_ex(link->document, &where, 0, "{s:s, s:s, s:o, s:s, s?s, s:s, s?i}", "host",
                       &link->host, "address", &link->address, "ssh", &ssh, "base", &link->base,
                       "directory", &link->directory, "server_cores", &link->server_cores,
                       "silence_ms", &link->silence_ms) < 0 ||
        json_array_size(ssh) + 16 > LINK_WORDS_MAX)
        return error_set(err, ERROR_INPUT, "%s does not say how a host is reached: %s", path,
                         where.text);
    return 0;
}

void link_file_free(struct link_file *link)
{
    json_decref(link->document);
    *link = (struct link_file){.document = NULL};
}

int link_file_words(const struct link_file *link, bool first, const char *command,
                    const char *words[LINK_WORDS_MAX], struct error *err)
{
    const json_t *ssh = json_object_get(link->document, "ssh");
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(ssh); i++) {
        words[n] = json_string_value(json_array_get(ssh, i));
        if (!words[n++])
            return error_set(err, ERROR_INPUT, "a word of ssh's command line is no text");
    }
    words[n++] = "-o";
    words[n++] = first ? "ControlMaster=yes" : "ControlMaster=no";
    words[n++] = "--";
    words[n++] = link->address;
    words[n++] = command;
    words[n] = NULL;
    return 0;
}

bool link_file_directory_is_plain(const char *base, const char *directory)
{
    size_t length = strlen(base);
    if (strncmp(directory, base, length) != 0 ||
        strncmp(directory + length, "/taillight-", 11) != 0 || strlen(directory) > 250)
        return false;
    for (const char *at = directory + length + 1; *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '-')
            return false;
    return true;
}

bool link_file_address_is_plain(const char *address)
{
    if (!*address || *address == '-' || strlen(address) > 250)
        return false;
    for (; *address; address++)
        if (!isalnum((unsigned char)*address) && !strchr("@.:-_%[]", *address))
            return false;
    return true;
}

bool link_file_base_is_plain(const char *base)
{
    if (*base != '/' || strlen(base) > 200)
        return false;
    for (; *base; base++)
        if (!isalnum((unsigned char)*base) && !strchr("/._-", *base))
            return false;
    return true;
}
