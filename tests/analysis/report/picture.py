# SPDX-License-Identifier: MIT
#
# The README's picture of a run's page: what was found, the bar of causes, the balloons, and the life of the message that
# the largest cause slowed most, in both themes. picture.py CHROMIUM PROFILE PAGE PREFIX writes PREFIX-light.webp and
# PREFIX-dark.webp (make picture).
import base64
import sys

sys.dont_write_bytecode = True
from devtools import Page

WIDTH = 1200  # of the page: two columns stand beside one another, as they do in most windows
MAX_BYTES = 150_000

browser, profile, file, prefix = sys.argv[1:]
page = Page(browser, profile)
try:
    for theme in ("light", "dark"):
        page.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        page.open(file, WIDTH, 900)
        if not page.click("document.querySelector('#cause-bar button.part')"):
            sys.exit(f"{file}: there is no cause to show")
        message = page.becomes("document.documentElement.dataset.message")
        page.open(f"{file}#message={message}", WIDTH, 900)  # which it slowed most, among all of them
        page.run("scrollTo(0, 0)")
        page.settle()
        # Down to both legends; what that edge would cut is left out.
        height = page.run("""(() => {
            const place = one => one.getBoundingClientRect(), edge = 16 + Math.max(...['balloon', 'timeline'].map(
                name => place(document.querySelector(`#${name}-plot .legend`)).bottom));
            const cut = [...document.querySelectorAll('h3, p')].map(place).filter(
                one => one.top < edge && one.bottom > edge);
            return Math.floor(Math.min(edge, ...cut.map(one => one.top)));
        })()""")
        picture = page.ask("Page.captureScreenshot", format="webp", quality=80, captureBeyondViewport=True,
                           clip={"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1})["data"]
        data = base64.b64decode(picture)
        if len(data) > MAX_BYTES:
            sys.exit(f"{prefix}-{theme}.webp would have {len(data)} bytes, {MAX_BYTES} at most")
        with open(f"{prefix}-{theme}.webp", "wb") as out:
            out.write(data)
        print(f"{prefix}-{theme}.webp: {len(data)} bytes, {WIDTH} x {height}")
    if page.errors:
        sys.exit("\n".join(page.errors))
finally:
    page.close()
