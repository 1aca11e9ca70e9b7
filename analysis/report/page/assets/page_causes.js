// SPDX-License-Identifier: MIT
//
// What the sections of a run's page share: their registry, what the reader is looking at, and
// causes: how they are named, coloured and ranked.

// The sections of a run's page. Each stands in a section_*.js of its own and adds itself here:
//   id, title; place: they stand in the order of this number
//   within (not needed): the element that it is a part of, below a smaller heading, which may have
//       `controls` beside it: their ids. In 'diagnosis' is what is shown of the chosen diagnosis
//   folded: a heading to begin with, which unfolds; drawn when it does
//   markup: what is in it from the start; nothing from the run, that goes into text nodes only
//   has: whether there is anything to show in it; without it there always is, within a diagnosis
//       where that has messages
//   start: called once, with its element
//   draw: fills it; again after each change of the page's size or colours
//   diagnosis, cause, message: called when another one was chosen; without `diagnosis`, those within
//       draw
const sections = [];

function buildSection(section) {
  const {id, title, within, folded, controls = [], markup = ''} = section;
  const body = element('div', {}), heading = element(within ? 'h3' : 'h2', {id: `${id}-title`}, title),
        bars = controls.map(bar => element('div', {class: 'controls', id: bar}));
  body.insertAdjacentHTML('beforeend', markup);
  explainTerms(body);
  if (folded) body.prepend(...bars);
  byId(within ?? 'sections').append(element(
      within ? 'div' : 'section', {id, 'aria-labelledby': `${id}-title`, class: folded ? 'folded' : null},
      ...(folded     ? [element(
                        'details', {class: 'fold', toggle: event => unfold(section, event.target)},
                        element('summary', {}, heading), body)] :
          bars.length ? [element('div', {class: 'box-heading'}, heading, ...bars), body] :
                        [heading, body])));
}

const isFolded = id => byId(id).querySelector(':scope > details.fold')?.open === false;

function unfold(section, fold) {
  if (!fold.open || byId(section.id).hidden || (section.within && byId(section.within).hidden)) return;
  section.diagnosis?.();
  section.draw?.();
}

// All of them, drawn before this returns, as for printing.
function unfoldAll() {
  for (const details of document.querySelectorAll('details:not([open])')) {
    details.open = true;
    details.dispatchEvent(new Event('toggle'));
  }
}

// A section may stand in the page's template already.
function addSections() {
  sections.sort((a, b) => a.place - b.place);
  for (const section of sections) {
    const template = byId(section.id), {id, title, place, start, draw, diagnosis} = section,
          needs = {id, place, title: template ? id : title, draw: start ?? draw ?? diagnosis},
          lacks = Object.keys(needs).find(member => needs[member] === undefined);
    if (lacks) throw new Error(`section ${id ?? title} has no ${lacks}`);
    if (!template) buildSection(section);
    byId(section.id).hidden = !section.within && section.has && !section.has();
  }
  for (const section of sections)
    if (!byId(section.id).hidden) {
      const last = byId(section.id).lastElementChild;
      section.start?.(section.folded ? last.lastElementChild : last);
    }
}

// What is due for a section that the reader does not see is drawn soon after, a section at a time: no click
// waits for it, nor for what they see once it has waited for CLICK_MS: then the browser shows what there is.
// [{id, update}], in the order in which they shall be drawn.
const undrawn = [], CLICK_MS = 8;

function isInView(id) {
  const {top, bottom} = byId(id).getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
}

function drawOne({id, update}) {
  if (!byId(id).hidden && !isFolded(id)) update();  // else it is drawn when it is shown
}

function drawNext() {
  const one = undrawn.shift();
  if (undrawn.length) setTimeout(drawNext);
  if (one) drawOne(one);
}

function drawLater(one) {
  if (undrawn.some(({id, update}) => id === one.id && update === one.update)) return;
  undrawn.push(one);
  if (undrawn.length === 1) setTimeout(drawNext);
}

// Those that are of no diagnosis, for the first time.
function drawStanding() {
  for (const {id, within, diagnosis, folded, draw} of sections)
    if (!within && !diagnosis && !folded && draw && !byId(id).hidden) drawLater({id, update: draw});
}

function whenDrawn(done) {
  if (undrawn.length)
    setTimeout(() => whenDrawn(done));
  else
    done();
}

// What is left for these sections, or for all, before this returns; none is begun after `end`.
function drawUndrawn(ids = undrawn.map(({id}) => id), end = Infinity) {
  for (const one of undrawn.filter(({id}) => ids.includes(id))) {
    if (performance.now() > end) return;
    undrawn.splice(undrawn.indexOf(one), 1);
    drawOne(one);
  }
}

// occasions: 'draw', 'diagnosis', 'cause' or 'message'; of several, the first that a section knows.
function updateSections(...occasions) {
  const due = [], end = performance.now() + CLICK_MS;
  for (const section of sections) {
    const {id, within, has = () => !within || current().messages.id.length > 0} = section;
    if (within && byId(within).hidden) continue;
    if (within) byId(id).hidden = !has();
    if (byId(id).hidden || isFolded(id)) continue;
    const update = occasions.map(one => section[one]).find(Boolean) ??
        (within && occasions.includes('diagnosis') ? section.draw : null);
    if (update) due.push({id, update});
  }
  const seen = due.map(({id}) => id).filter(isInView), isSeen = ({id}) => seen.includes(id);
  due.filter(isSeen).forEach(drawLater);
  due.filter(one => !isSeen(one)).forEach(drawLater);
  drawUndrawn(seen, end);
}

// What the reader is looking at. `message` is an index into the diagnosis's messages, or null.
const view = {
  diagnosis: 0,
  message: null,
  id: null,
  cause: null,
  category: null,
  span: null, // the piece of time whose messages are shown, [from, to] in ns since the run began; null: all
  grouped: true,
  sort: 'total',
  spread: 'order'
};
const current = () => data.diagnoses[view.diagnosis];
// The same on the core that received and on the one that served is one cause to a reader.
const causeKey = cause =>
    [cause.of_client ? 'client' : 'server', cause.tier, cause.category, cause.name].join('\n');
// The chosen one, or one of those that are told in the chosen words.
const isChosenCause = cause => view.cause === causeKey(cause) || view.cause === cause.words;
const causeLabel = cause => `${cause.name} (${data.roles[cause.role]})`;

// Without the core: which side it is on is enough to tell such causes apart.
const causeName = cause => cause.of_client ? `${cause.name} (client)` : cause.name;

// A cause keeps its colour and shape in every window; what is only located stays grey. No other
// thing has these colours: what is where has tints (span_kinds.tbl.h, STAGE_COLOURS).
const causeRanks = new Map();
for (const diagnosis of data.diagnoses)
  for (const cause of diagnosis.causes)
    if (cause.explains && !causeRanks.has(causeKey(cause)))
      causeRanks.set(causeKey(cause), causeRanks.size);
const causeRank = cause => causeRanks.get(causeKey(cause)) ?? 99;

// By the name of a context, as a cause has it: its rank.
const causeContexts = new Map();
for (const diagnosis of data.diagnoses)
  for (const cause of diagnosis.causes)
    if (!cause.of_client && !causeContexts.has(cause.name))
      causeContexts.set(cause.name, causeRank(cause));
const SPAN_WORDS = {3: ' interrupt', 4: ' softirq', 5: ' interrupt'};  // by kind
const spanRank = (kind, name) => causeContexts.get(
    kind === 1 ? name.replace(/^([^/]+)\/.*$/, '$1') : name + (SPAN_WORDS[kind] ?? '\n')) ?? 99;

// The causes of a diagnosis as a reader takes them, the largest first: {key, causes, ns}.
function readersCauses(diagnosis, causes = diagnosis?.causes ?? []) {
  const all = new Map();
  for (const cause of causes) {
    const one = all.get(causeKey(cause)) ?? {key: causeKey(cause), causes: [], ns: 0};
    one.causes.push(cause);
    one.ns += cause.total_ns || 0;
    all.set(one.key, one);
  }
  return [...all.values()].sort((a, b) => b.ns - a.ns);
}

const inSpan = at_ns => view.span === null || (at_ns >= view.span[0] && at_ns < view.span[1]);

// The messages to list, of the chosen piece of time: all, or those that the chosen cause slowed, the most
// slowed first.
function listedMessages() {
  const {messages, attributions, causes, shown} = current(),
        own = Array.from({length: shown}, (_, i) => i).filter(i => inSpan(messages.at_ns[i]));
  if (view.cause === null) return own;
  const chosen = causes.map(isChosenCause), added = new Map();
  for (const i of own)
    for (let j = messages.first[i]; j < messages.first[i + 1]; j++)
      if (chosen[attributions.cause[j]])
        added.set(i, (added.get(i) ?? 0) + (attributions.ns[j] || 0));
  return [...added].sort((a, b) => b[1] - a[1]).map(([index]) => index);
}

// Messages of a diagnosis in order of time, and where each stands in it; made once, with what every
// drawing of many thousands needs: their times and their latencies' logarithms in that order.
function timeOrder(diagnosis) {
  if (!diagnosis.byTime) {
    const {at_ns: at, latency_ns: latency} = diagnosis.messages, latencies = latency.filter(known);
    diagnosis.byTime = Int32Array.from(at.keys()).sort((a, b) => at[a] - at[b]);
    diagnosis.place = new Int32Array(at.length);
    diagnosis.byTime.forEach((index, place) => {
      diagnosis.place[index] = place;
    });
    diagnosis.times = Float64Array.from(diagnosis.byTime, index => at[index]);
    diagnosis.logs = Float64Array.from(
        diagnosis.byTime, index => known(latency[index]) ? Math.log(latency[index]) : NaN);
    diagnosis.extremes = [latencies[latencies.length - 1], latencies[0]];
  }
  return diagnosis.byTime;
}

// What a cause added to messages: as the diagnosis has it of all of them.
function spread(values) {
  const sorted = Float64Array.from(values).sort(), at = q => sorted[Math.round(q * (sorted.length - 1))] ?? null;
  return {
    messages: sorted.length,
    total_ns: sorted.reduce((sum, ns) => sum + ns, 0),
    min_ns: at(0),
    p25_ns: at(.25),
    median_ns: at(.5),
    p75_ns: at(.75),
    max_ns: at(1)
  };
}

// The causes on show, with what they added to the messages of the chosen piece of time; those that slowed
// none of these are left out.
let spanned = {};
function shownCauses() {
  const diagnosis = current();
  if (!diagnosis || view.span === null) return diagnosis?.causes ?? [];
  if (spanned.diagnosis === diagnosis && spanned.span === view.span) return spanned.causes;
  const {messages, attributions, causes} = diagnosis, values = causes.map(() => []);
  for (let i = 0; i < diagnosis.shown; i++)
    if (inSpan(messages.at_ns[i]))
      for (let j = messages.first[i]; j < messages.first[i + 1]; j++)
        values[attributions.cause[j]]?.push(attributions.ns[j] || 0);
  const own = causes.map((cause, i) => Object.assign(Object.create(cause), spread(values[i]))).filter(cause => cause.messages);
  spanned = {diagnosis, span: view.span, causes: own};
  return own;
}

// How many messages are slow in the chosen piece of time, and how much longer than ordinary ones they took.
function shownExtra() {
  const diagnosis = current();
  if (view.span === null) return {messages: diagnosis.total, ns: diagnosis.extra_ns ?? 0};
  const {messages, shown} = diagnosis, extra = {messages: 0, ns: 0};
  for (let i = 0; i < shown; i++)
    if (inSpan(messages.at_ns[i])) {
      extra.messages++;
      extra.ns += Math.max(messages.deviation_ns[i] || 0, 0);
    }
  return extra;
}

// The causes of one message, largest first.
function ownCauses(diagnosis, index) {
  const own = [];
  for (let j = diagnosis.messages.first[index]; j < diagnosis.messages.first[index + 1]; j++) {
    const cause = diagnosis.causes[diagnosis.attributions.cause[j]];
    if (cause) own.push({cause, ns: diagnosis.attributions.ns[j]});
  }
  return own.sort((a, b) => (b.ns || 0) - (a.ns || 0));
}
