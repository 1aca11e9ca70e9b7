// SPDX-License-Identifier: MIT
#include "profiler/capsule/packet_words.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_BYTES = 64 };

// The text that is left, and the word that was read last.
struct words {
    const char *text; // all of it, for errors
    const char *at;
    char word[WORD_BYTES];
};

// Reads the next word. False: there is none. One that is too long stays cut, and is none we know.
static bool next_word(struct words *words)
{
    static const char space[] = " \t\n";
    words->at += strspn(words->at, space);
    size_t bytes = strcspn(words->at, space);
    size_t kept = bytes < WORD_BYTES ? bytes : WORD_BYTES - 1;
    memcpy(words->word, words->at, kept);
    words->word[kept] = '\0';
    words->at += bytes;
    return bytes > 0;
}

static int take_port(struct words *words, uint16_t *port, struct error *err)
{
    char *end = words->word;
    unsigned long number = next_word(words) ? strtoul(words->word, &end, 10) : 0;
    if (number < 1 || number > UINT16_MAX || *end || words->word[0] < '0' || words->word[0] > '9')
        return error_set(err, ERROR_INPUT,
                         "--filter \"%s\": a port is a number from 1 to 65535, not \"%s\"",
                         words->text, words->word);
    if (*port)
        return error_set(err, ERROR_INPUT, "--filter \"%s\": two ports of one kind", words->text);
    *port = (uint16_t)number;
    return 0;
}

static int take_host(struct words *words, struct packet_address *host, uint8_t *has,
                     struct error *err)
{
    uint8_t bytes[16] = {[10] = 0xff, [11] = 0xff};
    if (!next_word(words) || (inet_pton(AF_INET, words->word, bytes + 12) != 1 &&
                              inet_pton(AF_INET6, words->word, bytes) != 1))
        return error_set(err, ERROR_INPUT,
                         "--filter \"%s\": a host is an IPv4 or IPv6 address, not \"%s\"",
                         words->text, words->word);
    if (*has)
        return error_set(err, ERROR_INPUT, "--filter \"%s\": two hosts of one kind", words->text);
    *has = 1;
    memcpy(host, bytes, sizeof bytes);
    return 0;
}

// port or host, after src or dst where one of these stood before.
static int take_end(struct words *words, struct packet_filter *out, struct error *err)
{
    bool source = strcmp(words->word, "src") == 0, destination = strcmp(words->word, "dst") == 0;
    if ((source || destination) && !next_word(words))
        words->word[0] = '\0';
    if (strcmp(words->word, "port") == 0)
        return take_port(words,
                         source        ? &out->source_port
                         : destination ? &out->destination_port
                                       : &out->port,
                         err);
    if (strcmp(words->word, "host") == 0)
        return source        ? take_host(words, &out->source, &out->has_source, err)
               : destination ? take_host(words, &out->destination, &out->has_destination, err)
                             : take_host(words, &out->host, &out->has_host, err);
    return error_set(err, ERROR_INPUT,
                     "--filter \"%s\": \"%s\" is not understood here; it takes ip, ip6, tcp, udp, "
                     "[src|dst] port N and [src|dst] host ADDRESS, all of which must hold",
                     words->text, words->word);
}

static int take_once(struct words *words, uint8_t *into, uint8_t value, struct error *err)
{
    if (*into)
        return error_set(err, ERROR_INPUT, "--filter \"%s\": \"%s\" and another of its kind",
                         words->text, words->word);
    *into = value;
    return 0;
}

int packet_filter_parse(const char *text, struct packet_filter *out, struct error *err)
{
    static const struct kind {
        const char *word;
        bool is_family;
        uint8_t value;
    } kinds[] = {
        {"ip", true, PACKET_IPV4},
        {"ip6", true, PACKET_IPV6},
        {"tcp", false, PACKET_TCP},
        {"udp", false, PACKET_UDP},
    };
    struct words words = {.text = text, .at = text};
    bool awaits = false; // something after "and"
    *out = (struct packet_filter){.port = 0};
    for (bool first = true; next_word(&words); first = false) {
        const struct kind *kind = NULL;
        int result;
        if (strcmp(words.word, "and") == 0 && !first && !awaits) {
            awaits = true;
            continue;
        }
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (strcmp(words.word, kinds[i].word) == 0)
                kind = &kinds[i];
        if (kind)
            result = take_once(&words, kind->is_family ? &out->family : &out->protocol, kind->value,
                               err);
        else
            result = take_end(&words, out, err);
        if (result < 0)
            return result;
        awaits = false;
    }
    return awaits ? error_set(err, ERROR_INPUT, "--filter \"%s\" ends with \"and\"", text) : 0;
}

int packet_sample_parse(const char *text, uint32_t *one_in, struct error *err)
{
    enum { MOST = 1 << 20 };
    char *end;
    const char *number = strncmp(text, "1/", 2) == 0 ? text + 2 : text;
    unsigned long value = *number >= '0' && *number <= '9' ? strtoul(number, &end, 10) : 0;
    if (value < 1 || value > MOST || *end || (number == text && value != 1))
        return error_set(err, ERROR_INPUT, "--sample: \"%s\" is not 1, or 1/N with N from 1 to %d",
                         text, MOST);
    *one_in = (uint32_t)value;
    return 0;
}

int packet_key_parse(const char *option, const char *text, uint64_t *key, struct error *err)
{
    enum { MOST_DIGITS = 16 };
    const char *digits = strncmp(text, "0x", 2) == 0 ? text + 2 : text;
    size_t count = strspn(digits, "0123456789abcdefABCDEF");
    *key = count <= MOST_DIGITS ? strtoull(digits, NULL, 16) : 0;
    if (digits[count] || *key == 0)
        return error_set(err, ERROR_INPUT,
                         "--%s: \"%s\" is not a number of up to %d hexadecimal digits, and not 0",
                         option, text, MOST_DIGITS);
    return 0;
}

uint32_t packet_sample_limit(uint32_t one_in)
{
    return PACKET_SAMPLE_ALL / one_in;
}
