// The printed pages of the operators' area in a real browser: the calendar of a week and of a day, the guests of a departure, and a
// booking. Navigation, forms and buttons are not printed, and everything else is, without being cut off.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, setting } from './browser.mjs';
import { day, enter } from './hand.mjs';

const origin = setting('AUTH_URL');
const desk = JSON.parse(setting('DESK')); // email, slug, link, API key
const monday = day(21 + ((8 - new Date(Date.now() + 21 * 86_400_000).getUTCDay()) % 7));
const weekday = (n) => new Date(Date.parse(monday) + n * 86_400_000).toISOString().slice(0, 10);
const notes = Array.from({ length: 40 }, (_, i) => `Note ${i + 1} about the berth.`).join(' ');

/** The printable area of A4 with the margins of the style sheet, in CSS pixels. */
const paper = { landscape: { width: 1062, height: 733 }, portrait: { width: 703, height: 1031 } };

let browser, tab, departure, booking;
const expected = { week: [], day: [], guests: [] };

/** Creates a resource through the API. */
async function make(path, body) {
  const res = await fetch(`${origin}/api/v1${path}`, {
    method: 'POST', headers: { Authorization: `Bearer ${desk.key}`, 'Content-Type': 'application/json', 'Idempotency-Key': randomBytes(12).toString('hex') }, body: JSON.stringify(body),
  });
  const text = await res.text();
  assert.ok(res.ok, `POST ${path}: ${res.status} ${text}`);
  return JSON.parse(text);
}

before(async () => {
  browser = await launch();
  tab = await enter(browser, desk, { viewport: { width: 1280, height: 900 }, locale: 'en-GB', name: 'print' });
  const service = await make('/services', { name: 'Harbour tour', duration_minutes: 60 });
  const person = (first_name, last_name) => make('/customers', { first_name, last_name, email: `${randomBytes(6).toString('hex')}@example.com` });
  const names = [['Ada', 'Harbour'], ['Maximilian', 'Oberdorf'], ['Bo', 'Li']];
  const customers = await Promise.all(names.map((n) => person(...n)));
  const units = [];
  for (const name of ['Gull', 'Königin-Elisabeth-Fähre', 'Heron']) units.push(await make('/units', { name, service_ids: [service.id] }));
  for (const [i, unit] of units.entries()) {
    for (const [hour, minutes] of [[8, 30], [9, 60], [13, 60], [18, 240]]) { // from short to long
      const starts_at = `${weekday(1)}T${String(hour).padStart(2, '0')}:00:00Z`;
      const ends_at = new Date(Date.parse(starts_at) + minutes * 60_000).toISOString();
      await make('/bookings', { unit_id: unit.id, service_id: service.id, customer_id: customers[i].id, starts_at, ends_at, status: 'confirmed' });
    }
    expected.day.push(unit.name, names[i].join(' '));
  }
  await make('/bookings', { unit_id: units[0].id, customer_id: customers[1].id, starts_at: `${weekday(2)}T12:00:00Z`, ends_at: `${weekday(5)}T10:00:00Z`, status: 'confirmed' });
  await make('/bookings', { unit_id: units[2].id, customer_id: customers[0].id, event_date: weekday(3), hold_minutes: 600 });
  booking = await make('/bookings', { unit_id: units[1].id, customer_id: customers[1].id, event_date: weekday(4), event_type: 'wedding', guest_count: 12, notes, status: 'confirmed' });
  const seats = await make('/units', { name: 'Walk', service_ids: [service.id], booking_mode: 'seats', capacity: 100, opening_hours: { tue: [['10:00', '12:00']] } });
  for (let i = 0; i < 40; i++) {
    const guest = await person('Guest', `Number-${i + 1}`);
    const b = await make('/bookings', { unit_id: seats.id, service_id: service.id, customer_id: guest.id, event_date: weekday(1), event_start_time: '10:00', guest_count: 2, status: 'confirmed' });
    departure = { unit_id: seats.id, starts_at: b.starts_at };
    expected.guests.push(b.number, `Guest Number-${i + 1}`);
  }
  expected.day.push('Walk', '80/100');
  expected.week = [...expected.day];
}, { timeout: 120_000 });

after(() => browser?.close());

/** Opens a page as it is printed on A4, checks the number of sheets, and returns the controls, the cut texts and the text of the page. */
async function printed(path, name, format, sheets) {
  const { page } = tab;
  await page.emulateMedia({ media: 'screen' });
  await page.goto(`${origin}/admin/${desk.slug}/test/${path}`);
  await page.emulateMedia({ media: 'print' });
  await page.setViewportSize(paper[format]);
  const pdf = await page.pdf({ preferCSSPageSize: true, format: 'A4' });
  if (process.env.SCREENSHOTS) {
    mkdirSync(process.env.SCREENSHOTS, { recursive: true });
    await page.screenshot({ path: join(process.env.SCREENSHOTS, `print-${name}.png`), fullPage: true });
    writeFileSync(join(process.env.SCREENSHOTS, `print-${name}.pdf`), pdf);
  }
  const [, width, height] = pdf.toString('latin1').match(/\/MediaBox\s*\[0 0 ([\d.]+) ([\d.]+)\]/);
  assert.equal(pdf.toString('latin1').match(/\/Type\s*\/Page\b/g).length, sheets, `sheets of ${name}`);
  assert.equal(Number(width) > Number(height) ? 'landscape' : 'portrait', format, `${name} is printed on ${width} by ${height}`);
  return page.evaluate(() => {
    const shown = (e) => e.checkVisibility({ visibilityProperty: true }) && e.getClientRects().length > 0;
    const controls = [...document.querySelectorAll('header, aside, nav, form, button, input, select, .btn, .skip, .grip')].filter(shown).map((e) => e.outerHTML.slice(0, 150));
    const cut = [];
    const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode;
      const parent = text.parentElement;
      if (!text.data.trim() || !shown(parent) || parent.closest('.sr-only')) continue;
      const range = document.createRange();
      range.selectNodeContents(text);
      for (const r of range.getClientRects()) {
        if (r.left < -1 || r.right > window.innerWidth + 1) cut.push(`${text.data.trim()} ends at ${r.right} of ${window.innerWidth}`);
        let block = parent;
        while (getComputedStyle(block).display === 'inline') block = block.parentElement;
        if (r.right > block.getBoundingClientRect().right + 1) cut.push(`${text.data.trim()} extends beyond ${block.outerHTML.slice(0, 100)}`);
        for (let box = parent; box.id !== 'content'; box = box.parentElement) {
          const style = getComputedStyle(box);
          const b = box.getBoundingClientRect();
          const hides = (overflow, outside) => overflow !== 'visible' && outside > 1;
          if (hides(style.overflowX, Math.max(b.left - r.left, r.right - b.right)) || hides(style.overflowY, Math.max(b.top - r.top, r.bottom - b.bottom))) {
            cut.push(`${text.data.trim()} is cut off by ${box.outerHTML.slice(0, 100)}`);
          }
        }
      }
    }
    let generated = ''; // the text of pseudo-elements
    for (const e of [...document.querySelectorAll('main *')].filter(shown)) {
      const { content } = getComputedStyle(e, '::after');
      if (content === 'none' || content === 'normal') continue;
      generated += ` ${content}`;
      if (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1) cut.push(`${content} is cut off by ${e.outerHTML.slice(0, 100)}`);
    }
    return { controls, cut: [...new Set(cut)], text: document.querySelector('main').innerText + generated };
  });
}

/** Checks that a printed page shows all texts. */
async function check(path, name, format, sheets, texts) {
  const seen = await printed(path, name, format, sheets);
  assert.deepEqual({ controls: seen.controls, cut: seen.cut }, { controls: [], cut: [] }, name);
  const flat = seen.text.replace(/\s+/g, ' ');
  assert.deepEqual(texts.filter((t) => !flat.includes(t)), [], `${name} lacks texts: ${flat}`);
}

test('the calendar of a week', () => check(`calendar?view=week&date=${monday}`, 'week', 'landscape', 1, expected.week));

test('the calendar of a day', () => check(`calendar?view=day&date=${weekday(1)}`, 'day', 'landscape', 1, expected.day));

test('the guests of a departure', () => check(`departure?${new URLSearchParams(departure)}`, 'departure', 'portrait', 2, ['80 of 100 seats taken', ...expected.guests]));

test('a booking', () => check(`bookings/${booking.id}`, 'booking', 'portrait', 2, [booking.number, 'Maximilian Oberdorf', 'Königin-Elisabeth-Fähre', 'wedding', notes]));
