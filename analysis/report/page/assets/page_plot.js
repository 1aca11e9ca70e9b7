// SPDX-License-Identifier: MIT
//
// What all the plots share: elements, numbers in words, scales, shapes, colours, a tooltip and a
// zoomable window. Text from the run goes into text nodes only, never into markup.

const byId = id => document.getElementById(id);

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {}))
    if (typeof value === 'function')
      node.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false)
      node.setAttribute(name, value === true ? '' : value);
  node.append(...children.filter(child => child !== null && child !== undefined));
  return node;
}
const element = (tag, attributes, ...children) =>
    build(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
    build(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

// --- numbers in words -----------------------------------------------------------------------

const known = value => value !== null && value !== undefined;

// The rules of rounding are those of the terminal (base/units.c, base/text.c, summary_pieces.c).
function rounded(value, decimals) {
  const steps = 10 ** decimals;
  return (Math.sign(value) * Math.round(Math.abs(value) * steps) / steps).toFixed(decimals);
}

function significant(value) {
  const size = Math.abs(value);
  return rounded(value, size >= 99.95 || value === 0 ? 0 : size >= 9.995 ? 1 : 2);
}

// A duration with three significant digits; `missing` where it is not finite. What rounds to 1000 of a unit is 1 of the
// next.
function duration(ns, missing = 'never') {
  if (!known(ns)) return missing;
  const size = Math.abs(ns);
  if (size >= 999.5e6) return significant(ns / 1e9) + ' s';
  if (size >= 999.5e3) return significant(ns / 1e6) + ' ms';
  if (size >= 999.5) return significant(ns / 1e3) + ' µs';
  return rounded(ns, 0) + ' ns';
}

// The same for axes: no trailing zeros.
const shortDuration = ns => duration(ns).replace(/\.0+ /, ' ').replace(/(\.\d*?)0+ /, '$1 ');
const count = value => known(value) ? Math.round(value).toLocaleString('en-US') : 'unknown';

// A share just below 100 % or above 0 % is never rounded to it.
function percent(part, whole = 1) {
  if (!known(part) || !(whole > 0)) return '–';
  const value = 100 * part / whole;
  if (value === 0) return '0 %';
  if (value >= 100 && value < 100.01) return '100 %';  // rounding of whole nanoseconds
  if (value > 99.99 && value < 100) return '> 99.99 %';
  if (value > 0 && value < 0.01) return '< 0.01 %';
  return rounded(value, value > 99.9 || value < 9.995 ? 2 : 1) + ' %';
}
// A change in percent, with a decimal below ten.
function signedPercent(share) {
  if (!known(share)) return '?';
  const size = Math.abs(100 * share);
  return `${share < 0 ? '−' : '+'}${rounded(size, size < 9.95 ? 1 : 0)} %`;
}
// In whole percent, as sentences and bars have it: never rounded up to all, nor down to nothing.
function wholePercent(part, whole) {
  const value = 100 * part / whole;
  return value >= 99.95 ? 100 : value > 0 ? Math.max(1, Math.min(99, Math.round(value))) : 0;
}
function seconds(ns) {
  if (!known(ns)) return '–';
  const value = rounded(ns / 1e9, 3);
  return value.replace(/\.000$/, '') + ' s';
}
const plural = (number, one, many = one + 's') => `${count(number)} ${number === 1 ? one : many}`;

// The run's own sentences, in the page's letters.
const microSigns = text => text.replace(/(\d) us\b/g, '$1 µs');

// In sentences no line ends between a number and its unit. The text stays as it is.
function keepUnits(node) {
  const texts = document.createTreeWalker(node, NodeFilter.SHOW_TEXT), found = [];
  while (texts.nextNode()) found.push(texts.currentNode);
  for (const text of found)
    text.replaceWith(...text.data.split(/(\d+(?:[.,]\d+)* (?:ns|us|µs|ms|s|min|h|%)(?![\w-]))/)
                         .map((piece, i) => i % 2 ? element('span', {class: 'nowrap'}, piece) : piece));
}

// --- scales ---------------------------------------------------------------------------------

function linearScale(low, high, from, to) {
  const scale = value => from + (value - low) / (high - low || 1) * (to - from);
  scale.invert = at => low + (at - from) / (to - from) * (high - low);
  return scale;
}

function logScale(low, high, from, to) {
  const a = Math.log(low), b = Math.log(high);
  const scale = value =>
      from + (Math.log(Math.max(value, 1e-300)) - a) / (b - a || 1) * (to - from);
  scale.invert = at => Math.exp(a + (at - from) / (to - from) * (b - a));
  scale.logarithms = [a, b];
  return scale;
}

function linearTicks(low, high, wanted) {
  const rough = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find(factor => factor * power >= rough) * power;
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++)
    ticks.push(i * step);
  return ticks;
}

// 1, 2 and 5 of each decade, or only 1 where there would be too many.
function logTicks(low, high, wanted) {
  const all = [];
  if (!(low > 0 && high < Infinity)) return all;
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
    for (const factor of [1, 2, 5]) {
      const value = Number((factor * 10 ** power).toPrecision(3));
      if (value >= low * 0.999 && value <= high * 1.001) all.push(value);
    }
  if (all.length <= wanted) return all;
  return all.filter(value => /^1/.test(value.toExponential()));
}

// --- colours and shapes ----------------------------------------------------------------------

// Okabe and Ito's palette, which colour-blind people can tell apart; on dark paper the two darkest
// are lighter. Causes also differ in shape.
const LIGHT = ['#d55e00', '#0072b2', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#8a7a00'];
const DARK = ['#f07f2e', '#4a9fdc', '#1fbf93', '#dc92bb', '#f0b429', '#7cc8f5', '#d8cb3c'];
const SHAPES = ['circle', 'square', 'triangle', 'diamond', 'down', 'plus', 'star'];

// The last one, since asking for the style makes the browser compute what has changed on the page since.
let lastTheme;

function theme() {
  const printing = document.documentElement.classList.contains('printing'),
        dark = matchMedia('(prefers-color-scheme: dark)').matches && !printing;
  if (lastTheme?.dark === dark && lastTheme.printing === printing) return lastTheme;
  const style = getComputedStyle(document.documentElement),
        get = name => style.getPropertyValue('--' + name).trim();
  const colours = {dark, printing, causes: dark ? DARK : LIGHT, other: dark ? '#8b8e96' : '#7d8087'};
  for (const name
           of ['paper', 'raised', 'ink', 'muted', 'faint', 'line', 'grid', 'accent', 'curve',
               'band', 'idle', 'selected'])
    colours[name] = get(name);
  lastTheme = colours;
  return colours;
}
const causeColour = (colours, rank) => colours.causes[rank] || colours.other;
const causeShape = rank => SHAPES[rank] || 'circle';

// The outline of a shape of about the area of a circle of that radius, as an SVG path.
function shapePath(shape, x, y, r) {
  const polygon = points => 'M' +
      points.map(([a, b]) => `${(x + a * r).toFixed(2)} ${(y + b * r).toFixed(2)}`).join('L') + 'Z';
  const around = (n, radius, turn) => Array.from({length: n}, (_, i) => {
    const angle = 2 * Math.PI * i / n + turn,
          at = typeof radius === 'function' ? radius(i) : radius;
    return [at * Math.sin(angle), -at * Math.cos(angle)];
  });
  switch (shape) {
    case 'square':
      return polygon([[-.88, -.88], [.88, -.88], [.88, .88], [-.88, .88]]);
    case 'triangle':
      return polygon(around(3, 1.38, 0));
    case 'down':
      return polygon(around(3, 1.38, Math.PI));
    case 'diamond':
      return polygon(around(4, 1.22, 0));
    case 'plus':
      return polygon([
        [-.4, -1.1], [.4, -1.1], [.4, -.4], [1.1, -.4], [1.1, .4], [.4, .4], [.4, 1.1], [-.4, 1.1],
        [-.4, .4], [-1.1, .4], [-1.1, -.4], [-.4, -.4]
      ]);
    case 'star':
      return polygon(around(10, i => i % 2 ? .62 : 1.32, 0));
    default:
      return `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${- 2 * r} 0Z`;
  }
}

function swatch(rank) {
  const colour = causeColour(theme(), rank);
  return svg('svg', {viewBox: '0 0 13 13', 'aria-hidden': 'true'}, svg('path', {
               d: shapePath(causeShape(rank), 6.5, 6.5, 5),
               fill: colour,
               'fill-opacity': .75,
               stroke: colour
             }));
}

// --- tooltip, canvas, tables, controls -------------------------------------------------------

function showTip(event, text) {
  const tip = byId('tip');
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8)) + 'px';
  tip.style.top =
      Math.max(
          4,
          event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 :
                                                          event.clientY + 18) +
      'px';
}
const hideTip = () => {
  byId('tip').hidden = true;
};

// Arrows go from piece to piece of what is in `place` (a selector), each of which has words to show where a pointer is on it,
// and Enter does what a click on one does. Where no piece has the Tab key's attention itself, the place has.
function arrowsBetween(place, selector, label) {
  if (place.dataset.arrows) return;
  place.dataset.arrows = 'yes';
  if (label) build(place, {tabindex: 0, role: 'group', 'aria-label': `${label}. Arrows go from one to the next.`}, []);
  const tell = piece => {
    const {left, top, width, height} = piece.getBoundingClientRect();
    piece.dispatchEvent(
        new PointerEvent('pointermove', {clientX: left + Math.min(width, innerWidth) / 2, clientY: top + height / 2, bubbles: true}));
  };
  place.addEventListener('keydown', event => {
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key],
          pieces = [...place.querySelectorAll(selector)], at = pieces.indexOf(document.activeElement);
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !pieces.length) return;
    if (event.key === 'Enter' && pieces[at] instanceof SVGElement)
      pieces[at].dispatchEvent(new MouseEvent('click', {bubbles: true}));
    if (event.key === 'Escape') hideTip();
    if (!step) return;
    event.preventDefault();
    const next = pieces[at < 0 ? 0 : Math.min(Math.max(at + step, 0), pieces.length - 1)];
    if (!next.hasAttribute('tabindex') && !next.matches('button')) next.setAttribute('tabindex', -1);
    next.focus();
    tell(next);
  });
  place.addEventListener('focusout', hideTip);
}

// Sizes the canvas to its place and the screen's pixels; returns its context and width.
function fitCanvas(canvas, height) {
  const width = Math.max(300, canvas.parentElement.clientWidth),
        ratio = window.devicePixelRatio || 1;
  const wide = Math.round(width * ratio), high = Math.round(height * ratio), context = canvas.getContext('2d');
  canvas.style.height = height + 'px';
  if (canvas.width === wide && canvas.height === high && context.reset)
    context.reset();  // cheaper than memory of the same size
  else
    Object.assign(canvas, {width: wide, height: high});
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font =
      '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif';
  context.textBaseline = 'middle';
  return {context, width};
}

// The pattern of what is not known.
function hatch(context, colours) {
  const tile = document.createElement('canvas'), pen = tile.getContext('2d');
  tile.width = tile.height = 7;
  pen.fillStyle = colours.idle;
  pen.fillRect(0, 0, 7, 7);
  pen.strokeStyle = colours.faint;
  pen.beginPath();
  pen.moveTo(-1, 8);
  pen.lineTo(8, -1);
  pen.stroke();
  return context.createPattern(tile, 'repeat');
}

// The text cut to the width, with an ellipsis; empty where not even two letters fit.
function fitText(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(text.slice(0, middle) + '…').width <= width)
      low = middle;
    else
      high = middle - 1;
  }
  return low >= 2 ? text.slice(0, low) + '…' : '';
}

// columns: [title, is text]; rows: arrays of strings or nodes.
function table(columns, rows, caption) {
  const cell = (tag, content, column) => element(
      tag, {class: columns[column][1] ? 'text' : 'nowrap', scope: tag === 'th' ? 'col' : null},
      content);
  return element(
      'table', {}, element('caption', {class: 'only-screen-reader'}, caption),
      element('thead', {}, element('tr', {}, ...columns.map(([title], i) => cell('th', title, i)))),
      element(
          'tbody', {},
          ...rows.map(
              row => element('tr', {}, ...row.map((content, i) => cell('td', content, i))))));
}

// facts: [name, text].
function showFacts(place, facts) {
  place.replaceChildren(
      ...facts.flatMap(([name, text]) => [element('dt', {}, name), element('dd', {}, text)]));
}

// A group of buttons of which one is pressed. choices: [key, label].
function choice(place, label, choices, current, chosen) {
  place.replaceChildren(
      element('span', {class: 'label'}, label),
      ...choices.map(
          ([key, text]) => element(
              'button', {
                type: 'button',
                'aria-pressed': String(key === current),
                click: () => {
                  for (const button of place.querySelectorAll('button'))
                    button.setAttribute('aria-pressed', String(button.textContent === text));
                  chosen(key);
                }
              },
              text)));
  place.setAttribute('role', 'group');
  place.setAttribute('aria-label', label);
}

// --- a window onto an axis -------------------------------------------------------------------

// The part [from, to] of [low, high] that a plot shows. Drag zooms in, a double click out, the
// wheel zooms while the plot has the focus (otherwise it scrolls the page), keys + - 0 and, when
// `pans`, the arrows. `area()` says where the axis lies: {left, right} in pixels.
class Viewport {
  constructor(canvas, {area, change, pick, pans}) {
    Object.assign(this, {canvas, area, change, pick, low: 0, high: 1, from: 0, to: 1, drag: null});
    canvas.addEventListener('wheel', event => this.wheel(event), {passive: false});
    canvas.addEventListener('pointerdown', event => this.down(event));
    canvas.addEventListener('pointermove', event => this.move(event));
    canvas.addEventListener('pointerup', event => this.up(event));
    canvas.addEventListener('dblclick', () => this.reset());
    canvas.addEventListener('keydown', event => this.key(event, pans));
  }
  extent(low, high) {
    Object.assign(
        this, {low, high: Math.max(high, low + 1), from: low, to: Math.max(high, low + 1)});
  }
  get zoomed() {
    return this.from > this.low || this.to < this.high;
  }
  set(from, to) {
    const smallest = Math.max((this.high - this.low) / 1e5, 20),
          length = Math.min(Math.max(to - from, smallest), this.high - this.low);
    const start = Math.min(Math.max(from, this.low), this.high - length);
    Object.assign(this, {from: start, to: start + length});
    this.change();
  }
  reset() {
    this.set(this.low, this.high);
  }
  zoom(factor, at = (this.from + this.to) / 2) {
    this.set(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }
  valueAt(x) {
    const {left, right} = this.area();
    return this.from +
        (Math.min(Math.max(x, left), right) - left) / (right - left) * (this.to - this.from);
  }
  x(event) {
    return event.clientX - this.canvas.getBoundingClientRect().left;
  }
  wheel(event) {
    if (document.activeElement !== this.canvas && !event.ctrlKey) return;
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const by = event.deltaX / this.canvas.clientWidth * (this.to - this.from);
      this.set(this.from + by, this.to + by);
    } else
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.valueAt(this.x(event)));
  }
  down(event) {
    if (event.button !== 0) return;
    this.drag = {x: this.x(event), to: this.x(event)};
    if (event.isTrusted)
      this.canvas.setPointerCapture(event.pointerId);  // a test's pointer cannot be held
  }
  move(event) {
    if (!this.drag) return;
    this.drag.to = this.x(event);
    this.change();
  }
  up(event) {
    const drag = this.drag;
    this.drag = null;
    if (!drag) return;
    if (Math.abs(drag.to - drag.x) < 5) {
      this.change();
      this.pick?.(event);
      return;
    }
    this.set(this.valueAt(Math.min(drag.x, drag.to)), this.valueAt(Math.max(drag.x, drag.to)));
  }
  key(event, pans) {
    const step = (this.to - this.from) / 8;
    const actions = {
      '+': () => this.zoom(0.6),
      '=': () => this.zoom(0.6),
      '-': () => this.zoom(1 / 0.6),
      '0': () => this.reset(),
      ...(pans ? {
        ArrowLeft: () => this.set(this.from - step, this.to - step),
        ArrowRight: () => this.set(this.from + step, this.to + step)
      } :
                 {})
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }
  // The part being dragged over.
  drawDrag(context, height, colours) {
    if (!this.drag || Math.abs(this.drag.to - this.drag.x) < 5) return;
    context.fillStyle = colours.band;
    context.fillRect(
        Math.min(this.drag.x, this.drag.to), 0, Math.abs(this.drag.to - this.drag.x), height);
  }
}
