/** A response as it is stored under an idempotency key: sealed, for a day; parts of it expire earlier. */

import { hour, type Instant, instantAfter } from '../../base/clock.ts';
import type { ApplicationId } from '../../base/ids.ts';
import { isObject, type Json } from '../../base/json.ts';
import { mergePatch, patchBetween } from '../../base/merge-patch.ts';
import type { Random } from '../../base/random.ts';
import { openText, resealText, type Sealed, sealText } from '../../keys/envelope.ts';
import { type Opener, openerOf, type Resealer } from '../../rules/openings.ts';
import type { Reply, ReplyBody, ReplyExpiry } from '../../rules/reply.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Key, Row } from '../../store/tables.ts';
import { type StoredReply, storedTokens } from './replayed-tokens.ts';

const replyRetentionMs = 24 * hour;

/** Sealed for a request that has called another host and whose outcome is not known yet. */
const begun = { begun: true } as const;

/** The sealed reply. Each of `later` changes the body from its instant on; only the latest applies. */
type SealedReply = StoredReply & { readonly later?: readonly LaterPatch[] };

interface LaterPatch {
  readonly at: Instant;
  /** Merged into the body (RFC 7386); without it the response is forgotten then. */
  readonly patch?: Json;
}

/** The four parts of a key as one string. Neither an id nor a route holds a line break. */
export function replyKeyText(key: Key<'replies'>): string {
  return `${key.tenant_id}\n${key.application_id}\n${key.route}\n${key.key_digest}`;
}

export interface ReplySealing {
  readonly tenant: Tenant;
  readonly key: Key<'replies'>;
  /** The application whose quota the stored bytes count against: for a session, the application that created it. */
  readonly chargedTo?: ApplicationId;
  readonly now: Instant;
  readonly random: Random;
}

/**
 * @param reply `undefined` for a request whose outcome is not known yet.
 * @param version one more than that of the row it replaces, or 1.
 */
export function replyRow(
  sealing: ReplySealing,
  reply: Reply | undefined,
  version: number,
): Row<'replies'> {
  const { key, now, chargedTo } = sealing;
  const place = { ...key, version, charged_to: chargedTo ?? null };
  if (reply === undefined) {
    return { ...place, ...sealedReply(sealing, begun, now), created_at: now };
  }
  const { list: _list, expiry, tokens, ...rest } = reply;
  const later = expiry ? laterOf(expiry, rest.body, now) : [];
  const stored: SealedReply = {
    ...rest,
    ...(later.length > 0 && { later }),
    ...(tokens && { tokens: storedTokens(tokens) }),
  };
  return { ...place, ...sealedReply(sealing, stored, now), created_at: now };
}

/** What changes while the response is stored; most of a body stays as it is, so only the changes are stored. */
function laterOf(
  { at, bodyAt }: ReplyExpiry,
  body: ReplyBody | undefined,
  now: Instant,
): LaterPatch[] {
  const instants = [...new Set(at)].filter((one) => one < endOf(now)).toSorted((a, b) => a - b);
  if (bodyAt === undefined) return instants.map((instant) => ({ at: instant }));
  return instants.flatMap((instant) => {
    const patch = patchBetween(body as Json, bodyAt(instant) as Json);
    return isObject(patch) && Object.keys(patch).length === 0 ? [] : [{ at: instant, patch }];
  });
}

/** The response as it may be given now; `undefined` when it has expired, or nothing of it is left. */
export function replyOf(
  opener: Opener,
  row: Row<'replies'>,
  now: Instant,
): StoredReply | 'begun' | undefined {
  if (now >= endOf(row.created_at)) return undefined;
  const opened = openReply(opener, row);
  if ('begun' in opened) return 'begun';
  const current = withoutExpired(opened, now);
  if (current === undefined) return undefined;
  const { later: _later, ...reply } = current;
  return reply;
}

/** The row without what has expired by now; `undefined` when nothing of it is left. */
export function rowWithoutExpired(
  sealing: ReplySealing,
  row: Row<'replies'>,
): Row<'replies'> | undefined {
  if (sealing.now >= endOf(row.created_at)) return undefined;
  const opened = openReply(openerOf('expire responses', sealing.tenant), row);
  const stored = 'begun' in opened ? opened : withoutExpired(opened, sealing.now);
  const { version, created_at } = row;
  return stored && { ...row, version: version + 1, ...sealedReply(sealing, stored, created_at) };
}

/** The row in its next version, sealed again. @throws VaultError `integrity` when it was altered. */
export function resealedReply(
  { keyring, grant, random }: Resealer,
  row: Row<'replies'>,
): Row<'replies'> {
  const place = bindingOf(row, row.created_at);
  const places = { from: place, to: place };
  const sealed = { sealed: row.reply, random };
  const reply = resealText(keyring.opening('reply', grant), places, sealed);
  return { ...row, version: row.version + 1, reply };
}

function endOf(created: Instant): Instant {
  return instantAfter(created, replyRetentionMs);
}

function withoutExpired(stored: SealedReply, now: Instant): SealedReply | undefined {
  const { later = [], ...reply } = stored;
  const reached = later.filter(({ at }) => at <= now).at(-1);
  if (reached === undefined) return stored;
  if (reached.patch === undefined) return undefined;
  const rest = later.filter(({ at }) => at > now);
  const body = mergePatch(reply.body as Json, reached.patch) as ReplyBody;
  return { ...reply, body, ...(rest.length > 0 && { later: rest }) };
}

function sealedReply(
  { tenant, key, random }: ReplySealing,
  stored: SealedReply | typeof begun,
  created: Instant,
) {
  const keys = tenant.keyring.sealing('reply');
  const reply: Sealed = sealText(keys, bindingOf(key, created), JSON.stringify(stored), random);
  const expiresAt = 'begun' in stored ? undefined : stored.later?.[0]?.at;
  return { reply, next_expiry_at: expiresAt ?? endOf(created) };
}

function openReply({ keyring, grant }: Opener, row: Row<'replies'>): SealedReply | typeof begun {
  const binding = bindingOf(row, row.created_at);
  const text = openText(keyring.opening('reply', grant), binding, row.reply);
  return JSON.parse(text.reveal()) as SealedReply | typeof begun;
}

/** Includes the creation time, so an attacker with write access to the database cannot prolong the 24 hours. */
function bindingOf(key: Key<'replies'>, created: Instant) {
  const { tenant_id: tenant, application_id: alias } = key;
  return { tenant, id: replyKeyText(key), alias, field: 'reply', row: String(created) };
}
