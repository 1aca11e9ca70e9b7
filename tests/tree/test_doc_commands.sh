#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Every command of ours that the README, the docs, the manual and the examples' comments show is one that there is, and
# each of its options is one that it lists, with a value where it takes one.
set -eu
command -v python3 >/dev/null || { echo "no python3 to read the docs with"; exit 77; }
files=$(ls README.md docs/*.md docs/man/*.1; find experiments \( -name '*.md' -o -name '*.yaml' \))
python3 - "${BUILD:-build}/taillight" $files <<'END'
import re, subprocess, sys

def lists(command):
    """Its options, long and short, and whether each takes a value; None: no command."""
    said = [subprocess.run([sys.argv[1], command, *more, "--help"], capture_output=True, text=True)
            for more in ([], ["--pt", "FILE"])]  # analyze has other options for a trace
    if said[0].returncode:
        return None
    help = said[0].stdout + (said[1].stdout if command == "analyze" else "")
    rows = re.findall(r"^  (?:(-\w), |    )(--[a-z-]+)( [A-Z'\[{1])?", help, re.M)
    return {name: bool(value) for short, long, value in rows for name in (short, long) if name}

commands, shown, wrong = {}, 0, 0
for path in sys.argv[2:]:
    text = open(path, encoding="utf-8").read()
    if path.endswith(".1"):  # .Dl lines and what .Ql quotes are commands as one types them
        text = "\n".join(f"`{line}`" for line in re.findall(r"^\.(?:Dl|Ql) (.*)", text, re.M)).replace("\\-", "-").replace("\\(aq", "'")
    text = re.sub(r"\\\n\s*|\n#\s{2,}(?=--)", " ", text)  # lines that go on
    for example in re.findall(r"(?:^|[`;|&]\s*|#\s+|sudo )(?:\S*/)?taillight ([a-z]+ [^`\n;|]*|[a-z]+(?=`))", text, re.M):
        command, *words = re.sub(r"\s#.*|'[^']*'|\"[^\"]*\"|\$\([^)]*\)", lambda one: "" if "#" in one[0][:2] else " VALUE", example).split()
        if command not in commands:
            commands[command] = lists(command)
        options = commands[command]
        if options is None:
            if words and words[0].startswith("-"):
                print(f"{path}: there is no command: taillight {example}")
                wrong += 1
            continue
        shown += 1
        for at, word in enumerate(words):
            name, has_value = word.split("=")[0].rstrip(".,)]"), "=" in word
            if not re.fullmatch(r"--[a-z][a-z-]*|-[a-zA-Z]", name):
                continue
            if name not in options:
                print(f"{path}: {command} has no {name}: taillight {example}")
                wrong += 1
            elif options[name] and not has_value and at + 1 < len(words) and re.match(r"--[a-z]", words[at + 1]):
                print(f"{path}: {name} has no value: taillight {example}")
                wrong += 1
print(f"{shown} commands looked at, {wrong} wrong")
sys.exit(wrong > 0 or shown < 50)
END
