/** How the vault logs in to HashiCorp Vault or OpenBao, and keeps its token alive. */
import type { JsonObject } from '../../base/json.ts';
import { isObject } from '../../base/json.ts';
import {
  credentialOf,
  jsonOf,
  type RemoteResponse,
  remoteUnavailable,
  requestRemote,
} from './remote.ts';
import { type ReadRootKeyVariable, RootKeyError } from './root-key.ts';

/** Where the service is, and the part of it to which requests go. */
export interface VaultServer {
  /** Names it in errors. */
  readonly origin: string;
  readonly address: URL;
  /** A namespace of Vault Enterprise or OpenBao. */
  readonly namespace: string | undefined;
}

/** A token of the service. */
interface VaultToken {
  readonly token: string;
  /** 0 for a token that does not expire. */
  readonly seconds: number;
  readonly renewable: boolean;
}

/** A way to get a token, chosen by the variables that are set. */
interface LoginMethod {
  readonly variables: readonly string[];
  login(server: VaultServer, read: ReadRootKeyVariable): Promise<VaultToken>;
}

/** In order of precedence. */
const methods: readonly LoginMethod[] = [
  {
    variables: ['VAULT_TOKEN'],
    login: (server, read) => leaseOfToken(server, read('VAULT_TOKEN') ?? ''),
  },
  {
    // Read at each login, because an agent replaces the file before its token expires.
    variables: ['VAULT_TOKEN_FILE'],
    login: (server, read) => leaseOfToken(server, credentialOf(server, read('VAULT_TOKEN_FILE'))),
  },
  {
    variables: ['VAULT_ROLE_ID', 'VAULT_SECRET_ID_FILE'],
    login: (server, read) =>
      leaseOfLogin(server, `auth/${read('VAULT_AUTH_MOUNT') ?? 'approle'}/login`, {
        role_id: read('VAULT_ROLE_ID') ?? '',
        secret_id: credentialOf(server, read('VAULT_SECRET_ID_FILE')),
      }),
  },
  {
    variables: ['VAULT_KUBERNETES_ROLE'],
    login: (server, read) =>
      leaseOfLogin(server, `auth/${read('VAULT_AUTH_MOUNT') ?? 'kubernetes'}/login`, {
        role: read('VAULT_KUBERNETES_ROLE') ?? '',
        jwt: credentialOf(server, read('VAULT_KUBERNETES_TOKEN_FILE') ?? serviceAccountToken),
      }),
  },
];

const serviceAccountToken = '/var/run/secrets/kubernetes.io/serviceaccount/token';

/** The variables of all methods. */
export const loginVariables = [
  ...methods.flatMap(({ variables }) => variables),
  'VAULT_AUTH_MOUNT',
  'VAULT_KUBERNETES_TOKEN_FILE',
];

/** Whether the variables of one method are set. */
export function canLogIn(read: ReadRootKeyVariable): boolean {
  return methodOf(read) !== undefined;
}

function methodOf(read: ReadRootKeyVariable): LoginMethod | undefined {
  return methods.find(({ variables }) => variables.every((name) => read(name) !== undefined));
}

/** A session with the service. Requests of one session share a token. */
export interface VaultSession {
  /**
   * Sends a request with the session's token. After a 403 it logs in again once, because the service may have revoked
   * the token.
   * @throws VaultError `unavailable` when the service cannot be reached or does not let this vault in.
   */
  post(path: string, body: JsonObject): Promise<RemoteResponse>;
  close(): void;
}

/** A token is renewed after this part of its time. */
const renewedAfter = 2 / 3;

/** A lease shorter than any that the service gives would have it renewed without a pause. */
const renewedAfterMsMin = 500;

/** `setTimeout` takes no longer time. */
const timerMsMax = 2 ** 31 - 1;

/** @throws RootKeyError when the variables of no method are set. */
export function createVaultSession(server: VaultServer, read: ReadRootKeyVariable): VaultSession {
  const method = methodOf(read);
  if (method === undefined) {
    throw new RootKeyError(
      `the root key (${server.origin}) needs STRONGROOM_VAULT_TOKEN, STRONGROOM_VAULT_TOKEN_FILE, ` +
        'STRONGROOM_VAULT_ROLE_ID with STRONGROOM_VAULT_SECRET_ID_FILE, or ' +
        'STRONGROOM_VAULT_KUBERNETES_ROLE',
    );
  }
  let lease: Promise<VaultToken> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  function keep(next: Promise<VaultToken>): Promise<VaultToken> {
    lease = next;
    next.then(renewInTime, () => forget(next));
    return next;
  }

  function forget(failed: Promise<VaultToken>): void {
    if (lease === failed) lease = undefined;
  }

  function renewInTime({ token, seconds, renewable }: VaultToken): void {
    clearTimeout(timer);
    if (seconds === 0 || isClosed) return;
    const renew = async (): Promise<VaultToken> => {
      if (!renewable) return method?.login(server, read) ?? Promise.reject();
      const response = await send(server, { path: 'auth/token/renew-self', token, body: {} });
      return leaseOf(response) ?? method?.login(server, read) ?? Promise.reject();
    };
    // A failure is not reported here: the next request logs in again, and reports it.
    timer = setTimeout(() => keep(renew()).catch(() => undefined), delayOf(seconds));
    timer.unref();
  }

  return {
    post: async (path, body) => {
      const using = lease ?? keep(method.login(server, read));
      const response = await send(server, { path, body, token: (await using).token });
      if (response.status !== 403) return response;
      forget(using);
      const { token } = await (lease ?? keep(method.login(server, read)));
      return send(server, { path, body, token });
    },
    close: () => {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

function delayOf(seconds: number): number {
  const ms = seconds * renewedAfter * 1000;
  return Math.min(timerMsMax, Math.max(renewedAfterMsMin, ms));
}

interface VaultRequest {
  readonly path: string;
  readonly token?: string;
  /** Without one the request is a GET. */
  readonly body?: JsonObject;
}

function send(server: VaultServer, { path, token, body }: VaultRequest): Promise<RemoteResponse> {
  const { origin, address, namespace } = server;
  const headers = {
    // Without this header, agents of the service do not forward a request.
    'x-vault-request': 'true',
    ...(token !== undefined && { 'x-vault-token': token }),
    ...(namespace !== undefined && { 'x-vault-namespace': namespace }),
  };
  const url = new URL(`v1/${path}`, address);
  if (body === undefined) return requestRemote(origin, url, { headers });
  return requestRemote(origin, url, { method: 'POST', headers, body: JSON.stringify(body) });
}

/** The service tells how long a configured token lives. A policy may not allow that; then it is not renewed. */
async function leaseOfToken(server: VaultServer, token: string): Promise<VaultToken> {
  const response = await send(server, { path: 'auth/token/lookup-self', token });
  const body = jsonOf(response);
  const data = isObject(body['data']) ? body['data'] : {};
  if (response.status !== 200) return { token, seconds: 0, renewable: false };
  const { ttl, expire_time: end, renewable } = data;
  // The rest is in whole seconds: it is 0 in the last one, as it is for a token without an end.
  const seconds = typeof ttl === 'number' && end !== null ? Math.max(1, ttl) : 0;
  return { token, seconds, renewable: renewable === true };
}

async function leaseOfLogin(
  server: VaultServer,
  path: string,
  body: JsonObject,
): Promise<VaultToken> {
  const response = await send(server, { path, body });
  const lease = leaseOf(response);
  if (lease) return lease;
  throw remoteUnavailable(server.origin, `rejects the login (status ${response.status})`);
}

function leaseOf(response: RemoteResponse): VaultToken | undefined {
  const body = jsonOf(response);
  const auth = isObject(body['auth']) ? body['auth'] : {};
  const { client_token: token, lease_duration: seconds, renewable } = auth;
  if (response.status !== 200 || typeof token !== 'string' || typeof seconds !== 'number')
    return undefined;
  return { token, seconds, renewable: renewable === true };
}
