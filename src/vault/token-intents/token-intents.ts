/** Token intents: checked data that waits for a day to become a token. */
import type { Clock, Instant } from '../../lib/clock.ts';
import { invalid, VaultError } from '../../lib/errors.ts';
import { newUuid, parseUuid, type TokenIntentId } from '../../lib/ids.ts';
import type { Json } from '../../lib/json.ts';
import type { Random } from '../../lib/random.ts';
import type { Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { contentsOfRequest } from '../../values/contents.ts';
import { tokenIntentRow, viewTokenIntent } from './row.ts';

export interface TokenIntentRequest {
  readonly type?: string | null;
  readonly data?: Json;
}

export interface TokenIntentReading {
  readonly store: Store;
  readonly clock: Clock;
}

export interface TokenIntentWriting extends TokenIntentReading {
  readonly random: Random;
}

/** Network tokens come from networks, not from the people whose data token intents hold. */
export const typeWithoutIntents = 'network_token';

/** @throws VaultError `validation_failed` naming every attribute that is wrong. */
export function createTokenIntent(
  { clock, random }: TokenIntentWriting,
  caller: Caller,
  { type, data }: TokenIntentRequest,
): Decide {
  if (type === typeWithoutIntents) throw invalid('type', `must not be ${typeWithoutIntents}`);
  const contents = contentsOfRequest(
    { type: type ?? null, ...(data !== undefined && { data }) },
    clock,
  );
  return async () => {
    const now = clock.now();
    const id = newUuid<TokenIntentId>(random);
    const row = tokenIntentRow(caller, { id, contents, now, random });
    return {
      change: {
        insert: { token_intents: [row] },
        entries: [entryOf(caller, now, { entity: 'token_intent', id, operation: 'create' })],
      },
      reply: {
        status: 201,
        location: `/token-intents/${id}`,
        body: viewTokenIntent(caller.tenant, row, now),
      },
    };
  };
}

/** From the decision `not_found`. */
export function readTokenIntent(tools: TokenIntentReading, caller: Caller, id: string): Decide {
  const { store, clock } = tools;
  return async () => {
    const now = clock.now();
    const row = await existingIntent(store, caller, { id, now });
    const fact = { entity: 'token_intent', id: row.token_intent_id, operation: 'read' } as const;
    return {
      change: { entries: [entryOf(caller, now, fact)] },
      reply: { status: 200, body: viewTokenIntent(caller.tenant, row, now) },
    };
  };
}

/** From the decision `not_found`. */
export function deleteTokenIntent(tools: TokenIntentReading, caller: Caller, id: string): Decide {
  const { store, clock } = tools;
  return async () => {
    const now = clock.now();
    const row = await existingIntent(store, caller, { id, now });
    const fact = { entity: 'token_intent', id: row.token_intent_id, operation: 'delete' } as const;
    return {
      change: {
        remove: { token_intents: [row] },
        entries: [entryOf(caller, now, fact)],
      },
      reply: { status: 204 },
    };
  };
}

export interface TokenIntentQuery {
  readonly id: string;
  readonly now: Instant;
}

/** The intent of that id; `undefined`, alike for one that is missing, converted, expired or another tenant's. */
export async function liveIntent(
  store: Store,
  caller: Caller,
  { id, now }: TokenIntentQuery,
): Promise<Row<'token_intents'> | undefined> {
  const token_intent_id = parseUuid<TokenIntentId>(id);
  const key = token_intent_id && { tenant_id: caller.tenant.id, token_intent_id };
  const row = key && (await store.get('token_intents', key));
  return row && isLive(row, now) ? row : undefined;
}

export function isLive(
  { expires_at }: Pick<Row<'token_intents'>, 'expires_at'>,
  now: Instant,
): boolean {
  return now < expires_at;
}

async function existingIntent(
  store: Store,
  caller: Caller,
  wanted: TokenIntentQuery,
): Promise<Row<'token_intents'>> {
  const row = await liveIntent(store, caller, wanted);
  if (row) return row;
  throw new VaultError('not_found', { public: 'There is no token intent with this id.' });
}
