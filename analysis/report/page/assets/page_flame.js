// SPDX-License-Identifier: MIT
//
// Flame graphs (upside down: callers on top). A click or Enter makes a function fill the width; the
// topmost row leads back. A differential one is of some samples beside others: redder where they have more
// of a function than the others have, bluer where less.

const FLAME_ROW = 18, FLAME_ROWS = 40;

// Who is called by whom: the children of each function, most samples first. flame: columns, as in
// flame_columns.h; totals, usual: two of its counts. With `usual` the difference of the shares is `change`.
function flameTree({parents, functions}, totals, usual) {
  const share = (of, i) => of[i] / of[0];
  const nodes = functions.map((name, i) => ({
                                name,
                                total: totals[i],
                                parent: parents[i],
                                children: [],
                                change: usual ? share(totals, i) - share(usual, i) : null,
                                usual: usual ? share(usual, i) : null
                              }));
  for (const node of nodes)
    if (node.parent >= 0) nodes[node.parent].children.push(node);
  for (const node of nodes) node.children.sort((a, b) => b.total - a.total);
  return nodes;
}

// How a function is filled, stronger the more of its share is new, or gone; and its name on that.
function flameStyles({change, usual}) {
  if (change === null) return [null, null];
  const {causes, idle} = theme(), most = Math.max(change + usual, usual),
        strength = most > 0 ? Math.round(100 * Math.abs(change) / most) : 0;
  return [
    `fill:color-mix(in srgb, ${causes[change > 0 ? 0 : 1]} ${strength}%, ${idle})`,
    strength > 70 ? 'fill:#111214' : null
  ];
}

// `others`: what those beside these are called; `amount`: a total in words.
class FlameGraph {
  constructor(place, others, amount = total => plural(total, 'sample')) {
    Object.assign(this, {place, others, amount, nodes: null, chosen: null});
    arrowsBetween(place, '.flame');
  }

  show(nodes) {
    this.nodes = nodes;
    this.choose(nodes[0]);
  }

  choose(node) {
    this.chosen = node;
    this.draw();
  }

  box(node, x, y, width) {
    const words = `${node.name}: ${this.amount(node.total)}, ${percent(node.total, this.nodes[0].total)}${
              node.change === null ? '' : `; ${percent(node.usual)} in ${this.others}`}`,
          shown = Math.floor((width - 6) / 7), [fill, ink] = flameStyles(node);
    const box = svg(
        'g', {
          class: 'flame',
          tabindex: '0',
          role: 'button',
          'aria-label': words,
          click: () => this.choose(node),
          keydown: event => {
            if (event.key !== 'Enter') return;
            event.preventDefault();
            this.choose(node);
          }
        },
        svg('title', {}, words),
        svg('rect', {x, y, width: Math.max(width - 1, .5), height: FLAME_ROW - 1, style: fill}));
    if (shown >= 4)
      box.append(svg(
          'text', {x: x + 3, y: y + FLAME_ROW - 5, style: ink},
          node.name.length > shown ? node.name.slice(0, shown - 1) + '…' : node.name));
    return box;
  }

  // The chosen function over the whole width, its callers above it, what it called below.
  draw() {
    const {place, nodes, chosen} = this, width = Math.max(300, place.clientWidth), boxes = [], above = [];
    for (let node = chosen; node.parent >= 0; node = nodes[node.parent])
      above.unshift(nodes[node.parent]);
    above.forEach((node, i) => boxes.push(this.box(node, 0, i * FLAME_ROW, width)));
    let deepest = above.length;
    const lay = (node, x, level) => {
      const wide = node.total / chosen.total * width;
      if (wide < 1 || level - above.length >= FLAME_ROWS) return;
      deepest = Math.max(deepest, level);
      boxes.push(this.box(node, x, level * FLAME_ROW, wide));
      for (const child of node.children) {
        lay(child, x, level + 1);
        x += child.total / chosen.total * width;
      }
    };
    lay(chosen, 0, above.length);
    place.replaceChildren(svg(
        'svg', {
          class: 'narrow',
          viewBox: `0 0 ${width} ${(deepest + 1) * FLAME_ROW}`,
          role: 'group',
          'aria-label': 'Flame graph: functions by their share, callers on top'
        },
        ...boxes));
  }
}
