// SPDX-License-Identifier: MIT
//
// What a core can be doing, one row each:
//
//     SPAN_KIND(NAME, number, word, label, colour, ink, means)
//
// The number is the page's, too. The word is the slices' category in Perfetto and what a line of
// analysis/decomposition/categories.csv begins with ("task nginx,..."). On the page it has a label,
// a tint and a colour for text on it (NULL: the theme's own); bright colours are the causes'.
// clang-format off
SPAN_KIND(STOLEN,   0, "host",      "taken by the host", "#b3a3c2", "#1d1e21", "the host of this virtual machine had the core for others")
SPAN_KIND(TASK,     1, "task",      "another task",      "#b4b7bd", "#1d1e21", "a thread runs; id: thread")
SPAN_KIND(IDLE,     2, "idle",      "idle",              NULL,      NULL,      "the idle task runs")
SPAN_KIND(IRQ,      3, "interrupt", "interrupt",         "#d6c3d0", "#1d1e21", "a device interrupt; id: irq number")
SPAN_KIND(SOFTIRQ,  4, "softirq",   "softirq",           "#a9c9bd", "#1d1e21", "a softirq; id: its vector")
SPAN_KIND(VECTOR,   5, "interrupt", "system vector",     "#c3d3e0", "#1d1e21", "a system vector (timer, calls from other cores); id: `enum event_vector`")
SPAN_KIND(UNKNOWN,  6, "unknown",   "records lost",      NULL,      NULL,      "records were lost here: nobody knows")
SPAN_KIND(FUNCTION, 7, "function",  "function",          "#d9dde2", "#1d1e21", "a function call (intel_pt and functions backends); id: see SPAN_ID_KERNEL")
// clang-format on
#undef SPAN_KIND
