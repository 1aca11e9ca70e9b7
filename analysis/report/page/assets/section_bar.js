// SPDX-License-Identifier: MIT
//
// The bar of causes above the fold: how the extra time of the slow messages is shared out, and each
// part in plain words. A click on one shows its messages.

const BAR_PARTS = 6, BAR_WORDS = 5;

// What is told in the same words is one part, which is named by their category (run_causes_by_words).
function byWords(causes) {
  const all = new Map();
  for (const {key, causes: [cause], ns} of causes) {
    const one = all.get(cause.words);
    all.set(
        cause.words,
        one ? {...one, key: cause.words, name: cause.category + (cause.of_client ? ' (client)' : ''), ns: one.ns + ns} :
              {key, name: causeName(cause), cause, ns});
  }
  return [...all.values()].sort((a, b) => b.ns - a.ns);
}

// {key, name, cause or words, ns}; without a key there is nothing to choose.
function barParts(diagnosis) {
  const all = byWords(readersCauses(diagnosis, shownCauses())), named = all.slice(0, BAR_PARTS), rest = all.slice(BAR_PARTS);
  const sum = list => list.reduce((total, one) => total + one.ns, 0),
        whole = shownExtra().ns, unknown = whole - sum(all);
  const parts = [...named];
  if (rest.length)
    parts.push({name: plural(rest.length, 'smaller cause'), words: plural(rest.length, 'smaller cause'), ns: sum(rest)});
  if (unknown > 0.005 * whole)
    parts.push({name: 'not known', words: 'nobody knows where it went', ns: unknown, unknown: true});
  return parts.filter(part => part.ns > 0);
}

function barTip({cause, name, words, ns}, whole) {
  const remedy = cause?.remedy ? `\n→ ${cause.remedy}` : '';
  return `${name}: ${duration(ns)}, ${percent(ns, whole)}\n${cause?.words ?? words}${remedy}`;
}

// Of a part: how it is drawn, and what it does.
function barLook({key, cause, unknown}) {
  const colour = causeColour(theme(), cause ? causeRank(cause) : 99);
  return {
    style: unknown ? '' : `background:color-mix(in srgb, ${colour} 62%, var(--paper));border-color:${colour}`,
    class: unknown ? 'part unknown' : 'part',
    pressed: key ? String(view.cause === key) : null
  };
}

const barShare = (part, whole) => `${wholePercent(part.ns, whole)} %`;

function barPiece(part, whole, width) {
  const look = barLook(part), share = barShare(part, whole),
        pixels = part.ns / whole * width, label = `${part.name} ${share}`;
  return element(
      part.key ? 'button' : 'span', {
        class: look.class,
        style: `flex:${part.ns / whole} 1 0;${look.style}`,
        type: part.key ? 'button' : null,
        'aria-pressed': look.pressed,
        'aria-label': `${label}: ${part.cause?.words ?? part.words}`,
        click: part.key ? () => chooseCause(part.key, true) : null,
        pointermove: event => showTip(event, barTip(part, whole)),
        pointerleave: hideTip
      },
      pixels > label.length * 7.2 + 12 ? label : pixels > 38 ? share : '');
}

function barWords(part, whole) {
  const look = barLook(part);
  return element(
      'li', {},
      element(
          'button', {
            type: 'button',
            class: 'words',
            'aria-pressed': look.pressed,
            disabled: !part.key,
            click: () => chooseCause(part.key, true),
            pointermove: event => showTip(event, barTip(part, whole)),
            pointerleave: hideTip
          },
          part.unknown ? element('span', {class: 'swatch unknown'}) : swatch(part.cause ? causeRank(part.cause) : 99),
          element('b', {}, barShare(part, whole)), element('span', {}, part.cause?.words ?? part.words)));
}

function renderBar() {
  const place = byId('cause-bar'), diagnosis = current(), extra = diagnosis ? shownExtra() : {ns: 0}, whole = extra.ns,
        parts = diagnosis && whole > 0 ? barParts(diagnosis) : [];
  place.hidden = parts.length === 0 || diagnosis.not_available;
  if (place.hidden) return;
  place.replaceChildren(
      element(
          'p', {class: 'hint'},
          `Where the extra time of the ${plural(extra.messages, 'slow message')}${
              diagnosis.passed_over && !view.span ? `, evenly chosen of ${count(diagnosis.total + diagnosis.passed_over)},` : ''} went${
              view.diagnosis ? ` (${diagnosis.label})` : ''}${view.span ? `, ${spanWords()}` : ''}. Choose a cause to see its messages.`),
      element('div', {class: 'bar'}, ...parts.map(part => barPiece(part, whole, place.clientWidth))),
      element('ul', {class: 'bar-words'}, ...parts.slice(0, BAR_WORDS).map(part => barWords(part, whole))));
}

sections.push({
  id: 'cause-bar',
  place: 1,
  start: () => arrowsBetween(byId('cause-bar'), 'button:not(:disabled)'),
  diagnosis: () => renderBar(),
  cause: () => renderBar(),
  draw: () => renderBar()
});
