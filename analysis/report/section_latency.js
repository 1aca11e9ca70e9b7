// SPDX-License-Identifier: MIT
//
// The latency distribution of all requests.

// Without a client there is but one latency, the server's own.
const latencyName = () => data.counts.without_client ? 'in the server' : 'from intended';

// How many of all requests took longer than the i-th point: the first of the points is rank 1.
const exceeding = (curve, rank) => (curve.count - rank) / curve.count;

// Steps, so that the line says what was measured: at latency ns the share falls to exceeding(rank).
function curvePath(curve, x, y, floor) {
  let path = '', last = 1;
  for (let i = 0; i < curve.ns.length; i++) {
    const share = exceeding(curve, curve.rank[i]), at = x(Math.max(curve.ns[i], 1)).toFixed(1);
    path += `${i ? 'L' : 'M'}${at} ${y(Math.max(last, floor)).toFixed(1)}L${at} ${
        y(Math.max(share, floor)).toFixed(1)}`;
    last = share;
  }
  return path;
}

// A missing bound means requests that were never answered: it lies beyond the right edge. What lies beyond an edge is
// drawn on it.
function intervalBand(curve, x, y, floor, [lowest, highest]) {
  const band = curve.intervals;
  if (!band || band.rank.length < 2) return '';
  const share = i => y(Math.max(exceeding(curve, band.rank[i]), floor)).toFixed(1);
  const forward =
      band.rank.map((_, i) => `${x(Math.max(band.low[i] ?? highest, lowest)).toFixed(1)} ${share(i)}`);
  const back =
      band.rank.map((_, i) => `${x(Math.min(band.high[i] ?? highest, highest)).toFixed(1)} ${share(i)}`).reverse();
  return 'M' + forward.concat(back).join('L') + 'Z';
}

// Of the chosen piece of time, from the heat map's cells: the share that is slower than each row's lower bound.
function chosenPath(x, y, floor) {
  const {columns, rows, cells, low_ns: low, high_ns: high} = data.heat, step = (data.measures.duration_ns || 1) / columns,
        [from, to] = view.span.map(ns => Math.round(ns / step)), levels = new Float64Array(rows + 1);
  for (let at = from * (rows + 1); at < to * (rows + 1); at++) levels[at % (rows + 1)] += cells[at];
  const all = levels.reduce((sum, one) => sum + one, 0), points = [];
  let left = all;
  for (let row = 0; row <= rows && left > 0; left -= levels[row++])
    points.push(`${x(low * (high / low) ** (row / rows)).toFixed(1)} ${y(Math.max(left / all, floor)).toFixed(1)}`);
  return points.length ? 'M' + points.join('L') : '';
}

function latencyExtent() {
  const all = [data.curves.corrected, data.curves.uncorrected].flatMap(
      curve => curve.ns.length ? [curve.ns[0], curve.ns[curve.ns.length - 1]] : []);
  const low = Math.max(Math.min(...all), 100), high = Math.max(...all, low * 2);
  return [low * 0.85, high * 1.15];
}

function latencyAxes(plot, x, y, size, floor, extent) {
  const {left, right, top, bottom} = size;
  for (const tick of logTicks(extent[0], extent[1], size.width / 70))
    plot.append(
        svg('line', {class: 'grid', x1: x(tick), x2: x(tick), y1: top, y2: bottom}),
        svg('text', {class: 'muted', x: x(tick), y: bottom + 18, 'text-anchor': 'middle'},
            shortDuration(tick)));
  for (let share = 1; share >= floor * 0.999; share /= 10) {
    const value = Number(share.toPrecision(1)),
          name = value === 1 ? 'all' : 'p' + Number((100 - 100 * value).toPrecision(12));
    plot.append(
        svg('line', {class: 'grid', x1: left, x2: right, y1: y(value), y2: y(value)}),
        svg('text', {class: 'muted', x: left - 10, y: y(value) + 4, 'text-anchor': 'end'},
            Number((100 * value).toPrecision(2)) + ' %'),
        svg('text', {class: 'muted', x: right + 10, y: y(value) + 4}, name));
  }
  plot.append(
      svg('line', {class: 'axis', x1: left, x2: right, y1: bottom, y2: bottom}),
      svg('text', {class: 'muted', x: left - 48, y: top - 14}, 'requests slower than this'),
      svg('text', {class: 'muted', x: right, y: bottom + 38, 'text-anchor': 'end'}, 'latency'));
}

function latencyMarks(plot, x, y, size, floor) {
  data.quantiles.forEach((name, i) => {
    const value = data.latency.value[i], q = Number(name.slice(1)) / 100;
    if (!known(value) || !(q < 1) || 1 - q < floor) return;
    const crowded = x(value) > size.right - 130;  // the axis on the right needs its place
    plot.append(
        svg('circle', {
          cx: x(value),
          cy: y(1 - q),
          r: 3.5,
          fill: 'var(--paper)',
          stroke: 'var(--curve)',
          'stroke-width': 2
        }),
        svg('text', {
          x: x(value) + (crowded ? -10 : 9),
          y: y(1 - q) + (crowded ? 15 : -7),
          'text-anchor': crowded ? 'end' : null,
          'paint-order': 'stroke',
          stroke: 'var(--paper)',
          'stroke-width': 3
        },
            `${name}  ${duration(value)}`));
  });
}

function neverAnswered(plot, curve, y, size, floor) {
  if (!curve.infinite) return;
  const at = y(Math.max(curve.infinite / curve.count, floor));
  plot.append(
      svg('line', {
        x1: size.left,
        x2: size.right,
        y1: at,
        y2: at,
        stroke: 'var(--accent)',
        'stroke-dasharray': '2 4'
      }),
      // On the left, where the curve is far above, or below the line where it is not.
      svg('text', {x: size.left + 6, y: at < size.top + 30 ? at + 15 : at - 6, class: 'never'},
          `never answered: ${count(curve.infinite)}`));
}

function latencyReadout(plot, x, size) {
  const line =
      svg('line', {y1: size.top, y2: size.bottom, stroke: 'var(--faint)', visibility: 'hidden'});
  const shareAt = (curve, ns) => {
    let low = 0, high = curve.ns.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (curve.ns[middle] <= ns)
        low = middle + 1;
      else
        high = middle;
    }
    return low ? exceeding(curve, curve.rank[low - 1]) : 1;
  };
  const hit = svg('rect', {
    x: size.left,
    y: size.top,
    width: size.right - size.left,
    height: size.bottom - size.top,
    fill: 'transparent',
    pointermove: event => {
      const box = plot.getBoundingClientRect(),
            at = (event.clientX - box.left) / box.width * size.width, ns = x.invert(at);
      line.setAttribute('x1', at);
      line.setAttribute('x2', at);
      line.setAttribute('visibility', 'visible');
      showTip(
          event,
          `slower than ${duration(ns)}\n${latencyName()}: ${
              percent(shareAt(data.curves.corrected, ns))}` +
              (data.counts.without_client ?
                   '' :
                   `\nfrom sent: ${percent(shareAt(data.curves.uncorrected, ns))}`));
    },
    pointerleave: () => {
      line.setAttribute('visibility', 'hidden');
      hideTip();
    }
  });
  plot.append(line, hit);
}

let latencyDrawn;  // for which piece of time

function renderLatency() {
  const place = byId('latency-plot'), corrected = data.curves.corrected,
        uncorrected = data.curves.uncorrected;
  if (!corrected.ns.length) {
    place.replaceChildren(
        element('p', {class: 'empty'}, 'No request was answered: there is no latency to show.'));
    return;
  }
  const width = Math.max(320, place.clientWidth), height = 400;
  const size = {width, left: 66, right: width - 66, top: 30, bottom: height - 46};
  const floor = 0.7 / corrected.count, extent = latencyExtent();
  const x = logScale(extent[0], extent[1], size.left, size.right),
        y = logScale(1, floor, size.top, size.bottom);
  const plot = svg('svg', {
    viewBox: `0 0 ${width} ${height}`,
    role: 'img',
    'aria-label': 'Share of requests slower than a given latency; the table below has the numbers'
  });
  latencyAxes(plot, x, y, size, floor, extent);
  plot.append(
      svg('path', {d: intervalBand(corrected, x, y, floor, extent), fill: 'var(--band)'}),
      data.counts.without_client ? '' : svg('path', {
        d: curvePath(uncorrected, x, y, floor),
        fill: 'none',
        stroke: 'var(--muted)',
        'stroke-width': 1.4,
        'stroke-dasharray': '5 4'
      }),
      svg('path', {
        d: curvePath(corrected, x, y, floor),
        fill: 'none',
        stroke: 'var(--curve)',
        'stroke-width': 2.2,
        'stroke-linejoin': 'round'
      }),
      view.span && data.heat ? svg('path', {
        class: 'chosen',
        d: chosenPath(x, y, floor),
        fill: 'none',
        stroke: 'var(--accent)',
        'stroke-width': 1.6
      }) :
                               '');
  latencyDrawn = view.span;
  neverAnswered(plot, corrected, y, size, floor);
  latencyMarks(plot, x, y, size, floor);
  latencyReadout(plot, x, size);
  const line = attributes =>
      svg('svg', {viewBox: '0 0 26 13', style: 'width:26px'},
          svg('line', {x1: 0, x2: 26, y1: 6.5, y2: 6.5, ...attributes}));
  place.replaceChildren(
      plot,
      element(
          'div', {class: 'legend', style: 'padding-left:66px'},
          element(
              'span', {}, line({stroke: 'var(--curve)', 'stroke-width': 2.2}),
              data.counts.without_client ? fromWhen() : `${fromWhen()} (corrected)`),
          data.counts.without_client ? '' : element(
              'span', {},
              line({stroke: 'var(--muted)', 'stroke-width': 1.4, 'stroke-dasharray': '5 4'}),
              'from the actual send (hides waiting at the client)'),
          view.span && data.heat ?
              element('span', {}, line({stroke: 'var(--accent)', 'stroke-width': 1.6}), `requests ${spanWords()}, in ${data.heat.rows} steps`) :
              '',
          element(
              'span', {}, line({stroke: 'var(--band)', 'stroke-width': 10}), '95 % confidence')));
}

function renderLatencyAnew() {
  if (latencyDrawn !== view.span) renderLatency();
}

function renderLatencyTable()
{
    byId('latency-table')
      .replaceChildren(table(
          [
            ['percentile', true], [latencyName()], ['95 % interval'],
            ...(data.counts.without_client ? [] : [['from sent'], ['95 % interval']])
          ],
          data.quantiles.map(
              (name, i) =>
                  [name, percentileWords(data.latency, i), intervalWords(data.latency, i),
                   ...(data.counts.without_client ?
                           [] :
                           [percentileWords(data.uncorrected, i, '–'), intervalWords(data.uncorrected, i)])]),
          'Latency by percentile'));
}

sections.push({
  id: 'latency',
  title: 'Latency of every request',
  place: 10,
  markup: `
    <p class="lead">How many requests took longer than a given time. Both axes are logarithmic, so that the tail is as wide as the rest.</p>
    <div class="plot" id="latency-plot"></div>
    <details><summary>As a table</summary><div id="latency-table"></div></details>`,
  start: () => renderLatencyTable(),
  diagnosis: () => renderLatencyAnew(),
  cause: () => renderLatencyAnew(),
  draw: () => renderLatency()
});
