// Small helpers: elements, and how times, numbers and foreign text are shown.

// Makes an element. Text is always set as text: names and commands come from other programs.
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === 'class') node.className = value;
    else if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? '' : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// Changes the text only if it differs, which keeps selections and saves layout.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// 250 ms, 12.5 s, 3 min 20 s, 4 h 12 min, 3 d 4 h
export function span(ms) {
  if (ms === null || ms === undefined) return '–';
  if (ms < 0) ms = 0;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s.toFixed(1)} s`;
  const min = Math.floor(s / 60);
  if (min < 60) return `${min} min ${Math.floor(s % 60)} s`;
  const h = Math.floor(min / 60);
  if (h < 24) return `${h} h ${min % 60} min`;
  return `${Math.floor(h / 24)} d ${h % 24} h`;
}

// The same without tenths, for numbers that count up all the time.
export function age(ms) {
  return ms !== null && ms >= 1000 && ms < 60000 ? `${Math.floor(ms / 1000)} s` : span(ms);
}

// For a holder that left no note, only the time for which it was seen is known.
export function heldFor(lock, now) {
  if (!lock || lock.heldAt === null) return '–';
  return `${lock.held_longer ? '> ' : ''}${age(now - lock.heldAt)}`;
}

// Control characters, invisible ones, and those that change the writing direction.
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

// Foreign text in a form in which all of its characters can be seen.
export function visible(text) {
  return text.replace(UNSAFE, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

// A holder or a waiter, as far as its note says.
export function process(who) {
  if (!who || (!who.host && !who.owner)) return '';
  if (!who.host) return visible(who.owner);
  const pid = who.pid ? ` ${who.pid}` : '';
  return visible(`${who.host}${pid}${who.command ? ` ${who.command}` : ''}`);
}

export function plural(n, one, many) {
  return `${n.toLocaleString('en')} ${n === 1 ? one : many}`;
}

export const STATES = {
  renewing: ['Renewing', 'good'],
  held: ['Held', 'good'],
  fixed: ['Fixed lease', 'calm'],
  at_risk: ['At risk', 'bad'],
  endless: ['Held', 'good'],
  free: ['Free', 'calm'],
};
