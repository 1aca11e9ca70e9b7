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

function renderLifetimes() {
  const {lifetimes} = current();
  byId('lifetimes').hidden = !lifetimes.length;
  byId('lifetime-table')
      .replaceChildren(table(
          [
            ['lifetime', true], ['between', true], ['messages'], ['from'], ['ordinary'],
            ['explained'], ['causes', true]
          ],
          lifetimes.map(lifetimeRow), 'Lifetimes on the server'));
}
