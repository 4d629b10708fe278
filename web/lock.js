// The page of one lock: holders, waiters, a timeline, and taking it away if that is allowed.

import { el, setText, span, heldFor, age, visible, process, plural, STATES } from './format.js';
import { ask, send } from './api.js';
import { store } from './store.js';
import { drawTimeline } from './timeline.js';
import { buildPast, drawPast } from './history.js';

const section = document.getElementById('lock');
const dialog = document.getElementById('dialog');
const POLL_MS = 1000;
const PAST_MS = 5000; // until the history is requested again
const CHANGED_MS = 2500; // after a change it is requested with each poll, for this long

const HOLDERS = ['Host', 'Process', 'Command', 'Held for', 'Levels', 'Owner'];
const WAITERS = ['Place', 'Host', 'Process', 'Command', 'Waiting for', 'Owner'];

let id = null; // of the lock that is shown, or null
let timer = 0;
let lock = null; // the last answer about it, or null if it is free
let parts = {};
let past = null; // the last answer about its history; null: none yet
let pastFor = ''; // the holders of the lock, and since when these have been its holders
let changedAt = 0;
let pastAsked = 0;
let pastBusy = false;

function fact(key, title) {
  parts[key] = el('dd');
  return el('div', {}, el('dt', {}, title), parts[key]);
}

function list(key, title, columns) {
  parts[key] = el('tbody');
  parts[`${key}Title`] = el('h2', {}, title);
  return el('div', { class: 'card' }, parts[`${key}Title`],
    el('table', {}, el('thead', {}, el('tr', {}, ...columns.map((name) => el('th', { scope: 'col' }, name)))), parts[key]));
}

function build() {
  parts = {};
  parts.title = el('h1', { class: 'name', tabindex: '-1' });
  parts.chip = el('span', { class: 'chip calm' });
  parts.note = el('p', { class: 'note', hidden: true });
  parts.bar = el('i');
  parts.timeline = el('div', { class: 'timeline' });
  parts.past = buildPast();
  parts.actions = el('div', { class: 'actions' });
  section.replaceChildren(
    el('p', { class: 'crumb' }, el('a', { href: '#/' }, '← All locks'), el('span', { 'aria-hidden': 'true' }, ' ', el('kbd', {}, 'Esc'))),
    el('div', { class: 'headline' }, parts.title, parts.chip),
    parts.note,
    el('div', { class: 'card' },
      el('dl', { class: 'facts' }, fact('kind', 'Kind'), fact('held', 'Held for'), fact('ttl', 'Expires in'),
        fact('lease', 'Lease'), fact('waiting', 'Waiting clients'), fact('token', 'Token')),
      el('span', { class: 'bar wide', 'aria-hidden': 'true' }, parts.bar)),
    list('holders', 'Holders', HOLDERS),
    list('waiters', 'Waiters', WAITERS),
    el('div', { class: 'card' }, el('h2', {}, 'Timeline'), parts.timeline),
    parts.past.card, parts.past.note,
    parts.actions,
  );
}

function cells(columns, ...texts) {
  return el('tr', {}, ...texts.map((text, i) => el('td', { 'data-name': columns[i] }, text === null || text === '' ? '–' : visible(String(text)))));
}

function empty(text, columns) {
  return el('tr', {}, el('td', { colspan: columns, class: 'none' }, text));
}

function fillHolders() {
  const holders = lock?.holders ?? [];
  const rows = holders.map((one) => cells(HOLDERS, one.host, one.pid, one.command,
    one.held_ms === null ? null : age(one.held_ms), one.count, one.owner));
  if (lock?.more_holders) rows.push(empty(`and ${lock.more_holders} more`, 6));
  setText(parts.holdersTitle, holders.length > 1 ? `Holders (${holders.length + (lock.more_holders ?? 0)})` : 'Holder');
  parts.holders.replaceChildren(...(rows.length ? rows : [empty('Nobody holds this lock.', 6)]));
}

// Not every waiter is known by name: Java's clients, and those that came a moment ago, are only counted.
function fillWaiters() {
  const waiters = lock?.waiters ?? [];
  const rows = waiters.map((one, i) => cells(WAITERS, i + 1, one.host, one.pid, one.command,
    one.waiting_ms === null ? null : age(one.waiting_ms), one.owner));
  const others = (lock?.waiting_clients ?? 0) - waiters.length;
  if (lock?.more_waiters) rows.push(empty(rows.length ? `and ${lock.more_waiters} more` : plural(lock.more_waiters, 'waiter', 'waiters'), 6));
  else if (others > 0) rows.push(empty(`${rows.length ? 'and ' : ''}${plural(others, 'client', 'clients')} that left no note`, 6));
  parts.waiters.replaceChildren(...(rows.length ? rows : [empty('Nobody waits for this lock.', 6)]));
}

// Times of the history are by the server's clock, which each answer contains.
function fillPast(answer) {
  const now = past ? past.now_ms + performance.now() - past.at : 0;
  drawTimeline(parts.timeline, answer, past, now);
  if (past) drawPast(parts.past, past, now);
}

// The history is requested now and then, and several times when the holders have changed, because
// an answer can be a second old.
async function freshenPast(answer) {
  const asked = id;
  const now = performance.now();
  const holders = JSON.stringify((lock?.holders ?? []).map((one) => [one.owner, one.count]));
  if (holders !== pastFor) [pastFor, changedAt] = [holders, now];
  if (pastBusy || (past && now - changedAt > CHANGED_MS && now - pastAsked < PAST_MS)) return;
  [pastBusy, pastAsked] = [true, now];
  const { status, body } = await ask(`api/history?name=${asked.replace(/[&+#]/g, encodeURIComponent)}`);
  pastBusy = false;
  if (id !== asked || status !== 200) return;
  past = { ...body, at: performance.now() };
  fillPast(answer);
}

function fill(answer) {
  const [word, tone] = lock ? STATES[lock.state] ?? [lock.state, 'calm'] : ['Free', 'calm'];
  setText(parts.title, visible(answer.name));
  document.title = `${visible(answer.name)} · Holdfast`;
  setText(parts.chip, word);
  parts.chip.className = `chip ${tone}`;
  parts.note.hidden = !answer.note;
  setText(parts.note, answer.note ?? '');
  setText(parts.kind, lock?.kind ?? '–');
  setText(parts.lease, span(lock?.lease_ms ?? null));
  setText(parts.waiting, lock ? String(lock.waiting_clients ?? 'not known') : '0');
  setText(parts.token, String(lock?.token ?? '–'));
  fillHolders();
  fillWaiters();
  fillPast(answer);
  fillActions(answer.name);
  tickLock();
}

export function tickLock() {
  if (id === null || !parts.bar) return;
  const now = performance.now();
  const left = lock?.expiresAt === undefined || lock.expiresAt === null ? null : Math.max(0, lock.expiresAt - now);
  const part = left === null ? 0 : left / (Math.max(lock.lease_ms ?? 0, lock.full) || 1);
  setText(parts.held, heldFor(lock, now));
  setText(parts.ttl, !lock ? '–' : left === null ? (lock.state === 'free' ? '–' : 'never') : span(left));
  parts.bar.style.transform = `scaleX(${Math.min(1, part).toFixed(3)})`;
  parts.bar.className = lock?.state === 'at_risk' ? 'risk' : left !== null && part < 1 / 3 ? 'low' : '';
}

async function poll() {
  const asked = id;
  const { status, body } = await ask(`api/locks/${asked}`);
  if (id !== asked) return; // another page is shown by now
  timer = setTimeout(poll, POLL_MS);
  if (status !== 200) {
    parts.note.hidden = false;
    setText(parts.note, body.error);
    return;
  }
  const now = performance.now();
  const old = lock;
  lock = body.lock ?? null;
  if (lock) {
    lock.expiresAt = lock.ttl_ms === null ? null : now + lock.ttl_ms;
    lock.heldAt = lock.held_ms === null ? null : now - lock.held_ms;
    lock.full = Math.max(lock.ttl_ms ?? 0, old?.full ?? 0);
  }
  fill(body);
  freshenPast(body);
}

// ---- taking it away ----

const ACTIONS = {
  unlock: {
    button: 'Take the lock away…',
    title: 'Take this lock away from its holder?',
    text: 'The holder is not asked. It notices at its next renewal, and may keep working until then while somebody else gets the lock.',
    confirm: 'Take it away',
    done: 'The lock was taken away.',
  },
  revoke: {
    button: 'Ask the holder to release it…',
    title: 'Ask the holder to release this lock?',
    text: 'Holders that acquired it as revocable are notified. Others ignore the request.',
    confirm: 'Ask',
    done: 'The holder was asked.',
  },
};

function fillActions(name) {
  const allowed = store.status?.allow_unlock && lock && lock.holders.length > 0;
  const wanted = allowed ? ['unlock', ...(store.status.can_revoke ? ['revoke'] : [])] : [];
  if (parts.actions.childElementCount === wanted.length) return;
  parts.actions.replaceChildren(...wanted.map((key) =>
    el('button', { type: 'button', class: key === 'unlock' ? 'danger' : '', id: `do-${key}`, onclick: () => confirmAction(key, name) }, ACTIONS[key].button)));
}

// Only the name, typed in full, enables the button.
function confirmAction(key, name) {
  const action = ACTIONS[key];
  const shown = visible(name);
  const input = el('input', { id: 'confirm-name', type: 'text', autocomplete: 'off', spellcheck: 'false', autocapitalize: 'off' });
  const go = el('button', { type: 'submit', class: 'danger', id: 'confirm-go', disabled: true }, action.confirm);
  const result = el('p', { role: 'status', id: 'confirm-result' });
  const holder = process(lock?.holders[0]);
  input.addEventListener('input', () => { go.disabled = input.value !== shown; });
  const form = el('form', { method: 'dialog' },
    el('h2', { id: 'dialog-title' }, action.title),
    el('p', {}, action.text),
    el('dl', {}, el('dt', {}, 'Lock'), el('dd', { class: 'name' }, shown),
      el('dt', {}, 'Holder'), el('dd', {}, holder || '–'),
      el('dt', {}, 'Waiting'), el('dd', {}, String(lock?.waiting_clients ?? 'not known'))),
    el('label', { for: 'confirm-name' }, 'Type the name of the lock in full to confirm'),
    input, result,
    el('div', { class: 'actions' }, el('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'), go));
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (input.value !== shown) return;
    go.disabled = true;
    setText(result, 'Working…');
    const { status, body } = await send(`api/locks/${id}/${key}`, { name });
    setText(result, status === 200 ? action.done : body.error);
    result.className = status === 200 ? 'good' : 'bad';
    if (status === 200) setTimeout(() => dialog.close(), 1200);
  });
  dialog.replaceChildren(form);
  dialog.showModal();
  input.focus();
}

// ---- coming and going ----

export function showLock(wanted) {
  hideLock();
  id = wanted;
  build();
  setText(parts.title, visible(decodeURIComponent(wanted.replace(/%(?![0-9a-fA-F]{2})/g, '%25'))));
  parts.title.focus({ preventScroll: true });
  poll();
}

export function hideLock() {
  clearTimeout(timer);
  id = lock = past = null;
  if (dialog.open) dialog.close();
}
