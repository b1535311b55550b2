/** Clients that change the keys of their TLS connection: as often as anybody needs to, and not for the vault's time. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { connect } from 'node:net';
import { Duplex } from 'node:stream';
import { after, type TestContext, test } from 'node:test';
import { connect as connectSecurely } from 'node:tls';
import { keyUpdatesMax } from '../../src/base/key-updates.ts';
import { writeCertificate } from '../support/certificate.ts';
import { engineOf } from '../support/engines.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { type RecordWriter, recordWriter, suite } from '../support/tls-records.ts';
import { startVault } from '../support/vault.ts';

const { certFile, keyFile, cert } = writeCertificate(temporaryDirectory({ after }));
const vault = await startVault({ after }, engineOf('sqlite'), {
  environment: { STRONGROOM_TLS_CERT: certFile, STRONGROOM_TLS_KEY: keyFile },
});

interface Client {
  readonly records: RecordWriter;
  /** Past TLS. */
  write(records: Buffer): void;
  /** Resolves to true with so many responses, or to false with the end of the connection. */
  hasResponses(count: number): Promise<boolean>;
}

async function startClient(t: TestContext): Promise<Client> {
  const raw = connect(Number(new URL(vault.url).port), '127.0.0.1');
  t.after(() => raw.destroy());
  raw.on('error', () => undefined);
  const between = new Duplex({
    read: () => undefined,
    write: (chunk, _, done) => raw.write(chunk, done),
  });
  raw.on('data', (chunk) => between.push(chunk));
  const secured = connectSecurely({ socket: between, ca: cert, ciphers: suite });
  secured.on('error', () => undefined);
  let records: RecordWriter | undefined;
  secured.on('keylog', (line: Buffer) => {
    if (line.toString().startsWith('CLIENT_TRAFFIC_SECRET_0 ')) records = recordWriter(line);
  });
  await once(secured, 'secureConnect');
  assert.ok(records);
  let text = '';
  let hasEnded = false;
  const changed = new EventEmitter();
  secured.on('data', (chunk) => {
    text += chunk;
    changed.emit('change');
  });
  raw.on('close', () => {
    hasEnded = true;
    changed.emit('change');
  });
  return {
    records,
    write: (bytes) => raw.write(bytes),
    hasResponses: async (count) => {
      for (;;) {
        if (text.split('HTTP/1.1 200 ').length > count) return true;
        if (hasEnded) return false;
        await once(changed, 'change');
      }
    },
  };
}

const ping = 'GET /ping HTTP/1.1\r\nhost: localhost\r\n\r\n';

test('a client may change its keys as often as anybody needs to', async (t) => {
  const { records, write, hasResponses } = await startClient(t);
  write(Buffer.concat([records.keyUpdates(keyUpdatesMax), records.data(ping)]));
  assert.ok(await hasResponses(1));
  write(records.data(ping));
  assert.ok(await hasResponses(2));
});

test('a client that changes its keys again and again is cut off', async (t) => {
  const { records, write, hasResponses } = await startClient(t);
  // What came with them in one packet may still have its response.
  write(Buffer.concat([records.keyUpdates(keyUpdatesMax + 1), records.data(ping)]));
  await hasResponses(1);
  write(records.data(ping));
  assert.equal(await hasResponses(2), false);
});
