// SPDX-License-Identifier: MIT
//
// Samples of the server's cores: in which functions they were for each cause, and all of them as a
// flame graph (upside down: callers on top). A click or Enter makes a function fill the width; the
// topmost row leads back.

const FLAME_ROW = 18, FLAME_ROWS = 40;

function hintRow(hint) {
  const {cause, role, slice, reference, functions} = hint, {least} = data.samples;
  const share = ({name, slice: part, reference: usual}) => `${name} ${percent(part, slice)}` +
      (reference >= least ? ` (${percent(usual, reference)})` : '');
  return [
    `${cause} (${data.roles[role]})`, count(slice), count(reference),
    slice < least ? `n/a: ${count(least)} samples are needed` : functions.map(share).join(', ')
  ];
}

// Who is called by whom: the children of each function, most samples first.
function flameTree() {
  const {parents, functions, totals} = data.samples;
  const nodes =
      functions.map((name, i) => ({name, total: totals[i], parent: parents[i], children: []}));
  for (const node of nodes)
    if (node.parent >= 0) nodes[node.parent].children.push(node);
  for (const node of nodes) node.children.sort((a, b) => b.total - a.total);
  return nodes;
}

function flameBox(node, x, y, width, whole, choose) {
  const words = `${node.name}: ${plural(node.total, 'sample')}, ${percent(node.total, whole)}`,
        shown = Math.floor((width - 6) / 7);
  const box = svg(
      'g', {
        class: 'flame',
        tabindex: '0',
        role: 'button',
        'aria-label': words,
        click: () => choose(node),
        keydown: event => {
          if (event.key === 'Enter') choose(node);
        }
      },
      svg('title', {}, words),
      svg('rect', {x, y, width: Math.max(width - 1, .5), height: FLAME_ROW - 1}));
  if (shown >= 4)
    box.append(svg(
        'text', {x: x + 3, y: y + FLAME_ROW - 5},
        node.name.length > shown ? node.name.slice(0, shown - 1) + '…' : node.name));
  return box;
}

// The chosen function over the whole width, its callers above it, what it called below.
function drawFlame(nodes, chosen) {
  const place = byId('flame-plot'), width = Math.max(700, place.clientWidth), boxes = [];
  const whole = nodes[0].total, choose = node => drawFlame(nodes, node);
  const above = [];
  for (let node = chosen; node.parent >= 0; node = nodes[node.parent])
    above.unshift(nodes[node.parent]);
  above.forEach((node, i) => boxes.push(flameBox(node, 0, i * FLAME_ROW, width, whole, choose)));
  let deepest = above.length;
  const lay = (node, x, level) => {
    const wide = node.total / chosen.total * width;
    if (wide < 1 || level - above.length >= FLAME_ROWS) return;
    deepest = Math.max(deepest, level);
    boxes.push(flameBox(node, x, level * FLAME_ROW, wide, whole, choose));
    for (const child of node.children) {
      lay(child, x, level + 1);
      x += child.total / chosen.total * width;
    }
  };
  lay(chosen, 0, above.length);
  place.replaceChildren(svg(
      'svg', {
        viewBox: `0 0 ${width} ${(deepest + 1) * FLAME_ROW}`,
        role: 'group',
        'aria-label': 'Flame graph: functions by their samples, callers on top'
      },
      ...boxes));
}

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
        element('h3', {}, 'All samples'),
        hint(
            'Callers on top; the width is the share of the samples. Click a function, or choose it by ',
            element('kbd', {}, 'Enter'), ', to see it over the whole width.'),
        element('div', {class: 'plot wide', id: 'flame-plot'}));
    const nodes = flameTree();
    drawFlame(nodes, nodes[0]);
  }
});
