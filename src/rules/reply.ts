/** What a caller receives, and what a stored copy of it may show later. */
import type { Instant } from '../base/clock.ts';
import type { Row } from '../store/tables.ts';
import type { Caller } from './caller.ts';
import type { Permission } from './permissions.ts';
import type { Grant } from './policy.ts';

/** JSON. Only what mirrors a body that was sent is ever anything but an object. */
export type ReplyBody = object | string | number | boolean | null;

/** What a caller gets when its request succeeded. */
export interface Reply {
  readonly status: 200 | 201 | 202 | 204;
  /** Path of the created resource. */
  readonly location?: string;
  readonly body?: ReplyBody;
  /** In place of status and body: a response that the tenant's code made. */
  readonly made?: MadeReply;
  /** In place of a body. It is not stored under an idempotency key: a retry is processed as new. */
  readonly list?: WrittenList;
  /** Where the body holds what will be gone from the vault while the response may be given again. */
  readonly expiry?: ReplyExpiry;
  /** The tokens that the body shows, so that the response shows no more when it is given again. */
  readonly tokens?: ShownTokens;
  /** Where some of the body is for holders of a permission alone: what others are given again. */
  readonly narrower?: NarrowerBody;
}

export interface MadeReply {
  /** From 200 to 599. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** A text is sent as it is, anything else as JSON; `undefined` for none. */
  readonly body?: ReplyBody | undefined;
}

export interface NarrowerBody {
  readonly permission: Permission;
  readonly body: ReplyBody;
}

/** A list too large to be held: its items are read and logged one at a time, as it is written. */
export interface WrittenList {
  readonly pagination: object;
  readonly items: readonly ItemToWrite[];
}

/**
 * Gives the item when it is to be written; `undefined` when it is gone by then.
 * @param caller gives who is asking as of now, and throws once they would be refused.
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
  readonly row: Row<'tokens'> | Row<'token_intents'>;
  /** Under which its contents are in the body; `undefined` where they are not. */
  readonly grant: Grant | undefined;
}

/** A response that is given again after one of these instants says no more than it would by then. */
export interface ReplyExpiry {
  readonly at: readonly Instant[];
  /** Absent for a request that only reads: its response is removed then, and a retry is processed again. */
  readonly bodyAt?: (instant: Instant) => ReplyBody;
}

export type TokenBody = Readonly<Record<string, unknown>> & { readonly id: string };
