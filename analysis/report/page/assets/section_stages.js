// SPDX-License-Identifier: MIT
//
// The stages of the typical request at each percentile.

// Tints, by where the work is done: the client blue, the network grey, R green, A sand. The bright
// colours are the causes'.
const STAGE_COLOURS = [
  null, '#9fb8cc', '#b9cddc', '#c4c7cb', '#a9c9bd', '#e2cfa4', '#d3b778', '#e9dcbd', '#d6d8db',
  '#cfdde8'
];
const OFF_CORE_COLOUR = '#c9c4b8'; // with the application, whose thread does not run
const STAGE_INK = Array(10).fill('#1d1e21');
const stagesInUse = () =>
    data.stages.map((_, i) => i).filter(i => i > 0 && data.stage_ns.some(row => row[i] > 0));
const rowTotal = row => row.reduce((sum, ns) => sum + (ns || 0), 0);
const roleMark = role => role === null ? '' : data.roles[role];
// Names the machine as well if client and server are on two.
const stageMark = stage => [roleMark(stage.role), stage.machine].filter(Boolean).join(', ');

// The application's piece has what was not its doing in another tint, behind.
function stageTint(stage, ns, off) {
  if (stage !== data.off_core_of || !(off > 0.02 * ns)) return STAGE_COLOURS[stage];
  const ran = 100 * (1 - off / ns);
  return `linear-gradient(90deg,${STAGE_COLOURS[stage]} ${ran}%,${OFF_CORE_COLOUR} ${ran}%)`;
}

function stageBar(row, off, used, whole) {
  const total = rowTotal(row), width = byId('stages-plot').clientWidth - 170;
  return element(
      'div', {class: 'bar', style: `width:${100 * total / whole}%`},
      ...used.filter(i => row[i] > 0).map(i => {
        const share = row[i] / total, pixels = share * width * total / whole,
              name = data.stages[i].name;
        const label = pixels > name.length * 7.4 + 66 ? `${name} ${duration(row[i])}` :
            pixels > 58 ? duration(row[i]) :
                          '';
        const text = `${name} (${stageMark(data.stages[i])})\n${duration(row[i])}, ${
            percent(share)} of ${duration(total)}${
            i === data.off_core_of && off > 0 ? `; its thread did not run for ${duration(off)} of it` : ''}`;
        return element(
            'div', {
              class: 'piece',
              style: `flex:${row[i]} 1 0;background:${stageTint(i, row[i], off)};color:${STAGE_INK[i]}`,
              pointermove: event => showTip(event, text),
              pointerleave: hideTip
            },
            label);
      }));
}

let stageScale = 'share';

function renderStages() {
  const used = stagesInUse(), place = byId('stages-plot');
  if (!used.length) {
    place.replaceChildren(element(
        'p', {class: 'empty'},
        'No request has stages: nothing was answered, or nothing could be stamped.'));
    return;
  }
  const longest = Math.max(...data.stage_ns.map(rowTotal)), rows = [];
  data.quantiles.forEach((name, i) => {
    const total = rowTotal(data.stage_ns[i]);
    if (total > 0)
      rows.push(
          element('div', {class: 'name'}, name),
          stageBar(
              data.stage_ns[i], data.off_core_ns[i], used, stageScale === 'share' ? total : longest),
          element('div', {class: 'total'}, duration(total)));
  });
  place.replaceChildren(
      element('div', {class: 'stages', 'aria-hidden': 'true'}, ...rows),
      element(
          'div', {class: 'legend', style: 'padding-left:70px'},
          ...used.map(
              i => element(
                  'span', {},
                  element('span', {class: 'swatch', style: `background:${STAGE_COLOURS[i]}`}),
                  data.stages[i].name,
                  element('span', {class: 'role'}, stageMark(data.stages[i])))),
          ...(data.off_core_ns.some(ns => ns > 0) ?
                  [element(
                      'span', {}, element('span', {class: 'swatch', style: `background:${OFF_CORE_COLOUR}`}),
                      'with the application, not running')] :
                  [])));
}

function renderStageControls() {
  choice(
      byId('stages-controls'), 'Bars show',
      [['share', 'shares of each request'], ['scale', 'time, on one scale']], stageScale, key => {
        stageScale = key;
        renderStages();
      });
  const used = stagesInUse(), seen = data.stage_ns.filter(row => rowTotal(row) > 0),
        names = data.quantiles.filter((name, i) => rowTotal(data.stage_ns[i]) > 0),
        off = data.off_core_ns.filter((ns, i) => rowTotal(data.stage_ns[i]) > 0)
                  .map(ns => duration(ns, '–'));
  byId('stages-table')
      .replaceChildren(table(
          [['stage', true], ['where', true], ...names.map(name => [name])],
          used.flatMap(
                  i => [[data.stages[i].name, stageMark(data.stages[i]),
                         ...seen.map(row => duration(row[i], '–'))],
                        ...(i === data.off_core_of ? [['of it not running', '', ...off]] : [])])
              .concat([['sum', '', ...seen.map(row => duration(rowTotal(row)))]]),
          'Stages by percentile'));
}

sections.push({
  id: 'stages',
  title: 'Where the time goes',
  place: 20,
  folded: true,
  markup: `
    <p class="lead">The requests around each percentile, on average, from the instant that latency counts from to the reply. <b>R</b> is the core that received it, <b>A</b> the core of the application.</p>
    <div class="controls" id="stages-controls"></div>
    <div id="stages-plot"></div>
    <details><summary>As a table</summary><div id="stages-table"></div></details>`,
  start: () => renderStageControls(),
  draw: () => renderStages()
});
