// SPDX-License-Identifier: MIT
//
// The glossary of the page's own words.

sections.push({
  id: 'glossary',
  title: 'Glossary',
  place: 90,
  folded: true,
  start: body => body.append(element(
      'dl', {class: 'glossary'},
      ...Object.entries(TERMS).flatMap(([word, means]) => [element('dt', {}, word), element('dd', {}, means)])))
});
