/** The response that a caller receives, and what a stored copy of it may show later. */
import type { Instant } from '../base/clock.ts';
import type { Container } from '../base/container.ts';
import type { ListedRow } from '../store/stored-row.ts';
import type { Caller } from './caller.ts';
import type { Permission } from './permissions.ts';
import type { Grant } from './policy.ts';

/** JSON. Only the response to a reflected body can be anything but an object. */
export type ReplyBody = object | string | number | boolean | null;

/** What a caller gets when its request succeeded. */
export interface Reply {
  readonly status: 200 | 201 | 202 | 204;
  /** Path of the created resource. */
  readonly location?: string;
  /** The entity tag of what the response is about, as it is now. */
  readonly etag?: string;
  readonly body?: ReplyBody;
  /** Replaces status and body: a response that the tenant's code made. */
  readonly made?: MadeReply;
  /** Replaces the body. It is not stored under an idempotency key: a retry is processed as new. */
  readonly list?: WrittenList;
  /** Set if the body has data that the vault will delete while the response may still be replayed. */
  readonly expiry?: ReplyExpiry;
  /** The tokens in the body, so that a replayed response shows no more than the caller may then see. */
  readonly tokens?: ShownTokens;
  /** Set if part of the body is only for holders of a permission: the body that other callers get on a replay. */
  readonly narrower?: NarrowerBody;
}

export interface MadeReply {
  /** From 200 to 599. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** A string is sent unchanged, anything else as JSON; `undefined` for no body. */
  readonly body?: ReplyBody | undefined;
}

export interface NarrowerBody {
  readonly permission: Permission;
  /** Where it has to show something, each of them, when it is about tokens. */
  readonly containers?: readonly Container[];
  readonly body: ReplyBody;
}

/** A list that is too large to hold in memory: its items are read and logged one at a time while it is written. */
export interface WrittenList {
  readonly pagination: object;
  readonly items: readonly ItemToWrite[];
}

/**
 * Returns the item when it is to be written; `undefined` if it is gone by then.
 * @param caller returns the caller with its current rights, and throws if it would be refused now.
 */
export type ItemToWrite = (
  caller: () => Promise<Caller>,
) => object | undefined | Promise<object | undefined>;

export interface ShownTokens {
  /** All of which views make the body. */
  readonly shown: readonly ShownToken[];
  /** The body, made of other views. Absent for a request that only reads. */
  readonly bodyOf?: (views: readonly TokenBody[]) => ReplyBody;
}

export interface ShownToken {
  readonly row: ListedRow<'tokens'> | ListedRow<'token_intents'>;
  /** Under which its contents are in the body; `undefined` where they are not. */
  readonly grant: Grant | undefined;
}

/** After one of these instants, a replayed response shows no more than a new one would. */
export interface ReplyExpiry {
  readonly at: readonly Instant[];
  /** Absent for a request that only reads: its response is then removed, and a retry is processed again. */
  readonly bodyAt?: (instant: Instant) => ReplyBody;
}

export type TokenBody = Readonly<Record<string, unknown>> & { readonly id: string };
