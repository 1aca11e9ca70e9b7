// SPDX-License-Identifier: MIT
#include "workloads/protocols/custom.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/protocols/encode.h"
#include "workloads/protocols/reply_parser.h"
#include "base/text.h"

const char *const custom_verdict_names[CUSTOM_VERDICTS] = {
    [CUSTOM_ERROR] = "error",
    [CUSTOM_MISS] = "miss",
    [CUSTOM_STORED] = "stored",
    [CUSTOM_OK] = "ok",
};

static const enum reply_kind verdict_kinds[CUSTOM_VERDICTS] = {
    [CUSTOM_ERROR] = REPLY_SERVER_ERROR,
    [CUSTOM_MISS] = REPLY_MISS,
    [CUSTOM_STORED] = REPLY_STORED,
    [CUSTOM_OK] = REPLY_VALUE,
};

// --- what no workload describes: a line with the key, a line back ------------------------------

enum { REPLY_BYTES_USUAL = 64 << 20 };

static const struct custom_text usual_request = {
    .pieces = {{.kind = CUSTOM_KEY}, {.kind = CUSTOM_BYTES, .bytes = "\r\n", .count = 2}},
    .count = 2,
};
static const struct protocol_operation usual_operations[] = {{.name = "get", .weight = 1}};
static const struct custom_reply usual_reply = {
    .until = {.bytes = "\r\n", .count = 2},
    .most_bytes = REPLY_BYTES_USUAL,
};

// --- requests ------------------------------------------------------------------------------------

static unsigned digits_of(uint64_t number)
{
    unsigned digits = 1;
    while (number /= 10)
        digits++;
    return digits;
}

static uint64_t piece_number(const struct custom_piece *piece, const struct request *request,
                             size_t rest)
{
    return piece->kind == CUSTOM_KEY_SIZE     ? request->key_bytes
           : piece->kind == CUSTOM_VALUE_SIZE ? request->value_bytes
           : piece->kind == CUSTOM_REST_SIZE  ? rest + (uint64_t)piece->adds
           : piece->kind == CUSTOM_EXPIRY     ? request->expiry_s
                                              : request->number;
}

static size_t piece_bytes(const struct custom_piece *piece, const struct request *request,
                          size_t rest)
{
    switch (piece->kind) {
    case CUSTOM_BYTES:
        return piece->count;
    case CUSTOM_KEY:
        return request->key_bytes;
    case CUSTOM_VALUE:
        return request->value_bytes;
    default:
        return piece->width ? piece->width : digits_of(piece_number(piece, request, rest));
    }
}

static char *append_letters(char *out, const char *value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (char)('a' + (value[i] & 15));
    return out + count;
}

static char *append_number_as(char *out, const struct custom_piece *piece, uint64_t number)
{
    if (!piece->width)
        return append_number(out, number);
    for (unsigned i = 0; i < piece->width; i++, number >>= 8)
        out[piece->little ? i : piece->width - 1 - i] = (char)(number & 0xff);
    return out + piece->width;
}

static char *append_piece(char *out, const struct custom_piece *piece,
                          const struct request *request, size_t rest)
{
    switch (piece->kind) {
    case CUSTOM_BYTES:
        return append_bytes(out, piece->bytes, piece->count);
    case CUSTOM_KEY:
        return append_bytes(out, request->key, request->key_bytes);
    case CUSTOM_VALUE:
        return piece->letters ? append_letters(out, request->value, request->value_bytes)
                              : append_bytes(out, request->value, request->value_bytes);
    default:
        return append_number_as(out, piece, piece_number(piece, request, rest));
    }
}

static size_t custom_encode(const struct request *request, char *out, size_t out_bytes)
{
    const struct custom_text *text =
        request->custom ? &request->custom->requests[request->operation] : &usual_request;
    size_t rest[CUSTOM_PIECES_MAX], bytes = 0;
    for (unsigned i = text->count; i-- > 0;) {
        rest[i] = bytes;
        bytes += piece_bytes(&text->pieces[i], request, bytes);
    }
    if (bytes > out_bytes)
        return 0;
    for (unsigned i = 0; i < text->count; i++)
        out = append_piece(out, &text->pieces[i], request, rest[i]);
    return bytes;
}

static size_t request_bytes_max(size_t key_bytes, size_t value_bytes)
{
    return key_bytes + value_bytes + custom_bytes(NULL);
}

// The most bytes besides a value, with keys of that length.
static size_t text_bytes(const struct custom_text *text, size_t key_bytes)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < text->count; i++) {
        const struct custom_piece *piece = &text->pieces[i];
        bytes += piece->kind == CUSTOM_BYTES   ? piece->count
                 : piece->kind == CUSTOM_KEY   ? key_bytes
                 : piece->kind == CUSTOM_VALUE ? 0
                 : piece->width                ? piece->width
                                               : NUMBER_DIGITS_MAX;
    }
    return bytes;
}

size_t custom_bytes(const struct custom *custom)
{
    size_t most = text_bytes(&usual_request, WORKLOAD_KEY_BYTES_MAX);
    for (unsigned i = 0; custom && i < custom->request_count; i++) {
        size_t bytes = text_bytes(&custom->requests[i], WORKLOAD_KEY_BYTES_MAX);
        most = bytes > most ? bytes : most;
    }
    return most;
}

bool custom_says_expiry(const struct custom *custom, unsigned operation)
{
    const struct custom_text *text = &custom->requests[operation];
    for (unsigned i = 0; i < text->count; i++)
        if (text->pieces[i].kind == CUSTOM_EXPIRY)
            return true;
    return false;
}

// --- replies -------------------------------------------------------------------------------------

static uint64_t number_read(const struct custom_number *number, const char *head)
{
    const char *at = head + number->at;
    uint64_t value = 0;
    for (size_t i = 0; i < number->bytes; i++)
        value = value << 8 | (unsigned char)at[number->order ? number->bytes - 1 - i : i];
    return value;
}

static bool mark_matches(const struct custom_mark *mark, const char *at, size_t count)
{
    return mark->count <= count && memcmp(mark->bytes, at, mark->count) == 0;
}

// What the beginning of a whole reply says.
static enum reply_kind judge_head(const struct custom_reply *reply,
                                  const struct reply_parser *parser, size_t count)
{
    const struct custom_number *number = &reply->number;
    const char *head = parser->line;
    if (number->bytes) {
        const uint64_t bits = UINT64_MAX >> (64 - 8 * number->bytes);
        if (count < number->at + number->bytes)
            return REPLY_MALFORMED;
        const uint64_t named = number_read(number, head) + (uint64_t)number->adds;
        if ((named ^ parser->number) & bits)
            return REPLY_OUT_OF_ORDER;
    }
    const size_t at = reply->status_at < count ? (size_t)reply->status_at : count;
    for (unsigned verdict = 0; verdict < CUSTOM_VERDICTS; verdict++)
        for (unsigned i = 0; i < reply->mark_count[verdict]; i++)
            if (mark_matches(&reply->marks[verdict][i], head + at, count - at))
                return verdict_kinds[verdict];
    return reply->mark_count[CUSTOM_OK] ? REPLY_CLIENT_ERROR : REPLY_VALUE;
}

// The reply is whole; of its bytes those are no content that frame it in front and behind.
static enum reply_progress end_reply(const struct custom_reply *reply, struct reply_parser *parser,
                                     size_t front, size_t behind)
{
    const uint64_t content = parser->value_bytes - behind;
    const size_t count = content < parser->line_bytes ? (size_t)content : parser->line_bytes;
    parser->kind = (uint8_t)judge_head(reply, parser, count);
    // Its words stand behind how long it is, and whom it answers.
    const size_t words = front && reply->number.at == front ? front + reply->number.bytes : front;
    if (reply_is_fault(parser->kind) && count > words)
        reply_note_said(parser, parser->line + words, count - words);
    parser->value_bytes = content - front;
    return REPLY_ENDED;
}

// Keeps the beginning, as far as anything is looked at.
static void take_into(struct reply_parser *parser, const char *bytes, size_t count)
{
    size_t room = CUSTOM_HEAD_BYTES - parser->line_bytes, kept = count < room ? count : room;
    memcpy(parser->line + parser->line_bytes, bytes, kept);
    parser->line_bytes += (uint32_t)kept;
    parser->value_bytes += count;
}

// How many bytes there are up to the end of the mark, of which `elements` have matched; or all.
static size_t mark_find(const struct custom_mark *mark, struct reply_parser *parser,
                        const char *bytes, size_t count)
{
    size_t matched = (size_t)parser->elements, at = 0;
    while (at < count && matched < mark->count) {
        if (!matched) {
            const char *first = memchr(bytes + at, mark->bytes[0], count - at);
            at = first ? (size_t)(first - bytes) : count;
            if (!first)
                break;
        }
        while (matched && mark->bytes[matched] != bytes[at])
            matched = mark->restart[matched - 1];
        matched += mark->bytes[matched] == bytes[at++];
    }
    parser->elements = matched;
    return at;
}

static size_t take_until(const struct custom_reply *reply, struct reply_parser *parser,
                         const char *bytes, size_t count, enum reply_progress *progress)
{
    const struct custom_mark *mark = &reply->until;
    const uint64_t room = reply->most_bytes - parser->value_bytes;
    if (!parser->resync && count > room)
        count = (size_t)room;
    const size_t taken = mark_find(mark, parser, bytes, count);
    const bool whole = parser->elements == mark->count;
    if (parser->resync) { // behind a reply that was too long: up to its end
        parser->elements = whole ? 0 : parser->elements;
        parser->resync = !whole;
        return taken;
    }
    take_into(parser, bytes, taken);
    if (whole)
        *progress = end_reply(reply, parser, 0, mark->count);
    else if (parser->value_bytes == reply->most_bytes)
        *progress = reply_lose(parser, REPLY_OVERSIZED);
    return taken;
}

// The head is whole: how long is the reply?
static enum reply_progress judge_length(const struct custom_reply *reply,
                                        struct reply_parser *parser, size_t head)
{
    static const uint64_t beyond_any = (uint64_t)1 << 40;
    const uint64_t said = number_read(&reply->length, parser->line);
    const int64_t behind = (int64_t)(said < beyond_any ? said : beyond_any) + reply->length.adds;
    if (behind < 0)
        return reply_lose(parser, REPLY_MALFORMED);
    if ((uint64_t)behind + head > reply->most_bytes)
        return reply_lose(parser, REPLY_OVERSIZED);
    parser->elements = (uint64_t)behind + head;
    return behind == 0 ? end_reply(reply, parser, head, 0) : REPLY_UNDER_WAY;
}

static size_t take_by_length(const struct custom_reply *reply, struct reply_parser *parser,
                             const char *bytes, size_t count, enum reply_progress *progress)
{
    const size_t head = (size_t)(reply->length.at + reply->length.bytes);
    const uint64_t left = (parser->elements ? parser->elements : head) - parser->value_bytes;
    const size_t taken = count < left ? count : (size_t)left;
    parser->resync = false; // nothing says where the next begins
    take_into(parser, bytes, taken);
    if (taken < left)
        return taken;
    *progress =
        parser->elements ? end_reply(reply, parser, head, 0) : judge_length(reply, parser, head);
    return taken;
}

static size_t custom_take(const struct protocol *protocol, struct reply_parser *parser,
                          const char *bytes, size_t count, enum reply_progress *progress)
{
    const struct custom_reply *reply = protocol->custom ? &protocol->custom->reply : &usual_reply;
    return (reply->until.count ? take_until : take_by_length)(reply, parser, bytes, count,
                                                              progress);
}

static bool custom_answers(unsigned operation, enum reply_kind kind)
{
    (void)operation, (void)kind;
    return true;
}

const struct protocol custom_protocol = {
    .name = custom_name,
    .speaks = "what the workload describes (`custom`)",
    .replies = "by `ok`, `miss`, `stored` and `error`; one that is none of those a value, or the "
               "client's error where there is an `ok`",
    .operations = usual_operations,
    .operation_count = sizeof usual_operations / sizeof *usual_operations,
    .dataset = DATASET_NONE,
    .request_bytes_max = request_bytes_max,
    .encode = custom_encode,
    .take = custom_take,
    .answers = custom_answers,
};

// --- the whole -----------------------------------------------------------------------------------

struct custom *custom_alloc(void)
{
    struct custom *custom = calloc(1, sizeof *custom);
    if (!custom)
        return NULL;
    custom->protocol = custom_protocol;
    custom->protocol.operations = custom->operations;
    custom->protocol.operation_count = 0;
    custom->protocol.custom = custom;
    custom->reply = usual_reply;
    return custom;
}

void custom_free(struct custom *custom)
{
    for (unsigned i = 0; custom && i < custom->request_count; i++)
        custom_text_free(&custom->requests[i]);
    free(custom);
}

// The most bytes a value may have, so that each number has room for its size.
static size_t value_bytes_most(const struct custom_text *text, size_t most)
{
    for (unsigned i = 0; i < text->count; i++) {
        const struct custom_piece *piece = &text->pieces[i];
        if ((piece->kind != CUSTOM_VALUE_SIZE && piece->kind != CUSTOM_REST_SIZE) ||
            !piece->width || piece->width > 3)
            continue;
        size_t room = ((size_t)1 << piece->width * 8) - 1,
               other =
                   piece->kind == CUSTOM_REST_SIZE ? text_bytes(text, WORKLOAD_KEY_BYTES_MAX) : 0;
        room = room > other ? room - other : 0;
        most = most == 0 || room < most ? room : most;
    }
    return most;
}

static int check_pieces(const struct custom_text *text, struct error *err)
{
    unsigned values = 0;
    int64_t behind = 0; // at least
    for (unsigned i = text->count; i-- > 0;) {
        const struct custom_piece *piece = &text->pieces[i];
        values += piece->kind == CUSTOM_VALUE;
        if (piece->kind == CUSTOM_REST_SIZE && piece->width == 1)
            return error_set(err, ERROR_INPUT,
                             "{rest_size:u8} has no room for keys of %d bytes; u16 has",
                             WORKLOAD_KEY_BYTES_MAX);
        if (behind + piece->adds < 0)
            return error_set(err, ERROR_INPUT,
                             "{rest_size%d}: only %" PRId64 " bytes are sure to be behind it",
                             piece->adds, behind);
        behind += piece->kind == CUSTOM_BYTES   ? (int64_t)piece->count
                  : piece->kind == CUSTOM_KEY   ? 1
                  : piece->kind == CUSTOM_VALUE ? 0
                  : piece->width                ? piece->width
                                                : 1;
    }
    return values > 1 ? error_set(err, ERROR_INPUT, "{value} more than once") : 0;
}

// Where an operation of that name goes: get is 0 and set is 1 wherever both are.
static unsigned place_for(const struct custom *custom, const char *name)
{
    const struct protocol *protocol = &custom->protocol;
    if (strcmp(name, "get") == 0)
        return 0;
    if (strcmp(name, "set") == 0)
        return protocol_operation_find(protocol, "get") == 0;
    return custom->request_count;
}

static void make_room(struct custom *custom, unsigned place)
{
    for (unsigned i = custom->request_count++; i > place; i--) {
        custom->requests[i] = custom->requests[i - 1];
        custom->operations[i] = custom->operations[i - 1];
        memcpy(custom->names[i], custom->names[i - 1], CUSTOM_NAME_BYTES);
    }
    for (unsigned i = 0; i < custom->request_count; i++)
        custom->operations[i].name = custom->names[i];
    custom->protocol.operation_count = custom->request_count;
}

int custom_add(struct custom *custom, const char *name, const char *source, struct error *err)
{
    struct custom_text text;
    if (custom->request_count == PROTOCOL_OPERATIONS_MAX)
        return error_set(err, ERROR_INPUT, "more than %s requests",
                         TEXT_COUNT(PROTOCOL_OPERATIONS_MAX));
    int result = custom_text_read(source, &text, err);
    if (result == 0)
        result = check_pieces(&text, err);
    if (result < 0) {
        custom_text_free(&text);
        return result;
    }
    const unsigned place = place_for(custom, name);
    make_room(custom, place);
    snprintf(custom->names[place], CUSTOM_NAME_BYTES, "%s", name);
    custom->requests[place] = text;
    struct protocol_operation *operation = &custom->operations[place];
    *operation = (struct protocol_operation){.name = custom->names[place], .weight = 1};
    for (unsigned i = 0; i < text.count; i++) {
        operation->carries_value |= text.pieces[i].kind == CUSTOM_VALUE;
        operation->states_size |= text.pieces[i].kind == CUSTOM_VALUE_SIZE;
    }
    custom->protocol.value_bytes_max = value_bytes_most(&text, custom->protocol.value_bytes_max);
    return 0;
}

// --- writing it down -----------------------------------------------------------------------------

static json_t *mark_to_json(const struct custom_mark *mark)
{
    static const char digits[] = "0123456789abcdef";
    char text[CUSTOM_MARK_BYTES_MAX * sizeof "{hex:00}"], *end = text;
    for (unsigned i = 0; i < mark->count; i++) {
        const unsigned char byte = (unsigned char)mark->bytes[i];
        if (byte >= ' ' && byte <= '~' && byte != '{' && byte != '\\') {
            *end++ = (char)byte;
        } else {
            end = append_text(end, "{hex:");
            *end++ = digits[byte >> 4];
            *end++ = digits[byte & 15];
            *end++ = '}';
        }
    }
    return json_stringn(text, (size_t)(end - text));
}

static json_t *number_to_json(const struct custom_number *number)
{
    return json_pack("{s:I,s:I,s:s,s:i}", "at", (json_int_t)number->at, "bytes",
                     (json_int_t)number->bytes, "order", number->order ? "little" : "big", "adds",
                     number->adds);
}

static bool same_number(const struct custom_number *one, const struct custom_number *other)
{
    return one->at == other->at && one->bytes == other->bytes && one->order == other->order &&
           one->adds == other->adds;
}

// What ends with CR LF ends with LF, too.
static bool marks_agree(const struct custom_mark *one, const struct custom_mark *other)
{
    const struct custom_mark *shorter = one->count < other->count ? one : other;
    const struct custom_mark *longer = shorter == one ? other : one;
    return shorter->count && memcmp(longer->bytes + longer->count - shorter->count, shorter->bytes,
                                    shorter->count) == 0;
}

bool custom_share_replies(const struct custom *one, const struct custom *other)
{
    const struct custom_reply *a = one ? &one->reply : &usual_reply;
    const struct custom_reply *b = other ? &other->reply : &usual_reply;
    if (a->number.bytes && b->number.bytes && !same_number(&a->number, &b->number))
        return false;
    return a->until.count || b->until.count ? marks_agree(&a->until, &b->until)
                                            : same_number(&a->length, &b->length);
}

json_t *custom_to_json(const struct custom *custom)
{
    const struct custom_reply *reply = &custom->reply;
    json_t *requests = json_object(), *said = json_object();
    for (unsigned i = 0; i < custom->request_count; i++)
        json_object_set_new(requests, custom->names[i], json_string(custom->requests[i].source));
    if (reply->until.count) {
        json_object_set_new(said, "until", mark_to_json(&reply->until));
    } else {
        json_object_set_new(said, "length", number_to_json(&reply->length));
    }
    if (reply->number.bytes)
        json_object_set_new(said, "number", number_to_json(&reply->number));
    json_object_set_new(said, "most", json_integer((json_int_t)reply->most_bytes));
    json_object_set_new(said, "status_at", json_integer((json_int_t)reply->status_at));
    for (unsigned verdict = 0; verdict < CUSTOM_VERDICTS; verdict++) {
        json_t *marks = reply->mark_count[verdict] ? json_array() : NULL;
        for (unsigned i = 0; i < reply->mark_count[verdict]; i++)
            json_array_append_new(marks, mark_to_json(&reply->marks[verdict][i]));
        if (marks)
            json_object_set_new(said, custom_verdict_names[verdict], marks);
    }
    return json_pack("{s:o,s:o}", "requests", requests, "reply", said);
}
