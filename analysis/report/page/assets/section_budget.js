// SPDX-License-Identifier: MIT
//
// The report's part on what the server's threads did over the window, in absolute terms: a bar for
// the threads of each name, or for each thread.

let budgetRows = 'by_name';
const BLOCKED = 'blocked', BARS_MOST = 24;

// [label, colour, us] of what a row's threads did; what they were blocked in stands by its name.
function budgetParts(row) {
  return data.budget_states.flatMap(([name, colour]) => name === BLOCKED ?
      row.blocked.map(one => [one.wait, colour, one.us]) :
      [[name, colour, row.states_us[name]]]).filter(([, , us]) => us > 0);
}

function budgetBar(row) {
  const width = byId('budget-plot').clientWidth - 290;
  return element(
      'div', {class: 'bar', style: 'width:100%'},
      ...budgetParts(row).map(([name, colour, us]) => {
        const share = us / row.us, pixels = share * width, text = `${name} ${percent(share)}`;
        return element(
            'div', {
              class: 'piece',
              style: `flex:${us} 1 0;background:${colour};color:#1d1e21`,
              pointermove: event => showTip(event, `${row.name}: ${name}\n${duration(us * 1000)}, ${percent(share)}`),
              pointerleave: hideTip
            },
            pixels > text.length * 7.4 ? text : '');
      }));
}

function budgetLegend(rows) {
  const used = data.budget_states.filter(([name]) => rows.some(row => row.states_us[name] > 0));
  return element(
      'div', {class: 'legend'},
      ...used.map(([name, colour]) => element(
                      'span', {}, element('span', {class: 'swatch', style: `background:${colour}`}),
                      name)));
}

const budgetName = row => row.thread === null ?
    `${row.name}${row.threads > 1 ? `, ${row.threads} threads` : ''}` :
    `${row.name} (${row.thread})`;

function renderBudget() {
  const rows = data.budget[budgetRows];
  byId('budget-plot').replaceChildren(
      element(
          'div', {class: 'stages', style: 'grid-template-columns:200px 1fr 80px', 'aria-hidden': 'true'},
          ...rows.slice(0, BARS_MOST).flatMap(row => [
            element('div', {class: 'name'}, budgetName(row)), budgetBar(row),
            element('div', {class: 'total'}, `${percent(row.busy_us / row.us)} busy`)
          ])),
      budgetLegend(rows));
  byId('budget-table').replaceChildren(table(
      [['thread', true], ['what it did', true], ['time'], ['share']],
      rows.flatMap(row => budgetParts(row)
                              .sort((a, b) => b[2] - a[2])
                              .map(([name, , us]) => [
                                budgetName(row), name, duration(us * 1000), percent(us / row.us)
                              ])),
      'The time of the server\'s threads'));
}

sections.push({
  id: 'budget',
  title: 'What the server\'s threads did',
  place: 24,
  folded: true,
  has: () => Boolean(data.budget),
  markup: `
    <p class="lead">All of the window, whatever a request waited for: it shows what slows every request alike. Interrupts count as what they interrupted.</p>
    <div class="controls" id="budget-controls"></div>
    <div id="budget-plot"></div>
    <details><summary>As a table</summary><div id="budget-table"></div></details>`,
  start: () => choice(
      byId('budget-controls'), 'A bar for', [['by_name', 'the threads of a name'], ['threads', 'every thread']],
      budgetRows, chosen => {
        budgetRows = chosen;
        renderBudget();
      }),
  draw: () => renderBudget()
});
