/**
 * Receivers of webhooks when deliveries are measured, in a process of its own: over TLS, each path another one. On a
 * second port it is asked to hold responses back, to give them, and what has arrived.
 */
import { readFileSync } from 'node:fs';
import { createServer as createControl, type ServerResponse } from 'node:http';
import { createServer } from 'node:https';

const { RECEIVERS_PORT, RECEIVERS_TLS_PORT, RECEIVERS_CERT, RECEIVERS_KEY } = process.env;
const textOf = (path: string | undefined) => readFileSync(path ?? '', 'utf8');

let held: ServerResponse[] | undefined;
let arrived = 0;
let milliseconds: number[] = [];
/** Which of several deliveries of an event it is, is not looked at. */
const events = new Set<string>();

const timestampForm = /"timestamp":"([^"]+)"/;

createServer({ cert: textOf(RECEIVERS_CERT), key: textOf(RECEIVERS_KEY) }, (request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const now = Date.now();
    if (held) {
      held.push(response);
      return;
    }
    arrived += 1;
    events.add(`${request.url} ${request.headers['webhook-id']}`);
    const at = timestampForm.exec(Buffer.concat(chunks).toString())?.[1];
    milliseconds.push(now - Date.parse(at ?? ''));
    response.end();
  });
}).listen(Number(RECEIVERS_TLS_PORT), '127.0.0.1');

const controls: Readonly<Record<string, () => object>> = {
  '/readyz': () => ({}),
  '/hold': () => {
    held = [];
    return {};
  },
  /** What was held back fails, so that it comes again. */
  '/release': () => {
    for (const response of held ?? []) response.writeHead(503).end();
    held = undefined;
    return {};
  },
  '/arrived': () => ({ arrived, events: events.size }),
  /** Since it was last asked. */
  '/milliseconds': () => {
    const taken = milliseconds;
    milliseconds = [];
    return { milliseconds: taken };
  },
};

createControl((request, response) => {
  const control = controls[request.url ?? ''];
  response.writeHead(control ? 200 : 404, { 'content-type': 'application/json' });
  response.end(JSON.stringify(control?.() ?? {}));
}).listen(Number(RECEIVERS_PORT), '127.0.0.1');
