# SPDX-License-Identifier: MIT
#
# Whether each time in a text is written in the one way in which times are: three significant digits in the unit in
# which they are below 1000; an instant of a run, or a setting, in whole seconds or to the millisecond; a tick of an
# axis without the zeros at its end.
# So two statements about the same number are the same characters. written_times.py FILE... (a page's DOM or plain text).
import html
import re
import sys
from decimal import Decimal

# Not what is a range's beginning ("1-5 s"), another number's end, or a word behind ("5 s-long").
TIME = re.compile(r"(?<![\w.,:/=-])(\d[\d,]*(?:\.\d+)?) (ns|us|µs|ms|s)(?![\w/])")


def shown(page):
    """What a reader of a page sees, without the plots' axes."""
    page = re.sub(r"<(script|style|svg)\b.*?</\1>", "", page, flags=re.S)
    return html.unescape(re.sub(r"<[^>]+>", "\n", page))


def is_so_written(number, unit):
    """Whether the number is what the formatter makes of it."""
    unit = unit.replace("µ", "u")
    if "," in number:
        return False
    value, (whole, _, fraction) = Decimal(number), number.partition(".")
    if unit == "s" and (fraction == "" or len(fraction) == 3):
        return True
    if value == 0:
        return fraction == ""
    if unit == "ns":
        return fraction == "" and value < 1000
    if unit != "s" and value >= 1000 or value < 1:
        return False
    return len(whole) + len(fraction) == 3


def otherwise_written(text):
    """Each time that is not so written, with what stands around it."""
    text = " ".join(text.split())
    return [text[max(0, one.start() - 40):one.end() + 10] for one in TIME.finditer(text)
            if not is_so_written(one[1], one[2])]


if __name__ == "__main__":
    # A check that can fail.
    assert otherwise_written("p99 is 4087.5 us beside 4.09 ms, and 1000 ms, 12.34 us and 0.5 ms") and \
        len(otherwise_written("4087.5 us, 4.09 ms, 1000 ms, 12.34 us, 0.5 ms, 1,234 us, 999 ns, 10.0 us")) == 5
    wrong = 0
    for name in sys.argv[1:]:
        content = open(name).read()
        for where in otherwise_written(shown(content) if "<" in content[:200] else content):
            wrong += 1
            print(f"FAIL: {name.rsplit('/', 1)[-1]}: a time is written in another way: {where}")
    sys.exit(1 if wrong else 0)
