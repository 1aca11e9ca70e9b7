// SPDX-License-Identifier: MIT
#include "workloads/protocols/custom_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/protocols/encode.h"

static const struct {
    const char *name;
    enum custom_piece_kind kind;
} words[] = {
    {"key", CUSTOM_KEY},
    {"value", CUSTOM_VALUE},
    {"key_size", CUSTOM_KEY_SIZE},
    {"value_size", CUSTOM_VALUE_SIZE},
    {"rest_size", CUSTOM_REST_SIZE},
    {"number", CUSTOM_NUMBER},
    {"expiry_s", CUSTOM_EXPIRY},
};
static const char words_there_are[] =
    "{key}, {value}, {value:letters}, {hex:00ff}, and {key_size}, {value_size}, {rest_size}, "
    "{rest_size-4}, {number} and {expiry_s}, in decimal or as {number:u8}, u16, u24, u32, u64, "
    "u16le ...";

// A word between braces, in the source.
struct word {
    const char *at;
    size_t bytes;
};

static bool word_is(struct word word, const char *text)
{
    return word.bytes == strlen(text) && memcmp(word.at, text, word.bytes) == 0;
}

// Appends a piece, or more bytes to the last.
static int add_bytes(struct custom_text *text, char **end, char byte, struct error *err)
{
    struct custom_piece *last = text->count ? &text->pieces[text->count - 1] : NULL;
    if (!last || last->kind != CUSTOM_BYTES) {
        if (text->count == CUSTOM_PIECES_MAX)
            return error_set(err, ERROR_INPUT, "more than %d pieces", CUSTOM_PIECES_MAX);
        last = &text->pieces[text->count++];
        *last = (struct custom_piece){.kind = CUSTOM_BYTES, .bytes = *end};
    }
    *(*end)++ = byte;
    last->count++;
    return 0;
}

static int read_hex(struct word digits, struct custom_text *text, char **end, struct error *err)
{
    if (digits.bytes == 0 || digits.bytes % 2)
        return error_set(err, ERROR_INPUT, "{hex:%.*s}: not two digits a byte", (int)digits.bytes,
                         digits.at);
    for (size_t i = 0; i < digits.bytes; i += 2) {
        int high = hex_digit(digits.at[i]), low = hex_digit(digits.at[i + 1]);
        if (high < 0 || low < 0)
            return error_set(err, ERROR_INPUT, "{hex:%.*s}: \"%.2s\" is no hexadecimal byte",
                             (int)digits.bytes, digits.at, digits.at + i);
        if (add_bytes(text, end, (char)(high << 4 | low), err) < 0)
            return -ERROR_INPUT;
    }
    return 0;
}

// "u32", "u16le". False: it is none.
static bool read_width(struct word form, struct custom_piece *piece)
{
    static const struct {
        const char *name;
        unsigned width;
    } widths[] = {{"u8", 1}, {"u16", 2}, {"u24", 3}, {"u32", 4}, {"u64", 8}};
    if (form.bytes > 3 && memcmp(form.at + form.bytes - 2, "le", 2) == 0) {
        piece->little = true;
        form.bytes -= 2;
    }
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (word_is(form, widths[i].name))
            piece->width = widths[i].width;
    return piece->width > 0;
}

// Takes "+4" or "-12" from the end of a name. False: it has too many digits, or none.
static bool take_adds(struct word *name, struct custom_piece *piece)
{
    size_t sign = 0;
    while (sign < name->bytes && name->at[sign] != '+' && name->at[sign] != '-')
        sign++;
    if (sign == name->bytes)
        return true;
    for (size_t i = sign + 1; i < name->bytes; i++) {
        if (name->at[i] < '0' || name->at[i] > '9' || piece->adds > 999)
            return false;
        piece->adds = piece->adds * 10 + (name->at[i] - '0');
    }
    piece->adds = name->at[sign] == '-' ? -piece->adds : piece->adds;
    name->bytes = sign;
    return piece->adds != 0;
}

static int read_word(struct word word, struct custom_text *text, char **end, struct error *err)
{
    struct custom_piece piece = {0};
    const char *colon = memchr(word.at, ':', word.bytes);
    struct word name = {word.at, colon ? (size_t)(colon - word.at) : word.bytes},
                form = {word.at + name.bytes + 1, colon ? word.bytes - name.bytes - 1 : 0};
    bool right = false;
    if (colon && word_is(name, "hex"))
        return read_hex(form, text, end, err);
    const bool adds_right = take_adds(&name, &piece);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (word_is(name, words[i].name)) {
            piece.kind = words[i].kind;
            right = adds_right && (!piece.adds || piece.kind == CUSTOM_REST_SIZE);
        }
    if (colon && piece.kind == CUSTOM_VALUE)
        right = piece.letters = right && word_is(form, "letters");
    else if (colon)
        right = right && piece.kind != CUSTOM_KEY && read_width(form, &piece);
    if (!right)
        return error_set(err, ERROR_INPUT, "{%.*s} is not known here; there are %s",
                         (int)(word.bytes < 60 ? word.bytes : 60), word.at, words_there_are);
    if (text->count == CUSTOM_PIECES_MAX)
        return error_set(err, ERROR_INPUT, "more than %d pieces", CUSTOM_PIECES_MAX);
    text->pieces[text->count++] = piece;
    return 0;
}

// A brace is one of ours before a letter; JSON has a quote there.
static bool begins_word(const char *at)
{
    return at[0] == '{' && at[1] >= 'a' && at[1] <= 'z';
}

static int read_pieces(struct custom_text *text, struct error *err)
{
    char *end = text->bytes;
    for (const char *at = text->source; *at; at++) {
        if (begins_word(at)) {
            size_t bytes = strcspn(at, "}");
            if (!at[bytes])
                return error_set(err, ERROR_INPUT, "\"%.60s\": a brace without its end", at);
            if (read_word((struct word){at + 1, bytes - 1}, text, &end, err) < 0)
                return -ERROR_INPUT;
            at += bytes;
        } else if (*at == '\\') {
            return error_set(
                err, ERROR_INPUT,
                "a backslash: \"\\r\\n\" is written in double quotes, and the character "
                "itself as {hex:5c}");
        } else if ((unsigned char)*at > '~') {
            return error_set(
                err, ERROR_INPUT,
                "a byte beyond ASCII, which YAML would write in another way; as a byte "
                "it is {hex:%02x}",
                (unsigned char)*at);
        } else if (add_bytes(text, &end, *at, err) < 0) {
            return -ERROR_INPUT;
        }
    }
    return 0;
}

int custom_text_read(const char *source, struct custom_text *text, struct error *err)
{
    *text = (struct custom_text){0};
    if (strlen(source) > CUSTOM_TEXT_BYTES_MAX)
        return error_set(err, ERROR_INPUT, "more than %d bytes", CUSTOM_TEXT_BYTES_MAX);
    text->source = strdup(source);
    text->bytes = malloc(strlen(source) + 1);
    if (!text->source || !text->bytes)
        return error_set(err, ERROR_FAILED, "out of memory");
    int result = read_pieces(text, err);
    if (result == 0 && text->count == 0)
        return error_set(err, ERROR_INPUT, "no bytes at all");
    return result;
}

void custom_text_free(struct custom_text *text)
{
    free(text->source);
    free(text->bytes);
    *text = (struct custom_text){0};
}

int custom_mark_read(const char *source, struct custom_mark *mark, struct error *err)
{
    struct custom_text text;
    *mark = (struct custom_mark){0};
    int result = custom_text_read(source, &text, err);
    if (result == 0 && (text.count > 1 || text.pieces[0].kind != CUSTOM_BYTES))
        result = error_set(err, ERROR_INPUT,
                           "\"%.60s\": what replies have is the same for all requests; only "
                           "{hex:00ff} may stand there",
                           source);
    if (result == 0 && text.pieces[0].count > CUSTOM_MARK_BYTES_MAX)
        result = error_set(err, ERROR_INPUT, "more than %d bytes", CUSTOM_MARK_BYTES_MAX);
    if (result == 0) {
        mark->count = (unsigned)text.pieces[0].count;
        memcpy(mark->bytes, text.pieces[0].bytes, mark->count);
    }
    // Knuth, Morris and Pratt: the longest beginning that is also an end of what has matched.
    for (unsigned i = 1, same = 0; i < mark->count; i++) {
        while (same && mark->bytes[i] != mark->bytes[same])
            same = mark->restart[same - 1];
        same += mark->bytes[i] == mark->bytes[same];
        mark->restart[i] = (uint8_t)same;
    }
    custom_text_free(&text);
    return result;
}
