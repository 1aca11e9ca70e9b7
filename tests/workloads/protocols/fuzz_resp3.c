// SPDX-License-Identifier: MIT
//
// RESP3 as a server may write it (the protocol's specification): the input says which values, how
// deep, with what attributes and pushes in front; each reply must come out as one, of the kind of
// its outermost value, however it is split. What is no RESP3 is fuzz_protocols'.
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/protocols/protocols.h"
#include "workloads/protocols/reply_parser.h"

enum { ROOM = 1 << 16, REPLIES = 64, DEEPEST = 6 };

struct script {
    const uint8_t *at, *end;
    size_t used;
    char out[ROOM];
};

static unsigned next(struct script *script)
{
    return script->at < script->end ? *script->at++ : 0;
}

// What does not fit is left out, and the script ends.
__attribute__((format(printf, 2, 3))) static void say(struct script *script, const char *format,
                                                      ...)
{
    va_list arguments;
    va_start(arguments, format);
    script->used +=
        (size_t)vsnprintf(script->out + script->used, ROOM - script->used, format, arguments);
    va_end(arguments);
}

static enum reply_kind value_say(struct script *script, unsigned depth);

static void values_say(struct script *script, unsigned count, unsigned depth)
{
    for (unsigned i = 0; i < count; i++)
        value_say(script, depth);
}

static enum reply_kind aggregate_say(struct script *script, char type, unsigned depth)
{
    unsigned count = depth < DEEPEST ? next(script) % 4 : 0;
    say(script, "%c%u\r\n", type, count);
    values_say(script, type == '%' ? 2 * count : count, depth + 1);
    return count ? REPLY_VALUE : REPLY_MISS;
}

static enum reply_kind bulk_say(struct script *script, char type)
{
    static const char bytes[] = "a\r\n$5\r\n*1\r\n-+:_,#(!=%~>|\0\xff"
                                "0123456789";
    unsigned count = next(script) % sizeof bytes;
    say(script, "%c%u\r\n", type, count);
    memcpy(script->out + script->used, bytes, count);
    script->used += count;
    say(script, "\r\n");
    return type == '!' ? REPLY_CLIENT_ERROR : REPLY_VALUE;
}

// One value; attributes may stand in front. Returns the kind of reply it makes.
static enum reply_kind value_say(struct script *script, unsigned depth)
{
    static const struct {
        const char *text;
        enum reply_kind kind;
    } simple[] = {
        {"+OK", REPLY_STORED},
        {"+", REPLY_STORED},
        {"-ERR no", REPLY_CLIENT_ERROR},
        {"-OOM no", REPLY_SERVER_ERROR},
        {":0", REPLY_STORED},
        {":-12", REPLY_STORED},
        {"(349285739485739487539485739485739485", REPLY_VALUE},
        {",1.5e-7", REPLY_VALUE},
        {",inf", REPLY_VALUE},
        {"#t", REPLY_VALUE},
        {"_", REPLY_MISS},
        {"$-1", REPLY_MISS},
        {"*-1", REPLY_MISS},
    };
    enum { SIMPLE = sizeof simple / sizeof *simple };
    if (script->used > ROOM - 1024)
        script->at = script->end; // only short values from here
    unsigned what = next(script);
    if (what >= 224 && depth < DEEPEST) {
        say(script, "|1\r\n");
        values_say(script, 2, depth + 1);
        what = next(script) % 224;
    }
    what %= SIMPLE + 6;
    if (what < SIMPLE) {
        say(script, "%s\r\n", simple[what].text);
        return simple[what].kind;
    }
    if (what < SIMPLE + 3)
        return bulk_say(script, "$!="[what - SIMPLE]);
    return aggregate_say(script, "*%~"[what - SIMPLE - 3], depth);
}

static void pushes_say(struct script *script)
{
    for (unsigned pushes = next(script); pushes >= 128 && script->used < ROOM / 2; pushes /= 2) {
        unsigned count = 1 + next(script) % 3;
        say(script, ">%u\r\n", count);
        values_say(script, count, 1);
    }
}

// Feeds all of it in pieces of that size, and compares what comes out.
static void replies_check(const struct script *script, size_t piece, const enum reply_kind *kinds,
                          size_t count)
{
    struct reply_parser parser = {0};
    struct reply replies[REPLIES];
    size_t at = 0, total = 0;
    while (at < script->used) {
        size_t found = 0, left = script->used - at;
        at += reply_parse(&redis_resp3_protocol, &parser, script->out + at,
                          left < piece ? left : piece, replies + total, REPLIES - total, &found);
        total += found;
    }
    if (total != count)
        abort();
    for (size_t i = 0; i < count; i++)
        if (replies[i].kind != kinds[i])
            abort();
    if (count && replies[count - 1].end != script->used)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct script script;
    enum reply_kind kinds[REPLIES];
    size_t count = 0;
    script.at = data;
    script.end = data + size;
    script.used = 0;
    size_t piece = 1 + next(&script);
    say(&script, "%%1\r\n$5\r\nproto\r\n:3\r\n"); // HELLO's
    while (script.at < script.end && count < REPLIES - 1 && script.used < ROOM / 2) {
        pushes_say(&script);
        kinds[count++] = value_say(&script, 0);
    }
    replies_check(&script, script.used, kinds, count);
    replies_check(&script, piece, kinds, count);
    return 0;
}
