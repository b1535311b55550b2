/** What a reference leads to: a token or a token intent, with the caller's grant on it. */
import type { Reference } from '../expressions/references.ts';
import type { Instant } from '../lib/clock.ts';
import type { Json, JsonObject } from '../lib/json.ts';
import type { Row } from '../store/tables.ts';
import { decide, type Grant, holds } from './access.ts';
import type { Caller } from './caller.ts';
import type { Permission } from './permissions.ts';
import type { TokenReading } from './read-token.ts';
import { openIntent, viewTokenIntent } from './token-intent-row.ts';
import { liveIntent } from './token-intents.ts';
import { findLiveToken } from './token-queries.ts';
import { openData } from './token-row.ts';
import { type TokenTypeName, tokenTypes } from './token-types.ts';
import { shownData, viewToken } from './view.ts';

export interface Target {
  readonly entity: 'token' | 'token_intent';
  readonly id: string;
  readonly row: Row<'tokens'> | Row<'token_intents'>;
  readonly grant: Grant | undefined;
  /** The permission that the caller would need and lacks. */
  readonly lacks: Permission | undefined;
  /** The data as the caller may see it, `undefined` where it may not; the whole as an object. */
  readonly data: () => Json | undefined;
  readonly whole: () => Json;
}

/** `undefined` where there is no such token or intent, or no more. */
export function findTarget(
  tools: TokenReading,
  caller: Caller,
  { reference: { kind, id }, now }: { readonly reference: Reference; readonly now: Instant },
): Promise<Target | undefined> {
  return kind === 'token_intent'
    ? intentTarget(tools, caller, { id, now })
    : tokenTarget(tools, caller, { id, now });
}

interface Wanted {
  readonly id: string;
  readonly now: Instant;
}

async function tokenTarget(
  { store, onMaskFailure }: TokenReading,
  caller: Caller,
  { id, now }: Wanted,
): Promise<Target | undefined> {
  const { tenant, policy } = caller;
  const row = await findLiveToken(store, { tenant: tenant.id, id, now });
  if (!row) return undefined;
  const grant = decide(policy, 'token:read', { id: row.token_id, container: row.container });
  const open = () => openData(tenant, row, now);
  return {
    entity: 'token',
    id: row.token_id,
    row,
    grant,
    lacks: grant ? undefined : 'token:read',
    data: () => grant && shownData({ row, open, grant, onMaskFailure })['data'],
    whole: () => (grant ? (viewToken({ row, open, grant, onMaskFailure }) as JsonObject) : null),
  };
}

/**
 * An intent has no container yet. It is seen as the token it would become by default is seen: under
 * the rules for the container of its type, with the mask of its type.
 */
async function intentTarget(
  { store, onMaskFailure }: TokenReading,
  caller: Caller,
  wanted: Wanted,
): Promise<Target | undefined> {
  const { tenant, policy } = caller;
  const row = await liveIntent(store, caller, wanted);
  if (!row) return undefined;
  const { container } = tokenTypes[row.type as TokenTypeName];
  const grant = decide(policy, 'token:read', { id: undefined, container });
  const mayRead = holds(policy, 'token-intent:read');
  const open = () => openIntent(tenant, row, wanted.now);
  const shown = () =>
    grant ? shownData({ row: { ...row, mask: null }, open, grant, onMaskFailure }) : {};
  return {
    entity: 'token_intent',
    id: row.token_intent_id,
    row,
    grant,
    lacks: mayRead ? (grant ? undefined : 'token:read') : 'token-intent:read',
    data: () => shown()['data'],
    whole: () => ({ ...viewTokenIntent(tenant, row, wanted.now), ...shown() }),
  };
}
