#!/usr/bin/env bash
# Every experiment of experiments/ and every example of the docs is a valid one.
# Runs beside others: words.
. "$(dirname "$0")/../run_lib.sh"
[ "$(nproc)" -ge 2 ] || skip "the examples name two cores; this machine has one for us"
checked=0
check() {
    "$taillight" run --check "$1" >"$work/plan" 2>"$work/cmd.err" || fail "$1 is refused"
    checked=$((checked + 1))
}
while read -r file; do check "$file"; done < <(find experiments -name '*.yaml')
# Blocks of YAML that are experiments: those that have hosts; or studies, whose steps these are.
for step in base candidate; do cp experiments/quickstart.yaml "$work/$step.yaml"; done
while read -r file; do
    awk -v out="$work/example" '/^```yaml$/ {n++; on = 1; next} /^```/ {on = 0}
        on {print > (out "-" n ".yaml")}' "$file"
    for example in "$work"/example-*.yaml; do
        [ -e "$example" ] && grep -Eq '^(hosts|steps):' "$example" && check "$example"
        rm -f "$example"
    done
done < <(find docs README.md -name '*.md')
[ "$checked" -ge 2 ] || fail "only $checked examples were found"
echo "examples: $checked are valid"
