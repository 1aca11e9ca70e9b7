#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The plots for papers as a browser draws them: no text over another or out of the picture, no name out of its box, no
# line through a stamp's name. PLOTS=DIR: those of a real run.
. tests/analysis/report/browser_lib.sh
need_browser
plots=${PLOTS:-}
if [ -z "$plots" ]; then
    plots=$folder/plots
    mkdir "$plots"
    for variant in plain odd; do
        "$BUILD/tests/analysis/report/test_report_plots" --write "$plots/$variant" "$variant" || fail "no plots: $variant"
    done
fi
# A page of plots that says what is not where it belongs: drawn NAME DIR
drawn() {
    local plots=$2
    {
        echo '<!DOCTYPE html><meta charset="utf-8"><body>'
        find "$plots" -name '*.svg' | sort | while read -r file; do
            echo "<section data-file=\"${file#"$plots"/}\">" && cat "$file" && echo '</section>'
        done
        cat <<'END'
<script>
const found = [], SLACK = 1;
const overlap = (a, b) => Math.min(a.x + a.width - b.x, b.x + b.width - a.x) > SLACK &&
                          Math.min(a.y + a.height - b.y, b.y + b.height - a.y) > 4; // ascents are taller than letters
for (const section of document.querySelectorAll('section')) {
  const svg = section.querySelector('svg'), view = svg.viewBox.baseVal, say = (what, text) =>
      found.push(`${section.dataset.file}: ${what}: ${text.textContent}`);
  const texts = [...svg.querySelectorAll('text')].filter(text => text.textContent).map(text => [text, text.getBBox()]);
  const boxes = [...svg.querySelectorAll('rect')].slice(1).map(rect => rect.getBBox()).filter(box => box.height > 12);
  const lines = [...svg.querySelectorAll('path[stroke-dasharray="4 3"]')].map(path => path.getBBox());
  const stages = texts.find(([text]) => text.textContent === 'stages')?.[1].y ?? 0;
  texts.forEach(([text, box], at) => {
    const middle = box.y + box.height / 2;
    if (box.x < 0 || box.y < 0 || box.x + box.width > view.width || box.y + box.height > view.height)
      say('out of the picture', text);
    for (const [other, its] of texts.slice(at + 1))
      if (overlap(box, its)) say(`over "${other.textContent}"`, text);
    for (const one of boxes)
      if (one.x <= box.x + 1 && box.x + 1 < one.x + one.width && one.y < middle && middle < one.y + one.height &&
          box.x + box.width > one.x + one.width + SLACK)
        say('out of its box', text);
    for (const line of lines)
      if (box.y < stages && box.x + SLACK < line.x && line.x < box.x + box.width - SLACK && line.y < box.y + box.height - 4)
        say('a line goes through it', text);
  });
}
const report = document.createElement('pre');
report.textContent = [...new Set(found)].map(one => `FOUND ${one}`).join('\n') + `\nTEXTS ${document.querySelectorAll('text').length}\n`;
document.body.replaceChildren(report);
document.documentElement.dataset.ready = 'yes';
</script></body>
END
    } >"$folder/$1.html"
    begin_page "$1" "$folder/$1.html"
}
found() { # NAME
    whole_page "$1"
    sed -n 's/.*\(FOUND .*\)/\1/p' "$folder/dom"
}
drawn plots "$plots"
if [ -z "${PLOTS:-}" ]; then
    # A check that can fail: the stamps' names in one row, and a name that is too long for its box.
    cp -r "$plots" "$folder/crowded"
    sed -i "/>intended<\|>send<\|>client TX</s/ y=\"[0-9.]*\"/ y=\"30.0\"/; s/>yes</>$(printf 'yes%.0s' {1..60})</" \
        "$folder/crowded/plain/timeline.svg"
    drawn crowded "$folder/crowded"
fi
open_pages
seen=$(found plots)
[ -z "$seen" ] || fail "$seen"
cp "$folder/plots.dom" "$folder/dom"
texts=$(sed -n 's/^TEXTS //p' "$folder/dom")
[ "$texts" -gt 100 ] || fail "only $texts texts were looked at"
[ -z "${PLOTS:-}" ] || exit 0
seen=$(found crowded)
for what in 'over "' 'out of its box'; do
    grep -q "timeline.svg: $what" <<<"$seen" || fail "not seen: $what, but: $seen"
done
echo "$texts texts"
