/** What requests to sign in have in common: where they come from, their session, their body, and their cookies. */
import {
  type ConsoleSessions,
  isPresent,
  requirePresence,
  type StandingSession,
} from '../../access/console-sessions.ts';
import { flowLifeMs } from '../../access/people/flows.ts';
import type { LinkUsing } from '../../access/people/links.ts';
import { rolesOf } from '../../access/people/row.ts';
import { consoleSessionLifeMs } from '../../access/people/sign-in.ts';
import { second } from '../../base/clock.ts';
import { VaultError } from '../../base/errors.ts';
import { isObject, type Json, type JsonObject } from '../../base/json.ts';
import { isForgeryToken } from '../../keys/console-secret.ts';
import type { RefusedPerson } from '../../rules/anonymous-entries.ts';
import { type Actor, authenticated, type Origin } from '../../rules/caller.ts';
import { policyOf } from '../../rules/policy.ts';
import type { Tenants } from '../../rules/tenant.ts';
import type { OpenLimit } from '../limits/open-limit.ts';
import { bytesOf, parseJson } from '../protocol/body.ts';
import type { ServiceHeaders } from '../protocol/headers.ts';
import { type Handle, originOf, type RequestContext } from '../protocol/request-context.ts';
import { cookieName, cookieOf, flowCookieName, isSameOrigin } from './credential.ts';

/** Below it are all routes that only the console uses. */
export const signInPath = '/console/session';

/** The response of a passkey takes some kilobytes. */
export const bodyBytesMax = 20_000;
const bodyMembersMax = 200;

export interface ConsoleTools extends LinkUsing {
  readonly tenants: Pick<Tenants, 'find' | 'findForRequest'>;
  readonly consoleSessions: ConsoleSessions;
  /** Counts attempts of an address. Rejects with `too_many_requests`. */
  readonly limit: (address: string) => Promise<void>;
  /** Counts requests of an address that prove nothing. */
  readonly openLimit: Pick<OpenLimit, 'count'>;
  /** Records a proof that was not valid, or a person who has no role. Rejects as {@link ConsoleTools.limit} does. */
  readonly onFailure: (origin: Origin, person?: RefusedPerson) => Promise<void>;
  /** The service's own headers, and the first of their prefixes, such as `SVC`. */
  readonly headers: ServiceHeaders;
  readonly headerPrefix: string;
  /** Under which people reach the vault, if the operator has configured it. */
  readonly publicUrl: string | undefined;
  /** Whether the vault itself serves HTTPS. */
  readonly isTls: boolean;
}

export interface ConsoleRoute {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly handle: Handle;
}

export interface FoundSession extends StandingSession {
  /** What the cookie holds. */
  readonly secret: string;
}

/** @throws VaultError `unauthenticated` without a session. */
export async function requireSession(
  tools: ConsoleTools,
  context: RequestContext,
): Promise<FoundSession> {
  const found = await sessionOf(tools, context);
  if (found) return found;
  throw new VaultError('unauthenticated', { public: 'You are not signed in, or no longer are.' });
}

export async function sessionOf(
  { consoleSessions }: ConsoleTools,
  { headers }: RequestContext,
): Promise<FoundSession | undefined> {
  const secret = cookieOf(headers, cookieName);
  const found = secret === undefined ? undefined : await consoleSessions.find(secret);
  return secret !== undefined && found ? { ...found, secret } : undefined;
}

/** For what changes how a person signs in. @throws VaultError `forbidden`, `reauthentication_required` */
export function requireOwner(
  { headers, clock }: ConsoleTools,
  context: RequestContext,
  { secret, session }: FoundSession,
): void {
  const given = headers.read(context.headers, 'console');
  if (given === undefined || !isForgeryToken(given, secret)) throw usedByAnotherPage();
  requirePresence({ isPresent: isPresent(session, clock.now()) });
}

/**
 * For what needs no proof. It is counted by address as the page itself is: anybody may send it.
 * @throws VaultError `forbidden`, `too_many_requests`
 */
export async function requireOwnPage(
  { openLimit }: Pick<ConsoleTools, 'openLimit'>,
  context: RequestContext,
): Promise<void> {
  requireSameOrigin(context);
  await openLimit.count(context.address);
}

/**
 * A person of the identity provider has no other way to sign in, and keeps this one: with a passkey, the person would
 * stay when the provider lets them go.
 * @throws VaultError `forbidden`
 */
export function requireOwnMethods({ session }: Pick<FoundSession, 'session'>): void {
  if (session.sign_in !== 'oidc') return;
  throw new VaultError('forbidden', {
    public: 'You sign in with the identity provider, which alone decides how.',
  });
}

/** @throws VaultError `forbidden` */
function requireSameOrigin(context: RequestContext): void {
  if (!isSameOrigin(context.headers)) throw usedByAnotherPage();
}

function usedByAnotherPage(): VaultError {
  return new VaultError('forbidden', { public: 'The console cannot be used by another page.' });
}

/** Who changes something of their own. It needs no role, and without one the log names no application. */
export function actorOf(
  { clock }: Pick<ConsoleTools, 'clock'>,
  context: RequestContext,
  { tenant, session, person }: FoundSession,
): Actor {
  const [application] = rolesOf(person);
  if (application === undefined) return { tenant, application: null };
  return authenticated({
    application,
    key: undefined,
    session: undefined,
    signedIn: {
      id: person.person_id,
      session: session.session_id,
      secretHash: session.secret_hash,
      isPresent: isPresent(session, clock.now()),
    },
    tenant,
    kind: 'management',
    policy: policyOf({ permissions: [], rules: [] }),
    origin: { ...originOf(context), person: { id: person.person_id, name: person.name } },
  });
}

/** Runs what needs a valid proof of a page of the console. One that is not valid is counted, and recorded. */
export async function proving<T>(
  tools: ConsoleTools,
  context: RequestContext,
  prove: () => Promise<T>,
): Promise<T> {
  requireSameOrigin(context);
  return counting(tools, context, prove);
}

/** The same for requests that no page sends. */
export async function counting<T>(
  { limit, onFailure }: ConsoleTools,
  context: RequestContext,
  prove: () => Promise<T>,
): Promise<T> {
  await limit(context.address);
  try {
    return await prove();
  } catch (error) {
    if (error instanceof VaultError && error.code === 'unauthenticated') {
      await onFailure(originOf(context));
    }
    throw error;
  }
}

/** The failure of a sign-in whose beginning no longer counts. */
export function expired(): VaultError {
  return new VaultError('unauthenticated', {
    public: 'It took too long, or was done before. Try again.',
  });
}

export async function bodyOf(context: RequestContext): Promise<JsonObject> {
  if (!/^application\/json\b/i.test(context.headers['content-type'] ?? '')) {
    throw new VaultError('unsupported_media_type', {
      public: 'The body must be sent as application/json.',
    });
  }
  const bytes = await bytesOf(context, bodyBytesMax);
  const body = parseJson(bytes, { noun: 'body', membersMax: bodyMembersMax }) as Json;
  return isObject(body) ? body : {};
}

export function setSessionCookie(context: RequestContext, secret: string): void {
  context.setHeader(
    'set-cookie',
    cookie(cookieName, secret, { lifeMs: consoleSessionLifeMs, sameSite: 'Strict' }),
  );
}

export function clearSessionCookie(context: RequestContext): void {
  context.setHeader('set-cookie', cookie(cookieName, '', { lifeMs: 0, sameSite: 'Strict' }));
}

/** What a sign-in began with, until it ends. */
export function setFlowCookie(context: RequestContext, sealed: string): void {
  context.setHeader(
    'set-cookie',
    cookie(flowCookieName, sealed, { lifeMs: flowLifeMs, sameSite: 'Strict' }),
  );
}

interface CookieOptions {
  readonly lifeMs: number;
  readonly sameSite: 'Strict' | 'Lax';
}

function cookie(name: string, value: string, { lifeMs, sameSite }: CookieOptions): string {
  return `${name}=${value}; Path=/; Max-Age=${lifeMs / second}; Secure; HttpOnly; SameSite=${sameSite}`;
}
