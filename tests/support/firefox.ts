/** Firefox for tests, where it is installed, over its own WebDriver BiDi: https://w3c.github.io/webdriver-bidi/ */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { nextLook } from './poll.ts';
import { type Lender, temporaryDirectory } from './temporary.ts';

const executable = ['/usr/bin/firefox-esr', '/usr/bin/firefox'].find(existsSync);

/** The reason to skip a test in Firefox, or false. */
export const withoutFirefox = executable === undefined && 'not installed: firefox-esr';

/** As long as the other browser waits for what does not come. */
const waitMsMax = 30_000;

interface Reply {
  readonly id?: number;
  readonly result?: unknown;
  readonly error?: string;
  readonly message?: string;
}

interface Tree {
  readonly contexts: readonly { readonly context: string; readonly children: Tree['contexts'] }[];
}

export interface FirefoxPage {
  goto(url: string): Promise<void>;
  /** The JSON of what the expression gives, or resolves with, in the page or in the frame with that title. */
  // biome-ignore lint/suspicious/noExplicitAny: tests assert on whatever came back
  evaluate(expression: string, frame?: string): Promise<any>;
  /** Until the expression is true. */
  until(expression: string, frame?: string): Promise<void>;
  /** Presses a key for each character, in the frame. */
  type(text: string, frame: string): Promise<void>;
}

/** A browser of its own, without a window. */
export async function openFirefox(t: Lender): Promise<FirefoxPage> {
  const profile = temporaryDirectory(t);
  const flags = ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port', '0'];
  const child = spawn(executable ?? '', flags, { stdio: ['ignore', 'ignore', 'pipe'] });
  t.after(async () => {
    if (child.exitCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  });
  const send = await connect(t, await addressOf(child.stderr));
  await send('session.new', { capabilities: {} });
  const { contexts } = (await send('browsingContext.getTree', {})) as Tree;
  const page = contexts[0]?.context ?? '';

  async function evaluateIn(context: string, expression: string): Promise<unknown> {
    const { result, exceptionDetails } = (await send('script.evaluate', {
      expression: `(async () => JSON.stringify(await (${expression})) ?? 'null')()`,
      target: { context },
      awaitPromise: true,
    })) as { result?: { value: string }; exceptionDetails?: { text: string } };
    if (!result) throw new Error(`${expression}: ${exceptionDetails?.text}`);
    return JSON.parse(result.value);
  }

  /** Looks until a frame has the title: it gets one once it is connected. */
  async function contextOf(title: string): Promise<string> {
    const end = performance.now() + waitMsMax;
    while (performance.now() < end) {
      const tree = (await send('browsingContext.getTree', { root: page })) as Tree;
      for (const { context } of tree.contexts[0]?.children ?? []) {
        if ((await evaluateIn(context, 'document.title').catch(() => '')) === title) return context;
      }
      await nextLook();
    }
    throw new Error(`no frame has the title ${title}`);
  }
  const evaluate: FirefoxPage['evaluate'] = async (expression, frame) =>
    evaluateIn(frame === undefined ? page : await contextOf(frame), expression);

  return {
    evaluate,
    goto: async (url) => {
      const go = () => send('browsingContext.navigate', { context: page, url, wait: 'complete' });
      // While the page before is closing down, Firefox now and then rejects an address that it takes later.
      const end = performance.now() + waitMsMax;
      for (;;) {
        try {
          return void (await go());
        } catch (error) {
          if (performance.now() > end) throw error;
          await nextLook();
        }
      }
    },
    until: async (expression, frame) => {
      const end = performance.now() + waitMsMax;
      while (!(await evaluate(expression, frame))) {
        if (performance.now() > end) throw new Error(`not so: ${expression}`);
        await nextLook();
      }
    },
    type: async (text, frame) => {
      const context = await contextOf(frame);
      const keys = [...text].flatMap((value) =>
        ['keyDown', 'keyUp'].map((type) => ({ type, value })),
      );
      await evaluateIn(context, "document.querySelector('input').focus()");
      const actions = [{ type: 'key', id: 'keyboard', actions: keys }];
      await send('input.performActions', { context, actions });
    },
  };
}

async function addressOf(output: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface({ input: output })) {
    const address = /WebDriver BiDi listening on (ws:\S+)/.exec(line)?.[1];
    if (address !== undefined) return `${address}/session`;
  }
  throw new Error('Firefox did not start');
}

type Send = (method: string, params: object) => Promise<unknown>;

async function connect(t: Lender, address: string): Promise<Send> {
  const socket = new WebSocket(address);
  t.after(() => socket.close());
  const waiting = new Map<number, (reply: Reply) => void>();
  socket.addEventListener('message', ({ data }) => {
    const reply: Reply = JSON.parse(String(data));
    if (reply.id !== undefined) waiting.get(reply.id)?.(reply);
  });
  await once(socket, 'open');
  return async (method, params) => {
    const id = waiting.size + 1;
    const { promise, resolve } = Promise.withResolvers<Reply>();
    waiting.set(id, resolve);
    socket.send(JSON.stringify({ id, method, params }));
    const { result, error, message } = await promise;
    if (error !== undefined) throw new Error(`${method}: ${error}: ${message}`);
    return result;
  };
}
