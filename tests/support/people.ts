/** People of a tenant in tests: signing in as a browser on the same machine does, and acting as a role. */
import assert from 'node:assert/strict';
import { cookieName } from '../../src/http/console/credential.ts';
import { type Received, request, type Sent } from './vault.ts';

export interface SignedIn {
  readonly id: string;
  /** As the browser sends it. */
  readonly cookie: string;
  readonly forgeryToken: string;
  /** The headers of a request as the application, without an API key. */
  headersAs(application: string): Readonly<Record<string, string>>;
  /** A request as the application. */
  send(application: string, method: string, path: string, sent?: Sent): Promise<Received>;
}

export interface NewPersonOptions {
  readonly name?: string;
  /** Their ids. */
  readonly applications: readonly string[];
}

/** Adds a person with a management key, and signs in with a link. */
export async function signInPerson(
  url: string,
  key: string,
  { name = 'Ada Lovelace', applications }: NewPersonOptions,
): Promise<SignedIn> {
  const person = await request(`${url}/people`, 'POST', { key, body: { name, applications } });
  assert.equal(person.status, 201, person.text);
  const { id } = person.body;
  const link = await request(`${url}/people/${id}/links`, 'POST', { key });
  assert.equal(link.status, 201, link.text);
  return signedIn(url, id, await useCode(url, link.body.code));
}

/** The response to the code of a link. */
export function useCode(
  url: string,
  code: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Received> {
  return request(`${url}/console/session`, 'POST', { body: { code }, headers });
}

export async function signedIn(url: string, id: string, response: Received): Promise<SignedIn> {
  assert.equal(response.status, 204, response.text);
  const [cookie = ''] = (response.headers.get('set-cookie') ?? '').split(';');
  assert.ok(cookie.startsWith(`${cookieName}=`), cookie);
  const session = await request(`${url}/console/session`, 'GET', { headers: { cookie } });
  assert.equal(session.status, 200, session.text);
  const forgeryToken = session.body.forgery_token;
  const headersAs = (application: string) => ({
    cookie,
    'SVC-CONSOLE': forgeryToken,
    'SVC-CONSOLE-APPLICATION': application,
  });
  return {
    id,
    cookie,
    forgeryToken,
    headersAs,
    send: (application, method, path, sent = {}) =>
      request(url + path, method, {
        ...sent,
        headers: { ...headersAs(application), ...sent.headers },
      }),
  };
}
