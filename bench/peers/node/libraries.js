// The lock libraries behind one interface. Only the chosen one is loaded.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const Redis = require("ioredis");

// redlock asks for a lease in each call and has no default.
const REDLOCK_LEASE_MS = 30000;

// The installed version. Not every package allows its package.json to be required.
function versionOf(name) {
  const file = path.join(__dirname, "node_modules", name, "package.json");
  return JSON.parse(fs.readFileSync(file, "utf8")).version.replace(/^v/, "");
}

// Each lock has acquire() and release() for one asynchronous function. If the library gives up an attempt, it is
// repeated at once; release() fails if the library says that the lock was no longer held.
// keep(name) takes a lock that the library renews, and returns { isLost(), release() }.

function openRedlock(client) {
  const { default: Redlock, ExecutionError } = require("redlock");
  const redlock = new Redlock([client]);

  class RedlockLock {
    constructor(name) {
      this.resources = [name];
    }

    async acquire() {
      for (;;) {
        try {
          this.held = await redlock.acquire(this.resources, REDLOCK_LEASE_MS);
          return;
        } catch (failure) {
          if (!(failure instanceof ExecutionError) || client.status !== "ready") throw failure;
        }
      }
    }

    release() {
      return this.held.release();
    }
  }

  function keep(name) {
    return new Promise((resolve, reject) => {
      let free;
      const freed = new Promise((done) => (free = done));
      const kept = redlock.using([name], REDLOCK_LEASE_MS, async (signal) => {
        resolve({ isLost: () => signal.aborted, release: () => (free(), kept.catch(() => {})) });
        await freed;
      });
      kept.catch(reject);
    });
  }

  return { name: "redlock", version: versionOf("redlock"), newLock: (name) => new RedlockLock(name), keep };
}

function openSemaphore(client) {
  const { Mutex, TimeoutError } = require("redis-semaphore");

  class SemaphoreLock {
    constructor(name) {
      this.mutex = new Mutex(client, name);
    }

    async acquire() {
      for (;;) {
        try {
          return await this.mutex.acquire();
        } catch (failure) {
          if (!(failure instanceof TimeoutError)) throw failure;
        }
      }
    }

    release() {
      return this.mutex.release();
    }
  }

  async function keep(name) {
    // By default the library throws from a timer when a lock is lost, which would end the process.
    const mutex = new Mutex(client, name, { onLockLost() {} });
    await mutex.acquire();
    return { isLost: () => !mutex.isAcquired, release: () => mutex.release() };
  }

  const newLock = (name) => new SemaphoreLock(name);
  return { name: "redis-semaphore", version: versionOf("redis-semaphore"), newLock, keep };
}

const openers = { redlock: openRedlock, "redis-semaphore": openSemaphore };

// Fails if there is no server. On its own, the client would keep trying.
async function openLibrary(variant, url) {
  if (!Object.hasOwn(openers, variant)) throw new Error(`unknown variant: ${variant}`);
  const client = new Redis(url, { lazyConnect: true });
  client.on("error", (failure) => console.error(failure.message));
  const library = openers[variant](client);
  await client.connect();
  return library;
}

module.exports = { openLibrary };
