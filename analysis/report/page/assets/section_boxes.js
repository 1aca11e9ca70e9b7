// SPDX-License-Identifier: MIT
//
// The box plot: what each cause added to the messages it slowed, and how many these were. Causes
// may be grouped by category. Choosing a cause leaves only its balloons in the plot above. After
// NSight's figures 13 and 15.

const BOX_ROWS = 14;
const SORTS = {
  total: cause => cause.total_ns,
  deviation: cause => cause.median_ns,
  messages: cause => cause.messages
};
const sortedCauses = () => shownCauses().filter(inCategory).sort(
    (a, b) => (SORTS[view.sort](b) || 0) - (SORTS[view.sort](a) || 0));

function boxRow(cause, y, x, size, own) {
  const colour = causeColour(theme(), causeRank(cause)), middle = y + 15,
        at = ns => x(Math.max(ns ?? size.low, size.low));
  const label = causeLabel(cause), pressed = view.cause === causeKey(cause), toggle = () => {
    chooseCause(causeKey(cause));
    renderBoxes(causeKey(cause));
  };
  const line = (from, to, half, width) => svg('line', {
    x1: at(from),
    x2: at(to),
    y1: middle - half,
    y2: middle + half,
    stroke: colour,
    'stroke-width': width
  });
  const box = attributes => svg('rect', {
    x: at(cause.p25_ns),
    y: middle - 8,
    width: Math.max(at(cause.p75_ns) - at(cause.p25_ns), 1.5),
    height: 16,
    ...attributes
  });
  const row =
      svg('g', {
        class: 'cause-row',
        tabindex: 0,
        role: 'button',
        'aria-pressed': String(pressed),
        'data-cause': causeKey(cause),
        'aria-label': `${label}: ${count(cause.messages)} messages, median ${
            duration(cause.median_ns)}, total ${duration(cause.total_ns)}`,
        click: toggle,
        keydown: event => {
          if (event.key === 'Enter' || event.key === ' ') {
            event.preventDefault();
            toggle();
          }
        },
        pointermove: event => showTip(
            event,
            `${label}\n${cause.category}: ${count(cause.messages)} messages\nleast ${
                duration(cause.min_ns)}, quartile ${duration(cause.p25_ns)}, median ${
                duration(cause.median_ns)}, quartile ${duration(cause.p75_ns)}, most ${
                duration(cause.max_ns)}${
                cause.explains ? '' :
                                 '\nlocated, but not explained: not counted in the coverage'}`),
        pointerleave: hideTip
      },
          svg('rect', {class: 'hit', x: 0, y, width: size.width, height: 30, fill: 'transparent'}),
          svg('path', {
            d: shapePath(causeShape(causeRank(cause)), 12, middle, 5),
            fill: colour,
            'fill-opacity': .75,
            stroke: colour
          }),
          svg('text', {x: 26, y: middle + 4}, label.length > 34 ? label.slice(0, 33) + '…' : label),
          line(cause.min_ns, cause.max_ns, 0, 1.3), line(cause.min_ns, cause.min_ns, 5, 1.3),
          line(cause.max_ns, cause.max_ns, 5, 1.3),
          box({fill: 'var(--paper)', stroke: colour, 'stroke-width': 1.3}),
          box({fill: colour, 'fill-opacity': .28}), line(cause.median_ns, cause.median_ns, 8, 3),
          ...[count(cause.messages), duration(cause.median_ns), duration(cause.total_ns)].map(
              (text, i) => svg(
                  'text', {x: size.width - [168, 84, 4][i], y: middle + 4, 'text-anchor': 'end'},
                  text)));
  const mine = own.find(one => one.cause === cause || one.cause === Object.getPrototypeOf(cause));
  if (mine && mine.ns > 0)
    row.append(svg('circle', {
      cx: at(mine.ns),
      cy: middle,
      r: 4,
      fill: 'var(--paper)',
      stroke: 'var(--ink)',
      'stroke-width': 1.8
    }));
  return row;
}

function renderBoxes(focus) {
  const place = byId('box-plot'), causes = sortedCauses(), shown = causes.slice(0, BOX_ROWS),
        width = Math.max(800, place.clientWidth);
  if (!causes.length) {
    place.replaceChildren(element('p', {class: 'empty'}, 'No cause was found.'));
    return;
  }
  const positive = causes.map(cause => cause.min_ns).filter(ns => ns > 0);
  const low = Math.max(Math.min(...positive, 1e12), 10),
        high = Math.max(...causes.map(cause => cause.max_ns || 0), low * 10);
  const size = {width, low, left: 292, right: width - 248},
        x = logScale(low, high, size.left, size.right), entries = boxEntries(shown),
        bottom = 26 + entries.reduce((sum, entry) => sum + entry.height, 0);
  const plot = svg('svg', {
    viewBox: `0 0 ${width} ${bottom + 26}`,
    role: 'group',
    'aria-label': 'What each cause added to the messages it slowed'
  });
  const own = view.message === null ? [] : ownCauses(current(), view.message);
  for (const [at, text] of [
           [width - 168, 'messages'], [width - 84, 'median'], [width - 4, 'total']])
    plot.append(svg('text', {class: 'muted', x: at, y: 14, 'text-anchor': 'end'}, text));
  let y = 26;
  const rows = entries.map(entry => {
    const top = y;
    y += entry.height;
    return entry.cause ? boxRow(entry.cause, top, x, size, own) : boxHeading(entry, top, size);
  });
  plot.append(
      ...logTicks(low, high, 8)
          .map(tick => svg('line', {class: 'grid', x1: x(tick), x2: x(tick), y1: 26, y2: bottom})),
      ...rows,
      svg('line', {class: 'axis', x1: size.left, x2: size.right, y1: bottom + .5, y2: bottom + .5}),
      ...logTicks(low, high, 8)
          .map(
              tick =>
                  svg('text', {class: 'muted', x: x(tick), y: bottom + 18, 'text-anchor': 'middle'},
                      shortDuration(tick))),
      svg('text', {class: 'muted', x: 0, y: bottom + 18},
          own.length ? '○ the message chosen above' : ''));
  place.replaceChildren(
      plot,
      causes.length > shown.length ?
          element(
              'p', {class: 'hint'},
              `${plural(causes.length - shown.length, 'smaller cause')} only in the table below.`) :
          '');
  if (focus) rows.find(row => row.dataset.cause === focus)?.focus();
}

function renderBoxControls() {
  choice(
      byId('box-controls'), 'Sort by',
      [['total', 'total'], ['deviation', 'deviation (median)'], ['messages', 'messages hit']],
      view.sort, key => {
        view.sort = key;
        renderBoxes();
      });
}

function renderCauseTable() {
  const {ns: whole} = shownExtra(), all = current().total === current().shown;
  byId('cause-table')
      .replaceChildren(table(
          [
            ['cause', true], ['where', true], ['category', true], ['counts as explained', true],
            ['messages'], ['least'], ['quartile'], ['median'], ['quartile'], ['most'], ['total'],
            ['of the extra time']
          ],
          shownCauses().filter(inCategory).map(
              cause =>
                  [all && cause.parts ? `${cause.name} (of it ${cause.parts})` : cause.name, data.roles[cause.role], cause.category,
                   cause.explains ? 'yes' : 'no', count(cause.messages), duration(cause.min_ns), duration(cause.p25_ns),
                   duration(cause.median_ns), duration(cause.p75_ns), duration(cause.max_ns),
                   duration(cause.total_ns), all ? percent(cause.total_ns, whole) : '–']),
          'Causes'));
}

// The rows of the box plot: causes, below a heading for each group if the reader asked for groups.
// Groups are in order of their total time, or of their first cause if causes are sorted otherwise.
function boxEntries(causes) {
  if (!view.grouped) return causes.map(cause => ({cause, height: 30}));
  const sums = categoriesOf(current());
  const names = view.sort === 'total' ? sums.map(one => one.name) :
                                        [...new Set(causes.map(cause => cause.category))];
  return names.flatMap(name => {
    const own = causes.filter(cause => cause.category === name);
    const heading = {heading: name, total: sums.find(one => one.name === name).total, height: 30};
    return own.length ? [heading, ...own.map(cause => ({cause, height: 30}))] : [];
  });
}

function boxHeading({heading, total, height}, y, size) {
  return svg(
      'g', {},
      svg('line', {class: 'axis', x1: 0, x2: size.width, y1: y + height - .5, y2: y + height - .5}),
      svg('text', {class: 'heading', x: 0, y: y + height - 8}, heading),
      svg('text', {class: 'muted', x: size.width - 4, y: y + height - 8, 'text-anchor': 'end'},
          duration(total)));
}

function renderGroupControls() {
  choice(
      byId('group-controls'), 'Groups', [[true, 'by category'], [false, 'none']], view.grouped,
      key => {
        view.grouped = key;
        renderBoxes();
      });
}

sections.push({
  id: 'boxes',
  title: 'What each cause added',
  place: 32,
  within: 'diagnosis',
  folded: true,
  has: () => Boolean(current()?.causes.length),
  controls: ['group-controls', 'box-controls'],
  markup: `
    <p class="hint">Whiskers reach from the least to the most it added to a message, boxes hold the middle half, the bar is the median. Choose a row to see only its balloons. A category is a class of remedy.</p>
    <div class="controls" id="category-controls"></div>
    <div class="wide" id="box-plot"></div>
    <details><summary>As a table</summary><div id="cause-table"></div></details>`,
  diagnosis: () => {
    renderCategoryControls();
    renderBoxControls();
    renderGroupControls();
    renderBoxes();
    renderCauseTable();
  },
  cause: () => {
    renderBoxes();
    renderCauseTable();
  },
  message: () => renderBoxes(),
  draw: () => renderBoxes()
});
