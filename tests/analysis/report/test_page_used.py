# SPDX-License-Identifier: MIT
#
# Uses a run's page with real clicks and keys, and looks at the labels of the curves of several:
# test_page_used.py CHROMIUM PROFILE PAGE... (test_page_used.sh).
import os
import sys

sys.dont_write_bytecode = True
from devtools import Page

failures = 0
ROOT = "document.documentElement"


def check(what, good, seen=""):
    global failures
    failures += not good
    print(f"{'ok   ' if good else 'FAIL '} {what}{'' if good else f': {seen}'}", flush=True)


# Of which message a timeline is shown, in how many colours, with which causes, and whether it is in the window.
TIMELINE = """(() => {
    const canvas = document.querySelector('#timeline-plot canvas'), box = canvas?.getBoundingClientRect(), colours = new Set();
    const pixels = canvas?.width ? canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data : [];
    for (let i = 0; i < pixels.length; i += 4) if (pixels[i + 3]) colours.add(pixels[i] << 16 | pixels[i + 1] << 8 | pixels[i + 2]);
    return {message: document.documentElement.dataset.message, colours: colours.size,
            causes: document.getElementById('message-causes').textContent,
            there: Boolean(box) && box.top < innerHeight && box.bottom > 0}; })()"""


# Sections are drawn one after the other, each in a timer of its own (drawLater() of page_causes.js): behind them all.
DRAWN = "new Promise(done => { let left = 40; const next = () => left-- ? setTimeout(next) : done(); next(); })"


def two_clicks(page, file):
    """From the open page to the timeline of a slow message of each cause that the bar offers."""
    page.open(file, 1400, 900)
    parts = "[...document.querySelectorAll('#cause-bar button.part')]"
    names = page.run(f"{parts}.map(one => one.getAttribute('aria-label').replace(/ \\d+ %: .*/, ''))")
    check("the bar offers causes", len(names) >= 2, names)
    for at, name in enumerate(names):
        if 0 < at < len(names) - 1 and not os.environ.get("THOROUGH"):
            continue
        page.open(file, 1400, 900)
        first = page.click(f"{parts}[{at}]")
        chosen = page.becomes(f"{parts}[{at}].getAttribute('aria-pressed') === 'true' && !document.getElementById('category-note').hidden")
        # Any of the list that has its timeline, but the one that is shown already: the click is to be seen to do something.
        row = ("[...document.querySelectorAll('#message-table tbody tr')].filter(one => one.children[1].textContent === '●')"
               ".sort((a, b) => (a.getAttribute('aria-selected') === 'true') - (b.getAttribute('aria-selected') === 'true'))[0]")
        page.run(DRAWN)  # the list is that of the cause, and stays
        message = page.run(f"{row}?.children[2].textContent")
        second = page.click(row)
        seen = page.becomes(TIMELINE, lambda one: one["message"] == message and one["colours"] > 5 and one["there"])
        check(f"{name}: the timeline of message {message}, in two clicks",
              first and chosen and second and seen["message"] == message and seen["colours"] > 5 and name in seen["causes"],
              f"clicks {first} {chosen} {second}; {seen}")
        check(f"{name}: what was opened is in sight", seen["there"], seen)


# What a reader sees of a plot that keys may change: what is told beside it, chosen, focused, pressed, drawn.
STATE = """(() => {
    const canvas = document.activeElement.closest('canvas') ?? document.activeElement.querySelector('canvas');
    let picture = 0;
    if (canvas)
        for (const pixel of new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer))
            picture = Math.imul(picture ^ pixel, 16777619);
    return JSON.stringify([document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent,
        document.documentElement.dataset.message, document.getElementById('category-note').textContent, picture,
        document.activeElement.getAttribute('aria-label'), document.activeElement.getAttribute('aria-pressed'),
        [...document.querySelectorAll('.flame rect')].slice(0, 40).map(one => one.getAttribute('width')).join()]); })()"""
# The same, and to where the page has scrolled: as it does with Enter, to what is opened; with arrows it might by itself.
OPENED = f"scrollY + {STATE}"
# Every plot that is to be seen, by the id of what it is in.
PLOTS = """[...document.querySelectorAll('.plot, .bar')].filter(one => one.checkVisibility() && one.querySelector('canvas, svg, button, span') &&
    one.getBoundingClientRect().height > 8)"""
OPENS = {"balloon-plot", "heat-plot", "box-plot", "cause-bar", "latency-plot", "hops-heat"}


def unfold(page):
    """All of the page, each piece when it is drawn."""
    page.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    page.becomes("document.querySelectorAll('.plot:empty').length === 0")
    for _ in range(10):
        page.settle()


def changes(page, key, state, patience_s):
    """Whether a key changes what a reader sees, as soon as that."""
    page.run(f"window.before = {state}; null")
    page.key(key)
    return page.becomes(f"{state} !== window.before", patience_s=patience_s)


def keyboard(page, file):
    """Each plot: Tab reaches it, arrows move its selection, Enter opens what is selected."""
    page.open(file, 1400, 900)
    unfold(page)
    page.run(f"window.plots = {PLOTS}; window.plots.forEach((one, i) => one.dataset.plot = i)")
    names = page.run("window.plots.map(one => one.id || one.closest('[id]').id)")
    page.run("document.body.tabIndex = -1; document.body.focus()")
    reached, steps = {}, page.run("document.querySelectorAll('a, button, [tabindex], input, summary').length") + 20
    for _ in range(steps):
        if len(reached) == len(names):
            break
        page.key("Tab")
        at = page.run("document.activeElement.closest('[data-plot]')?.dataset.plot ?? null")
        if at is None or at in reached:
            continue
        name, moved = names[int(at)], False
        if name == "timeline-plot":  # its arrows move the window, once that is smaller than the whole
            page.key("+")
        for key, patience_s in (("ArrowRight", .1), ("ArrowLeft", .1), ("ArrowDown", .1), ("ArrowUp", .1), ("ArrowRight", 1), ("ArrowDown", 1)):
            moved = moved or changes(page, key, STATE, patience_s)
        opened = name in OPENS and changes(page, "Enter", OPENED, 1)
        reached[at] = (moved, opened)
        page.key("Enter") if name in ("box-plot", "cause-bar") else None  # what was chosen is let go
        page.run("window.plots.forEach((one, i) => { if (!one.isConnected) return; one.dataset.plot = i; })")
    for at, name in enumerate(names):
        moved, opened = reached.get(str(at), (False, False))
        check(f"keys: Tab reaches {name}", str(at) in reached)
        check(f"keys: arrows move what is chosen in {name}", moved)
        if name in OPENS:
            check(f"keys: Enter opens what is chosen in {name}", opened)


def telephone(page, file):
    """In 390 px nothing is wider than the page, nor a plot than its place."""
    page.open(file, 390, 844)
    unfold(page)
    wide = page.run(f"{ROOT}.scrollWidth")
    check("390 px: the page is not wider", wide <= 390, f"{wide} px")
    wide = page.run(f"{PLOTS}.filter(one => one.scrollWidth > one.clientWidth + 1 || one.getBoundingClientRect().right > 391)"
                    ".map(one => `${one.id || one.closest('[id]').id}: ${one.scrollWidth} of ${one.clientWidth}`)")
    check("390 px: no plot is wider than its place", wide == [], wide)


# Whether the words over a plot lie on the curve: the line's corners, and what is between two of them.
OVERLAPS = """(() => {
    const plot = document.querySelector('#latency-plot svg'), lies = [];
    for (const path of plot.querySelectorAll('path:not([fill="var(--band)"])')) {
        const length = path.getTotalLength(), points = [];
        for (let at = 0; at <= length; at += 1) points.push(path.getPointAtLength(at));
        for (const label of plot.querySelectorAll('text:not(.muted)')) {
            const box = label.getBBox();
            if (points.some(({x, y}) => x > box.x && x < box.x + box.width && y > box.y + 2 && y < box.y + box.height - 3))
                lies.push(`${label.textContent} on ${path.getAttribute('stroke')}`);
        }
    }
    return lies; })()"""


def labels(page, file, width):
    """No label lies over the latency curve, and nothing is wider than the page."""
    page.open(file, width, 900)
    wide = page.run(f"{ROOT}.scrollWidth")
    check(f"{file.rsplit('/', 1)[-1]}, {width} px: the page is not wider", wide <= width, f"{wide} px")
    over = page.run(OVERLAPS)
    check(f"{file.rsplit('/', 1)[-1]}, {width} px: no label lies over the latency curve", over == [], over)


def main():
    page = Page(sys.argv[1], sys.argv[2])
    try:
        usual = sys.argv[3]
        two_clicks(page, usual)
        keyboard(page, usual)
        telephone(page, usual)
        for file in sys.argv[3:]:
            for width in (1400, 390):
                labels(page, file, width)
        check("the page has no problems", page.errors == [], page.errors)
    finally:
        page.close()
    sys.exit(1 if failures else 0)


main()
