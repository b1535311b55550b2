/** The caller: proof that a request was authenticated, and the facts that its rules may use. */
import type { Brand } from '../base/brand.ts';
import type {
  ApplicationId,
  ConsoleSessionId,
  KeyId,
  PersonId,
  ProxyId,
  SessionId,
  TenantId,
} from '../base/ids.ts';
import type { TraceContext } from '../base/telemetry/trace-context.ts';
import type { Spender } from '../store/log-chain/entries.ts';
import type { EgressPolicy } from './egress-policies.ts';
import { Openings } from './opened.ts';
import type { HolderKind } from './permissions.ts';
import type { Policy } from './policy.ts';
import type { Tenant } from './tenant.ts';

/** Where a request came from. */
export interface Origin {
  /** Network address of the peer. */
  readonly address: string;
  /** Correlates the request, its log entries and its reply. */
  readonly traceId: string;
  /** The header prefix that the caller uses, such as `SVC`; it selects the compatibility dialect. */
  readonly dialect: string;
  /** The products that the client names, shortened; see `http/client-products.ts`. */
  readonly userAgent?: string | undefined;
  /** The trusted proxies that passed the request on, the nearest to the client first. */
  readonly forwarded?: string | undefined;
  /** The person who used the console. */
  readonly person?: { readonly id: string; readonly name: string } | undefined;
  /** Absent where the client sent no `traceparent` and no traces are recorded. */
  readonly trace?: TraceContext | undefined;
  /** Its `CDN-Loop`: through which vaults and networks it came. */
  readonly loop?: string | undefined;
  /** Why the caller asks, in its own words, for the log. */
  readonly reason?: string | undefined;
}

/** A person who acts as an application, in a session of the console. The origin has the name. */
export interface SignedInPerson {
  readonly id: PersonId;
  readonly session: ConsoleSessionId;
  /** With which the session is found. */
  readonly secretHash: string;
  /** Whether the person has proved to be present within the last minutes. */
  readonly isPresent: boolean;
}

/** The identity with which a caller acts. `access/authority.ts` says from which rows its authority derives. */
export interface Credential {
  /** For a session, the public application that created it. */
  readonly application: ApplicationId;
  /** The key that was sent. Absent if none was: the application of a proxy, or of code, acts by itself. */
  readonly key: KeyId | undefined;
  readonly session: SessionId | undefined;
  /** Set if no key was sent: the proxy that requires none. Its callers act with the rules of its application. */
  readonly anonymous?: ProxyId;
  /** Set if a person acts as the application. No key was sent then. */
  readonly signedIn?: SignedInPerson;
}

/** What the vault knows about the holder of a key. */
export interface Identity extends Credential {
  readonly tenant: Tenant;
  readonly kind: HolderKind;
  readonly policy: Policy;
  /** For a session, the policy of the application that authorized it. */
  readonly authorizer?: Policy;
  readonly origin: Origin;
  /** Of the pages that may send the key, or the session that it created; any where it is absent. */
  readonly pageOrigins?: readonly string[];
  /** Where its programs may send requests, through the address for egress; nowhere if it is absent. */
  readonly egress?: readonly EgressPolicy[] | undefined;
  /** Set if code runs for a visitor, with rights that its caller does not have. */
  readonly forVisitor?: true;
  /**
   * Against whose budgets the values count that the caller has revealed, where that is not the caller alone: a session
   * spends the budgets of the keys that it derives from, and code also those of its caller.
   */
  readonly spenders?: readonly Spender[] | undefined;
}

interface CallerFacts {
  readonly openings: Openings;
  readonly spenders: readonly Spender[];
}

export type Caller = Brand<Identity & CallerFacts, 'Caller'>;

/** Called only after a key was found, or a proxy that requires none. */
export function authenticated(identity: Identity): Caller {
  const spenders = identity.spenders ?? [spenderOf(identity)];
  return { ...identity, spenders, openings: new Openings() } as Caller;
}

/** Whose turn a long query takes: sessions take that of the application that created them. */
export function payerOf(caller: Pick<Identity, 'tenant' | 'application' | 'key' | 'signedIn'>): {
  readonly tenant: TenantId;
  readonly name: string;
} {
  const { tenant, application, key, signedIn } = caller;
  return { tenant: tenant.id, name: signedIn?.id ?? key ?? application };
}

/** The budget of a caller who acts with the rights of an application. */
export function spenderOf({
  application,
  key,
  signedIn,
}: Pick<Credential, 'application' | 'key' | 'signedIn'>): Spender {
  return { application_id: application, counted_id: signedIn?.id ?? key ?? application };
}

/** True where no key was sent; `undefined` otherwise. */
export function isKeyless({ anonymous }: Pick<Caller, 'anonymous'>): true | undefined {
  return anonymous === undefined ? undefined : true;
}

/**
 * True for keys that are stored on servers. Public keys and sessions are in browsers, where anyone can extract them,
 * and callers of a proxy without keys have none. Such callers may cause less work.
 */
export function isOfServer({ kind, anonymous }: Pick<Caller, 'kind' | 'anonymous'>): boolean {
  return anonymous === undefined && (kind === 'private' || kind === 'management');
}

/**
 * True if results may reach someone who must not find values by guessing: for callers without a server key, for the
 * code that they call, whatever rights it is lent, and for people who have given no reason to see values.
 */
export function isForVisitor(
  caller: Pick<Caller, 'kind' | 'anonymous' | 'forVisitor' | 'signedIn' | 'origin'>,
): boolean {
  const isMasked = caller.signedIn !== undefined && caller.origin.reason === undefined;
  return caller.forVisitor === true || isMasked || !isOfServer(caller);
}

/**
 * The same caller with a mark that its log entries carry after the trace id. Trace ids contain no space, so a caller
 * cannot forge the mark by choosing one.
 */
export function markedAs(caller: Caller, mark: string): Caller {
  const { origin } = caller;
  const marked = { ...origin, traceId: `${origin.traceId} ${mark}` };
  return { ...caller, origin: marked, openings: new Openings() };
}

/** The same caller with its current rights, for work that began under earlier ones. */
export function withRights(
  caller: Caller,
  { policy, authorizer }: Pick<Identity, 'policy' | 'authorizer'>,
): Caller {
  const { authorizer: _earlier, ...rest } = caller;
  return { ...rest, policy, ...(authorizer && { authorizer }) } as Caller;
}

/** The same caller for a concurrent operation: each operation accounts for what it opened itself. */
export function withOwnOpenings(caller: Caller): Caller {
  return { ...caller, openings: new Openings() };
}

/** The actor on the command line, which has the database and the root key: no key, and every right. */
export interface Operator {
  readonly tenant: Tenant;
  readonly application: null;
}

/** The actor that a log entry names. */
export type Actor = Caller | Operator;
