// SPDX-License-Identifier: MIT
//
// What of the network's time passed between which hops: bars by percentile and a table of each way, and
// how long messages were between two hops over time.

const hopPart = part => part.part.replace(' -> ', '\u00a0\u2192 '); // an arrow that no line break divides
const hopParts = way => data.hops.parts.filter(part => part.way === way);

const HOP_BARS = [['mean_us', 'mean'], ['p50_us', 'p50'], ['p90_us', 'p90'], ['p99_us', 'p99'], ['p99.9_us', 'p99.9']];

const hopTint = place => `color-mix(in srgb, ${causeColour(theme(), place)} 55%, var(--paper))`;

// Of each part its own mean or percentile, one after the other, and of all of the way, the last row, its own,
// which is less than their sum where not the same messages were slow everywhere.
function hopBar(way, [key, name]) {
  const parts = hopParts(way), whole = parts.at(-1)[key], shown = parts.slice(0, -1).filter(part => part[key] > 0),
        sum = shown.reduce((total, part) => total + part[key], 0), ns = us => duration(known(us) ? us * 1000 : null, '–'),
        words = part => `${hopPart(part)}: ${name} ${ns(part[key])}`;
  const all = `${shown.map(words).join('; ')}; all of the way ${ns(whole)}`;
  const bar = element(
      'div', {
        class: 'bar',
        role: 'group',
        tabindex: 0,
        'aria-label': `${name}: ${all}`,
        focus: event => {
          const {left, bottom} = event.target.getBoundingClientRect();
          showTip({clientX: left, clientY: bottom - 14}, all.replaceAll('; ', '\n'));
        },
        blur: hideTip
      },
      ...shown.map(part => element('span', {
        role: 'img',
        'aria-label': words(part),
        style: `flex:${part[key] / sum} 1 0;background:${hopTint(parts.indexOf(part))}`,
        pointermove: event => showTip(event, words(part)),
        pointerleave: hideTip
      })));
  arrowsBetween(bar, 'span');
  return element(
      'div', {class: 'hop-bar'}, element('span', {class: 'label'}, name), bar, element('span', {class: 'whole'}, ns(whole)));
}

const hopLegend = way => element(
    'ul', {class: 'hop-legend'},
    ...hopParts(way).slice(0, -1).map(
        (part, i) => element('li', {}, element('span', {class: 'swatch', style: `background:${hopTint(i)}`}), hopPart(part))));

function hopTable(way) {
  const parts = hopParts(way);
  return table(
      [['part', true], ['messages'], ['mean'], ...HOP_BARS.slice(1).map(([, name]) => [name]), ['max']],
      parts.map(part => [
        hopPart(part), count(part.messages),
        ...[...HOP_BARS.map(([key]) => key), 'max_us'].map(
            key => duration(known(part[key]) ? part[key] * 1000 : null, '–'))
      ]),
      `Hop by hop, ${way}`);
}

// What slow messages waited for between two hops, where the diagnosis has a name for it.
function hopWaits(way) {
  const waits = hopParts(way).flatMap(part => (part.waits ?? []).map(wait => ({part, ...wait})));
  return waits.length ? [element(
                            'ul', {class: 'hop-waits'},
                            ...waits.map(wait => element(
                                             'li', {},
                                             `${hopPart(wait.part)}: ${duration(wait.total_us * 1000)} of slow messages: ${
                                                 wait.for} (${count(wait.messages)} of them)`)))] :
                        [];
}

// What the packets say of two machines' clocks, beside what the requests say.
const hopClock = clock => !clock ? '' : ` By ${count(clock.exchanges)} requests' packets the two machines' clocks are related within ${
    duration(known(clock.bound_p99_us) ? clock.bound_p99_us * 1000 : null, '–')} (p99); from what the requests say that differs by ${
    duration(clock.difference_max_us * 1000)} at most.`;

let hopHeat, hopHeatShown = 0;

const hopWays = () => [...new Set((data.hops?.parts ?? []).map(part => part.way))];

sections.push({
  id: 'hops',
  title: 'Hop by hop',
  place: 25,
  has: () => hopWays().length > 0,
  markup: `
    <p class="hint">When the packets with the last byte of requests, and of replies, passed interfaces on their way. The parts of a message add up to all of its way: to the server up to M(n), to the client from server TX.</p>
    <p class="hint">The bars are by percentile: of each part its own, and on the right that of all of the way, which is less than the parts' sum where different messages were slow in different places.</p>
    <div id="hops-tables"></div>
    <div id="hops-over-time">
      <h3>Over time</h3>
      <div class="controls" id="hops-heat-choice"></div>
      <div class="plot" id="hops-heat"></div>
    </div>
    <p class="hint" id="hops-counts"></p>`,
  start: () => {
    choice(
        byId('hops-heat-choice'), 'Over time, between',
        data.hop_heats.map((heat, i) => [i, `${hopPart(data.hops.parts[heat.row])} (${data.hops.parts[heat.row].way})`]), 0, i => {
          hopHeatShown = i;
          hopHeat.draw();
        });
    if (data.hop_heats.length)
      hopHeat = new HeatMap(byId('hops-heat'), () => data.hop_heats[hopHeatShown], 'Time between two hops over time');
    byId('hops-counts').textContent =
        `Of ${count(data.hops.requests)} requests hops saw ${count(data.hops.divided_to_server)} on the way to the server and ${
            count(data.hops.divided_to_client)} replies on the way back; ${count(data.hops.dropped)} records were lost.${hopClock(data.hops.clock)}`;
  },
  draw: () => {
    byId('hops-tables')
        .replaceChildren(...hopWays().flatMap(
            way => [element('h3', {}, `On the way ${way}`), ...HOP_BARS.map(bar => hopBar(way, bar)), hopLegend(way),
                    hopTable(way), ...hopWaits(way)]));
    byId('hops-over-time').hidden = !hopHeat;
    hopHeat?.draw();
  },
  cause: () => {
    if (hopHeat && hopHeat.drawn !== view.span) hopHeat.draw();
  }
});
