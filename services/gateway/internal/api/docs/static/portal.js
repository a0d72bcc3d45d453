// The pages work without this script, except the search.
'use strict';

// Small screens show the navigation only on request.
const menu = document.querySelector('.guides details');
if (menu && matchMedia('(max-width: 50rem)').matches) menu.open = false;

// All snippets show the language that the reader chose last.
const key = 'holdfast-docs-language';
const choose = (language) => {
  for (const tab of document.querySelectorAll('.tabs input')) if (tab.value === language) tab.checked = true;
};
document.addEventListener('change', ({ target }) => {
  if (!target.matches('.tabs input')) return;
  const { top } = target.getBoundingClientRect();
  choose(target.value);
  scrollBy(0, target.getBoundingClientRect().top - top);
  try { localStorage.setItem(key, target.value); } catch { /* the browser stores nothing */ }
});
try { choose(localStorage.getItem(key)); } catch { /* the browser stores nothing */ }

// Code can be copied.
for (const block of document.querySelectorAll('article pre')) {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'copy';
  button.textContent = 'Copy';
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(block.querySelector('code').textContent);
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = 'Copy'; }, 2000);
  });
  block.append(button);
}

// A slash moves the focus to the search.
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  const search = document.querySelector('input[type=search]');
  if (search) { event.preventDefault(); search.focus(); }
});

const limit = 30;
const element = (name, text, more = {}) => Object.assign(document.createElement(name), { textContent: text }, more);

/** Returns the entries that contain all words, best first. */
function find(entries, query) {
  const words = query.toLowerCase().split(/[^\p{L}\p{N}_]+/u).filter(Boolean);
  if (!words.length) return [];
  const scored = [];
  for (const entry of entries) {
    const title = entry.t.toLowerCase();
    const text = `${entry.k} ${entry.x}`.toLowerCase();
    let score = 0;
    for (const word of words) {
      const here = (title === word ? 8 : 0) + (title.startsWith(word) ? 4 : 0) + (title.includes(word) ? 4 : 0) + (text.includes(word) ? 1 : 0);
      if (!here) { score = 0; break; }
      score += here;
    }
    if (score) scored.push([score, entry]);
  }
  return scored.sort((a, b) => b[0] - a[0]).map(([, entry]) => entry);
}

async function search(form) {
  const input = form.querySelector('input');
  const found = document.getElementById('found');
  const list = document.getElementById('results');
  const response = await fetch('/docs/search.json');
  if (!response.ok) { found.textContent = 'The search is not available. Try again later.'; return; }
  const entries = await response.json();
  const show = () => {
    const results = find(entries, input.value);
    found.textContent = input.value.trim() ? `${results.length} ${results.length === 1 ? 'result' : 'results'}` : '';
    list.replaceChildren(...results.slice(0, limit).map((entry) => {
      const item = element('li', '');
      item.append(element('a', entry.t, { href: entry.u }), ' ', element('span', entry.k, { className: 'kind' }), element('p', entry.x));
      return item;
    }));
  };
  input.value = new URLSearchParams(location.search).get('q') ?? '';
  input.addEventListener('input', () => {
    history.replaceState(null, '', `?q=${encodeURIComponent(input.value)}`);
    show();
  });
  form.addEventListener('submit', (event) => event.preventDefault());
  show();
  input.focus();
}

const form = document.getElementById('full-search');
if (form) search(form).catch(() => { document.getElementById('found').textContent = 'The search is not available. Try again later.'; });
