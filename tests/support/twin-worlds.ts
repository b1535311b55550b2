/**
 * Two tenants that differ in nothing but a value that a caller may not see. What the caller is
 * answered must not differ either, and must not contain the value.
 */
import { linesSent } from './lines.ts';
import type { Below } from './random.ts';
import type { Given, TestTenant } from './tenant.ts';
import type { Received, Sent } from './vault.ts';

/** How much of a value the caller may see when it begins. */
export type Allowed = 'nothing' | 'last four' | 'everything';

export interface Scene {
  readonly name: string;
  readonly application: Given;
  /** True when the token was made with the caller's own key, as by another visitor of a page. */
  readonly sameKey: boolean;
  /** Of the value of the token. */
  readonly ofToken: Allowed;
  /** True when it may read anything at all. */
  readonly reads: boolean;
  /** True when it may see the metadata of the token. */
  readonly seesMetadata: boolean;
  /** Of the value of a token intent that somebody else made. */
  readonly ofIntent: Allowed;
}

/** A value whose text occurs nowhere else. */
export interface Value {
  readonly pan: string;
  readonly code: string;
}

/** What a request of the caller may name: all of it is equal in both worlds but the intent's id. */
export interface Names {
  readonly token: string;
  readonly converted: string;
  readonly intent: string;
  /** The value of the first world: a right guess there, a wrong one in the second. */
  readonly guess: Value;
  readonly guessOfIntent: Value;
  readonly metadata: Given;
}

export interface Request {
  readonly name: string;
  /** True where a caller that may read nothing is refused at once. */
  readonly reads?: true;
  /** True for a request that takes the token intent, and for one that says something only then. */
  readonly converts?: true;
  readonly afterConversion?: true;
  readonly method: string;
  readonly path: (names: Names) => string;
  readonly body?: (names: Names) => Given | readonly unknown[];
  /** True for a body of lines. */
  readonly lines?: true;
}

export interface Twins {
  /** What is wrong with the responses, and whether the request was done. */
  send(request: Request): Promise<Outcome>;
}

export interface Outcome {
  readonly done: boolean;
  readonly violation: string | undefined;
}

/** No letters of a UUID, a base64 padding or a word, so that no response has four of them by chance. */
const letters = 'BCDFGHJKLMNPQRSTVWXZ';
export const ownMask = { pan: '{{ data.pan | reveal_last: 4 }}' };

function text(below: Below, length: number): string {
  return Array.from({ length }, () => letters[below(letters.length)]).join('');
}

function newValue(below: Below): Value {
  return { pan: text(below, 16), code: text(below, 8) };
}

/** A value that agrees with another one in what the caller may see of it. */
function twinOf(value: Value, allowed: Allowed, below: Below): Value {
  const other = newValue(below);
  if (allowed === 'everything') return value;
  if (allowed === 'nothing') return other;
  return { ...other, pan: other.pan.slice(0, 12) + value.pan.slice(12) };
}

function hiddenTexts({ pan, code }: Value, allowed: Allowed): string[] {
  if (allowed === 'everything') return [];
  return [allowed === 'nothing' ? pan : pan.slice(0, 12), code];
}

interface World {
  readonly tenant: TestTenant;
  readonly key: string;
  readonly names: Names;
  readonly canonical: (received: Received) => string;
}

export interface TwinTenants {
  readonly tenants: readonly [TestTenant, TestTenant];
  readonly intentKeys: readonly [string, string];
}

/** Fresh tokens and a fresh key in both worlds. */
export async function createTwins(
  { tenants, intentKeys }: TwinTenants,
  scene: Scene,
  below: Below,
): Promise<Twins> {
  const suffix = text(below, 12).toLowerCase();
  const [guess, guessOfIntent] = [newValue(below), newValue(below)];
  const values = [guess, twinOf(guess, scene.ofToken, below)] as const;
  const intents = [guessOfIntent, twinOf(guessOfIntent, scene.ofIntent, below)] as const;
  const secret = text(below, 12);
  const metadata = { of: suffix, owner: secret };
  const worlds = await Promise.all(
    [0, 1].map(async (side): Promise<World> => {
      const tenant = tenants[side as 0 | 1];
      const key = await tenant.application(scene.application);
      const [token, converted] = [`v-${suffix}`, `c-${suffix}`];
      const request = { id: token, type: 'token', data: values[side as 0 | 1], mask: ownMask };
      const body = { ...request, metadata, containers: ['/a/'] };
      const made = await tenant.send('POST', '/tokens', {
        key: scene.sameKey ? key : tenant.key,
        body,
      });
      const intent = await tenant.send('POST', '/token-intents', {
        key: intentKeys[side as 0 | 1],
        body: { type: 'token', data: intents[side as 0 | 1] },
      });
      if (made.status !== 201 || intent.status !== 201) throw new Error(made.text + intent.text);
      const names = {
        token,
        converted,
        intent: intent.body.id as string,
        guess,
        guessOfIntent,
        metadata,
      };
      return { tenant, key, names, canonical: canonicalizer() };
    }),
  );
  const hidden = [
    ...hiddenTexts(values[1], scene.ofToken),
    ...hiddenTexts(intents[1], scene.ofIntent),
    ...(scene.seesMetadata ? [] : [secret]),
  ];
  const pieces = new Set(hidden.flatMap(piecesOf));
  return {
    send: async (request) => {
      const received = await Promise.all(worlds.map((world) => sendIn(world, request)));
      const [first, second] = received.map((one, side) => worlds[side]?.canonical(one));
      const shown = findPiece(received[1], pieces);
      const done = received.some(({ status }) => status < 300);
      if (shown) return { done, violation: `shows the value: ${received[1]?.text}` };
      if (first === second) return { done, violation: undefined };
      return { done, violation: `tells the values apart:\n  ${first}\n  ${second}` };
    },
  };
}

function sendIn({ tenant, key, names }: World, request: Request): Promise<Received> {
  const { method, path, body } = request;
  const given = body?.(names);
  const sent: Sent = request.lines
    ? linesSent(given as readonly unknown[])
    : given === undefined
      ? {}
      : { body: given };
  return tenant.send(method, path(names), { ...sent, key });
}

/** Long enough that no two random texts share one by chance. */
const pieceLength = 6;

function piecesOf(hidden: string): string[] {
  return Array.from({ length: hidden.length - pieceLength + 1 }, (_, at) =>
    hidden.slice(at, at + pieceLength),
  );
}

const fingerprintPattern = /"fingerprint":"(\w+)"/g;

/** The first world's value is in the requests; that of the second is in none. */
function findPiece(received: Received | undefined, pieces: ReadonlySet<string>): boolean {
  const headers = ['location', 'link', 'etag'].map((name) => received?.headers.get(name) ?? '');
  const body = received?.text.replaceAll(fingerprintPattern, '') ?? '';
  const all = [body, ...headers].join('\n');
  const runs = all.match(/[A-Z]{6,}/g) ?? [];
  return runs.some((run) => piecesOf(run).some((piece) => pieces.has(piece)));
}

/**
 * The response without what differs between any two tenants: ids, times and fingerprints are named
 * by the order in which they were met, so that those which are equal stay so.
 */
function canonicalizer(): (received: Received) => string {
  const names = new Map<string, string>();
  const nameOf = (kind: string, found: string) => {
    const name = names.get(found) ?? `${kind} ${names.size}`;
    names.set(found, name);
    return name;
  };
  return ({ status, text: body, headers }) =>
    `${status} ${headers.get('location')} ${body}`
      .replaceAll(fingerprintPattern, (_, found) => `"fingerprint":"${nameOf('print', found)}"`)
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)/g, 'time')
      .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (found) => nameOf('id', found));
}
