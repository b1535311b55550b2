/** Passkeys (WebAuthn): adding one to a person, and signing in with it. */
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server';
import type { Clock } from '../../base/clock.ts';
import { reasonOf, VaultError } from '../../base/errors.ts';
import { type PersonId, parseUuid, type TenantId } from '../../base/ids.ts';
import { isObject, type Json } from '../../base/json.ts';
import { systemEntry } from '../../rules/log-entries.ts';
import { provenRow } from '../../rules/proven-row.ts';
import type { Tenant, Tenants } from '../../rules/tenant.ts';
import type { Row } from '../../store/tables.ts';
import type { Flow } from './flows.ts';
import { identityHash, methodRow, methodsOf, requireRoomForMethod, usedMethod } from './methods.ts';
import type { SessionTools, WithSession } from './sign-in.ts';

/** Whose passkeys they are. Browsers use them on pages of this origin alone. */
export interface RelyingParty {
  /** The host name of the console. */
  readonly id: string;
  readonly origin: string;
}

export interface PasskeyTools extends SessionTools {
  readonly tenants: Pick<Tenants, 'findForRequest'>;
  readonly clock: Clock;
}

export interface PasskeyPerson {
  readonly tenant: Tenant;
  readonly person: { readonly id: PersonId; readonly name: string };
}

/** What the vault remembers of a passkey. */
interface PasskeyDetails {
  readonly credential_id: string;
  /** base64url of COSE. */
  readonly public_key: string;
  readonly counter: number;
  readonly transports: readonly string[];
}

/** Ed25519, ECDSA with P-256, and RSA with SHA-256. */
const algorithms = [-8, -7, -257];

/** Loaded when somebody uses a passkey: its libraries for certificates are large, and few vaults need them. */
const library = () => import('@simplewebauthn/server');

export async function newPasskeyOptions(
  { store }: Pick<PasskeyTools, 'store'>,
  party: RelyingParty,
  { flow, tenant, person }: PasskeyPerson & { readonly flow: Flow },
): Promise<PublicKeyCredentialCreationOptionsJSON> {
  const known = await methodsOf(store, tenant, person.id);
  requireRoomForMethod(known);
  const { generateRegistrationOptions } = await library();
  return generateRegistrationOptions({
    rpName: 'Strongroom',
    rpID: party.id,
    userName: person.name,
    userDisplayName: person.name,
    userID: userHandleOf(tenant.id, person.id),
    challenge: bytesOf(flow.challenge),
    attestationType: 'none',
    excludeCredentials: passkeysIn(known),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    supportedAlgorithmIDs: algorithms,
  });
}

/** For a person who is signed in, the options name the passkeys of that person. */
export async function passkeyOptions(
  { store }: Pick<PasskeyTools, 'store'>,
  party: RelyingParty,
  { flow, signedIn }: { readonly flow: Flow; readonly signedIn: PasskeyPerson | undefined },
): Promise<PublicKeyCredentialRequestOptionsJSON> {
  const known = signedIn ? await methodsOf(store, signedIn.tenant, signedIn.person.id) : [];
  const { generateAuthenticationOptions } = await library();
  return generateAuthenticationOptions({
    rpID: party.id,
    challenge: bytesOf(flow.challenge),
    userVerification: 'required',
    allowCredentials: passkeysIn(known),
  });
}

function passkeysIn(methods: readonly Row<'sign_in_methods'>[]) {
  return methods
    .filter(({ kind }) => kind === 'passkey')
    .map((row) => {
      const { credential_id: id, transports } = detailsOf(row);
      return { id, transports: transports as never };
    });
}

interface PasskeyResponse {
  readonly party: RelyingParty;
  readonly flow: Flow;
  /** As the browser sent it. */
  readonly response: Json;
}

/**
 * The part of a change that adds the passkey to the person.
 * @throws VaultError `unauthenticated` for a response that the vault did not ask for, or that proves nothing.
 */
export async function addedPasskey(
  { store, random, clock }: PasskeyTools,
  { tenant, person }: PasskeyPerson,
  { party, flow, response, name }: PasskeyResponse & { readonly name: string },
): Promise<WithSession> {
  const details = await refusing(() => verifiedRegistration({ party, flow, response }));
  requireRoomForMethod(await methodsOf(store, tenant, person.id));
  const row = methodRow(random, {
    tenant,
    person: person.id,
    kind: 'passkey',
    identity: [details.credential_id],
    name,
    details,
    now: clock.now(),
    begunAt: flow.begunAt,
  });
  const fact = { tenant: tenant.id, at: clock.now(), operation: 'create' } as const;
  return {
    insert: { sign_in_methods: [row] },
    entries: [systemEntry({ ...fact, entity: 'sign_in_method', id: row.method_id })],
  };
}

async function verifiedRegistration(sent: PasskeyResponse): Promise<PasskeyDetails> {
  const response = readResponse(sent.response, ['clientDataJSON', 'attestationObject']);
  const { verifyRegistrationResponse } = await library();
  await requireNoCertificates(response.response['attestationObject'] as string);
  const { verified, registrationInfo } = await verifyRegistrationResponse({
    response: response as unknown as RegistrationResponseJSON,
    expectedChallenge: sent.flow.challenge,
    expectedOrigin: sent.party.origin,
    expectedRPID: sent.party.id,
    requireUserVerification: true,
    supportedAlgorithmIDs: algorithms,
  });
  if (!verified) throw new TypeError('not verified');
  const { id, publicKey, counter, transports = [] } = registrationInfo.credential;
  return {
    credential_id: id,
    public_key: Buffer.from(publicKey).toString('base64url'),
    counter,
    transports: transports.filter((one) => /^[a-z-]{1,20}$/.test(one)).slice(0, transportsMax),
  };
}

const transportsMax = 8;

/**
 * The vault asks for no attestation. The library would verify one all the same, and would call the addresses of
 * revocation lists in its certificates: whoever registers a passkey would choose where the vault sends requests.
 */
async function requireNoCertificates(attestation: string): Promise<void> {
  const { decodeAttestationObject } = await import('@simplewebauthn/server/helpers');
  const decoded = decodeAttestationObject(new Uint8Array(bytesOf(attestation)));
  const format = decoded.get('fmt');
  const isPlain = format === 'none' || format === 'packed';
  if (isPlain && decoded.get('attStmt').get('x5c') === undefined) return;
  throw new TypeError('the attestation has certificates');
}

/** A person whom a passkey has proved, and the part of a change that says so. */
export interface PasskeyUse extends PasskeyPerson {
  readonly used: WithSession;
}

/**
 * Verifies the response of a passkey. Each response is accepted once: a sign-in that began before the last one that
 * succeeded is refused.
 * @throws VaultError `unauthenticated`, alike whatever is wrong.
 */
export async function usedPasskey(
  tools: PasskeyTools,
  sent: PasskeyResponse,
  signedIn: PasskeyPerson | undefined,
): Promise<PasskeyUse> {
  return refusing(async () => {
    const response = readResponse(sent.response, [
      'authenticatorData',
      'clientDataJSON',
      'signature',
    ]);
    const handle = response.response['userHandle'];
    const named = typeof handle === 'string' ? idsIn(handle) : undefined;
    const ids = signedIn ? { tenant: signedIn.tenant.id, person: signedIn.person.id } : named;
    if (!ids || (named && (named.tenant !== ids.tenant || named.person !== ids.person))) {
      throw new TypeError('the passkey is of another person');
    }
    const { tenant, person, method } = await passkeyOf(tools, ids, response.id);
    const details = detailsOf(method);
    if (sent.flow.begunAt <= method.used_at) throw new TypeError('the challenge was used');
    const { verifyAuthenticationResponse } = await library();
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: response as unknown as AuthenticationResponseJSON,
      expectedChallenge: sent.flow.challenge,
      expectedOrigin: sent.party.origin,
      expectedRPID: sent.party.id,
      requireUserVerification: true,
      credential: {
        id: details.credential_id,
        publicKey: new Uint8Array(bytesOf(details.public_key)),
        counter: details.counter,
      },
    });
    if (!verified) throw new TypeError('not verified');
    const now = tools.clock.now();
    const counted = { ...details, counter: authenticationInfo.newCounter };
    const row = usedMethod(tenant, method, { details: counted, begunAt: sent.flow.begunAt });
    const fact = { tenant: tenant.id, at: now, operation: 'use' } as const;
    return {
      tenant,
      person: { id: person.person_id, name: person.name },
      used: {
        replace: { sign_in_methods: [row] },
        entries: [systemEntry({ ...fact, entity: 'sign_in_method', id: method.method_id })],
      },
    };
  });
}

interface PersonIds {
  readonly tenant: TenantId;
  readonly person: PersonId;
}

async function passkeyOf({ store, tenants }: PasskeyTools, ids: PersonIds, id: string) {
  const tenant = await tenants.findForRequest(ids.tenant);
  if (!tenant) throw new TypeError('unknown');
  const tenant_id = tenant.id;
  const [method, person] = await Promise.all([
    provenRow(store, tenant, {
      table: 'sign_in_methods',
      key: { tenant_id, identity_hash: identityHash('passkey', [id]) },
    }),
    provenRow(store, tenant, { table: 'people', key: { tenant_id, person_id: ids.person } }),
  ]);
  if (!method || !person || method.person_id !== person.person_id) throw new TypeError('unknown');
  return { tenant, person, method };
}

function detailsOf({ details }: Row<'sign_in_methods'>): PasskeyDetails {
  return JSON.parse(details);
}

/** Tenant and person, which the passkey gives back to say whose it is. */
function userHandleOf(tenant: TenantId, person: PersonId): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(`${tenant}${person}`.replaceAll('-', ''), 'hex'));
}

function idsIn(handle: string): PersonIds | undefined {
  const [tenant, person] = [bytesOf(handle).subarray(0, 16), bytesOf(handle).subarray(16)].map(
    (bytes) => bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
  ) as [string, string];
  const ids = { tenant: parseUuid<TenantId>(tenant), person: parseUuid<PersonId>(person) };
  return ids.tenant && ids.person ? (ids as PersonIds) : undefined;
}

interface ReadResponse {
  readonly id: string;
  readonly rawId: string;
  readonly type: string;
  readonly response: Readonly<Record<string, unknown>>;
}

/** What the library reads of a response, and nothing else. */
function readResponse(sent: Json, names: readonly string[]) {
  const { id, rawId, type, response } = isObject(sent) ? sent : {};
  const texts = [
    id,
    rawId,
    type,
    ...(isObject(response) ? names.map((name) => response[name]) : []),
  ];
  if (!isObject(response) || texts.some((text) => typeof text !== 'string')) {
    throw new TypeError('not the response of a passkey');
  }
  return { id, rawId, type, response, clientExtensionResults: {} } as unknown as ReadResponse;
}

function bytesOf(base64url: string): Buffer<ArrayBuffer> {
  return Buffer.from(base64url, 'base64url');
}

/** Whatever is wrong, the response to an attacker is the same. */
async function refusing<T>(verify: () => Promise<T>): Promise<T> {
  try {
    return await verify();
  } catch (error) {
    throw new VaultError('unauthenticated', {
      public: 'The passkey was not accepted. Try again.',
      internal: `a passkey was refused: ${reasonOf(error)}`,
      cause: error,
    });
  }
}
