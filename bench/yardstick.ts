/**
 * The yardstick: what plain `node:http` on this machine can do with the same requests. A body is read and
 * parsed, line by line where it is lines, and answered with JSON as long as the vault's answer, which a PUT
 * hands over. The vault's speed is given as a ratio to this, because a ratio survives a change of machine.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';

const port = Number(process.env['YARDSTICK_PORT']);
let answer: unknown = {};

createServer((request, response) => {
  if (request.headers['content-type'] === 'application/x-ndjson')
    void answerLines(request, response);
  else if (request.method === 'PUT') void takeAnswer(request, response);
  else if (request.method === 'GET') send(response);
  else parse(request, () => send(response));
}).listen(port, '127.0.0.1');

async function takeAnswer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  answer = JSON.parse(await text(request));
  response.end();
}

function parse(request: IncomingMessage, then: (body: unknown) => void): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => then(JSON.parse(Buffer.concat(chunks).toString('utf8'))));
}

async function answerLines(request: IncomingMessage, response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  let rest = '';
  request.setEncoding('utf8');
  for await (const chunk of request) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    const answers = lines.map((line) => {
      JSON.parse(line);
      return `${JSON.stringify(answer)}\n`;
    });
    if (!response.write(answers.join(''))) await once(response, 'drain');
  }
  response.end();
}

function send(response: ServerResponse): void {
  const body = Buffer.from(JSON.stringify(answer));
  response.writeHead(200, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': body.length,
  });
  response.end(body);
}
