/** Token intents: checked data that waits for a day to become a token. */

import {
  creationEntry,
  type EncryptedTools,
  useEncrypted,
} from '../../access/client-keys/use-encrypted.ts';
import type { Clock, Instant } from '../../base/clock.ts';
import { invalid, VaultError } from '../../base/errors.ts';
import { type ClientKeyId, newUuid, parseUuid, type TokenIntentId } from '../../base/ids.ts';
import type { Json } from '../../base/json.ts';
import type { Random } from '../../base/random.ts';
import { newWriteEvaluation } from '../../expressions/evaluation/evaluation.ts';
import type { Caller } from '../../rules/caller.ts';
import { entryOf, failureOf } from '../../rules/log-entries.ts';
import { openerFor } from '../../rules/openings.ts';
import type { Decide } from '../../rules/operation.ts';
import { holds, seesInAll } from '../../rules/policy.ts';
import type { NarrowerBody, Reply } from '../../rules/reply.ts';
import type { LogEntry } from '../../store/log-chain/entries.ts';
import type { Store } from '../../store/store.ts';
import type { Unproven } from '../../store/stored-row.ts';
import type { Row } from '../../store/tables.ts';
import {
  type Contents,
  contentsOfRequest,
  placeOfRequest,
  type TokenRequest,
} from '../contents/contents.ts';
import { guessOf, learned } from '../guesses/guesses.ts';
import { containersOfIntent, tokenIntentRow, viewTokenIntent, viewUnreadIntent } from './row.ts';

export interface TokenIntentRequest {
  readonly type?: string | null;
  readonly data?: Json;
  /** A JWE for a key of the tenant, in place of data. */
  readonly encrypted?: string | null;
}

export interface TokenIntentReading {
  readonly store: Store;
  readonly clock: Clock;
}

export interface TokenIntentWriting extends TokenIntentReading, EncryptedTools {
  readonly random: Random;
}

/** Network tokens come from networks, not from the people whose data token intents hold. */
export const typeWithoutIntents = 'network_token';

/** @throws VaultError `validation_failed` naming every attribute that is wrong. */
export function createTokenIntent(
  tools: TokenIntentWriting,
  caller: Caller,
  { type, data, encrypted }: TokenIntentRequest,
): Decide {
  if (type === typeWithoutIntents) throw invalid('type', `must not be ${typeWithoutIntents}`);
  const asked = { type: type ?? null, ...(data !== undefined && { data }) };
  const jwe = encrypted ?? undefined;
  if (jwe !== undefined) return createFromEncrypted(tools, caller, asked, jwe);
  const contents = contentsOfRequest(asked, tools.clock);
  const intended = { contents, request: asked };
  return async () => {
    const { row, entry, reply } = await newIntent(tools, caller, intended);
    return { change: { insert: { token_intents: [row] }, entries: [entry] }, reply };
  };
}

/** The intent of a value that a client encrypted: its caller is shown nothing of it that it may not read. */
function createFromEncrypted(
  tools: TokenIntentWriting,
  caller: Caller,
  asked: Pick<TokenRequest, 'type' | 'data'>,
  jwe: string,
): Decide {
  if ((asked.data ?? undefined) !== undefined) {
    throw invalid('encrypted', 'cannot be combined with data');
  }
  placeOfRequest(asked, tools.clock);
  return async () => {
    const now = tools.clock.now();
    const opened = await useEncrypted(tools, caller, {
      jwe,
      path: 'encrypted',
      basis: 'token-intent:create',
    });
    if ('refusal' in opened) return opened;
    try {
      const data = opened.data.reveal();
      const contents = contentsOfRequest({ ...asked, data }, tools.clock);
      const intended = { contents, request: asked, clientKey: opened.key };
      const { row, entry, reply } = await newIntent(tools, caller, intended);
      const client_key_uses = opened.use ? [opened.use] : [];
      const seenBy = sightOf(caller, row);
      const body = viewUnreadIntent(row);
      return {
        change: {
          insert: { token_intents: [row], client_key_uses },
          entries: [entry, creationEntry(caller, now, opened)],
        },
        reply: seenBy ? { ...reply, narrower: { ...seenBy, body } } : { ...reply, body },
      };
    } catch (error) {
      if (!(error instanceof VaultError)) throw error;
      const attempt = { entity: 'key', id: opened.key, operation: 'use' };
      return { change: { entries: [failureOf(caller, now, attempt)] }, refusal: error };
    }
  };
}

/** The right under which the caller sees the summary of encrypted data, also when the response is replayed. */
function sightOf(
  { policy }: Caller,
  row: Row<'token_intents'>,
): Omit<NarrowerBody, 'body'> | undefined {
  if (holds(policy, 'token-intent:read')) return { permission: 'token-intent:read' };
  const containers = containersOfIntent(row);
  const permission = 'token:read';
  return seesInAll(policy, permission, containers) ? { permission, containers } : undefined;
}

interface IntendedToken {
  readonly contents: Contents;
  /** One object however often it is decided. */
  readonly request: object;
  /** For which a client encrypted it. */
  readonly clientKey?: ClientKeyId;
}

interface CreatedIntent {
  readonly row: Row<'token_intents'>;
  readonly entry: LogEntry;
  readonly reply: Reply;
}

/** Rejects with `validation_failed` when the data gives nothing to fingerprint. */
async function newIntent(
  { store, clock, random }: TokenIntentWriting,
  caller: Caller,
  { contents, request, clientKey }: IntendedToken,
): Promise<CreatedIntent> {
  const now = clock.now();
  const id = newUuid<TokenIntentId>(random);
  const evaluated = { contents, evaluation: newWriteEvaluation() };
  const guess = guessOf(caller, evaluated, { request });
  const fingerprint = await learned({ store, now }, caller, guess);
  const row = tokenIntentRow(caller, { id, contents, fingerprint, now, random, clientKey });
  return {
    row,
    entry: entryOf(caller, now, { entity: 'token_intent', id, operation: 'create' }),
    reply: {
      status: 201,
      location: `/token-intents/${id}`,
      body: viewTokenIntent(openerFor(caller, 'token-intent:create'), row, now),
    },
  };
}

/** From the decision `not_found`. */
export function readTokenIntent(tools: TokenIntentReading, caller: Caller, id: string): Decide {
  const { store, clock } = tools;
  return async () => {
    const now = clock.now();
    const row = await existingIntent(store, caller, { id, now });
    const fact = { entity: 'token_intent', id: row.token_intent_id, operation: 'read' } as const;
    const opener = openerFor(caller, 'token-intent:read');
    return {
      change: { entries: [entryOf(caller, now, fact)] },
      reply: { status: 200, body: viewTokenIntent(opener, row, now) },
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
): Promise<Unproven<'token_intents'> | undefined> {
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
): Promise<Unproven<'token_intents'>> {
  const row = await liveIntent(store, caller, wanted);
  if (row) return row;
  throw new VaultError('not_found', { public: 'There is no token intent with this id.' });
}
