// SPDX-License-Identifier: MIT
#include "profiler/doctor/doctor_print.h"

#include <stdio.h>
#include <string.h>

// Prints the words of a text from the given column on, in lines of 100 columns.
static void print_wrapped(const char *text, int column)
{
    int at = column;
    while (*text) {
        int bytes = (int)strcspn(text, " ");
        if (at > column && at + 1 + bytes > 100) {
            printf("\n%*s", column, "");
            at = column;
        }
        at += printf("%s%.*s", at > column ? " " : "", bytes, text);
        text += bytes;
        text += strspn(text, " ");
    }
    printf("\n");
}

static void print_item(const struct doctor_item *item)
{
    enum { TEXT_COLUMN = 38 };
    char text[sizeof item->found + sizeof item->missing + 4];
    snprintf(text, sizeof text, "%s%s%s", item->found,
             item->found[0] && item->missing[0] ? "; " : "", item->missing);
    printf("  %-7s %-27s ", doctor_state_name(item->state), item->name);
    print_wrapped(text, TEXT_COLUMN);
    if (item->state == DOCTOR_YES)
        return;
    char more[sizeof item->gives + sizeof item->how + 16];
    snprintf(more, sizeof more, "for %s: %s", item->gives, item->how);
    printf("%*s", TEXT_COLUMN, "");
    print_wrapped(more, TEXT_COLUMN);
}

static void print_people(const struct doctor_items *items, const struct doctor_options *chosen)
{
    for (int group = 0; group < DOCTOR_GROUPS; group++) {
        bool titled = false;
        for (size_t i = 0; i < items->count; i++) {
            const struct doctor_item *item = &items->items[i];
            bool good = item->state == DOCTOR_YES;
            if ((int)item->group != group || (good && chosen->quiet) ||
                (good && group == DOCTOR_EVENTS && !chosen->all))
                continue;
            if (!titled)
                printf("%s\n", doctor_group_name(item->group));
            titled = true;
            print_item(item);
        }
    }
}

int doctor_print(const struct doctor_options *chosen, doctor_check check_backends,
                 struct error *err)
{
    struct doctor_items items;
    int failed = 0;
    if (doctor_examine(check_backends, &items, err) < 0)
        return -ERROR_FAILED;
    if (chosen->json) {
        json_t *document = doctor_json(&items);
        failed = !document || json_dumpf(document, stdout, JSON_INDENT(2)) < 0;
        printf("\n");
        json_decref(document);
    } else {
        print_people(&items, chosen);
    }
    array_free(&items);
    return failed || fflush(stdout) != 0
               ? error_set_errno(err, ERROR_FAILED, "doctor: cannot write to stdout")
               : 0;
}
