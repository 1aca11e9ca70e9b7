#!/usr/bin/env bash
# docs/ground-truth.md shows the table of faults as it is.
while read -r row; do
    shown="| $(sed -e 's/ *| */ | /g' -e 's/;/, /g' <<<"$row") |"
    grep -qxF -- "$shown" docs/ground-truth.md || { echo "docs/ground-truth.md lacks the row: $shown"; exit 1; }
done < <(awk -F ' *[|] *' '!/^#/ && NF == 6 { print $1 " | " $3 " | " $4 " | " $5 " | " $6 }' \
    tests/faults/faults.table)
