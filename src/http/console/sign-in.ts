/** Signing in to the console and out of it: the only routes that nothing but the console uses. */
import { endConsoleSession } from '../../access/console-sessions.ts';
import { useLink } from '../../access/people/links.ts';
import { methodsOf, removeMethod, viewMethod } from '../../access/people/methods.ts';
import { rolesOf } from '../../access/people/row.ts';
import { nameOf } from '../../access/tenants/tenants.ts';
import { formatTimestamp } from '../../base/dates.ts';
import { invalid, VaultError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import { forgeryTokenOf } from '../../keys/console-secret.ts';
import { perform } from '../../rules/operation.ts';
import { ifProven } from '../../rules/proven-row.ts';
import type { Row } from '../../store/tables.ts';
import { jsonMediaType, type RequestContext } from '../protocol/request-context.ts';
import {
  actorOf,
  bodyOf,
  type ConsoleRoute,
  type ConsoleTools,
  clearSessionCookie,
  proving,
  requireOwner,
  requireOwnMethods,
  requireOwnPage,
  requireSession,
  setSessionCookie,
  signInPath,
} from './console-request.ts';
import { isLocal } from './credential.ts';
import { type IdentityRouteTools, identityRoutes, providerShown } from './identities.ts';
import { type PasskeyRouteTools, passkeyRoutes, relyingPartyOf } from './passkeys.ts';

export interface SigningIn extends ConsoleTools, PasskeyRouteTools, IdentityRouteTools {}

export function signInRoutes(tools: SigningIn): readonly ConsoleRoute[] {
  const { store, clock } = tools;
  return [
    {
      method: 'GET',
      path: `${signInPath}/ways`,
      handle: async (context) => {
        await requireOwnPage(tools, context);
        const party = relyingPartyOf(tools, context);
        const ways = {
          /** Whether a link is enough. */
          link: isLocal(context.request, context.address),
          passkey: party === undefined ? null : { origin: party.origin },
          oidc: providerShown(tools),
        };
        context.send(200, JSON.stringify(ways), jsonMediaType);
      },
    },
    {
      method: 'GET',
      path: signInPath,
      handle: async (context) => {
        await requireOwnPage(tools, context);
        context.send(200, JSON.stringify(await shownSession(tools, context)), jsonMediaType);
      },
    },
    {
      method: 'POST',
      path: signInPath,
      handle: async (context) => {
        const { secret } = await proving(tools, context, async () => {
          const code = codeIn(await bodyOf(context));
          if (!isLocal(context.request, context.address)) throw needsPasskey();
          return useLink(tools, { code, address: context.address });
        });
        setSessionCookie(context, secret);
        context.send(204);
      },
    },
    {
      method: 'DELETE',
      path: signInPath,
      handle: async (context) => {
        await requireOwnPage(tools, context);
        const found = await requireSession(tools, context);
        const { person, session } = found;
        const which = { person: person.person_id, session: session.session_id };
        const ending = endConsoleSession({ store, clock }, actorOf(tools, context, found), which);
        await perform({ store, actor: undefined }, ending);
        clearSessionCookie(context);
        context.setHeader('clear-site-data', '"cache", "storage"');
        const { provider } = tools;
        const url = session.sign_in === 'oidc' ? await provider?.signOutUrl() : undefined;
        if (url === undefined) context.send(204);
        else context.send(200, JSON.stringify({ url }), jsonMediaType);
      },
    },
    {
      method: 'DELETE',
      path: `${signInPath}/methods/:id`,
      handle: async (context) => {
        await requireOwnPage(tools, context);
        const found = await requireSession(tools, context);
        requireOwner(tools, context, found);
        requireOwnMethods(found);
        const { id } = context.params as { readonly id: string };
        const which = {
          person: found.person.person_id,
          method: id,
          except: found.session.session_id,
        };
        const removing = removeMethod({ store, clock }, actorOf(tools, context, found), which);
        await perform({ store, actor: undefined }, removing);
        context.send(204);
      },
    },
    ...passkeyRoutes(tools),
    ...identityRoutes(tools),
  ];
}

/** Who is signed in, as which applications, and what requests of the session have to bring. */
async function shownSession(tools: SigningIn, context: RequestContext): Promise<object> {
  const { store } = tools;
  const { tenant, session, person, secret } = await requireSession(tools, context);
  const [methods, row, ...roles] = await Promise.all([
    methodsOf(store, tenant, person.person_id),
    store.get('tenants', { tenant_id: tenant.id }),
    ...rolesOf(person).map((application_id) =>
      store.get('applications', { tenant_id: tenant.id, application_id }),
    ),
  ]);
  const proven = row && ifProven(tenant, 'tenants', row);
  return {
    person: { id: person.person_id, name: person.name },
    tenant: {
      id: tenant.id,
      name: proven ? nameOf(proven) : tenant.name,
      handle: tenant.name,
      type: tenant.type,
    },
    applications: roles
      .flatMap((row) => (row && ifProven(tenant, 'applications', row)) ?? [])
      .map(viewRole),
    sign_in: session.sign_in,
    identity_provider: session.sign_in === 'oidc' ? (tools.provider?.config.name ?? null) : null,
    sign_in_methods: methods.map(viewMethod),
    forgery_token: forgeryTokenOf(secret),
    header_prefix: tools.headerPrefix,
    idle_at: formatTimestamp(session.idle_at),
    expires_at: formatTimestamp(session.expires_at),
  };
}

function viewRole(row: Row<'applications'>): object {
  const { application_id: id, name, type } = row;
  const permissions: readonly string[] = JSON.parse(row.permissions);
  const rules: readonly { readonly permissions: readonly string[] }[] = JSON.parse(row.rules);
  const held = new Set([...permissions, ...rules.flatMap((rule) => rule.permissions)]);
  return { id, name, type, permissions: [...held] };
}

function codeIn({ code }: JsonObject): string {
  if (typeof code === 'string') return code;
  throw invalid('code', 'is required');
}

function needsPasskey(): VaultError {
  return new VaultError('forbidden', {
    public:
      'A link alone signs in only in a browser on the machine of the vault, at 127.0.0.1 or localhost. Elsewhere it ' +
      'adds a passkey, with which you sign in.',
  });
}
