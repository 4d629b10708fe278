// The table of all locks. Only the rows on the screen exist, so 10 000 locks scroll as well as ten.

import { el, setText, span, heldFor, age, visible, process, plural, STATES } from './format.js';
import { store, view } from './store.js';

const COLUMNS = [
  ['name', 'Name'], ['state', 'State'], ['held', 'Held'], ['ttl', 'Expires in'],
  ['waiting', 'Waiting'], ['holder', 'Holder'], ['kind', 'Kind'],
];
const SORTED = new Set(['name', 'held', 'ttl', 'waiting', 'kind']);
const SPARE = 6; // rows before and after those on the screen

const grid = document.getElementById('grid');
const head = document.getElementById('head');
const rows = document.getElementById('rows');
const filter = document.getElementById('filter');

let order = 'attention';
let reverse = false;
let shown = []; // all locks that the filter lets through
let chosen = null; // the id of the chosen lock
let pool = []; // the rows that exist
let open = () => {};

function makeHead() {
  head.append(...COLUMNS.map(([key, title]) => {
    const cell = el('div', { role: 'columnheader', class: `c-${key}` });
    if (SORTED.has(key)) cell.append(el('button', { type: 'button', onclick: () => sortBy(key) }, title));
    else cell.append(title);
    return cell;
  }));
}

// The first click sorts, the second reverses the order, the third restores the usual order.
function sortBy(key) {
  if (order !== key) [order, reverse] = [key, false];
  else if (!reverse) reverse = true;
  else [order, reverse] = ['attention', false];
  COLUMNS.forEach(([name], i) => {
    if (name === order) head.children[i].setAttribute('aria-sort', reverse ? 'descending' : 'ascending');
    else head.children[i].removeAttribute('aria-sort');
  });
  refresh();
}

function makeRow() {
  const row = el('div', { role: 'row', class: 'row' });
  row.parts = {};
  for (const [key] of COLUMNS) {
    const cell = el('div', { role: 'gridcell', class: `c-${key}` });
    row.parts[key] = cell;
    row.append(cell);
  }
  row.parts.bar = el('i');
  row.parts.time = el('span');
  row.parts.ttl.append(row.parts.time, el('span', { class: 'bar', 'aria-hidden': 'true' }, row.parts.bar));
  row.parts.chip = el('span', { class: 'chip' });
  row.parts.state.append(row.parts.chip);
  row.addEventListener('click', () => {
    choose(row.lock.id);
    open(row.lock);
  });
  return row;
}

function fillRow(row, lock, index) {
  const [word, tone] = STATES[lock.state] ?? [lock.state, 'calm'];
  const { parts } = row;
  row.lock = lock;
  row.id = `row-${index}`;
  row.setAttribute('aria-rowindex', index + 2);
  row.setAttribute('aria-selected', lock.id === chosen);
  row.style.transform = `translateY(${index * height}px)`;
  setText(parts.name, visible(lock.name));
  parts.name.title = visible(lock.name);
  setText(parts.kind, lock.kind);
  setText(parts.chip, word);
  parts.chip.className = `chip ${tone}`;
  setText(parts.waiting, lock.waiting === null ? '–' : String(lock.waiting));
  parts.waiting.classList.toggle('some', lock.waiting > 0);
  const more = lock.holders > 1 ? ` and ${lock.holders - 1} more` : '';
  setText(parts.holder, process(lock) + more || '–');
  parts.holder.title = parts.holder.textContent;
  tickRow(row);
}

const STALE_MS = 3000;

// A lock that has not been asked for lately may have been renewed since then.
function timeLeft(lock, left, now) {
  if (lock.state === 'free') return 'free';
  if (left === null) return 'never';
  return left === 0 && now - lock.seenAt > STALE_MS ? `seen ${age(now - lock.seenAt)} ago` : span(left);
}

function tickRow(row) {
  const { lock, parts } = row;
  const now = performance.now();
  const left = lock.expiresAt === null ? null : Math.max(0, lock.expiresAt - now);
  setText(parts.held, heldFor(lock, now));
  setText(parts.time, timeLeft(lock, left, now));
  const part = left === null ? (lock.state === 'free' ? 0 : 1) : lock.full ? left / lock.full : 0;
  parts.bar.style.transform = `scaleX(${Math.min(1, part).toFixed(3)})`;
  parts.bar.className = lock.state === 'at_risk' ? 'risk' : left !== null && part < 1 / 3 ? 'low' : '';
}

// The height of a row in pixels, which depends on the width of the window.
let height = 44;

function measure() {
  const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
  height = parseFloat(getComputedStyle(rows).getPropertyValue('--row')) * rem || 44;
  rows.style.height = `${shown.length * height}px`;
}

// Shows the rows between the upper and the lower edge of the window.
export function draw() {
  if (grid.offsetParent === null) return;
  const above = -rows.getBoundingClientRect().top;
  const first = Math.max(0, Math.floor(above / height) - SPARE);
  const last = Math.min(shown.length, Math.ceil((above + innerHeight) / height) + SPARE);
  while (pool.length < last - first) {
    const row = makeRow();
    pool.push(row);
    rows.append(row);
  }
  pool.forEach((row, i) => {
    row.hidden = first + i >= last;
    if (!row.hidden) fillRow(row, shown[first + i], first + i);
    else row.removeAttribute('id');
  });
  pointAtChosen();
}

function pointAtChosen() {
  const row = pool.find((one) => !one.hidden && one.lock.id === chosen);
  if (row) grid.setAttribute('aria-activedescendant', row.id);
  else grid.removeAttribute('aria-activedescendant');
}

export function tick() {
  for (const row of pool) if (!row.hidden) tickRow(row);
}

// The locks on the screen without news for a while, for which the page asks.
export function staleIds() {
  const now = performance.now();
  const found = grid.offsetParent === null ? [] : pool.filter((row) => !row.hidden && now - row.lock.seenAt > STALE_MS);
  let room = 6000; // a request must not be longer than 8 KiB
  return found.map((row) => row.lock.id).filter((id) => (room -= id.length + 4) > 0);
}

// Called after each change of the locks, the filter or the order.
export function refresh() {
  shown = view(filter.value, order, reverse);
  grid.setAttribute('aria-rowcount', shown.length + 1);
  const all = store.locks.size;
  setText(document.getElementById('count'),
    shown.length === all ? plural(all, 'lock', 'locks') : `${shown.length.toLocaleString('en')} of ${plural(all, 'lock', 'locks')}`);
  const empty = document.getElementById('empty');
  empty.hidden = shown.length > 0 || !store.status;
  setText(empty, all ? 'No lock matches the filter.' : 'No locks are held. A lock appears here as soon as somebody takes it.');
  measure();
  draw();
}

function choose(id) {
  chosen = id;
  draw();
}

function moveTo(index) {
  if (!shown.length) return;
  index = Math.max(0, Math.min(shown.length - 1, index));
  chosen = shown[index].id;
  const top = rows.getBoundingClientRect().top + scrollY + index * height;
  const cover = getComputedStyle(head).position === 'sticky' ? head.offsetHeight + 8 : 8;
  if (top - cover < scrollY) scrollTo(0, top - cover);
  else if (top + height + 8 > scrollY + innerHeight) scrollTo(0, top + height + 8 - innerHeight);
  draw();
}

function onKey(event) {
  const at = shown.findIndex((lock) => lock.id === chosen);
  const page = Math.max(1, Math.floor(innerHeight / height) - 3);
  const steps = {
    ArrowDown: at + 1, ArrowUp: at < 0 ? 0 : at - 1, PageDown: at + page, PageUp: at - page,
    Home: 0, End: shown.length - 1,
  };
  if (event.ctrlKey || event.altKey || event.metaKey || event.target !== grid) return;
  if (event.key in steps) moveTo(steps[event.key]);
  else if (event.key === 'Enter' && at >= 0) open(shown[at]);
  else return;
  event.preventDefault();
}

export function startTable(onOpen) {
  open = onOpen;
  makeHead();
  grid.addEventListener('keydown', onKey);
  grid.addEventListener('focus', () => { if (chosen === null && shown.length) choose(shown[0].id); });
  filter.addEventListener('input', refresh);
  filter.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown' || event.key === 'Enter') {
      event.preventDefault();
      grid.focus({ preventScroll: true });
      moveTo(0);
    }
  });
  addEventListener('scroll', draw, { passive: true });
  addEventListener('resize', () => { measure(); draw(); });
}
