// The workloads: each returns its result, ready to be written as JSON.
"use strict";

const v8 = require("node:v8");
const vm = require("node:vm");
const { performance } = require("node:perf_hooks");
const { setTimeout: sleep } = require("node:timers/promises");

// Functions share a thread, and not every library reports whether a release found its lock. So two holders are noticed
// only if one of them stays for a while. One grant in this many does, which takes about 1 % of the time.
const STAY_EVERY = 4096;
const STAY_MS = 1;

const now = () => performance.now();

// The microseconds below which this fraction of the sorted milliseconds lies.
function quantile(sorted, fraction) {
  if (sorted.length === 0) return null;
  const at = Math.max(Math.ceil(sorted.length * fraction) - 1, 0);
  return Math.round(sorted[at] * 10000) / 10;
}

// Milliseconds as seconds, with no more than six digits so that JSON shows them without an exponent.
function seconds(milliseconds) {
  return Math.round(milliseconds * 1000) / 1e6;
}

function sort(milliseconds) {
  return Float64Array.from(milliseconds).sort();
}

function makeSpan(length) {
  const from = now();
  return { from, until: from + length * 1000 };
}

async function useOwnLock(lock, latencies, span) {
  let before = now();
  while (before < span.until) {
    await lock.acquire();
    await lock.release();
    const after = now();
    latencies.push(after - before);
    before = after;
  }
}

async function own(library, count, length, name) {
  const locks = Array.from({ length: count }, (_, i) => library.newLock(`${name}:${i}`));
  const latencies = [];
  const span = makeSpan(length);
  await Promise.all(locks.map((lock) => useOwnLock(lock, latencies, span)));
  const took = seconds(now() - span.from);
  const sorted = sort(latencies);
  return {
    pairs: sorted.length,
    seconds: took,
    p50: quantile(sorted, 0.5),
    p99: quantile(sorted, 0.99),
    p999: quantile(sorted, 0.999),
  };
}

async function warm(library, length, name) {
  await own(library, 1, length / 2, name);
  await own(library, 8, length / 2, name);
  return {};
}

// The last holder of the lock, and when it was released. Node cannot map a file, so only this process knows them.
class Board {
  holder = null;
  releasedAt = 0;
}

// Counts a grant if it arrived in time. A wait that is not over at the end counts until then.
function note(counts, board, span, me, askedAt, grantedAt) {
  const { holder, releasedAt } = board;
  board.holder = me;
  counts.waits.push(Math.min(grantedAt, span.until) - askedAt);
  if (grantedAt >= span.until) return;
  counts.grants++;
  if (holder !== null && holder !== me) counts.gaps.push(grantedAt - releasedAt);
}

async function compete(lock, counts, board, span, me) {
  let askedAt = now();
  while (askedAt < span.until) {
    await lock.acquire();
    note(counts, board, span, me, askedAt, now());
    if (counts.grants % STAY_EVERY === 0) await sleep(STAY_MS);
    if (board.holder !== me) throw new Error("two holders");
    board.releasedAt = now();
    await lock.release();
    askedAt = now();
  }
}

// With other processes on the same lock, neither the last holder nor changes and gaps are known.
async function hand(library, count, length, name, processes) {
  const locks = Array.from({ length: count }, () => library.newLock(name));
  const counts = { grants: 0, gaps: [], waits: [] };
  const board = new Board();
  const span = makeSpan(length);
  await Promise.all(locks.map((lock, i) => compete(lock, counts, board, span, i)));
  const gaps = sort(counts.gaps);
  const waits = sort(counts.waits);
  const alone = processes <= 1;
  return {
    grants: counts.grants,
    changes: alone ? gaps.length : null,
    seconds: seconds(span.until - span.from),
    gap_p50: alone ? quantile(gaps, 0.5) : null,
    gap_p99: alone ? quantile(gaps, 0.99) : null,
    wait_p50: quantile(waits, 0.5),
    wait_max: quantile(waits, 1),
  };
}

function heapBytes() {
  v8.setFlagsFromString("--expose-gc");
  const collect = vm.runInNewContext("gc");
  // The second time frees what the first time has only found to be unused.
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

async function held(library, count, length, name, say) {
  const heapBefore = heapBytes();
  const from = now();
  const holds = [];
  for (let i = 0; i < count; i++) holds.push(await library.keep(`${name}:${i}`));
  const taken = now();
  const heap = heapBytes() - heapBefore;

  say({ keeping: true });
  const cpuBefore = process.cpuUsage();
  const keptFrom = now();
  await sleep(length * 1000);
  const cpu = process.cpuUsage(cpuBefore);
  const kept = now() - keptFrom;
  const rss = process.memoryUsage.rss();

  const lost = holds.filter((hold) => hold.isLost()).length;
  await Promise.all(holds.map((hold) => hold.release()));
  return {
    held: count,
    lost,
    seconds: seconds(kept),
    cpu: (cpu.user + cpu.system) / 1e6,
    // With few locks the rest of the heap may shrink by more.
    bytes_per_lock: heap > 0 ? Math.round(heap / count) : null,
    take_seconds: seconds(taken - from),
    rss_kb: Math.round(rss / 1024),
    renewed_by: "library",
  };
}

module.exports = { warm, own, hand, held };
