// SPDX-License-Identifier: MIT
//
// The messages of a slice of both runs beside each other, on the same scales: balloons for what a
// message has of a cause beyond the base's median, and boxes of how much it has at all. After
// NSight's figures 12 to 15, of two runs.

const BALLOON_HEIGHT = 330, BALLOON_ROWS = 12;
const PANELS = ['base', 'candidate'];
const balloonArea = {left: 62, top: 26, bottom: BALLOON_HEIGHT - 34};
const chosenMessage = {base: null, candidate: null};

// Colours go by the size of the change; what is only located stays grey.
const rankOf = (slice, index) => slice.changes[index].explains ? index : 99;

function balloonScales(slice, side, right) {
  const sides = PANELS.map(name => slice.balloons[name]), own = slice.balloons[side];
  const latencies = sides.flatMap(one => one.latency_us).filter(us => known(us) && us > 0),
        low = latencies.reduce((least, us) => Math.min(least, us), Infinity),
        high = latencies.reduce((most, us) => Math.max(most, us), low * 2),
        times = own.at_s.reduce(([from, to], at) => [Math.min(from, at), Math.max(to, at)], [Infinity, 0]);
  return {
    low: low * .9,
    high: high * 1.15,
    x: linearScale(times[0], Math.max(times[1], times[0] + 1e-6), balloonArea.left + 12, right - 12),
    y: logScale(low * .9, high * 1.15, balloonArea.bottom, balloonArea.top),
    times,
    largest: sides.reduce((most, one) => one.us.reduce((m, us) => Math.max(m, us), most), 1e-3)
  };
}

function balloonAxes(context, scales, right, colours, title) {
  const line = (x1, y1, x2, y2) => {
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x2, y2);
    context.stroke();
  };
  const {left, top, bottom} = balloonArea;
  context.strokeStyle = colours.grid;
  context.fillStyle = colours.muted;
  context.textAlign = 'right';
  for (const tick of logTicks(scales.low, scales.high, 6)) {
    const at = Math.round(scales.y(tick)) + .5;
    line(left, at, right, at);
    context.fillText(shortDuration(tick * 1000), left - 8, at);
  }
  context.textAlign = 'center';
  for (const tick of linearTicks(scales.times[0], scales.times[1], 5))
    if (tick >= scales.times[0])
      context.fillText(`${Number(tick.toPrecision(4))} s`, scales.x(tick), bottom + 14);
  context.strokeStyle = colours.line;
  line(left, bottom + .5, right, bottom + .5);
  context.textAlign = 'left';
  context.fillStyle = colours.ink;
  context.fillText(title, left, 10);
}

function paintBalloons(canvas, slice, side) {
  const {context, width} = fitCanvas(canvas, BALLOON_HEIGHT), colours = theme(), right = width - 8,
        own = slice.balloons[side], scales = balloonScales(slice, side, right), balloons = [];
  // Smaller where there are many, the same on both sides.
  const most = Math.max(...PANELS.map(name => slice.balloons[name].id.length), 1),
        widest = Math.min(Math.max(260 / Math.sqrt(most), 5), 15);
  canvas.scales = scales;
  balloonAxes(context, scales, right, colours, `${side}: ${plural(own.messages, 'message')}${
      own.id.length < own.messages ? `, ${count(own.id.length)} of them shown` : ''}`);
  context.fillStyle = colours.faint;
  own.id.forEach((_, i) => {
    const x = scales.x(own.at_s[i]), y = scales.y(own.latency_us[i]);
    context.fillRect(x - .75, y - .75, 1.5, 1.5);
    for (let j = own.first[i]; j < own.first[i + 1]; j++)
      if (shown.cause === null || own.cause[j] === shown.cause)
        balloons.push({x, y, rank: rankOf(slice, own.cause[j]),
                       r: Math.max(1.5, widest * Math.sqrt(own.us[j] / scales.largest))});
  });
  for (const {x, y, rank, r} of balloons.sort((a, b) => b.r - a.r)) {
    const path = new Path2D(shapePath(causeShape(rank), x, y, r));
    context.fillStyle = context.strokeStyle = causeColour(colours, rank);
    context.globalAlpha = .38;
    context.fill(path);
    context.globalAlpha = .9;
    context.stroke(path);
  }
  context.globalAlpha = 1;
  const at = chosenMessage[side];
  if (at === null || at >= own.id.length) return;
  context.strokeStyle = colours.ink;
  context.beginPath();
  context.arc(scales.x(own.at_s[at]), scales.y(own.latency_us[at]), 18, 0, 2 * Math.PI);
  context.stroke();
}

function messageWords(slice, side, index) {
  const own = slice.balloons[side], causes = [];
  for (let j = own.first[index]; j < own.first[index + 1]; j++) causes.push([own.us[j], own.cause[j]]);
  causes.sort((a, b) => b[0] - a[0]);
  return [
    `${side}, message ${own.id[index]}: ${micros(own.latency_us[index])}`,
    ...causes.slice(0, 5).map(([us, cause]) => `${changeLabel(slice.changes[cause])} +${micros(us)}`)
  ];
}

function nearestMessage(canvas, slice, side, event) {
  const box = canvas.getBoundingClientRect(), own = slice.balloons[side];
  let best = null, least = 20 * 20;
  own.id.forEach((_, i) => {
    const dx = canvas.scales.x(own.at_s[i]) - (event.clientX - box.left),
          dy = canvas.scales.y(own.latency_us[i]) - (event.clientY - box.top);
    if (dx * dx + dy * dy < least) [best, least] = [i, dx * dx + dy * dy];
  });
  return best;
}

function stepBalloons(canvas, slice, side, event) {
  const own = slice.balloons[side], order = own.id.map((_, i) => i).sort((a, b) => own.at_s[a] - own.at_s[b]),
        place = order.indexOf(chosenMessage[side] ?? 0), last = order.length - 1;
  const next = {
    ArrowLeft: order[Math.max(place - 1, 0)],
    ArrowRight: order[Math.min(place + 1, last)],
    ArrowUp: Math.max((chosenMessage[side] ?? 0) - 1, 0),
    ArrowDown: Math.min((chosenMessage[side] ?? -1) + 1, last),
    Home: order[0],
    End: order[last]
  }[event.key];
  if (next === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  chosenMessage[side] = next;
  paintBalloons(canvas, slice, side);
  byId('balloon-words').textContent = messageWords(slice, side, next).join('; ');
}

function renderBalloons(slice) {
  const place = byId('balloon-plot'), legend = byId('balloon-legend');
  byId('balloon-words').textContent = '';
  if (!slice.available) {
    place.replaceChildren(element('p', {class: 'empty'}, microSigns(slice.verdict)));
    legend.replaceChildren();
    return;
  }
  const canvases = PANELS.map(side => {
    const canvas = element('canvas', {
      tabindex: 0,
      role: 'application',
      'aria-roledescription': 'balloon plot',
      'aria-label': `Messages of the ${side} in order of time. Arrow keys choose a message.`,
      pointermove: event => {
        const index = nearestMessage(canvas, slice, side, event);
        if (index === null) hideTip();
        else showTip(event, messageWords(slice, side, index).join('\n'));
      },
      pointerleave: hideTip,
      keydown: event => stepBalloons(canvas, slice, side, event)
    });
    return canvas;
  });
  place.replaceChildren(...canvases.map(canvas => element('div', {}, canvas)));
  canvases.forEach((canvas, i) => paintBalloons(canvas, slice, PANELS[i]));
  const named = slice.changes.map((one, i) => [one, rankOf(slice, i)])
                    .filter(([, rank]) => rank < SHAPES.length);
  legend.replaceChildren(
      ...named.map(([one, rank]) => element('span', {}, swatch(rank), changeLabel(one))),
      element('span', {}, swatch(99), 'other'));
}

// Two boxes a cause: of the messages that have any of it.
function renderCauseBoxes(slice) {
  const place = byId('box-plot'), size = rowsSize(place), {narrow, width} = size, rows = slice.changes.slice(0, BALLOON_ROWS);
  const spreads = rows.flatMap(one => SIDES.map(side => one.spread[side].us)).filter(us => known(us.max) && us.max > 0);
  if (!spreads.length) {
    place.replaceChildren(element('p', {class: 'empty'}, microSigns(slice.verdict)));
    return;
  }
  const low = Math.max(Math.min(...spreads.map(us => us.min)), .01), high = Math.max(...spreads.map(us => us.max), low * 10),
        scale = logScale(low, high, size.left, size.right),
        x = us => scale(Math.max(us, low)), row = 40, bottom = 24 + rows.length * row, colours = SIDE_COLOURS();
  const plot = rowsPlot(size, bottom + 26, {role: 'img', 'aria-label': 'What a message has of each cause, in both runs; the table above has the means'});
  for (const tick of logTicks(low, high, narrow ? 2 : 8))
    plot.append(
        svg('line', {class: 'grid', x1: x(tick), x2: x(tick), y1: 20, y2: bottom}),
        svg('text', {class: 'muted', x: x(tick), y: bottom + 18, 'text-anchor': 'middle'}, shortDuration(tick * 1000)));
  for (const [at, text] of [...(narrow ? [] : [[width - 92, 'messages']]), [width - 4, 'median']])
    plot.append(svg('text', {class: 'muted', x: at, y: 14, 'text-anchor': 'end'}, text));
  rows.forEach((one, i) => {
    const y = 24 + i * row, label = changeLabel(one), rank = rankOf(slice, i);
    plot.append(
        svg('path', {d: shapePath(causeShape(rank), 8, y + row / 2, 5), fill: causeColour(theme(), rank), 'fill-opacity': .75}),
        svg('text', {x: 22, y: y + row / 2 + 4}, cutTo(size.letters - 3, label)));
    SIDES.forEach((side, at) => {
      const {messages, us} = one.spread[side], middle = y + 12 + at * 16, text = (where, words) =>
          svg('text', {class: at ? 'muted' : null, x: where, y: middle + 4, 'text-anchor': 'end'}, words);
      if (messages) plot.append(queueBox(us, middle, x, colours[at], at === 1));
      plot.append(narrow ? '' : text(width - 92, count(messages)), text(width - 4, messages ? micros(us.median) : '–'));
    });
  });
  place.replaceChildren(sideLegend(SIDES), plot);
}
