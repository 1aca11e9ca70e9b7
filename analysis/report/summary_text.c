// SPDX-License-Identifier: MIT
#include "analysis/report/summary_text.h"

#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "analysis/report/report_text.h"
#include "analysis/report/summary_setup.h"
#include "analysis/report/summary_views.h"
#include "base/units.h"

enum { TOP_CAUSES = 8, TOP_WINDOWS = 6, CAUSES_OF_WINDOW = 3, BAR_CELLS = 10 };

struct summary {
    const struct run_analysis *run;
    const struct summary_style *style;
    FILE *out;
};

struct summary_style summary_style_for(FILE *stream)
{
    struct summary_style style = {.width = 80};
    int fd = fileno(stream);
    const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    bool terminal = fd >= 0 && isatty(fd);
    style.colour = terminal && !(term && strcmp(term, "dumb") == 0) && !(no_colour && *no_colour);
    // Of the locale only the character set counts: setlocale would also change how numbers read.
    locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (locale) {
        style.unicode = strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
        freelocale(locale);
    }
    struct winsize size;
    if (!terminal)
        style.width = 100;
    else if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 80)
        style.width = size.ws_col < 100 ? size.ws_col : 100;
    return style;
}

// --- pieces ------------------------------------------------------------------------------------

static const char *strong(const struct summary *s)
{
    return s->style->colour ? "\033[1m" : "";
}

static const char *faint(const struct summary *s)
{
    return s->style->colour ? "\033[2m" : "";
}

static const char *warn(const struct summary *s, bool bad)
{
    return s->style->colour && bad ? "\033[33m" : "";
}

static const char *plain(const struct summary *s)
{
    return s->style->colour ? "\033[0m" : "";
}

// A duration, or why there is none: "never" for an unanswered request's, "-" for an unknown one.
static const char *duration(double ns, char out[32])
{
    if (isnan(ns))
        return "-";
    return isinf(ns) ? "never" : units_format_ns(ns, out, 32);
}

static const char *percent(double part, double whole, char out[32])
{
    if (!(whole > 0) || !isfinite(part))
        return "-";
    double value = 100 * part / whole;
    // Nearly all is not all, and hardly any is not none.
    if (value > 99.99 && value < 100)
        return ">99.99%";
    if (value > 0 && value < 0.01)
        return "<0.01%";
    bool plain_number = value == 0 || (value >= 100 && value < 100.01);
    snprintf(out, 32, "%.*f%%", plain_number ? 0 : value > 99 || value < 10 ? 2 : 1, value);
    return out;
}

// How many columns the text takes: bytes that are not UTF-8 continuation bytes.
static int columns(const char *text)
{
    int count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text >> 6) != 2;
    return count;
}

// The text in a field of so many columns, cut or padded.
static void field(const struct summary *s, const char *text, int width)
{
    int left = width;
    for (; *text && (left > 0 || ((unsigned char)*text >> 6) == 2); text++) {
        left -= ((unsigned char)*text >> 6) != 2;
        fputc(*text, s->out);
    }
    fprintf(s->out, "%*s", left, "");
}

// A bar in a field of so many columns.
static void bar(const struct summary *s, double part, int cells)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int filled = isfinite(part) && part > 0 ? (int)lround(fmin(part, 1) * cells * 8) : 0;
    int used = 0;
    for (; used < filled / 8; used++)
        fputs(s->style->unicode ? "█" : "#", s->out);
    if (s->style->unicode && filled % 8) {
        fputs(eighths[filled % 8], s->out);
        used++;
    } else if (!s->style->unicode && filled % 8 >= 4) {
        fputc('#', s->out);
        used++;
    }
    fprintf(s->out, "%*s", cells - used, "");
}

// Words broken into lines of the style's width, all but the first indented.
static void wrapped(const struct summary *s, const char *text, int indent)
{
    int at = indent;
    while (*text) {
        size_t length = strcspn(text, " ");
        char word[1024];
        snprintf(word, sizeof word, "%.*s", (int)(length < 1000 ? length : 1000), text);
        if (at > indent && at + 1 + columns(word) > s->style->width) {
            fprintf(s->out, "\n%*s", indent, "");
            at = indent;
        } else if (at > indent) {
            fputc(' ', s->out);
            at++;
        }
        fputs(word, s->out);
        at += columns(word);
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', s->out);
}

static void heading(const struct summary *s, const char *text)
{
    fprintf(s->out, "\n%s%s%s\n", strong(s), text, plain(s));
}

// --- parts -------------------------------------------------------------------------------------

static void write_verdict(const struct summary *s)
{
    char name[256], verdict[3200];
    report_clean_text(s->run->name, !s->style->unicode, name, sizeof name);
    report_clean_text(s->run->verdict, !s->style->unicode, verdict, sizeof verdict);
    fprintf(s->out, "%s%s%s%s%s%s\n", strong(s), name, plain(s),
            warn(s, !s->run->verdict_available),
            s->run->verdict_available ? "" : "  N/A: no verdict", plain(s));
    wrapped(s, verdict, 0);
}

// How the clocks of two machines relate, and the one network time that needs no such relation.
static void write_hosts(const struct summary *s, const struct two_hosts *hosts)
{
    char a[32], b[32], c[32];
    if (!hosts->apart)
        return;
    if (hosts->exchanges == 0) {
        fprintf(s->out, "  hosts     two, and no request was stamped by both\n");
        return;
    }
    fprintf(s->out, "  network   %s there and back (median), %s (p99)\n",
            duration(hosts->round_trip_ns[0], a), duration(hosts->round_trip_ns[2], b));
    fprintf(s->out, "  hosts     two; their clocks related within %s (median), %s (p99), %+.2f ppm",
            duration(hosts->bound_p50_ns, a), duration(hosts->bound_p99_ns, b), hosts->rate * 1e6);
    if (hosts->both_ways)
        fprintf(s->out, ": too wide to tell the two ways apart");
    else if (hosts->unknown)
        fprintf(s->out, "; unknown for %s requests", report_count(hosts->unknown, c));
    fputc('\n', s->out);
}

static void write_numbers(const struct summary *s)
{
    const struct run_analysis *run = s->run;
    char a[32], b[32], c[32];
    double seconds = (double)(run->end_ns - run->begin_ns) / 1e9;
    fprintf(s->out, "\n  load      %s requests in %.3g s: %.0f/s offered, %.0f/s achieved\n",
            report_count(run->scheduled, a), seconds, run->offered_rate, run->achieved_rate);
    fprintf(s->out, "  client    sent late by %s (median), %s (p99)\n",
            duration(run->lateness_p50_ns, a), duration(run->lateness_p99_ns, b));
    fprintf(s->out, "  joined    %s of them have every stamp (%s)\n",
            percent((double)run->states[LIFETIME_WHOLE], (double)run->scheduled, a),
            report_count(run->states[LIFETIME_WHOLE], b));
    fprintf(s->out, "  clocks    error at most %s; %s%s stamps out of order%s",
            duration(run->clock_error_ns, a), warn(s, run->order_violations > 0),
            report_count(run->order_violations, c), plain(s));
    if (run->order_violations)
        fprintf(s->out, ", by up to %s", duration(run->worst_disorder_ns, b));
    fputc('\n', s->out);
    write_hosts(s, &run->join.hosts);
}

static void latency_row(const struct summary *s, const char *label, const double *values)
{
    char text[32];
    fprintf(s->out, "  ");
    field(s, label, 17);
    for (int i = 0; i < LATENCY_QUANTILES; i++)
        fprintf(s->out, "%10s", duration(values[i], text));
    fputc('\n', s->out);
}

static void write_latency(const struct summary *s)
{
    const struct run_analysis *run = s->run;
    double low[LATENCY_QUANTILES], high[LATENCY_QUANTILES];
    for (int i = 0; i < LATENCY_QUANTILES; i++) {
        const struct quantile_interval *interval = &run->latency.interval_ns[i];
        low[i] = interval->known ? interval->low : NAN;
        high[i] = interval->known ? interval->high : NAN;
    }
    heading(s, "Latency");
    fprintf(s->out, "%s  %-17s", faint(s), "");
    for (int i = 0; i < LATENCY_QUANTILES; i++)
        fprintf(s->out, "%10s", latency_quantile_names[i]);
    fprintf(s->out, "%s\n", plain(s));
    latency_row(s, "from intended", run->latency.value_ns);
    latency_row(s, "  95% from", low);
    latency_row(s, "  95% to", high);
    latency_row(s, "from sent", run->uncorrected_latency.value_ns);
}

static double stage_sum(const double *stages)
{
    double sum = 0;
    for (int stage = 1; stage < STAGES; stage++)
        sum += isfinite(stages[stage]) ? stages[stage] : 0;
    return sum;
}

// Where client and server are two machines, which of them the stages that follow pass on.
static void write_machine(const struct summary *s, const char *machine, const char **before)
{
    char name[256];
    bool changed = strcmp(machine, *before) != 0;
    *before = machine;
    if (!changed)
        return;
    report_clean_text(machine[0] ? machine : "between them", !s->style->unicode, name, sizeof name);
    fprintf(s->out, "%s %s:%s\n", faint(s), name, plain(s));
}

static void write_stages(const struct summary *s)
{
    static const int shown[] = {0, 2, 3}; // p50, p99, p99.9
    const char *machine = "";
    heading(s, "Where the time goes (mean of the requests around that percentile)");
    fprintf(s->out, "%s  %-24s", faint(s), "");
    for (size_t i = 0; i < 3; i++)
        fprintf(s->out, "%s%9s%*s", i ? " " : "", latency_quantile_names[shown[i]],
                i < 2 ? BAR_CELLS + 1 : 0, "");
    fprintf(s->out, "%s\n", plain(s));
    for (int stage = 1; stage < STAGES; stage++) {
        double most = 0;
        for (size_t i = 0; i < 3; i++)
            most = fmax(most, s->run->stage_at_quantile_ns[shown[i]][stage]);
        if (!(most > 0))
            continue; // merged into the next one
        char text[32];
        enum core_role role = stage_role((enum stamp_kind)stage);
        write_machine(s, run_stage_machine(s->run, (enum stamp_kind)stage), &machine);
        fprintf(s->out, "  ");
        field(s, stage_name((enum stamp_kind)stage, s->run->join.hosts.both_ways), 20);
        fprintf(s->out, "%-4s", role == ROLE_R || role == ROLE_A ? role_name(role) : "");
        for (size_t i = 0; i < 3; i++) {
            const double *stages = s->run->stage_at_quantile_ns[shown[i]];
            fprintf(s->out, "%s%9s ", i ? " " : "", duration(stages[stage], text));
            bar(s, stages[stage] / stage_sum(stages), BAR_CELLS);
        }
        fputc('\n', s->out);
    }
}

static double total_deviation(const struct diagnosis *diagnosis)
{
    double total = 0;
    for (size_t i = 0; i < diagnosis->messages.count; i++)
        if (isfinite(diagnosis->messages.items[i].deviation_ns))
            total += fmax(diagnosis->messages.items[i].deviation_ns, 0);
    return total;
}

static void write_cause_table(const struct summary *s, const struct diagnosis *diagnosis)
{
    double whole = total_deviation(diagnosis);
    char a[32], b[32], c[32], name[260];
    fprintf(s->out, "%s  %-29s %-8s %9s %6s %9s %9s  share of extra time%s\n", faint(s), "cause",
            "where", "messages", "", "median", "total", plain(s));
    for (size_t i = 0; i < diagnosis->causes.count && i < TOP_CAUSES; i++) {
        const struct cause *cause = &diagnosis->causes.items[i];
        report_clean_text(cause->name, !s->style->unicode, name, sizeof name);
        fprintf(s->out, "  ");
        field(s, name, 29);
        fprintf(s->out, " %-8s %9s %6s %9s", role_name(cause->role),
                report_count(cause->messages, a),
                percent((double)cause->messages, (double)diagnosis->messages.count, b),
                duration(cause->median_ns, c));
        fprintf(s->out, " %9s  ", duration(cause->total_ns, a));
        bar(s, cause->total_ns / whole, BAR_CELLS);
        fprintf(s->out, " %s%s\n", percent(cause->total_ns, whole, b), cause->explains ? "" : " *");
    }
    if (diagnosis->causes.count > TOP_CAUSES)
        fprintf(s->out, "  ... and %zu smaller ones\n", diagnosis->causes.count - TOP_CAUSES);
}

static void write_diagnosis(const struct summary *s, const struct diagnosis *diagnosis)
{
    char a[32], b[32], c[32], label[160], title[240];
    diagnosis_slice_label(&diagnosis->slice, s->run->begin_ns, label, sizeof label);
    snprintf(title, sizeof title, "Why: %s", label);
    heading(s, title);
    if (diagnosis->not_available) {
        char reason[800];
        report_clean_text(diagnosis->reason, !s->style->unicode, reason, sizeof reason);
        fprintf(s->out, "  N/A: ");
        wrapped(s, reason, 7);
        return;
    }
    fprintf(s->out, "  %s messages, %s to", report_count(diagnosis->messages.count, a),
            duration(diagnosis->slice_low_ns, b));
    fprintf(s->out, " %s; an ordinary one takes %s\n", duration(diagnosis->slice_high_ns, a),
            duration(diagnosis->reference_latency_ns, b));
    if (diagnosis->causes.count == 0) {
        fprintf(s->out, "  no cause found\n");
        return;
    }
    write_cause_table(s, diagnosis);
    fprintf(s->out, "  explained: %s of the extra time; per message %s (median), %s (worst)\n",
            percent(diagnosis->coverage_total, 1, a), percent(diagnosis->coverage_median, 1, b),
            percent(diagnosis->coverage_min, 1, c));
    bool located = false;
    for (size_t i = 0; i < diagnosis->causes.count && i < TOP_CAUSES; i++)
        located = located || !diagnosis->causes.items[i].explains;
    if (located)
        fprintf(s->out, "  * where the time was lost, but not why: not counted as explained\n");
}

// In which functions the samples were that fell into what the causes are made of.
static void write_samples(const struct summary *s)
{
    const struct run_samples *samples = &s->run->samples;
    char line[900], clean[900];
    if (samples->hints.count || samples->problem[0])
        heading(s, "Hints: where samples were in the slow requests (in ordinary ones)");
    for (size_t i = 0; i < samples->hints.count + 1; i++) {
        run_samples_line(samples, i, line, sizeof line);
        report_clean_text(line, !s->style->unicode, clean, sizeof clean);
        if (clean[0]) {
            fprintf(s->out, "  ");
            wrapped(s, clean, 4);
        }
    }
}

// The causes that weighed most, in one line: "yes (A) 3.1 ms on 12; ...". Returns what it used.
static int top_causes(const struct summary *s, const struct diagnosis *diagnosis, char *line,
                      size_t bytes)
{
    char a[32], b[32], name[260];
    int used = 0;
    if (diagnosis->not_available || diagnosis->causes.count == 0)
        return snprintf(line, bytes, "%s", diagnosis->not_available ? "N/A" : "no cause found");
    for (size_t j = 0; j < diagnosis->causes.count && j < CAUSES_OF_WINDOW; j++) {
        const struct cause *cause = &diagnosis->causes.items[j];
        report_clean_text(cause->name, !s->style->unicode, name, sizeof name);
        used += snprintf(line + used, bytes - (size_t)used, "%s%s (%s) %s on %s", j ? "; " : "",
                         name, role_name(cause->role), duration(cause->total_ns, a),
                         report_count(cause->messages, b));
    }
    return used;
}

// One line a part of the lifetimes: how slow the slice's are, and why.
static void write_parts(const struct summary *s)
{
    char a[32], b[32], line[1200];
    for (int part = PART_WHOLE + 1; part < PARTS; part++) {
        const struct diagnosis *of = run_diagnosis_of(s->run, 0, (enum lifetime_part)part);
        if (!of)
            continue;
        if (part == PART_WHOLE + 1)
            heading(s, "The same slice of each lifetime on the server");
        int used = snprintf(line, sizeof line, "%s ", lifetime_part_name(of->part));
        if (!of->not_available)
            used += snprintf(line + used, sizeof line - (size_t)used,
                             ">= %s, else %s: ", duration(of->slice_low_ns, a),
                             duration(of->reference_latency_ns, b));
        top_causes(s, of, line + used, sizeof line - (size_t)used);
        fprintf(s->out, "  ");
        wrapped(s, line, 4);
    }
}

// One line a window: when, how slow, and the causes that weighed most.
static void write_windows(const struct summary *s)
{
    const struct diagnosis_array *all = &s->run->diagnoses;
    if (all->count > 1)
        heading(s, all->items[1].slice.from_ns != all->items[1].slice.to_ns ? "Windows" : "Slices");
    for (size_t i = 1; i < all->count && i <= TOP_WINDOWS; i++) {
        const struct diagnosis *diagnosis = &all->items[i];
        char label[160], line[1200];
        diagnosis_slice_label(&diagnosis->slice, s->run->begin_ns, label, sizeof label);
        int used = snprintf(line, sizeof line, "%s: ", label);
        top_causes(s, diagnosis, line + used, sizeof line - (size_t)used);
        fprintf(s->out, "  ");
        wrapped(s, line, 2);
    }
    if (all->count > TOP_WINDOWS + 1)
        fprintf(s->out, "  ... and %zu more in the report\n", all->count - TOP_WINDOWS - 1);
}

// What the load generator and the capture said against themselves.
static void write_warnings(const struct summary *s)
{
    json_t *const lists[] = {json_object_get(s->run->load, "reasons"),
                             json_object_get(s->run->load, "warnings"),
                             json_object_get(s->run->capture, "warnings")};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (size_t j = 0; j < json_array_size(lists[i]); j++) {
            const char *text = json_string_value(json_array_get(lists[i], j));
            char clean[800];
            if (!text)
                continue;
            report_clean_text(text, !s->style->unicode, clean, sizeof clean);
            fprintf(s->out, "%sBeware%s  ", warn(s, true), plain(s));
            wrapped(s, clean, 8);
        }
}

static void write_losses(const struct summary *s)
{
    const struct run_analysis *run = s->run;
    const struct {
        const char *what;
        uint64_t count;
    } losses[] = {
        {"unsent", run->unsent},
        {"timed out", run->timed_out},
        {"lost with their connection", run->lost},
        {"kernel events dropped", run->dropped_events},
        {"socket calls dropped", run->dropped_calls},
        {"samples dropped", run->dropped_samples},
        {"spans without begin or end", run->server.unpaired},
        {"gaps in the capture", run->server.lost_intervals},
        {"samples of the cores lost", run->samples.profile.lost},
    };
    char line[1600] = "", count[32];
    size_t used = 0;
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
        if (losses[i].count)
            used += (size_t)snprintf(line + used, sizeof line - used, "%s%s %s", used ? ", " : "",
                                     report_count(losses[i].count, count), losses[i].what);
    for (int state = LIFETIME_NO_CONNECTION; state < LIFETIME_STATES; state++)
        if (run->states[state])
            used += (size_t)snprintf(line + used, sizeof line - used, "%s%s with %s",
                                     used ? ", " : "", report_count(run->states[state], count),
                                     lifetime_state_name((enum lifetime_state)state));
    fprintf(s->out, "\n%sLost%s  ", strong(s), plain(s));
    fputs(warn(s, used > 0), s->out);
    wrapped(s, used ? line : "nothing: every request was answered, every record arrived", 6);
    fputs(plain(s), s->out);
}

void summary_text_write(const struct run_analysis *run, const struct summary_style *style,
                        FILE *out)
{
    struct summary s = {run, style, out};
    write_verdict(&s);
    write_numbers(&s);
    write_latency(&s);
    write_stages(&s);
    if (run->diagnoses.count)
        write_diagnosis(&s, &run->diagnoses.items[0]);
    if (run->diagnoses.count)
        summary_views_write(run, &run->diagnoses.items[0], out);
    write_samples(&s);
    write_parts(&s);
    write_windows(&s);
    write_losses(&s);
    summary_setup_write(run, !style->unicode, out);
    write_warnings(&s);
}
