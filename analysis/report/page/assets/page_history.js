// SPDX-License-Identifier: MIT
//
// The page of the history: each percentile and each cause of an experiment over its runs.

const KINDS = [['percentile', 'percentiles'], ['cause', 'causes']];
const CAUSES_DRAWN = 20;
const experiments = [...new Set(data.series.map(series => series.experiment))];
const shown = {experiment: experiments[0], kind: 'percentile'};

// All runs of the experiment, also those that have no value of a series.
function itemsOf(series) {
  const labels = new Map(series.flatMap(one => one.points).map(point => [point.run, point.label]));
  return [...labels].sort((a, b) => a[0] - b[0]).map(([run, label]) => ({run, label}));
}

function changeWords(change, label) {
  const share = change.before_us > 0 ? 100 * (change.after_us / change.before_us - 1) : null;
  const sign = share > 0 ? '+' : '';
  return (share === null ? '' : `${sign}${significant(share)} % `) + `since #${change.run} ${label}`;
}

// Levels from one change to the next; of a series that never changed the one level is not drawn.
function levelsOf(one, at) {
  const {changes, points} = one;
  return changes.flatMap((change, i) => {
    const first = at.get(change.run),
          end = i + 1 < changes.length ? at.get(changes[i + 1].run) - 1 : at.get(points.at(-1).run);
    const begin = i ? at.get(changes[i - 1].run) : at.get(points[0].run);
    const level = {from: first, to: end, us: change.after_us};
    return i ? [level] : [{from: begin, to: first - 1, us: change.before_us}, level];
  });
}

function drawSeries(one, items, at) {
  const labelOf = run => items[at.get(run)].label;
  const latest = one.points.at(-1);
  const sentences = one.changes.map(change =>
      `${changeWords(change, labelOf(change.run))} (${microseconds(change.before_us)} → ${
          microseconds(change.after_us)}, p ${change.p.toFixed(3)})`);
  const plot = runsPlot(
      items, [{
        name: one.name,
        rank: one.kind === 'cause' ? 1 : 0,
        points: one.points.map(point => ({
          at: at.get(point.run), us: point.us, low: point.low_us, high: point.high_us
        })),
        levels: levelsOf(one, at),
        changes: one.changes.map(change => ({
          at: at.get(change.run), text: changeWords(change, labelOf(change.run))
        }))
      }],
      {label: `${one.name} over ${plural(one.points.length, 'run')}; the table has the figures`});
  const rows = one.points.map(point => [
    '#' + point.run, point.label,
    microseconds(point.us) + interval(point.low_us, point.high_us)
  ]);
  return element(
      'div', {class: 'plot series'},
      element('h3', {}, one.name),
      element('p', {class: 'hint'},
          `now ${latest ? microseconds(latest.us) : 'not known'}` +
          (one.unknown ? `; not known in ${plural(one.unknown, 'run')}` : '') +
          (sentences.length ? '; ' + sentences.join('; ') : '; its level never changed')),
      ...(one.points.length ? [plot] : []),
      element('details', {}, element('summary', {}, 'As a table'),
          element('div', {class: 'scroll'},
              table([['run', true], ['label', true], ['value [99 %]']], rows, one.name))));
}

// Causes in the order in which they are drawn until there are enough: those that changed, then
// those that take most.
function ordered(series) {
  if (shown.kind !== 'cause') return series;
  const now = one => one.points.at(-1)?.us ?? 0;
  return [...series].sort(
      (a, b) => (b.changes.length > 0) - (a.changes.length > 0) || now(b) - now(a));
}

function draw() {
  const mine = data.series.filter(one => one.experiment === shown.experiment);
  const items = itemsOf(mine), at = new Map(items.map((item, i) => [item.run, i]));
  const all = ordered(mine.filter(one => one.kind === shown.kind));
  const drawn = all.filter(
      (one, i) => shown.kind !== 'cause' || one.changes.length || i < CAUSES_DRAWN);
  byId('left-out').textContent = drawn.length < all.length ?
      `${plural(all.length - drawn.length, 'cause')} that take less and never changed are left out.` :
      '';
  byId('plots').replaceChildren(
      ...drawn.map(one => drawSeries(one, items, at)),
      ...(drawn.length ? [] : [element('p', {class: 'empty'}, 'None of the runs has any.')]));
}

function drawFacts() {
  const changed = data.series.filter(one => one.changes.length);
  const facts = experiments.map(name => {
    const mine = data.series.filter(one => one.experiment === name);
    return [
      name,
      `${plural(itemsOf(mine).length, 'run')}, ${
          count(changed.filter(one => one.experiment === name).length)} of ${
          count(mine.length)} series changed their level`
    ];
  });
  facts.push([
    'How',
    `E-divisive means, a permutation test at ${100 * data.significance} % with ${
        data.permutations} permutations; a level takes three runs at least`
  ]);
  showFacts(byId('facts'), facts);
}

if (experiments.length > 1)
  choice(byId('experiments'), 'Experiment', experiments.map(name => [name, name]), shown.experiment,
      name => {
        shown.experiment = name;
        draw();
      });
choice(byId('kinds'), 'Show', KINDS, shown.kind, kind => {
  shown.kind = kind;
  draw();
});
drawFacts();
keepDrawn(draw);
byId('footer').textContent = `Taillight ${data.taillight_version}`;
document.documentElement.dataset.ready = 'yes';
