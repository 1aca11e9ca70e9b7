#!/usr/bin/env bash
# What is wrong with a file, an option or the machine is said in one line, with the right exit code,
# and nothing is started.
# Runs beside others: words.
. tests/experiments/run_lib.sh

# refused EXIT PATTERN COMMAND...: that exit code, and one line on stderr that matches.
refused() {
    local wanted=$1 pattern=$2 status
    shift 2
    "$@" >"$work/out" 2>"$work/cmd.err"
    status=$?
    [ $status -eq "$wanted" ] || fail "exit $status instead of $wanted: $*"
    grep -Eq "$pattern" "$work/cmd.err" || fail "does not say \"$pattern\": $*"
    [ ! -s "$work/out" ] || fail "prints on stdout: $*"
}

good='experiments/quickstart.yaml'
broken() { sed "$1" $good >"$work/bad.yaml"; }

broken 's/connections: 16/conections: 16/'
refused 2 'it takes --plots DIR' "$taillight" report /nowhere --png
refused 2 'bad.yaml:[0-9]+:[0-9]+: unknown key `conections`; did you mean `connections`\?' \
    "$taillight" run --check "$work/bad.yaml"
line=$(grep -n 'conections' "$work/bad.yaml" | cut -d: -f1)
grep -q "bad.yaml:$line:" "$work/cmd.err" || fail "the line is not $line"
broken 's/to: cache/to: cahce/'
refused 2 'bad.yaml:[0-9]+:[0-9]+: to: no server is called `cahce`; did you mean `cache`' \
    "$taillight" run "$work/bad.yaml" --out "$work/run"
broken 's/rate: 20k/rate: quick/'
refused 2 'bad.yaml:[0-9]+:[0-9]+: rate: "quick" is not a number' "$taillight" run "$work/bad.yaml"
broken 's/cores: \[0\]/cores: [4000]/'
refused 2 'bad.yaml:[0-9]+:[0-9]+: cores: "4000"|has no core 4000' "$taillight" run "$work/bad.yaml"
broken 's/kind: netns/kind: ssh/'
refused 2 'bad.yaml:[0-9]+:[0-9]+: a host of kind ssh needs `address: user@host`' "$taillight" run "$work/bad.yaml"
broken 's/^workload:/gates: [{percentile: p99}]\nworkload:/'
refused 2 'bad.yaml:[0-9]+:9: a gate has `max` or `max_increase`' "$taillight" run "$work/bad.yaml"
printf 'task nginx,web tier\ntask redis\n' >"$work/own.csv"
broken 's/^diagnose:.*/diagnose: {slice: p99-100, categories: own.csv}/'
refused 2 'bad.yaml: diagnose: categories: .*/own.csv:2: no comma' "$taillight" run --check "$work/bad.yaml"
refused 2 'the categories: cannot read .*/none.csv' "$taillight" run --check $good --categories "$work/none.csv"
refused 2 '\-\-set load.rtae=1: unknown key `load.rtae`; did you mean `load.rate`' "$taillight" run --check $good --set load.rtae=1
refused 2 '\-\-set: .*all.yaml is a study' "$taillight" run --check experiments/memcached-case-study/all.yaml --set load.rate=1
printf 'name: [\n' >"$work/bad.yaml"
refused 2 'bad.yaml:2:1: ' "$taillight" run "$work/bad.yaml"
head -c 3000 /dev/urandom >"$work/bad.yaml"
refused 2 'bad.yaml' "$taillight" run "$work/bad.yaml"
refused 2 '\-\-junit: cannot create /nowhere/gates.xml' "$taillight" run $good --out "$work/run" --junit /nowhere/gates.xml
[ ! -e "$work/run" ] || fail "a refused experiment made a folder"
refused 2 '\-\-junit: cannot create' "$taillight" compare /nowhere /nowhere --junit /nowhere/gates.xml
refused 1 'cannot create /nowhere/page.html' "$taillight" compare /nowhere /nowhere --out /nowhere/page.html
refused 1 'cannot create /nowhere/p' "$taillight" report /tmp --perfetto /nowhere/p

refused 2 'cannot read .*/none.yaml' "$taillight" run "$work/none.yaml"
refused 2 'takes one experiment file' "$taillight" run
refused 2 'takes one experiment file' "$taillight" run $good $good
refused 2 'unknown option' "$taillight" run --chekc $good
refused 2 'out DIR is needed' "$taillight" capture --port 1
refused 2 'port is needed' "$taillight" capture --out "$work/capture"

# --check of a good file runs nothing and prints the plan.
claim_port
experiment "$work/good.yaml" local 1k 1s <<<"servers: {cache: {kind: memcached, port: $port}}"
if [ "$(nproc)" -ge 2 ]; then
    "$taillight" run --check "$work/good.yaml" >"$work/plan" 2>"$work/cmd.err" || fail "--check fails"
    grep -q 'server cache: memcached on host server, port '$port "$work/plan" || fail "no plan"
    sed -i 2d "$work/own.csv"
    "$taillight" run --check --json "$work/good.yaml" --categories "$work/own.csv" >"$work/plan" ||
        fail "--check fails with categories"
    grep -q '"categories": ".*/own.csv"' "$work/plan" || fail "categories are not in the plan"

    # A program that is not there.
    refused 1 'no command `memcached`.*apt-get install memcached' \
        env PATH=/nonexistent "$taillight" run "$work/good.yaml" --out "$work/run"
    [ ! -e "$work/run" ] || fail "a run without its server made a folder"

    # A folder that is in use.
    mkdir "$work/full" && touch "$work/full/file"
    refused 2 'full has something in it already' \
        "$taillight" run "$work/good.yaml" --out "$work/full" --quiet

    # Who mends why a run failed before its load asks for the same folder again. What measured
    # something, or has something in it that no run puts there, stays as it is.
    dead() { refused 1 'ended with exit code 1' "$taillight" run "$work/dead.yaml" --out "$work/again" --quiet "$@"; }
    stays() {
        refused 2 "again $1" "$taillight" run "$work/dead.yaml" --out "$work/again" --quiet
        [ -e "$work/again/$2" ] || fail "$2 is gone"
    }
    cat >"$work/dead.yaml" <<END
name: dead
hosts: {here: {kind: local}}
servers: {dead: {host: here, kind: command, command: ["false"], port: $port}}
workload: {protocol: memcached}
load: {from: here, rate: 1k, connections: 1, duration: 1s}
capture: {backend: none}
END
    dead
    dead --set workload.keys.count=5
    grep -q 'count: 5' "$work/again/experiment.yaml" || fail "the second attempt has the first's file"
    ln -s /etc/hostname "$work/again/notes" && stays 'has a run in it already \(.taillight analyze' notes
    rm "$work/again/notes" && dead
    sed -i 's/failed before its load began/failed/' "$work/again/commands.log"
    stays 'has a run in it already \(.taillight analyze .*rm -r ' logs/server-dead.log
    touch "$work/again/summary.json"
    stays 'has a run in it already \(.taillight report ' logs/server-dead.log
    rm -r "$work/again"
    printf 'repetitions: {count: 2}\n' >>"$work/dead.yaml"
    dead
    dead
    mkdir "$work/again/repetition-2" && stays 'has something in it already' repetition-1
fi
command -v memcached >/dev/null && [ "$(nproc)" -ge 2 ] ||
    skip "memcached and two cores are needed for the rest: a port that is taken"

# A port that is taken.
user=()
[ "$(id -u)" = 0 ] && user=(-u root)
memcached "${user[@]}" -l 127.0.0.1 -p $port -U 0 &
await ports_listening $port
refused 1 "port $port for the server \`cache\` is taken" \
    "$taillight" run "$work/good.yaml" --out "$work/run" --quiet
check_not_whole "$work/run"
kill %1
wait %1 2>/dev/null
check_nothing_left "$work/run" $port
