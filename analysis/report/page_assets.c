// SPDX-License-Identifier: MIT
//
// The assembler reads the files, so building needs no other tool. Paths are from the top of the
// tree, where make runs; the Makefile names them as what this object depends on.
#include "analysis/report/page_assets.h"

#define ASSET(symbol, file)                                                                        \
    __asm__(".section .rodata\n"                                                                   \
            ".local " #symbol "_begin, " #symbol "_end\n" #symbol                                  \
            "_begin: .incbin \"analysis/report/" file "\"\n" #symbol "_end: .byte 0\n"             \
            ".previous\n");                                                                        \
    extern const char symbol##_begin[], symbol##_end[];

ASSET(page_html, "page.html")
ASSET(page_head_html, "page_head.html")
ASSET(page_style_html, "page_style.html")
ASSET(page_foot_html, "page_foot.html")
ASSET(page_css, "page.css")
ASSET(page_plot_js, "page_plot.js")
ASSET(page_latency_js, "page_latency.js")
ASSET(page_causes_js, "page_causes.js")
ASSET(page_boxes_js, "page_boxes.js")
ASSET(page_timeline_js, "page_timeline.js")
ASSET(page_js, "page.js")
ASSET(page_blocking_js, "page_blocking.js")
ASSET(page_views_js, "page_views.js")
ASSET(page_compare_plots_js, "page_compare_plots.js")
ASSET(page_categories_js, "page_categories.js")
ASSET(page_lifetimes_js, "page_lifetimes.js")
ASSET(page_setup_js, "page_setup.js")
ASSET(page_samples_js, "page_samples.js")
ASSET(page_compare_html, "page_compare.html")
ASSET(page_compare_js, "page_compare.js")
ASSET(page_runs_js, "page_runs.js")
ASSET(page_history_html, "page_history.html")
ASSET(page_history_js, "page_history.js")
ASSET(page_set_html, "page_set.html")
ASSET(page_set_js, "page_set.js")
ASSET(page_load_html, "page_load.html")
ASSET(page_load_js, "page_load.js")
ASSET(page_trace_html, "page_trace.html")
ASSET(page_trace_js, "page_trace.js")

const struct page_asset page_assets[] = {
    {"page.html", page_html_begin, page_html_end},
    {"page_head.html", page_head_html_begin, page_head_html_end},
    {"page_style.html", page_style_html_begin, page_style_html_end},
    {"page_foot.html", page_foot_html_begin, page_foot_html_end},
    {"page.css", page_css_begin, page_css_end},
    {"page_plot.js", page_plot_js_begin, page_plot_js_end},
    {"page_latency.js", page_latency_js_begin, page_latency_js_end},
    {"page_causes.js", page_causes_js_begin, page_causes_js_end},
    {"page_boxes.js", page_boxes_js_begin, page_boxes_js_end},
    {"page_timeline.js", page_timeline_js_begin, page_timeline_js_end},
    {"page.js", page_js_begin, page_js_end},
    {"page_blocking.js", page_blocking_js_begin, page_blocking_js_end},
    {"page_views.js", page_views_js_begin, page_views_js_end},
    {"page_compare_plots.js", page_compare_plots_js_begin, page_compare_plots_js_end},
    {"page_categories.js", page_categories_js_begin, page_categories_js_end},
    {"page_lifetimes.js", page_lifetimes_js_begin, page_lifetimes_js_end},
    {"page_setup.js", page_setup_js_begin, page_setup_js_end},
    {"page_samples.js", page_samples_js_begin, page_samples_js_end},
    {"page_compare.html", page_compare_html_begin, page_compare_html_end},
    {"page_compare.js", page_compare_js_begin, page_compare_js_end},
    {"page_runs.js", page_runs_js_begin, page_runs_js_end},
    {"page_history.html", page_history_html_begin, page_history_html_end},
    {"page_history.js", page_history_js_begin, page_history_js_end},
    {"page_set.html", page_set_html_begin, page_set_html_end},
    {"page_set.js", page_set_js_begin, page_set_js_end},
    {"page_load.html", page_load_html_begin, page_load_html_end},
    {"page_load.js", page_load_js_begin, page_load_js_end},
    {"page_trace.html", page_trace_html_begin, page_trace_html_end},
    {"page_trace.js", page_trace_js_begin, page_trace_js_end},
    {0},
};
