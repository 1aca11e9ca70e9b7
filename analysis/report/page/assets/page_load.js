// SPDX-License-Identifier: MIT
//
// The page of a sweep or a search: percentiles with their intervals over the achieved rate, the
// SLO's line, and the rate from which the server or the client was saturated.

const SERIES = ['p50', 'p99', 'p99.9'];
const size = {width: 1180, height: 460, left: 84, right: 1130, top: 34, bottom: 400};
const ordered = [...data.points].sort((a, b) => a.rate - b.rate);
const achieved = point => point.achieved_rate ?? 0;
// null: never answered; what is missing, too few requests reach.
const microseconds = us => known(us) ? duration(us * 1000) : us === undefined ? '–' : 'never';
const rateText = rate => known(rate) ? count(rate) : '–';
const saturated = point => point.saturated.who !== 'none';

function extents() {
  const latencies = ordered.flatMap(point => SERIES.flatMap(name => [
    point.latency_us[name], ...(point.ci_us[name] || [])
  ])).filter(value => known(value) && value > 0);
  if (data.slo) latencies.push(data.slo.limit_us);
  if (!latencies.length) latencies.push(1, 1000);
  return {
    rate: Math.max(...ordered.map(achieved), 1) * 1.06,
    low: Math.min(...latencies) / 1.4,
    high: Math.max(...latencies) * 1.6
  };
}

function axes(plot, x, y, extent) {
  const {left, right, top, bottom} = size;
  for (const tick of logTicks(extent.low, extent.high, 10))
    plot.append(
        svg('line', {class: 'grid', x1: left, x2: right, y1: y(tick), y2: y(tick)}),
        svg('text', {class: 'muted', x: left - 10, y: y(tick) + 4, 'text-anchor': 'end'},
            shortDuration(tick * 1000)));
  for (const tick of linearTicks(0, extent.rate, 8).filter(value => value <= extent.rate))
    plot.append(
        svg('line', {class: 'grid', x1: x(tick), x2: x(tick), y1: top, y2: bottom}),
        svg('text', {class: 'muted', x: x(tick), y: bottom + 18, 'text-anchor': 'middle'},
            count(tick + 0)));  // there is a -0
  plot.append(
      svg('line', {class: 'axis', x1: left, x2: right, y1: bottom, y2: bottom}),
      svg('text', {class: 'muted', x: right, y: bottom + 40, 'text-anchor': 'end'},
          'answered requests per second'),
      svg('text', {class: 'muted', x: left - 60, y: top - 16}, 'latency'));
}

// From the rate on that the sentence names (a search names none: the least): above it latency says
// nothing of the server.
function saturationBand(plot, x) {
  const from = data.saturation?.rate ?? 0,
        at = data.kind === 'sweep' && !data.saturation ? [] : ordered.filter(point => saturated(point) && point.rate >= from);
  if (!at.length) return;
  const begin = x(Math.min(...at.map(achieved)));
  plot.append(
      svg('rect', {
        id: 'saturation',
        x: begin - 9,
        y: size.top,
        width: Math.max(size.right - begin + 9, 4),
        height: size.bottom - size.top,
        fill: 'var(--warn)',
        'fill-opacity': .1
      }),
      svg('text', {x: size.right, y: size.top - 10, 'text-anchor': 'end', style: 'fill: var(--warn)'},
          `${at[0].saturated.who} saturated`));
}

function sloLine(plot, y) {
  if (!data.slo) return;
  const at = y(data.slo.limit_us);
  plot.append(
      svg('line', {
        id: 'slo',
        x1: size.left,
        x2: size.right,
        y1: at,
        y2: at,
        stroke: 'var(--accent)',
        'stroke-width': 1.5,
        'stroke-dasharray': '7 4'
      }),
      svg('text', {x: size.left + 8, y: at - 7, style: 'fill: var(--accent)'}, data.slo.text));
}

function describe(point, name) {
  const interval = point.ci_us[name];
  return [
    `${name} ${microseconds(point.latency_us[name])}` +
        (interval ? ` [${microseconds(interval[0])}, ${microseconds(interval[1])}]` : ''),
    `${rateText(point.offered_rate)} offered, ${rateText(point.achieved_rate)} answered a second`,
    saturated(point) ? point.saturated.why : point.verdict === 'ok' ? '' : point.reasons[0]
  ].filter(Boolean).map(microSigns).join('\n');
}

function drawSeries(plot, x, y, rank, extent) {
  const name = SERIES[rank], colour = causeColour(theme(), rank);
  const value = us => y(known(us) ? Math.max(us, extent.low) : extent.high);
  const sound = ordered.filter(point => !saturated(point));
  plot.append(svg('path', {
    d: sound.map((point, i) => `${i ? 'L' : 'M'}${x(achieved(point)).toFixed(1)} ${
                                value(point.latency_us[name]).toFixed(1)}`).join(''),
    fill: 'none',
    stroke: colour,
    'stroke-width': 1.5,
    'stroke-opacity': .6
  }));
  for (const point of ordered) {
    const at = x(achieved(point)), interval = point.ci_us[name];
    if (interval)
      plot.append(svg('line', {
        x1: at,
        x2: at,
        y1: value(interval[0]),
        y2: value(interval[1]),
        stroke: colour,
        'stroke-width': 5,
        'stroke-opacity': .35
      }));
    plot.append(svg('path', {
      class: 'point',
      d: shapePath(causeShape(rank), at, value(point.latency_us[name]), 5),
      fill: point.verdict === 'ok' ? colour : 'var(--paper)',
      stroke: colour,
      'stroke-width': 1.5,
      pointermove: event => showTip(event, describe(point, name)),
      pointerleave: hideTip
    }));
  }
}

function drawCurve() {
  const extent = extents();
  const x = linearScale(0, extent.rate, size.left, size.right),
        y = logScale(extent.low, extent.high, size.bottom, size.top);
  const plot = svg('svg', {
    viewBox: `0 0 ${size.width} ${size.height}`,
    role: 'img',
    'aria-label': 'Latency percentiles over the rate of answers; the table below has the figures'
  });
  axes(plot, x, y, extent);
  saturationBand(plot, x);
  sloLine(plot, y);
  SERIES.forEach((_, rank) => drawSeries(plot, x, y, rank, extent));
  byId('curve-plot').replaceChildren(plot);
  byId('curve-legend')
      .replaceChildren(
          ...SERIES.map((name, rank) => element('span', {}, swatch(rank), name)));
}

function drawFacts() {
  const facts = [
    ['Load', `${data.protocol}, ${data.workload || 'the default workload'}, ${data.arrivals} arrivals, ${
                 plural(data.connections, 'connection')}, seed ${data.seed}`],
    ['Runs', `${plural(ordered.length, 'run')}, ${
                 count(ordered.filter(point => point.verdict === 'ok').length)} of them without reservation`]
  ];
  if (data.slo) facts.unshift(['SLO', `${data.slo.text}: ${data.slo.verdict}`]);
  showFacts(byId('facts'), facts);
}

function drawRuns() {
  const cell = (point, name) => {
    const interval = point.ci_us[name];
    return microseconds(point.latency_us[name]) +
        (interval ? ` [${microseconds(interval[0])}, ${microseconds(interval[1])}]` : '');
  };
  const columns = [
    ['offered/s'], ['answered/s'], ...SERIES.map(name => [name + ' [95 %]']),
    ...(data.slo ? [['SLO', true]] : []), ['saturated', true], ['verdict', true]
  ];
  byId('runs').replaceChildren(table(
      columns,
      data.points.map(
          point =>
              [rateText(point.offered_rate), rateText(point.achieved_rate),
               ...SERIES.map(name => cell(point, name)), ...(data.slo ? [point.slo] : []),
               saturated(point) ? microSigns(point.saturated.why) : '–',
               point.verdict === 'ok' ? 'ok' : 'n/a: ' + microSigns(point.reasons[0] || '')]),
      'All runs in the order they were made'));
}

drawFacts();
drawCurve();
drawRuns();
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawCurve);
document.documentElement.dataset.ready = 'yes';
