// SPDX-License-Identifier: MIT
//
// The report's part on queues: what was ahead of the slice's messages beside that of ordinary ones,
// what their cores did, which requests held up others; and, of the chosen message, who held it up.

const VIEW_SIDES = ['these messages', 'ordinary ones'];

// A request that can be gone to: a button that chooses it.
function requestButton(id, text) {
  return element('button', {type: 'button', class: 'request', click: () => chooseMessage(id, true)}, text);
}

function renderBlocking(views) {
  const {by, worst_blockers: worst} = views.blocking;
  byId('blocking-table').replaceChildren(table(
      [['held up by', true], ['core', true], ['messages'], ['median'], ['total'], ['mean'], ['ordinary mean']],
      by.map(one => [
        one.by, one.role, count(one.messages), one.messages ? duration(one.median_us * 1000) : '–',
        one.messages ? duration(one.total_us * 1000) : '–', duration(one.mean_us * 1000, '–'),
        duration(known(one.reference_mean_us) ? one.reference_mean_us * 1000 : null, '–')
      ]),
      'Head-of-line blocking'));
  byId('blockers-table').replaceChildren(
      worst.length ? table(
                         [['request', true], ['operation', true], ['connection'], ['messages it held up'], ['for, in all']],
                         worst.slice(0, 10).map(one => [
                           requestButton(one.request, String(one.request)), operationName(one.operation),
                           String(one.connection), count(one.messages), duration(one.total_us * 1000)
                         ]),
                         'The requests that held up others longest') :
                     element('p', {class: 'empty'}, 'No request of this run held one of these up.'));
}

function renderViews() {
  const views = current()?.views;
  byId('views').hidden = !views;
  if (!views) return;
  const queues = [
    views.queue, views.queue.map(one => ({...one, ahead: one.reference_ahead, us: one.reference_us}))
  ];
  const contexts =
      [views.contexts, views.contexts.map(one => ({...one, share: one.reference_share}))];
  renderQueue(byId('queue-plot'), queues, VIEW_SIDES);
  renderContexts(byId('contexts-plot'), contexts, VIEW_SIDES);
  byId('queue-table').replaceChildren(queueTable(queues, VIEW_SIDES));
  byId('contexts-table').replaceChildren(contextTable(contexts, VIEW_SIDES));
  renderBlocking(views);
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
        requestButton(
            own.id[at],
            `${own.id[at]} ${operationName(views.operations[own.id[at]])}`),
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
