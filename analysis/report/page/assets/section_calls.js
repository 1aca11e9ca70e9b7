// SPDX-License-Identifier: MIT
//
// Functions whose calls were traced, in the time of the slice's messages against that of ordinary ones, as a
// flame graph.

let callGraph;

function renderCalls() {
  const {calls} = current().views, {slice_totals: slice, reference_totals: reference} = calls;
  const graphs = [];
  if (slice[0] && reference[0]) graphs.push(['slow', 'slow messages, against ordinary ones', flameTree(calls, slice, reference)]);
  if (slice[0]) graphs.push(['slice', 'slow messages', flameTree(calls, slice)]);
  if (reference[0]) graphs.push(['ordinary', 'ordinary messages', flameTree(calls, reference)]);
  callGraph = new FlameGraph(byId('calls-plot'), 'ordinary messages', duration);
  const show = key => {
    byId('calls-words').hidden = key !== 'slow';
    callGraph.show(graphs.find(([name]) => name === key)[2]);
  };
  byId('calls-controls').replaceChildren();
  if (graphs.length > 1) choice(byId('calls-controls'), 'Functions in', graphs, graphs[0][0], show);
  show(graphs[0][0]);
}

sections.push({
  id: 'calls',
  title: 'Functions, slow against ordinary',
  place: 37,
  within: 'diagnosis',
  folded: true,
  controls: ['calls-controls'],
  has: () => Boolean(current().views?.calls),
  markup: `
    <p class="hint">In which functions the messages' cores were, from M(n) until the reply left, where their calls were traced. Callers on top; the width is the share of that time. Click a function, or choose it by <kbd>Enter</kbd>, to see it over the whole width.</p>
    <p class="hint" id="calls-words">Orange where slow messages spend a larger share of their time than ordinary ones (those around the median), blue where a smaller one, the stronger the more; what only ordinary ones have is not drawn.</p>
    <div class="plot wide" id="calls-plot"></div>`,
  diagnosis: () => renderCalls(),
  draw: () => callGraph?.draw()
});
