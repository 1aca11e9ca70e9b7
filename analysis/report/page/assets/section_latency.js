// SPDX-License-Identifier: MIT
//
// The latency distribution of all requests.

// Without a client there is but one latency, the server's own.
const latencyName = () => data.counts.without_client ? 'in the server' : 'from intended';

// How many of all requests took longer than the i-th point: the first of the points is rank 1.
const exceeding = (curve, rank) => (curve.count - rank) / curve.count;

// The corners of steps, so that the line says what was measured: at latency ns the share falls to exceeding(rank).
function curveCorners(curve, x, y, floor) {
  const corners = [];
  let last = 1;
  for (let i = 0; i < curve.ns.length; i++) {
    const share = exceeding(curve, curve.rank[i]), at = x(Math.max(curve.ns[i], 1));
    corners.push([at, y(Math.max(last, floor))], [at, y(Math.max(share, floor))]);
    last = share;
  }
  return corners;
}

const cornersPath = corners =>
    corners.length ? 'M' + corners.map(([at, height]) => `${at.toFixed(1)} ${height.toFixed(1)}`).join('L') : '';

// The first of the places [x, y, anchor] at which words do not lie over one of the curves, else the first of all.
const LETTER = 7.4, ASCENT = 12, DESCENT = 4;

function besideCurves(words, places, curves) {
  const wide = words.length * LETTER, meets = ([at, y, anchor], corners) => {
    const left = anchor === 'end' ? at - wide : at, right = left + wide, top = y - ASCENT, bottom = y + DESCENT;
    return corners.some(
        ([x, to], i) => i && Math.min(x, corners[i - 1][0]) < right && Math.max(x, corners[i - 1][0]) > left &&
            Math.min(to, corners[i - 1][1]) < bottom && Math.max(to, corners[i - 1][1]) > top);
  };
  return places.find(place => !curves.some(corners => meets(place, corners))) ?? places[0];
}

// The slowest message that is not slower than `ns`, or the fastest of those that are shown.
function chooseNear(ns) {
  const {id = [], latency_ns: all} = current()?.messages ?? {}, at = id.length ? all.findIndex(one => known(one) && one <= ns) : -1;
  if (id.length) chooseMessage(id[at < 0 ? id.length - 1 : at], true);
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

function latencyMarks(plot, curves, x, y, size, floor) {
  data.quantiles.forEach((name, i) => {
    const value = data.latency.value[i], q = Number(name.slice(1)) / 100;
    if (!known(value) || !(q < 1) || 1 - q < floor) return;
    // The axis on the right needs its place, and the curve its own.
    const crowded = x(value) > size.right - 130, words = `${name}  ${duration(value)}`, cx = x(value), cy = y(1 - q),
          right = [[cx + 9, cy - 7, null], [cx + 9, cy + 17, null]], left = [[cx - 10, cy + 15, 'end'], [cx - 10, cy - 10, 'end']],
          [at, height, anchor] = besideCurves(words, crowded ? left : [...right, ...left], curves);
    plot.append(
        svg('circle', {
          class: 'mark',
          role: 'button',
          'aria-label': `${words}: Enter shows a message that took about as long`,
          click: () => chooseNear(value),
          pointermove: event => showTip(event, words),
          pointerleave: hideTip,
          cx: x(value),
          cy: y(1 - q),
          r: 3.5,
          fill: 'var(--paper)',
          stroke: 'var(--curve)',
          'stroke-width': 2
        }),
        svg('text', {
          x: at,
          y: height,
          'text-anchor': anchor,
          'pointer-events': 'none',
          'paint-order': 'stroke',
          stroke: 'var(--paper)',
          'stroke-width': 3
        },
            words));
  });
}

function neverAnswered(plot, curves, curve, y, size, floor) {
  if (!curve.infinite) return;
  const at = y(Math.max(curve.infinite / curve.count, floor)), words = `never answered: ${count(curve.infinite)}`, places = [];
  // Along the line, from its beginning, above it or below.
  for (let left = size.left + 6; left + words.length * LETTER < size.right; left += 10)
    for (const height of [at - 6, at + 15])
      if (height - ASCENT > size.top && height + DESCENT < size.bottom) places.push([left, height, null]);
  const [left, height] = besideCurves(words, [...places, [size.left + 6, at - 6, null]], curves);
  plot.append(
      svg('line', {
        x1: size.left,
        x2: size.right,
        y1: at,
        y2: at,
        stroke: 'var(--accent)',
        'stroke-dasharray': '2 4'
      }),
      svg('text', {x: left, y: height, class: 'never'}, words));
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
  const line = curveCorners(corrected, x, y, floor),
        other = data.counts.without_client ? [] : curveCorners(uncorrected, x, y, floor), curves = [line, other];
  latencyAxes(plot, x, y, size, floor, extent);
  plot.append(
      svg('path', {d: intervalBand(corrected, x, y, floor, extent), fill: 'var(--band)'}),
      data.counts.without_client ? '' : svg('path', {
        d: cornersPath(other),
        fill: 'none',
        stroke: 'var(--muted)',
        'stroke-width': 1.4,
        'stroke-dasharray': '5 4'
      }),
      svg('path', {
        d: cornersPath(line),
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
  neverAnswered(plot, curves, corrected, y, size, floor);
  latencyReadout(plot, x, size);
  latencyMarks(plot, curves, x, y, size, floor);
  const legend = attributes =>
      svg('svg', {viewBox: '0 0 26 13', style: 'width:26px'},
          svg('line', {x1: 0, x2: 26, y1: 6.5, y2: 6.5, ...attributes}));
  place.replaceChildren(
      plot,
      element(
          'div', {class: 'legend', style: 'padding-left:66px'},
          element(
              'span', {}, legend({stroke: 'var(--curve)', 'stroke-width': 2.2}),
              data.counts.without_client ? fromWhen() : `${fromWhen()} (corrected)`),
          data.counts.without_client ? '' : element(
              'span', {},
              legend({stroke: 'var(--muted)', 'stroke-width': 1.4, 'stroke-dasharray': '5 4'}),
              'from the actual send (hides waiting at the client)'),
          view.span && data.heat ?
              element('span', {}, legend({stroke: 'var(--accent)', 'stroke-width': 1.6}), `requests ${spanWords()}, in ${data.heat.rows} steps`) :
              '',
          element(
              'span', {}, legend({stroke: 'var(--band)', 'stroke-width': 10}), '95 % confidence')));
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
  start: () => {
    arrowsBetween(byId('latency-plot'), '.mark', 'Percentiles of latency');
    renderLatencyTable();
  },
  diagnosis: () => renderLatencyAnew(),
  cause: () => renderLatencyAnew(),
  draw: () => renderLatency()
});
