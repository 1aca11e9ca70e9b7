// SPDX-License-Identifier: MIT
//
// The page of a comparison: how the percentiles shifted, and slice by slice which components of
// latency appeared, grew, shrank or went. A side is one run or several.

const SIDES = ['candidate', 'base'];
const QUANTILES = ['p50', 'p90', 'p99', 'p99.9', 'p99.99', 'max'];
const shown = {
  slice: 0,
  cause: null
};
// null: never answered; what is missing, too few requests reach.
const micros = us => known(us) ? duration(us * 1000) : us === undefined ? 'too few requests' : 'never';
const signed = us => known(us) ? (us < 0 ? '−' : '+') + duration(Math.abs(us) * 1000) : '?';
const changeLabel = change => `${change.cause ?? change.function} (${change.role})`;
// An outline means the same as the colour, for readers who cannot see colours.
const CHANGE_LOOK = {
  appeared: [0, 'new'],
  grew: [0, 'grew'],
  shrank: [2, 'shrank'],
  gone: [2, 'gone'],
  unchanged: [99, '']
};

const CONFIDENCE = `${100 * data.confidence} %`;
const several = SIDES.every(side => data[side].runs > 1);

function renderFacts() {
  const facts = SIDES.map(side => {
    const run = data[side];
    return [
      side === 'base' ? 'Base' : 'Candidate',
      `${run.path}: ${plural(run.runs, 'run')}, ${count(run.requests)} requests, ${count(run.offered_rate)} /s offered, ${
          count(run.achieved_rate)} /s achieved, ${percent(run.joined, run.requests)} with every stamp`
    ];
  });
  facts.push([
    'How sure',
    `${CONFIDENCE} intervals from resampling ${
        several ? `the runs, and ${data.blocks} blocks of time within each` :
                  `${data.blocks} blocks of time within each run. With one run a side they do not know how much runs differ by themselves: repeat both to learn that`}.`
  ]);
  if (data.warning && !data.doubtful) facts.unshift(['Beware', data.warning]);  // else it is what the page begins with
  showFacts(byId('facts'), facts);
}

function renderLatency() {
  const bracket = range => range ? ` [${micros(range[0])}, ${micros(range[1])}]` : '',
        judged = new Map(data.percentiles.map(one => [one.percentile, one])),
        rank = name => name === 'max' ? 100 : Number(name.slice(1)),
        names = [...new Set([...judged.keys(), ...QUANTILES])].sort((a, b) => rank(a) - rank(b));
  const row = name => {
    const one = judged.get(name), [now, before] = SIDES.map(side => one ? one[`${side}_us`] : data[side].latency_us[name]);
    return [
      name, micros(before) + bracket(one?.base_ci_us), micros(now) + bracket(one?.candidate_ci_us),
      one?.change_ci && known(one.change) ? signedPercent(one.change) : '–',
      one?.change_ci ? `[${one.change_ci.map(signedPercent).join(', ')}]` : '–'
    ];
  };
  byId('latency').replaceChildren(table(
      [['', true], ['base'], ['candidate'], ['change'], [CONFIDENCE]], names.map(row), 'Latency'));
}

// Plots of a row a cause have its name on the left and two columns of figures on the right; on a phone a
// shorter name and one column, so that there is room for the plot itself.
function rowsSize(place) {
  const width = place.clientWidth;
  return width < 600 ? {narrow: true, width: Math.max(320, width), left: 150, right: Math.max(320, width) - 84, letters: 21} :
                       {narrow: false, width: Math.max(800, width), left: 320, right: Math.max(800, width) - 190, letters: 38};
}
const cutTo = (letters, text) => text.length > letters ? text.slice(0, letters - 1) + '…' : text;
// What one is drawn on.
const rowsPlot = (size, height, attributes) =>
    svg('svg', {viewBox: `0 0 ${size.width} ${height}`, class: size.narrow ? 'narrow' : null, ...attributes});

// A row a percentile: the change, its interval, and why. Choosing one shows the messages around it.
function renderShifts() {
  const place = byId('shifts-plot'), {narrow, width} = rowsSize(place),
        rows = data.percentiles.filter(one => one.known && known(one.change)),
        size = {narrow, width, left: narrow ? 60 : 90, right: width - (narrow ? 24 : 260)}, bottom = 24 + rows.length * 30;
  byId('shifts-list').replaceChildren(
      ...data.percentiles.map(one => element('li', {}, one.verdict)));
  if (!rows.length) {
    place.replaceChildren(element('p', {class: 'empty'}, 'No percentile is known well enough to say how much it changed.'));
    return;
  }
  const ends = rows.flatMap(one => [one.change, ...one.change_ci]),
        low = Math.min(...ends, -.01), high = Math.max(...ends, .01), x = linearScale(low, high, size.left, size.right);
  const plot = rowsPlot(size, bottom + 26, {role: 'group', 'aria-label': 'Change of each percentile; the table has the figures'});
  for (const tick of linearTicks(low, high, narrow ? 3 : 7))
    plot.append(
        svg('line', {class: Math.abs(tick) < 1e-12 ? 'axis' : 'grid', x1: x(tick), x2: x(tick), y1: 20, y2: bottom}),
        svg('text', {class: 'muted', x: x(tick), y: bottom + 18, 'text-anchor': 'middle'},
            `${tick > 1e-12 ? '+' : tick < -1e-12 ? '−' : ''}${Math.abs(Number((100 * tick).toPrecision(3)))} %`));
  rows.forEach((one, i) => {
    const y = 24 + i * 30, middle = y + 15, [from, to] = one.change_ci, sure = from > 0 || to < 0,
          colour = causeColour(theme(), !sure ? 99 : from > 0 ? 0 : 2),
          choose = () => chooseSlice(data.slices.findIndex(slice => slice.slice === one.around));
    plot.append(svg(
        'g', {
          class: 'cause-row',
          'data-percentile': one.percentile,
          tabindex: 0,
          role: 'button',
          'aria-label': one.verdict,
          click: choose,
          keydown: event => {
            if (event.key !== 'Enter' && event.key !== ' ') return;
            event.preventDefault();
            choose();
          },
          pointermove: event => showTip(event, one.verdict),
          pointerleave: hideTip
        },
        svg('rect', {class: 'hit', x: 0, y, width, height: 30, fill: 'transparent'}),
        svg('text', {x: 0, y: middle + 4}, one.percentile),
        svg('line', {x1: x(from), x2: x(to), y1: middle, y2: middle, stroke: colour, 'stroke-width': 5, 'stroke-opacity': .4}),
        svg('path', {d: shapePath(sure ? from > 0 ? 'triangle' : 'down' : 'circle', x(one.change), middle, 6), fill: colour}),
        narrow ? '' :  // the list below has it
                 svg('text', {x: width - 4, y: middle + 4, 'text-anchor': 'end'},
                     `${signedPercent(one.change)} [${one.change_ci.map(signedPercent).join(', ')}]`)));
  });
  place.replaceChildren(plot);
}

function renderCurves() {
  const place = byId('curve-plot'), width = Math.max(320, place.clientWidth),
        curves = SIDES.map(side => data[side].curve.filter(([, us]) => known(us) && us > 0)),
        all = curves.flat();
  if (!all.length) {
    place.replaceChildren(element('p', {class: 'empty'}, 'Nothing was answered.'));
    return;
  }
  const size = {left: 76, right: width - 20, top: 12, bottom: 300}, colours = SIDE_COLOURS(),
        times = all.map(([, us]) => us),
        low = Math.min(...times), high = Math.max(...times, low * 10),
        least = Math.min(...all.map(([slower]) => slower)),
        x = logScale(low, high, size.left, size.right), y = logScale(1, least / 1.2, size.top, size.bottom);
  const plot = svg('svg', {viewBox: `0 0 ${width} 340`, role: 'img', 'aria-label': 'Latency of both runs; the table below has their percentiles'});
  for (const tick of logTicks(low, high, 10))
    plot.append(
        svg('line', {class: 'grid', x1: x(tick), x2: x(tick), y1: size.top, y2: size.bottom}),
        svg('text', {class: 'muted', x: x(tick), y: size.bottom + 18, 'text-anchor': 'middle'}, shortDuration(tick * 1000)));
  for (let slower = 1; slower >= least / 1.2; slower /= 10)
    plot.append(
        svg('line', {class: 'grid', x1: size.left, x2: size.right, y1: y(slower), y2: y(slower)}),
        svg('text', {class: 'muted', x: size.left - 8, y: y(slower) + 4, 'text-anchor': 'end'}, `${Number((100 * slower).toPrecision(2))} %`));
  curves.forEach((curve, side) => {
    if (!curve.length) return;
    plot.append(svg('path', {
      d: 'M' + curve.map(([slower, us]) => `${x(us).toFixed(1)} ${y(slower).toFixed(1)}`).join('L'),
      fill: 'none',
      stroke: colours[side],
      'stroke-width': 2,
      'stroke-dasharray': side ? '5 3' : null
    }));
  });
  plot.append(svg('text', {class: 'muted', x: size.right, y: size.bottom + 36, 'text-anchor': 'end'}, 'latency'));
  place.replaceChildren(sideLegend(SIDES), plot);
}

// Choosing a cause leaves only its balloons.
function toggleCause(index) {
  shown.cause = shown.cause === index ? null : index;
  renderSlice();
  byId('changes-plot').querySelectorAll('[data-cause]')[index]?.focus();
}

// choose: what a click on a row does; without it, rows cannot be clicked.
function changeRow(change, y, x, size, choose, pressed) {
  const [rank, word] = CHANGE_LOOK[change.change], colour = causeColour(theme(), rank),
        from = Math.min(x(0), x(change.difference_us)), middle = y + 13,
        label = changeLabel(change), sure = change.change !== 'unchanged';
  const whiskers = known(change.low_us) && known(change.high_us) ? [
    svg('line', {x1: x(change.low_us), x2: x(change.high_us), y1: middle, y2: middle, stroke: 'var(--ink)'}),
    ...[change.low_us, change.high_us].map(
        at => svg('line', {x1: x(at), x2: x(at), y1: middle - 4, y2: middle + 4, stroke: 'var(--ink)'}))
  ] :
                                                                    [];
  return svg(
      'g', {
        'data-cause': label,
        tabindex: 0,
        role: choose ? 'button' : 'img',
        class: choose ? 'cause-row' : null,
        'aria-pressed': choose ? String(pressed) : null,
        click: () => choose?.(),
        keydown: event => {
          if (choose && (event.key === 'Enter' || event.key === ' ')) {
            event.preventDefault();
            choose();
          }
        },
        'aria-label': `${label} ${change.change}: ${signed(change.difference_us)}`,
        pointermove: event => showTip(
            event,
            `${label}, ${change.category}: ${change.change}\nbase ${micros(change.base_us)} on average, ${
                percent(change.base_share)} of messages longer than its median\ncandidate ${
                micros(change.candidate_us)}, ${percent(change.candidate_share)}\nchange ${
                signed(change.difference_us)} [${signed(change.low_us)}, ${signed(change.high_us)}]`),
        pointerleave: hideTip
      },
      svg('rect', {class: 'hit', x: 0, y, width: size.width, height: 26, fill: 'transparent'}),
      svg('text', {x: 0, y: middle + 4}, cutTo(size.letters, label)),
      size.narrow ? '' : svg('text', {class: 'muted', x: size.left - 10, y: middle + 4, 'text-anchor': 'end'}, word),
      svg('rect', {
        x: from,
        y: y + 5,
        width: Math.max(Math.abs(x(change.difference_us) - x(0)), 1),
        height: 16,
        fill: colour,
        'fill-opacity': sure ? .5 : .15,
        stroke: colour,
        'stroke-dasharray': word === 'gone' || word === 'new' ? '4 2' : null
      }),
      ...whiskers,
      svg('text', {x: size.width - (size.narrow ? 4 : 92), y: middle + 4, 'text-anchor': 'end'}, signed(change.difference_us)),
      size.narrow ? '' :
                    svg('text', {class: 'muted', x: size.width - 4, y: middle + 4, 'text-anchor': 'end'},
                        `${wholePercent(change.base_share, 1)} → ${wholePercent(change.candidate_share, 1)} %`));
}

// name: of the places, `NAME-plot` and `NAME-table`. choose: of a row by its number, or null.
function renderChanges(name, changes, none, choose) {
  const place = byId(`${name}-plot`), size = rowsSize(place), {narrow, width} = size, rows = changes.slice(0, 18);
  if (!rows.length) {
    place.replaceChildren(element('p', {class: 'empty'}, none));
    byId(`${name}-table`).replaceChildren();
    return;
  }
  const ends = rows.flatMap(one => [one.difference_us, one.low_us, one.high_us]).filter(known);
  const x = linearScale(Math.min(...ends, 0), Math.max(...ends, 0.001), size.left, size.right),
        bottom = 24 + rows.length * 26;
  const plot = rowsPlot(size, bottom + 26, {role: 'group', 'aria-label': 'What changed'});
  for (const tick of linearTicks(Math.min(...ends, 0), Math.max(...ends, 0.001), narrow ? 2 : 7))
    plot.append(
        svg('line', {class: tick === 0 ? 'axis' : 'grid', x1: x(tick), x2: x(tick), y1: 20, y2: bottom}),
        svg('text', {class: 'muted', x: x(tick), y: bottom + 18, 'text-anchor': 'middle'},
            tick === 0 ? '0' : signed(tick).replace(/\.0+ /, ' ').replace(/(\.\d*?)0+ /, '$1 ')));
  plot.append(
      svg('text', {class: 'muted', x: width - (narrow ? 4 : 92), y: 14, 'text-anchor': 'end'}, 'a message'),
      narrow ? '' : svg('text', {class: 'muted', x: width - 4, y: 14, 'text-anchor': 'end'}, 'messages'),
      ...rows.map((one, i) => changeRow(one, 24 + i * 26, x, size, choose ? () => choose(i) : null, shown.cause === i)));
  place.replaceChildren(plot);
  byId(`${name}-table`).replaceChildren(table(
      [[changes[0].function ? 'function' : 'cause', true], ['category', true], ['change', true], ['base'], ['candidate'], ['difference'], ['from'], ['to'], ['messages, base'], ['candidate']],
      changes.map(
          one => [changeLabel(one), one.category, one.change, micros(one.base_us), micros(one.candidate_us),
                  signed(one.difference_us), signed(one.low_us), signed(one.high_us),
                  percent(one.base_share), percent(one.candidate_share)]),
      'What changed'));
}

// What the changes add up to: rows of [name, us], those that can be seen beside the largest. sure: whether
// more than scatter can be told of any.
function renderSums(place, rows, sure) {
  const size = rowsSize(place), {narrow, width} = size,
        most = Math.max(...rows.map(([, us]) => Math.abs(us))),
        shown = rows.filter(([, us]) => Math.abs(us) > most / 100).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  if (!shown.length) {
    place.replaceChildren(element('p', {class: 'empty'}, 'Nothing changed.'));
    return;
  }
  const all = shown.map(([, us]) => us), x = linearScale(Math.min(...all, 0), Math.max(...all, .001), size.left, size.right);
  const plot = rowsPlot(size, 8 + shown.length * 24, {role: 'img',
    'aria-label': shown.map(([name, us]) => `${name} ${signed(us)}`).join(', ')});
  plot.append(svg('line', {class: 'axis', x1: x(0), x2: x(0), y1: 0, y2: 8 + shown.length * 24}));
  shown.forEach(([name, us], i) => {
    const y = 4 + i * 24, colour = causeColour(theme(), !sure ? 99 : us > 0 ? 0 : 2);
    plot.append(
        svg('text', {x: 0, y: y + 16}, cutTo(size.letters, name)),
        svg('rect', {x: Math.min(x(0), x(us)), y: y + 4, width: Math.max(Math.abs(x(us) - x(0)), 1), height: 16, fill: colour, 'fill-opacity': sure ? .5 : .15, stroke: colour}),
        svg('text', {x: width - (narrow ? 4 : 92), y: y + 16, 'text-anchor': 'end'}, signed(us)));
  });
  place.replaceChildren(plot);
}

const PLACES = {client: 'client', network: 'network', R: 'server, core of the interrupt (R)', A: 'server, core of the application (A)'};
function renderPlaces(slice) {
  const sums = new Map(), sure = slice.changes.some(one => one.change !== 'unchanged');
  for (const one of slice.changes) sums.set(one.role, (sums.get(one.role) ?? 0) + one.difference_us);
  renderSums(byId('places-plot'), [...sums].map(([role, us]) => [PLACES[role] ?? role, us]), sure);
  renderSums(byId('categories-plot'), slice.categories.map(one => [one.category, one.difference_us]), sure);
}

function renderFunctions(slice) {
  const {available, changes, base, candidate} = slice.functions;
  byId('functions-lead').textContent = available ?
      `Time in each function itself, without what it called, a message: over ${
          plural(base, 'message')} of the base and ${count(candidate)} of the candidate whose functions are all known.` :
      base || candidate ? `Functions are known in the ${base ? 'base' : 'candidate'} only.` :
                          'Functions are known in neither run: that takes a processor trace or a function log.';
  byId('functions-plot').hidden = byId('functions-details').hidden = !available;
  if (available) renderChanges('functions', changes, 'No function took any time.', null);
}

function renderSlice() {
  const slice = data.slices[shown.slice], sides = SIDES.map(side => slice[side]);
  byId('slice-lead').textContent = microSigns(slice.verdict);
  renderChanges('changes', slice.changes, microSigns(slice.verdict), slice.balloons ? toggleCause : null);
  renderPlaces(slice);
  byId('balloons').hidden = !slice.balloons;
  if (slice.balloons) renderBalloons(slice);
  renderCauseBoxes(slice);
  renderFunctions(slice);
  byId('queue').hidden = !sides.every(side => side.queue);
  renderQueue(byId('queue-plot'), sides.map(side => side.queue), SIDES);
  renderContexts(byId('contexts-plot'), sides.map(side => side.contexts), SIDES);
  byId('queue-table').replaceChildren(
      sides.every(side => side.queue?.length) ? queueTable(sides.map(side => side.queue), SIDES) : '');
  byId('contexts-table').replaceChildren(contextTable(sides.map(side => side.contexts), SIDES));
}

const around = new Map(data.percentiles.map(one => [one.around, one.percentile]));
const sliceName = slice => slice.asked || !around.has(slice.slice) ? slice.slice : `around ${around.get(slice.slice)}`;

function chooseSlice(index) {
  if (index < 0) return;
  Object.assign(shown, {slice: index, cause: null});
  Object.assign(chosenMessage, {base: null, candidate: null});
  byId('slices').querySelectorAll('button').forEach(
      (button, i) => button.setAttribute('aria-pressed', String(i === index)));
  renderSlice();
}

const flameGraph = data.samples && new FlameGraph(byId('flame-plot'), 'the base');

// Of all requests, whatever the slice.
function renderSamples() {
  if (!flameGraph) return;
  const {base_totals: base, candidate_totals: candidate} = data.samples;
  byId('samples').hidden = false;
  byId('samples-lead').textContent =
      `${plural(candidate[0], 'sample')} of the candidate against ${count(base[0])} of the base.`;
  flameGraph.show(flameTree(data.samples, candidate, base));
}

function redraw() {
  renderCurves();
  renderShifts();
  renderSlice();
  flameGraph?.draw();
}

function start() {
  // The headline is that of the first slice; each slice's own sentence stands above its plot.
  renderFacts();
  renderLatency();
  renderCurves();
  renderShifts();
  if (data.slices.length > 1)
    choice(byId('slices'), 'Slice', data.slices.map((slice, i) => [i, sliceName(slice)]), 0, chooseSlice);
  chooseSlice(0);
  renderSamples();
  byId('footer').textContent = `Taillight ${data.taillight_version}`;
  let pending = 0;
  addEventListener('resize', () => {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(redraw);
  });
  for (const [event, on] of [['beforeprint', true], ['afterprint', false]])
    addEventListener(event, () => {
      document.documentElement.classList.toggle('printing', on);
      if (on)
        for (const details of document.querySelectorAll('details')) details.open = true;
      redraw();
    });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  document.documentElement.dataset.ready = 'yes';
}

start();
