// The holds of one lock as a list, from the history that the server keeps.

import { el, setText, span, process, visible } from './format.js';

const MOST = 100; // rows

// Words that are not here are shown as they are: the server may be newer than this page.
const ENDS = {
  held: ['Holds it', 'good'],
  released: ['Released', 'calm'],
  moved: ['Handed over', 'calm'],
  lost: ['Lost', 'bad'],
  forced: ['Taken away', 'warn'],
  inferred: ['Inferred', 'warn'],
  timeout: ['Timed out', 'warn'],
  cancelled: ['Gave up', 'calm'],
};
const INFERRED = 'Nobody recorded how this hold ended: it expired, or a program that keeps no history ended it. It had ended by this time.';

export function endWord(end) {
  return ENDS[end]?.[0] ?? visible(end);
}

const two = (n) => String(n).padStart(2, '0');
const dayOf = (time) => `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;

// Local time, with the day if that is not today.
function clock(ms, now) {
  if (ms === null) return '–';
  const time = new Date(ms);
  const text = `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
  return dayOf(time) === dayOf(new Date(now)) ? text : `${dayOf(time)} ${text}`;
}

function how(hold) {
  const by = hold.forced_by_host ? visible(` by ${hold.forced_by_host} ${hold.forced_by_pid ?? ''}`) : '';
  return el('span', {}, el('span', { class: `chip ${ENDS[hold.end]?.[1] ?? 'calm'}`, title: hold.end === 'inferred' ? INFERRED : null },
    endWord(hold.end)), by);
}

function row(hold, now) {
  const most = hold.end === 'inferred' ? '≤ ' : '';
  const held = hold.end === 'held' && hold.began_ms !== null ? Math.max(0, now - hold.began_ms) : hold.held_ms;
  const cells = [['Began', clock(hold.began_ms, now)], ['Ended', hold.ended_ms === null ? '–' : most + clock(hold.ended_ms, now)],
    ['How', how(hold)], ['Waited', span(hold.waited_ms)], ['Held', held === null ? '–' : most + span(held)],
    ['Holder', process(hold) || visible(hold.owner)]];
  return el('tr', {}, ...cells.map(([name, content]) => el('td', { 'data-name': name }, content)));
}

export function buildPast() {
  const body = el('tbody');
  const note = el('p', { class: 'none', hidden: true });
  const card = el('div', { class: 'card past', hidden: true }, el('h2', {}, 'History'),
    el('table', {}, el('thead', {}, el('tr', {}, ...['Began', 'Ended', 'How', 'Waited', 'Held', 'Holder']
      .map((name) => el('th', { scope: 'col' }, name)))), body));
  return { body, note, card };
}

// What it would take to have a history, in one line, or why there is none.
function noteOf(past) {
  if (past.error) return `History: ${visible(past.error)}`;
  const left = past.left_out + Math.max(0, past.holds.length - MOST);
  if (past.holds.length) return left ? `${left.toLocaleString('en')} earlier holds are not shown; holdfast history lists all.` : '';
  return 'The server keeps no history of this lock. Clients keep one if their URL says history=yes.';
}

export function drawPast({ body, note, card }, past, now) {
  const text = noteOf(past);
  card.hidden = !past.holds.length;
  body.replaceChildren(...past.holds.slice(0, MOST).map((hold) => row(hold, now)));
  note.hidden = !text;
  setText(note, text);
}
