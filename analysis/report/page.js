// SPDX-License-Identifier: MIT
//
// Puts the page together: words and tables, which diagnosis and which message are shown, and the
// address (#message=ID, #window=N) that remembers it.

const WEAKENS = {
  unsent: [
    'requests never sent', 'They count as never answered: the percentiles they reach read “never”.'
  ],
  timed_out: ['requests without a reply in time', 'They count as never answered.'],
  lost: ['requests lost with their connection', 'They count as never answered.'],
  order_violations: [
    'stamps out of order by more than the clock error',
    'The stage that ends at such a stamp reads 0, its neighbour is too long.'
  ],
  dropped_events: [
    'kernel events dropped by the capture',
    'Spans around them are unknown; causes there stay unexplained.'
  ],
  dropped_calls: [
    'socket calls dropped by the shim',
    'Their messages have no M(a) or reply stamp, hence no diagnosis.'
  ],
  dropped_samples: ['client samples dropped', 'The latency distribution lacks these requests.'],
  unpaired: ['spans without a begin or an end', 'Their time is shown as records lost.'],
  lost_intervals: ['gaps in the capture', 'Nobody knows what ran in them.'],
};

// --- verdict and numbers ----------------------------------------------------------------------

const joined = () => data.states[0].count;
const lossesOf = () => Object.keys(WEAKENS)
                           .filter(key => data.counts[key] > 0)
                           .map(key => `${count(data.counts[key])} ${WEAKENS[key][0]}`);

function howMuch() {
  const words =
      data.quantiles
          .map(
              (name, i) => known(data.latency.value[i]) || data.counts.answered > 0 ?
                  `${name === 'max' ? 'the slowest' : name} ${duration(data.latency.value[i])}` :
                  null)
          .filter(Boolean);
  return words.length ? words.join(', ') + ', from the intended send time.' :
                        'Nothing was answered.';
}

function howSure() {
  const i = data.quantiles.indexOf('p99'), first = data.diagnoses[0], words = [];
  if (known(data.latency.low[i]) && known(data.latency.high[i]))
    words.push(`p99 lies between ${duration(data.latency.low[i])} and ${
        duration(data.latency.high[i])} (95 %)`);
  if (first && known(first.coverage_total))
    words.push(
        `the causes explain ${percent(first.coverage_total)} of the slow messages’ extra time`);
  words.push(`${percent(joined(), data.counts.scheduled)} of requests have every stamp`);
  if (known(data.measures.clock_error_ns))
    words.push(`clocks agree within ${duration(data.measures.clock_error_ns)}`);
  if (known(data.measures.hosts_bound_ns))
    words.push(`those of the two machines are related within ${
        duration(data.measures.hosts_bound_ns)} (99 % of requests)`);
  return words.join('; ') + '.';
}

// What the load generator and the capture said against themselves.
function warnings() {
  const {load, capture, experiment} = data.documents;
  return [load?.reasons, load?.warnings, capture?.warnings, experiment?.warnings]
      .filter(Array.isArray)
      .flat()
      .filter(text => typeof text === 'string')
      // The engine repeats what its children said, with their names in front.
      .filter((text, i, all) => !all.slice(0, i).some(earlier => text.includes(earlier)));
}

// The first sentence is the headline.
function splitVerdict() {
  const parts = /^(.{30,}?\.) (?=\S)(.*)$/s.exec(data.verdict), more = byId('verdict-more');
  if (!parts || data.verdict.length < 160) return;
  document.querySelector('h1').textContent = parts[1];
  more.textContent = parts[2];
  more.hidden = false;
}

function renderVerdict() {
  const losses = lossesOf(), facts = byId('verdict-facts'),
        add = (what, text, bad) =>
            facts.append(element('dt', {}, what), element('dd', {class: bad ? 'bad' : null}, text));
  if (!data.available)
    add('Verdict', 'N/A. The evidence does not carry one; what follows is what was seen.', true);
  splitVerdict();
  for (const text of warnings()) add('Beware', text, true);
  add('How much', howMuch());
  add('How sure', howSure());
  add('What was lost',
      losses.length ? losses.join(', ') + '.' :
                      'Nothing: every request was answered, every record arrived.',
      losses.length > 0);
  byId('folder').textContent = data.run;
}

function renderNumbers() {
  const {measures, counts} = data, first = data.diagnoses[0], late = measures.lateness_p99_ns,
                   dropped = counts.dropped_events + counts.dropped_calls + counts.dropped_samples;
  const rate = value => known(value) ? count(value) + ' /s' : '–';
  const cells = [
    ['Offered', rate(measures.offered_rate), `achieved ${rate(measures.achieved_rate)}`],
    ['Requests', count(counts.scheduled), `in ${duration(measures.duration_ns, '–')}`],
    [
      'Answered', percent(counts.answered, counts.scheduled),
      `${count(counts.scheduled - counts.answered)} not`, counts.answered < counts.scheduled
    ],
    ['Joined', percent(joined(), counts.scheduled), 'have every stamp'],
    [
      'Out of order', count(counts.order_violations),
      counts.order_violations ? `by up to ${duration(measures.worst_disorder_ns)}` : 'stamps',
      counts.order_violations > 0
    ],
    ['Dropped', count(dropped), 'records', dropped > 0],
    [
      'Clock error', duration(measures.clock_error_ns, '–'),
      known(late) ? `sent late: ${duration(late)} at p99` : ''
    ],
    [
      'Explained', first && !first.not_available ? percent(first.coverage_total) : 'N/A',
      first && known(first.coverage_median) ? `${percent(first.coverage_median)} of a typical one` :
                                              'of the extra time'
    ],
  ];
  byId('numbers').replaceChildren(...cells.map(
      ([what, value, note, bad]) => element(
          'div', {}, element('dt', {}, what), element('dd', {class: bad ? 'bad' : null}, value),
          element('dd', {class: 'note'}, note))));
}

// --- diagnoses and messages -------------------------------------------------------------------

let balloons, timelinePlot, rowsShown = 100;

function sliceWords(diagnosis) {
  if (diagnosis.not_available) return `N/A: ${diagnosis.reason || 'no reason was given'}`;
  const left = diagnosis.left_out.reduce((sum, number, state) => state > 0 ? sum + number : sum, 0);
  const shown = diagnosis.shown < diagnosis.total ?
      ` The ${count(diagnosis.shown)} slowest are in this report.` :
      '';
  return `${plural(diagnosis.total, 'message')} of ${count(diagnosis.candidates)} took ${
             duration(diagnosis.slice_low_ns)} to ${
             duration(diagnosis.slice_high_ns)}; an ordinary one takes ${
             duration(diagnosis.reference_latency_ns, 'an unknown time')} ` +
      `(median of ${count(diagnosis.reference_count)}). Differences below ${
             duration(diagnosis.granularity_ns, '–')} are ignored.${
             left ? ` ${plural(left, 'message')} could not be followed and ${
                        left === 1 ? 'is' : 'are'} left out.` :
                    ''}${shown}`;
}

function renderDiagnosis() {
  const diagnosis = current(), has = diagnosis && diagnosis.messages.id.length > 0;
  byId('diagnosis').hidden = !has;
  byId('slice-lead').textContent = !diagnosis ?
      'Nothing was diagnosed: the run has no capture, or nothing to explain.' :
      has || diagnosis.not_available ? sliceWords(diagnosis) :
                                       'No message falls into this slice.';
  if (!has) return;
  renderCategoryControls();
  renderBalloonControls();
  balloons.load();
  renderBoxControls();
  renderGroupControls();
  renderBoxes();
  renderCauseTable();
  renderLifetimes();
  renderViews();
}

function renderWindows() {
  if (data.diagnoses.length > 1)
    choice(
        byId('windows'), 'Slice', data.diagnoses.map((diagnosis, i) => [i, diagnosis.label]),
        view.diagnosis, index => chooseDiagnosis(index));
}

function chooseDiagnosis(index) {
  Object.assign(view, {diagnosis: index, message: null, cause: null, category: null});
  rowsShown = 100;
  renderWindows();
  const first = current()?.messages.id[0];
  chooseMessage(first ?? null, false, true);
  renderDiagnosis();
  renderMessageTable();
}

function messageRow(diagnosis, index) {
  const {messages} = diagnosis, own = ownCauses(diagnosis, index),
        detail = index < diagnosis.detailed, id = messages.id[index];
  const text = (content, words) => element('td', {class: words ? 'text' : 'nowrap'}, content);
  return element(
      'tr', {
        tabindex: index === (view.message ?? 0) ? 0 : -1,
        'aria-selected': String(index === view.message),
        'data-index': index,
        click: () => chooseMessage(id)
      },
      text(String(index + 1)), text(String(id)), text(seconds(messages.at_ns[index])),
      text(duration(messages.latency_ns[index])),
      text('+' + duration(messages.deviation_ns[index])),
      text(percent(messages.explained_ns[index], messages.deviation_ns[index])),
      text(
          own.slice(0, 3).map(({cause, ns}) => `${causeLabel(cause)} ${duration(ns)}`).join(', ') ||
              'none found',
          true),
      text(detail ? operationName(messages.operation[index]) : '', true),
      text(detail ? String(messages.connection[index]) : ''),
      text(
          detail ? `${messages.receive_core[index] ?? '?'} → ${
                       messages.application_core[index] ?? '?'}` :
                   ''));
}

function renderMessageTable() {
  const place = byId('message-table'), diagnosis = current();
  if (!diagnosis || !diagnosis.messages.id.length) {
    place.replaceChildren(element('p', {class: 'empty'}, 'No messages.'));
    return;
  }
  const shown = Math.min(rowsShown, diagnosis.shown), columns = [
    ['', 0], ['message', 0], ['at', 0], ['latency', 0], ['extra', 0], ['explained', 0],
    ['largest causes', 1], ['operation', 1], ['conn.', 0], ['R → A core', 0]
  ];
  const body = element(
      'tbody', {keydown: rowKeys},
      ...Array.from({length: shown}, (_, i) => messageRow(diagnosis, i)));
  const more = diagnosis.shown > shown ? element(
                                             'button', {
                                               type: 'button',
                                               click: () => {
                                                 rowsShown *= 4;
                                                 renderMessageTable();
                                               }
                                             },
                                             'More') :
                                         '';
  place.replaceChildren(
      element(
          'div', {class: 'scroll'},
          element(
              'table', {},
              element('caption', {class: 'only-screen-reader'}, 'The slowest messages'),
              element(
                  'thead', {},
                  element(
                      'tr', {},
                      ...columns.map(
                          ([title, words]) =>
                              element('th', {class: words ? 'text' : null, scope: 'col'}, title)))),
              body)),
      element(
          'div', {class: 'controls'},
          element(
              'span', {class: 'label'}, `${count(shown)} of ${count(diagnosis.total)} messages`),
          more));
}

function rowKeys(event) {
  const row = event.target.closest('tr'), next = {
    ArrowDown: row?.nextElementSibling,
    ArrowUp: row?.previousElementSibling
  }[event.key];
  if (event.key === 'Enter' && row) {
    chooseMessage(current().messages.id[Number(row.dataset.index)]);
    byId('message').scrollIntoView({behavior: 'smooth'});
  }
  if (!next) return;
  event.preventDefault();
  chooseMessage(current().messages.id[Number(next.dataset.index)]);
  next.focus({preventScroll: true});
  next.scrollIntoView({block: 'nearest'});
}

function markRow() {
  for (const row of byId('message-table').querySelectorAll('tr[data-index]')) {
    const chosen = Number(row.dataset.index) === view.message;
    row.setAttribute('aria-selected', String(chosen));
    row.tabIndex = chosen ? 0 : -1;
  }
}

function renderMessage() {
  const diagnosis = current(),
        timeline = timelines.get(view.id) ??
      (diagnosis ? timelineFromStages(diagnosis, view.message) : null);
  const lead = byId('message-lead');
  timelinePlot.load(timeline);
  document.documentElement.dataset.message = timeline ? view.id : '';
  if (!timeline) {
    lead.textContent = view.id === null ?
        'There is no message to show.' :
        `Message ${
            view.id} is not in this report: it holds the slowest ones and a few ordinary ones.`;
    byId('message-causes').replaceChildren();
    byId('timeline-table').replaceChildren();
    return;
  }
  lead.textContent = `${describeMessage(timeline)}. ${timelineOmissions(timeline)}`;
  renderMessageCauses(diagnosis, view.message, timeline);
  byId('message-causes').append(...messageBlockers(diagnosis, view.message));
  if (byId('timeline-table').parentElement.open) renderTimelineTable(timeline);
}

function renderMessageControls() {
  const to = offset => () => {
    const ids = current()?.messages.id ?? [],
          index = Math.min(Math.max((view.message ?? -offset) + offset, 0), ids.length - 1);
    if (ids.length) chooseMessage(ids[index]);
  };
  const references = data.timelines.filter(one => one.reference);
  let next = 0;
  byId('message-controls')
      .replaceChildren(
          element('button', {type: 'button', click: to(-1)}, 'Slower'),
          element('button', {type: 'button', click: to(1)}, 'Faster'),
          references.length ?
              element(
                  'button', {
                    type: 'button',
                    click: () => chooseMessage(references[next++ % references.length].id)
                  },
                  'An ordinary message') :
              '',
          element(
              'button', {type: 'button', click: () => timelinePlot.viewport.reset()},
              'Whole life'));
}

// Where a message stands: in the diagnosis that is shown, else in another one.
function chooseMessage(id, scroll, quiet) {
  let index = current() ? current().messages.id.indexOf(id) : -1;
  if (index < 0 && id !== null) {
    const other = data.diagnoses.findIndex(diagnosis => diagnosis.messages.id.includes(id));
    if (other >= 0) {
      Object.assign(view, {diagnosis: other, cause: null, category: null});
      index = current().messages.id.indexOf(id);
      renderWindows();
      renderDiagnosis();
      renderMessageTable();
    }
  }
  Object.assign(view, {id, message: index < 0 ? null : index});
  if (!quiet && id !== null) history.replaceState(null, '', `#message=${id}`);
  renderMessage();
  markRow();
  if (!quiet && current()?.messages.id.length) {
    balloons.draw();
    renderBoxes();
  }
  if (scroll && byId('message').getBoundingClientRect().top > innerHeight - 160)
    byId('message').scrollIntoView({behavior: 'smooth', block: 'start'});
}

// --- losses and how it was measured -------------------------------------------------------------

// Every leaf of a document as [path, value].
function leaves(value, path = [], out = []) {
  if (value !== null && typeof value === 'object')
    for (const [key, inner] of Object.entries(value)) leaves(inner, [...path, key], out);
  else
    out.push([path.join('.'), value]);
  return out;
}

function renderLosses() {
  const rows =
      Object.entries(WEAKENS).map(([key, [what, weakens]]) => [what, data.counts[key], weakens]);
  data.states.forEach((state, i) => {
    if (i > 1)
      rows.push([
        `answered requests: ${state.name}`, state.count,
        'They are in the latency distribution, but cannot be explained.'
      ]);
  });
  for (const document of ['load', 'capture'])
    for (const [path, value] of data.documents[document] ? leaves(data.documents[document]) : [])
      if (typeof value === 'number' &&
          /drop|lost|lose|miss|unmatch|unsent|overrun|fail|unseen|truncat/i.test(path))
        rows.push([
          `${document}: ${path.replace(/_/g, ' ')}`, value,
          'As counted by the ' + (document === 'load' ? 'load generator.' : 'capture.')
        ]);
  const body = rows.map(
      ([what, number, weakens]) => element(
          'tr', {class: number ? null : 'zero'}, element('td', {class: 'text'}, what),
          element('td', {class: number ? 'nowrap bad' : 'nowrap'}, count(number)),
          element('td', {class: 'text'}, number ? weakens : '')));
  byId('warnings').replaceChildren(...warnings().map(text => element('p', {class: 'bad'}, text)));
  byId('lost-table')
      .replaceChildren(element(
          'table', {}, element('caption', {class: 'only-screen-reader'}, 'Losses'),
          element(
              'thead', {},
              element(
                  'tr', {}, element('th', {class: 'text'}, 'what'), element('th', {}, 'how many'),
                  element('th', {class: 'text'}, 'what it weakens'))),
          element('tbody', {}, ...body)));
}

function settings(pairs) {
  return element(
      'dl', {class: 'settings'},
      ...pairs.map(
          ([what, value]) =>
              element('div', {}, element('dt', {}, what), element('dd', {}, value))));
}

function renderHow() {
  const {measures} = data, titles = {
    experiment: 'The experiment',
    load: 'The load generator’s summary',
    capture: 'The capture',
    facts: 'The hosts'
  };
  const own = [
    ['stamps out of order, worst', duration(measures.worst_disorder_ns, '–')],
    ['clock error, stated bound', duration(measures.clock_error_ns, '–')],
    ...(known(measures.round_trip_p50_ns) ?
            [
              ['clocks of the two machines, bound for 99 %', duration(measures.hosts_bound_ns, '–')],
              ['network there and back, median', duration(measures.round_trip_p50_ns)],
              ['network there and back, p99', duration(measures.round_trip_p99_ns)]
            ] :
            []),
    ['stages miss the latency by, worst', duration(measures.worst_stage_sum_error_ns, '–')],
    ['sent late, median', duration(measures.lateness_p50_ns, '–')],
    ['sent late, p99', duration(measures.lateness_p99_ns, '–')],
    ['timelines in this report', count(data.timelines.length)],
    ['categories of causes', categoryFiles()]
  ];
  byId('how').replaceChildren(settings(own), ...Object.entries(titles).map(([key, title]) => {
    const document = data.documents[key];
    return element(
        'details', {}, element('summary', {}, title),
        element(
            'div', {},
            document ? settings(leaves(document).map(([path, value]) => [path, String(value)])) :
                       element('p', {class: 'hint'}, 'Not recorded in this run.')));
  }));
  byId('footer').textContent = `Taillight ${data.version} · ${data.run}`;
}

// --- start --------------------------------------------------------------------------------------

function chooseFromAddress() {
  const message = /[#&]message=(\d+)/.exec(location.hash),
        window = /[#&]window=(\d+)/.exec(location.hash);
  if (window && data.diagnoses[Number(window[1])]) chooseDiagnosis(Number(window[1]));
  if (message) chooseMessage(Number(message[1]), false);
  return Boolean(message);
}

function redraw() {
  renderLatency();
  renderStages();
  if (current()?.messages.id.length) {
    balloons.sprites = new Map();
    balloons.picture = null;
    balloons.draw();
    renderBoxes();
    renderLifetimes();
    renderViews();
  }
  redrawSections();
  renderMessage();
}

function printing(on) {
  document.documentElement.classList.toggle('printing', on);
  if (on)
    for (const details of document.querySelectorAll(
             '#how details, #causes details, #latency-table, #stages-table'))
      (details.closest('details') ?? details).open = true;
  redraw();
}

function start() {
  balloons = new BalloonPlot(byId('balloon-plot'));
  timelinePlot = new TimelinePlot(byId('timeline-plot'));
  renderVerdict();
  renderNumbers();
  renderLatency();
  renderLatencyTable();
  renderStageControls();
  renderStages();
  renderMessageControls();
  chooseDiagnosis(0);
  renderLosses();
  addSections();
  renderHow();
  chooseFromAddress();
  byId('timeline-table').parentElement.addEventListener('toggle', () => renderMessage());
  let pending = 0;
  addEventListener('resize', () => {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(redraw);
  });
  addEventListener('hashchange', chooseFromAddress);
  addEventListener('beforeprint', () => printing(true));
  addEventListener('afterprint', () => printing(false));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  document.documentElement.dataset.ready = 'yes';
}

start();
