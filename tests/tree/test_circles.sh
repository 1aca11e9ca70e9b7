#!/usr/bin/env bash
# No circle between folders, and none between files: what a file uses of another's (its header, or a
# function or variable that it defines) never leads back to it. A pair of implementation files may
# be an exception, by being stated here with its reason.
set -eu
pairs="" # "one/file other/file", as paths without their ending
exec python3 - "$BUILD" "$pairs" <<'PY'
import collections, os, re, subprocess, sys

build, pairs = sys.argv[1], [tuple(sorted(p.split())) for p in sys.argv[2].splitlines() if p.strip()]
top = ("base", "workloads", "loadgen", "profiler", "shim", "analysis", "experiments")
uses = collections.defaultdict(set)
files = sorted(f for folder in top for f in subprocess.check_output(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard", folder], text=True).split()
    if re.search(r"\.[ch]$", f) and os.path.exists(f))
for path in files:
    stem = path[:-2]
    for included in re.findall(r'#\s*include "([^"]+)"', open(path).read()):
        if os.path.exists(included) and included[:-2] != stem and included.endswith(".h"):
            uses[stem].add(included[:-2])
objects = {f"{build}/{path[:-2]}.o": path[:-2] for path in files if path.endswith(".c")}
objects = {name: stem for name, stem in objects.items() if os.path.exists(name)}
# What the preloaded library puts in libc's place is wanted of libc.
interposed = {line.split()[-1] for line in subprocess.check_output(
    ["nm", "-D", "--defined-only", f"{build}/libtaillight-shim.so"], text=True).splitlines()}
defined, wanted = {}, collections.defaultdict(set)
for line in subprocess.check_output(["nm", "-A", *objects], text=True).splitlines():
    name, symbol = line.split(":", 1)
    kind, symbol = symbol.split()[-2:]
    if kind == "U":
        wanted[objects[name]].add(symbol)
    elif kind in "TDBR" and not (symbol in interposed and "/preload" in objects[name]):
        defined[symbol] = objects[name]
for stem, names in wanted.items():
    uses[stem] |= {defined[name] for name in names if name in defined and defined[name] != stem}

def circles(graph):
    """Tarjan's strongly connected components of more than one node."""
    sys.setrecursionlimit(10000)
    index, low, stack, found = {}, {}, [], []
    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            circle = []
            while not circle or circle[-1] != node:
                circle.append(stack.pop())
            if len(circle) > 1:
                found.append(sorted(circle))
    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found

folders = collections.defaultdict(set)
for stem, others in uses.items():
    for other in others:
        if os.path.dirname(stem) != os.path.dirname(other):
            folders[os.path.dirname(stem)].add(os.path.dirname(other))
wrong = [c for c in circles(folders)] + [c for c in circles(uses) if tuple(c) not in pairs]
for circle in wrong:
    print("circle:", " <-> ".join(circle))
    for one in circle:
        graph = uses if one in uses else folders
        print(f"  {one} uses", ", ".join(o for o in circle if o in graph.get(one, ())) or "(a folder)")
print(f"{len(files)} files in {len(folders)} folders, {len(defined)} symbols, {len(wanted)} objects: "
      f"{len(wrong)} circles")
preloaded = [stem for stem in wanted if "/preload" in stem]
sys.exit(1 if wrong or len(files) < 100 or len(wanted) < 100 or len(preloaded) < 10 else 0)
PY
