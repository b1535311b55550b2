/** The caller: proof that a request was authenticated, and all that its rules may ask about it. */
import type { Brand } from '../base/brand.ts';
import type { ApplicationId, KeyId, ProxyId, SessionId } from '../base/ids.ts';
import type { TraceContext } from '../base/telemetry/trace-context.ts';
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
  /** Absent where the client sent no `traceparent` and no traces are recorded. */
  readonly trace?: TraceContext | undefined;
  /** Its `CDN-Loop`: through which vaults and networks it came. */
  readonly loop?: string | undefined;
}

/** By what a caller acts. `vault/authority` says from which rows its authority derives. */
export interface Credential {
  /** For a session, the public application that created it. */
  readonly application: ApplicationId;
  /** The key that was sent. Absent where none was: the application of a proxy, or of code, acts by itself. */
  readonly key: KeyId | undefined;
  readonly session: SessionId | undefined;
  /** Set where no key was sent: the proxy that asks for none. Its callers act with its application's rules. */
  readonly anonymous?: ProxyId;
}

/** What is known of the holder of a key. */
export interface Identity extends Credential {
  readonly tenant: Tenant;
  readonly kind: HolderKind;
  readonly policy: Policy;
  /** For a session, what the application holds that authorized it. */
  readonly authorizer?: Policy;
  readonly origin: Origin;
  /** Set where code acts with other rights than those of its caller, who is a visitor. */
  readonly forVisitor?: true;
}

export type Caller = Brand<Identity & { readonly openings: Openings }, 'Caller'>;

/** Called only where a key was found, or a proxy that asks for none. */
export function authenticated(identity: Identity): Caller {
  return { ...identity, openings: new Openings() } as Caller;
}

/** True where no key was sent; `undefined` otherwise. */
export function isKeyless({ anonymous }: Pick<Caller, 'anonymous'>): true | undefined {
  return anonymous === undefined ? undefined : true;
}

/**
 * True for keys that lie on servers. Public keys and sessions lie in browsers, where anybody takes them from, and who
 * calls a proxy that asks for no key has none: such callers may make the vault work less.
 */
export function isOfServer({ kind, anonymous }: Pick<Caller, 'kind' | 'anonymous'>): boolean {
  return anonymous === undefined && (kind === 'private' || kind === 'management');
}

/**
 * True where what is learned may reach a visitor: for callers without a key of a server, and for what the code does
 * that they call, whatever rights it is lent.
 */
export function isForVisitor(caller: Pick<Caller, 'kind' | 'anonymous' | 'forVisitor'>): boolean {
  return caller.forVisitor === true || !isOfServer(caller);
}

/**
 * The same caller, whose entries in the log carry a mark behind the trace id. No trace id contains a space, so
 * nobody who chooses one has the mark as well.
 */
export function markedAs(caller: Caller, mark: string): Caller {
  const { origin } = caller;
  const marked = { ...origin, traceId: `${origin.traceId} ${mark}` };
  return { ...caller, origin: marked, openings: new Openings() };
}

/** The same caller with other rights: those of now, for what was begun under earlier ones. */
export function withRights(
  caller: Caller,
  { policy, authorizer }: Pick<Identity, 'policy' | 'authorizer'>,
): Caller {
  const { authorizer: _earlier, ...rest } = caller;
  return { ...rest, policy, ...(authorizer && { authorizer }) } as Caller;
}

/** The same caller for an operation beside others of it: each accounts for what it opened itself. */
export function withOwnOpenings(caller: Caller): Caller {
  return { ...caller, openings: new Openings() };
}

/** Who acts on the command line, with the database and the root key at hand: no key, every right. */
export interface Operator {
  readonly tenant: Tenant;
  readonly application: null;
}

/** Who does what the log says. */
export type Actor = Caller | Operator;
