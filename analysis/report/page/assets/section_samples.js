// SPDX-License-Identifier: MIT
//
// Samples of the server's cores: in which functions they were for each cause, and as a flame graph: all of
// them, or those in slow messages' time against ordinary ones'.

function hintRow(hint) {
  const {cause, role, slice, reference, functions} = hint, {least} = data.samples;
  const share = ({name, slice: part, reference: usual}) => `${name} ${percent(part, slice)}` +
      (reference >= least ? ` (${percent(usual, reference)})` : '');
  return [
    `${cause} (${data.roles[role]})`, count(slice), count(reference),
    slice < least ? `n/a: ${count(least)} samples are needed` : functions.map(share).join(', ')
  ];
}

// Each of the graphs that can be drawn: [key, what it is called, its tree].
function flameGraphs() {
  const {flame, least} = data.samples, {totals, slice_totals: slice, reference_totals: reference} = flame,
        graphs = [['all', 'all samples', flameTree(flame, totals)]];
  if (slice[0] >= least && reference[0] >= least)
    graphs.push(['slow', 'slow messages, against ordinary ones', flameTree(flame, slice, reference)]);
  return graphs;
}

let flameGraph;

sections.push({
  id: 'samples',
  title: 'Where the samples were',
  place: 50,
  folded: true,
  has: () => Boolean(data.samples),
  start(body) {
    const {samples} = data, hint = (...words) => element('p', {class: 'hint'}, ...words);
    body.append(
        element(
            'p', {class: 'lead', id: 'samples-lead'},
            `${plural(samples.samples, 'sample')} of ${samples.event}, up to ${
                count(samples.frequency)} a second of each core; ${count(samples.lost)} lost.`),
        hint('A hint, not a cause: the functions of those samples that fell into the time of each cause, in the slice’s messages and in ordinary ones.'),
        element(
            'div', {id: 'hints-table'},
            table(
                [['cause', true], ['samples'], ['in ordinary ones'], ['functions (in ordinary ones)', true]],
                samples.hints.map(hintRow), 'Functions that the samples were in, by cause')),
        element('h3', {}, 'Flame graph'), element('div', {class: 'controls', id: 'flame-controls'}),
        hint(
            'Callers on top; the width is the share of the samples. Click a function, or choose it by ',
            element('kbd', {}, 'Enter'), ', to see it over the whole width.'),
        element('p', {class: 'hint', id: 'flame-words', hidden: true},
            'Of the samples in the time of slow messages: orange where a function has more of them than of those of ordinary messages (those around the median), blue where less, the stronger the more; what only ordinary ones have is not drawn.'),
        element('div', {class: 'plot wide', id: 'flame-plot'}));
    flameGraph = new FlameGraph(byId('flame-plot'), 'ordinary messages');
    const graphs = flameGraphs(), show = key => {
      byId('flame-words').hidden = key === 'all';
      flameGraph.show(graphs.find(([name]) => name === key)[2]);
    };
    if (graphs.length > 1) choice(byId('flame-controls'), 'Samples', graphs, 'all', show);
    show('all');
  },
  draw: () => flameGraph.draw()
});
