// SPDX-License-Identifier: MIT
//
// One message: its timeline, its causes and the requests that held it up; beside the balloons where
// there is room.

function describeMessage(timeline) {
  const came = data.counts.without_client ? 'arrived' : 'intended', when = `${came} at ${seconds(timeline.begin_ns)}`,
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
      .join('\u00a0· ');  // no line begins with a dot
}

function ordinal(number) {
  const tail = number % 100 > 10 && number % 100 < 14 ? 0 : number % 10;
  return number + (['th', 'st', 'nd', 'rd'][tail] ?? 'th');
}

// Operations are numbered in the order in which the experiment's mix names them; what clients that are not
// ours asked for is not known.
function operationName(index) {
  if (data.counts.without_client) return '';
  const mix = data.documents.experiment?.workload?.mix;
  return (mix && typeof mix === 'object' && Object.keys(mix)[index]) || `operation ${index}`;
}

function renderMessageCauses(diagnosis, index, timeline) {
  const place = byId('message-causes'), without = index === null || !known(diagnosis.messages.deviation_ns[index]);
  if (without) {
    place.replaceChildren(element(
        'div', {}, element('h3', {}, 'Its causes'),
        element(
            'p', {class: 'hint'},
            index !== null       ? `Not known: ${diagnosis.reason}.` :
            timeline?.reference ? 'None: this message took the ordinary time. It shows what normal looks like.' :
                                  'This message is not among those that were explained.')));
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
  for (const hop of timeline.hops)
    rows.push([duration(hop.at), hopStep(hop), '', duration(hop.until - hop.at), 'between two hops', hop.at]);
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
          [[data.counts.without_client ? 'after arrival' : 'after intended'], ['what', true], ['where', true], ['how long'], ['kind', true]],
          rows.map(row => row.slice(0, 5)), 'Stamps and spans of the message')));
}

// What the report leaves out of this timeline, in words.
function timelineOmissions(timeline) {
  const notes = [];
  if (timeline.partial)
    notes.push(
        'Only its stages are on this page, not what the cores did.');
  for (const core of timeline.cores)
    if (core.omitted)
      notes.push(`The ${plural(core.omitted, 'shortest span')} on core ${core.core} ${
          core.omitted === 1 ? 'is' : 'are'} left out.`);
  if (timeline.others.omitted)
    notes.push(`${plural(timeline.others.omitted, 'further message')} of the thread left out.`);
  return notes.join(' ');
}

// The run's folder as a shell takes it: where this page lies, if it lies there.
function shellFolder() {
  const here = location.protocol === 'file:' ? decodeURIComponent(location.pathname).replace(/\/[^/]*$/, '') : '',
        folder = here.endsWith('/' + data.run) ? here : data.run;
  return /^[\w./:@%+,-]+$/.test(folder) ? folder : `'${folder.replaceAll("'", "'\\''")}'`;
}

async function copyText(text, button, shown) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
  } catch {
    getSelection().selectAllChildren(shown);  // where pages may not write: ready to be copied
    button.textContent = 'Selected';
  }
}

// What makes a page of a message whose timeline is not on this one.
function renderCommand(needed) {
  const place = byId('message-command'), text = `taillight report ${shellFolder()} --message ${view.id}`,
        shown = element('code', {}, text);
  place.hidden = !needed;
  place.replaceChildren(
      'Its timeline: ', shown,
      element('button', {type: 'button', click: event => copyText(text, event.target, shown)}, 'Copy'));
}

// Who held up the chosen message, and what was ahead of it; nothing where that is not known.
function messageBlockers(diagnosis, index) {
  const views = diagnosis?.views, own = views?.messages;
  if (!own || index === null || index >= own.all.length) return [];
  const ahead = views.queue.map((one, kind) => [one.kind, own.ahead[kind][index]])
                    .filter(([, number]) => number > 0)
                    .map(([kind, number]) => `${kind} ${count(number)}`);
  const rows = [];
  for (let at = own.first[index]; at < own.first[index + 1]; at++) {
    const id = own.id[at], scope = views.scopes[own.by[at]],
          what = typeof id === 'string' ?
        [element('span', {class: 'owner'}, `${id}: ${scope}`)] :
        [requestButton(id, `${id} ${operationName(views.operations[id])}`.trim()), element('span', {}, scope)];
    rows.push(element('div', {class: 'what'}, ...what, element('b', {}, duration(own.ns[at]))));
  }
  if (!rows.length && !ahead.length) return [];
  const rest = own.all[index] - rows.length;
  return [
    element('h3', {class: 'blockers-title'}, 'Held up by'),
    element('p', {class: 'hint'}, ahead.length ? `Ahead of it: ${ahead.join(', ')}.` : 'Nothing was ahead of it.'),
    element('div', {class: 'blockers'}, ...rows),
    rest > 0 ? element('p', {class: 'hint'}, `and ${plural(rest, 'request')} that held it up for less`) : ''
  ];
}

let timelinePlot;

function renderMessage() {
  const diagnosis = current(),
        timeline = timelines.get(view.id) ??
      (diagnosis ? timelineFromStages(diagnosis, view.message) : null);
  const lead = byId('message-lead');
  timelinePlot.load(timeline);
  document.documentElement.dataset.message = timeline ? view.id : '';
  for (const button of byId('message-controls').querySelectorAll('.step')) button.disabled = !diagnosis?.messages.id.length;
  if (!timeline) {
    lead.textContent = view.id === null ?
        'There is no message to show.' :
        `Message ${
            view.id} is not in this report: it holds the slowest ones and a few ordinary ones.`;
    renderCommand(view.id !== null);
    byId('message-causes').replaceChildren();
    byId('timeline-table').replaceChildren();
    return;
  }
  lead.textContent = `${describeMessage(timeline)}. ${timelineOmissions(timeline)}`;
  renderCommand(Boolean(timeline.partial));
  renderMessageCauses(diagnosis, view.message, timeline);
  byId('message-causes').append(...messageBlockers(diagnosis, view.message));
  if (byId('timeline-table').parentElement.open) renderTimelineTable(timeline);
}

function renderMessageControls() {
  const to = offset => () => {
    const listed = current()?.messages.id.length ? listedMessages() : [],
          at = listed.indexOf(view.message) + offset;
    if (listed.length)
      chooseMessage(current().messages.id[listed[Math.min(Math.max(at, 0), listed.length - 1)]]);
  };
  const references = data.timelines.filter(one => one.reference);
  let next = 0;
  byId('message-controls')
      .replaceChildren(
          element('button', {type: 'button', class: 'step', click: to(-1)}, 'Slower'),
          element('button', {type: 'button', class: 'step', click: to(1)}, 'Faster'),
          references.length ?
              element(
                  'button', {
                    type: 'button',
                    click: () => chooseMessage(references[next++ % references.length].id)
                  },
                  'An ordinary message') :
              '',
          element(
              'button', {type: 'button', click: () => timelinePlot.showLife()},
              'Its life'),
          element(
              'button', {type: 'button', click: () => timelinePlot.viewport.reset()},
              'Before and after'));
}

sections.push({
  id: 'message',
  title: "One message's life",
  place: 7,
  within: 'dock',
  has: () => data.timelines.length > 0 || Boolean(current()?.messages.id.length),
  controls: ['message-controls'],
  markup: `
    <p class="lead" id="message-lead" aria-live="polite"></p>
    <p class="command" id="message-command" hidden></p>
    <div class="plot" id="timeline-plot"></div>
    <p class="hint">Drag to zoom in, double-click to zoom out; with the timeline focused: wheel, <span class="nowrap"><kbd>+</kbd> <kbd>−</kbd> <kbd>0</kbd></span>, <span class="nowrap"><kbd>←</kbd> <kbd>→</kbd>.</span></p>
    <aside id="message-causes" aria-label="Causes of this message's delay"></aside>
    <details><summary>As a table</summary><div id="timeline-table"></div></details>`,
  start: () => {
    timelinePlot = new TimelinePlot(byId('timeline-plot'));
    renderMessageControls();
    byId('timeline-table').parentElement.addEventListener('toggle', () => renderMessage());
  },
  diagnosis: () => renderMessage(),
  message: () => renderMessage(),
  draw: () => renderMessage()
});
