# SPDX-License-Identifier: MIT
#
# Where a sentence of the program has a count without separators: counts.py FILE... prints FILE:LINE, the format and the words after it.
# A count is an integer of a printf format that a word follows: "%zu requests", "%u of". It is written by TEXT_COUNT ("12,345 requests").
# No counts: sizes, times and other units; what a word in front names (line, port, core: NUMBERED); formats of files and of
# commands, which programs read (a quote or "=" beside the number, scanf, "#" in front); numbers that are small by their kind (SMALL), and an int
# of what is not LARGE by its kind.
import re
import sys

UNITS = "bytes|byte|bits|[kKMGT]i?B|ns|us|ms|s|min|Hz|ticks|ppm|cycles|characters|letters"
NUMBERED = ("line|offset|feature|thread|port|core|request|message|byte|record|attribute|reading|number|operation|connection|sample|word|window"
            "|process|pid|errno|signal|status|version|step|type|database|slot|shard|event|clock|character|protocol|exit|code|level|day|position|row"
            "|column|run|file|agent|address|cpu|CPU|kind|program|cycle")
LARGE = "requests?|connections?|samples?|events?|records?|keys|packets?|messages?|calls|errors?|times|answered|in flight|nodes"
SMALL = "cores?|threads?|processes|workers?|programs|hosts|machines|interfaces|backends?|hops|ports|columns|options|files? at most|digits"
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
PIECES = re.compile(r'(?:"(?:[^"\\\n]|\\.)*"|\bPRI[uid](?:8|16|32|64)\b)(?:\s*(?:"(?:[^"\\\n]|\\.)*"|\bPRI[uid](?:8|16|32|64)\b))*')
PIECE = re.compile(r'"((?:[^"\\\n]|\\.)*)"|\bPRI([uid])(?:8|16|32|64)\b')
COUNT = re.compile(r'(?<!%)((?:%%)*)%[-+ 0#]*[0-9]*(zu|zd|llu|lld|lu|ld|u|d)(?![a-z])(?: ?%s)?( [a-z]+| (?=%s))')


def uncommented(text):
    blank = lambda found: found.group(0) if found.group(0)[0] == '"' else re.sub(r"[^\n]", " ", found.group(0))
    return re.sub(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', blank, text, flags=re.S)


def raw_counts(text):
    """Of C: where in the text, and the format from the count on."""
    for literal in PIECES.finditer(uncommented(text)):
        words = "".join(piece.group(1) if piece.group(1) is not None else "ll" + piece.group(2) for piece in PIECE.finditer(literal.group(0)))
        before_call = text[max(0, literal.start() - 200):literal.start()]
        if re.search(r'scanf\([^;]*$', before_call) or words.startswith("#") or not re.search(r"(?<![%a-z])[a-z]{3}", words):
            continue
        for found in COUNT.finditer(words):
            before, after = words[:found.start()], words[found.start(3):]
            if re.search(rf'(?:\b(?:{NUMBERED})s? |[-:/=.,x"\'\[#])$', before) and not re.search(r'[a-z)s][,:;.] ?$', before):
                continue
            if re.match(rf' ?(?:{UNITS}|{SMALL}|to|and|is|must|at)\b', after) or '\\"' in after[:3]:
                continue
            if found.group(2) in "ud" and not re.match(rf" (?:[a-z]+ )?(?:{LARGE})\b", after):
                continue
            yield literal.start(), words[found.start():found.start() + 40]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        with open(name) as source:
            text = source.read()
        for at, near in raw_counts(text):
            print(f"{name}:{text.count(chr(10), 0, at) + 1}: {near}")
