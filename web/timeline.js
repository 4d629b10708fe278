// The timeline of one lock: a bar for each hold, from the history that the server keeps and from
// what holdfast web has seen since it started.

import { el, age, span, process, visible } from './format.js';
import { endWord } from './history.js';

const WINDOWS_MIN = [1, 2, 5, 10, 30, 60, 180, 720, 1440, 4320, 10080, 43200, 525600];
const MOST = 40; // bars

function tickLabel(ms) {
  return ms === 0 ? 'now' : `${age(ms).replace(/ 0 (s|min|h)$/, '')} ago`;
}

// Only the largest unit: 2 min ago.
function ago(ms) {
  return `${age(ms).split(' ').slice(0, 2).join(' ')} ago`;
}

// Bars have ages: for how long it has been since they began and ended.
function fromHistory(hold, now) {
  const to = hold.ended_ms === null ? 0 : Math.max(0, now - hold.ended_ms);
  const from = hold.began_ms === null ? to + (hold.held_ms ?? 0) : Math.max(to, now - hold.began_ms);
  const most = hold.end === 'inferred' ? 'at most ' : '';
  const length = hold.began_ms === null && hold.held_ms === null ? '' : `${most}${span(from - to)}, `;
  const end = hold.end === 'held' ? 'holds it now' : `${endWord(hold.end).toLowerCase()} ${ago(to)}`;
  return { who: process(hold) || visible(hold.owner), owner: hold.owner, from, to, waited: hold.waited_ms ?? 0,
    kind: hold.end, text: length + end };
}

// A hold whose beginning was not seen lasted at least that long.
function fromSeen(hold) {
  const to = hold.to_ms ?? 0;
  const end = hold.to_ms === null ? 'holds it now' : `until ${ago(to)}`;
  return { who: process(hold) || visible(hold.owner), owner: hold.owner, from: hold.from_ms, to, waited: 0,
    kind: hold.to_ms === null ? 'held' : 'seen', text: `${hold.seen_start ? '' : 'at least '}${age(hold.from_ms - to)}, ${end}` };
}

function mark(from, to, width, kind) {
  const node = el('i', { class: kind });
  const begin = Math.min(from, width);
  node.style.left = `${100 - (begin / width) * 100}%`;
  node.style.width = `${Math.max(0.4, ((begin - Math.min(to, begin)) / width) * 100)}%`;
  return node;
}

function drawBar(bar, width) {
  const waited = bar.waited / width > 0.002 ? mark(bar.from + bar.waited, bar.from, width, 'waited') : null;
  return el('li', {}, el('span', { class: 'who' }, bar.who),
    el('span', { class: 'track', 'aria-hidden': 'true' }, waited, mark(bar.from, bar.to, width, bar.kind)),
    el('span', { class: 'length' }, bar.text));
}

// `past` is the latest answer of api/history, or null, and `now` the server's clock.
export function drawTimeline(box, answer, past, now) {
  const kept = (past?.holds ?? []).map((hold) => fromHistory(hold, now));
  const owners = new Set(kept.map((bar) => bar.owner));
  const seen = answer.timeline.filter((hold) => !owners.has(hold.owner)).map(fromSeen);
  const all = [...kept, ...seen].sort((a, b) => a.from - b.from);
  const bars = all.slice(0, MOST);
  const began = `holdfast web started ${age(answer.watched_ms)} ago`;
  if (!bars.length) {
    box.replaceChildren(el('p', { class: 'none' }, `No hold has been seen since ${began}.`));
    return;
  }
  const oldest = Math.max(...bars.map((bar) => bar.from + bar.waited), 1000);
  const width = (WINDOWS_MIN.find((min) => min * 60000 >= oldest) ?? WINDOWS_MIN.at(-1)) * 60000;
  const scale = el('div', { class: 'scale', 'aria-hidden': 'true' },
    el('div', {}, ...[1, 0.75, 0.5, 0.25, 0].map((part) => el('span', {}, tickLabel(part * width)))));
  const more = all.length > MOST ? ` The newest ${MOST} of ${all.length} holds.` : '';
  const source = kept.length ? 'From the history that the server keeps; the lighter part of a bar is the time waited.'
    : `Seen since ${began}; holds shorter than a second may be missing.`;
  box.replaceChildren(scale, el('ol', {}, ...bars.map((bar) => drawBar(bar, width))),
    el('p', { class: 'none' }, source + more));
}
