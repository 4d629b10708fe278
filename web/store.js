// What the page knows about the locks, and in which order it shows them.

export const store = { locks: new Map(), status: null };

// Times arrive as durations, so that the clocks of server and browser need not agree.
export function keep(lock) {
  const now = performance.now();
  const old = store.locks.get(lock.id);
  lock.expiresAt = lock.ttl_ms === null ? null : now + lock.ttl_ms;
  lock.heldAt = lock.held_ms === null ? null : now - lock.held_ms;
  lock.seenAt = now - lock.age_ms;
  lock.full = Math.max(lock.lease_ms ?? 0, old?.full ?? 0, lock.ttl_ms ?? 0);
  lock.key = old?.key ?? lock.name.toLowerCase().replace(/\d+/g, (digits) => digits.padStart(12, '0'));
  lock.text = `${lock.name}\n${lock.host ?? ''}\n${lock.command ?? ''}`.toLowerCase();
  store.locks.set(lock.id, lock);
}

// Returns whether anything other than the status has changed.
export function apply(state) {
  if (state.all) store.locks.clear();
  state.locks.forEach(keep);
  state.gone.forEach((id) => store.locks.delete(id));
  store.status = state.status;
  return state.all || state.locks.length + state.gone.length > 0;
}

const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const byName = (a, b) => compare(a.key, b.key) || compare(a.id, b.id);
const least = (value) => value ?? Infinity;

// What needs attention comes first: locks with waiters, then those at risk, then the oldest.
function rank(lock) {
  return lock.waiting > 0 ? 0 : lock.state === 'at_risk' ? 1 : 2;
}

const ORDERS = {
  attention: (a, b) => rank(a) - rank(b) || least(a.heldAt) - least(b.heldAt) || byName(a, b),
  name: byName,
  kind: (a, b) => compare(a.kind, b.kind) || byName(a, b),
  held: (a, b) => least(a.heldAt) - least(b.heldAt) || byName(a, b),
  ttl: (a, b) => least(a.expiresAt) - least(b.expiresAt) || byName(a, b),
  waiting: (a, b) => (b.waiting ?? 0) - (a.waiting ?? 0) || byName(a, b),
};

export function view(filter, order, reverse) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [...store.locks.values()].filter((lock) => words.every((word) => lock.text.includes(word)));
  found.sort(ORDERS[order]);
  return reverse ? found.reverse() : found;
}
