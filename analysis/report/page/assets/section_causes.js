// SPDX-License-Identifier: MIT
//
// Why the slow ones were slow: the choice of a diagnosis, and the categories of its causes, which
// are the kinds of remedy they ask for. Choosing a category leaves only its causes in the plots.
// Sections with `within: 'diagnosis'` show the rest.

const inCategory = cause => view.category === null || view.category === cause.category;
const causeShown = cause =>
    inCategory(cause) && (view.cause === null || isChosenCause(cause));

// The categories of the diagnosis on show with their time, the largest first.
function categoriesOf(diagnosis) {
  const totals = new Map();
  for (const {category, total_ns: ns} of diagnosis === current() ? shownCauses() : diagnosis.causes)
    totals.set(category, (totals.get(category) ?? 0) + (ns || 0));
  return [...totals].map(([name, total]) => ({name, total})).sort((a, b) => b.total - a.total);
}

function renderCategoryControls() {
  const categories = categoriesOf(current()),
        whole = categories.reduce((sum, one) => sum + one.total, 0);
  choice(
      byId('category-controls'), 'Category',
      [
        [null, 'all'],
        ...categories.map(({name, total}) => [name, `${name} ${percent(total, whole)}`])
      ],
      view.category, key => chooseCategory(key));
}

function chooseCategory(category) {
  view.category = category;
  if (!current().causes.some(cause => causeShown(cause))) view.cause = null;
  updateSections('cause');
}

const spanWords = () => `due from ${seconds(Math.round(view.span[0]))} to ${seconds(Math.round(view.span[1]))}`;

function showAll() {
  Object.assign(view, {cause: null, category: null});
  chooseSpan(null);
}

// The choice is also written as text, since buttons are not printed.
function renderCategoryNote() {
  const note = byId('category-note'), words = [], cause = current()?.causes.find(isChosenCause);
  if (view.span) words.push(`Only messages ${spanWords()}: ${plural(shownExtra().messages, 'slow one')}.`);
  if (cause) words.push(`Only messages that were slowed because ${cause.words}.`);
  if (view.category !== null) words.push(`Only causes of the category “${view.category}” are shown.`);
  note.hidden = words.length === 0;
  note.replaceChildren(words.join(' ') + ' ', element('button', {type: 'button', click: showAll}, 'Show all'));
}

function sliceWords(diagnosis) {
  if (diagnosis.not_available) return `N/A: ${diagnosis.reason || 'no reason was given'}`;
  const left = diagnosis.left_out.reduce((sum, number, state) => state > 0 ? sum + number : sum, 0);
  const shown = diagnosis.shown < diagnosis.total ?
      ` The ${count(diagnosis.shown)} slowest are in this report.` :
      '';
  const all = diagnosis.total + diagnosis.passed_over, of = diagnosis.passed_over ?
      ` Their lives are too long to take all apart: what follows is of ${count(diagnosis.total)}, evenly chosen.` :
      '';
  const low = duration(diagnosis.slice_low_ns), high = duration(diagnosis.slice_high_ns);
  return `${plural(all, 'message')} of ${count(diagnosis.candidates)} took ${low === high ? low : `${low} to ${high}`}; an ordinary one takes ${
             duration(diagnosis.reference_latency_ns, 'an unknown time')} ` +
         `(median of ${count(diagnosis.reference_count)}${
             diagnosis.earlier
                 ? `, where ${
                       plural(diagnosis.earlier, 'message')} of before this window count as well`
                 : ''}). Differences below ${duration(diagnosis.granularity_ns, '–')} are ignored.${
             left ? ` ${plural(left, 'message')} could not be followed and ${
                        left === 1 ? 'is' : 'are'} left out.`
                  : ''}${of}${shown}`;
}

function renderDiagnosis() {
  const diagnosis = current(), has = diagnosis && diagnosis.messages.id.length > 0;
  renderWindows();
  byId('slice-lead').textContent = !diagnosis ?
      'Nothing was diagnosed: the run has no capture, or nothing to explain.' :
      has || diagnosis.not_available ? sliceWords(diagnosis) :
                                       'No message falls into this slice.';
  keepUnits(byId('slice-lead'));
  if (has) renderCategoryNote();
}

function renderWindows() {
  if (data.diagnoses.length > 1)
    choice(
        byId('windows'), 'Slice', data.diagnoses.map((diagnosis, i) => [i, diagnosis.label]),
        view.diagnosis, index => chooseDiagnosis(index));
}

sections.push({
  id: 'causes',
  title: 'Why the slow ones were slow',
  place: 5,
  markup: `
    <div class="controls" id="windows"></div>
    <p class="lead" id="slice-lead"></p>
    <p id="category-note" aria-live="polite" hidden></p>
    <div id="dock"></div>
    <div id="diagnosis"></div>`,
  diagnosis: () => renderDiagnosis(),
  cause: () => renderCategoryNote()
});
