// SPDX-License-Identifier: MIT
//
// The balloon plot: one balloon per message and cause, after NSight's figures 3 and 12.

// A colour of the style as a picture has it.
function pixelOf(colour) {
  const pen = Object.assign(document.createElement('canvas'), {width: 1, height: 1}).getContext('2d');
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  return new Uint32Array(pen.getImageData(0, 0, 1, 1).data.buffer)[0];
}

// Room for the balloons of the first and of the last message, in pixels.
const BESIDE = 16;

// From when a message's latency counts.
const DUE = data.counts.without_client ? 'arrival' : 'intended send time';

class BalloonPlot {
  constructor(place) {
    this.canvas = element('canvas', {
      tabindex: 0,
      role: 'application',
      'aria-roledescription': 'balloon plot',
      'aria-label':
          'Slow messages in order of time. Arrow keys choose a message; the table of the slowest messages has the same data.'
    });
    this.legend = element('div', {class: 'legend', style: 'padding-left:66px'});
    // What changes with every choice is drawn above, since many thousand balloons take longer than a pointer
    // may wait.
    this.above = element('canvas', {'aria-hidden': 'true'});
    place.replaceChildren(element('div', {class: 'layers'}, this.canvas, this.above), this.legend);
    this.height = 420;
    this.size = {left: 66 + BESIDE, right: 900, top: 14, bottom: this.height - 42};
    this.viewport = new Viewport(
        this.canvas,
        {area: () => this.size, change: () => this.draw(), pick: event => this.pick(event)});
    this.canvas.addEventListener('pointermove', event => this.hover(event));
    this.canvas.addEventListener('pointerleave', hideTip);
    this.canvas.addEventListener('keydown', event => this.step(event));
  }

  load() {
    const diagnosis = current(), {to_ns: to, messages} = diagnosis;
    const from = diagnosis.from_ns ?? 0, end = to ?? data.measures.duration_ns ?? 1;
    timeOrder(diagnosis);
    if (view.spread === 'time')
      this.viewport.extent(Math.min(from, ...messages.at_ns.slice(0, 1)), Math.max(end, from + 1));
    else
      this.viewport.extent(0, messages.id.length);
    this.largest = diagnosis.attributions.ns.reduce((most, ns) => Math.max(most, ns || 0), 1);
    this.sprites = new Map();
    this.painted = null;
    this.draw();
  }

  // Where a message stands on the axis: at its time, or at its place among the slow ones in order
  // of time, which takes bursts apart.
  position(index) {
    const diagnosis = current();
    return view.spread === 'time' ? diagnosis.messages.at_ns[index] : diagnosis.place[index] + 0.5;
  }

  // The axis's ticks as [position, label].
  ticks() {
    const {from, to} = this.viewport, diagnosis = current(), order = timeOrder(diagnosis);
    if (view.spread === 'time')
      return linearTicks(from / 1e9, to / 1e9, this.canvas.clientWidth / 100)
          .map(tick => [tick * 1e9, Number(tick.toPrecision(9)) + ' s']);
    return linearTicks(from, to, this.canvas.clientWidth / 100)
        .filter(tick => tick % 1 === 0 && tick < order.length)
        .map(tick => [tick + 0.5, seconds(diagnosis.messages.at_ns[order[tick]])]);
  }

  // A balloon drawn once per cause and size, then copied.
  sprite(rank, radius, colours) {
    const key = rank * 1000 + radius * 2;
    if (!this.sprites.has(key)) {
      const ratio = window.devicePixelRatio || 1, side = Math.ceil((radius * 1.45 + 2) * 2);
      const canvas = document.createElement('canvas'), context = canvas.getContext('2d');
      canvas.width = canvas.height = Math.ceil(side * ratio);
      context.scale(ratio, ratio);
      const path = new Path2D(shapePath(causeShape(rank), side / 2, side / 2, radius)),
            colour = causeColour(colours, rank);
      context.globalAlpha = 0.42;
      context.fillStyle = colour;
      context.fill(path);
      context.globalAlpha = 0.95;
      context.strokeStyle = colour;
      context.lineWidth = radius < 3 ? 0.8 : 1.2;
      context.stroke(path);
      this.sprites.set(key, {canvas, side});
    }
    return this.sprites.get(key);
  }

  // Balloons shrink where there are many, so that they can be told apart; zooming in blows them up.
  largestRadius([first, after]) {
    return Math.min(Math.max(240 / Math.sqrt(Math.max(after - first, 1)), 7), 18);
  }

  // Which messages, in order of time, are on show or a little beyond: from, and up to before.
  visible() {
    const {times} = current(), {from, to} = this.viewport,
          margin = 20 * (to - from) / Math.max(this.size.right - this.size.left, 1);
    const firstAt = value => {
      if (view.spread !== 'time')
        return Math.min(Math.max(Math.ceil(value - 0.5), 0), times.length);
      let low = 0, high = times.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (times[middle] < value)
          low = middle + 1;
        else
          high = middle;
      }
      return low;
    };
    return [firstAt(from - margin), firstAt(to + margin)];
  }

  // Calls each(place, x, y) for the messages on show that have a latency.
  eachVisible([first, after], each) {
    const {times, logs} = current(), byTime = view.spread === 'time',
          [low, high] = this.y.logarithms, {bottom, top} = this.size;
    for (let place = first; place < after; place++) {
      if (Number.isNaN(logs[place]) || !inSpan(times[place])) continue;
      each(
          place, this.x(byTime ? times[place] : place + 0.5),
          bottom + (logs[place] - low) / (high - low || 1) * (top - bottom));
    }
  }

  // The largest balloon of each colour in every cell: more would not be seen. Cells are two pixels
  // wide, or four where there are very many. Returns lists of {x, y, rank} by twice the radius.
  balloons() {
    const {messages, attributions, causes, byTime} = current(), range = this.visible(),
          most = this.largestRadius(range), others = SHAPES.length, kinds = others + 1,
          cell = range[1] - range[0] > 1500 ? 4 : 2, beyond = 24,
          columns = Math.ceil((this.size.right - this.size.left + 2 * beyond) / cell) + 1,
          rows = Math.ceil(this.height / cell) + 1,
          kindOf = causes.map(
              cause => causeShown(cause) ? Math.min(causeRank(cause), others) : -1),
          largest = new Int32Array(columns * rows * kinds), found = [];  // places in `found` plus 1
    this.eachVisible(range, (place, x, y) => {
      const index = byTime[place], column = (x - this.size.left + beyond) / cell | 0;
      if (column < 0 || column >= columns) return;
      for (let j = messages.first[index]; j < messages.first[index + 1]; j++) {
        const kind = kindOf[attributions.cause[j]] ?? -1;
        if (kind < 0) continue;
        const size =
            Math.max(3, Math.round(2 * most * Math.sqrt((attributions.ns[j] || 0) / this.largest)));
        const slot = (column * rows + (y / cell | 0)) * kinds + kind, seen = found[largest[slot] - 1];
        if (!seen)
          largest[slot] = found.push({x, y, size, rank: kind < others ? kind : 99});
        else if (seen.size < size)
          Object.assign(seen, {x, y, size});
      }
    });
    const bySize = [];
    for (const balloon of found) (bySize[balloon.size] ??= []).push(balloon);
    return bySize;
  }

  scales() {
    const diagnosis = current(), [least, most] = diagnosis.extremes;
    const low = Math.min(diagnosis.reference_latency_ns ?? Infinity, least ?? 1000) * 0.8;
    const high = Math.max(most ?? low * 2, low * 2) * 1.3;
    return {
      x: linearScale(this.viewport.from, this.viewport.to, this.size.left, this.size.right),
      y: logScale(low, high, this.size.bottom, this.size.top),
      low,
      high
    };
  }

  draw() {
    const {context, width} = fitCanvas(this.above, this.height), colours = theme();
    this.size.right = width - 18;
    Object.assign(this, this.scales());
    this.drawBelow(colours, width);
    this.clip(context);
    this.chosen(context, colours);
    this.viewport.drawDrag(context, this.size.bottom, colours);
  }

  clip(context) {
    context.beginPath();
    context.rect(this.size.left - BESIDE, 0, this.size.right - this.size.left + 2 * BESIDE, this.size.bottom);
    context.clip();
  }

  // Axes and balloons, unless they are as they were.
  drawBelow(colours, width) {
    const {from, to} = this.viewport, {causes} = colours;
    const key =
        [
          view.diagnosis, view.cause, view.category, view.span, view.spread, from, to, width, causes[0],
          colours.paper
        ].join();
    if (this.painted === key) return;
    this.painted = key;
    this.paint(fitCanvas(this.canvas, this.height).context, colours);
    this.drawLegend();
  }

  paint(context, colours) {
    this.axes(context, colours);
    context.save();
    this.clip(context);
    this.dots(context, colours);
    const bySize = this.balloons();
    for (let size = bySize.length - 1; size >= 0; size--)
      for (const {x, y, rank} of bySize[size] ?? []) {
        const {canvas, side} = this.sprite(rank, size / 2, colours);
        context.drawImage(canvas, x - side / 2, y - side / 2, side, side);
      }
    context.restore();
  }

  axes(context, colours) {
    const {right, top, bottom} = this.size, left = this.size.left - BESIDE;
    context.strokeStyle = colours.grid;
    context.fillStyle = colours.muted;
    const line = (x1, y1, x2, y2) => {
      context.beginPath();
      context.moveTo(x1, y1);
      context.lineTo(x2, y2);
      context.stroke();
    };
    context.textAlign = 'right';
    for (const tick of logTicks(this.low, this.high, 9)) {
      const at = Math.round(this.y(tick)) + 0.5;
      line(left, at, right, at);
      context.fillText(shortDuration(tick), left - 9, at);
    }
    context.textAlign = 'center';
    for (const [position, label] of this.ticks()) {
      const at = Math.round(this.x(position)) + 0.5;
      line(at, bottom, at, bottom + 5);
      context.fillText(label, Math.min(at, right - 8), bottom + 16);
    }
    context.strokeStyle = colours.line;
    line(left, bottom + 0.5, right, bottom + 0.5);
    context.textAlign = 'right';
    context.fillText(
        right < 480               ? DUE :
            view.spread === 'time' ? `${DUE}, since the run began` :
                                     `one after the other, with their ${DUE}s since the run began`,
        right, bottom + 34);
    context.textAlign = 'left';
    context.fillText('latency', left + 6, top + 2);
    this.marks(context, colours, line);
  }

  // The ordinary latency, and where windows meet.
  marks(context, colours, line) {
    const reference = current().reference_latency_ns;
    context.setLineDash([2, 4]);
    context.strokeStyle = colours.faint;
    if (known(reference)) {
      const at = this.y(reference);
      line(this.size.left, at, this.size.right, at);
      context.fillText(`an ordinary message: ${duration(reference)}`, this.size.left + 6, at - 9);
    }
    const {times} = current();
    for (const {from_ns: from} of data.diagnoses) {
      if (!known(from)) continue;
      const first = times.findIndex(at => at >= from);
      const position = view.spread === 'time' ? from : first;
      if (position > this.viewport.from && position < this.viewport.to)
        line(this.x(position), this.size.top, this.x(position), this.size.bottom);
    }
    context.setLineDash([]);
  }

  // A dot for each message, so that those without a (shown) cause are seen as well. They stay as they are when a cause
  // is chosen.
  dots(context, colours) {
    const ratio = window.devicePixelRatio || 1, {width, height} = this.canvas, {from, to} = this.viewport,
          key = [view.diagnosis, view.span, view.spread, from, to, width, height, colours.faint].join();
    if (this.dotted !== key) this.layer = this.dotLayer(colours, ratio);
    this.dotted = key;
    context.drawImage(this.layer, 0, 0, width / ratio, height / ratio);
  }

  // Set in a picture of their own, which takes a tenth of as many small rectangles.
  dotLayer(colours, ratio) {
    const layer = document.createElement('canvas'), {width, height} = this.canvas, side = Math.round(1.5 * ratio),
          image = new ImageData(width, height), pixels = new Uint32Array(image.data.buffer), colour = pixelOf(colours.faint);
    Object.assign(layer, {width, height});
    this.eachVisible(this.visible(), (place, x, y) => {
      if (x < this.size.left || x > this.size.right) return;
      const corner = Math.round((y - 0.75) * ratio) * width + Math.round((x - 0.75) * ratio);
      for (let down = 0; down < side; down++)
        for (let right = 0; right < side; right++)
          pixels[corner + down * width + right] = colour;
    });
    layer.getContext('2d').putImageData(image, 0, 0);
    return layer;
  }

  chosen(context, colours) {
    const {messages} = current();
    if (view.message === null || !known(messages.latency_ns[view.message])) return;
    const x = this.x(this.position(view.message)), y = this.y(messages.latency_ns[view.message]);
    context.strokeStyle = colours.ink;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, y + 22);
    context.lineTo(x, this.size.bottom);
    context.stroke();
    context.lineWidth = 1.6;
    context.beginPath();
    context.arc(x, y, 21, 0, 2 * Math.PI);
    context.stroke();
  }

  drawLegend() {
    const seen = new Map(current().causes.filter(inCategory).map(cause => [causeKey(cause), cause])),
          causes = [...seen.values()], shown = causes.filter(cause => causeRank(cause) < SHAPES.length);
    const rest = causes.length - shown.length;
    this.legend.replaceChildren(
        ...shown.map(cause => element('span', {}, swatch(causeRank(cause)), causeName(cause))),
        rest > 0 ? element(
                       'span', {}, swatch(99),
                       shown.length ? `${plural(rest, 'other cause')}` : 'located, not explained') :
                                      '');
  }

  // The message nearest to the pointer, or null when none is near.
  nearest(event) {
    const box = this.canvas.getBoundingClientRect(), px = event.clientX - box.left,
          py = event.clientY - box.top;
    const {messages} = current();
    let best = null, least = 22 * 22;
    for (let i = 0; i < messages.id.length; i++) {
      if (!known(messages.latency_ns[i])) continue;
      const dx = this.x(this.position(i)) - px, dy = this.y(messages.latency_ns[i]) - py,
            distance = dx * dx + dy * dy;
      if (distance < least) {
        least = distance;
        best = i;
      }
    }
    return best;
  }

  hover(event) {
    const index = this.viewport.drag ? null : this.nearest(event);
    if (index === null) {
      hideTip();
      return;
    }
    const {messages} = current();
    showTip(event, [
      `message ${messages.id[index]}: ${duration(messages.latency_ns[index])}`,
      ...ownCauses(current(), index)
          .slice(0, 6)
          .map(({cause, ns}) => `${causeLabel(cause)} +${duration(ns)}`)
    ].join('\n'));
  }

  pick(event) {
    const index = this.nearest(event);
    if (index !== null) chooseMessage(current().messages.id[index], true);
  }

  step(event) {
    const diagnosis = current(), length = diagnosis.messages.id.length,
          order = timeOrder(diagnosis);
    if (!length || event.ctrlKey || event.metaKey || event.altKey) return;
    const index = view.message ?? 0, place = diagnosis.place[index];
    const next = {
      ArrowLeft: order[Math.max(place - 1, 0)],
      ArrowRight: order[Math.min(place + 1, length - 1)],
      ArrowUp: Math.max(index - 1, 0),
      ArrowDown: Math.min(index + 1, length - 1),
      Home: order[0],
      End: order[length - 1]
    }[event.key];
    if (event.key === 'Enter') {
      event.preventDefault();
      byId('message').scrollIntoView({behavior: 'smooth', block: 'nearest'});
    }
    if (next === undefined) return;
    event.preventDefault();
    chooseMessage(diagnosis.messages.id[next]);
  }
}

function renderBalloonControls() {
  choice(
      byId('balloon-controls'), 'Spread', [['order', 'one after the other'], ['time', 'by time']],
      view.spread, key => {
        view.spread = key;
        balloons.load();
      });
}

let balloons;

sections.push({
  id: 'balloons',
  title: 'Slow messages in order of time',
  place: 6,
  within: 'dock',
  has: () => Boolean(current()?.messages.id.length),
  controls: ['balloon-controls'],
  markup: `
    <p class="hint"><span id="balloon-words"></span> Click one to see that message's life beside or below. Keys: <span class="nowrap"><kbd>←</kbd> <kbd>→</kbd> next in time,</span> <span class="nowrap"><kbd>↑</kbd> <kbd>↓</kbd> slower or faster,</span> <span class="nowrap"><kbd>+</kbd> <kbd>−</kbd> <kbd>0</kbd> zoom;</span> drag to zoom in, double-click to zoom out.</p>
    <div class="plot" id="balloon-plot"></div>`,
  start: () => {
    balloons = new BalloonPlot(byId('balloon-plot'));
  },
  diagnosis: () => {
    byId('balloon-words').textContent = current().causes.length ?
        'A balloon is one cause of one message; its area is the time the cause added.' :
        'A dot is a message of which no cause is known.';
    renderBalloonControls();
    balloons.load();
  },
  cause: () => balloons.draw(),
  message: () => balloons.draw(),
  draw: () => {
    balloons.sprites = new Map();
    balloons.painted = null;
    balloons.draw();
  }
});
