/**
 * The yardstick: what plain `node:http` on this machine can do with the same requests. A POST body is
 * read, parsed and echoed, one of lines line by line; a GET is answered with the object in YARDSTICK_ANSWER. The vault's
 * speed is told as a ratio to this, because a ratio survives a change of machine.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

const port = Number(process.env['YARDSTICK_PORT']);
const answer: unknown = JSON.parse(process.env['YARDSTICK_ANSWER'] ?? '{}');

createServer((request, response) => {
  if (request.headers['content-type'] === 'application/x-ndjson') void echoLines(request, response);
  else if (request.method === 'POST') echo(request, response);
  else send(response, 200, answer);
}).listen(port, '127.0.0.1');

function echo(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => send(response, 201, JSON.parse(Buffer.concat(chunks).toString('utf8'))));
}

async function echoLines(request: IncomingMessage, response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  let rest = '';
  request.setEncoding('utf8');
  for await (const chunk of request) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    const text = lines.map((line) => `${JSON.stringify(JSON.parse(line))}\n`).join('');
    if (!response.write(text)) await once(response, 'drain');
  }
  response.end();
}

function send(response: ServerResponse, status: number, value: unknown): void {
  const body = Buffer.from(JSON.stringify(value));
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': body.length,
  });
  response.end(body);
}
