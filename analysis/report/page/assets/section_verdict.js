// SPDX-License-Identifier: MIT
//
// The findings in plain words, the numbers that most come for, and behind a fold the evidence. Its
// place is in page.html: browsers without scripts show the words, too.

const joined = () => data.states[0].count;
// From when latency counts.
const fromWhen = () => data.counts.without_client ?
    'in the server, from a request’s arrival to its answer’s last byte' :
    'from the intended send time';

// Percentile number `i`; one that too few requests reach is not one that was never answered.
const percentileWords = (series, i, missing = 'never') =>
    series.few[i] ? 'too few requests' : duration(series.value[i], missing);
// And its 95 % interval. Where requests without an answer reach it, it has no end, or no begin
// either.
const intervalWords = (series, i) =>
    !series.known[i]       ? 'too few for an interval'
    : known(series.low[i]) ? `${duration(series.low[i])} to ${duration(series.high[i])}`
                           : 'too many were never answered';

function howMuch() {
  const words =
      data.quantiles
          .map(
              (name, i) => known(data.latency.value[i]) || (data.counts.answered > 0 && !data.latency.few[i]) ?
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
  else if (data.latency.known[i])
      words.push(`p99 (95 %): ${intervalWords(data.latency, i)}`);
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

function renderVerdict() {
  const losses = lossesOf(), facts = byId('verdict-facts'),
        add = (what, text, bad) =>
            facts.append(element('dt', {}, what), element('dd', {class: bad ? 'bad' : null}, text));
  if (!data.available)
    add('Verdict', 'N/A. The evidence does not carry one; what follows is what was seen.', true);
  byId('remedy').hidden = !data.remedy;  // which stands in the template, as the findings do
  byId('verdict-more').textContent = data.verdict;
  for (const text of warnings()) add('Beware', text, true);
  add('How much', howMuch());
  add('How sure', howSure());
  add('What was lost',
      losses.length ? losses.join(', ') + '.' :
                      'Nothing: every request was answered, every record arrived.',
      losses.length > 0);
  byId('folder').textContent = data.run === data.name ? '' : data.run;
}

// Whether the evidence carries what is said above, in a line.
function judgement() {
  const losses = lossesOf(), warned = warnings(), followed = joined() / data.counts.scheduled;
  if (!data.available) return ['not enough for a verdict.', true];
  if (data.lede.startsWith('Inconclusive')) return ['in doubt: see the first sentence above.', true];
  if (losses.length || warned.length)
    return [
      'holds, with gaps: ' +
          [
            losses.length ? losses[0] + (losses.length > 1 ? ` and ${plural(losses.length - 1, 'other loss', 'other losses')}` : '') : '',
            warned.length ? plural(warned.length, 'warning') : ''
          ].filter(Boolean).join(', ') + '.',
      true
    ];
  return [
    followed === 1 ? 'complete: every request was answered and followed, no record was lost.' :
                     `complete: no record was lost; ${percent(followed)} of requests could be followed.`,
    false
  ];
}

function renderJudgement() {
  const [text, bad] = judgement();
  byId('judgement').textContent = text;
  byId('judgement').className = bad ? 'bad' : '';
}

// Of the requests without an answer.
const notAnswered = ({scheduled, answered}) =>
    !scheduled ? 'there were none' : answered < scheduled ? `${count(scheduled - answered)} not` : 'every one';
// And how many a second the others were, which is told with all requests else.
const answeredRate = ({counts, measures}) =>
    known(measures.offered_rate) && counts.answered < counts.scheduled ? `, ${count(measures.achieved_rate)} a second were` : '';

// The numbers that most come for.
function renderHeadline() {
  const {measures, counts, latency} = data, index = name => data.quantiles.indexOf(name);
  const between = name => intervalWords(latency, index(name));
  const shown = name => counts.answered ? percentileWords(latency, index(name)) : '–';
  const cells = [
    ['Half of the requests within', shown('p50'), 'p50'], ['99 in 100 within', shown('p99'), `p99, 95 %: ${between('p99')}`],
    ['999 in 1,000 within', shown('p99.9'), `p99.9, 95 %: ${between('p99.9')}`],
    ['Requests', count(counts.scheduled), `${count(measures.offered_rate ?? measures.achieved_rate)} a second for ${duration(measures.duration_ns, '–')}`],
    [
      'Answered', percent(counts.answered, counts.scheduled), notAnswered(counts) + answeredRate(data), counts.answered < counts.scheduled
    ]
  ];
  byId('headline').replaceChildren(...cells.map(
      ([what, number, note, bad]) => element(
          'div', {}, element('dt', {}, what), element('dd', {class: bad ? 'bad' : null}, number),
          element('dd', {class: 'note'}, note))));
}

function toldApart() {
  const {framed_requests: framed, scheduled} = data.counts;
  return !framed ? 'by turns' : framed === scheduled ? 'by framing' : `by framing (${count(framed)}) and by turns`;
}

function renderNumbers() {
  const {measures, counts} = data, first = data.diagnoses[0], late = measures.lateness_p99_ns,
                   dropped = counts.dropped_events + counts.dropped_calls + counts.dropped_samples;
  const rate = value => known(value) ? count(value) + ' /s' : '–';
  const cells = [
    counts.without_client ?
        ['Rate', rate(measures.achieved_rate), `of clients that are not ours, told apart ${toldApart()}`] :
        ['Offered', rate(measures.offered_rate), `achieved ${rate(measures.achieved_rate)}`],
    ['Requests', count(counts.scheduled), `in ${duration(measures.duration_ns, '–')}`],
    [
      'Answered', percent(counts.answered, counts.scheduled), notAnswered(counts),
      counts.answered < counts.scheduled
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
    renderJudgement();
    renderHeadline();
    renderNumbers();
    keepUnits(byId('verdict'));
  }
});
