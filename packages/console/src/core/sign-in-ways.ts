/** The ways to sign in, passkeys among them, which also prove again that the person is present. */
import { startAuthentication, startRegistration } from '@simplewebauthn/browser';
import { needsPresence, provePresence } from './presence.ts';
import { ask, session } from './session.ts';

const path = '/console/session';

export interface Ways {
  /** Whether a link is enough. */
  readonly link: boolean;
  /** Where browsers use passkeys for this vault; null where they cannot. */
  readonly passkey: { readonly origin: string } | null;
  /** The operator's identity provider, and where it sends people back. */
  readonly oidc: { readonly name: string; readonly origin: string } | null;
}

export async function waysToSignIn(): Promise<Ways> {
  const response = await ask(`${path}/ways`);
  return response.json();
}

/** True where the page is at the address of which passkeys are. */
export function arePasskeysHere({ passkey }: Ways): boolean {
  return passkey?.origin === location.origin;
}

/** Why the vault, the browser, or the person refused. */
export class SignInError extends Error {
  override readonly name = 'SignInError';
}

/** Signs in or, for a person who is signed in, proves that the person is present. */
export async function usePasskey(): Promise<void> {
  const optionsJSON = await send('POST', '/passkey/options', {});
  const response = await asking(() => startAuthentication({ optionsJSON }));
  await send('POST', '/passkey', { response });
}

/** @param by the code of a link, which then also signs in; without it, for the person who is signed in. */
export async function addPasskey(name: string, by?: { readonly code: string }): Promise<void> {
  const whose = by ?? { add: true };
  const optionsJSON = await send('POST', '/passkey/options', whose);
  const response = await asking(() => startRegistration({ optionsJSON }));
  await send('POST', '/passkey', { ...whose, name, response });
}

export async function removeOwnMethod(id: string): Promise<void> {
  await send('DELETE', `/methods/${encodeURIComponent(id)}`);
}

// biome-ignore lint/suspicious/noExplicitAny: options of WebAuthn, which the library types, and the vault's responses
export async function send(method: string, place: string, body?: object): Promise<any> {
  const current = session.value;
  const request = () =>
    ask(path + place, {
      method,
      headers: {
        ...(body && { 'content-type': 'application/json' }),
        ...(current && { [`${current.header_prefix}-CONSOLE`]: current.forgery_token }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
  const first = await request();
  const response =
    (await needsPresence(first)) && (await provePresence()) ? await request() : first;
  if (response.status === 204) return undefined;
  const received = await response.json();
  if (response.ok) return received;
  throw new SignInError(received.detail ?? response.statusText);
}

/** A person who closes the window of the browser has not failed. */
async function asking<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw new SignInError(error instanceof Error ? error.message : String(error));
  }
}
