// SPDX-License-Identifier: MIT
//
// What of the network's time passed between which hops: a bar and a table of each way.

const hopPart = part => part.part.replace(' -> ', '\u00a0\u2192 '); // an arrow that no line break divides
const hopParts = way => data.hops.parts.filter(part => part.way === way);

// How the mean of all of the way, which is its last row, is shared out.
function hopBar(way) {
  const parts = hopParts(way), whole = parts.at(-1).mean_us,
        words = part => `${hopPart(part)}: ${duration(part.mean_us * 1000)} of ${duration(whole * 1000)} on average, ${percent(part.mean_us, whole)}`;
  const shown = parts.slice(0, -1).filter(part => part.mean_us > 0);
  return element(
      'div', {class: 'bar', role: 'img', 'aria-label': shown.map(words).join('; ')},
      ...shown.map(part => element('span', {
        style: `flex:${part.mean_us / whole} 1 0`,
        pointermove: event => showTip(event, words(part)),
        pointerleave: hideTip
      })));
}

function hopTable(way) {
  const parts = hopParts(way);
  return table(
      [['part', true], ['messages'], ['mean'], ['p50'], ['p99'], ['p99.9'], ['max']],
      parts.map(part => [
        hopPart(part), count(part.messages),
        ...['mean_us', 'p50_us', 'p99_us', 'p99.9_us', 'max_us'].map(
            key => duration(known(part[key]) ? part[key] * 1000 : null, '–'))
      ]),
      `Hop by hop, ${way}`);
}

// What the packets say of two machines' clocks, beside what the requests say.
const hopClock = clock => !clock ? '' : ` By ${count(clock.exchanges)} requests' packets the two machines' clocks are related within ${
    duration(known(clock.bound_p99_us) ? clock.bound_p99_us * 1000 : null, '–')} (p99); from what the requests say that differs by ${
    duration(clock.difference_max_us * 1000)} at most.`;

const hopWays = () => [...new Set((data.hops?.parts ?? []).map(part => part.way))];

sections.push({
  id: 'hops',
  title: 'Hop by hop',
  place: 25,
  has: () => hopWays().length > 0,
  markup: `
    <p class="hint">When the packets with the last byte of requests, and of replies, passed interfaces on their way. The parts of a message add up to all of its way: to the server up to M(n), to the client from server TX.</p>
    <div id="hops-tables"></div>
    <p class="hint" id="hops-counts"></p>`,
  start: () => {
    byId('hops-tables')
        .replaceChildren(...hopWays().flatMap(
            way => [element('h3', {}, `On the way ${way}`), hopBar(way), hopTable(way)]));
    byId('hops-counts').textContent =
        `Of ${count(data.hops.requests)} requests hops saw ${count(data.hops.divided_to_server)} on the way to the server and ${
            count(data.hops.divided_to_client)} replies on the way back; ${count(data.hops.dropped)} records were lost.${hopClock(data.hops.clock)}`;
  }
});
