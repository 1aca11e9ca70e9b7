// SPDX-License-Identifier: MIT
//
// What a core can be doing, one row each:
//
//     SPAN_KIND(NAME, number, word, label, colour, ink, means)
//
// The number is the page's, too. The word is the slices' category in Perfetto and what a line of
// analysis/diagnosis/categories.csv begins with ("task nginx,..."). On the page it has a label, a
// colour and that of text on it (NULL: the theme's own).
// clang-format off
SPAN_KIND(STOLEN,   0, "host",      "taken by the host", "#7f3c8d", "#ffffff", "the host of this virtual machine had the core for others")
SPAN_KIND(TASK,     1, "task",      "another task",      "#d55e00", "#ffffff", "a thread runs; id: thread")
SPAN_KIND(IDLE,     2, "idle",      "idle",              NULL,      NULL,      "the idle task runs")
SPAN_KIND(IRQ,      3, "interrupt", "interrupt",         "#cc79a7", "#2d1020", "a device interrupt; id: irq number")
SPAN_KIND(SOFTIRQ,  4, "softirq",   "softirq",           "#009e73", "#ffffff", "a softirq; id: its vector")
SPAN_KIND(VECTOR,   5, "interrupt", "system vector",     "#56b4e9", "#10242f", "a system vector (timer, calls from other cores); id: `enum event_vector`")
SPAN_KIND(UNKNOWN,  6, "unknown",   "records lost",      NULL,      NULL,      "records were lost here: nobody knows")
SPAN_KIND(FUNCTION, 7, "function",  "function",          "#0072b2", "#ffffff", "a function call (intel_pt and functions backends); id: see SPAN_ID_KERNEL")
// clang-format on
#undef SPAN_KIND
