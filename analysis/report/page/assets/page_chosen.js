// SPDX-License-Identifier: MIT
//
// Queues, core contexts and head-of-line blocking of the messages that were chosen, by a piece of time or
// by a cause: counted here, message by message, as the diagnosis counted them for all (views.h). Only the
// slowest messages, `detailed` of them, are in the report one by one.

const isChosen = () => view.span !== null || view.cause !== null;

// As a diagnosis has it; values: as many as there are messages.
function spreadOf(values) {
  const sorted = Float64Array.from(values).sort(), at = q => sorted[Math.round(q * (sorted.length - 1))] ?? null;
  return {
    mean: sorted.length ? sorted.reduce((sum, value) => sum + value, 0) / sorted.length : null,
    min: at(0),
    p25: at(.25),
    median: at(.5),
    p75: at(.75),
    max: at(1)
  };
}

function chosenQueue(queue, {ahead, ahead_ns: ns}, chosen) {
  return queue.map((one, kind) => ({
                     ...one,
                     ahead: spreadOf(chosen.map(i => ahead[kind][i])),
                     us: spreadOf(chosen.map(i => ns[kind][i] / 1000))
                   }));
}

function chosenContexts(contexts, {contexts: {first, context, ns}}, chosen) {
  const sums = new Float64Array(contexts.length);
  for (const i of chosen)
    for (let j = first[i]; j < first[i + 1]; j++) sums[context[j]] += ns[j];
  const whole = sums.reduce((sum, one) => sum + one, 0) || 1;
  return contexts.map((one, i) => ({...one, share: sums[i] / whole}));
}

function chosenScopes(by, {blocked_ns: blocked}, chosen) {
  return by.map((one, scope) => {
    const held = chosen.map(i => blocked[scope][i]).filter(known), {mean, median} = spreadOf(held),
          total = (mean ?? 0) * held.length;
    return {
      ...one,
      messages: held.length,
      median_us: held.length ? median / 1000 : null,
      total_us: total / 1000,
      mean_us: chosen.length ? total / chosen.length / 1000 : null
    };
  });
}

// Of the longest blockers of each message: how many messages each key held up, and for how long.
function heldUpBy(own, chosen, keyOf) {
  const all = new Map();
  for (const i of chosen) {
    const seen = new Set();
    for (let j = own.first[i]; j < own.first[i + 1]; j++) {
      const key = keyOf(j);
      if (key === null) continue;
      const one = all.get(key) ?? {messages: 0, total_us: 0};
      one.total_us += own.ns[j] / 1000;
      one.messages += seen.has(key) ? 0 : 1;
      seen.add(key);
      all.set(key, one);
    }
  }
  return [...all].sort((a, b) => b[1].total_us - a[1].total_us);
}

function chosenBlocking(blocking, views, chosen) {
  const own = views.messages, index = new Map(current().messages.id.map((id, i) => [id, i]));
  const worst = heldUpBy(own, chosen, j => own.id[j]).map(([id, one]) => {
    if (typeof id === 'string') return {...one, owner: id};
    const at = index.get(id);
    return {...one, request: id, operation: views.operations[id], connection: current().messages.connection[at] ?? '–'};
  });
  const culprits =
      heldUpBy(own, chosen, j => own.culprit[j]).map(([at, one]) => ({...blocking.culprits[at], ...one})).filter(one => one.who);
  return {...blocking, by: chosenScopes(blocking.by, own, chosen), worst_blockers: worst, culprits};
}

// The views on show, and in words of which messages they are; of all: as they were diagnosed.
let chosenViews = {};
function shownViews() {
  const diagnosis = current(), {views} = diagnosis;
  if (!isChosen()) return {...views, words: ''};
  if (chosenViews.diagnosis === diagnosis && chosenViews.span === view.span && chosenViews.cause === view.cause)
    return chosenViews;
  const listed = listedMessages(), chosen = listed.filter(i => i < views.messages.all.length),
        cut = chosen.length < listed.length ? `, the slowest of ${count(listed.length)}` : '';
  chosenViews = {
    diagnosis,
    span: view.span,
    cause: view.cause,
    queue: chosenQueue(views.queue, views.messages, chosen),
    contexts: chosenContexts(views.contexts, views.messages, chosen),
    blocking: chosenBlocking(views.blocking, views, chosen),
    words: `Of the chosen messages: ${count(chosen.length)}${cut}.`
  };
  return chosenViews;
}
