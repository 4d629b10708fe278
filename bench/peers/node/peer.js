// Benchmark peer: redlock or redis-semaphore on ioredis, an asynchronous function for each thread.
"use strict";

const fs = require("node:fs");
const readline = require("node:readline");
const loads = require("./loads");
const { openLibrary } = require("./libraries");

const USAGE = "usage: node peer.js redlock|redis-semaphore [--processes N] (URL BOARD | --start URL NAME)";

const UNSUPPORTED = {
  async: "own is asynchronous already: functions on one thread",
  fair: "no fair lock",
  rw: "no read-write lock",
};

function parseArguments(given) {
  const parsed = { start: false, processes: 1 };
  const rest = [];
  for (let i = 0; i < given.length; i++) {
    if (given[i] === "--start") parsed.start = true;
    else if (given[i] === "--processes") parsed.processes = Number(given[++i]);
    else rest.push(given[i]);
  }
  if (rest.length !== 3 || Number.isNaN(parsed.processes)) return null;
  // The subject is the lock's name with --start, else the path of the board.
  const [variant, url, subject] = rest;
  return { ...parsed, variant, url, subject };
}

// Writes at once, even if standard output is a pipe.
function say(value) {
  fs.writeSync(1, `${JSON.stringify(value)}\n`);
}

function answer(library, processes, line) {
  const [command, ...rest] = line.trim().split(/\s+/);
  if (Object.hasOwn(UNSUPPORTED, command)) return { unsupported: UNSUPPORTED[command] };
  const name = rest.pop();
  const [first, second] = rest.map(Number);
  switch (command) {
    case "warm":
      return loads.warm(library, first, name);
    case "own":
      return loads.own(library, first, second, name);
    case "hand":
      return loads.hand(library, first, second, name, processes);
    case "held":
      return loads.held(library, first, second, name, say);
  }
  throw new Error(`unknown command: ${line}`);
}

async function serve(library, processes) {
  say({ ready: true, peer: library.name, version: library.version });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    if (line.trim() === "quit") break;
    say(await answer(library, processes, line));
  }
}

// Takes one lock as soon as possible, then waits for a byte of input.
async function startOnly(library, name) {
  await library.newLock(name).acquire();
  fs.writeSync(1, "held\n");
  fs.readSync(0, Buffer.alloc(1));
}

async function main() {
  const given = parseArguments(process.argv.slice(2));
  if (given === null) {
    console.error(USAGE);
    process.exit(2);
  }
  try {
    const library = await openLibrary(given.variant, given.url);
    await (given.start ? startOnly(library, given.subject) : serve(library, given.processes));
  } catch (failure) {
    say({ error: failure.message });
    process.exit(1);
  }
  process.exit(0);
}

main();
