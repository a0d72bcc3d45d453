// The search over the index /docs/search.json, with MiniSearch. The pages load it when someone searches, and the tests run it in Node.js.
import MiniSearch, { stemmer } from './minisearch.js';

// Words that say nothing about the page that answers a question.
const ignored = new Set(('a an and are as at be been by can do does for from has have how i if in into is it its me my of on or our please should so that the '
  + 'their them there these they this to was we what when where which who why will with would you your').split(' '));

// Words that developers use, and those of the pages.
const synonyms = {
  blackout: 'closure', golang: 'go', gst: 'tax', ical: 'icalendar', ics: 'icalendar', javascript: 'typescript', js: 'typescript', node: 'typescript',
  nodejs: 'typescript', quickstart: 'quick start', terminal: 'command line', throttling: 'limit', timezone: 'time zone', vat: 'tax',
};

// Guides answer questions. Other pages come first only if they match better.
const weights = { 'API reference': 0.7, 'Error code': 0.45, Tools: 0.5 };
const lists = /-reference(#|$)/; // pages that name nearly everything
const weight = ({ k, u }) => (lists.test(u) ? 0.25 : weights[k] ?? 1);

const known = new Map();
const mostKnown = 20_000; // words

/** Returns the terms of a word: the word itself if it is an identifier such as slot_unavailable, and the stems of its parts. */
function terms(word) {
  let found = known.get(word);
  if (!found) {
    const lower = word.toLowerCase();
    found = lower.split('_').filter((part) => part && !ignored.has(part)).map((part) => stemmer(part));
    if (lower.includes('_')) found.unshift(lower);
    if (known.size < mostKnown) known.set(word, found);
  }
  return found;
}

const wordPattern = /[\p{L}\p{N}_]+/gu;
const tokenize = (text) => text.match(wordPattern) ?? [];
const allTerms = (text) => new Set(tokenize(text).flatMap(terms));

/** Opens the index. */
export function open(entries) {
  const index = new MiniSearch({ fields: ['t', 'p', 'x'], tokenize, processTerm: terms });
  index.addAll(entries.map((entry, id) => ({ ...entry, id })));
  return { index, entries, titles: entries.map((entry) => allTerms(entry.t)) };
}

const options = {
  boost: { t: 3, p: 2, x: 1 },
  prefix: (term) => term.length > 2,
  fuzzy: (term) => (term.length > 3 && !term.includes('_') ? 0.2 : false),
  weights: { fuzzy: 0.3, prefix: 0.5 },
};

/** Returns the entries that match a query, best first, each with the terms that matched. */
export function find({ index, entries, titles }, query) {
  const words = tokenize(query.toLowerCase()).flatMap((word) => tokenize(Object.hasOwn(synonyms, word) ? synonyms[word] : word));
  const asked = allTerms(words.join(' '));
  const request = `${query.trim().toLowerCase()} `; // such as POST /bookings
  const code = words.join('_'); // "slot unavailable" is slot_unavailable
  return index.search(words.join(' '), options).map((result) => {
    const entry = entries[result.id];
    const title = titles[result.id];
    const covered = [...title].filter((term) => result.terms.includes(term)).length / title.size || 0;
    const answered = new Set(result.queryTerms.filter((term) => asked.has(term))).size / asked.size;
    const exact = entry.t === code || entry.x.toLowerCase().startsWith(request) ? 10 : 1;
    return { ...entry, terms: new Set(result.terms), score: result.score * weight(entry) * answered ** 2 * (1 + covered / 2) * exact };
  }).sort((a, b) => b.score - a.score);
}

const around = 160; // characters of a text that a result shows

/** Returns a text as parts, of which those with `hit` match. A long text begins near its first match. */
export function highlight(text, found, most = around) {
  const hits = [...text.matchAll(wordPattern)].filter(([word]) => terms(word).some((term) => found.has(term)));
  let from = text.length > most ? Math.max(0, (hits[0]?.index ?? 0) - most / 3) : 0;
  if (from > 0) from = text.indexOf(' ', from) + 1;
  let to = Math.min(text.length, from + most);
  if (to < text.length) to = Math.max(text.lastIndexOf(' ', to), from + 1);
  const parts = [{ text: from > 0 ? '… ' : '' }];
  let at = from;
  for (const { 0: word, index: start } of hits) {
    if (start < at || start + word.length > to) continue;
    parts.push({ text: text.slice(at, start) }, { text: word, hit: true });
    at = start + word.length;
  }
  parts.push({ text: text.slice(at, to) + (to < text.length ? ' …' : '') });
  return parts.filter((part) => part.text);
}
