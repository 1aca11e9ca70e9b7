# SPDX-License-Identifier: MIT
#
# Opens pages in one browser, one after the other: open_pages.py CHROMIUM FOLDER reads lines of "NAME WIDTH FILE[#FRAGMENT]" and
# writes what is on each page once it is ready, FOLDER/NAME.dom, and what it complained of, FOLDER/NAME.problems.
import sys

sys.dont_write_bytecode = True
from devtools import Page

browser, folder = sys.argv[1:]
page = Page(browser, f"{folder}/profile")
try:
    for line in sys.stdin:
        name, width, file = line.split()
        page.errors.clear()
        try:
            page.open(file, int(width), 1000, mobile=False)
        except TimeoutError as late:
            page.errors.append(str(late))
        with open(f"{folder}/{name}.dom", "w") as dom:
            dom.write(page.run("document.documentElement.outerHTML"))
        with open(f"{folder}/{name}.problems", "w") as problems:
            problems.writelines(f"{one}\n" for one in page.errors)
finally:
    page.close()
