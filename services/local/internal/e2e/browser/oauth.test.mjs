// Operators and apps in a real browser, with a generic client library for the RFCs (oauth4webapi): each page by keyboard, and the complete
// flow of an app.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import * as oauth from 'oauth4webapi';
import { launch, looks, setting, Tab } from './browser.mjs';

const issuer = new URL(setting('AUTH_URL'));
const api = setting('BASE_URL');
const client = { client_id: setting('OAUTH_CLIENT_ID') };
const operators = JSON.parse(setting('OPERATORS')); // an operator without a password for each look: email, link, role
const plain = { [oauth.allowInsecureRequests]: true }; // the tests use http
const password = 'seven herons over the harbour';

let browser, server, redirect, arrived;

before(async () => {
  browser = await launch();
  server = createServer((req, res) => {
    res.end('<!doctype html><title>Back at the app</title>');
    if (req.url.startsWith('/callback')) arrived?.(new URL(req.url, redirect));
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  redirect = `http://127.0.0.1:${server.address().port}/callback`;
});

after(async () => {
  await browser?.close();
  server?.close();
});

/** Returns the next response of the authorization server to the app. */
const answer = () => new Promise((done) => (arrived = done));

/** Prepares the app's authorization request: RFC 6749, section 4.1.1, with RFC 7636. If pushed is set, it is pushed first: RFC 9126. */
async function ask(as, scope, pushed = false) {
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const url = new URL(as.authorization_endpoint);
  let params = new URLSearchParams({
    response_type: 'code', client_id: client.client_id, redirect_uri: redirect, scope, state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256',
  });
  if (pushed) {
    const answer = await oauth.pushedAuthorizationRequest(as, client, oauth.None(), params, plain);
    const { request_uri } = await oauth.processPushedAuthorizationResponse(as, client, answer);
    params = new URLSearchParams({ client_id: client.client_id, request_uri });
  }
  url.search = params;
  return { url: url.href, state, verifier };
}

/** Returns a code of RFC 6238, as authenticator apps generate it. */
function totp(secret, at = Date.now()) {
  const bits = [...secret.replace(/\s/g, '')].map((c) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(c).toString(2).padStart(5, '0')).join('');
  const key = Buffer.from(bits.match(/.{8}/g).map((b) => parseInt(b, 2)));
  const count = Buffer.alloc(8);
  count.writeBigUInt64BE(BigInt(Math.floor(at / 30_000)));
  const mac = createHmac('sha1', key).update(count).digest();
  return String((mac.readUInt32BE(mac[19] & 15) & 0x7fffffff) % 1_000_000).padStart(6, '0');
}

for (const [i, look] of looks.entries()) {
  test(`an operator allows an app to act on their behalf: ${look.name}`, async () => {
    const operator = operators[i];
    const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...plain }));
    const resource = await oauth.processResourceDiscoveryResponse(new URL(api), await oauth.resourceDiscoveryRequest(new URL(api), plain));
    assert.deepEqual(resource.authorization_servers, [as.issuer]);
    const tab = await Tab.open(browser, look, [issuer.host, new URL(redirect).host]);
    const { page } = tab;

    // The one-time link sets the password.
    await page.goto(operator.link);
    await tab.check('link');
    await tab.type('#password', 'password1234');
    await tab.enter();
    await tab.check('link-common');
    assert.match(await page.locator('[role=alert]').innerText(), look.locale === 'de-DE' ? /häufigsten/ : /most common/);
    await tab.type('#password', password);
    await tab.enter();
    await tab.check('link-done');
    await page.goto(operator.link);
    await tab.check('link-gone');

    // The app redirects the operator to the sign-in and to the consent.
    const wanted = ['read:bookings', 'write:bookings', 'write:webhooks'];
    const request = await ask(as, wanted.join(' '));
    await page.goto(request.url);
    await tab.check('sign-in');
    await tab.type('#email', operator.email);
    await tab.type('#password', 'not the password');
    await tab.enter();
    await tab.check('sign-in-wrong');
    assert.equal(await page.locator('[role=alert]').count(), 1);
    assert.equal(await page.locator('#email').inputValue(), operator.email);
    await tab.type('#password', password);
    await tab.enter();
    await tab.check('consent');
    const asked = await tab.text();
    for (const word of ['Demo app', '127.0.0.1', operator.email, ...wanted]) assert.ok(asked.includes(word), `${word} is not in ${asked}`);
    assert.equal(await page.locator('#mode').inputValue(), 'test');
    await tab.tabTo('#mode');
    let back = answer();
    await tab.press('button[value=allow]');
    const params = oauth.validateAuthResponse(as, client, await back, request.state);

    // The app exchanges the code, calls the API, and refreshes. A token that is used twice ends its access.
    const exchanged = await oauth.authorizationCodeGrantRequest(as, client, oauth.None(), params, redirect, request.verifier, plain);
    const first = await oauth.processAuthorizationCodeResponse(as, client, exchanged);
    const given = operator.role === 'staff' ? wanted.slice(0, 2) : wanted;
    assert.deepEqual(first.scope.split(' ').sort(), given);
    const me = async (token) => (await oauth.protectedResourceRequest(token, 'GET', new URL(`${api}/me`), undefined, undefined, plain)).json();
    const { mode, scopes, type } = await me(first.access_token);
    assert.deepEqual({ mode, type, scopes: scopes.sort() }, { mode: 'test', type: 'oauth', scopes: given });
    const refresh = async (token) =>
      oauth.processRefreshTokenResponse(as, client, await oauth.refreshTokenGrantRequest(as, client, oauth.None(), token, plain));
    const second = await refresh(first.refresh_token);
    assert.equal((await me(second.access_token)).mode, 'test');
    await assert.rejects(refresh(first.refresh_token), (e) => e instanceof oauth.ResponseBodyError && e.error === 'invalid_grant');
    await assert.rejects(me(second.access_token), (e) => e instanceof oauth.WWWAuthenticateChallengeError && e.status === 401);

    // The operator refuses: the app gets an error.
    const refused = await ask(as, 'read:bookings');
    await page.goto(refused.url);
    back = answer();
    await tab.press('button[value=deny]');
    const denial = await back;
    assert.throws(
      () => oauth.validateAuthResponse(as, client, denial, refused.state),
      (e) => e instanceof oauth.AuthorizationResponseError && e.error === 'access_denied',
    );

    // The operator revokes an app's access in their account.
    const again = await ask(as, 'read:bookings', true);
    await page.goto(again.url);
    back = answer();
    await tab.press('button[value=allow]');
    const code = oauth.validateAuthResponse(as, client, await back, again.state);
    const granted = await oauth.processAuthorizationCodeResponse(
      as, client, await oauth.authorizationCodeGrantRequest(as, client, oauth.None(), code, redirect, again.verifier, plain),
    );
    assert.equal((await me(granted.access_token)).mode, 'test');
    await page.goto(`${issuer.origin}/oauth/account`);
    await tab.check('account');
    assert.match(await tab.text(), /Chrome \S+ Linux/);
    await tab.press('button[value=end_grant]');
    await assert.rejects(me(granted.access_token), (e) => e instanceof oauth.WWWAuthenticateChallengeError);

    // A second factor: set up, requested, and replaced by a recovery code.
    await tab.press('button[value=factor_begin]');
    await tab.check('factor-begin');
    const secret = await page.locator('code.key').innerText();
    await tab.type('#code', totp(secret));
    await tab.enter();
    await tab.check('factor-set');
    const recovery = (await page.locator('ul.plain').first().locator('code').allInnerTexts())[0];
    await tab.press('form[action="/oauth/sign-out"] button');
    await tab.check('signed-out');
    await page.goto((await ask(as, 'read:bookings')).url);
    await tab.type('#email', operator.email);
    await tab.type('#password', password);
    await tab.enter();
    await tab.check('second-factor');
    await tab.type('#code', '000000');
    await tab.enter();
    await tab.check('second-factor-wrong');
    await tab.type('#code', recovery);
    await tab.enter();
    assert.equal(await page.locator('button[value=allow]').count(), 1);

    // Another account can be used for the same request.
    await tab.press('a[href^="/oauth/sign-in"]');
    assert.equal(await page.locator('#password').count(), 1);

    // An error of an app is shown to the person without a redirect.
    await page.goto(`${as.authorization_endpoint}?client_id=app_unknown&redirect_uri=${encodeURIComponent(redirect)}`);
    await tab.check('error');
    assert.equal(new URL(page.url()).host, issuer.host);
    await tab.context.close();
  });
}

// The pages are available in four languages. The browser's preferences select one.
test('the languages of the pages', async () => {
  for (const locale of ['en-GB', 'de-AT', 'es-MX', 'fr-FR']) {
    const tab = await Tab.open(browser, { ...looks[0], name: locale, locale }, [issuer.host]);
    await tab.page.goto(`${issuer.origin}/oauth/sign-in`);
    await tab.check('sign-in');
    await tab.context.close();
  }
});

// An app in a web page exchanges its code and calls the API with scripts of its own origin. Scripts of other origins cannot.
test('an app that runs in a page', async () => {
  const [host, port] = setting('PAGE_ADDRESS').split(':');
  const clientID = setting('PAGE_CLIENT_ID');
  const own = createServer((_, res) => res.end('<!doctype html><title>The app</title>'));
  await new Promise((done) => own.listen(port, host, done));
  const tab = await Tab.open(browser, looks[0], [issuer.host, `${host}:${port}`, new URL(redirect).host]);
  const { page } = tab;
  const verifier = oauth.generateRandomCodeVerifier();
  const url = new URL('/oauth/authorize', issuer);
  url.search = new URLSearchParams({
    response_type: 'code', client_id: clientID, redirect_uri: `http://${host}:${port}/callback`, scope: 'read:bookings', state: 'x',
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256',
  });
  await page.goto(url.href);
  await tab.type('#email', setting('OPERATOR_EMAIL'));
  await tab.type('#password', setting('OPERATOR_PASSWORD'));
  await tab.enter();
  await tab.press('button[value=allow]');
  assert.equal(new URL(page.url()).host, `${host}:${port}`);
  const form = { grant_type: 'authorization_code', client_id: clientID, code: new URL(page.url()).searchParams.get('code'), code_verifier: verifier };
  const send = async ({ address, form, token, method }) => {
    try {
      const res = await fetch(address, {
        method, body: form && new URLSearchParams(form), headers: token ? { Authorization: `Bearer ${token}`, 'Idempotency-Key': 'x' } : {},
      });
      return { status: res.status, requestID: res.headers.get('X-Request-Id'), body: await res.json() };
    } catch (e) {
      return { refused: String(e) };
    }
  };
  const token = new URL('/oauth/token', issuer).href;
  const first = await page.evaluate(send, { address: token, form, method: 'POST' });
  assert.equal(first.status, 200, JSON.stringify(first));
  const me = await page.evaluate(send, { address: `${api}/me`, token: first.body.access_token, method: 'GET' });
  assert.equal(me.status, 200, JSON.stringify(me));
  assert.match(me.requestID, /^req_/);
  const forbidden = await page.evaluate(send, { address: `${api}/customers`, token: first.body.access_token, method: 'POST' });
  assert.equal(forbidden.status, 403, JSON.stringify(forbidden));
  const again = await page.evaluate(send, { address: token, form, method: 'POST' });
  assert.deepEqual([again.status, again.body?.error], [400, 'invalid_grant']);

  await page.goto(`${redirect.replace('/callback', '/elsewhere')}`);
  for (const request of [{ address: token, form, method: 'POST' }, { address: `${api}/me`, token: first.body.access_token, method: 'GET' }]) {
    const answer = await page.evaluate(send, request);
    assert.match(answer.refused ?? '', /Failed to fetch/, JSON.stringify(answer));
  }
  await tab.context.close();
  own.close();
});
