// SPDX-License-Identifier: MIT
//
// Queues: what was ahead of the slice's messages, or of those chosen, compared with ordinary ones; what their
// cores did meanwhile; and which requests held up others.

const VIEW_SIDES = ['these messages', 'ordinary ones'];

// A request as a button that chooses it.
function requestButton(id, text) {
  return element('button', {type: 'button', class: 'request', click: () => chooseMessage(id, true)}, text);
}

function renderBlocking() {
  const {blocking: {by, worst_blockers: worst, culprits}, words} = shownViews();
  byId('blocking-chosen').textContent = words && `${words} Below the first table, of each its eight longest.`;
  byId('blocking-table').replaceChildren(table(
      [['held up by', true], ['core', true], ['messages'], ['median'], ['total'], ['mean'], ['ordinary mean']],
      by.map(one => [
        one.by, one.role, count(one.messages), one.messages ? duration(one.median_us * 1000) : '–',
        one.messages ? duration(one.total_us * 1000) : '–', duration(one.mean_us * 1000, '–'),
        duration(known(one.reference_mean_us) ? one.reference_mean_us * 1000 : null, '–')
      ]),
      'Head-of-line blocking'));
  byId('culprits-table').replaceChildren(
      culprits.length ? table(
                            [['whose', true], ['requests'], ['each'], ['messages they held up'], ['for, in all']],
                            culprits.slice(0, 10).map(one => [
                              one.who, count(one.requests), duration(one.each_us * 1000), count(one.messages),
                              duration(one.total_us * 1000)
                            ]),
                            'Whose requests held up others longest') :
                        element('p', {class: 'empty'}, 'No request held one of these up.'));
  byId('blockers-table').replaceChildren(
      worst.length ? table(
                         [['request', true], ['operation', true], ['connection'], ['messages it held up'], ['for, in all']],
                         worst.slice(0, 10).map(one => [
                           ...one.owner ? [one.owner, '–', '–'] : [
                             requestButton(one.request, String(one.request)), operationName(one.operation),
                             String(one.connection)
                           ],
                           count(one.messages), duration(one.total_us * 1000)
                         ]),
                         'The requests that held up others longest') :
                     element('p', {class: 'empty'}, 'No request of this run held one of these up.'));
}

function renderQueues() {
  const {queue, words} = shownViews();
  byId('queue-chosen').textContent = words;
  const sides = [queue, queue.map(one => ({...one, ahead: one.reference_ahead, us: one.reference_us}))];
  renderQueue(byId('queue-plot'), sides, VIEW_SIDES);
  byId('queue-table').replaceChildren(queueTable(sides, VIEW_SIDES));
}

function renderCores() {
  const {contexts, words} = shownViews();
  byId('contexts-chosen').textContent = words;
  const sides = [contexts, contexts.map(one => ({...one, share: one.reference_share}))];
  renderContexts(byId('contexts-plot'), sides, VIEW_SIDES, causeContexts);
  byId('contexts-table').replaceChildren(contextTable(sides, VIEW_SIDES));
}

const hasViews = () => Boolean(current().views);

sections.push({
  id: 'queue',
  title: 'Messages ahead',
  place: 34,
  within: 'diagnosis',
  folded: true,
  has: hasViews,
  markup: `
    <p class="hint">What a message had ahead of it from its arrival to its reply: calls of its thread for others, requests served first, hand-offs by the kernel. Ordinary ones are those around the median.</p>
    <p class="hint" id="queue-chosen"></p>
    <div class="plot wide" id="queue-plot"></div>
    <details><summary>As a table</summary><div id="queue-table"></div></details>`,
  cause: () => renderQueues(),
  draw: () => renderQueues()
});

sections.push({
  id: 'contexts',
  title: 'What the cores did',
  place: 35,
  within: 'diagnosis',
  folded: true,
  has: hasViews,
  markup: `
    <p class="hint">Shares of the messages' time on the server, from M(n) until the reply left, by core and context.</p>
    <p class="hint" id="contexts-chosen"></p>
    <div class="plot wide" id="contexts-plot"></div>
    <details><summary>As a table</summary><div id="contexts-table"></div></details>`,
  cause: () => renderCores(),
  draw: () => renderCores()
});

sections.push({
  id: 'blocking',
  title: 'Head-of-line blocking',
  place: 36,
  within: 'diagnosis',
  folded: true,
  has: hasViews,
  markup: `
    <p class="hint">Which requests the core or the thread served while a message waited: on the same connection, in the same batch (epoll return) or an earlier one, in another thread on its core, or handed over first on its receive core.</p>
    <p class="hint" id="blocking-chosen"></p>
    <div id="blocking-table"></div>
    <h3>Whose requests held up others longest</h3>
    <div id="culprits-table"></div>
    <h3>The single ones</h3>
    <div id="blockers-table"></div>`,
  cause: () => renderBlocking(),
  draw: () => renderBlocking()
});
