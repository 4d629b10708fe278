// Doctor's findings about the server, in plain words.

import { el, age, visible } from './format.js';
import { ask } from './api.js';

const section = document.getElementById('doctor');
const VERDICTS = { bad: ['Problem', 'bad'], note: ['Note', 'warn'], good: ['Fine', 'good'] };
const ORDER = ['bad', 'note', 'good'];

function item(finding) {
  const [word, tone] = VERDICTS[finding.verdict] ?? [finding.verdict, 'calm'];
  return el('li', { class: tone },
    el('span', { class: `chip ${tone}` }, word),
    el('div', {}, el('h2', {}, visible(finding.subject)), el('p', {}, visible(finding.text)),
      finding.remedy ? el('p', { class: 'remedy' }, el('strong', {}, 'What to do: '), visible(finding.remedy)) : null));
}

function summary(findings) {
  const bad = findings.filter((one) => one.verdict === 'bad').length;
  const notes = findings.filter((one) => one.verdict === 'note').length;
  if (bad) return `${bad === 1 ? 'One problem endangers' : `${bad} problems endanger`} the locks on this server.`;
  return notes ? 'Nothing endangers the locks on this server, but see the notes below.' : 'Nothing endangers the locks on this server.';
}

async function examine() {
  const button = el('button', { type: 'button', disabled: true }, 'Examining…');
  const status = el('p', { role: 'status' }, 'The server is being examined. Doctor also takes and releases a few locks of its own.');
  section.replaceChildren(el('h1', { tabindex: '-1' }, 'Doctor'), status, button);
  section.querySelector('h1').focus({ preventScroll: true });
  const { status: code, body } = await ask('api/doctor');
  button.disabled = false;
  button.textContent = 'Examine again';
  button.addEventListener('click', examine);
  if (code !== 200) {
    status.textContent = body.error;
    status.className = 'bad';
    return;
  }
  const sorted = ORDER.flatMap((verdict) => body.findings.filter((one) => one.verdict === verdict));
  status.textContent = body.error ? visible(body.error) : `${summary(body.findings)} Examined ${body.age_ms < 1000 ? 'just now' : `${age(body.age_ms)} ago`}.`;
  section.insertBefore(el('ul', { class: 'findings' }, ...sorted.map(item)), button);
}

export function showDoctor() {
  document.title = 'Doctor · Holdfast';
  examine();
}
