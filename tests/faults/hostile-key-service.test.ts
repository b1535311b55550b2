/** A service that holds the root key and denies, throttles, stalls or responds with nonsense: tenants in use go on. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { onBothEngines } from '../support/engines.ts';
import { kmsRegion, newKmsKey, startMoto, withoutMoto } from '../support/moto.ts';
import { rootToken, startOpenBao, withoutOpenBao } from '../support/openbao.ts';
import { untilSo } from '../support/poll.ts';
import {
  type Environment,
  environmentOf,
  runCommand,
  spawnVault,
  untilOutput,
} from '../support/process.ts';
import { assertUnchanged, contentOf } from '../support/rows.ts';
import { createApplication, request } from '../support/vault.ts';

/** What the operator is told, and what the service does instead of what it should. */
interface Trouble {
  readonly says: RegExp;
  readonly respond: (response: ServerResponse) => void;
}

interface Service {
  readonly skip: string | false;
  /** Its address, and the variables of a vault that reaches it at another one. */
  readonly start: (t: TestContext) => Promise<{
    readonly address: string;
    readonly variables: (address: string) => Environment;
    /** Of a vault with another key of the same service. */
    readonly other: () => Promise<Environment>;
  }>;
  readonly denial: readonly [status: number, body: object];
  readonly throttling: readonly [status: number, body: object];
}

const services: Readonly<Record<string, Service>> = {
  'vault-transit': {
    skip: withoutOpenBao,
    start: async (t) => {
      const bao = await startOpenBao(t);
      return {
        address: bao.address,
        variables: (address) => ({
          STRONGROOM_VAULT_ADDRESS: address,
          STRONGROOM_VAULT_TOKEN: rootToken,
        }),
        other: async () => {
          await bao.call('transit/keys/other', {});
          return { STRONGROOM_VAULT_KEY: 'other' };
        },
      };
    },
    denial: [403, { errors: ['permission denied: a secret'] }],
    throttling: [429, { errors: ['rate limit: a secret'] }],
  },
  'aws-kms': {
    skip: withoutMoto,
    start: async (t) => {
      const address = await startMoto(t);
      const { keyId } = await newKmsKey(address);
      return {
        address,
        variables: (endpoint) => ({
          STRONGROOM_AWS_KMS_ENDPOINT: endpoint,
          STRONGROOM_AWS_KMS_KEY: keyId,
          AWS_REGION: kmsRegion,
          AWS_ACCESS_KEY_ID: 'test',
          AWS_SECRET_ACCESS_KEY: 'test',
        }),
        other: async () => ({ STRONGROOM_AWS_KMS_KEY: (await newKmsKey(address)).keyId }),
      };
    },
    denial: [400, { __type: 'AccessDeniedException', message: 'a secret' }],
    throttling: [400, { __type: 'ThrottlingException', message: 'a secret' }],
  },
};

function troublesOf({ denial, throttling }: Service): Readonly<Record<string, Trouble>> {
  const responding =
    ([status, body]: Service['denial']) =>
    (response: ServerResponse) =>
      void response.writeHead(status).end(JSON.stringify(body));
  return {
    denies: { says: /denies access/, respond: responding(denial) },
    throttles: { says: /throttles/, respond: responding(throttling) },
    'responds with nonsense': {
      says: /responds with(out| status)/,
      respond: (response) => void response.writeHead(200).end('<html>a secret</html>'),
    },
    'closes connections': {
      says: /cannot be reached/,
      respond: (response) => void response.destroy(),
    },
    'never responds': { says: /timeout/, respond: () => undefined },
  };
}

/** Between the vault and the service. */
async function troublesome(t: TestContext, address: string) {
  const state: { trouble: Trouble | undefined } = { trouble: undefined };
  const server = createServer(async (incoming, outgoing) => {
    const body = await bytesOf(incoming);
    if (state.trouble) return state.trouble.respond(outgoing);
    const { method, headers, url } = incoming;
    const passed = httpRequest(`${address}${url}`, { method, headers }, async (response) => {
      const bytes = await bytesOf(response);
      outgoing.writeHead(response.statusCode ?? 500, response.headers).end(bytes);
    });
    passed.on('error', () => outgoing.destroy());
    passed.end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { state, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

async function bytesOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

onBothEngines('a root key in a service', (engine) => {
  for (const [name, service] of Object.entries(services)) {
    test(`whatever ${name} does wrong, tenants in use go on, and others are told to try again`, {
      skip: service.skip,
    }, async (t) => {
      const { address, variables, other } = await service.start(t);
      const proxy = await troublesome(t, address);
      const place = await engine.place(t);
      const chosen = { STRONGROOM_ROOT_KEY_SOURCE: name };
      const environment = environmentOf(place, chosen, variables(proxy.url));
      const server = await spawnVault(t, environment);
      const key = await createApplication(server.url);
      const create = (id: string) =>
        request(`${server.url}/tokens`, 'POST', {
          key,
          body: { type: 'token', data: id, id: `${id} kept`.replaceAll(' ', '-') },
        });
      const troubles = Object.entries(troublesOf(service));
      const unused = new Map<string, string>();
      for (const [which] of troubles) {
        const made = await runCommand(['tenant', 'create', '--name', which, '--json'], environment);
        assert.equal(made.code, 0, made.stderr);
        unused.set(which, JSON.parse(made.stdout).key);
      }
      for (const [which, trouble] of troubles) {
        const self = { key: unused.get(which) ?? '' };
        const ask = () => request(`${server.url}/tenants/self`, 'GET', self);
        proxy.state.trouble = trouble;
        const [refused, created] = await Promise.all([ask(), create(which)]);
        assert.equal(refused.status, 503, which);
        assert.ok(Number(refused.headers.get('retry-after')) > 0);
        assert.equal(refused.body.type, 'urn:strongroom:problem:unavailable');
        assert.doesNotMatch(refused.text, /a secret/);
        assert.equal(created.status, 201, 'a tenant in use goes on');
        await untilOutput(server, trouble.says);
        assert.doesNotMatch(server.output(), /a secret/);
        proxy.state.trouble = undefined;
        await untilSo(
          async () => (await ask()).status === 200,
          () => 'it does not go on by itself',
        );
      }

      const { denies } = troublesOf(service);
      proxy.state.trouble = denies;
      const content = await contentOf(engine, place);
      for (const words of [
        ['tenant', 'create', '--name', 'refused'],
        ['keys', 'rotate', 'root'],
      ]) {
        const { code, stderr } = await runCommand(words, environment);
        assert.equal(code, 1);
        assert.match(stderr, /denies access/);
      }
      assertUnchanged(content, await contentOf(engine, place));
      proxy.state.trouble = undefined;
      const rotated = await runCommand(['keys', 'rotate', 'root'], environment);
      assert.equal(rotated.code, 0, rotated.stderr);
      for (const [which] of troubles) {
        const path = `/tokens/${`${which} kept`.replaceAll(' ', '-')}`;
        const read = await request(`${server.url}${path}`, 'GET', { key });
        assert.equal(read.body.data, which);
      }
      await server.kill();

      const foreign = await runCommand(['serve'], { ...environment, ...(await other()) });
      assert.equal(foreign.code, 1);
      assert.match(foreign.stderr, /does not open the keys stored in this database/);
      const again = await spawnVault(t, environment);
      const read = await request(`${again.url}/tokens/denies-kept`, 'GET', { key });
      assert.equal(read.status, 200);
    });
  }
});
