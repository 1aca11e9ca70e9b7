// SPDX-License-Identifier: MIT
//
// Latency over time, of every request; below, when the causes of the slow ones were at work. A
// column leads to its slowest request; several columns are a piece of time, of which all the other views
// then show the messages. The window that is diagnosed, and the piece that was chosen, stay bright.

const HEAT_HEIGHT = 300, HEAT_STRIPS = 5, HEAT_STRIP = 13;

// For each column how long a cause held up messages that were due in it.
function causeByTime({causes: own}, columns, whole) {
  const {causes, messages, attributions} = current(), sums = new Float64Array(columns);
  for (let i = 0; i < messages.id.length; i++)
    for (let j = messages.first[i]; j < messages.first[i + 1]; j++)
      if (own.includes(causes[attributions.cause[j]]))
        sums[Math.min(columns - 1, messages.at_ns[i] / whole * columns | 0)] += attributions.ns[j] || 0;
  return sums;
}

// `heat()` is what it shows: cells of the page's data.
class HeatMap {
  constructor(place, heat, label = 'Latency over time') {
    this.source = heat;
    this.strips = [];
    this.canvas = element('canvas', {
      tabindex: 0,
      role: 'application',
      'aria-roledescription': 'heat map',
      'aria-label':
          label + '. Left and right choose an instant, Enter its slowest message; with Shift a piece of time, whose messages all views then show, Escape all again.',
      keydown: event => this.key(event),
      pointerdown: event => this.down(event),
      pointermove: event => this.hover(event),
      pointerup: event => this.up(event),
      pointercancel: () => this.cancel(),
      pointerleave: hideTip,
      blur: () => this.mark(null)
    });
    place.replaceChildren(this.canvas);
    this.column = null;
    this.anchor = null;  // the column where a piece of time began that keys choose
    this.drag = null;  // [first column, last] while a piece of time is being chosen
  }

  get heat() {
    return this.source();
  }

  load() {
    const {columns} = this.heat, whole = data.measures.duration_ns || 1;
    this.strips = current() ? readersCauses(current()).slice(0, HEAT_STRIPS).map(
        one => ({cause: one.causes[0], key: one.key, sums: causeByTime(one, columns, whole)})) : [];
    this.draw();
  }

  draw() {
    const {columns, rows, low_ns: low, high_ns: high} = this.heat, colours = theme(),
          height = HEAT_HEIGHT + 44 + this.strips.length * HEAT_STRIP, {context, width} = fitCanvas(this.canvas, height);
    this.left = 66;
    this.right = width - 14;
    const column = (this.right - this.left) / columns, row = (HEAT_HEIGHT - 34) / rows, bottom = HEAT_HEIGHT,
          y = logScale(low, high, bottom, bottom - rows * row);
    this.cells(context, colours, column, row, bottom);
    context.fillStyle = context.strokeStyle = colours.muted;
    context.textAlign = 'right';
    for (const tick of logTicks(low, high, 8)) context.fillText(shortDuration(tick), this.left - 9, y(tick));
    if (this.heat.cells.some((number, i) => number && i % (rows + 1) === rows))
      context.fillText('never', this.left - 9, bottom - rows * row - 14);
    this.drawStrips(context, colours, column, bottom + 8);
    this.times(context, colours, bottom + 8 + this.strips.length * HEAT_STRIP);
    this.outside(context, colours, height - 34);
    this.piece(context, colours, height - 34);
    this.drawn = view.span;
    if (this.column !== null) {
      context.strokeStyle = colours.ink;
      context.strokeRect(this.left + this.column * column - .5, 6, column + 1, height - 40);
    }
  }

  cells(context, colours, column, row, bottom) {
    const {rows, cells} = this.heat, most = cells.reduce((sum, one) => Math.max(sum, one), 1);
    cells.forEach((number, i) => {
      if (!number) return;
      const at = i / (rows + 1) | 0, level = i % (rows + 1), never = level === rows;
      context.globalAlpha = .16 + .84 * Math.log1p(number) / Math.log1p(most);
      context.fillStyle = never ? colours.accent : colours.curve;
      context.fillRect(
          this.left + at * column, bottom - (level + 1) * row - (never ? 8 : 0), Math.max(column - .4, .6), row - .3);
    });
    context.globalAlpha = 1;
  }

  // One strip a cause, darker where it held up messages longer.
  drawStrips(context, colours, column, top) {
    this.strips.forEach(({cause, sums}, i) => {
      const most = Math.max(...sums, 1);
      context.fillStyle = colours.idle;
      context.fillRect(this.left, top + i * HEAT_STRIP, this.right - this.left, HEAT_STRIP - 3);
      context.fillStyle = causeColour(colours, causeRank(cause));
      sums.forEach((ns, at) => {
        if (!ns) return;
        context.globalAlpha = .3 + .7 * Math.sqrt(ns / most);
        context.fillRect(this.left + at * column, top + i * HEAT_STRIP, Math.max(column, 1.5), HEAT_STRIP - 3);
      });
      context.globalAlpha = 1;
    });
  }

  times(context, colours, y) {
    const whole = (data.measures.duration_ns || 1) / 1e9;
    context.fillStyle = colours.muted;
    context.textAlign = 'center';
    for (const tick of linearTicks(0, whole, (this.right - this.left) / 90))
      context.fillText(`${Number(tick.toPrecision(6))} s`, this.left + tick / whole * (this.right - this.left), y + 14);
  }

  // Lets what is not from..to fade.
  fade(context, colours, [from, to], bottom) {
    const whole = data.measures.duration_ns || 1, x = ns => this.left + ns / whole * (this.right - this.left);
    context.globalAlpha = .65;
    context.fillStyle = colours.paper;
    context.fillRect(this.left, 0, x(from) - this.left, bottom);
    context.fillRect(x(to), 0, this.right - x(to), bottom);
    context.globalAlpha = 1;
    return [x(from), x(to)];
  }

  // What the diagnosis on show is not about.
  outside(context, colours, bottom) {
    const {from_ns: from, to_ns: to} = current() ?? {};
    if (known(from)) this.fade(context, colours, [from, to], bottom);
  }

  // The piece of time that was chosen, or is being chosen.
  piece(context, colours, bottom) {
    const span = this.drag ? this.spanOf(...this.drag) : view.span;
    if (!span) return;
    const [from, to] = this.fade(context, colours, span, bottom);
    context.strokeStyle = colours.accent;
    context.strokeRect(from, 6, to - from, bottom - 6);
  }

  spanOf(a, b) {
    const step = (data.measures.duration_ns || 1) / this.heat.columns;
    return [Math.min(a, b) * step, (Math.max(a, b) + 1) * step];
  }

  down(event) {
    const column = event.button === 0 ? this.columnAt(event) : null;
    if (column === null) return;
    this.drag = [column, column];
    if (event.isTrusted) this.canvas.setPointerCapture(event.pointerId);  // a test's pointer cannot be held
  }

  // Within one column it was a click.
  up(event) {
    const drag = this.drag;
    this.drag = null;
    if (!drag) return;
    if (drag[0] === drag[1])
      this.choose(this.columnAt(event));
    else
      chooseSpan(this.spanOf(...drag));
    this.draw();
  }

  // A finger that scrolls.
  cancel() {
    this.drag = null;
    this.draw();
  }

  columnAt(event) {
    const {left} = this.canvas.getBoundingClientRect(), at = (event.clientX - left - this.left) / (this.right - this.left);
    return at < 0 || at >= 1 ? null : at * this.heat.columns | 0;
  }

  words(column) {
    const {columns, rows, cells, slowest} = this.heat, step = (data.measures.duration_ns || 1) / columns,
          own = cells.slice(column * (rows + 1), (column + 1) * (rows + 1));
    const at = this.strips.filter(one => one.sums[column] > 0)
                   .map(one => `${causeName(one.cause)} +${duration(one.sums[column])}`);
    return [
      `${seconds(Math.round(column * step))} to ${seconds(Math.round((column + 1) * step))}: ${
          plural(own.reduce((sum, one) => sum + one, 0), 'request')}${own[rows] ? `, ${count(own[rows])} never answered` : ''}`,
      known(slowest[column]) ? `slowest: message ${slowest[column]}` : 'no request', ...at
    ].join('\n');
  }

  hover(event) {
    const column = this.columnAt(event);
    if (this.drag) {
      this.drag[1] = column ?? this.drag[1];
      this.draw();
    }
    if (column === null)
      hideTip();
    else
      showTip(event, this.words(column));
  }

  mark(column) {
    this.column = column;
    this.draw();
    if (column === null) {
      hideTip();
      return;
    }
    const {left, top} = this.canvas.getBoundingClientRect();
    showTip({clientX: left + this.left + column / this.heat.columns * (this.right - this.left), clientY: top + 20}, this.words(column));
  }

  choose(column) {
    const id = column === null ? null : this.heat.slowest[column];
    if (known(id)) chooseMessage(id, true);
  }

  key(event) {
    const last = this.heat.columns - 1, at = this.column ?? 0, next = {
      ArrowLeft: Math.max(at - 1, 0),
      ArrowRight: this.column === null ? 0 : Math.min(at + 1, last),
      Home: 0,
      End: last
    }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Enter') this.choose(this.column);
    if (event.key === 'Escape') chooseSpan(null);
    if (next === undefined) return;
    event.preventDefault();
    this.anchor = event.shiftKey ? this.anchor ?? at : null;
    if (this.anchor !== null) chooseSpan(this.spanOf(this.anchor, next));
    this.mark(next);
  }
}

let heatMap;

function renderHeatLegend() {
  byId('heat-legend').replaceChildren(...heatMap.strips.map(
      ({cause, key}) => element(
          'button', {type: 'button', 'aria-pressed': String(view.cause === key), click: () => chooseCause(key)},
          swatch(causeRank(cause)), ' ', causeName(cause))));
}

sections.push({
  id: 'heat',
  title: 'Latency over time',
  place: 9,
  has: () => Boolean(data.heat),
  markup: `
    <p class="lead">Every request: the stronger the colour, the more of them<span id="heat-strips">; the strips below show when the largest causes held up slow ones</span>. <span id="heat-choice">Click an instant, or choose it by <kbd>←</kbd> <kbd>→</kbd> and <kbd>Enter</kbd>, to see its slowest message. Drag over a piece of time, or hold <kbd>Shift</kbd>, and the causes, balloons, boxes, queues, cores and lists are of its messages, and the curve of its latency stands beside that of all; <kbd>Esc</kbd> shows all again.</span></p>
    <div class="plot" id="heat-plot"></div>
    <div class="controls" id="heat-legend"></div>`,
  start: () => {
    heatMap = new HeatMap(byId('heat-plot'), () => data.heat);
  },
  diagnosis: () => {
    heatMap.load();
    byId('heat-strips').hidden = !heatMap.strips.length;
    byId('heat-choice').hidden = !current()?.messages.id.length;
    renderHeatLegend();
  },
  cause: () => {
    if (heatMap.drawn !== view.span) heatMap.draw();
    renderHeatLegend();
  },
  draw: () => {
    heatMap.draw();
    renderHeatLegend();
  }
});
