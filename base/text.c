// SPDX-License-Identifier: MIT
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void text_append(char *text, size_t bytes, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, bytes - used, format, args);
    va_end(args);
}

char *text_percent(double fraction, char out[TEXT_NUMBER_BYTES])
{
    const double percent = 100 * fraction;
    const int decimals = fabs(percent) < 9.95 ? 1 : 0;
    snprintf(out, TEXT_NUMBER_BYTES, "%+.*f", decimals, units_round(percent, decimals));
    return out;
}

int text_whole_percent(double part, double whole)
{
    const double value = 100 * part / whole;
    return value >= 99.95 ? 100 : value > 0 ? (int)fmax(1, fmin(99, round(value))) : 0;
}

const char *text_share(double part, double whole, char out[32])
{
    if (!(whole > 0) || !isfinite(part))
        return "-";
    double value = 100 * part / whole;
    // Nearly all is not all, and hardly any is not none.
    if (value > 99.99 && value < 100)
        return "> 99.99 %";
    if (value > 0 && value < 0.01)
        return "< 0.01 %";
    bool plain_number = value == 0 || (value >= 100 && value < 100.01);
    const int decimals = plain_number ? 0 : value > 99.9 || value < 9.995 ? 2 : 1;
    snprintf(out, 32, "%.*f %%", decimals, units_round(value, decimals));
    return out;
}

char *text_signed_ns(double ns, char out[TEXT_NUMBER_BYTES])
{
    out[0] = ns < 0 ? '-' : '+';
    units_format_ns(fabs(ns), out + 1, TEXT_NUMBER_BYTES - 1);
    return out;
}

char *text_instant(double ns, char out[TEXT_NUMBER_BYTES])
{
    const double seconds = units_round(ns / 1e9, 3);
    snprintf(out, TEXT_NUMBER_BYTES, "%.*f s", seconds == round(seconds) ? 0 : 3, seconds);
    return out;
}

enum { REPLACEMENT = 0xfffd };

// Decodes one character of UTF-8 (RFC 3629: no overlong forms, no surrogates). Returns its bytes,
// or 0 where the bytes are not UTF-8. text is NUL-terminated, which no continuation byte matches.
static size_t decode_utf8(const unsigned char *text, uint32_t *out)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (text[0] < 0x80) {
        *out = text[0];
        return 1;
    }
    size_t bytes = text[0] >> 5 == 6 ? 2 : text[0] >> 4 == 14 ? 3 : text[0] >> 3 == 30 ? 4 : 0;
    if (bytes == 0)
        return 0;
    uint32_t code = text[0] & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if (text[i] >> 6 != 2)
            return 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    if (code < smallest[bytes] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    *out = code;
    return bytes;
}

static size_t encode_utf8(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t bytes = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = bytes - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)((0xf00u >> bytes & 0xf0) | code);
    return bytes;
}

// The character that is shown instead.
static uint32_t character_visible(uint32_t code)
{
    if (code < 0x20)
        return 0x2400 + code;
    if (code == 0x7f)
        return 0x2421;
    bool hidden_control = (code >= 0x80 && code < 0xa0) || (code >= 0x200b && code <= 0x200f) ||
                          (code >= 0x2028 && code <= 0x202e) ||
                          (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
    return hidden_control ? REPLACEMENT : code;
}

char *text_clean(const char *text, bool ascii, char *out, size_t out_bytes)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t used = 0;
    while (*at) {
        uint32_t code;
        size_t taken = decode_utf8(at, &code);
        code = taken ? character_visible(code) : REPLACEMENT;
        at += taken ? taken : 1;
        if (ascii && code >= 0x7f)
            code = '?';
        char encoded[4];
        size_t bytes = encode_utf8(code, encoded);
        if (used + bytes >= out_bytes)
            break;
        memcpy(out + used, encoded, bytes);
        used += bytes;
    }
    out[used] = '\0';
    return out;
}

int text_columns(const char *text)
{
    int count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text >> 6) != 2;
    return count;
}

int text_width(FILE *stream)
{
    enum { LEAST = 80, MOST = 100 };
    struct winsize size;
    const int fd = fileno(stream);
    if (fd < 0 || !isatty(fd))
        return MOST;
    const int columns = ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : LEAST;
    return columns < LEAST ? LEAST : columns > MOST ? MOST : columns;
}

// Whether a word begins with what the number before it counts, as in "15 %," and "1.20 ms)".
static bool is_unit(const char *word)
{
    static const char *const units[] = {"%",   "ns",  "us",  "ms", "s",   "min", "h",   "B",
                                        "KiB", "MiB", "GiB", "Hz", "kHz", "MHz", "GHz", "ppm"};
    const size_t length = strcspn(word, " ,.;:)]/");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i]) == length && memcmp(units[i], word, length) == 0)
            return true;
    return false;
}

// How long what no line's end may part is: a word, or a number and its unit.
static size_t piece_length(const char *text)
{
    const size_t length = strcspn(text, " ");
    if (length == 0 || text[length - 1] < '0' || text[length - 1] > '9' || text[length] != ' ' ||
        !is_unit(text + length + 1))
        return length;
    return length + 1 + strcspn(text + length + 1, " ");
}

void text_wrap(FILE *out, const char *text, int indent, int width)
{
    int at = indent;
    while (*text) {
        size_t length = piece_length(text);
        char word[1024];
        snprintf(word, sizeof word, "%.*s", (int)(length < 1000 ? length : 1000), text);
        if (at > indent && at + 1 + text_columns(word) > width) {
            fprintf(out, "\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            fputc(' ', out);
            at++;
        }
        fputs(word, out);
        at += text_columns(word);
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

char *text_count(uint64_t count, char out[32])
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, count);
    char *at = out;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *at++ = ',';
        *at++ = digits[i];
    }
    *at = '\0';
    return out;
}

char *text_rate(double rate, char out[TEXT_NUMBER_BYTES])
{
    // Beyond that a double has no whole numbers any more, and a rate is no rate.
    if (rate < 100 || !(rate < 9e15))
        snprintf(out, TEXT_NUMBER_BYTES, "%.3g", rate);
    else
        text_count((uint64_t)llround(rate), out);
    return out;
}
