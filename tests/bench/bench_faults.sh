#!/usr/bin/env bash
# Real faults on the real kernel: how often the diagnosis blames the right cause, how much time it
# attributes to it, and how much of what happened it explains. ROUNDS=N runs every fault N times,
# CLASS=NAME that one alone.
. tests/faults/faults_lib.sh
need_faults
rounds=${ROUNDS:-1}
all="$work/scores"
print_header
while read -r class; do
    for ((round = 0; round < rounds; round++)); do
        scores=$(fault_score "$class" "$(duration_of "$class")" </dev/null) || {
            status=$?; echo "$scores"
            [ $status -eq 77 ] && continue 2 # this machine cannot be brought to it
            exit 1
        }
        print_scores "$scores"
        jq -c --arg explained "$(column "$class" 6)" '. + {explained: $explained}' <<<"$scores" >>"$all"
    done
done < <(classes | grep -xF -- "${CLASS:-$(classes)}")
jq -s '
    def metric(unit): {value: (sort | .[length / 2 | floor]), unit: unit, runs: length, min: min, max: max};
    def of(key; unit): [.[] | select(.affected > 0) | key] | metric(unit);
    {name: "faults", metrics: (
        (group_by(.name) | map(
            {key: (.[0].name + ": top cause right"), value: of(100 * .right / .affected; "%")},
            {key: (.[0].name + ": attributed of injected"),
             value: of(100 * .attributed_ms / .injected_ms; "%")},
            {key: (.[0].name + ": coverage"), value: of(100 * .coverage_median; "%")},
            {key: (.[0].name + ": lowest coverage"), value: of(100 * .coverage_min; "%")})
            | from_entries)
        + {"coverage of a class, those that the backend sees":
               [.[] | select(.explained == "yes" and .affected > 0) | 100 * .coverage_median] | metric("%")}
        | with_entries(.key |= gsub(" "; "_")))}' "$all" >"$BUILD/bench/faults.json" || exit 1
jq -r '.metrics["coverage_of_a_class,_those_that_the_backend_sees"]
    | "coverage over the classes that the backend sees: median \(.value) %, lowest \(.min) %"' \
    "$BUILD/bench/faults.json"
