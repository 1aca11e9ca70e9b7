// SPDX-License-Identifier: MIT
//
// The report's parts on what the slow requests share, and on when their causes came.

function renderShared() {
  byId('shared-table').replaceChildren(table(
      [['those with', true], ['of the slow'], ['of all'], ['median'], ['the others\' median'], ['times as likely slow'], ['at least']],
      data.shared.map(one => [
        one.trait, percent(one.slow_share), percent(one.share), duration(known(one.median_us) ? one.median_us * 1000 : null),
        duration(known(one.other_median_us) ? one.other_median_us * 1000 : null),
        known(one.odds_ratio) ? significant(one.odds_ratio) : 'always', significant(one.odds_low)
      ]),
      'What the slow requests share'));
}

sections.push({
  id: 'shared',
  title: 'What the slow requests share',
  place: 26,
  folded: true,
  has: () => data.shared.length > 0,
  markup: `
    <p class="lead">Operations, keys, connections, threads of the load and sizes that are far more frequent among the run's slow requests than among all, beyond chance.</p>
    <div id="shared-table"></div>`,
  draw: () => renderShared()
});

const shapedCauses = () => current().causes.filter(cause => cause.shape);

sections.push({
  id: 'shapes',
  title: 'When the causes came',
  place: 32.5,
  within: 'diagnosis',
  folded: true,
  has: () => shapedCauses().length > 0,
  markup: `<div id="shapes-table"></div>`,
  draw: () => byId('shapes-table').replaceChildren(table(
      [['cause', true], ['shape in time', true]],
      shapedCauses().map(cause => [causeLabel(cause), cause.shape]), 'When the causes came'))
});

// The servers that a request was passed on to, below the one that the load asks.
const tierCauses = () => current().causes.filter(cause => cause.tier);

function tierRows() {
  const tiers = new Map(), onServer = cause => cause.tier || cause.role === 'R' || cause.role === 'A';
  for (const cause of current().causes.filter(onServer)) {
    const tier = tiers.get(cause.tier) ?? {ns: 0, top: cause};
    tier.ns += cause.total_ns || 0;
    tiers.set(cause.tier, tier);
  }
  return [...tiers].sort(([a], [b]) => (a !== '') - (b !== '')).map(
      ([name, tier]) => [name ? `→ ${name}` : 'the server itself', duration(tier.ns), causeLabel(tier.top)]);
}

sections.push({
  id: 'tiers',
  title: 'One server behind the other',
  place: 32.6,
  within: 'diagnosis',
  folded: true,
  has: () => tierCauses().length > 0,
  markup: `
    <p class="lead">Requests were passed on to other servers: where the extra time of the slow ones was.</p>
    <div id="tiers-table"></div>`,
  draw: () => byId('tiers-table').replaceChildren(table(
      [['server', true], ['extra time'], ['most of it', true]], tierRows(), 'Where the extra time was'))
});
