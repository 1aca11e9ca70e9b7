// SPDX-License-Identifier: MIT
//
// The verdict in words, and the key numbers. Its place is in page.html: browsers without scripts
// show it, too.

const joined = () => data.states[0].count;
// From when latency counts.
const fromWhen = () => data.counts.without_client ?
    'in the server, from a request’s arrival to its answer’s last byte' :
    'from the intended send time';

function howMuch() {
  const words =
      data.quantiles
          .map(
              (name, i) => known(data.latency.value[i]) || data.counts.answered > 0 ?
                  `${name === 'max' ? 'the slowest' : name} ${duration(data.latency.value[i])}` :
                  null)
          .filter(Boolean);
  return words.length ? `${words.join(', ')}, ${fromWhen()}.` : 'Nothing was answered.';
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

// What to do; the headline itself stands in the template.
function renderRemedy() {
  const place = byId('remedy');
  place.hidden = !data.remedy;
  place.textContent = `→ ${data.remedy}.`;
  byId('verdict-more').textContent = data.verdict;
}

function renderVerdict() {
  const losses = lossesOf(), facts = byId('verdict-facts'),
        add = (what, text, bad) =>
            facts.append(element('dt', {}, what), element('dd', {class: bad ? 'bad' : null}, text));
  if (!data.available)
    add('Verdict', 'N/A. The evidence does not carry one; what follows is what was seen.', true);
  renderRemedy();
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
    counts.without_client ?
        ['Rate', rate(measures.achieved_rate), 'of clients that are not ours'] :
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
      known(late) && !counts.without_client ? `sent late: ${duration(late)} at p99` : ''
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

sections.push({
  id: 'verdict',
  place: 0,
  start: () => {
    renderVerdict();
    renderNumbers();
  }
});
