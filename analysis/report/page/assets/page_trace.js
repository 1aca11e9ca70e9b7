// SPDX-License-Identifier: MIT
//
// A processor trace: nested spans over time, a block of rows for each core or for each thread. The
// data is what analysis/report/page/page_trace.h says.

const KIND = ['function', 'system call', 'interrupt', 'not traced', 'task', 'lost'];
const FILL = ['#0072b2', '#009e73', '#cc79a7', null, '#e69f00', null];
const INK = ['#ffffff', '#ffffff', '#2d1020', null, '#2b1e00', null];
// Neighbours are often functions; shades tell them apart.
const SHADES = ['#0072b2', '#00619a', '#2884bd'];
const FUNCTION = 0, TASK = 4, LOST = 5, UNTRACED = 3, IDLE = 0;
const LEFT = 150, GAP = 16, ROW_MOST = 17, HEIGHT_MOST = 24000;
const taskNames = new Map(data.tasks.map(([task, , name]) => [task, name]));
const amountText = value => data.unit === 'ns' ? duration(value) : `${count(value)} ${data.unit}`;
function taskText(task) {
  if (task < 0) return 'no task known';
  return `${taskNames.get(task) || (task ? 'thread' : 'idle')} (${task})`;
}

// With as many digits as it takes to see that it differs from its neighbours.
function tickText(tick, step) {
  if (data.unit !== 'ns') return count(tick);
  const units = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']],
        [unit, name] = units.find(([ns]) => tick >= ns) ?? units[3],
        digits = Math.ceil(Math.log10(unit / (step || unit)) - 1e-9);
  return `${(tick / unit).toFixed(Math.min(Math.max(digits, 0), 9))} ${name}`;
}

// Blocks of rows: [{name, spans: [[stream, index], ...], depths}].
function blocksByCore() {
  return data.streams.map(stream => {
    const all = stream.kind.map((_, i) => i);
    return block(data.names[stream.name], all.map(i => [stream, i]));
  });
}
function blocksByThread() {
  const threads = new Map();
  for (const stream of data.streams)
    for (let i = 0; i < stream.kind.length; i++) {
      if (stream.kind[i] === LOST || stream.task[i] === IDLE) continue;
      if (!threads.has(stream.task[i])) threads.set(stream.task[i], []);
      threads.get(stream.task[i]).push([stream, i]);
    }
  return [...threads]
      .sort(([a], [b]) => a - b)
      .map(([task, spans]) => block(taskText(task), inOrder(spans)));
}
// A thread's spans on one core are in order already, outer ones first; sorting is stable.
const inOrder = spans => spans.sort(([a, i], [b, k]) => a.from[i] - b.from[k]);
function block(name, spans) {
  const depths = spans.reduce((most, [stream, i]) => Math.max(most, stream.depth[i] + 1), 1);
  return {name, spans, depths};
}

class TracePlot {
  constructor(place) {
    this.canvas = element(
        'canvas', {tabindex: 0, role: 'img', 'aria-label': 'Timeline of the processor trace'});
    place.replaceChildren(this.canvas);
    this.size = {left: LEFT, right: 800};
    this.viewport =
        new Viewport(this.canvas, {area: () => this.size, change: () => this.draw(), pans: true});
    this.viewport.extent(0, data.length);
    this.canvas.addEventListener('pointermove', event => this.hover(event));
    this.canvas.addEventListener('pointerleave', hideTip);
  }

  show(blocks) {
    this.blocks = blocks;
    const rows = blocks.reduce((sum, {depths}) => sum + depths, 0);
    this.row = Math.max(
        3, Math.min(ROW_MOST, Math.floor((HEIGHT_MOST - blocks.length * GAP) / (rows || 1))));
    let y = 26;
    for (const one of blocks) {
      one.y = y;
      y += one.depths * this.row + GAP;
    }
    this.bottom = y;
    this.draw();
  }

  draw() {
    const {context, width} = fitCanvas(this.canvas, this.bottom), colours = theme();
    this.size.right = width - 12;
    this.x = linearScale(this.viewport.from, this.viewport.to, this.size.left, this.size.right);
    this.lost = hatch(context, colours);
    this.drawAxis(context, colours);
    for (const one of this.blocks) {
      context.fillStyle = colours.ink;
      context.textAlign = 'right';
      context.fillText(fitText(context, one.name, LEFT - 16), LEFT - 10, one.y + this.row / 2);
      context.textAlign = 'left';
      this.drawBlock(context, colours, one);
    }
    this.viewport.drawDrag(context, this.bottom, colours);
  }

  drawAxis(context, colours) {
    context.textAlign = 'center';
    const ticks = linearTicks(this.viewport.from, this.viewport.to, 7);
    for (const tick of ticks) {
      const at = Math.round(this.x(tick)) + 0.5;
      context.strokeStyle = colours.grid;
      context.beginPath();
      context.moveTo(at, 18);
      context.lineTo(at, this.bottom);
      context.stroke();
      context.fillStyle = colours.muted;
      context.fillText(tickText(tick + 0, ticks[1] - ticks[0]), at, 9);
    }
  }

  // Spans too narrow to see are drawn once a pixel and row.
  drawBlock(context, colours, {spans, depths, y}) {
    const {from, to} = this.viewport, drawn = new Float64Array(depths).fill(-1);
    for (const [stream, i] of spans) {
      const begin = stream.from[i], end = begin + stream.span[i], depth = stream.depth[i];
      if (end < from || begin > to) continue;
      const left = Math.max(this.x(begin), this.size.left),
            right = Math.min(this.x(end), this.size.right - 1);
      if (right <= drawn[depth] && right - left < 1) continue;
      const width = Math.max(right - left, 1);
      drawn[depth] = left + width;
      this.box(context, colours, stream, i, left, width, y + depth * this.row);
    }
  }

  box(context, colours, stream, i, left, width, top) {
    const kind = stream.kind[i], idle = kind === TASK && stream.task[i] === IDLE;
    context.fillStyle = kind === LOST || kind === UNTRACED ? this.lost :
        idle                                               ? colours.idle :
        kind === FUNCTION ? SHADES[stream.label[i] % SHADES.length] :
                            FILL[kind];
    context.fillRect(left, top, width > 3 ? width - 0.6 : width, this.row - 1);
    if (width < 28 || this.row < 11) return;
    context.fillStyle = INK[kind] && !idle ? INK[kind] : colours.muted;
    const text = fitText(context, data.names[stream.label[i]], width - 8);
    if (text) context.fillText(text, left + 4, top + this.row / 2);
  }

  hover(event) {
    const at = this.canvas.getBoundingClientRect(), x = event.clientX - at.left,
          y = event.clientY - at.top;
    const one = this.blocks.find(({y: top, depths}) => y >= top && y < top + depths * this.row);
    if (!one || this.viewport.drag || x < LEFT) return hideTip();
    const depth = Math.floor((y - one.y) / this.row);
    const near = one.spans.find(
        ([stream, i]) => stream.depth[i] === depth && x >= this.x(stream.from[i]) - 1 &&
            x <= this.x(stream.from[i] + stream.span[i]) + 1);
    if (!near) return hideTip();
    showTip(event, describe(...near));
  }
}

function describe(stream, i) {
  const cut = stream.cut[i], where = [
    cut & 1 ? 'began earlier' : null, cut & 2 ? 'goes on later' : null
  ].filter(known).join(', ');
  return `${data.names[stream.label[i]]} (${KIND[stream.kind[i]]})\n${
      amountText(stream.span[i])}, from ${amountText(stream.from[i])}${
      where ? '\n' + where : ''}\n${data.names[stream.name]}, ${taskText(stream.task[i])}`;
}

function drawLegend() {
  const kinds = new Set(data.streams.flatMap(stream => [...new Set(stream.kind)]));
  byId('legend').replaceChildren(
      ...[...kinds].sort().map(
          kind => element(
              'span', {}, element('span', {
                class: 'swatch',
                style: `background:${FILL[kind] ?? 'var(--faint)'}`
              }),
              KIND[kind])));
}

function showMissing() {
  byId('missing').replaceChildren(
      table(
          [
            ['stream', true], ['spans here'], ['left out, as they are shorter than'], ['spans'],
            ['time of their own'], ['lost'], ['decode errors']
          ],
          data.streams.map(
              stream =>
                  [data.names[stream.name], count(stream.kind.length),
                   stream.left_out ? amountText(stream.least) : '–', count(stream.left_out),
                   amountText(stream.left_out_self), amountText(stream.lost),
                   count(stream.errors)]),
          'What each stream has on this page and what not'),
      data.unit === 'ns' ?
          element(
              'p', {class: 'hint'},
              'taillight analyze --from TIME --to TIME shows a part, with its short spans.') :
          '',
      ...data.notes.map(note => element('p', {class: 'hint'}, note)));
}

const plot = new TracePlot(byId('timeline'));
const here = data.streams.reduce((sum, stream) => sum + stream.kind.length, 0),
      leftOut = data.streams.reduce((sum, stream) => sum + stream.left_out, 0);
byId('sentence').textContent = `${amountText(data.length)} of ${
    plural(data.streams.length, 'stream')}: ${plural(here, 'span')}${
    leftOut ? ` and ${count(leftOut)} shorter ones that are left out` : ''}`;
choice(
    byId('grouping'), 'Rows', [['core', 'by core'], ['thread', 'by thread']], 'core',
    key => plot.show(key === 'core' ? blocksByCore() : blocksByThread()));
plot.show(blocksByCore());
drawLegend();
showMissing();
addEventListener('resize', () => plot.draw());
document.documentElement.dataset.ready = 'yes';
