// SPDX-License-Identifier: MIT
#include "analysis/report/terminal/summary_pieces.h"

#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"

struct summary_style summary_style_for(FILE *stream)
{
    struct summary_style style = {.width = text_width(stream)};
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
    return style;
}

const char *summary_strong(const struct summary *s)
{
    return s->style->colour ? "\033[1m" : "";
}

const char *summary_faint(const struct summary *s)
{
    return s->style->colour ? "\033[2m" : "";
}

const char *summary_warn(const struct summary *s, bool bad)
{
    return s->style->colour && bad ? "\033[33m" : "";
}

const char *summary_plain(const struct summary *s)
{
    return s->style->colour ? "\033[0m" : "";
}

const char *summary_duration(double ns, char out[32])
{
    return units_format_ns(ns, out, 32);
}

void summary_field(const struct summary *s, const char *text, int width)
{
    int left = width;
    for (; *text && (left > 0 || ((unsigned char)*text >> 6) == 2); text++) {
        left -= ((unsigned char)*text >> 6) != 2;
        fputc(*text, s->out);
    }
    fprintf(s->out, "%*s", left, "");
}

void summary_label(const struct summary *s, const char *text, int indent, int width)
{
    fprintf(s->out, "%*s", indent, "");
    if (text_columns(text) <= width) {
        summary_field(s, text, width);
        return;
    }
    summary_wrapped(s, text, indent);
    fprintf(s->out, "%*s", indent + width, "");
}

void summary_bar(const struct summary *s, double part, int cells)
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

void summary_wrapped(const struct summary *s, const char *text, int indent)
{
    text_wrap(s->out, text, indent, s->style->width);
}

void summary_heading(const struct summary *s, const char *text)
{
    fprintf(s->out, "\n%s%s%s\n", summary_strong(s), text, summary_plain(s));
}

void summary_heading_field(const struct summary *s, const char *text, int width)
{
    fprintf(s->out, "\n%s", summary_strong(s));
    summary_field(s, text, width);
    fprintf(s->out, "%s", summary_plain(s));
}

const char *summary_cause_mark(const struct cause *cause)
{
    return cause->apart ? " +" : cause->explains ? "" : " *";
}

void summary_explained(const struct summary *s, const struct diagnosis *diagnosis, const char *by)
{
    char line[200];
    snprintf(line, sizeof line,
             "explained%s: %s of the extra time; per message %s (median), %s (worst)", by,
             TEXT_SHARE(diagnosis->coverage_total, 1), TEXT_SHARE(diagnosis->coverage_median, 1),
             TEXT_SHARE(diagnosis->coverage_min, 1));
    fprintf(s->out, "  ");
    summary_wrapped(s, line, 4);
}

void summary_explain_marks(const struct summary *s, const struct diagnosis *diagnosis, size_t shown)
{
    bool located = false, apart = false;
    for (size_t i = 0; i < diagnosis->causes.count && i < shown; i++) {
        const struct cause *cause = &diagnosis->causes.items[i];
        located |= !cause->explains && !cause->apart;
        apart |= cause->apart;
    }
    if (located)
        fprintf(s->out, "  * where the time was lost, but not why: not counted as explained\n");
    if (apart)
        fprintf(s->out,
                "  + not the server's doing: Taillight's, or the virtual machine's host's\n");
}
