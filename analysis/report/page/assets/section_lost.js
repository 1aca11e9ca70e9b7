// SPDX-License-Identifier: MIT
//
// What was lost and which results that weakens, and the warnings of load generator and capture.

const WEAKENS = {
  unsent: [
    'requests never sent', 'They count as never answered: the percentiles they reach read “never”.'
  ],
  timed_out: ['requests without a reply in time', 'They count as never answered.'],
  lost: ['requests lost with a connection', 'They count as never answered.'],
  unanswered_turns: [
    'requests not answered by the end of the capture', 'They are in no percentile: how long they took is not known.'
  ],
  unasked_sends: ['sends without a request', 'What the server sends of itself is no message.'],
  order_violations: [
    'stamps out of order by more than the clock error',
    'The stage that ends at such a stamp reads 0, its neighbour is too long.'
  ],
  dropped_events: [
    'kernel events dropped by the capture',
    'Spans around them are unknown; causes there stay unexplained.'
  ],
  dropped_calls: [
    'socket calls dropped by the shim',
    'Their messages have no M(a) or reply stamp, hence no diagnosis.'
  ],
  dropped_samples: ['client samples dropped', 'The latency distribution lacks these requests.'],
  unpaired: ['spans without a begin or an end', 'Their time is shown as records lost.'],
  lost_intervals: ['gaps in the capture', 'Nobody knows what ran in them.'],
  unrecorded: [
    'requests on cores that were not recorded then',
    'What held them up there is in no cause: it counts as records lost.'
  ],
};

// Of the processor's trace, by the keys of data.trace.
const TRACE_WEAKENS = {
  errors: ['decode errors of the trace', 'Functions are unknown from each to the next PSB.'],
  overflows: [
    'overflows of the trace', 'The processor lost packets there: functions are unknown meanwhile.'
  ],
  truncated: [
    'cuts of the trace for want of buffer', 'Functions are unknown from each until it was read.'
  ],
  gaps: ['pieces of the trace with gaps', 'Functions are unknown in each gap.'],
  perf_errors: ['errors of the trace noted by perf', 'Functions around each may be wrong or unknown.'],
  perf_lost: [
    'records lost by perf', 'Where they were of code or of tasks, functions have wrong names or none.'
  ],
  malformed: ['malformed records of perf’s', 'They were left out.'],
};

// Of one the first noun is singular; all of them end in an s.
const lossWords = (number, words) => `${count(number)} ${number === 1 ? words.replace(/s\b/, '') : words}`;
const countedLosses = (counts, weakens) => Object.keys(weakens)
                                               .filter(key => counts?.[key] > 0)
                                               .map(key => lossWords(counts[key], weakens[key][0]));
const lossesOf = () =>
    [...countedLosses(data.counts, WEAKENS), ...countedLosses(data.trace, TRACE_WEAKENS),
     ...(data.trace?.lack ? ['all functions: ' + data.trace.lack] : [])];

// The load generator's and the capture's warnings about their own work.
function warnings() {
  const {load, capture, experiment} = data.documents;
  return [load?.reasons, load?.warnings, capture?.warnings, experiment?.warnings]
      .filter(Array.isArray)
      .flat()
      .filter(text => typeof text === 'string')
      // The headline begins with the load's first reason.
      .filter(text => !data.lede.startsWith(`Inconclusive: ${text.replace(/[ .]+$/, '')}`))
      // The run repeats its children's warnings with their names in front.
      .filter((text, i, all) => !all.slice(0, i).some(earlier => text.includes(earlier)))
      .map(microSigns);
}

// Every leaf of a document as [path, value].
function leaves(value, path = [], out = []) {
  if (value !== null && typeof value === 'object')
    for (const [key, inner] of Object.entries(value)) leaves(inner, [...path, key], out);
  else
    out.push([path.join('.'), value]);
  return out;
}

function renderLosses() {
  const rows =
      Object.entries(WEAKENS).map(([key, [what, weakens]]) => [what, data.counts[key], weakens]);
  for (const {words, count: number} of data.datagrams_lost ?? [])
    rows.push([`requests over UDP ${words}`, number, 'They count as never answered.']);
  data.states.forEach((state, i) => {
    if (i > 1)
      rows.push([
        `answered requests: ${state.name}`, state.count,
        'They are in the latency distribution, but cannot be explained.'
      ]);
  });
  for (const [key, [what, weakens]] of Object.entries(TRACE_WEAKENS))
    if (key in (data.trace ?? {})) rows.push([what, data.trace[key], weakens]);
  for (const document of ['load', 'capture'])
    for (const [path, value] of data.documents[document] ? leaves(data.documents[document]) : [])
      if (typeof value === 'number' &&
          /drop|lost|lose|miss|unmatch|unsent|overrun|fail|unseen|truncat/i.test(path))
        rows.push([
          `${document}: ${path.replace(/_/g, ' ')}`, value,
          'As counted by the ' + (document === 'load' ? 'load generator.' : 'capture.')
        ]);
  const body = rows.map(
      ([what, number, weakens]) => element(
          'tr', {class: number ? null : 'zero'}, element('td', {class: 'text'}, what),
          element('td', {class: number ? 'nowrap bad' : 'nowrap'}, count(number)),
          element('td', {class: 'text'}, number ? weakens : '')));
  byId('warnings').replaceChildren(...warnings().map(text => element('p', {class: 'bad'}, text)));
  byId('lost-table')
      .replaceChildren(element(
          'table', {}, element('caption', {class: 'only-screen-reader'}, 'Losses'),
          element(
              'thead', {},
              element(
                  'tr', {}, element('th', {class: 'text'}, 'what'), element('th', {}, 'how many'),
                  element('th', {class: 'text'}, 'what it weakens'))),
          element('tbody', {}, ...body)));
}

sections.push({
  id: 'lost',
  title: 'What was lost',
  place: 2,
  within: 'evidence-more',
  has: () => true,
  markup: `
    <p class="lead">Every loss the tool knows of, and what it weakens. A zero was counted, not assumed.</p>
    <div id="warnings"></div>
    <div id="lost-table"></div>`,
  start: () => renderLosses()
});
