// SPDX-License-Identifier: MIT
//
// What the sections of a run's page share: their registry, what the reader is looking at, and
// causes: how they are named, coloured and ranked.

// The sections of a run's page. Each stands in a section_*.js of its own and adds itself here:
//   id, title; place: they stand in the order of this number
//   within: 'diagnosis' (not needed): part of what is shown of the chosen diagnosis, below a smaller
//       heading, which may have `controls` beside it: their ids
//   markup: what is in it from the start; nothing from the run, that goes into text nodes only
//   has: whether there is anything to show in it; without it there always is, within a diagnosis
//       where that has messages
//   start: called once, with its element
//   draw: fills it; again after each change of the page's size or colours
//   diagnosis, message: called when another one was chosen; without `diagnosis`, those within draw
const sections = [];

function buildSection({id, title, within, controls = [], markup = ''}) {
  const body = element('div', {}), heading = element(within ? 'h3' : 'h2', {id: `${id}-title`}, title),
        bars = controls.map(bar => element('div', {class: 'controls', id: bar}));
  body.insertAdjacentHTML('beforeend', markup);
  byId(within ?? 'sections').append(element(
      within ? 'div' : 'section', {id, 'aria-labelledby': `${id}-title`},
      bars.length ? element('div', {class: 'box-heading'}, heading, ...bars) : heading, body));
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
      section.start?.(byId(section.id).lastElementChild);
      if (!section.within && !section.diagnosis) section.draw?.();
    }
}

// occasion: 'draw', 'diagnosis' or 'message'
function updateSections(occasion) {
  for (const section of sections) {
    const {id, within, has = () => !within || current().messages.id.length > 0} = section;
    if (within && byId(within).hidden) continue;
    if (within) byId(id).hidden = !has();
    if (byId(id).hidden) continue;
    const update = section[occasion] ?? (within && occasion === 'diagnosis' ? section.draw : null);
    update?.();
  }
}

// What the reader is looking at. `message` is an index into the diagnosis's messages, or null.
const view = {
  diagnosis: 0,
  message: null,
  id: null,
  cause: null,
  category: null,
  grouped: true,
  sort: 'total',
  spread: 'order'
};
const current = () => data.diagnoses[view.diagnosis];
const causeKey = cause => cause.role + ' ' + cause.name;
const causeLabel = cause => `${cause.name} (${data.roles[cause.role]})`;

// A cause keeps its colour and shape in every window; what is only located stays grey.
const causeRanks = new Map();
for (const diagnosis of data.diagnoses)
  for (const cause of diagnosis.causes)
    if (cause.explains && !causeRanks.has(causeKey(cause)))
      causeRanks.set(causeKey(cause), causeRanks.size);
const causeRank = cause => causeRanks.get(causeKey(cause)) ?? 99;

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

// The causes of one message, largest first.
function ownCauses(diagnosis, index) {
  const own = [];
  for (let j = diagnosis.messages.first[index]; j < diagnosis.messages.first[index + 1]; j++) {
    const cause = diagnosis.causes[diagnosis.attributions.cause[j]];
    if (cause) own.push({cause, ns: diagnosis.attributions.ns[j]});
  }
  return own.sort((a, b) => (b.ns || 0) - (a.ns || 0));
}
