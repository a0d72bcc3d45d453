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

// The search: its index and its scripts are loaded when a search field gets the focus.
const limit = 30; // results on the page of the search
const suggested = 7; // results below the field at the top
const element = (name, text, more = {}) => Object.assign(document.createElement(name), { textContent: text }, more);

let loading;
/** Returns the function that finds entries for a query. */
const load = () => {
  loading ??= Promise.all([import('/docs/static/search.js'), fetch('/docs/search.json').then((r) => (r.ok ? r.json() : Promise.reject(r.status)))])
    .then(([{ find, highlight, open }, entries]) => {
      const index = open(entries);
      return { find: (query) => find(index, query), highlight };
    });
  loading.catch(() => { loading = undefined; });
  return loading;
};

/** Returns the parts of a text as elements, with the matches marked. */
const marked = (parts) => parts.map(({ text, hit }) => (hit ? element('mark', text) : text));

/** Returns what a result shows: its title, its page, and the text around the first match. */
function shown(entry, { highlight }) {
  const title = element('span', '', { className: 'title' });
  title.append(...marked(highlight(entry.t, entry.terms, entry.t.length)));
  const place = element('span', entry.p === entry.t ? entry.k : `${entry.k} › ${entry.p}`, { className: 'kind' });
  const text = element('span', '', { className: 'text' });
  text.append(...marked(highlight(entry.x, entry.terms)));
  return [title, ' ', place, text];
}

const unavailable = 'The search is not available. llms-full.txt contains all pages.';

/** Makes the page of the search show results while the reader types. */
async function search(form) {
  const input = form.querySelector('input');
  const found = document.getElementById('found');
  const list = document.getElementById('results');
  input.value = new URLSearchParams(location.search).get('q') ?? '';
  form.addEventListener('submit', (event) => event.preventDefault());
  input.focus();
  const library = await load();
  const show = () => {
    const results = input.value.trim() ? library.find(input.value) : [];
    found.textContent = input.value.trim() ? `${results.length} ${results.length === 1 ? 'result' : 'results'}` : '';
    list.replaceChildren(...results.slice(0, limit).map((entry) => {
      const item = element('li', '');
      const link = element('a', '', { href: entry.u });
      const [title, space, ...rest] = shown(entry, library);
      link.append(title);
      item.append(link, space, ...rest);
      return item;
    }));
  };
  input.addEventListener('input', () => {
    history.replaceState(null, '', `?q=${encodeURIComponent(input.value)}`);
    show();
  });
  show();
}

const form = document.getElementById('full-search');
if (form) search(form).catch(() => { document.getElementById('found').textContent = unavailable; });

/** Shows the best results below the field at the top, which the arrow keys choose from. Enter without a choice opens the page of the search. */
function suggest(input) {
  const list = element('ul', '', { id: 'suggestions', hidden: true });
  list.setAttribute('role', 'listbox');
  list.setAttribute('aria-label', 'Results');
  input.after(list);
  for (const [name, value] of Object.entries({ role: 'combobox', 'aria-expanded': 'false', 'aria-controls': list.id, 'aria-autocomplete': 'list' })) {
    input.setAttribute(name, value);
  }
  let chosen = -1;
  const choose = (to) => {
    chosen = to;
    [...list.children].forEach((option, i) => option.setAttribute('aria-selected', String(i === chosen)));
    if (chosen < 0) input.removeAttribute('aria-activedescendant');
    else input.setAttribute('aria-activedescendant', list.children[chosen].id);
    list.children[chosen]?.scrollIntoView({ block: 'nearest' });
  };
  const close = () => {
    list.hidden = true;
    input.setAttribute('aria-expanded', 'false');
    choose(-1);
  };
  const show = async () => {
    const library = await load();
    const results = input.value.trim() ? library.find(input.value).slice(0, suggested) : [];
    list.replaceChildren(...results.map((entry, i) => {
      const option = element('li', '', { id: `suggestion-${i}` });
      option.setAttribute('role', 'option');
      option.dataset.url = entry.u;
      option.append(...shown(entry, library));
      return option;
    }));
    close();
    if (!results.length || document.activeElement !== input) return;
    list.hidden = false;
    input.setAttribute('aria-expanded', 'true');
  };
  const open = (option) => {
    close();
    location.assign(option.dataset.url);
  };
  input.addEventListener('focus', () => load().catch(() => {}));
  input.addEventListener('input', () => show().catch(() => {})); // Enter still opens the page of the search, which says what is wrong
  input.addEventListener('blur', close);
  input.addEventListener('keydown', (event) => {
    const count = list.children.length;
    if (event.key === 'Escape' && !list.hidden) close();
    else if (event.key === 'ArrowDown' && !list.hidden) choose((chosen + 1) % count);
    else if (event.key === 'ArrowUp' && !list.hidden) choose((Math.max(chosen, 0) + count - 1) % count);
    else if (event.key === 'Enter' && chosen >= 0) open(list.children[chosen]);
    else return;
    event.preventDefault();
  });
  list.addEventListener('mousedown', (event) => {
    event.preventDefault(); // the field keeps the focus
    const option = event.target.closest('li');
    if (option) open(option);
  });
}

const field = document.getElementById('search');
if (field) suggest(field);
