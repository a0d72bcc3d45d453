// The developer portal in a real browser: guides, errors, search, and the API reference with a request from the page.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, setting, Tab } from './browser.mjs';

const address = setting('AUTH_URL');
const hosts = [new URL(address).host];
const looks = [
  { name: 'wide-light', viewport: { width: 1440, height: 900 }, colorScheme: 'light', locale: 'en-US' },
  { name: 'small-dark', viewport: { width: 400, height: 800 }, colorScheme: 'dark', locale: 'en-US' },
];
const pages = ['/', '/docs', '/docs/quickstart', '/docs/webhooks', '/docs/retries', '/docs/taxes', '/docs/migrate-square', '/docs/errors', '/docs/nothing',
  '/docs/cli', '/docs/sdk-go', '/docs/sdk-typescript-reference', '/docs/connect-stripe', '/docs/changelog', '/docs/search?q=webhook'];
// Rules that Scalar's own elements break: the name of a button differs from its text, and regions have the same name.
const scalarFaults = ['label-content-name-mismatch', 'landmark-unique'];
const mostBytes = 100_000; // of the first paint of a guide

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

/** Runs f in a tab of a look. */
async function inTab(look, f) {
  const tab = await Tab.open(browser, look, hosts);
  try {
    await f(tab);
  } finally {
    await tab.context.close();
  }
}

for (const look of looks) {
  test(`pages, ${look.name}`, () => inTab(look, async (tab) => {
    for (const path of pages) {
      await tab.page.goto(address + path);
      if (path.includes('search')) await tab.page.waitForSelector('#results li');
      await tab.check(path.replace(/\W+/g, '-'));
    }
  }));

  test(`the API reference, ${look.name}`, () => inTab(look, async (tab) => {
    await tab.page.goto(`${address}/docs/reference#tag/account/GET/me`);
    const operation = tab.page.locator('[id="api-1/tag/account/GET/me"]');
    await operation.waitFor();
    await tab.page.waitForTimeout(1000); // it loads the rest of the page
    await tab.check('reference', scalarFaults);
    // A request from the page, with a key that only this tab has.
    await operation.getByRole('button', { name: /Test Request/ }).first().click();
    const client = tab.page.getByRole('dialog');
    const key = client.getByPlaceholder('Token', { exact: true }).first();
    await key.waitFor();
    await key.fill(setting('API_KEY'));
    const sent = tab.page.waitForResponse((r) => r.url().endsWith('/api/v1/me'));
    await tab.page.keyboard.press('Control+Enter');
    const response = await sent;
    assert.equal(response.status(), 200);
    assert.equal((await response.json()).mode, 'test');
    const stored = await tab.page.evaluate(() => JSON.stringify({ ...localStorage }) + JSON.stringify({ ...sessionStorage }) + document.cookie);
    assert.ok(!stored.includes(setting('API_KEY')), 'the key is stored');
    await tab.page.keyboard.press('Escape');
    // The dialog of an operation with a body has an editor.
    await tab.page.goto(`${address}/docs/reference#tag/customers/POST/customers`);
    await tab.page.locator('[id="api-1/tag/customers/POST/customers"]').getByRole('button', { name: /Test Request/ }).first().click();
    await client.locator('.cm-editor').first().waitFor();
    assert.deepEqual(tab.faults, []);
  }));
}

test('the first paint of a guide is small', () => inTab(looks[0], async (tab) => {
  const client = await tab.context.newCDPSession(tab.page);
  await client.send('Network.enable');
  let bytes = 0;
  client.on('Network.loadingFinished', (event) => { bytes += event.encodedDataLength; });
  await tab.page.goto(`${address}/docs/quickstart`, { waitUntil: 'networkidle' });
  assert.ok(bytes > 5_000 && bytes < mostBytes, `${bytes} bytes`);
  console.log(`the first paint of the quick start transfers ${bytes} bytes`);
}));

test('the language of the snippets, by keyboard, on all pages', () => inTab(looks[0], async (tab) => {
  await tab.page.goto(`${address}/docs/quickstart`);
  const shown = () => tab.page.evaluate(() => [...document.querySelectorAll('.tabs pre')].filter((e) => e.offsetParent).map((e) => e.dataset.language));
  assert.deepEqual([...new Set(await shown())], ['bash']);
  await tab.page.locator('.tabs input').first().focus();
  await tab.page.keyboard.press('ArrowRight');
  await tab.page.keyboard.press('ArrowRight');
  assert.deepEqual([...new Set(await shown())], ['ts']);
  await tab.page.goto(`${address}/docs/retries`);
  assert.deepEqual([...new Set(await shown())], ['ts']);
}));

test('the search, by keyboard', () => inTab(looks[0], async (tab) => {
  await tab.page.goto(`${address}/docs`);
  await tab.page.keyboard.press('Tab');
  assert.equal(await tab.page.evaluate(() => document.activeElement.textContent), 'Skip to the content');
  await tab.page.keyboard.press('/');
  await tab.page.keyboard.type('slot_unavailable');
  await tab.page.keyboard.press('Enter');
  await tab.page.waitForURL(/\/docs\/search\?q=slot_unavailable/);
  await tab.page.waitForSelector('#results a');
  await tab.tabTo('#results a');
  assert.equal(await tab.page.evaluate(() => document.activeElement.textContent), 'slot_unavailable');
  await tab.page.keyboard.press('Enter');
  await tab.page.waitForURL(/\/docs\/errors#slot_unavailable/);
  await tab.page.goto(`${address}/docs/search?q=create+a+booking`);
  const link = tab.page.locator('#results a', { hasText: /^Create a booking$/ }).first();
  await link.click();
  await tab.page.locator('[id="api-1/tag/bookings/POST/bookings"]').waitFor();
}));

test('the suggestions below the search field', () => inTab(looks[0], async (tab) => {
  const loaded = [];
  tab.page.on('request', (request) => loaded.push(new URL(request.url()).pathname));
  await tab.page.goto(`${address}/docs/limits`, { waitUntil: 'networkidle' });
  assert.ok(!loaded.includes('/docs/search.json'), 'the index is loaded before someone searches');
  const field = tab.page.locator('#search');
  const option = tab.page.locator('#suggestions [role=option]').first();
  for (const [query, page] of [
    ['how do I verify a webhok signatur', '/docs/webhooks#receive-events'], ['test credit card', '/docs/payments#test-cards'],
    ['install python sdk', '/docs/sdk-python'], ['double booking', '/docs/availability#how-slots-are-made'],
  ]) {
    await tab.page.goto(`${address}/docs/limits`);
    await tab.page.keyboard.press('/');
    await tab.page.keyboard.type(query);
    await tab.page.locator(`#suggestions [data-url="${page}"]`).first().waitFor();
    assert.equal(await option.getAttribute('data-url'), page, query);
    assert.ok(await option.locator('mark').count() > 0, 'no word is marked');
    assert.equal(await field.getAttribute('aria-expanded'), 'true');
    await tab.page.keyboard.press('ArrowDown');
    assert.equal(await field.getAttribute('aria-activedescendant'), await option.getAttribute('id'));
    await tab.check(`suggestions-${page.replace(/\W+/g, '-')}`);
    await tab.page.keyboard.press('Enter');
    await tab.page.waitForURL(address + page);
  }
  await tab.page.goto(`${address}/docs/limits`);
  await field.click();
  await tab.page.keyboard.type('webhook');
  await option.waitFor();
  await tab.page.keyboard.press('Escape');
  assert.ok(await option.isHidden());
  assert.equal(await field.getAttribute('aria-expanded'), 'false');
}));

test('without scripts', () => inTab({ ...looks[0], javaScriptEnabled: false }, async (tab) => {
  await tab.page.goto(`${address}/docs/quickstart`);
  await tab.page.locator('label', { hasText: 'Python' }).first().click();
  assert.ok(await tab.page.locator('.tabs pre[data-language=python]').first().isVisible());
  await tab.page.getByRole('link', { name: 'Webhooks', exact: true }).first().click();
  assert.equal(await tab.page.locator('h1').textContent(), 'Webhooks');
}));
