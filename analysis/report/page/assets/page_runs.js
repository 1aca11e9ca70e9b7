// SPDX-License-Identifier: MIT
//
// What the pages of several runs share: values over runs in their order, with intervals, levels and
// the places where they changed.

// null: never answered; what is missing, too few requests reach.
const microseconds = us => known(us) ? duration(us * 1000) : us === undefined ? '–' : 'never';
const interval = (low, high) =>
    known(low) && known(high) ? ` [${microseconds(low)}, ${microseconds(high)}]` : '';

// What the plot reaches: all values, and of intervals as much as leaves the values readable.
function valueExtent(series, logarithmic) {
  const points = series.flatMap(one => one.points).filter(point => known(point.us));
  const values = points.map(point => point.us).filter(us => !logarithmic || us > 0);
  if (!values.length) values.push(1, 1000);
  const low = Math.min(...values), high = Math.max(...values);
  const room = logarithmic ? 0 : Math.max(high - low, high * .05, 1e-3);
  const lowest = logarithmic ? low / 3 : low - room, highest = logarithmic ? high * 3 : high + room;
  const ends = points.flatMap(point => [point.low, point.high]).filter(known);
  const begin = Math.max(lowest, Math.min(low, ...ends)),
        end = Math.min(highest, Math.max(high, ...ends));
  return logarithmic ? {low: begin / 1.15, high: end * 1.25} :
                       {low: Math.max(0, begin - room * .12), high: end + room * .12};
}

function runsAxes(plot, items, x, y, extent, {logarithmic, left, right, bottom}) {
  const ticks = logarithmic ? logTicks(extent.low, extent.high, 10) :
                              linearTicks(extent.low, extent.high, 4);
  for (const tick of ticks)
    plot.append(
        svg('line', {class: 'grid', x1: left, x2: right, y1: y(tick), y2: y(tick)}),
        svg('text', {class: 'muted', x: left - 10, y: y(tick) + 4, 'text-anchor': 'end'},
            shortDuration(tick * 1000)));
  const widest = Math.floor((right - left) / 90), step = Math.ceil(items.length / widest);
  items.forEach((item, i) => {
    if (i % step) return;
    const label = item.label.length > 13 ? item.label.slice(0, 12) + '…' : item.label;
    plot.append(
        svg('text', {class: 'muted', x: x(i), y: bottom + 18, 'text-anchor': 'middle'}, label));
  });
  plot.append(svg('line', {class: 'axis', x1: left, x2: right, y1: bottom, y2: bottom}));
}

// Levels: {from, to, us}, from the first to the last item of each; changes: {at, text}, the item
// each begins with.
function drawLevels(plot, one, x, y, colour, {top, bottom}) {
  for (const {from, to, us} of one.levels ?? [])
    plot.append(svg('line', {
      class: 'level',
      x1: x(from - .4),
      x2: x(to + .4),
      y1: y(us),
      y2: y(us),
      stroke: colour,
      'stroke-width': 3,
      'stroke-opacity': .45
    }));
  for (const {at, text} of one.changes ?? []) {
    const left = x(at - .5) < 800;
    plot.append(
        svg('line', {
          class: 'change',
          x1: x(at - .5),
          x2: x(at - .5),
          y1: top,
          y2: bottom,
          stroke: 'var(--accent)',
          'stroke-width': 1.5,
          'stroke-dasharray': '5 4'
        }),
        svg('text', {
          x: x(at - .5) + (left ? 5 : -5),
          y: top - 7,
          'text-anchor': left ? 'start' : 'end',
          style: 'fill: var(--accent)'
        },
            text));
  }
}

function drawPoints(plot, one, items, x, y, extent, colour) {
  const clamp = us => y(Math.min(Math.max(us, extent.low), extent.high));
  for (const point of one.points) {
    const at = x(point.at + (one.shift ?? 0));
    if (known(point.low) && known(point.high))
      plot.append(svg('line', {
        class: 'interval',
        x1: at,
        x2: at,
        y1: clamp(point.low),
        y2: clamp(point.high),
        stroke: colour,
        'stroke-width': 4,
        'stroke-opacity': .35
      }));
    plot.append(svg('path', {
      class: 'point',
      d: shapePath(causeShape(one.rank), at, known(point.us) ? clamp(point.us) : y(extent.high), 4),
      fill: known(point.us) ? colour : 'var(--paper)',  // hollow: infinite, on the upper edge
      stroke: colour,
      pointermove: event => showTip(
          event,
          `${items[point.at].label}\n${one.name} ${microseconds(point.us)}${
              interval(point.low, point.high)}`),
      pointerleave: hideTip
    }));
  }
}

// items: {label}; series: {name, rank, shift (of an item's width), points: {at, us, low, high},
// levels, changes}.
function runsPlot(items, series, {label, logarithmic = false, height = 200}) {
  const size = {logarithmic, left: 84, right: 1160, top: 24, bottom: height - 30};
  const extent = valueExtent(series, logarithmic);
  const x = linearScale(-.5, items.length - .5, size.left, size.right),
        y = (logarithmic ? logScale : linearScale)(extent.low, extent.high, size.bottom, size.top);
  const plot = svg('svg', {viewBox: `0 0 1180 ${height}`, role: 'img', 'aria-label': label});
  runsAxes(plot, items, x, y, extent, size);
  for (const one of series) {
    const colour = causeColour(theme(), one.rank);
    drawLevels(plot, one, x, y, colour, size);
    drawPoints(plot, one, items, x, y, extent, colour);
  }
  return plot;
}

// Draws now, and whenever the colours change; for printing with all tables open.
function keepDrawn(draw) {
  draw();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
  for (const [event, on] of [['beforeprint', true], ['afterprint', false]])
    addEventListener(event, () => {
      document.documentElement.classList.toggle('printing', on);
      draw();
      for (const details of document.querySelectorAll('details')) details.open = on;
    });
}
