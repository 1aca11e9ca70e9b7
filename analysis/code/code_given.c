// SPDX-License-Identifier: MIT
//
// Code given by hand: --page 0xADDRESS=FILE and --elf FILE[@0xBASE].
#include "analysis/code/code_given.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool parse_hex(const char *text, const char *end, uint64_t *out)
{
    char *stopped;
    if (end - text < 3 || text[0] != '0' || (text[1] | 32) != 'x')
        return false;
    errno = 0;
    *out = strtoull(text, &stopped, 16);
    return errno == 0 && stopped == end;
}

int code_given_parse_page(const char *text, struct code_given *out, struct error *err)
{
    *out = (struct code_given){.raw = true, .has_address = true};
    const char *equals = strchr(text, '=');
    if (!equals || !equals[1] || !parse_hex(text, equals, &out->address))
        return error_set(err, ERROR_INPUT,
                         "--page %s: expected 0xADDRESS=FILE, as in 0x7f0012340000=code.bin", text);
    out->path = strdup(equals + 1);
    return out->path ? 0 : error_set(err, ERROR_FAILED, "out of memory");
}

int code_given_parse_elf(const char *text, struct code_given *out, struct error *err)
{
    *out = (struct code_given){0};
    const char *at = strrchr(text, '@');
    if (at && parse_hex(at + 1, text + strlen(text), &out->address))
        out->has_address = true;
    else if (at && strncmp(at, "@0x", 3) == 0)
        return error_set(err, ERROR_INPUT,
                         "--elf %s: %s is no address; expected FILE or FILE@0xBASE", text, at + 1);
    size_t length = out->has_address ? (size_t)(at - text) : strlen(text);
    if (!length)
        return error_set(err, ERROR_INPUT, "--elf %s: expected FILE or FILE@0xBASE", text);
    out->path = strndup(text, length);
    return out->path ? 0 : error_set(err, ERROR_FAILED, "out of memory");
}

void code_given_free(struct code_given *given)
{
    free((char *)(uintptr_t)given->path);
    given->path = NULL;
}

int code_add_page(struct code_finder *finder, struct code_section_array *sections,
                  const struct code_given *given, struct error *err)
{
    struct stat status;
    if (stat(given->path, &status) < 0)
        return error_set_errno(err, ERROR_INPUT, "--page %s", given->path);
    if (!S_ISREG(status.st_mode) || status.st_size == 0)
        return error_set(err, ERROR_INPUT, "--page %s: not a file with bytes in it", given->path);
    struct elf_facts facts = {.file_bytes = (uint64_t)status.st_size};
    uint32_t file = code_add_file(finder, given->path, given->path, CODE_RAW,
                                  given->address >= code_kernel_begins, true, &facts);
    if (file == CODE_NONE)
        return error_set(err, ERROR_FAILED, "out of memory");
    struct code_section section = {.address = given->address,
                                   .bytes = (uint64_t)status.st_size,
                                   .elf_address = given->address,
                                   .file = file};
    if (code_add_section(sections, section) < 0)
        return error_set(err, ERROR_FAILED, "out of memory");
    return 0;
}

int code_add_elf(struct code_finder *finder, struct code_section_array *sections,
                 const struct code_given *given, struct error *err)
{
    enum { PAGE_MASK = 4095 };
    struct elf_facts facts;
    const char *why = "";
    bool missing;
    if (elf_facts_read(given->path, &facts, &why, &missing) < 0)
        return error_set(err, ERROR_INPUT, "--elf %s: %s", given->path, why);
    uint64_t lowest = UINT64_MAX;
    bool any = false;
    for (size_t i = 0; i < facts.loads.count; i++) {
        if (facts.loads.items[i].address < lowest)
            lowest = facts.loads.items[i].address & ~(uint64_t)PAGE_MASK;
        any = any || facts.loads.items[i].executable;
    }
    if (!any || !facts.has_code) {
        elf_facts_free(&facts);
        return error_set(err, ERROR_INPUT, "--elf %s: loads no code", given->path);
    }
    bool core = facts.type == ET_CORE;
    uint64_t moved_by = given->has_address ? given->address - lowest : 0;
    uint32_t file = code_add_file(finder, given->path, given->path, core ? CODE_CORE : CODE_ELF,
                                  lowest + moved_by >= code_kernel_begins, true, &facts);
    if (file == CODE_NONE || code_add_loads(finder, sections, file, moved_by, !core) < 0)
        return error_set(err, ERROR_FAILED, "out of memory");
    return 0;
}
