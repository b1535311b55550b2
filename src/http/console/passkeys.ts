/** Signing in with a passkey, proving again that its person is present, and adding a passkey. */
import type { StandingSession } from '../../access/console-sessions.ts';
import type { Flow, Flows } from '../../access/people/flows.ts';
import { type OpenedLink, openLink } from '../../access/people/links.ts';
import {
  addedPasskey,
  newPasskeyOptions,
  type PasskeyPerson,
  passkeyOptions,
  type RelyingParty,
  usedPasskey,
} from '../../access/people/passkeys.ts';
import { beginSession, sessionProvedAgain, type WithSession } from '../../access/people/sign-in.ts';
import { invalid, VaultError } from '../../base/errors.ts';
import type { Json, JsonObject } from '../../base/json.ts';
import { isNetwork } from '../../base/network.ts';
import { jsonMediaType, type RequestContext } from '../protocol/request-context.ts';
import {
  bodyOf,
  type ConsoleRoute,
  type ConsoleTools,
  expired,
  type FoundSession,
  proving,
  requireOwner,
  requireOwnMethods,
  requireSession,
  sessionOf,
  setFlowCookie,
  setSessionCookie,
  signInPath,
} from './console-request.ts';
import { cookieOf, flowCookieName, isLocal } from './credential.ts';

export interface PasskeyRouteTools {
  readonly flows: Flows;
}

type PasskeyHandling = ConsoleTools & PasskeyRouteTools;

/** Whose passkey is added: that of a link, or of the person who is signed in. */
interface Adding {
  readonly whose: PasskeySigner;
  /** What the passkey comes with: the use of the link. Absent for a person who is signed in. */
  readonly link?: WithSession;
  readonly session?: FoundSession;
}

/** With the maker of the link that lets the person in, if one does. */
type PasskeySigner = PasskeyPerson & Partial<Pick<OpenedLink, 'maker'>>;

export function passkeyRoutes(tools: PasskeyHandling): readonly ConsoleRoute[] {
  const path = `${signInPath}/passkey`;
  return [
    {
      method: 'POST',
      path: `${path}/options`,
      handle: (context) => proving(tools, context, () => sendOptions(tools, context)),
    },
    {
      method: 'POST',
      path,
      handle: (context) => proving(tools, context, () => receive(tools, context)),
    },
  ];
}

/**
 * Where passkeys are used, which the operator decides: at the public URL, or at `localhost` on the machine of the
 * vault. No header of a request decides it. `undefined` where browsers would refuse: at a number, or without HTTPS.
 */
export function relyingPartyOf(
  { publicUrl, isTls }: Pick<PasskeyHandling, 'publicUrl' | 'isTls'>,
  context: RequestContext,
): RelyingParty | undefined {
  if (publicUrl !== undefined) {
    const { hostname: id, origin, protocol } = new URL(publicUrl);
    const isSecure = protocol === 'https:' || id === 'localhost';
    return isSecure && !isNetwork(id.replace(/^\[|\]$/g, '')) ? { id, origin } : undefined;
  }
  if (!isLocal(context.request, context.address)) return undefined;
  const { port } = new URL(`http://${context.headers.host}`);
  const place = port === '' ? 'localhost' : `localhost:${port}`;
  return { id: 'localhost', origin: `${isTls ? 'https' : 'http'}://${place}` };
}

function requireParty(tools: PasskeyHandling, context: RequestContext): RelyingParty {
  const party = relyingPartyOf(tools, context);
  if (party) return party;
  throw new VaultError('forbidden', {
    public:
      'Passkeys need a public URL with a host name: set STRONGROOM_PUBLIC_URL to the address under which people ' +
      'reach the vault, such as https://vault.example.com.',
  });
}

async function sendOptions(tools: PasskeyHandling, context: RequestContext): Promise<void> {
  const party = requireParty(tools, context);
  const adding = await addingIn(tools, context, await bodyOf(context));
  const sendWith = (options: object, sealed: string) => {
    setFlowCookie(context, sealed);
    context.send(200, JSON.stringify(options), jsonMediaType);
  };
  if (adding) {
    const { whose } = adding;
    const { flow, sealed } = await tools.flows.begin('new passkey', { person: whose.person.id });
    return sendWith(await newPasskeyOptions(tools, party, { flow, ...whose }), sealed);
  }
  const session = await sessionOf(tools, context);
  const { flow, sealed } = await tools.flows.begin('passkey');
  const signedIn = session && personOf(session);
  return sendWith(await passkeyOptions(tools, party, { flow, signedIn }), sealed);
}

/** `undefined` for a request that adds no passkey. */
async function addingIn(
  tools: PasskeyHandling,
  context: RequestContext,
  { code, add }: JsonObject,
): Promise<Adding | undefined> {
  if (typeof code === 'string') {
    const { used, ...whose } = await openLink(tools, code);
    return { whose, link: used };
  }
  if (add !== true) return undefined;
  const session = await requireSession(tools, context);
  requireOwner(tools, context, session);
  requireOwnMethods(session);
  return { whose: personOf(session), session };
}

async function receive(tools: PasskeyHandling, context: RequestContext): Promise<void> {
  const party = requireParty(tools, context);
  const body = await bodyOf(context);
  const { response = null } = body;
  const adding = await addingIn(tools, context, body);
  if (adding) return receiveNew(tools, context, { party, adding, body });
  const flow = await requireFlow(tools, context, 'passkey');
  const session = await sessionOf(tools, context);
  const proof = { party, flow, response };
  const { used, ...whose } = await usedPasskey(tools, proof, session && personOf(session));
  if (session) await sessionProvedAgain(tools, session, used);
  else await begin(tools, context, { whose, also: used });
  context.send(204);
}

interface NewPasskeyResponse {
  readonly party: RelyingParty;
  readonly adding: Adding;
  readonly body: JsonObject;
}

/** With a link it also signs in. A person who is signed in has proved by it to be present. */
async function receiveNew(
  tools: PasskeyHandling,
  context: RequestContext,
  { party, adding, body: { response = null, name = null } }: NewPasskeyResponse,
): Promise<void> {
  const { whose, link, session } = adding;
  const flow = await requireFlow(tools, context, 'new passkey');
  if (flow.details['person'] !== whose.person.id) throw expired();
  const proof = { party, flow, response, name: readName(name) };
  const added = await addedPasskey(tools, whose, proof);
  if (session) await sessionProvedAgain(tools, session, added);
  else if (link) await begin(tools, context, { whose, also: together(link, added) });
  context.send(204);
}

function together(link: WithSession, added: WithSession): WithSession {
  return {
    ...link,
    insert: { ...link.insert, ...added.insert },
    entries: [...link.entries, ...added.entries],
  };
}

interface BegunByPasskey {
  readonly whose: PasskeySigner;
  readonly also: WithSession;
}

async function begin(
  tools: PasskeyHandling,
  context: RequestContext,
  { whose, also }: BegunByPasskey,
): Promise<void> {
  const { address } = context;
  const now = tools.clock.now();
  const begun = await beginSession(tools, { ...whose, signIn: 'passkey', address, now }, also);
  if (!begun) throw expired();
  setSessionCookie(context, begun.secret);
}

async function requireFlow(
  { flows }: PasskeyHandling,
  { headers }: RequestContext,
  purpose: 'passkey' | 'new passkey',
): Promise<Flow> {
  const sealed = cookieOf(headers, flowCookieName);
  const flow = sealed === undefined ? undefined : await flows.open(purpose, sealed);
  if (flow) return flow;
  throw expired();
}

function personOf({ tenant, person }: StandingSession): PasskeyPerson {
  return { tenant, person: { id: person.person_id, name: person.name } };
}

/** What people call a passkey, to tell it from their others. */
function readName(name: Json): string {
  if (typeof name === 'string' && /^[^\p{C}]{1,80}$/u.test(name) && name.trim() !== '') return name;
  throw invalid('name', 'must be a line of 1 to 80 characters');
}
