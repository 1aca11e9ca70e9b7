// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/slice_options.h"
#include "base/text.h"

#define SLICE_OF_A_WINDOW "p99-100"

typedef int slice_parser(const char *text, struct diagnosis_slice *out, struct error *err);

static int read_each(const struct option_list *texts, const char *option, slice_parser *parse,
                     struct diagnosis_slice_array *out, struct error *err)
{
    for (size_t i = 0; i < texts->count; i++) {
        struct diagnosis_slice slice;
        int result = parse(texts->items[i], &slice, err);
        if (result < 0)
            return error_prefix(err, "%s", option);
        if (array_push(out, slice) < 0)
            return error_set(err, ERROR_FAILED, "no memory for %s slices",
                             TEXT_COUNT(texts->count));
    }
    return 0;
}

static int check_window(const struct slice_options *options, struct error *err)
{
    if (options->from_ns > INT64_MAX / 2 || options->to_ns > INT64_MAX / 2)
        return error_set(err, ERROR_INPUT, "--from and --to: a run does not last that long");
    if (options->to_ns && options->from_ns >= options->to_ns)
        return error_set(err, ERROR_INPUT, "--from must be earlier than --to");
    return 0;
}

int slice_options_read(const struct slice_options *options, struct diagnosis_slice_array *out,
                       struct error *err)
{
    bool window = options->from_ns != 0 || options->to_ns != 0;
    int result = check_window(options, err);
    if (result == 0)
        result = read_each(&options->slices, "--slice", diagnosis_slice_parse, out, err);
    if (result == 0)
        result =
            read_each(&options->messages, "--message", diagnosis_slice_parse_message, out, err);
    if (result == 0 && window && out->count == 0) {
        struct diagnosis_slice slice;
        result = diagnosis_slice_parse(SLICE_OF_A_WINDOW, &slice, err);
        if (result == 0 && array_push(out, slice) < 0)
            result = error_set(err, ERROR_FAILED, "no memory for a slice");
    }
    for (size_t i = 0; result == 0 && window && i < out->count; i++) {
        out->items[i].relative = true;
        out->items[i].from_ns = (int64_t)options->from_ns;
        out->items[i].to_ns = options->to_ns ? (int64_t)options->to_ns : INT64_MAX / 2;
    }
    return result;
}

bool slice_options_given(const struct slice_options *options)
{
    return options->slices.count || options->messages.count || options->from_ns || options->to_ns;
}

void slice_options_free(struct slice_options *options)
{
    array_free(&options->slices);
    array_free(&options->messages);
}
