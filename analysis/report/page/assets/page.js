// SPDX-License-Identifier: MIT
//
// Runs the sections of a run's page: which diagnosis and which message they show, and the address
// (#message=ID, #window=N) that remembers it.

function setMessage(id) {
  const index = current() ? current().messages.id.indexOf(id) : -1;
  Object.assign(view, {id, message: index < 0 ? null : index});
}

// In the address, after what the reader waits for: the browser tells its other processes of a change.
let remembering = false;
function rememberMessage() {
  if (remembering) return;
  remembering = true;
  setTimeout(() => {
    remembering = false;
    history.replaceState(null, '', `#message=${view.id}`);
  });
}

// Where none of a diagnosis was explained, an ordinary one.
const firstMessage = index => data.diagnoses[index]?.messages.id[0] ?? data.timelines.find(one => one.reference)?.id ?? null;

function chooseDiagnosis(index, id = firstMessage(index)) {
  Object.assign(view, {diagnosis: index, cause: null, category: null, span: null});
  setMessage(id);
  // The sections of the diagnosis stand in its element; without a message only those that need none.
  byId('diagnosis').hidden = !current()?.messages.id.length && !current()?.ordinary?.length;
  updateSections('diagnosis');
}

// What is chosen has changed, and with it which messages are listed; index: the one to show then, if any.
function showListed(index) {
  if (index === undefined) {
    updateSections('cause');
    return;
  }
  setMessage(current().messages.id[index]);
  updateSections('cause', 'message');
  rememberMessage();
}

// Only its messages then, and of these the one that it slowed most; once more: all again.
function chooseCause(key, scroll) {
  view.cause = view.cause === key ? null : key;
  if (view.cause !== null) view.category = null;
  showListed(view.cause === null ? undefined : listedMessages()[0]);
  if (scroll && view.cause !== null) byId('causes').scrollIntoView({block: 'start'});
}

// Only the messages of that piece of time then, in every view that is of messages; null: all.
function chooseSpan(span) {
  if (!current()) return;
  view.span = span;
  const listed = listedMessages();
  showListed(listed.includes(view.message) ? undefined : listed[0]);
}

// Where a message stands: in the diagnosis that is shown, else in another one.
function chooseMessage(id, scroll) {
  const has = diagnosis => diagnosis?.messages.id.includes(id),
        other = id === null || has(current()) ? -1 : data.diagnoses.findIndex(has);
  if (other >= 0) {
    chooseDiagnosis(other, id);
  } else {
    setMessage(id);
    updateSections('message');
  }
  if (id !== null) rememberMessage();
  if (scroll && byId('message').getBoundingClientRect().top > innerHeight - 160)
    byId('message').scrollIntoView({behavior: 'smooth', block: 'start'});
}

function chooseFromAddress() {
  const message = /[#&]message=(\d+)/.exec(location.hash),
        window = /[#&]window=(\d+)/.exec(location.hash);
  if (window && data.diagnoses[Number(window[1])]) chooseDiagnosis(Number(window[1]));
  if (message) chooseMessage(Number(message[1]));
  return Boolean(message);
}

const redraw = () => updateSections('draw');

function printing(on) {
  document.documentElement.classList.toggle('printing', on);
  if (on) unfoldAll();
  redraw();
  drawUndrawn();
}

function start() {
  addSections();
  explainTerms(byId('numbers'));
  chooseDiagnosis(0);
  chooseFromAddress();
  drawStanding();
  byId('footer').textContent = `Taillight ${data.version} · ${data.run}`;
  let pending = 0;
  addEventListener('resize', () => {
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(redraw);
  });
  addEventListener('hashchange', chooseFromAddress);
  addEventListener('beforeprint', () => printing(true));
  addEventListener('afterprint', () => printing(false));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  whenDrawn(() => {
    document.documentElement.dataset.ready = 'yes';
  });
}

start();
