// SPDX-License-Identifier: MIT
//
// One message's life: its stamps as lines, its stages, what ran on each core it lived on (spans
// nest downwards), also a while before and after, and the other messages of its thread meanwhile. After
// NSight's figures 5 and 8.

const timelines = new Map(data.timelines.map(one => [one.id, one]));

const KINDS = data.span_kinds; // by number: label, colour, colour of text on it
const ROW = 20, OTHER_ROW = 5, OTHER_ROWS = 36, STAMP_ROWS = 4, OWN_CAUSES = 7;
const spanName = index => data.names[index] ?? '?';

// A message whose timeline is not in the report still has stages, and so stamps.
function timelineFromStages(diagnosis, index) {
  const {messages} = diagnosis;
  if (index === null || index >= diagnosis.detailed) return null;
  const stages = messages.stages.map(column => column[index]),
        stamps = [{kind: 0, at: 0, core: null}];
  let at = 0;
  for (let i = 1; i < stages.length; i++)
    if (stages[i] > 0) stamps.push({kind: i, at: at += stages[i], core: null});
  return {
    id: messages.id[index],
    partial: true,
    begin_ns: messages.at_ns[index],
    life_ns: at,
    around_ns: 0,
    latency_ns: messages.latency_ns[index],
    stages,
    stamps,
    off_core: {from: [], length: [], sum: 0},
    hops: [],
    cores: [],
    operation: messages.operation[index],
    connection: messages.connection[index],
    thread: messages.thread[index],
    others: {id: [], omitted: 0}
  };
}

const hopStep = hop => hop.queue ? `in the queue of ${hop.from} (${hop.qdisc})` :
                                   `${hop.from} → ${hop.to}${hop.qdisc ? ` (qdisc ${hop.qdisc})` : ''}`;

// When the message lived on a core in that role, as [from, to] of its life.
function livedOn(timeline, roles) {
  const at = kind => timeline.stamps.find(stamp => stamp.kind === kind)?.at;
  const from = roles.includes('R') ? at(3) ?? at(4) : at(4) ?? at(5),
        to = roles.includes('A') ? at(7) ?? at(6) : at(4);
  return [from ?? 0, to ?? timeline.life_ns];
}

// Puts intervals into as few rows as they need: each into the first row that is free again.
function packRows(from, until) {
  const free = [];
  return from.map((begin, i) => {
    let row = free.findIndex(end => end <= begin);
    if (row < 0) row = free.length;
    free[row] = until[i];
    return row;
  });
}

class TimelinePlot {
  constructor(place) {
    this.canvas = element('canvas', {
      tabindex: 0,
      role: 'img',
      'aria-label': 'Timeline of the chosen message; the table below has the same data'
    });
    this.legend = element('div', {class: 'legend', style: 'padding-left:92px'});
    place.replaceChildren(this.canvas, this.legend);
    this.size = {left: 92, right: 800};
    this.timeline = null;
    this.viewport =
        new Viewport(this.canvas, {area: () => this.size, change: () => this.draw(), pans: true});
    this.canvas.addEventListener('pointermove', event => this.hover(event));
    this.canvas.addEventListener('pointerleave', hideTip);
  }

  load(timeline) {
    this.timeline = timeline;
    this.others = timeline ? packRows(timeline.others.from ?? [], timeline.others.until ?? []) : [];
    if (timeline) this.viewport.extent(-timeline.around_ns, timeline.life_ns + timeline.around_ns);
    this.draw();
  }

  // Without what was before and after it.
  showLife() {
    if (this.timeline) this.viewport.set(0, this.timeline.life_ns);
  }

  // Where everything stands; the height follows from it.
  layout() {
    const places = {stages: 66, hops: null, cores: [], others: null};
    let y = places.stages + 22 + 12;
    if (this.timeline.hops.length) {
      places.hops = places.stages + 24;
      y += ROW + 2;
    }
    for (const core of this.timeline.cores) {
      const depths = core.captured ?
          core.spans.depth.reduce((most, depth) => Math.max(most, depth + 1), 1) :
          1;
      places.cores.push({core, y, depths});
      y += depths * ROW + 14;
    }
    if (this.others.length) {
      const rows = Math.min(Math.max(...this.others) + 1, OTHER_ROWS);
      places.others = {y, rows};
      y += Math.max(rows * OTHER_ROW, 16) + 14;
    }
    places.axis = y;
    places.height = y + 26;
    return places;
  }

  draw() {
    this.canvas.hidden = !this.timeline;
    this.legend.hidden = !this.timeline;
    if (!this.timeline) return;
    const places = this.layout(), {context, width} = fitCanvas(this.canvas, places.height),
          colours = theme();
    this.size.right = width - 12;
    this.rects = [];
    this.x = linearScale(this.viewport.from, this.viewport.to, this.size.left, this.size.right);
    this.drawAxis(context, colours, places);
    this.labels(context, colours, places);
    context.save();
    context.beginPath();
    context.rect(this.size.left, 0, this.size.right - this.size.left, places.height);
    context.clip();
    this.drawStages(context, places);
    if (places.hops) this.drawHops(context, colours, places.hops);
    for (const place of places.cores)
      if (place.core.captured) this.drawCore(context, colours, place);
    if (places.others) this.drawOthers(context, colours, places.others);
    context.restore();
    this.drawStamps(context, colours, places);
    this.viewport.drawDrag(context, places.axis, colours);
    this.drawLegend();
  }

  labels(context, colours, places) {
    context.textAlign = 'right';
    const at = this.size.left - 10;
    context.fillStyle = colours.muted;
    context.fillText('stages', at, places.stages + 11);
    if (places.hops) context.fillText('hops', at, places.hops + ROW / 2);
    for (const {core, y} of places.cores) {
      context.fillStyle = colours.ink;
      context.fillText(`core ${core.core} · ${core.roles.split('').join(' ')}`, at, y + ROW / 2);
      context.fillStyle = colours.muted;
      if (!core.captured) {
        context.textAlign = 'left';
        context.fillText('this core was not captured', this.size.left + 6, y + ROW / 2);
        context.textAlign = 'right';
      }
    }
    if (places.others) {
      context.fillText('others on', at, places.others.y + 5);
      context.fillText('the thread', at, places.others.y + 19);
    }
    context.textAlign = 'left';
  }

  drawAxis(context, colours, places) {
    context.strokeStyle = colours.grid;
    context.fillStyle = colours.muted;
    context.textAlign = 'center';
    for (const tick of linearTicks(this.viewport.from, this.viewport.to, this.canvas.clientWidth / 90)) {
      const at = Math.round(this.x(tick)) + 0.5;
      context.beginPath();
      context.moveTo(at, places.stages);
      context.lineTo(at, places.axis + 4);
      context.stroke();
      context.fillText(
          tick === 0 ? '0' : shortDuration(tick), Math.min(at, this.size.right - 14),
          places.axis + 14);
    }
    context.textAlign = 'left';
  }

  // A box with its name where it fits; remembered for the tooltip.
  box(context, from, to, y, height, fill, ink, name, text, nameFrom = from) {
    const left = Math.max(this.x(from), this.size.left - 1),
          right = Math.min(this.x(to), this.size.right + 1);
    if (right < this.size.left || left > this.size.right || right < left) return;
    const width = Math.max(right - left, 0.8);
    context.fillStyle = fill;
    context.fillRect(left, y, width > 3 ? width - 0.6 : width, height);
    const start = Math.max(left, this.x(nameFrom));
    if (ink && right - start > 26) {
      context.fillStyle = ink;
      const label = fitText(context, name, right - start - 9);
      if (label) context.fillText(label, start + 4, y + height / 2 + 0.5);
    }
    if (text)
      this.rects.push({left, right: left + Math.max(width, 2), top: y, bottom: y + height, text});
  }

  drawStages(context, places) {
    const {stamps, stages, life_ns: life, around_ns: around} = this.timeline;
    for (const [from, to, text] of [[-around, 0, 'before'], [life, life + around, 'after']])
      if (around) this.box(context, from, to, places.stages, 22, theme().idle, theme().muted, text, null);
    for (let i = 1; i < stamps.length; i++) {
      const {at} = stamps[i], {at: from, kind: last} = stamps[i - 1];
      if (at <= from) continue;
      // Without the stamps between, the time of several stages is that of one of them.
      let {kind} = stamps[i];
      while (kind > last + 1 && !stages[kind]) kind--;
      const stage = data.stages[kind];
      this.box(
          context, from, at, places.stages, 22, STAGE_COLOURS[kind], STAGE_INK[kind],
          `${stage.name} ${duration(stages[kind])}`,
          `${stage.name} (${stageMark(stage)})\n${duration(stages[kind])}: ${
              data.stamps[last]} → ${data.stamps[stamps[i].kind]}`);
      if (kind === data.off_core_of) this.drawOffCore(context, places, stages[kind]);
    }
  }

  // Where the application had the message and its thread did not run, the stage is not its doing.
  drawOffCore(context, places, stage) {
    const {from, length, sum} = this.timeline.off_core;
    from.forEach(
        (at, i) => this.box(
            context, at, at + length[i], places.stages, 22, OFF_CORE_COLOUR, STAGE_INK[data.off_core_of],
            `not running ${duration(length[i])}`,
            `its thread does not run for ${duration(length[i])}\nof ${duration(stage)} with the application: ${
                duration(sum)}`));
  }

  // Between which hops its packet was on the network, in turn light and dark.
  drawHops(context, colours, y) {
    this.timeline.hops.forEach((hop, i) => {
      const inside = duration(hop.until - hop.at);
      this.box(
          context, hop.at, hop.until, y, ROW - 2, i % 2 ? colours.line : colours.idle, colours.muted,
          `${hopStep(hop)} ${inside}`, `${hopStep(hop)}\n${inside}, from ${duration(hop.at)}`);
    });
  }

  // Lines, and labels above them, each in the first row where it touches no other. The server's
  // stamps choose first: they say where the message was.
  drawStamps(context, colours, places) {
    const placed = [], important = stamp => stamp.kind >= 3 && stamp.kind <= 6 ? 0 : 1;
    const inView = this.timeline.stamps.filter(
        ({at}) => at >= this.viewport.from - 1 && at <= this.viewport.to + 1);
    context.textAlign = 'left';
    for (const stamp of [...inView].sort((a, b) => important(a) - important(b) || a.at - b.at)) {
      const at = this.x(stamp.at), label = data.stamps[stamp.kind],
            width = context.measureText(label).width,
            x = Math.max(Math.min(at - 3, this.size.right - width), this.size.left - 6);
      let row = 0;
      while (row < STAMP_ROWS &&
             placed.some(
                 other =>
                     other.row === row && other.x < x + width + 8 && x < other.x + other.width + 8))
        row++;
      const text = `${label}${stamp.core === null ? '' : ' on core ' + stamp.core}\n${
          duration(stamp.at)} after ${data.counts.without_client ? 'it arrived' : 'the intended time'}${
          stamp.disordered ? '\nout of order by more than the clock error' : ''}`;
      const bottom = places.stages - 6, top = row < STAMP_ROWS ? bottom - row * 14 : bottom;
      this.stampLine(
          context, stamp.disordered ? colours.accent : colours.ink, at, top, places.axis);
      this.rects.push({left: at - 2, right: at + 2, top: 0, bottom: places.stages, text});
      if (row === STAMP_ROWS) continue;
      placed.push({
        row,
        x,
        width,
        label,
        y: top - 7,
        colour: stamp.disordered ? colours.accent : colours.ink
      });
      this.rects.push({left: x, right: x + width, top: top - 14, bottom: top, text});
    }
    context.strokeStyle = colours.paper;  // a halo, where another stamp's line passes
    context.lineWidth = 4;
    context.lineJoin = 'round';
    for (const {label, x, y} of placed) context.strokeText(label, x, y);
    for (const {label, x, y, colour} of placed) {
      context.fillStyle = colour;
      context.fillText(label, x, y);
    }
    context.lineWidth = 1;
  }

  stampLine(context, colour, at, top, bottom) {
    context.strokeStyle = colour;
    context.globalAlpha = 0.75;
    context.setLineDash([4, 3]);
    context.beginPath();
    context.moveTo(Math.round(at) + 0.5, top);
    context.lineTo(Math.round(at) + 0.5, bottom);
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  drawCore(context, colours, {core, y, depths}) {
    const {spans} = core, lost = hatch(context, colours),
          [from, to] = livedOn(this.timeline, core.roles);
    for (let i = 0; i < spans.from.length; i++) {
      const kind = KINDS[spans.kind[i]] ?? KINDS[6], idle = spans.kind[i] === 2,
            name = idle       ? 'idle' :
          spans.kind[i] === 6 ? 'records lost' :
                                spanName(spans.name[i]);
      const here = spans.from[i] < to && spans.from[i] + spans.length[i] > from,
            inside = duration(spans.length[i]),
            cut = spans.whole[i] > spans.length[i] ? ` of ${duration(spans.whole[i])}` : '';
      const rank = spanRank(spans.kind[i], name), cause = rank < SHAPES.length;
      this.box(
          context, spans.from[i], spans.from[i] + spans.length[i], y + spans.depth[i] * ROW,
          ROW - 2, cause ? causeColour(colours, rank) : idle ? colours.idle : kind[1] ?? lost,
          !here ? null : cause ? '#111214' : kind[2] ?? colours.muted,
          `${name} ${inside}`,
          `${name} (${kind[0]})\n${inside}${cut}${cut ? ' within what is shown' : ''}, from ${
              duration(spans.from[i])}`,
          Math.max(spans.from[i], from));
    }
    // What ran while the message was elsewhere is paler.
    const height = depths * ROW;
    context.globalAlpha = 0.6;
    context.fillStyle = colours.paper;
    context.fillRect(this.size.left, y, Math.max(this.x(from) - this.size.left, 0), height);
    context.fillRect(this.x(to), y, Math.max(this.size.right - this.x(to), 0), height);
    context.globalAlpha = 1;
  }

  drawOthers(context, colours, {y, rows}) {
    const {others, connection} = this.timeline;
    this.others.forEach((row, i) => {
      if (row >= rows) return;
      const top = y + row * OTHER_ROW,
            text = `message ${others.id[i]}, connection ${others.connection[i]}${
                others.connection[i] === connection ?
                    ' (the same)' :
                    ''}\nat the server ${duration(others.until[i] - others.from[i])}, of which ${
                duration(others.until[i] - others.received[i])} in the application`;
      this.box(
          context, others.from[i], others.until[i], top, OTHER_ROW - 1.5, colours.line, null, '',
          text);
      this.box(
          context, others.received[i], others.until[i], top, OTHER_ROW - 1.5,
          others.connection[i] === connection ? colours.accent : colours.muted, null, '', null);
    });
  }

  drawLegend() {
    const kinds =
        new Set(this.timeline.cores.flatMap(core => core.captured ? core.spans.kind : []));
    const chips =
        [...kinds]
            .sort()
            .filter(kind => KINDS[kind])
            .map(
                kind => element(
                    'span', {}, element('span', {
                      class: 'swatch',
                      style: `background:${
                          KINDS[kind][1] ?? (kind === 2 ? 'var(--idle)' : 'var(--faint)')}`
                    }),
                    KINDS[kind][0]));
    const named = new Map();
    for (const {captured, spans} of this.timeline.cores)
      for (let i = 0; captured && i < spans.kind.length; i++) {
        const name = spanName(spans.name[i]), rank = spanRank(spans.kind[i], name);
        if (rank < SHAPES.length) named.set(rank, name + (SPAN_WORDS[spans.kind[i]] ?? ''));
      }
    for (const [rank, name] of named) chips.unshift(element('span', {}, swatch(rank), name));
    if (this.timeline.off_core.from.length)
      chips.push(element(
          'span', {}, element('span', {class: 'swatch', style: `background:${OFF_CORE_COLOUR}`}),
          'with the application, not running'));
    if (this.others.length)
      chips.push(
          element(
              'span', {}, element('span', {class: 'swatch', style: 'background:var(--line)'}),
              'another message waits'),
          element(
              'span', {}, element('span', {class: 'swatch', style: 'background:var(--muted)'}),
              '… is in the application'));
    this.legend.replaceChildren(...chips);
  }

  hover(event) {
    const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left,
          y = event.clientY - box.top;
    const hits = (this.rects ?? [])
                     .filter(
                         rect => x >= rect.left - 1 && x <= rect.right + 1 && y >= rect.top &&
                             y <= rect.bottom);
    if (!hits.length || this.viewport.drag)
      hideTip();
    else
      showTip(event, hits[hits.length - 1].text);
  }
}
