// An operator who forgot their password sets a new one, in a real browser. The link is mailed to the test's mail server.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { createServer } from 'node:tls';
import { launch, looks, setting, Tab } from './browser.mjs';

const origin = setting('AUTH_URL');
const email = setting('OPERATOR_EMAIL');
const passwords = [setting('OPERATOR_PASSWORD'), 'nine herons over the harbour', 'ten gulls beneath the lighthouse']; // before, after the first look, after the second

let browser, server;
const mails = []; // the recipients and the text of each message
let arrived = () => {};

before(async () => {
  browser = await launch();
  server = createServer({ cert: readFileSync(setting('MAIL_CERT')), key: readFileSync(setting('MAIL_KEY')) }, receive);
  await new Promise((done) => server.listen(Number(setting('MAIL_PORT')), '127.0.0.1', done));
});

after(async () => {
  await browser?.close();
  server?.close();
});

/** Receives messages: RFC 5321 without extensions. */
function receive(socket) {
  let rest = '';
  let mail = null; // the message of which the text is being received
  let to = [];
  const line = (text) => {
    if (mail) {
      if (text !== '.') return void mail.lines.push(text.replace(/^\./, ''));
      mails.push({ to: mail.to, text: mail.lines.join('\n') });
      mail = null;
      arrived();
      return '250 OK';
    }
    const [verb] = text.toUpperCase().split(/[\s:]/);
    if (verb === 'RCPT') to.push(text.match(/<(.*)>/)[1]);
    if (verb === 'DATA') [mail, to] = [{ to, lines: [] }, []];
    return { DATA: '354 Go on', QUIT: '221 Bye' }[verb] ?? '250 OK';
  };
  socket.on('error', () => {});
  socket.write('220 mail.test ESMTP\r\n');
  socket.on('data', (bytes) => {
    rest += bytes;
    const lines = rest.split('\r\n');
    rest = lines.pop();
    for (const one of lines) {
      const answer = line(one);
      if (answer) socket.write(`${answer}\r\n`);
      if (answer?.startsWith('221')) socket.end();
    }
  });
}

/** Returns the first message, as soon as there is one, and removes it. */
async function nextMail() {
  while (mails.length === 0) await new Promise((done) => (arrived = done));
  return mails.shift();
}

/** Enters an address and a password on the page for signing in. */
async function signIn(tab, password) {
  await tab.page.goto(`${origin}/admin`);
  await tab.page.fill('#email', email);
  await tab.page.fill('#password', password);
  await tab.page.focus('#password');
  await tab.enter();
}

const signedIn = (tab) => /\/admin\//.test(new URL(tab.page.url()).pathname);

for (const [i, look] of looks.entries()) {
  test(`a forgotten password: ${look.name}`, { timeout: 120_000 }, async () => {
    const hosts = [new URL(origin).host];
    const [was, next] = [passwords[i], passwords[i + 1]];
    const other = await Tab.open(browser, look, hosts); // a session from before
    await signIn(other, was);
    assert.ok(signedIn(other), other.page.url());

    const tab = await Tab.open(browser, look, hosts);
    const { page } = tab;
    const request = async (address) => {
      await page.goto(`${origin}/admin`);
      await tab.press('a[href="/oauth/forgot-password"]');
      await tab.check('forgot-password');
      await tab.type('#email', address);
      await tab.enter();
      await tab.check('forgot-password-sent');
      return (await tab.text()).replace(address, '…');
    };
    const unknown = await request('stranger@example.com');
    assert.equal(await request(email), unknown, 'the page tells whether an address has an account');
    const mail = await nextMail();
    assert.deepEqual(mail.to, [email], 'the link goes to another address');
    assert.equal(mails.length, 0);
    const text = Buffer.from(mail.text.replace(/=\n/g, '').replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16))), 'latin1').toString();
    const [link] = text.match(new RegExp(`${origin}/oauth/link/[\\w-]+`));

    // The old password works until the link is used.
    await page.goto(link);
    await tab.check('reset-link');
    await other.page.reload();
    assert.ok(signedIn(other), 'the request alone ended a session');
    await tab.type('#password', next);
    await tab.enter();
    await tab.check('reset-done');

    await other.page.reload();
    assert.ok(!signedIn(other), `a session from before the new password is at ${other.page.url()}`);
    await signIn(other, was);
    assert.ok(!signedIn(other), 'the old password works');
    assert.equal(await other.page.locator('[role=alert]').count(), 1);
    await signIn(tab, next);
    assert.ok(signedIn(tab), `the new password leads to ${page.url()}`);
    await page.goto(link);
    await tab.check('reset-link-used');
    assert.equal(await page.locator('#password').count(), 0, 'the link works twice');
    await other.context.close();
    await tab.context.close();
  });
}
