// SPDX-License-Identifier: MIT
#include "analysis/compare/gate_output.h"

#include <math.h>
#include <string.h>

#include "base/json_numbers.h"
#include "base/text.h"

int gate_results_exit_code(const struct gate_result_array *results)
{
    int code = 0;
    for (size_t i = 0; i < results->count; i++) {
        if (results->items[i].outcome == GATE_FAILED)
            return ERROR_GATE;
        if (results->items[i].outcome == GATE_INCONCLUSIVE)
            code = ERROR_INCONCLUSIVE;
    }
    return code;
}

// "step: what was found".
static void write_part(const struct gate_result *result, FILE *out)
{
    char clean[GATE_PART_BYTES + 60];
    if (result->part[0])
        fprintf(out, "%s: ", text_clean(result->part, false, clean, sizeof clean));
}

void gate_results_text(const struct gate_result_array *results, FILE *out)
{
    char words[200], clean[700];
    for (size_t i = 0; i < results->count; i++) {
        const struct gate_result *result = &results->items[i];
        fprintf(out, "gate %-12s ", gate_outcome_name(result->outcome));
        gate_words(&result->gate, words, sizeof words);
        fprintf(out, "%s: ", text_clean(words, false, clean, sizeof clean));
        write_part(result, out);
        fprintf(out, "%s\n", text_clean(result->words, false, clean, sizeof clean));
    }
}

static json_t *result_json(const struct gate_result *result)
{
    const struct gate *gate = &result->gate;
    bool share = gate->subject->forms[gate->limit] == GATE_SHARE;
    double unit = share ? 1 : 1000;
    char words[200], clean[700];
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "gate", gate_words(gate, words, sizeof words),
        "outcome", gate_outcome_name(result->outcome), "words",
        text_clean(result->words, false, clean, sizeof clean), "unit", share ? "share" : "us",
        "limit", json_number_or_null(gate->value / unit), "value",
        json_number_or_null(result->value / unit), "low", json_number_or_null(result->low / unit),
        "high", json_number_or_null(result->high / unit));
    if (gate->load[0])
        json_object_set_new(object, "load", json_string(gate->load));
    if (result->part[0])
        json_object_set_new(object, "part",
                            json_string(text_clean(result->part, false, clean, sizeof clean)));
    return object;
}

json_t *gate_results_json(const struct gate_result_array *results)
{
    json_t *list = json_array();
    for (size_t i = 0; i < results->count; i++)
        json_array_append_new(list, result_json(&results->items[i]));
    return list;
}

static void write_xml(const char *text, FILE *out)
{
    char clean[700];
    for (const char *at = text_clean(text, false, clean, sizeof clean); *at; at++) {
        const char *entity = *at == '&'   ? "&amp;"
                             : *at == '<' ? "&lt;"
                             : *at == '>' ? "&gt;"
                             : *at == '"' ? "&quot;"
                                          : NULL;
        if (entity)
            fputs(entity, out);
        else
            fputc(*at, out);
    }
}

void gate_results_junit(const struct gate_result_array *results, const char *suite, FILE *out)
{
    size_t counts[3] = {0};
    char words[200];
    for (size_t i = 0; i < results->count; i++)
        counts[results->items[i].outcome]++;
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
            "  <testsuite name=\"taillight\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\">\n",
            results->count, counts[GATE_FAILED], counts[GATE_INCONCLUSIVE]);
    for (size_t i = 0; i < results->count; i++) {
        const struct gate_result *result = &results->items[i];
        const char *element = result->outcome == GATE_FAILED         ? "failure"
                              : result->outcome == GATE_INCONCLUSIVE ? "error"
                                                                     : "system-out";
        fputs("    <testcase classname=\"", out);
        write_xml(suite, out);
        if (result->part[0])
            fputc('.', out);
        write_xml(result->part, out);
        fputs("\" name=\"", out);
        write_xml(gate_words(&result->gate, words, sizeof words), out);
        fprintf(out, "\">\n      <%s%s", element,
                result->outcome == GATE_PASSED ? ">" : " message=\"");
        write_xml(result->words, out);
        if (result->outcome == GATE_PASSED)
            fprintf(out, "</%s>\n    </testcase>\n", element);
        else
            fprintf(out, "\" type=\"%s\"/>\n    </testcase>\n", gate_outcome_name(result->outcome));
    }
    fputs("  </testsuite>\n</testsuites>\n", out);
}

// Escapes text for a workflow command; in its properties, colons and commas as well.
static void write_escaped(const char *text, bool property, FILE *out)
{
    for (; *text; text++)
        if (*text == '%' || *text == '\r' || *text == '\n' ||
            (property && (*text == ':' || *text == ',')))
            fprintf(out, "%%%02X", (unsigned)*text);
        else
            fputc(*text, out);
}

void gate_results_annotations(const struct gate_result_array *results, FILE *out)
{
    char words[200];
    for (size_t i = 0; i < results->count; i++) {
        const struct gate_result *result = &results->items[i];
        if (result->outcome == GATE_PASSED)
            continue;
        fprintf(out, "::%s title=", result->outcome == GATE_FAILED ? "error" : "warning");
        write_escaped(gate_words(&result->gate, words, sizeof words), true, out);
        fprintf(out, " %s::", gate_outcome_name(result->outcome));
        write_escaped(result->part, false, out);
        fputs(result->part[0] ? ": " : "", out);
        write_escaped(result->words, false, out);
        fputc('\n', out);
    }
}
