/** A page that attacks its card fields by clicks, styles, messages, frames and files reads no digit of them. */
import assert from 'node:assert/strict';
import { after, before, suite, type TestContext, test } from 'node:test';
import { withoutBrowser } from '../support/browser.ts';
import {
  allElements,
  assertNoDigits,
  type CardFields,
  createCard,
  frameOf,
  type OpenOptions,
  type Page,
  ready,
  recording,
  startCardFields,
  typeCard,
  until,
} from '../support/card-fields.ts';
import { nextLook } from '../support/poll.ts';
import { publicApplication, withLoader } from '../support/shop.ts';
import type { Lender } from '../support/temporary.ts';
import { revealEverything } from '../support/vault.ts';

suite('Hostile pages', { skip: withoutBrowser }, () => {
  const given: (() => void | Promise<void>)[] = [];
  const lender: Lender = { after: (give) => void given.push(give) };
  let world: CardFields;

  before(async () => {
    world = await startCardFields(lender);
  });
  after(async () => {
    for (const give of given.reverse()) await give();
  });

  const secret = 'a value of its owner';
  const clipboard = { permissions: ['clipboard-read', 'clipboard-write'] };

  /** A page whose server let it show values, with one in its element `text`. */
  async function openRevealed(
    t: TestContext,
    values: readonly string[],
    { more = '', ...options }: OpenOptions & { readonly more?: string } = {},
  ): Promise<Page> {
    const { vault, key } = world;
    const elements = values.map(
      (_, at) => `<strongroom-reveal id="text${at}"></strongroom-reveal>`,
    );
    const html = withLoader(vault, `${more}${elements.join('')}${recording(key)}`);
    const { page } = await world.open(t, html, { ...clipboard, ...options });
    await ready(page, values.length);
    const server = await vault.application();
    const { nonce } = await page.evaluate('fields.sessions.create()');
    const rules = [{ ...revealEverything, permissions: ['token:read'] }];
    await vault.send('POST', '/sessions/authorize', { key: server, body: { nonce, rules } });
    for (const [at, data] of values.entries()) {
      const body = { type: 'token', data };
      const token = await vault.send('POST', '/tokens', { key: server, body });
      await page.evaluate(`byId('text${at}').show({ token: '${token.body.id}' })`);
    }
    return page;
  }

  const buttonOf = (page: Page) => page.frameLocator('#text0 iframe').locator('button');
  /** Until the browser says in the frame of the button whether a person sees it. */
  const seen = async (page: Page, isSeen: boolean) =>
    (await frameOf(page, 'text0')).evaluate(`new Promise((resolve) => {
      const setting = { threshold: 1, trackVisibility: true, delay: 100 };
      const observer = new IntersectionObserver((entries) => {
        if (entries.at(-1).isVisible !== ${isSeen}) return;
        observer.disconnect();
        resolve();
      }, setting);
      observer.observe(document.querySelector('button'));
    })`);

  /** Where the page has the button, in pixels. */
  async function clickThrough(page: Page): Promise<void> {
    const { x, y, width, height } = await buttonOf(page).boundingBox();
    await page.mouse.click(x + width / 2, y + height / 2);
  }

  const copied = async (page: Page) => {
    await page.locator('h1').click();
    return page.evaluate('navigator.clipboard.readText()');
  };

  test('a click on a bait over or under the frame of a value does not copy it', async (t) => {
    const page = await openRevealed(t, [secret], {
      more: '<div id="bait">Win a prize</div>',
    });
    await page.waitForFunction("navigator.clipboard.writeText('before').then(() => true)");
    await buttonOf(page)
      .and(page.frameLocator('#text0 iframe').locator('[aria-disabled=false]'))
      .waitFor();
    for (const [attack, undo] of [
      ["byId('text0').style.opacity = '0.01'", "byId('text0').style.opacity = ''"],
      [
        `byId('bait').style.cssText = 'position:fixed;inset:0;background:#fff;z-index:9;pointer-events:none'`,
        "byId('bait').style.cssText = ''",
      ],
      ["byId('text0').style.filter = 'contrast(0)'", "byId('text0').style.filter = ''"],
    ] as const) {
      await page.evaluate(attack);
      await seen(page, false);
      await clickThrough(page);
      assert.equal(await buttonOf(page).textContent(), 'Copy', attack);
      await page.evaluate(undo);
      await seen(page, true);
    }
    assert.equal(await copied(page), 'before');
  });

  test('a button that was uncovered a moment ago does not copy', async (t) => {
    const page = await openRevealed(t, [secret], {
      prepare: (opened: Page) => opened.clock.install(),
    });
    await page.clock.pauseAt(await page.evaluate('Date.now() + 5_000'));
    await page.evaluate("byId('text0').style.opacity = '0.01'");
    await seen(page, false);
    await page.evaluate("byId('text0').style.opacity = ''");
    await seen(page, true);
    // Until the frame has certainly heard of it as well.
    for (let looks = 0; looks < 20; looks += 1) await nextLook();
    await clickThrough(page);
    assert.equal(await buttonOf(page).textContent(), 'Copy');
    await until(async () => {
      await page.clock.runFor(500);
      return buttonOf(page).getAttribute('aria-disabled');
    }, 'false');
    await clickThrough(page);
    await page.frameLocator('#text0 iframe').getByRole('button', { name: 'Copied' }).waitFor();
  });

  test('what is in a frame is not dragged into the page', async (t) => {
    const page = await openRevealed(t, [secret], {
      more: '<textarea id="net" style="width:300px;height:100px"></textarea>',
    });
    const output = page.frameLocator('#text0 iframe').locator('output');
    await output.click({ clickCount: 3 });
    const from = await output.boundingBox();
    const net = await page.locator('#net').boundingBox();
    await page.mouse.move(from.x + 20, from.y + from.height / 2);
    await page.mouse.down();
    await page.mouse.move(net.x + 50, net.y + 50, { steps: 10 });
    await page.mouse.up();
    assert.equal(await page.locator('#net').inputValue(), '');
    const frame = await frameOf(page, 'text0');
    const isAllowed = await frame.evaluate(`document.querySelector('output')
      .dispatchEvent(new DragEvent('dragstart', { bubbles: true, cancelable: true }))`);
    assert.equal(isAllowed, false);
  });

  test('the height of a frame says no more of a value than its length', async (t) => {
    const values = ['iiii iiiiiii i iiiiii', 'WWWWWWWW WWWW WWWWWWW', '1-2,3 4.5:6 7;8 9|0 1'];
    assert.equal(new Set(values.map(({ length }) => length)).size, 1);
    const page = await openRevealed(t, values);
    for (const width of [150, 170, 190, 230, 300]) {
      await page.evaluate(`document.querySelector('main').style.width = '${width}px'`);
      const heights: number[] = [];
      for (const [at] of values.entries()) {
        const frame = await frameOf(page, `text${at}`);
        await until(() => frame.evaluate('innerWidth'), width);
        heights.push(await frame.evaluate('document.body.getBoundingClientRect().height'));
      }
      assert.equal(new Set(heights).size, 1, `${width}: ${heights}`);
    }
  });

  const connectTo = `
    const connectTo = (target, origin, version) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = ({ data }) => heard.push(version + ' ' + data.type);
      const options = {};
      const connect = { strongroom: 'connect', version, element: 'x', kind: 'card-number', options };
      target.postMessage(connect, origin, [port2]);
    };`;

  test('a frame connects to nobody but the page around it, and not in a version that it does not know', async (t) => {
    const { vault, shop, key } = world;
    // A sibling of the same origin as the page, which is listed.
    const sibling = shop.page(`<script>const heard = [];${connectTo}
      addEventListener('message', () => { connectTo(parent.frames[0], '*', 1); });
      addEventListener('message', ({ source }) => source.postMessage('tried', '*'));</script>`);
    const { page } = await world.open(
      t,
      shop.page(`<iframe id="field" src="${vault.url}/fields/v1/frame/${key}"></iframe>
        <iframe id="sibling" src="${sibling}"></iframe><script>const heard = [];${connectTo}</script>`),
    );
    await page.waitForLoadState('load');
    await page.evaluate(`new Promise((done) => {
      addEventListener('message', ({ data }) => data === 'tried' && done());
      document.getElementById('sibling').contentWindow.postMessage('try', '*');
    })`);
    const input = page.frameLocator('#field').locator('input');
    await page.evaluate("connectTo(document.getElementById('field').contentWindow, '*', 99)");
    await page.evaluate("connectTo(document.getElementById('field').contentWindow, '*', 1)");
    await input.waitFor();
    await page.waitForFunction("heard.includes('1 ready')");
    const others = await page.evaluate("heard.filter((one) => !one.startsWith('1 '))");
    assert.deepEqual(others, []);
    const siblingFrame = page.frames().find((frame: { url(): string }) => frame.url() === sibling);
    assert.deepEqual(await siblingFrame.evaluate('heard'), []);
  });

  test('a wildcard stands for one label: deeper down, a frame that is shown stays silent', async (t) => {
    const { vault } = world;
    const wild = await publicApplication(vault, ['https://*.example.test']);
    const counting = `<script>window.hellos = 0;
      addEventListener('message', ({ data }) => { hellos += data.strongroom === 'hello'; });</script>`;
    const html = withLoader(vault, allElements + recording(wild) + counting);
    const openAt = async (origin: string) => {
      const { page } = await world.open(t, `${origin}/`, {
        // Of a page that is not on this machine.
        permissions: ['local-network-access'],
        prepare: (opened: Page) =>
          opened.route(`${origin}/`, (route: { fulfill(reply: object): void }) =>
            route.fulfill({ contentType: 'text/html', body: html }),
          ),
      });
      return page;
    };
    const near = await openAt('https://shop.example.test');
    await typeCard(near);
    assert.equal((await near.evaluate(createCard)).data.number, 'XXXXXXXXXXXX4242');
    const deep = await openAt('https://a.shop.example.test');
    const frame = deep.frames().find((one: { url(): string }) => one.url().startsWith(vault.url));
    // It says hello, the page connects, and a message that comes after that has come as well.
    await deep.waitForFunction('hellos === 4');
    await frame.evaluate("addEventListener('message', ({ data }) => { globalThis.last = data; })");
    await deep.evaluate(
      "for (const { contentWindow } of document.querySelectorAll('iframe')) contentWindow.postMessage('later', '*')",
    );
    await until(() => frame.evaluate('globalThis.last'), 'later');
    assert.equal(await frame.evaluate('globalThis.strongroomController'), undefined);
    assert.deepEqual(await deep.evaluate('events'), []);
  });

  test('a file of a frame that was changed on its way does not run', async (t) => {
    const { vault, key } = world;
    const html = withLoader(
      vault,
      `<strongroom-card id="card"></strongroom-card>${recording(key)}`,
    );
    const { page, complaints } = await world.open(t, html, {
      prepare: (opened: Page) =>
        opened.route(
          /\/assets\/fields\/frame-.*\.js$/,
          async (route: {
            fetch(): Promise<{ text(): Promise<string> }>;
            fulfill(reply: object): void;
          }) => {
            const response = await route.fetch();
            const body = `globalThis.changed = true;${await response.text()}`;
            route.fulfill({ response, body });
          },
        ),
    });
    await page.waitForLoadState('load');
    const frames = page.frames().slice(1);
    assert.ok(frames.length > 0);
    for (const frame of frames) {
      await frame.waitForLoadState('load');
      assert.equal(await frame.evaluate('globalThis.changed'), undefined);
    }
    assert.ok(complaints.some((text) => /integrity|digest/.test(text)));
  });

  test('a frame leads the page nowhere, and opens no window', async (t) => {
    const { vault, key } = world;
    const { page } = await world.open(t, withLoader(vault, allElements + recording(key)));
    await typeCard(page);
    const here = page.url();
    const frame = await frameOf(page, 'number');
    const opened = await frame.evaluate(`(() => {
      const isOpen = window.open('about:blank') !== null;
      try {
        top.location.href = 'about:blank';
        return [isOpen, 'led'];
      } catch (error) {
        return [isOpen, error.name];
      }
    })()`);
    assert.deepEqual(opened, [false, 'SecurityError']);
    assert.equal(page.url(), here);
  });

  /** Notes whatever passes through functions of the page. */
  const spy = `
    window.seen = [];
    const note = (value) => {
      try { seen.push(typeof value === 'string' ? value : JSON.stringify(value)); } catch {}
    };
    const spied = [[MessagePort.prototype, 'postMessage'], [window, 'postMessage'], [window, 'fetch'],
      [window, 'structuredClone'], [XMLHttpRequest.prototype, 'send'], [Navigator.prototype, 'sendBeacon'],
      [Object, 'entries'], [Object, 'fromEntries'], [Object, 'assign'], [Array.prototype, 'map'],
      [Array.prototype, 'push'], [Map.prototype, 'set'], [Map.prototype, 'get'], [JSON, 'parse'],
      [Promise.prototype, 'then'], [Element.prototype, 'setAttribute'], [String.prototype, 'replace'],
      [EventTarget.prototype, 'dispatchEvent'], [Crypto.prototype, 'randomUUID'], [Storage.prototype, 'setItem']];
    for (const [owner, name] of spied) {
      const real = owner[name];
      let isNoting = false;
      owner[name] = function (...given) {
        const result = real.apply(this, given);
        if (isNoting) return result;
        isNoting = true;
        for (const one of [...given, result]) { note(one); note(one?.detail); note(one?.data); }
        isNoting = false;
        return result;
      };
    }
    const listen = EventTarget.prototype.addEventListener;
    EventTarget.prototype.addEventListener = function (type, heard, options) {
      return listen.call(this, type, function (event) {
        note(event.data);
        note(event.detail);
        return heard?.call(this, event);
      }, options);
    };
    const described = Object.getOwnPropertyDescriptor(MessagePort.prototype, 'onmessage');
    Object.defineProperty(MessagePort.prototype, 'onmessage', { ...described, set(heard) {
      described.set.call(this, (event) => { note(event.data); heard(event); }); } });
    for (const type of ['keydown', 'keyup', 'keypress', 'input', 'beforeinput', 'paste', 'copy', 'message', 'error'])
      listen.call(window, type, (event) => note([event.key, event.data, event.target?.value, event.message]), true);`;

  for (const when of [
    'before the loader',
    'after the loader',
    'once the fields are there',
  ] as const) {
    test(`a page whose functions are replaced ${when} sees no digit`, async (t) => {
      const { vault, key } = world;
      const script = `<script>${spy}</script>`;
      const loaded = withLoader(vault, allElements);
      const html = {
        'before the loader': script + loaded + recording(key),
        'after the loader': loaded + script + recording(key),
        'once the fields are there': loaded + recording(key),
      }[when];
      const { page, complaints } = await world.open(t, html);
      await ready(page, 3);
      if (when === 'once the fields are there') await page.addScriptTag({ content: spy });
      await typeCard(page);
      await page.evaluate(createCard);
      await page.evaluate(
        `${createCard.replace("type: 'card'", "type: 'nothing'")}.catch(() => 0)`,
      );
      const everything =
        await page.evaluate(`JSON.stringify([seen, events, document.documentElement.outerHTML,
        history.state, history.length, location.href, { ...localStorage }, { ...sessionStorage },
        document.cookie, performance.getEntries().map((entry) => entry.name)])`);
      assert.ok(everything.includes('"complete\\":true'), 'the spy hears the fields');
      assertNoDigits(everything + complaints.join(' '));
      assert.ok(!/"key":"[0-9]"|\["[0-9]",null/.test(everything), 'keys that were pressed');
    });
  }

  test('a prototype that the page changed, or names in a request, changes no request', async (t) => {
    const { vault, key } = world;
    const { page } = await world.open(t, withLoader(vault, allElements + recording(key)));
    await typeCard(page);
    await page.evaluate(`Object.assign(Object.prototype, { idempotencyKey: 'x', part: 'year', mask: '{{ data }}',
      id: '{{ data.number }}', session: 'key', places: [{ path: ['id'], element: byId('number').elementId }] })`);
    const token = await page.evaluate(createCard);
    assert.deepEqual([token.data.number, token.data.expiration_year], ['XXXXXXXXXXXX4242', 2030]);
    assertNoDigits(JSON.stringify(token));
    await page.evaluate(
      'for (const name of Object.keys(Object.prototype)) delete Object.prototype[name]',
    );
    // A place that leads to a prototype, as only a page can write it that changes messages.
    await page.evaluate(`(() => {
      const { postMessage } = MessagePort.prototype;
      MessagePort.prototype.postMessage = function (message, ...more) {
        for (const place of message?.request?.places ?? []) place.path = ['data', '__proto__', 'number'];
        return postMessage.call(this, message, ...more);
      };
    })()`);
    const misled = await page.evaluate(`${createCard}.then(() => 0, ({ status }) => status)`);
    assert.equal(misled, 400);
    for (const frame of page.frames()) {
      assert.equal(await frame.evaluate('({}).number'), undefined);
    }
  });
});
