// SPDX-License-Identifier: MIT
//
// What the words mean that only people who know Taillight know: a tip on each, by pointer or by
// keyboard, and the glossary.

const TERMS = {
  'R': 'the core of the server that received the message and handed it to the application’s thread',
  'A': 'the core of the server on which the application’s thread ran',
  'M(n)': 'when the message’s last byte came in at the server: by its network card, else by its kernel',
  'M(h)': 'when the server’s kernel handed that byte over: from then on the application could read it',
  'M(a)': 'when the application had read it',
  'server TX': 'when the reply’s last byte was given to the server’s network device',
  'ordinary': 'the messages around the median, with which the slow ones are compared',
  'extra time': 'how much longer than an ordinary message one took',
  'coverage': 'the share of the extra time that the causes explain',
  'located': 'where the time was lost is known, but not why: it does not count as explained',
  'joined': 'every moment of a request’s life is known, from the client to the server and back',
  'intended': 'when a request was to be sent by the schedule: latency counts from there, so that waiting at the client is not hidden',
  'head-of-line blocking': 'a message waits because the server works on others first',
  'softirq': 'work that the kernel puts off until just after an interrupt, such as receiving packets',
};

const TERM = /M\([nha]\)|server TX|\bcoverage\b|\bjoined\b|\bhead-of-line blocking\b|\bsoftirq\b/i;

function term(text, key = text) {
  const means = TERMS[key];
  return element('abbr', {
    tabindex: 0,
    'aria-label': `${text}: ${means}`,
    pointerenter: event => showTip(event, `${key}: ${means}`),
    pointerleave: hideTip,
    focus: event => showTip(cornerOf(event.target), `${key}: ${means}`),
    blur: hideTip
  }, text);
}
const cornerOf = node => {
  const box = node.getBoundingClientRect();
  return {clientX: box.left, clientY: box.bottom - 12};
};

// In text of the page's own, not of the run's: each term's first place in an element.
function explainTerms(root) {
  for (const bold of root.querySelectorAll('b'))
    if (TERMS[bold.textContent]) bold.replaceChildren(term(bold.textContent));
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT), texts = [];
  while (walker.nextNode())
    if (!walker.currentNode.parentElement.closest('abbr, summary, button')) texts.push(walker.currentNode);
  for (const text of texts) {
    const found = TERM.exec(text.data);
    if (!found) continue;
    const rest = text.splitText(found.index);
    rest.data = rest.data.slice(found[0].length);
    const key = Object.keys(TERMS).find(one => one.toLowerCase() === found[0].toLowerCase());
    text.after(term(found[0], key));
  }
}
