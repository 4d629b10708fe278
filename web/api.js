// Talking to holdfast web: the token, requests, and the stream of changes.

const KEY = 'holdfast-token';

// The token comes in the part of the URL that browsers never send; it is taken out of the URL.
export function takeToken() {
  const found = location.hash.match(/^#t=([^&]+)/);
  if (found) {
    setToken(decodeURIComponent(found[1]));
    history.replaceState(null, '', `${location.pathname}#/`);
  }
}

export function setToken(token) {
  sessionStorage.setItem(KEY, token);
}

function options(more = {}) {
  const token = sessionStorage.getItem(KEY) ?? '';
  return {
    ...more,
    cache: 'no-store',
    credentials: 'omit',
    headers: { ...more.headers, Authorization: `Bearer ${token}` },
  };
}

// Answers {status, body}, where body is JSON or {error: text}; status 0: there was no answer.
export async function ask(path, more) {
  try {
    const reply = await fetch(path, options(more));
    const text = await reply.text();
    const json = reply.headers.get('Content-Type')?.startsWith('application/json');
    return { status: reply.status, body: json ? JSON.parse(text) : { error: text } };
  } catch {
    return { status: 0, body: { error: 'holdfast web does not answer' } };
  }
}

export function send(path, body) {
  return ask(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
}

const QUIET_MS = 12000; // the server sends something at least every 5 s
const AGAIN_MS = 1000;

// An event consists of lines "field: value".
function readEvent(text) {
  const event = { id: null, data: '' };
  for (const line of text.split('\n')) {
    if (line.startsWith('id: ')) event.id = line.slice(4);
    else if (line.startsWith('data: ')) event.data += line.slice(6);
  }
  return event;
}

async function readStream(reply, abort, onEvent) {
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let timer = 0;
  try {
    for (;;) {
      clearTimeout(timer);
      timer = setTimeout(() => abort.abort(), QUIET_MS);
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (rest + value).split('\n\n');
      rest = parts.pop();
      parts.map(readEvent).forEach(onEvent);
    }
  } finally {
    clearTimeout(timer);
  }
}

// Follows the changes for ever. EventSource cannot send the token, so fetch is used.
// onLink receives 'up', 'down' or 'refused', and may return a promise to wait for.
export async function follow(onState, onLink) {
  let last = '';
  for (;;) {
    const abort = new AbortController();
    let link = 'down';
    try {
      const reply = await fetch('events', options({
        headers: { 'Last-Event-ID': last },
        signal: abort.signal,
      }));
      if (reply.status === 401) link = 'refused';
      if (reply.ok) {
        onLink('up');
        await readStream(reply, abort, (event) => {
          if (!event.data) return;
          last = event.id ?? last;
          onState(JSON.parse(event.data));
        });
      }
    } catch {
      // Closed, or quiet for too long: connect again.
    }
    await onLink(link);
    await new Promise((go) => setTimeout(go, AGAIN_MS));
  }
}
