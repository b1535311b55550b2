/** Who is signed in, as which applications, and the client of the vault for each of them. */

import { computed, signal } from '@preact/signals';
import {
  AuthenticationError,
  ConnectionError,
  type SignInMethod,
  Strongroom,
} from '@strongroom/client';
import { t } from '../texts.ts';
import { forgetDrafts } from './drafts.ts';
import { needsPresence, provePresence } from './presence.ts';

/** An application as which the person may act. */
export interface Role {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  readonly permissions: readonly string[];
}

export interface Session {
  readonly person: { readonly id: string; readonly name: string };
  readonly tenant: {
    readonly id: string;
    readonly name: string;
    /** As the operator's commands know it. */
    readonly handle: string;
    readonly type: string;
  };
  readonly applications: readonly Role[];
  readonly sign_in: 'link' | 'passkey' | 'oidc';
  /** What people call it, if the session began with it. */
  readonly identity_provider: string | null;
  readonly sign_in_methods: readonly SignInMethod[];
  readonly forgery_token: string;
  readonly header_prefix: string;
  readonly idle_at: string;
  readonly expires_at: string;
}

export type SessionState =
  | { readonly kind: 'unknown' }
  /** Of a session that has ended, the page stays under the sign-in: what was typed is not lost. */
  | { readonly kind: 'signed out'; readonly before?: Session }
  /** The page of a session stays in use: what is typed in it can be saved later. */
  | { readonly kind: 'unreachable'; readonly before?: Session }
  | { readonly kind: 'signed in'; readonly session: Session };

const sessionPath = '/console/session';

export const state = signal<SessionState>({ kind: 'unknown' });

export const session = computed(() => sessionIn(state.value));

function sessionIn(one: SessionState): Session | undefined {
  if (one.kind === 'signed in') return one.session;
  return one.kind === 'unknown' ? undefined : one.before;
}

/** How often the vault has come back: what failed meanwhile is loaded again. */
export const returns = signal(0);

const whoTimeoutMs = 10_000;
/** Also of what stands in front of a vault that is away. */
const awayStatuses: readonly number[] = [502, 503, 504];

/**
 * Sends a request. One without a response, or whose session has ended, makes the console ask who is signed in.
 * @throws ConnectionError
 */
export async function ask(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  try {
    const response = await fetch(input, init);
    if (response.status === 401 || awayStatuses.includes(response.status)) await refreshKnown();
    return response;
  } catch (error) {
    await refreshKnown();
    throw init?.signal?.aborted ? error : new ConnectionError(t.unreachable);
  }
}

/** Who has just come back from the identity provider stays on that page, also where the sign-in has failed. */
async function refreshKnown(): Promise<void> {
  if (state.value.kind !== 'unknown') await refresh();
}

/** Asks the vault who is signed in. Rejects where it cannot say, as while it starts. */
export async function whoIsSignedIn(): Promise<Session | undefined> {
  const response = await fetch(sessionPath, { signal: AbortSignal.timeout(whoTimeoutMs) });
  if (response.status >= 500) throw new Error(response.statusText);
  return response.ok ? response.json() : undefined;
}

/** Shows the page of whoever is signed in, or the sign-in page. */
export async function refresh(): Promise<void> {
  const before = session.value;
  const kept = before && { before };
  try {
    const found = await whoIsSignedIn();
    // What another person typed is not theirs.
    if (found && before && before.person.id !== found.person.id) location.reload();
    else {
      if (found && state.value.kind === 'unreachable') returns.value += 1;
      state.value = found ? { kind: 'signed in', session: found } : { kind: 'signed out', ...kept };
    }
  } catch {
    // Whose session has ended sees the page again only after a sign-in.
    if (state.value.kind !== 'signed out') state.value = { kind: 'unreachable', ...kept };
  }
}

/** Signs in with the code of a link. */
export async function signIn(code: string): Promise<void> {
  const response = await ask(sessionPath, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code }),
  });
  if (response.ok) return refresh();
  const problem = (await response.json()) as { readonly detail?: string };
  throw new Error(problem.detail ?? response.statusText);
}

export async function signOut(): Promise<void> {
  const response = await fetch(sessionPath, { method: 'DELETE' }).catch(() => undefined);
  forgetDrafts();
  state.value = { kind: 'signed out' };
  // Whoever only left the vault would be signed in again by a click.
  if (response?.status === 200) location.assign((await response.json()).url);
}

/** The command as the operator writes it for this tenant. */
export function forTenant(command: string): string {
  const { handle = 'default' } = session.value?.tenant ?? {};
  return command.replaceAll('--tenant default', `--tenant ${shellWord(handle)}`);
}

/** One word of a command, whatever is in it. */
export function shellWord(text: string): string {
  return /^[\w./:@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The role that holds the permission; of several the first. */
export function roleWith(permission: string): Role | undefined {
  return session.value?.applications.find(({ permissions }) => permissions.includes(permission));
}

export function may(permission: string): boolean {
  return roleWith(permission) !== undefined;
}

/** No role of the person has the permission. */
export class MissingRoleError extends Error {
  override readonly name = 'MissingRoleError';
  readonly permission: string;

  constructor(permission: string) {
    super(`None of your roles has ${permission}.`);
    this.permission = permission;
  }
}

export interface ActingOptions {
  /** Why a value is revealed: without it values are masked. */
  readonly reason?: string | undefined;
}

/**
 * The client of the vault, as the role that holds the permission.
 * @throws MissingRoleError
 */
export function vaultFor(permission: string, { reason }: ActingOptions = {}): Strongroom {
  const role = roleWith(permission);
  const current = session.value;
  if (!role || !current) throw new MissingRoleError(permission);
  const prefix = current.header_prefix;
  return new Strongroom({
    url: location.origin,
    // The page came from there, and no key is sent.
    allowHttp: true,
    apiKey: 'the-session-of-the-console',
    headerPrefix: prefix,
    retries: 1,
    fetch: async (input, init) => {
      const headers = new Headers(init?.headers);
      headers.delete(`${prefix}-API-KEY`);
      headers.set(`${prefix}-CONSOLE`, current.forgery_token);
      headers.set(`${prefix}-CONSOLE-APPLICATION`, role.id);
      if (reason !== undefined) headers.set(`${prefix}-REASON`, encodeURIComponent(reason));
      const send = () => ask(input, { ...init, headers, credentials: 'same-origin' });
      const response = await send();
      const isToBeProved = await needsPresence(response);
      return isToBeProved && (await provePresence()) ? send() : response;
    },
  });
}

/** True for the failure of a request whose session has ended. */
export function isSignedOut(error: unknown): boolean {
  return error instanceof AuthenticationError && state.value.kind === 'signed out';
}
