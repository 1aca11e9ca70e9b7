// SPDX-License-Identifier: MIT
//
// The report's part on the ordinary request in absolute terms: what the messages around the median
// are made of, and what the same costs at the fast end.

function renderOrdinary() {
  const parts = current().ordinary, whole = parts.reduce((sum, one) => sum + one.mean_us, 0),
        concerns = parts.filter(one => one.concerns);
  byId('ordinary-concerns').replaceChildren(...concerns.map(
      one => element(
          'p', {}, `Every request has ${duration(one.mean_us * 1000)} of ${one.part} (${one.role}), ${
              percent(one.mean_us / whole)} of an ordinary one. ${one.remedy ?? ''}`)));
  byId('ordinary-table').replaceChildren(table(
      [['part', true], ['where', true], ['mean'], ['share'], ['at the fast end (p5)'], ['requests with any']],
      parts.filter(one => one.mean_us > 0.005 * whole).map(one => [
        one.part, one.role, duration(one.mean_us * 1000), percent(one.mean_us / whole),
        duration(one.fast_us * 1000), percent(one.met)
      ]),
      'What an ordinary request is made of'));
}

sections.push({
  id: 'ordinary',
  title: 'An ordinary request, in absolute terms',
  place: 37,
  within: 'diagnosis',
  folded: true,
  has: () => Boolean(current().ordinary?.length),
  markup: `
    <p class="hint">Causes compare with the requests around the median. This is what those are made of themselves, parts below half a percent left out, and what the same part takes in the fastest twentieth of requests.</p>
    <div id="ordinary-concerns"></div>
    <div id="ordinary-table"></div>`,
  draw: () => renderOrdinary()
});
