// SPDX-License-Identifier: MIT
//
// The receive, service and send lifetimes of a slice: each may be slow for reasons of its own.

const CAUSES_OF_LIFETIME = 4;

// "yes (A) 3.1 ms on 12 messages; …"
function lifetimeCauses({causes}) {
  const words = causes.slice(0, CAUSES_OF_LIFETIME)
                    .map(
                        cause => `${causeLabel(cause)} ${duration(cause.total_ns)} on ${
                            plural(cause.messages, 'message')}`);
  const rest = causes.length - words.length;
  if (rest > 0) words.push(plural(rest, 'other cause'));
  return words.join('; ') || 'no cause found';
}

function lifetimeRow(lifetime) {
  const {from, to, reason, without_stamp: without} = lifetime;
  const lacking = without ? `; ${plural(without, 'message')} without a stamp` : '';
  const between = [lifetime.name, `${from} to ${to}${lacking}`];
  if (lifetime.not_available)
    return [...between, '–', '–', '–', '–', `N/A: ${reason || 'no reason was given'}`];
  return [
    ...between, count(lifetime.messages), duration(lifetime.slice_low_ns),
    duration(lifetime.reference_ns, '–'), percent(lifetime.coverage_total), lifetimeCauses(lifetime)
  ];
}

// How much of what a lifetime took longer each cause explains, in the causes' colours; what is only
// located, and what is unknown, has colours of its own.
function lifetimeBar({causes, extra_ns: extra}) {
  const colours = theme(), width = byId('lifetime-plot').clientWidth - 170,
        rest = extra - causes.reduce((sum, cause) => sum + (cause.total_ns || 0), 0),
        pieces = causes.map(cause => [causeLabel(cause), cause.total_ns, causeColour(colours, causeRank(cause)) + '73']);
  if (rest > 0) pieces.push(['below what can be told apart', rest, 'var(--idle)']);
  return element('div', {class: 'bar'}, ...pieces.filter(([, ns]) => ns > 0).map(([name, ns, colour]) => {
    const pixels = ns / extra * width,
          label = pixels > name.length * 7.4 + 66 ? `${name} ${duration(ns)}` : pixels > 58 ? duration(ns) : '';
    return element(
        'div', {
          class: 'piece',
          style: `flex:${ns} 1 0;background:${colour};color:var(--ink)`,
          pointermove: event => showTip(event, `${name}\n${duration(ns)}, ${percent(ns, extra)} of ${duration(extra)}`),
          pointerleave: hideTip
        },
        label);
  }));
}

function renderLifetimeBars(lifetimes) {
  byId('lifetime-plot').replaceChildren(element(
      'div', {class: 'stages', 'aria-hidden': 'true'},
      ...lifetimes.filter(one => !one.not_available && one.extra_ns > 0).flatMap(one => [
        element('div', {class: 'name'}, one.name), lifetimeBar(one),
        element('div', {class: 'total'}, '+' + duration(one.extra_ns))
      ])));
}

function renderLifetimes() {
  const {lifetimes} = current();
  renderLifetimeBars(lifetimes);
  byId('lifetime-table')
      .replaceChildren(table(
          [
            ['lifetime', true], ['between', true], ['messages'], ['from'], ['ordinary'],
            ['explained'], ['causes', true]
          ],
          lifetimes.map(lifetimeRow), 'Lifetimes on the server'));
}

sections.push({
  id: 'lifetimes',
  title: 'Each lifetime on the server',
  place: 33,
  within: 'diagnosis',
  folded: true,
  has: () => current().lifetimes.length > 0,
  markup: `
    <p class="hint">The same slice of the time until the application had the request, until it had answered, and until the answer left: the messages slowest in each, and why. A bar is all that they took longer than an ordinary one. From is the least of them, ordinary the median.</p>
    <div id="lifetime-plot"></div>
    <div id="lifetime-table"></div>`,
  draw: () => renderLifetimes()
});
