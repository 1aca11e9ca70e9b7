// SPDX-License-Identifier: MIT
//
// Plots as files: those that there are data for, whole, of what was measured, with names as text.
// `test_report_plots --write FOLDER VARIANT` only writes them, for test_plots_drawn.sh.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/report/plots/latency_heat.h"
#include "analysis/report/plots/report_plots.h"
#include "tests/analysis/report/report_fixture.h"
#include "tests/skip.h"

static const char *const files[] = {"latency.svg", "heat.svg",     "stages.svg", "causes.svg",
                                    "boxes.svg",   "balloons.svg", "hops.svg",   "timeline.svg"};
enum { FILES = sizeof files / sizeof *files };

struct drawn {
    struct fixture fixture;
    char folder[40];
    char *text[FILES]; // NULL: it was not written
};

static char *contents(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
    char *text = calloc(1, 4 << 20);
    assert_non_null(text);
    assert_true(fread(text, 1, (4 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

static void draw_run(struct drawn *drawn)
{
    struct error err = {0};
    char path[80];
    snprintf(drawn->folder, sizeof drawn->folder, "/tmp/test-plots-XXXXXX");
    assert_non_null(mkdtemp(drawn->folder));
    assert_int_equal(rmdir(drawn->folder), 0); // it is to be made
    if (report_plots_write(&drawn->fixture.run, drawn->folder, false, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", drawn->folder, files[i]);
        drawn->text[i] = contents(path);
        if (drawn->text[i])
            assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(drawn->folder), 0); // there is nothing else in it
}

static void draw(struct drawn *drawn, const struct fixture_options *options)
{
    fixture_build(&drawn->fixture, options);
    draw_run(drawn);
}

static void release(struct drawn *drawn)
{
    for (size_t i = 0; i < FILES; i++)
        free(drawn->text[i]);
    fixture_free(&drawn->fixture);
}

static size_t count_of(const char *text, const char *what)
{
    size_t count = 0;
    while ((text = strstr(text, what)) != NULL)
        text++, count++;
    return count;
}

static void test_every_plot_is_whole(void **state)
{
    (void)state;
    struct drawn drawn;
    draw(&drawn, &(struct fixture_options){.requests = 4000, .rate = 20000, .hops = true});
    for (size_t i = 0; i < FILES; i++) {
        const char *text = drawn.text[i];
        assert_non_null(text);
        assert_memory_equal(text, "<svg ", 5);
        assert_string_equal(text + strlen(text) - 7, "</svg>\n");
        assert_int_equal(count_of(text, "<text"), count_of(text, "</text>"));
        assert_null(strstr(text, "nan"));
        assert_null(strstr(text, "inf\""));
    }
    assert_non_null(strstr(drawn.text[3], "another program, `yes`, had the server's CPU core"));
    assert_non_null(strstr(drawn.text[2], ">A core<"));
    assert_non_null(strstr(drawn.text[6], ">to2@client -> to0@switch<"));
    assert_non_null(strstr(drawn.text[6], ">all of the way to server<"));
    const struct run_analysis *run = &drawn.fixture.run;
    const struct lifetime *life =
        &run->lifetimes.all.items[run->findings.diagnoses.items[0].messages.items[0].lifetime];
    char core[40];
    for (int kind = 0; kind < STAMP_KINDS; kind++) // each of its stamps, and where it was
        if (lifetime_has(life, (enum stamp_kind)kind))
            assert_non_null(strstr(drawn.text[7], stamp_name((enum stamp_kind)kind)));
    snprintf(core, sizeof core, ">core %u<", (unsigned)life->stamp_core[STAMP_APPLICATION]);
    assert_non_null(strstr(drawn.text[7], core));
    assert_non_null(strstr(drawn.text[7], ">yes<"));
    release(&drawn);
}

// Without the stamps between, the time of three stages is that of the first of them.
static void test_what_is_undivided_has_one_name(void **state)
{
    (void)state;
    struct drawn drawn;
    fixture_build(&drawn.fixture, &(struct fixture_options){.requests = 4000, .rate = 20000});
    struct run_analysis *run = &drawn.fixture.run;
    struct lifetime *life =
        &run->lifetimes.all.items[run->findings.diagnoses.items[0].messages.items[0].lifetime];
    for (int kind = STAMP_NIC; kind < STAMP_APPLICATION; kind++) {
        life->present &= (typeof(life->present))~(1u << kind);
        life->stage_ns[STAMP_APPLICATION] += life->stage_ns[kind];
    }
    life->stage_ns[STAMP_NIC] = life->stage_ns[STAMP_APPLICATION];
    life->stage_ns[STAMP_HANDOFF] = life->stage_ns[STAMP_APPLICATION] = 0;
    draw_run(&drawn);
    char name[60];
    snprintf(name, sizeof name, ">%s ", stage_name(STAMP_NIC, 0));
    assert_non_null(strstr(drawn.text[7], name));
    snprintf(name, sizeof name, ">%s ", stage_name(STAMP_APPLICATION, 0));
    assert_null(strstr(drawn.text[7], name));
    release(&drawn);
}

// One for each time that a cause added something, of the messages that are drawn.
static void test_a_balloon_for_each_attribution(void **state)
{
    (void)state;
    struct drawn drawn;
    draw(&drawn, &(struct fixture_options){.requests = 4000, .rate = 20000});
    const struct diagnosis *first = drawn.fixture.run.findings.diagnoses.items;
    size_t wanted = 0;
    for (size_t i = 0; i < first->attributions.count && i < 4000; i++)
        wanted += first->attributions.items[i].ns > 0;
    assert_true(wanted > 10);
    assert_int_equal(count_of(drawn.text[5], "<circle"), wanted);
    assert_non_null(strstr(drawn.text[4], " messages, median "));
    release(&drawn);
}

// A box for each cell in which there are requests, and the background.
static void test_heat_has_a_box_for_each_cell(void **state)
{
    (void)state;
    struct drawn drawn;
    struct latency_heat *heat = calloc(1, sizeof *heat);
    size_t filled = 0;
    assert_non_null(heat);
    draw(&drawn, &(struct fixture_options){.requests = 4000, .rate = 20000, .odd = true});
    assert_true(latency_heat_fill(&drawn.fixture.run.lifetimes, heat));
    for (size_t i = 0; i < HEAT_COLUMNS * (HEAT_ROWS + 1); i++)
        filled += heat->cells[i / (HEAT_ROWS + 1)][i % (HEAT_ROWS + 1)] > 0;
    assert_int_equal(count_of(drawn.text[1], "<rect"), filled + 1);
    assert_non_null(strstr(drawn.text[1], ">never<"));
    free(heat);
    release(&drawn);
}

static void test_names_are_text(void **state)
{
    (void)state;
    struct drawn drawn;
    draw(&drawn, &(struct fixture_options){.requests = 4000, .rate = 20000, .odd = true});
    for (size_t i = 3; i < FILES && drawn.text[i]; i++) {
        assert_null(strstr(drawn.text[i], "<!--"));
        assert_null(strstr(drawn.text[i], "</script"));
        // In the timeline a name is cut to its room.
        assert_non_null(strstr(drawn.text[i], i == FILES - 1 ? "&lt;" : "&lt;/script"));
    }
    release(&drawn);
}

static void test_only_what_there_is(void **state)
{
    (void)state;
    struct drawn drawn;
    draw(&drawn, &(struct fixture_options){.requests = 4000, .rate = 20000, .no_verdict = true});
    assert_non_null(drawn.text[0]);
    assert_non_null(drawn.text[FILES - 1]); // some request was the slowest all the same
    for (size_t i = 3; i < FILES - 1; i++)
        assert_null(drawn.text[i]);
    release(&drawn);
    draw(&drawn, &(struct fixture_options){.requests = 0, .rate = 20000});
    for (size_t i = 0; i < FILES; i++)
        assert_null(drawn.text[i]);
    release(&drawn);
}

static void test_a_folder_that_cannot_be(void **state)
{
    (void)state;
    struct error err = {0};
    struct run_analysis run = {0};
    assert_int_equal(report_plots_write(&run, "/nowhere/plots", false, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "/nowhere/plots"));
    assert_int_equal(report_plots_folder("/dev/null", &err), -ERROR_INPUT); // before any analysis
    assert_non_null(strstr(err.text, "/dev/null is no folder to write in"));
}

// A PNG beside the SVG; without the program that draws it that is said, and none is there.
static void test_png(void **state)
{
    (void)state;
    static const char *const made[] = {"latency.svg", "heat.svg", "stages.svg", "timeline.svg"};
    struct fixture fixture;
    struct error err = {0};
    char folder[40], path[80], magic[8] = {0}, *before = strdup(getenv("PATH"));
    fixture_build(&fixture,
                  &(struct fixture_options){.requests = 4000, .rate = 20000, .no_verdict = true});
    snprintf(folder, sizeof folder, "/tmp/test-plots-XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(setenv("PATH", "/nowhere", 1), 0);
    assert_int_equal(report_plots_write(&fixture.run, folder, true, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "apt-get install librsvg2-bin"));
    snprintf(path, sizeof path, "%s/latency.svg", folder);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0); // nothing else is in it
    assert_int_equal(setenv("PATH", before, 1), 0);
    free(before);
    if (system("rsvg-convert --version >/dev/null 2>&1") != 0) {
        fixture_free(&fixture);
        skip_case("no rsvg-convert (apt-get install librsvg2-bin): no PNG is drawn");
    }
    assert_non_null(mkdtemp(strcpy(folder, "/tmp/test-plots-XXXXXX")));
    if (report_plots_write(&fixture.run, folder, true, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, made[i]);
        assert_int_equal(unlink(path), 0);
        memcpy(strstr(path, ".svg"), ".png", 4);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        assert_int_equal(fread(magic, 1, sizeof magic, file), sizeof magic);
        assert_memory_equal(magic, "\x89PNG\r\n\x1a\n", sizeof magic);
        fclose(file);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(folder), 0);
    fixture_free(&fixture);
}

static int write_variant(const char *folder, const char *variant)
{
    struct fixture fixture;
    struct error err = {0};
    fixture_build(&fixture, &(struct fixture_options){.requests = 4000,
                                                      .rate = 20000,
                                                      .hops = true,
                                                      .odd = strcmp(variant, "odd") == 0});
    int result = report_plots_write(&fixture.run, folder, false, &err);
    fixture_free(&fixture);
    return result < 0 ? error_report(&err) : 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--write") == 0)
        return write_variant(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_plot_is_whole),
        cmocka_unit_test(test_what_is_undivided_has_one_name),
        cmocka_unit_test(test_a_balloon_for_each_attribution),
        cmocka_unit_test(test_heat_has_a_box_for_each_cell),
        cmocka_unit_test(test_names_are_text),
        cmocka_unit_test(test_only_what_there_is),
        cmocka_unit_test(test_a_folder_that_cannot_be),
        cmocka_unit_test(test_png),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
