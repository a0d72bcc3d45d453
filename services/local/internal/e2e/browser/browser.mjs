// Shared by the tests of pages: a real Chromium, and checks that every page must pass.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { AxeBuilder } from '@axe-core/playwright';
import { chromium } from 'playwright-core';

/** Returns an environment variable that the Go test sets. */
export function setting(name) {
  const value = process.env[name];
  assert.ok(value, `${name} is not set: run the tests with make test`);
  return value;
}

/** The variants in which every page is checked: width in CSS pixels, colors, and language. */
export const looks = [
  { name: 'wide-light-en', viewport: { width: 1000, height: 900 }, colorScheme: 'light', locale: 'en-US' },
  { name: 'small-dark-de', viewport: { width: 400, height: 800 }, colorScheme: 'dark', locale: 'de-DE' },
];

/** Starts the browser. */
export const launch = () => chromium.launch({ executablePath: setting('CHROMIUM'), args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'], ignoreDefaultArgs: ['--enable-unsafe-swiftshader'] });

/** A tab, with the checks of its pages. Close its context at the end. */
export class Tab {
  /** @param look one of looks; @param hosts hosts from which a page can load files */
  static async open(browser, look, hosts) {
    const tab = new Tab();
    tab.look = look;
    tab.scripts = look.javaScriptEnabled !== false;
    tab.faults = [];
    tab.context = await browser.newContext(look);
    tab.page = await tab.context.newPage();
    tab.page.on('console', (m) => ['error', 'warning'].includes(m.type()) && !/status of 4\d\d/.test(m.text()) && tab.faults.push(m.text()));
    tab.page.on('pageerror', (e) => tab.faults.push(String(e)));
    tab.page.on('request', (r) => hosts.includes(new URL(r.url()).host) || tab.faults.push(`a request to ${r.url()}`));
    return tab;
  }

  /** Checks the page: axe finds no problems, nothing scrolls horizontally, the style and the language are correct, and the console is empty. exceptRules are rules of axe that do not apply. */
  async check(name, exceptRules = []) {
    const { violations } = await new AxeBuilder({ page: this.page }).disableRules(exceptRules).analyze();
    assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(' ')}`), [], `axe on ${name}`);
    const seen = await this.page.evaluate(() => ({
      sideways: document.documentElement.scrollWidth <= window.innerWidth ? [] : [...document.querySelectorAll('body *')]
        .filter((e) => e.getBoundingClientRect().right > window.innerWidth + 0.5)
        .map((e) => `${e.outerHTML.slice(0, 200)} ends at ${e.getBoundingClientRect().right}`),
      styled: [...document.styleSheets].some((sheet) => sheet.cssRules.length > 0),
      dark: (() => {
        const pixel = new OffscreenCanvas(1, 1).getContext('2d'); // converts any CSS color to red, green, and blue
        pixel.fillStyle = getComputedStyle(document.body).backgroundColor;
        pixel.fillRect(0, 0, 1, 1);
        const [r, g, b] = pixel.getImageData(0, 0, 1, 1).data;
        return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255 < 0.5;
      })(),
      lang: document.documentElement.lang,
      headings: document.querySelectorAll('h1').length,
    }));
    const dark = this.look.colorScheme === 'dark';
    assert.deepEqual(
      seen,
      { sideways: [], styled: true, dark, lang: this.look.locale.slice(0, 2), headings: 1 },
      name,
    );
    assert.deepEqual(this.faults, [], `faults on ${name}`);
    if (process.env.SCREENSHOTS) {
      mkdirSync(process.env.SCREENSHOTS, { recursive: true });
      await this.page.screenshot({ path: join(process.env.SCREENSHOTS, `${this.look.name}-${name}.png`), fullPage: true });
    }
  }

  /** Moves the focus, using only the Tab key, to an element that matches. The focus must be visible there. */
  async tabTo(selector) {
    for (let i = 0; i < 60; i++) {
      await this.page.keyboard.press('Tab');
      const at = await this.page.evaluate((wanted) => {
        const e = document.activeElement;
        return { there: e?.matches(wanted), visible: getComputedStyle(e).outlineStyle !== 'none' };
      }, selector);
      if (at.there) {
        assert.ok(at.visible, `the focus on ${selector} is not visible`);
        return;
      }
    }
    assert.fail(`the Tab key does not reach ${selector} on ${this.page.url()}`);
  }

  /** Replaces the text of a field by keyboard. */
  async type(selector, text) {
    await this.tabTo(selector);
    await this.page.keyboard.press('Control+A');
    await this.page.keyboard.type(text);
  }

  /** Presses a button by keyboard and waits for the next page. */
  async press(selector) {
    await this.tabTo(selector);
    await this.enter();
  }

  /** Submits the form with the focus and waits for the next page. */
  async enter() {
    const next = this.page.waitForEvent('load');
    await this.page.keyboard.press('Enter');
    await next;
  }

  /** Returns the text of the page's content. */
  text() {
    return this.page.locator('main').innerText();
  }
}
