/** An authenticator for tests: the responses of a passkey, as a browser sends them, and those of attackers. */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import type { SignedIn } from './people.ts';
import { type Received, request } from './vault.ts';

export interface Ceremony {
  readonly challenge: string;
  /** The cookie with what it began with. */
  readonly cookie: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever options the vault gave
  readonly options: any;
}

const optionsPath = '/console/session/passkey/options';

/** What the vault asks a passkey for. */
export async function beginCeremony(
  url: string,
  body: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<Ceremony> {
  const asked = await request(url + optionsPath, 'POST', { body, headers });
  if (asked.status !== 200) throw new Error(asked.text);
  const [cookie = ''] = (asked.headers.get('set-cookie') ?? '').split(';');
  return { challenge: asked.body.challenge, cookie, options: asked.body };
}

/** Sends the response of a passkey. */
export function endCeremony(
  url: string,
  { cookie }: Pick<Ceremony, 'cookie'>,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<Received> {
  const cookies = [cookie, headers['cookie']].filter(Boolean).join('; ');
  const sent = { body, headers: { ...headers, cookie: cookies } };
  return request(`${url}/console/session/passkey`, 'POST', sent);
}

/** Adds a passkey to a person who is signed in on the machine of the vault. */
export async function addLocalPasskey(url: string, person: SignedIn): Promise<Authenticator> {
  const host = `localhost:${new URL(url).port}`;
  const headers = { host, cookie: person.cookie, 'SVC-CONSOLE': person.forgeryToken };
  const ceremony = await beginCeremony(url, { add: true }, headers);
  const passkey = new Authenticator(`http://${host}`);
  const body = { add: true, name: 'laptop', response: passkey.register(ceremony) };
  const added = await endCeremony(url, ceremony, body, headers);
  if (added.status !== 204) throw new Error(added.text);
  return passkey;
}

export interface Spoken {
  readonly challenge: string;
  readonly origin: string;
  readonly rpId: string;
  readonly type: string;
  readonly isVerified: boolean;
  readonly counter: number;
}

export class Authenticator {
  readonly id = randomBytes(32);
  readonly #key: { readonly publicKey: KeyObject; readonly privateKey: KeyObject };
  readonly #origin: string;
  userHandle = '';
  counter = 0;

  constructor(origin: string) {
    this.#origin = origin;
    this.#key = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  }

  /** The response to a registration. */
  register(ceremony: Ceremony, altered: Partial<Spoken> & { readonly statement?: Buffer } = {}) {
    this.userHandle = ceremony.options.user.id;
    const spoken = this.#spoken(ceremony, 'webauthn.create', altered);
    const length = Buffer.alloc(2);
    length.writeUInt16BE(this.id.length);
    const attested = Buffer.concat([Buffer.alloc(16), length, this.id, this.#coseKey()]);
    const authData = Buffer.concat([authenticatorData(spoken, 0x40), attested]);
    const statement = altered.statement ?? cborNone;
    const attestationObject = Buffer.concat([
      Buffer.from([0xa3]),
      statement,
      cborText('authData'),
      cborBytes(authData),
    ]);
    return this.#credential({
      clientDataJSON: clientData(spoken).toString('base64url'),
      attestationObject: attestationObject.toString('base64url'),
      transports: ['internal'],
    });
  }

  /** The response to a sign-in. */
  signIn(ceremony: Ceremony, altered: Partial<Spoken> & { readonly userHandle?: string } = {}) {
    this.counter += 1;
    const spoken = this.#spoken(ceremony, 'webauthn.get', altered);
    const data = authenticatorData(spoken, 0);
    const client = clientData(spoken);
    const signed = Buffer.concat([data, createHash('sha256').update(client).digest()]);
    return this.#credential({
      clientDataJSON: client.toString('base64url'),
      authenticatorData: data.toString('base64url'),
      signature: sign('sha256', signed, this.#key.privateKey).toString('base64url'),
      userHandle: altered.userHandle ?? this.userHandle,
    });
  }

  #spoken(ceremony: Ceremony, type: string, altered: Partial<Spoken>): Spoken {
    return {
      challenge: ceremony.challenge,
      origin: this.#origin,
      rpId: new URL(this.#origin).hostname,
      type,
      isVerified: true,
      counter: this.counter,
      ...altered,
    };
  }

  #credential(response: object) {
    const id = this.id.toString('base64url');
    return { id, rawId: id, type: 'public-key', response, clientExtensionResults: {} };
  }

  #coseKey(): Buffer {
    const { x = '', y = '' } = this.#key.publicKey.export({ format: 'jwk' });
    return Buffer.concat([
      // {1: 2, 3: -7, -1: 1, -2: x, -3: y}
      Buffer.from([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21]),
      cborBytes(Buffer.from(x, 'base64url')),
      Buffer.from([0x22]),
      cborBytes(Buffer.from(y, 'base64url')),
    ]);
  }
}

function authenticatorData({ rpId, isVerified, counter }: Spoken, more: number): Buffer {
  const flags = 0x01 | (isVerified ? 0x04 : 0) | more;
  const tail = Buffer.alloc(5);
  tail[0] = flags;
  tail.writeUInt32BE(counter, 1);
  return Buffer.concat([createHash('sha256').update(rpId).digest(), tail]);
}

function clientData({ type, challenge, origin }: Spoken): Buffer {
  return Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }));
}

export function cborText(text: string): Buffer {
  return Buffer.concat([cborHead(0x60, text.length), Buffer.from(text)]);
}

export function cborBytes(bytes: Buffer): Buffer {
  return Buffer.concat([cborHead(0x40, bytes.length), bytes]);
}

function cborHead(major: number, length: number): Buffer {
  if (length < 24) return Buffer.from([major | length]);
  if (length < 256) return Buffer.from([major | 24, length]);
  return Buffer.from([major | 25, length >> 8, length & 0xff]);
}

/** `fmt: "none"`, and an empty `attStmt`. */
const cborNone = Buffer.concat([
  cborText('fmt'),
  cborText('none'),
  cborText('attStmt'),
  Buffer.from([0xa0]),
]);
