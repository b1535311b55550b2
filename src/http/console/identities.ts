/** Signing in with the operator's identity provider, and proving again with it that the person is present. */
import { presenceMs } from '../../access/console-sessions.ts';
import type { Flow, Flows } from '../../access/people/flows.ts';
import {
  endSessionsOfIdentity,
  type IdentityUse,
  personOfIdentity,
} from '../../access/people/identities.ts';
import type {
  IdentityProvider,
  IdentityRequest,
  ProvenIdentity,
} from '../../access/people/identity-provider.ts';
import type { RoleRule } from '../../access/people/mapped-roles.ts';
import { beginSession, sessionProvedAgain } from '../../access/people/sign-in.ts';
import { parseInstant } from '../../base/clock.ts';
import { invalid, VaultError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { bytesOf } from '../protocol/body.ts';
import { jsonMediaType, originOf, type RequestContext } from '../protocol/request-context.ts';
import {
  bodyBytesMax,
  bodyOf,
  type ConsoleRoute,
  type ConsoleTools,
  counting,
  expired,
  type FoundSession,
  proving,
  requireSession,
  sessionOf,
  setFlowCookie,
  setSessionCookie,
  signInPath,
} from './console-request.ts';
import { cookieOf, flowCookieName } from './credential.ts';

export interface IdentityRouteTools {
  readonly flows: Flows;
  /** Absent where the operator has configured none. */
  readonly provider: IdentityProvider | undefined;
  /** The operator's mapping as it is now. */
  readonly roleRules: () => readonly RoleRule[];
}

type IdentityHandling = ConsoleTools & IdentityRouteTools & { readonly provider: IdentityProvider };

/** What the console shows of the provider: it sends people back to one address alone. */
export function providerShown({ provider }: Pick<IdentityRouteTools, 'provider'>) {
  if (!provider) return null;
  const { name, redirectUri } = provider.config;
  return { name, origin: new URL(redirectUri).origin };
}

export function identityRoutes(given: ConsoleTools & IdentityRouteTools): readonly ConsoleRoute[] {
  const { provider } = given;
  if (!provider) return [];
  const tools = { ...given, provider };
  const path = `${signInPath}/oidc`;
  return [
    {
      method: 'POST',
      path,
      handle: (context) => proving(tools, context, () => begin(tools, context)),
    },
    {
      method: 'POST',
      path: `${path}/response`,
      handle: (context) => proving(tools, context, () => receive(tools, context)),
    },
    {
      method: 'POST',
      path: `${path}/logout`,
      handle: (context) => logOut(tools, context),
    },
  ];
}

/** Where the person goes on, at the provider. What the sign-in began with stays in the browser, sealed. */
async function begin(tools: IdentityHandling, context: RequestContext): Promise<void> {
  const body = await bodyOf(context);
  const session = body['again'] === true ? await requireSession(tools, context) : undefined;
  const request = tools.provider.newRequest();
  const { flow, sealed } = await tools.flows.begin('identity', {
    ...request,
    page: pageIn(body),
    ...(session ? { session: session.session.secret_hash } : tenantIn(body)),
  });
  const again = session !== undefined;
  const url = await tools.provider.urlFor({ ...request, state: flow.challenge, again });
  setFlowCookie(context, sealed);
  context.send(200, JSON.stringify({ url }), jsonMediaType);
}

const pageForm = /^\/console(?:[/?][!-~]{0,400})?$/;

/** The page of the console on which the person goes on; no other page can be named. */
function pageIn({ page = '/console' }: JsonObject): string {
  if (typeof page === 'string' && pageForm.test(page)) return page;
  throw invalid('page', 'must be a page of the console');
}

const tenantLengthMax = 200;

function tenantIn({ tenant }: JsonObject): { readonly tenant?: string } {
  if (tenant === undefined || tenant === null) return {};
  if (typeof tenant === 'string' && tenant.length <= tenantLengthMax) return { tenant };
  throw invalid('tenant', 'must be the id or the name of a tenant');
}

async function receive(tools: IdentityHandling, context: RequestContext): Promise<void> {
  const { response } = await bodyOf(context);
  if (typeof response !== 'string') throw invalid('response', 'is required');
  const flow = await requireFlow(tools, context);
  const { page = '/console', session: hash } = flow.details;
  const session = hash === undefined ? undefined : await sessionOf(tools, context);
  if (hash !== undefined && session?.session.secret_hash !== hash) throw expired();
  const identity = await tools.provider.identityIn(response, requestOf(flow));
  const found = await personOfIdentity(tools, {
    identity,
    begunAt: flow.begunAt,
    rules: tools.roleRules(),
    asked: session ? session.tenant.id : flow.details['tenant'],
  });
  if ('refused' in found) {
    const [first, ...others] = found.refused;
    for (const person of others) await tools.onFailure(originOf(context), person);
    await tools.onFailure(originOf(context), first);
    throw withoutRole();
  }
  if (session) await proveAgain(tools, { session, identity, found });
  else await signIn(tools, context, { identity, found });
  const shown = { page, again: session !== undefined };
  context.send(200, JSON.stringify(shown), jsonMediaType);
}

interface Recognized {
  readonly identity: ProvenIdentity;
  readonly found: IdentityUse;
}

async function signIn(
  tools: IdentityHandling,
  context: RequestContext,
  { identity, found: { tenant, person, used } }: Recognized,
): Promise<void> {
  const { address } = context;
  const now = tools.clock.now();
  // Where the provider does not say when, it was long ago: the person looks, and reveals nothing.
  const { authenticatedAt = longAgo } = identity;
  const signing = { tenant, person, signIn: 'oidc', address, now, authenticatedAt } as const;
  const begun = await beginSession(tools, signing, used);
  if (!begun) throw expired();
  setSessionCookie(context, begun.secret);
}

const longAgo = parseInstant(0);

async function proveAgain(
  tools: IdentityHandling,
  { session, identity, found }: Recognized & { readonly session: FoundSession },
): Promise<void> {
  const { authenticatedAt } = identity;
  // That it was asked to make the person sign in is no proof that it did.
  if (authenticatedAt === undefined) throw timeUnknown();
  const isRecent = tools.clock.now() - authenticatedAt < presenceMs;
  if (found.person.id !== session.person.person_id || !isRecent) throw notConfirmed();
  await sessionProvedAgain(tools, { ...session, signIn: 'oidc', authenticatedAt }, found.used);
}

/** The provider says that a person has signed out there. It sends no cookie, and its signature is the proof. */
async function logOut(tools: IdentityHandling, context: RequestContext): Promise<void> {
  if (!/^application\/x-www-form-urlencoded\b/i.test(context.headers['content-type'] ?? '')) {
    throw new VaultError('unsupported_media_type', {
      public: 'The body must be sent as application/x-www-form-urlencoded.',
    });
  }
  const body = new URLSearchParams((await bytesOf(context, bodyBytesMax)).toString());
  const token = body.get('logout_token');
  if (token === null) throw invalid('logout_token', 'is required');
  // A provider from which many people are signed out sends each notice once. So only those that it did not sign count.
  const notice = await tools.provider
    .logoutIn(token)
    .catch((error) => counting(tools, context, () => Promise.reject(error)));
  await endSessionsOfIdentity(tools, notice);
  context.send(200);
}

async function requireFlow(
  { flows }: IdentityHandling,
  { headers }: RequestContext,
): Promise<Flow> {
  const sealed = cookieOf(headers, flowCookieName);
  const flow = sealed === undefined ? undefined : await flows.open('identity', sealed);
  if (flow) return flow;
  throw expired();
}

function requestOf({ challenge: state, details }: Flow): IdentityRequest {
  const { nonce = '', verifier = '' } = details;
  return { state, nonce, verifier };
}

function notConfirmed(): VaultError {
  return new VaultError('unauthenticated', {
    public:
      'The identity provider did not confirm that it is you, within the last five minutes. Sign in there again, as ' +
      'the same person.',
  });
}

function timeUnknown(): VaultError {
  return new VaultError('unauthenticated', {
    public:
      'The identity provider does not say when you signed in (the claim auth_time), so it cannot confirm that it is ' +
      'you now. You see masked data, and signing in again does not help. Ask the operator to make the provider send ' +
      'the claim, or to add you as a person with a passkey.',
  });
}

function withoutRole(): VaultError {
  return new VaultError('forbidden', {
    public:
      'The identity provider knows you, and you have no role here. The operator maps groups of the provider to ' +
      'applications.',
  });
}
