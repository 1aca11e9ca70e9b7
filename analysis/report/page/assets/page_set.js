// SPDX-License-Identifier: MIT
//
// The page of a folder of runs: repetitions, the configurations of a matrix, or the steps of a
// study. The figures of each beside the others, with links to their pages.

const {document: whole, gates = [], picture} = data;
const DRAWN = ['p50', 'p99', 'p99.9'];
const KIND = whole.pooled ? 'repetitions' : whole.rounds ? 'study' : 'matrix';
// suffix: of a load beside the first, "-NAME".
const link = (path, text, suffix = '') => element(
    'a', {href: './' + path.split('/').map(encodeURIComponent).join('/') + `/report${encodeURIComponent(suffix)}.html`},
    text);
const of = (values, name) => values?.[name];

// A row each: name, suffix (of its page), requests, us and ends (of an interval) by percentile, runs (their pages).
const rowOf = {
  repetitions: one => ({...one, name: one.folder, us: one.latency_us, ends: one.ci_us}),
  matrix: one => ({...one, name: one.configuration, us: one.latency_us, ends: one.ci_us}),
  study: one => ({
    ...one,
    name: one.step,
    us: mapped(one.latency_us, found => found.median),
    ends: mapped(one.latency_us, found => 'lowest' in found || 'highest' in found ? [found.lowest, found.highest] : null),
    pooled: whole.rounds > 1 ? mapped(one.latency_us, found => found.pooled) : null,
    pooledEnds: mapped(one.latency_us, found => found.pooled_ci),
    pages: whole.rounds > 1 && !one.study ?
        Array.from({length: one.runs}, (_, i) => `${one.step}/repetition-${i + 1}`) :
        null
  })
};
const mapped = (values, change) =>
    Object.fromEntries(Object.entries(values ?? {}).map(([name, value]) => [name, change(value)]));
// Among several loads each has a row of its own. Of repetitions all those of a load stand together, as
// these are pooled.
const ofLoad = (name, row, suffix = '') => name ? {...row, name: `${row.name}, load ${name}`, suffix} : row;
const loadsOf = one => [
  ofLoad(one.load, rowOf[KIND](one)),
  ...Object.entries(one.loads ?? {}).map(([name, load]) => ofLoad(
      name, rowOf[KIND]({step: one.step, configuration: one.configuration, folder: one.folder, ...load}), '-' + name))
];
const series = KIND === 'repetitions' ?
    [[whole.load, whole, ''], ...Object.entries(whole.loads ?? {}).map(([name, load]) => [name, load, '-' + name])]
        .map(([name, load, suffix]) => ({
          load: name,
          pooled: load.pooled,
          between: load.between,
          rows: load.list.map(one => ofLoad(name, rowOf.repetitions(one), suffix))
        })) :
    [{rows: whole.list.flatMap(loadsOf)}];
const rows = series.flatMap(one => one.rows);
const percentiles = ['p25', 'p50', 'p90', 'p99', 'p99.9', 'p99.99'].filter(
    name => rows.some(row => row.us && name in row.us));

const bracket = range => range ? `[${microseconds(range[0])}, ${microseconds(range[1])}]` : '';
function cell(row, name) {
  if (!row.us || !(name in row.us)) return '–';
  const more = [bracket(of(row.ends, name))];
  if (known(of(row.uncorrected_latency_us, name)))
    more.push(`from the send ${microseconds(row.uncorrected_latency_us[name])}`);
  if (row.pooled)
    more.push(`pooled ${microseconds(row.pooled[name])}`, bracket(of(row.pooledEnds, name)));
  return element(
      'span', {}, microseconds(row.us[name]),
      ...more.filter(Boolean).flatMap(text => [element('br'), element('small', {}, text)]));
}

function drawLatency() {
  const measured = rows.filter(row => row.us && percentiles.length);
  byId('latency-lead').textContent =
      `Of each, at the client, from the intended instant; whiskers and brackets are ${
          KIND === 'study' ? 'the fastest and the slowest round, marks their median' :
                             'the 95 % interval'}.` +
      (whole.rounds > 1 ? ' Pooled are all requests of all rounds, with their 95 % interval.' : '') +
      (whole.pooled ? ' Lines are the percentiles of all requests pooled.' : '');
  const drawn = DRAWN.filter(name => percentiles.includes(name));
  const isKnown = row => measured.includes(row);
  const marks = drawn.map((name, rank) => ({
    name,
    rank,
    shift: (rank - (drawn.length - 1) / 2) * .2,
    points: measured.map((row, at) => ({
      at, us: row.us[name], low: of(row.ends, name)?.[0], high: of(row.ends, name)?.[1]
    })),
    levels: series.filter(one => known(of(one.pooled?.latency_us, name)) && one.rows.some(isKnown)).map(one => ({
      from: measured.indexOf(one.rows.find(isKnown)),
      to: measured.indexOf(one.rows.filter(isKnown).at(-1)),
      us: one.pooled.latency_us[name]
    }))
  }));
  if (measured.length)
    byId('latency-plot').replaceChildren(runsPlot(
        measured.map(row => ({label: row.name})), marks,
        {label: 'Latency percentiles of each; the table has the figures', logarithmic: true, height: 300}));
  byId('latency-legend').replaceChildren(...drawn.map(
      (name, rank) => element('span', {}, swatch(rank), name)));
}

function drawTable() {
  const pages = row => row.pages ?
      element('span', {}, row.name, ...row.pages.flatMap((page, i) => [' ', link(page, `${i + 1}`, row.suffix)])) :
      element('span', {class: 'nowrap'}, link(row.folder, row.name, row.suffix));
  const cpu = rows.some(row => known(row.server_cpu_us));
  const body = rows.map(row => [
    pages(row), known(row.requests) ? count(row.requests) : '–',
    ...percentiles.map(name => cell(row, name)),
    ...(cpu ? [known(row.server_cpu_us) ? microseconds(row.server_cpu_us) : '–'] : []), note(row)
  ]);
  for (const one of series.filter(one => one.pooled)) {
    const pooled = {us: one.pooled.latency_us, ends: one.pooled.ci_us};
    body.push([
      'all' + (one.load ? ` of load ${one.load}` : '') + ', pooled', count(one.pooled.requests),
      ...percentiles.map(name => cell(pooled, name)), ''
    ]);
  }
  byId('latency-table').replaceChildren(table(
      [
        ['', true], ['requests'], ...percentiles.map(name => [name]),
        ...(cpu ? [['CPU a request']] : []), ['', true]
      ],
      body,
      'What each came to'));
}

// Warnings that a reader needs in order to judge a row.
function note(row) {
  if (row.study) return 'a study of its own';
  if (row.skipped) return `skipped: ${row.skipped}`;
  if (row.load_verdict && row.load_verdict !== 'ok')
    return `${row.pages ? 'first round: ' : ''}load ${row.load_verdict}: ${
        microSigns(row.load_reasons?.[0] ?? 'no reason is given')}`;
  return row.between?.exceeds_within ? 'its repetitions differ by more than chance' : '';
}

function drawGates() {
  byId('gates').hidden = gates.length === 0;
  const order = {failed: 0, inconclusive: 1, passed: 2};
  const parts = gates.some(gate => gate.part);
  byId('gates-table').replaceChildren(table(
      [['', true], ['gate', true], ...(parts ? [['of', true]] : []), ['what was found', true]],
      [...gates].sort((a, b) => order[a.outcome] - order[b.outcome]).map(gate => [
        element('span', {class: gate.outcome === 'passed' ? null : 'bad'}, gate.outcome), gate.gate,
        ...(parts ? [gate.part ?? ''] : []), microSigns(gate.words)
      ]),
      'Gates'));
}

function drawComparisons() {
  const all = whole.compare ?? [];
  byId('comparisons').hidden = all.length === 0;
  byId('comparisons-list').replaceChildren(...all.flatMap(one => [
    element('h3', {},
        one.page ? element('a', {href: './' + encodeURIComponent(one.page)}, one.name) : one.name,
        `: ${one.candidate} against ${one.base}${one.load ? `, load ${one.load}` : ''}`),
    one.only_in ? element('p', {}, `Only the ${one.only_in} has this load.`) : element('ul', {},
        ...(one.slices ?? []).map(slice => element('li', {}, slice.verdict)),
        ...(one.percentiles ?? []).map(
            percentile => element('li', {}, percentile.verdict)))
  ]));
}

function drawVerdicts() {
  const judged = rows.filter(row => row.verdict);
  const causes = row => (row.causes ?? []).filter(cause => cause.explains !== false).slice(0, 3)
      .map(cause => `${cause.cause} (${cause.role})`).join(', ');
  byId('verdicts').hidden = judged.length === 0;
  byId('verdicts-lead').hidden = !(whole.rounds > 1);
  byId('verdicts-table').replaceChildren(table(
      [['', true], ['verdict', true], ['first causes', true]],
      judged.map(row => [
        element('span', {class: 'nowrap'}, link(row.folder, row.name, row.suffix)), row.verdict, causes(row)
      ]),
      'Verdicts'));
}

function drawBetween({load, between}, facts) {
  const name = 'Between runs' + (load ? ` of load ${load}` : '');
  if (between && known(between.exceeds_within))
    facts.push([
      name,
      `${between.percentile} from ${microseconds(between.range_us[0])} to ${
          microseconds(between.range_us[1])}: ${
          between.exceeds_within ? 'more than' : 'no more than'} what chance within the repetitions ` +
          `explains (p ${between.p.toPrecision(2)}; standard deviation ${
              microseconds(between.between_us)} between them, ${
              microseconds(between.within_us)} within)`
    ]);
  else if (between)
    facts.push([name, `too few have a known ${between.percentile} to compare them`]);
}

function drawFacts() {
  const facts = [];
  for (const one of series) drawBetween(one, facts);
  if (whole.rounds > 1) facts.push(['Rounds', `all steps in turn, ${count(whole.rounds)} times`]);
  showFacts(byId('facts'), facts);
}

function draw() {
  drawLatency();
  drawTable();
}

drawFacts();
drawGates();
keepDrawn(draw);
if (picture)  // as an image it can run nothing
  byId('picture').replaceChildren(element('img', {
    src: 'data:image/svg+xml,' + encodeURIComponent(picture),
    alt: 'Distributions of latency',
    style: 'max-width: 100%'
  }));
drawComparisons();
drawVerdicts();
byId('footer').textContent = `Taillight ${data.taillight_version}`;
document.documentElement.dataset.ready = 'yes';
