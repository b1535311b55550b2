/** Creating a token, or finding the one that already holds the same value. */
import type { Clock, Instant } from '../lib/clock.ts';
import { VaultError } from '../lib/errors.ts';
import type { TokenId } from '../lib/ids.ts';
import { mergePatch } from '../lib/merge-patch.ts';
import type { Random } from '../lib/random.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import { decide } from './access.ts';
import { entryOf } from './audit.ts';
import type { Caller } from './caller.ts';
import { type Decide, type Effect, refuse } from './perform.ts';
import {
  type Contents,
  contentsOfRequest,
  contentsOfRow,
  hasExpired,
  type Metadata,
  type TokenRequest,
} from './token-contents.ts';
import { drawTokenIds } from './token-id.ts';
import { removalOf, tokensWithFingerprint } from './token-queries.ts';
import { deriveRow, fingerprintOfContents, openData, searchTerms } from './token-row.ts';
import { tokenTypes } from './token-types.ts';
import { type Extras, type OnMaskFailure, viewDeduplicated, viewToken } from './view.ts';

export interface TokenWriting {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly onMaskFailure: OnMaskFailure;
}

/** @throws VaultError `validation_failed`; from the decision `conflict` when the id is taken. */
export function createToken(tools: TokenWriting, caller: Caller, request: TokenRequest): Decide {
  const { store, clock } = tools;
  const { tenant } = caller;
  const contents = contentsOfRequest(request, clock);
  const deduplicates = deduplicatesTokens(caller, request.deduplicate_token);
  const fingerprint =
    deduplicates || fingerprintsTokens(caller, contents)
      ? fingerprintOfContents(tenant, contents)
      : null;
  const ids = drawTokenIds(request.id ?? undefined, contents, tools.random);
  return async (conflict) => {
    const now = clock.now();
    const id = ids.next(conflict === 'tokens.key');
    const equals =
      deduplicates && fingerprint !== null
        ? await tokensWithFingerprint(store, tenant.id, fingerprint)
        : [];
    const existing = equals.find((row) => !hasExpired(row, now));
    if (existing) return deduplicate(tools, caller, { contents, existing });
    const inTheWay =
      conflict === undefined
        ? []
        : await expiredHolders(store, { id: id.value, equals, now, caller });
    if (conflict === 'tokens.key' && !id.drawn && inTheWay.length === 0) {
      throw new VaultError('conflict', { public: 'A token with this id exists.' });
    }
    return createAs(tools, caller, { id: id.value, contents, fingerprint, deduplicates, inTheWay });
  };
}

interface Creation {
  readonly id: TokenId;
  readonly contents: Contents;
  readonly fingerprint: string | null;
  readonly deduplicates: boolean;
  /** Expired tokens that still hold the id or the fingerprint; they go in the same commit. */
  readonly inTheWay: readonly Row<'tokens'>[];
}

async function createAs(tools: TokenWriting, caller: Caller, creation: Creation): Promise<Effect> {
  const { store, clock, random, onMaskFailure } = tools;
  const { id, contents, fingerprint, deduplicates, inTheWay } = creation;
  const { tenant } = caller;
  const now = clock.now();
  const grant = decide(caller.policy, 'token:create', { id, container: contents.container });
  if (!grant) {
    return refuse(caller, now, { entity: 'token', id: '*', permission: 'token:create' });
  }
  const row: Row<'tokens'> = {
    tenant_id: tenant.id,
    token_id: id,
    version: 1,
    ...deriveRow({ tenant, id, contents, fingerprint, random }),
    deduplicated: deduplicates ? 1 : 0,
    created_by: caller.application,
    created_at: now,
    modified_by: null,
    modified_at: null,
  };
  const open = () => openData(tenant, row);
  const body = viewToken({ row, open, grant, onMaskFailure, extras: { deduplicated: false } });
  return {
    change: {
      ...(inTheWay.length > 0 && { remove: await removalOf(store, inTheWay) }),
      insert: { tokens: [row], search_terms: searchTerms(tenant, id, contents) },
      entries: [
        entryOf(caller, now, { entity: 'token', id, operation: 'create' }),
        ...inTheWay.map((gone) =>
          entryOf(caller, now, { entity: 'token', id: gone.token_id, operation: 'expire' }),
        ),
      ],
    },
    reply: { status: 201, location: `/tokens/${encodeURIComponent(id)}`, body },
  };
}

interface Duplicate {
  readonly contents: Contents;
  readonly existing: Row<'tokens'>;
}

/** Answers with the token that exists, changed first where the tenant wants it so. */
async function deduplicate(
  tools: TokenWriting,
  caller: Caller,
  duplicate: Duplicate,
): Promise<Effect> {
  const { clock, onMaskFailure } = tools;
  const { contents, existing } = duplicate;
  const now = clock.now();
  const subject = { id: existing.token_id, container: contents.container };
  if (!decide(caller.policy, 'token:create', subject)) {
    return refuse(caller, now, { entity: 'token', id: '*', permission: 'token:create' });
  }
  const behavior = caller.tenant.settings.token_deduplication_behavior;
  const row = behavior === 'update_existing' ? mergeInto(tools, caller, duplicate, now) : existing;
  const extras: Extras = { deduplicated: true, deduplication_behavior: behavior };
  const grant = decide(caller.policy, 'token:read', { id: row.token_id, container: row.container });
  const open = () => openData(caller.tenant, row);
  const fact = { entity: 'token', id: row.token_id } as const;
  return {
    change: {
      ...(row !== existing && { replace: { tokens: [row] } }),
      entries: [entryOf(caller, now, { ...fact, operation: row === existing ? 'read' : 'update' })],
    },
    reply: {
      status: 201,
      location: `/tokens/${encodeURIComponent(row.token_id)}`,
      body: grant
        ? viewToken({ row, open, grant, onMaskFailure, extras })
        : viewDeduplicated(row, extras),
    },
  };
}

/** The existing token with the incoming data and metadata merged in; what it is found by stays. */
function mergeInto(
  { random }: TokenWriting,
  caller: Caller,
  { contents, existing }: Duplicate,
  now: Instant,
): Row<'tokens'> {
  const { tenant } = caller;
  const before = contentsOfRow(existing, openData(tenant, existing).reveal());
  const merged: Contents = {
    ...before,
    data: tokenTypes[before.type].parseData(mergePatch(before.data, contents.data)),
    ...(contents.metadata && {
      metadata: mergePatch(before.metadata, contents.metadata) as Metadata,
    }),
  };
  const id = existing.token_id;
  return {
    ...existing,
    ...deriveRow({ tenant, id, contents: merged, fingerprint: existing.fingerprint, random }),
    version: existing.version + 1,
    modified_by: caller.application,
    modified_at: now,
  };
}

async function expiredHolders(
  store: Store,
  {
    id,
    equals,
    now,
    caller,
  }: { id: TokenId; equals: readonly Row<'tokens'>[]; now: Instant; caller: Caller },
): Promise<Row<'tokens'>[]> {
  const sameId = await store.get('tokens', { tenant_id: caller.tenant.id, token_id: id });
  const holders = equals.filter((row) => row.deduplicated === 1 && row.token_id !== id);
  return (sameId ? [sameId, ...holders] : holders).filter((row) => hasExpired(row, now));
}

/** The request decides; where it says nothing, the tenant's setting does. */
export function deduplicatesTokens(caller: Caller, requested: boolean | null | undefined): boolean {
  return requested ?? caller.tenant.settings.deduplicate_tokens === 'true';
}

export function fingerprintsTokens(caller: Caller, contents: Contents): boolean {
  return (
    contents.fingerprintExpression !== undefined ||
    caller.tenant.settings.fingerprint_tokens === 'true'
  );
}
