// SPDX-License-Identifier: MIT
//
// The table of the slowest messages, or of those that the chosen cause slowed.

const ROWS_FIRST = 16;  // more than the table shows without scrolling
let rowsShown = ROWS_FIRST;

function messageRow(diagnosis, index) {
  const {messages} = diagnosis, own = ownCauses(diagnosis, index), extra = messages.deviation_ns[index],
        detail = index < diagnosis.detailed, id = messages.id[index];
  const text = (content, words) => element('td', {class: words ? (words === true ? 'text' : `text ${words}`) : 'nowrap'}, content);
  return element(
      'tr', {
        tabindex: index === (view.message ?? 0) ? 0 : -1,
        'aria-selected': String(index === view.message),
        'data-index': index,
        click: () => chooseMessage(id)
      },
      text(String(index + 1)), text(timelines.has(id) ? '●' : ''), text(String(id)), text(seconds(messages.at_ns[index])),
      text(duration(messages.latency_ns[index])),
      text(
          own.slice(0, 3).map(({cause, ns}) => `${causeLabel(cause)} ${duration(ns)}`).join(', ') ||
              (known(extra) ? 'none found' : 'why is not known'),
          'causes'),
      text(known(extra) ? '+' + duration(extra) : '–'),
      text(percent(messages.explained_ns[index], extra)),
      text(detail ? operationName(messages.operation[index]) : '', true),
      text(detail ? String(messages.connection[index]) : ''),
      text(
          detail ? `${messages.receive_core[index] ?? '?'} → ${
                       messages.application_core[index] ?? '?'}` :
                   ''));
}

function renderMessageTable() {
  const place = byId('message-table'), diagnosis = current(), listed = listedMessages(),
        shown = Math.min(rowsShown, listed.length), columns = [
    ['', 0], ['', 0], ['message', 0], ['at', 0], ['latency', 0], ['largest causes', 1],
    ['extra', 0], ['explained', 0], ['operation', 1], ['conn.', 0], ['R → A core', 0]
  ];
  const body = element(
      'tbody', {keydown: rowKeys},
      ...listed.slice(0, shown).map(index => messageRow(diagnosis, index)));
  body.querySelectorAll('td.causes').forEach(keepUnits);
  const more = listed.length > shown ? element(
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
              'span', {class: 'label'},
              `${count(shown)} of ${
                  plural(view.cause === null && view.span === null ? diagnosis.total : listed.length, 'message')}${
                  view.cause === null ? '' : ' that this slowed'}${view.span ? `, ${spanWords()}` : ''}; ● has its timeline on this page`),
          more));
}

function rowKeys(event) {
  const row = event.target.closest('tr'), next = {
    ArrowDown: row?.nextElementSibling,
    ArrowUp: row?.previousElementSibling
  }[event.key];
  if (event.key === 'Enter' && row) {
    chooseMessage(current().messages.id[Number(row.dataset.index)]);
    byId('message').scrollIntoView({behavior: 'smooth', block: 'nearest'});
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

sections.push({
  id: 'messages',
  title: 'The slowest messages',
  place: 8,
  within: 'dock',
  has: () => Boolean(current()?.messages.id.length),
  markup: '<div id="message-table"></div>',
  diagnosis: () => {
    rowsShown = ROWS_FIRST;
    renderMessageTable();
  },
  cause: () => renderMessageTable(),
  message: () => markRow()
});
