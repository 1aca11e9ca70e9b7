// SPDX-License-Identifier: MIT
//
// How it was measured: the errors of clocks and stamps, and the facts that load and capture
// recorded.

// What came before the program's own table, for "How this was measured".
function categoryFiles() {
  return data.categories.length ?
      data.categories.map(({file, patterns}) => `${file} (${plural(patterns, 'pattern')})`)
              .join(', ') +
          ', then the program’s own' :
      'the program’s own';
}

function settings(pairs) {
  return element(
      'dl', {class: 'settings'},
      ...pairs.map(
          ([what, value]) =>
              element('div', {}, element('dt', {}, what), element('dd', {}, value))));
}

function renderHow(body) {
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
    ...(data.counts.without_client ?
            [] :
            [
              ['sent late, median', duration(measures.lateness_p50_ns, '–')],
              ['sent late, p99', duration(measures.lateness_p99_ns, '–')]
            ]),
    ['timelines in this report', count(data.timelines.length)],
    ['categories of causes', categoryFiles()]
  ];
  body.append(settings(own), ...Object.entries(titles).map(([key, title]) => {
    const document = data.documents[key];
    return element(
        'details', {}, element('summary', {}, title),
        element(
            'div', {},
            document ? settings(leaves(document).map(([path, value]) => [path, microSigns(String(value))])) :
                       element('p', {class: 'hint'}, 'Not recorded in this run.')));
  }));
}

sections.push({
  id: 'how',
  title: 'How this was measured',
  place: 80,
  folded: true,
  start: body => renderHow(body)
});
