// SPDX-License-Identifier: MIT
//
// Compares two sides, which are a slice and its reference or two runs: messages ahead by kind
// (NSight's figure 19), contexts of the cores (figure 20), and head-of-line blocking.

const SIDE_COLOURS = () => [theme().curve, theme().other];

// An axis for counts from 0 to thousands.
function countScale(most, from, to) {
  const top = Math.log1p(Math.max(most, 1));
  return value => from + Math.log1p(Math.max(value ?? 0, 0)) / top * (to - from);
}
const countTicks = most =>
    [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 100000].filter(
        (tick, i) => tick <= most || i < 2);

function sideLegend(names) {
  const colours = SIDE_COLOURS();
  return element(
      'div', {class: 'legend'},
      ...names.map(
          (name, side) => element(
              'span', {}, element('span', {
                class: 'swatch',
                style: `background: ${colours[side]}; ${side ? 'opacity: .55' : ''}`
              }),
              name)));
}

// In a place that is narrow, as on a telephone, what is left of a plot stands above it.
const NARROW = 640;

function queueBox(spread, y, x, colour, faint, words) {
  const line = (x1, x2, y1, y2, width = 1.3) =>
      svg('line', {x1, x2, y1, y2, stroke: colour, 'stroke-width': width});
  return svg(
      'g', {
        class: 'piece',
        role: 'img',
        'aria-label': words,
        opacity: faint ? .75 : 1,
        pointermove: event => showTip(event, words),
        pointerleave: hideTip
      },
      line(x(spread.min), x(spread.max), y, y),
      line(x(spread.min), x(spread.min), y - 3, y + 3), line(x(spread.max), x(spread.max), y - 3, y + 3),
      svg('rect', {
        x: x(spread.p25),
        y: y - 5,
        width: Math.max(x(spread.p75) - x(spread.p25), 2),
        height: 10,
        fill: colour,
        'fill-opacity': faint ? .18 : .4,
        stroke: colour,
        'stroke-dasharray': faint ? '3 2' : null
      }),
      line(x(spread.median), x(spread.median), y - 5, y + 5, 3));
}

// sides: two lists as in summary.json's `queue`, each kind with its spreads `ahead` and `us`.
function renderQueue(place, sides, names) {
  if (!sides[0]?.length || !sides[1]?.length) {
    place.replaceChildren(element('p', {class: 'empty'}, 'Queues are not known: no socket calls were captured.'));
    return;
  }
  const width = Math.max(300, place.clientWidth), narrow = width < NARROW,
        size = narrow ? {left: 12, right: width - 90} : {left: 120, right: width - 300}, row = narrow ? 62 : 44;
  const most = Math.max(...sides.flat().map(one => one.ahead.max ?? 0), 1),
        x = countScale(most, size.left, size.right), bottom = 26 + sides[0].length * row,
        colours = SIDE_COLOURS();
  const plot = svg('svg', {
    class: 'narrow',
    viewBox: `0 0 ${width} ${bottom + 26}`,
    role: 'img',
    'aria-label': 'Messages ahead by kind; the table below has the same numbers'
  });
  for (const tick of countTicks(most))
    plot.append(
        svg('line', {class: 'grid', x1: x(tick), x2: x(tick), y1: 26, y2: bottom}),
        svg('text', {class: 'muted', x: x(tick), y: bottom + 18, 'text-anchor': 'middle'},
            count(tick)));
  for (const [at, text] of narrow ? [[width - 4, 'time (mean)']] :
                                    [[width - 190, 'ahead (mean)'], [width - 90, 'time (mean)'], [width - 4, '(median)']])
    plot.append(svg('text', {class: 'muted', x: at, y: 14, 'text-anchor': 'end'}, text));
  sides[0].forEach((_, i) => {
    const y = 26 + i * row;
    plot.append(svg('text', {x: 0, y: narrow ? y + 12 : y + row / 2 + 4}, sides[0][i].kind));
    sides.forEach((side, at) => {
      const middle = y + (narrow ? 27 : 13) + at * 18, one = side[i],
            ahead = known(one.ahead.mean) ? one.ahead.mean.toFixed(2) : '–',
            [mean, median] = [one.us.mean, one.us.median].map(us => known(us) ? duration(us * 1000) : '–'),
            cells = narrow ? [[width - 4, mean]] : [[width - 190, ahead], [width - 90, mean], [width - 4, median]],
            words = `${sides[0][i].kind}, ${names[at]}: ${ahead} ahead on average, for ${mean} (median ${median})`;
      plot.append(
          queueBox(one.ahead, middle, x, colours[at], at === 1, words),
          ...cells.map(
              ([where, text]) => svg('text', {x: where, y: middle + 4, 'text-anchor': 'end', class: at ? 'muted' : null}, text)));
    });
  });
  plot.append(svg('text', {class: 'muted', x: 0, y: narrow ? 14 : bottom + 18}, 'messages ahead'));
  place.replaceChildren(sideLegend(names), plot);
  arrowsBetween(place, '.piece', 'Messages ahead by kind');
}

// --- contexts ------------------------------------------------------------------------------------

// A context keeps its colour on all cores; the idle core is the background's.
function contextRanks(sides) {
  const sums = new Map();
  for (const one of sides.flat())
    if (one.context !== 'idle')
      sums.set(one.context, (sums.get(one.context) ?? 0) + (one.share ?? 0));
  return new Map([...sums].sort((a, b) => b[1] - a[1]).map(([name], rank) => [name, rank]));
}

function contextBar(contexts, y, x, ranks, width) {
  const colours = theme(), group = svg('g', {});
  let from = 0;
  for (const one of contexts) {
    const share = one.share ?? 0, left = x(from), wide = x(from + share) - left,
          idle = one.context === 'idle';
    from += share;
    if (wide <= 0) continue;
    const colour = idle ? colours.idle : causeColour(colours, ranks.get(one.context)),
          label = `${one.context} ${percent(share)}`;
    group.append(svg('rect', {
      class: 'piece',
      role: 'img',
      'aria-label': `${role(one)} core ${one.core}: ${label}`,
      x: left,
      y,
      width: Math.max(wide - .5, .5),
      height: 18,
      fill: colour,
      'fill-opacity': idle ? 1 : .5,
      stroke: idle ? colours.line : colour,
      pointermove: event => showTip(event, `${role(one)} core ${one.core}: ${label}`),
      pointerleave: hideTip
    }));
    if (wide > label.length * 6.6 + 6)
      group.append(svg('text', {x: left + 5, y: y + 13, 'pointer-events': 'none'}, label));
  }
  return group;
}
const role = one => one.role;

// sides: two lists as in summary.json's `contexts`, each with `share`; ranks: colours by context.
function renderContexts(place, sides, names, ranks = contextRanks(sides)) {
  const cores = [...new Set(sides.flat().map(one => `${one.role} ${one.core}`))];
  if (!cores.length) {
    place.replaceChildren(element('p', {class: 'empty'}, 'Nothing is known of the cores.'));
    return;
  }
  const of = (side, core) => side.filter(one => `${one.role} ${one.core}` === core);
  const total = side => side.reduce((sum, one) => sum + (one.share ?? 0), 0);
  const width = Math.max(300, place.clientWidth), narrow = width < NARROW, left = narrow ? 108 : 210, above = narrow ? 18 : 0,
        most = Math.max(...sides.flatMap(side => cores.map(core => total(of(side, core)))), .01),
        x = linearScale(0, most, left, width - 76), row = 52 + above, bottom = cores.length * row;
  const plot = svg('svg', {
    class: 'narrow',
    viewBox: `0 0 ${width} ${bottom + 4}`,
    role: 'img',
    'aria-label': 'Share of the messages’ time per context and core; the table below has the same numbers'
  });
  cores.forEach((core, i) => {
    const y = i * row;
    plot.append(svg('text', {x: 0, y: y + (narrow ? 12 : 26)}, core.replace(' ', ' core ')));
    sides.forEach((side, at) => {
      const own = of(side, core), middle = y + 4 + above + at * 21;
      plot.append(
          svg('text', {class: 'muted', x: left - 8, y: middle + 13, 'text-anchor': 'end'}, names[at]),
          contextBar(own, middle, x, ranks, width),
          svg('text', {class: 'muted', x: width - 4, y: middle + 13, 'text-anchor': 'end'}, percent(total(own))));
    });
  });
  place.replaceChildren(plot);
  arrowsBetween(place, '.piece', 'Contexts of the cores');
}

function contextTable(sides, names) {
  const keys = new Map();
  sides.forEach((side, at) => side.forEach(one => {
    const key = `${one.role}\0${one.core}\0${one.context}`;
    if (!keys.has(key)) keys.set(key, [one, 0, 0]);
    keys.get(key)[at + 1] = one.share ?? 0;
  }));
  return table(
      [['role', true], ['core'], ['context', true], [names[0]], [names[1]]],
      [...keys.values()].map(([one, a, b]) => [one.role, String(one.core), one.context, percent(a), percent(b)]),
      'Contexts of the cores');
}

function queueTable(sides, names) {
  const cells = one => [
    ...['mean', 'p25', 'median', 'p75', 'max'].map(key => known(one.ahead[key]) ? Number(one.ahead[key].toFixed(2)).toString() : '–'),
    known(one.us.mean) ? duration(one.us.mean * 1000) : '–'
  ];
  return table(
      [['ahead', true], ['side', true], ['mean'], ['quartile'], ['median'], ['quartile'], ['most'], ['time (mean)']],
      sides[0].flatMap((one, i) => sides.map((side, at) => [at ? '' : one.kind, names[at], ...cells(side[i])])),
      'Messages ahead');
}
