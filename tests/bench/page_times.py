# SPDX-License-Identifier: MIT
#
# Opens pages that use themselves (page_driver.html) in one browser, alternated, and writes the times that each of them
# tells: page_times.py CHROMIUM PROFILE ROUNDS NAME=FILE... writes lines of "NAME MS STEP" (bench_page.sh).
import sys

sys.dont_write_bytecode = True
sys.path.append("tests/analysis/report")
from devtools import Page

browser, profile, rounds, *pages = sys.argv[1:]
page = Page(browser, profile)
# A page's main thread since it was opened, by its processor's clock.
page.ask("Performance.enable", timeDomain="threadTicks")
try:
    for _ in range(int(rounds)):
        for name, file in (one.split("=", 1) for one in pages):
            page.open(file, 1400, 1000, mobile=False)
            spent = {one["name"]: one["value"] for one in page.ask("Performance.getMetrics")["metrics"]}
            told = page.becomes("document.getElementById('times').textContent", patience_s=120)
            print(f"{name} {1000 * spent['TaskDuration']:.1f} ready: processor time of the page's thread")
            for line in told.splitlines():
                print(f"{name} {line}")
    if page.errors:
        sys.exit("\n".join(page.errors))
finally:
    page.close()
