// SPDX-License-Identifier: MIT
//
// Categories: the class of remedy that a cause asks for. The reader may leave only one of them in
// the plots, and the box plot stands in groups of them.

const inCategory = cause => view.category === null || view.category === cause.category;
const causeShown = cause =>
    inCategory(cause) && (view.cause === null || view.cause === causeKey(cause));

// The categories of the diagnosis on show with their time, the largest first.
function categoriesOf(diagnosis) {
  const totals = new Map();
  for (const {category, total_ns: ns} of diagnosis.causes)
    totals.set(category, (totals.get(category) ?? 0) + (ns || 0));
  return [...totals].map(([name, total]) => ({name, total})).sort((a, b) => b.total - a.total);
}

function renderCategoryControls() {
  const categories = categoriesOf(current()),
        whole = categories.reduce((sum, one) => sum + one.total, 0);
  choice(
      byId('category-controls'), 'Category',
      [
        [null, 'all'],
        ...categories.map(({name, total}) => [name, `${name} ${percent(total, whole)}`])
      ],
      view.category, key => chooseCategory(key));
  renderCategoryNote();
}

function chooseCategory(category) {
  view.category = category;
  if (!current().causes.some(cause => causeShown(cause))) view.cause = null;
  renderCategoryNote();
  balloons.draw();
  renderBoxes();
  renderCauseTable();
}

// Said in words too: the buttons are not printed.
function renderCategoryNote() {
  const note = byId('category-note');
  note.hidden = view.category === null;
  note.textContent = `Only causes of the category “${view.category}” are shown.`;
}

// The rows of the box plot: causes, in groups below a heading when the reader wants these. Groups
// are in order of their time, or of their first cause where that is what causes are sorted by.
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

// What came before the program's own table, for "How this was measured".
function categoryFiles() {
  return data.categories.length ?
      data.categories.map(({file, patterns}) => `${file} (${plural(patterns, 'pattern')})`)
              .join(', ') +
          ', then the program’s own' :
      'the program’s own';
}
