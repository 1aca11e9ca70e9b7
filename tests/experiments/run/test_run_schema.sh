#!/usr/bin/env bash
# The JSON Schema for editors is one, takes every experiment of experiments/ and of the docs, and
# refuses what the program refuses for its form.
# Runs beside others: words.
. tests/experiments/run_lib.sh
python3 -c 'import jsonschema, yaml' 2>/dev/null ||
    skip "python3 lacks jsonschema or yaml; install them: apt-get install python3-jsonschema python3-yaml"
"$taillight" run --schema >"$work/schema.json" 2>"$work/cmd.err" || fail "--schema"
mkdir "$work/docs"
while read -r file; do
    awk -v out="$work/docs/$(basename "$file")" '/^```yaml$/ {n++; on = 1; next} /^```/ {on = 0}
        on {print > (out "-" n ".yaml")}' "$file"
done < <(find docs README.md -name '*.md')
cat >"$work/check.py" <<'EOF'
import glob, json, sys
import jsonschema, yaml

schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
good = glob.glob("experiments/**/*.yaml", recursive=True)
good += [path for path in glob.glob(sys.argv[2] + "/*.yaml")
         if any(line.startswith(("hosts:", "steps:")) for line in open(path))]
for path in good:
    for error in validator.iter_errors(yaml.safe_load(open(path))):
        sys.exit(f"{path}: {error.message}")
bad = ["name: x\nhots: {}", "name: x\nservers: {a: {kind: memcache}}", "load: {rate: 1}",
       "name: x\nneighbours: {n: {load: {rates: 1}}}", "name: x\nhosts: [a]",
       "name: x\ntuning: {server: [{sysctl: [a]}]}", "name: x\nservers: {a: {shim: maybe}}",
       "name: x\nmatrix: {load.rate: 3}", "name: x\nworkload: {keys: {cuont: 1}}",
       "name: x\nwith: {load: {rates: 1}}", "name: x\nsteps: [a.yaml]"]
for text in bad:
    if validator.is_valid(yaml.safe_load(text)):
        sys.exit(f"takes {text!r}")
print(f"schema: {len(good)} files taken, {len(bad)} refused")
EOF
python3 "$work/check.py" "$work/schema.json" "$work/docs" || fail "the schema"
