// The work of an operator in the operators' area: signing in, following links, and filling in forms, by mouse or by keyboard.
import { setting, Tab } from './browser.mjs';

const origin = setting('AUTH_URL');

/** The password of every operator in the tests. */
export const password = 'seven herons over the harbour';

/** Signs in an invited operator and returns the tab with the first page of the tenant. Pages can also load files from hosts. */
export async function enter(browser, operator, look, hosts = []) {
  const tab = await Tab.open(browser, look, [new URL(origin).host, ...hosts]);
  await tab.page.goto(operator.link);
  await tab.page.fill('#password', password);
  await tab.page.press('#password', 'Enter');
  await tab.page.waitForLoadState();
  await tab.page.goto(`${origin}/admin`);
  await tab.page.fill('#email', operator.email);
  await tab.page.fill('#password', password);
  await tab.page.press('#password', 'Enter');
  await tab.page.waitForURL(`**/admin/${operator.slug}/test/today`);
  return tab;
}

/** Fills in and submits forms by mouse or only by keyboard. */
export class Hand {
  constructor(tab, keyboard) {
    Object.assign(this, { tab, keyboard, page: tab.page });
  }

  /** Follows a link or presses a button with this text, inside the element of the selector. */
  async go(text, inside = 'main') {
    const target = this.page.locator(inside).locator('a, button, summary').filter({ hasText: new RegExp(`^\\s*${text}\\s*$`) }).filter({ visible: true }).first();
    await target.waitFor();
    const next = this.page.waitForEvent('load');
    if (this.keyboard) {
      await target.focus();
      await this.page.keyboard.press('Enter');
    } else {
      await target.click();
    }
    await next;
  }

  /** Opens a page of the navigation. */
  open(name) {
    return this.go(name, 'aside');
  }

  /** Fills in a form. The keys of fields are the names in the form. */
  async fill(fields) {
    for (const [name, value] of Object.entries(fields)) {
      const field = this.page.locator(`main [name="${name}"]:not([type=hidden])`).first();
      const kind = await field.evaluate((e) => (e.tagName === 'SELECT' ? 'select' : e.type));
      if (kind === 'select') {
        await field.selectOption({ label: value });
      } else if (kind === 'checkbox') {
        const box = this.page.locator('main label').filter({ hasText: value }).locator(`[name="${name}"]`).first();
        if (this.keyboard) {
          await box.focus();
          await this.page.keyboard.press('Space');
        } else {
          await box.check();
        }
      } else if (this.keyboard && kind === 'text') {
        await field.focus();
        await this.page.keyboard.type(value);
      } else {
        await field.fill(value);
      }
    }
  }

  /** Returns the text of the page's content. */
  text() {
    return this.page.locator('main').innerText();
  }
}

/** Returns the day that many days from now, as YYYY-MM-DD. */
export const day = (n) => new Date(Date.now() + n * 86_400_000).toISOString().slice(0, 10);
