// SPDX-License-Identifier: MIT
#include "profiler/capsule/hop_spec.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *hop_direction_name(enum hop_direction direction)
{
    return direction == HOP_INGRESS ? "ingress" : "egress";
}

const char *hop_role_name(enum hop_role role)
{
    static const char *const names[] = {
        [HOP_LOOKS] = "looks",
        [HOP_BEGINS] = "begins",
        [HOP_CARRIES] = "carries",
        [HOP_ENDS] = "ends",
    };
    return names[role];
}

// The kernel refuses '/' and white space in names of interfaces (dev_valid_name()); what cannot be
// printed would only confuse whoever reads the table.
static bool is_interface(const char *name, size_t bytes)
{
    if (bytes == 0 || bytes >= HOP_INTERFACE_BYTES)
        return false;
    if (name[0] == '.' && (bytes == 1 || (bytes == 2 && name[1] == '.')))
        return false;
    for (size_t i = 0; i < bytes; i++)
        if (name[i] <= ' ' || name[i] > '~' || name[i] == '/')
            return false;
    return true;
}

// Writes the path of the namespace's file, whose name ends before a `=`. False: it is none, or too
// long, or nothing follows the `=`.
static bool namespace_path(const char *text, char out[HOP_NAMESPACE_BYTES])
{
    int bytes = (int)strcspn(text, "=");
    const char *form = "/run/netns/%.*s";
    for (const char *at = text; *at; at++)
        if (*at <= ' ' || *at > '~')
            return false;
    if (bytes == 0 || strlen(text + bytes) >= HOP_NAMESPACE_BYTES ||
        strncmp(text, ".", (size_t)bytes) == 0 || strncmp(text, "..", (size_t)bytes) == 0 ||
        strcmp(text + bytes, "=") == 0)
        return false;
    if ((int)strspn(text, "0123456789") == bytes)
        form = "/proc/%.*s/ns/net";
    else if (text[0] == '/')
        form = "%.*s";
    else if (memchr(text, '/', (size_t)bytes))
        return false;
    int length = snprintf(out, HOP_NAMESPACE_BYTES, form, bytes, text);
    return length > 0 && length < HOP_NAMESPACE_BYTES;
}

int hop_spec_parse(const char *text, struct hop_spec out[2], size_t *count, struct error *err)
{
    size_t bytes = strcspn(text, ":@");
    const char *at = text + bytes;
    bool ingress = true, egress = true;
    struct hop_spec spec = {.namespace = ""};
    *count = 0;
    if (!is_interface(text, bytes))
        return error_set(err, ERROR_INPUT,
                         "--hop: \"%s\" does not begin with the name of an interface; as in "
                         "eth0, eth0:ingress or veth7:egress@client",
                         text);
    memcpy(spec.interface, text, bytes);
    if (*at == ':') {
        size_t word = strcspn(++at, "@");
        ingress = word == strlen("ingress") && strncmp(at, "ingress", word) == 0;
        egress = word == strlen("egress") && strncmp(at, "egress", word) == 0;
        if (!ingress && !egress)
            return error_set(err, ERROR_INPUT, "--hop: \"%s\": \"%.*s\" is none of ingress, egress",
                             text, (int)word, at);
        at += word;
    }
    const char *space = *at == '@' ? at + 1 : NULL;
    if (space && !namespace_path(space, spec.namespace))
        return error_set(err, ERROR_INPUT,
                         "--hop: \"%s\": \"%s\" is no network namespace: the name of one, a "
                         "process in it, or a path",
                         text, space);
    const char *named = space && strchr(space, '=') ? strchr(space, '=') + 1 : space;
    for (int i = 0; i < 2; i++) {
        spec.direction = i == 0 ? HOP_INGRESS : HOP_EGRESS;
        if (!(i == 0 ? ingress : egress))
            continue;
        snprintf(spec.name, sizeof spec.name, "%s:%s%s%s", spec.interface,
                 hop_direction_name(spec.direction), named ? "@" : "", named ? named : "");
        out[(*count)++] = spec;
    }
    return 0;
}

bool hop_specs_share(const struct hop_spec *a, const struct hop_spec *b)
{
    return a->machine == b->machine && strcmp(a->interface, b->interface) == 0 &&
           strcmp(a->namespace, b->namespace) == 0;
}

int hop_specs_carry(struct hop_spec *specs, size_t count, struct error *err)
{
    if (count < 2 || hop_specs_share(&specs[0], &specs[count - 1]))
        return error_set(err, ERROR_INPUT,
                         "--carry: packets are carried from the first --hop to the last, which are "
                         "to be two interfaces");
    bool both_first = hop_specs_share(&specs[0], &specs[1]);
    bool both_last = hop_specs_share(&specs[count - 1], &specs[count - 2]);
    for (size_t i = 0; i < count; i++) {
        bool first = i == 0 || (i == 1 && both_first);
        bool last = i == count - 1 || (i == count - 2 && both_last);
        bool out = specs[i].direction == HOP_EGRESS;
        if (first)
            specs[i].role = !both_first || out ? HOP_BEGINS : HOP_ENDS;
        else if (last)
            specs[i].role = both_last && out ? HOP_BEGINS : HOP_ENDS;
        else
            specs[i].role = HOP_CARRIES;
    }
    return 0;
}
