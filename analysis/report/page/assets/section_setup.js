// SPDX-License-Identifier: MIT
//
// What the run set up besides the server: settings with their old and new values, those that could
// not be changed and why, and the load that neighbours got.

function tunedTable(tuned) {
  if (!tuned.length) return element('p', {class: 'hint'}, 'Nothing was tuned.');
  // What was not applied first: it is what a reader must know.
  const order = [...tuned].sort((a, b) => Number(a.applied) - Number(b.applied));
  return table(
      [['host', true], ['setting', true], ['where', true], ['was', true], ['set to', true], ['applied', true]],
      order.map(one => [
        one.host, one.setting, one.path, one.old ?? '–', one.value,
        one.applied ? 'yes, and undone afterwards' : `no: ${one.reason}`
      ]),
      'Tuning');
}

function neighbourTable(loads) {
  if (!loads.length) return element('p', {class: 'hint'}, 'No neighbour had a load of its own.');
  return table(
      [['neighbour', true], ['asked for'], ['answered'], ['p50'], ['p99']],
      loads.map(one => [
        one.name, `${count(one.rate)}/s`,
        known(one.achieved_rate) ? `${count(Math.round(one.achieved_rate))}/s` : '–',
        duration(known(one.p50_us) ? one.p50_us * 1000 : null, '–'),
        duration(known(one.p99_us) ? one.p99_us * 1000 : null, '–')
      ]),
      'Loads of the neighbours');
}

// The loads beside the one that this page is about; each has a page of its own.
function loadTable(loads) {
  const at = (one, name) => duration(known(one.latency_us?.[name]) ? one.latency_us[name] * 1000 : null, '–');
  return table(
      [['load', true], ['offered'], ['answered'], ['p50'], ['p99'], ['max']],
      loads.map(one => [
        element('a', {href: one.page}, one.name), known(one.offered_rate) ? `${count(Math.round(one.offered_rate))}/s` : '–',
        known(one.achieved_rate) ? `${count(Math.round(one.achieved_rate))}/s` : '–', at(one, 'p50'), at(one, 'p99'),
        at(one, 'max')
      ]),
      'Loads beside this one');
}

const setUp = () => {
  const {tuned = [], neighbour_loads: loads = []} = data.documents.experiment ?? {};
  return {tuned, loads};
};

sections.push({
  id: 'setup',
  title: 'What was set up',
  place: 70,
  folded: true,
  has: () => setUp().tuned.length + setUp().loads.length + data.other_loads.length > 0,
  start: body => body.append(
      ...data.other_loads.length ?
          [element('h3', {}, 'Loads beside this one'), element('div', {id: 'load-table'}, loadTable(data.other_loads))] :
          [],
      element('div', {id: 'tuned-table'}, tunedTable(setUp().tuned)),
      element('h3', {}, 'Loads of the neighbours'),
      element('div', {id: 'neighbour-table'}, neighbourTable(setUp().loads)))
});
