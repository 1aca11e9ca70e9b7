// SPDX-License-Identifier: MIT
#include "analysis/report/plots/plots_timeline.h"

#include <math.h>

#include "analysis/lifetime/off_core.h"
#include "analysis/report/plots/svg_pieces.h"
#include "base/units.h"

enum {
    ROW = 20,
    STAMP_TOP = 4,
    STAMP_STEP = 15,
    STAGES_ROW = 40, // with what is between it and the cores
    CORE_GAP = 16,
    AXIS = 34,
    MOST_DEPTH = 24,
};
static const double SHORTEST = 0.4; // narrower spans would not be seen

static const char *const kind_colours[SPAN_KINDS] = {
#define SPAN_KIND(NAME, number, word, label, colour, ink, means) [number] = colour,
#include "analysis/timeline/span_kinds.tbl.h"
};

// A stamp's line, and its name beside it, in a row of names: 0 is the lowest.
struct label {
    const char *name;
    double x, from, until;
    unsigned row;
};

struct drawing {
    const struct run_analysis *run;
    const struct lifetime *life;
    int64_t begin_ns, end_ns;
    uint16_t cores[LIFETIME_CORES]; // of the server, in the order in which it came to them
    size_t core_count;
    struct label labels[STAMP_KINDS]; // from left to right
    size_t label_count;
    double stages_top;
    FILE *out;
};

static const struct lifetime *slowest(const struct run_analysis *run)
{
    for (size_t i = 0; i < run->findings.diagnoses.count; i++) {
        const struct diagnosis *diagnosis = &run->findings.diagnoses.items[i];
        if (diagnosis->messages.count)
            return &run->lifetimes.all.items[diagnosis->messages.items[0].lifetime];
    }
    return NULL;
}

bool plot_has_timeline(const struct run_analysis *run)
{
    return slowest(run) != NULL;
}

static double x_of(const struct drawing *drawing, int64_t at_ns)
{
    const double part =
        (double)(at_ns - drawing->begin_ns) / (double)(drawing->end_ns - drawing->begin_ns);
    return SVG_LEFT + part * (SVG_RIGHT - SVG_LEFT);
}

// With the text in it, as far as there is room.
static void draw_named(const struct drawing *drawing, int64_t from_ns, int64_t until_ns, double y,
                       const char *colour, const char *name)
{
    enum { BESIDE = 3, LEAST = 30 };
    const double from = x_of(drawing, from_ns), width = x_of(drawing, until_ns) - from,
                 room = width - 2 * BESIDE;
    svg_box(drawing->out, from, y, width, ROW - 2, colour, 1);
    if (room >= fmin(LEAST, svg_text_width(name)))
        svg_text_within(drawing->out, from + BESIDE, y + 13, "start", name, room);
}

// Of the application's stage, what is not its doing.
static void draw_off_core(int64_t begin_ns, int64_t end_ns, void *context)
{
    char text[64], time[32];
    snprintf(text, sizeof text, "not running %s",
             units_format_ns((double)(end_ns - begin_ns), time, sizeof time));
    const struct drawing *drawing = *(const struct drawing **)context;
    if (x_of(drawing, end_ns) - x_of(drawing, begin_ns) >= SHORTEST)
        draw_named(drawing, begin_ns, end_ns, drawing->stages_top, svg_off_core_tint(), text);
}

static void draw_stages(const struct drawing *drawing)
{
    char text[120], time[32];
    int64_t from = drawing->begin_ns;
    int last = STAMP_INTENDED;
    svg_text(drawing->out, SVG_LEFT - 8, drawing->stages_top + 13, "end", "stages");
    for (int kind = 0; kind < STAMP_KINDS; kind++) {
        if (!lifetime_has(drawing->life, (enum stamp_kind)kind))
            continue;
        const int64_t at = drawing->life->stamp_ns[kind];
        if (at > from && kind > 0) {
            // Without the stamps between, the time of several stages is that of one of them.
            int stage = kind;
            while (stage > last + 1 && !(drawing->life->stage_ns[stage] > 0))
                stage--;
            snprintf(
                text, sizeof text, "%s %s",
                stage_name((enum stamp_kind)stage, join_undivided(&drawing->run->lifetimes.join)),
                units_format_ns((double)(at - from), time, sizeof time));
            draw_named(drawing, from, at, drawing->stages_top, svg_stage_tint(stage), text);
            if (stage == STAMP_REPLY)
                off_core_visit(&drawing->run->evidence.server, &drawing->run->evidence.calls,
                               drawing->life, draw_off_core, &drawing);
        }
        from = at > from ? at : from;
        last = kind;
    }
}

// --- the stamps' names ---------------------------------------------------------------------------

// Beside its line: to its right, or to its left where the right has no room before `until`.
static bool put_beside(struct label *label, double until)
{
    enum { BESIDE = 3 };
    const double width = svg_text_width(label->name);
    const bool right = label->x + BESIDE + width <= until;
    label->from = right ? label->x + BESIDE : label->x - BESIDE - width;
    label->until = label->from + width;
    return right;
}

// Above those whose lines or names are where its name is: a name's line goes down from it.
static void put_above(struct label *label, const struct label *first, const struct label *end)
{
    label->row = 0;
    for (const struct label *other = first; other < end; other++)
        if (fmin(other->from, other->x) < label->until &&
            fmax(other->until, other->x) > label->from && other->row >= label->row)
            label->row = other->row + 1;
}

// No line crosses a name, and no name another: of those on the right of their lines the first is
// the highest, of those on the left the last.
static void place_labels(struct drawing *drawing)
{
    struct label *labels = drawing->labels, *end = labels + drawing->label_count, *left = end;
    double until = SVG_WIDTH;
    unsigned rows = 1;
    for (struct label *label = labels; label < left;) {
        bool fits = put_beside(label, until);
        left = fits ? left : label; // it and all that follow: on the left of theirs
        until = fits ? until : label->x;
        label = fits ? label + 1 : labels;
    }
    for (struct label *label = left; label-- > labels;)
        put_above(label, label + 1, left);
    for (struct label *label = left; label < end; label++) {
        put_beside(label, 0);
        put_above(label, labels, label);
    }
    for (const struct label *label = labels; label < end; label++)
        rows = label->row + 1 > rows ? label->row + 1 : rows;
    drawing->stages_top = STAMP_TOP + rows * STAMP_STEP + 6;
}

static void find_labels(struct drawing *drawing)
{
    for (int kind = 0; kind < STAMP_KINDS; kind++) {
        if (!run_shows_stamp(drawing->run, drawing->life, (enum stamp_kind)kind))
            continue;
        const struct label label = {.name = stamp_name((enum stamp_kind)kind),
                                    .x = x_of(drawing, drawing->life->stamp_ns[kind])};
        size_t at = drawing->label_count++;
        for (; at > 0 && drawing->labels[at - 1].x > label.x; at--)
            drawing->labels[at] = drawing->labels[at - 1];
        drawing->labels[at] = label;
    }
    place_labels(drawing);
}

static void draw_labels(const struct drawing *drawing, double bottom)
{
    for (size_t i = 0; i < drawing->label_count; i++) {
        const struct label *label = &drawing->labels[i];
        const double y = drawing->stages_top - 6 - STAMP_STEP * (label->row + 0.4);
        svg_text(drawing->out, label->from, y, "start", label->name);
        fprintf(drawing->out,
                "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#333\" stroke-dasharray=\"4 3\" "
                "fill=\"none\"/>\n",
                label->x, y - 9, bottom);
    }
}

// --- the cores -----------------------------------------------------------------------------------

static const char *colour_of(const struct drawing *drawing, const struct span *span)
{
    const bool own =
        span->kind == SPAN_TASK &&
        application_of_thread(&drawing->run->lifetimes.applications, span->id) != NO_APPLICATION;
    if (own)
        return svg_stage_tint(STAMP_REPLY);
    return kind_colours[span->kind] ? kind_colours[span->kind] : "#f4f4f4";
}

// Draws what is on a core from there on. Returns how many rows it takes; out NULL: only that.
static unsigned draw_core(const struct drawing *drawing, const struct core_timeline *timeline,
                          double y, bool draws)
{
    const struct name_array *names = &drawing->run->evidence.server.names;
    unsigned rows = 1;
    for (size_t i = core_timeline_from(timeline, drawing->begin_ns); i < timeline->spans.count;
         i++) {
        const struct span *span = &timeline->spans.items[i];
        const int64_t from =
                          span->begin_ns > drawing->begin_ns ? span->begin_ns : drawing->begin_ns,
                      until = span->end_ns < drawing->end_ns ? span->end_ns : drawing->end_ns;
        if (span->begin_ns >= drawing->end_ns)
            break;
        if (until <= from || span->depth >= MOST_DEPTH ||
            x_of(drawing, until) - x_of(drawing, from) < SHORTEST)
            continue;
        rows = span->depth + 1U > rows ? span->depth + 1U : rows;
        if (draws)
            draw_named(drawing, from, until, y + span->depth * ROW, colour_of(drawing, span),
                       span->name < names->count ? names->items[span->name] : "?");
    }
    return rows;
}

// All cores, one below the other. Returns where they end.
static double draw_cores(const struct drawing *drawing, bool draws)
{
    double y = drawing->stages_top + STAGES_ROW;
    for (size_t i = 0; i < drawing->core_count; i++) {
        char text[40];
        const struct core_timeline *timeline =
            host_timeline_core(&drawing->run->evidence.server, drawing->cores[i]);
        snprintf(text, sizeof text, "core %u", (unsigned)drawing->cores[i]);
        if (draws)
            svg_text(drawing->out, SVG_LEFT - 8, y + 13, "end", text);
        if (draws && !timeline)
            svg_text(drawing->out, SVG_LEFT + 3, y + 13, "start", "not recorded");
        y += (timeline ? draw_core(drawing, timeline, y, draws) : 1) * ROW + CORE_GAP;
    }
    return y;
}

static void draw_axis(const struct drawing *drawing, double y)
{
    enum { TICKS = 6 };
    char text[32];
    for (int i = 0; i <= TICKS; i++) {
        const double part = (double)i / TICKS;
        svg_text(drawing->out, SVG_LEFT + part * (SVG_RIGHT - SVG_LEFT), y + 16,
                 i == TICKS ? "end" : "middle",
                 units_format_ns(part * (double)(drawing->end_ns - drawing->begin_ns), text,
                                 sizeof text));
    }
}

int plot_timeline(const struct run_analysis *run, FILE *out)
{
    struct drawing drawing = {.run = run, .life = slowest(run), .out = out};
    const struct time_range extent = lifetime_extent(drawing.life);
    drawing.begin_ns = extent.begin_ns;
    drawing.end_ns = extent.end_ns;
    drawing.end_ns += drawing.end_ns == drawing.begin_ns; // it has a width
    drawing.core_count = lifetime_cores(drawing.life, drawing.cores);
    find_labels(&drawing);
    const double bottom = draw_cores(&drawing, false);
    svg_begin(out, (int)bottom + AXIS, "The slowest message");
    draw_stages(&drawing);
    draw_cores(&drawing, true);
    draw_labels(&drawing, bottom);
    draw_axis(&drawing, bottom);
    fputs("</svg>\n", out);
    return 0;
}
