// SPDX-License-Identifier: MIT
//
// What the sections share: what the reader is looking at, and causes: how they are named, coloured
// and ranked.

// What the reader is looking at. `message` is an index into the diagnosis's messages, or null.
const view = {
  diagnosis: 0,
  message: null,
  id: null,
  cause: null,
  category: null,
  grouped: true,
  sort: 'total',
  spread: 'order'
};
const current = () => data.diagnoses[view.diagnosis];
const causeKey = cause => cause.role + ' ' + cause.name;
const causeLabel = cause => `${cause.name} (${data.roles[cause.role]})`;

// A cause keeps its colour and shape in every window; what is only located stays grey.
const causeRanks = new Map();
for (const diagnosis of data.diagnoses)
  for (const cause of diagnosis.causes)
    if (cause.explains && !causeRanks.has(causeKey(cause)))
      causeRanks.set(causeKey(cause), causeRanks.size);
const causeRank = cause => causeRanks.get(causeKey(cause)) ?? 99;

// Messages of a diagnosis in order of time, and where each stands in it; made once, with what every
// drawing of many thousands needs: their times and their latencies' logarithms in that order.
function timeOrder(diagnosis) {
  if (!diagnosis.byTime) {
    const {at_ns: at, latency_ns: latency} = diagnosis.messages, latencies = latency.filter(known);
    diagnosis.byTime = Int32Array.from(at.keys()).sort((a, b) => at[a] - at[b]);
    diagnosis.place = new Int32Array(at.length);
    diagnosis.byTime.forEach((index, place) => {
      diagnosis.place[index] = place;
    });
    diagnosis.times = Float64Array.from(diagnosis.byTime, index => at[index]);
    diagnosis.logs = Float64Array.from(
        diagnosis.byTime, index => known(latency[index]) ? Math.log(latency[index]) : NaN);
    diagnosis.extremes = [latencies[latencies.length - 1], latencies[0]];
  }
  return diagnosis.byTime;
}

// The causes of one message, largest first.
function ownCauses(diagnosis, index) {
  const own = [];
  for (let j = diagnosis.messages.first[index]; j < diagnosis.messages.first[index + 1]; j++) {
    const cause = diagnosis.causes[diagnosis.attributions.cause[j]];
    if (cause) own.push({cause, ns: diagnosis.attributions.ns[j]});
  }
  return own.sort((a, b) => (b.ns || 0) - (a.ns || 0));
}
