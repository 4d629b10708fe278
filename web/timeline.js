// The timeline of one lock: a bar for each hold that holdfast web has seen since it started.

import { el, age, process, visible } from './format.js';

const WINDOWS_MIN = [1, 2, 5, 10, 30, 60, 180, 720, 1440, 10080];
const MOST = 40; // bars

function tickLabel(ms) {
  return ms === 0 ? 'now' : `${age(ms).replace(/ 0 (s|min|h)$/, '')} ago`;
}

function bar(hold, width) {
  const from = Math.min(hold.from_ms, width);
  const to = hold.to_ms ?? 0;
  const mark = el('i', { class: hold.to_ms === null ? 'now' : '' });
  mark.style.left = `${100 - (from / width) * 100}%`;
  mark.style.width = `${Math.max(0.4, ((from - to) / width) * 100)}%`;
  return el('span', { class: 'track', 'aria-hidden': 'true' }, mark);
}

// A hold whose beginning was not seen lasted at least that long.
function describe(hold) {
  const length = hold.from_ms - (hold.to_ms ?? 0);
  const least = hold.seen_start ? '' : 'at least ';
  const end = hold.to_ms === null ? 'holds it now' : `until ${age(hold.to_ms)} ago`;
  return `${least}${age(length)}, ${end}`;
}

export function drawTimeline(box, answer) {
  const holds = answer.timeline.slice(0, MOST);
  const oldest = Math.max(...holds.map((hold) => hold.from_ms), 1000);
  const width = (WINDOWS_MIN.find((min) => min * 60000 >= oldest) ?? 10080) * 60000;
  if (!holds.length) {
    box.replaceChildren(el('p', { class: 'none' }, `No hold was seen since holdfast web started ${age(answer.watched_ms)} ago.`));
    return;
  }
  const scale = el('div', { class: 'scale', 'aria-hidden': 'true' },
    ...[1, 0.75, 0.5, 0.25, 0].map((part) => el('span', {}, tickLabel(part * width))));
  const items = holds.map((hold) => el('li', {},
    el('span', { class: 'who' }, process(hold) || visible(hold.owner)), bar(hold, width),
    el('span', { class: 'length' }, describe(hold))));
  const more = answer.timeline.length > MOST ? el('p', { class: 'none' }, `and ${answer.timeline.length - MOST} earlier`) : null;
  box.replaceChildren(...[scale, el('ol', {}, ...items), more].filter(Boolean),
    el('p', { class: 'none' }, `Seen since holdfast web started ${age(answer.watched_ms)} ago; holds shorter than a second may be missing.`));
}
