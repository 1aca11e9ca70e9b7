// SPDX-License-Identifier: MIT
//
// One message: its timeline, its causes and the requests that held it up; and the table of the
// slowest messages, in which another one can be chosen.

function describeMessage(timeline) {
  const when = `intended at ${seconds(timeline.begin_ns)}`,
        cores =
            timeline.cores.map(core => `core ${core.core} (${core.roles.split('').join(' and ')})`)
                .join(', then ');
  return [
    `Message ${timeline.id}${timeline.reference ? ', an ordinary one' : ''}: ${
        duration(timeline.latency_ns)}`,
    when, operationName(timeline.operation), `connection ${timeline.connection}`,
    timeline.thread ? `server thread ${timeline.thread}` : null,
    timeline.batch ? `${ordinal(timeline.batch_position + 1)} of its epoll batch` : null,
    cores || null
  ].filter(Boolean)
      .join(' · ');
}

function ordinal(number) {
  const tail = number % 100 > 10 && number % 100 < 14 ? 0 : number % 10;
  return number + (['th', 'st', 'nd', 'rd'][tail] ?? 'th');
}

// Operations are numbered in the order in which the experiment's mix names them.
function operationName(index) {
  const mix = data.documents.experiment?.workload?.mix;
  return (mix && typeof mix === 'object' && Object.keys(mix)[index]) || `operation ${index}`;
}

function renderMessageCauses(diagnosis, index, timeline) {
  const place = byId('message-causes');
  if (index === null) {
    place.replaceChildren(
        element('h3', {}, 'Its causes'),
        element(
            'p', {class: 'hint'},
            timeline?.reference ?
                'None: this message took the ordinary time. It shows what normal looks like.' :
                'This message is not among those that were explained.'));
    return;
  }
  const own = ownCauses(diagnosis, index),
        {deviation_ns: deviations, explained_ns: explained, latency_ns: latencies} =
            diagnosis.messages;
  const deviation = deviations[index] || 0, colours = theme(), rest = own.slice(OWN_CAUSES),
        most = Math.max(...own.map(one => one.ns || 0), deviation, 1);
  place.replaceChildren(
      element('h3', {}, 'What made it slow'),
      ...own.slice(0, OWN_CAUSES)
          .map(
              ({cause, ns}) => element(
                  'div', {class: 'own'},
                  element(
                      'div', {class: 'what'}, swatch(causeRank(cause)),
                      element('span', {}, causeLabel(cause), element('small', {}, cause.category)), element('b', {}, '+' + duration(ns))),
                  element('div', {class: 'track'}, element('div', {
                            class: 'fill',
                            style: `width:${100 * (ns || 0) / most}%;background:${
                                causeColour(colours, causeRank(cause))}`
                          })))),
      own.length ? '' : element('p', {class: 'hint'}, 'No cause was found for it.'),
      rest.length ? element(
                        'p', {class: 'hint'},
                        `and ${plural(rest.length, 'smaller one')}, +${
                            duration(rest.reduce((sum, one) => sum + (one.ns || 0), 0))}`) :
                    '',
      element(
          'div', {class: 'sum'},
          ...[['its latency', duration(latencies[index])],
              ['an ordinary one', duration(diagnosis.reference_latency_ns, '–')],
              ['extra', duration(deviation)],
              [
                'explained',
                `${duration(explained[index])}, ${percent(explained[index], deviation)}`
              ],
              ['unexplained', duration(Math.max(deviation - (explained[index] || 0), 0))]]
              .flatMap(([what, value]) => [element('span', {}, what), element('b', {}, value)])));
}

function renderTimelineTable(timeline) {
  const place = byId('timeline-table'), rows = [];
  timeline.stamps.forEach(stamp => rows.push([
    duration(stamp.at), data.stamps[stamp.kind], stamp.core === null ? '' : 'core ' + stamp.core,
    '', stamp.disordered ? 'stamp, out of order' : 'stamp', stamp.at
  ]));
  for (const core of timeline.cores) {
    if (!core.captured) continue;
    const {spans} = core;
    spans.from.forEach((from, i) => rows.push([
      duration(from),
      (spans.depth[i] ? '· '.repeat(spans.depth[i]) : '') +
          (spans.kind[i] === 2 ? 'idle' : spanName(spans.name[i])),
      `core ${core.core} (${core.roles})`, duration(spans.length[i]),
      KINDS[spans.kind[i]]?.[0] ?? '?', from
    ]));
  }
  rows.sort((a, b) => a[5] - b[5]);
  place.replaceChildren(element(
      'div', {class: 'scroll', tabindex: 0},
      table(
          [['after intended'], ['what', true], ['where', true], ['how long'], ['kind', true]],
          rows.map(row => row.slice(0, 5)), 'Stamps and spans of the message')));
}

// What the report leaves out of this timeline, in words.
function timelineOmissions(timeline) {
  const notes = [];
  if (timeline.partial)
    notes.push(
        'The report holds the cores’ activity for the slowest messages only; of this one, its stages.');
  for (const core of timeline.cores)
    if (core.omitted)
      notes.push(`The ${plural(core.omitted, 'shortest span')} on core ${core.core} ${
          core.omitted === 1 ? 'is' : 'are'} left out.`);
  if (timeline.others.omitted)
    notes.push(`${plural(timeline.others.omitted, 'further message')} of the thread left out.`);
  return notes.join(' ');
}

// Who held up the chosen message, and what was ahead of it; nothing where that is not known.
function messageBlockers(diagnosis, index) {
  const views = diagnosis?.views, own = views?.messages;
  if (!own || index === null || index >= own.all.length) return [];
  const ahead = views.queue.map((one, kind) => [one.kind, own.ahead[kind][index]])
                    .filter(([, number]) => number > 0)
                    .map(([kind, number]) => `${kind} ${count(number)}`);
  const rows = [];
  for (let at = own.first[index]; at < own.first[index + 1]; at++)
    rows.push(element(
        'div', {class: 'what'},
        typeof own.id[at] === 'string' ?
            element('span', {class: 'request'}, own.id[at]) :
            requestButton(own.id[at], `${own.id[at]} ${operationName(views.operations[own.id[at]])}`),
        element('span', {}, views.scopes[own.by[at]]), element('b', {}, duration(own.ns[at]))));
  if (!rows.length && !ahead.length) return [];
  const rest = own.all[index] - rows.length;
  return [
    element('h3', {class: 'blockers-title'}, 'Held up by'),
    element('p', {class: 'hint'}, ahead.length ? `Ahead of it: ${ahead.join(', ')}.` : 'Nothing was ahead of it.'),
    element('div', {class: 'blockers'}, ...rows),
    rest > 0 ? element('p', {class: 'hint'}, `and ${plural(rest, 'request')} that held it up for less`) : ''
  ];
}

let timelinePlot, rowsShown = 100;

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

sections.push({
  id: 'message',
  title: "One message's life",
  place: 40,
  markup: `
    <p class="lead" id="message-lead" aria-live="polite"></p>
    <div class="controls" id="message-controls"></div>
    <div class="message">
    <div>
    <div class="plot" id="timeline-plot"></div>
    <p class="hint">Drag to zoom in, double-click to zoom out; with the timeline focused: wheel, <kbd>+</kbd> <kbd>−</kbd> <kbd>0</kbd>, <kbd>←</kbd> <kbd>→</kbd>.</p>
    </div>
    <aside id="message-causes" aria-label="Causes of this message's delay"></aside>
    </div>
    <details><summary>As a table</summary><div id="timeline-table"></div></details>
    <h3>The slowest messages</h3>
    <div id="message-table"></div>`,
  start: () => {
    timelinePlot = new TimelinePlot(byId('timeline-plot'));
    renderMessageControls();
    byId('timeline-table').parentElement.addEventListener('toggle', () => renderMessage());
  },
  diagnosis: () => {
    rowsShown = 100;
    renderMessage();
    renderMessageTable();
  },
  message: () => {
    renderMessage();
    markRow();
  },
  draw: () => renderMessage()
});
