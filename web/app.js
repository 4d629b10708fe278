// Starts the page: which view is shown, the keyboard, the banner, and the stream of changes.

import { el, setText, age, plural, visible } from './format.js';
import { ask, follow, setToken, takeToken } from './api.js';
import { store, apply, keep } from './store.js';
import { startTable, refresh, draw, staleIds, tick } from './table.js';
import { showLock, hideLock, tickLock } from './lock.js';
import { showDoctor } from './doctor.js';

const $ = (id) => document.getElementById(id);
const calm = matchMedia('(prefers-reduced-motion: reduce)');
let link = 'connecting';
let downSince = 0;
let scrolled = 0; // where the table was before a lock was opened

// ---- views ----

function route() {
  const lock = location.hash.match(/^#\/lock\/(.+)$/);
  const name = link === 'refused' ? 'login' : lock ? 'lock' : location.hash === '#/doctor' ? 'doctor' : 'locks';
  const was = ['locks', 'lock', 'doctor', 'login'].find((id) => !$(id).hidden);
  if (was === 'locks' && name !== 'locks') scrolled = scrollY;
  for (const id of ['locks', 'lock', 'doctor', 'login']) $(id).hidden = id !== name;
  for (const [id, on] of [['nav-locks', name === 'locks'], ['nav-doctor', name === 'doctor']]) {
    if (on) $(id).setAttribute('aria-current', 'page');
    else $(id).removeAttribute('aria-current');
  }
  hideLock();
  if (name !== 'locks') scrollTo(0, 0);
  if (name === 'lock') showLock(lock[1]);
  else if (name === 'doctor') showDoctor();
  else if (name === 'locks') {
    document.title = 'Holdfast';
    refresh();
    if (was !== 'locks') scrollTo(0, scrolled);
    if (was === 'lock') $('grid').focus({ preventScroll: true });
  }
}

function onKey(event) {
  const typing = event.target.matches('input, textarea');
  if (event.ctrlKey || event.altKey || event.metaKey || $('dialog').open) return;
  if (event.key === '/' && !typing) {
    event.preventDefault();
    if ($('locks').hidden) location.hash = '#/';
    setTimeout(() => $('filter').focus());
  } else if (event.key === 'Escape' && event.target === $('filter') && $('filter').value) {
    $('filter').value = '';
    refresh();
  } else if (event.key === 'Escape' && !$('locks').hidden) {
    $('grid').focus({ preventScroll: true });
  } else if (event.key === 'Escape') {
    location.hash = '#/';
  }
}

// ---- what is above the table ----

function tile(title, value, tone) {
  return el('div', { class: tone ?? '' }, el('dt', {}, title), el('dd', {}, value));
}

function drawTiles() {
  const { status } = store;
  const locks = [...store.locks.values()];
  const starts = locks.map((lock) => lock.heldAt).filter((at) => at !== null);
  const waited = locks.filter((lock) => lock.waiting > 0).length;
  const risk = locks.filter((lock) => lock.state === 'at_risk').length;
  const oldest = starts.length ? age(performance.now() - Math.min(...starts)) : '–';
  const text = JSON.stringify([status.held, waited, risk, oldest]);
  if ($('tiles').dataset.text === text) return;
  $('tiles').dataset.text = text;
  $('tiles').replaceChildren(tile('Held', status.held.toLocaleString('en')),
    tile('Waited for', waited.toLocaleString('en'), waited ? 'warn' : ''),
    tile('At risk', risk.toLocaleString('en'), risk ? 'bad' : ''), tile('Oldest hold', oldest));
}

function drawLink() {
  const { status } = store;
  const live = link === 'up' && status?.reachable;
  document.body.dataset.link = live ? 'live' : 'lost';
  setText($('link-text'), live ? 'live' : link === 'connecting' ? 'connecting' : 'not connected');
  if (status) setText($('server'), [status.server, status.address].filter(Boolean).join(' · '));
  let text = '';
  let since = 0;
  if (link === 'down') {
    text = 'holdfast web does not answer. This page shows the last known state and will reconnect on its own.';
    since = performance.now() - downSince;
  } else if (link === 'up' && status && !status.reachable) {
    const lost = status.lost === 'server' ? 'The lock server is' : `${status.lost} are`;
    text = `${lost} unreachable${status.error ? ` (${status.error})` : ''}. This page shows the last known state and will update on its own.`;
    since = status.unreachable_ms;
  } else if (status?.warning) text = status.warning;
  $('banner').hidden = !text;
  setText($('banner-text'), visible(text));
  // Apart from the text, which is read aloud when it changes.
  setText($('banner-time'), since ? `This has lasted for ${age(since)}.` : '');
}

function drawCount() {
  const { status } = store;
  if (status?.left_out) setText($('count'), `${$('count').textContent.split(';')[0]}; ${plural(status.left_out, 'more is', 'more are')} not shown`);
}

function onState(state) {
  const first = !store.status;
  if (apply(state) || first) refresh();
  drawTiles();
  drawCount();
  drawLink();
}

// The stream keeps only the first rows fresh. The page asks for the others that are on the screen.
async function freshen() {
  const ids = link === 'up' && store.status?.reachable && !document.hidden ? staleIds() : [];
  if (ids.length) {
    const { status, body } = await ask(`api/locks?${ids.map((id) => `id=${id}`).join('&')}`);
    if (status === 200) body.locks.filter((lock) => store.locks.has(lock.id)).forEach(keep);
    tick();
  }
  setTimeout(freshen, 1000);
}

// ---- the token ----

let enter = () => {};

function askForToken() {
  const input = el('input', { id: 'token', type: 'password', autocomplete: 'off' });
  const form = el('form', { class: 'card' }, el('h1', {}, 'Token needed'),
    el('p', {}, 'Open the URL that holdfast web printed: it contains the token. Or enter the token here.'),
    el('label', { for: 'token' }, 'Token'), input, el('button', { type: 'submit' }, 'Continue'));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    setToken(input.value.trim());
    enter();
  });
  $('login').replaceChildren(form);
}

// Returns a promise that is resolved when there is a new token to try.
function onLink(now) {
  const before = link;
  if (now === 'down' && before !== 'down') downSince = performance.now();
  link = now;
  drawLink();
  if (now !== 'refused') {
    if (before === 'refused') route();
    return null;
  }
  askForToken();
  route();
  return new Promise((go) => { enter = go; });
}

takeToken();
startTable((lock) => { location.hash = `#/lock/${lock.id}`; });
addEventListener('hashchange', () => {
  if (location.hash.startsWith('#t=')) {
    takeToken();
    enter();
  }
  if (location.hash !== '#main') route();
});
document.addEventListener('keydown', onKey);
setInterval(() => {
  tick();
  tickLock();
  if (store.status) drawTiles();
}, calm.matches ? 1000 : 250);
setInterval(() => { if (link === 'down') drawLink(); }, 1000);
route();
draw();
freshen();
follow(onState, onLink);
