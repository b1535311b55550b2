/** An answer as it is kept under an idempotency key: sealed, for a day, and fading before that. */
import { openText, type Sealed, sealText } from '../crypto/envelope.ts';
import { hour, type Instant, instantAfter } from '../lib/clock.ts';
import { isObject, type Json } from '../lib/json.ts';
import { mergePatch, patchBetween } from '../lib/merge-patch.ts';
import type { Random } from '../lib/random.ts';
import type { Key, Row } from '../store/tables.ts';
import type { Fading, Reply, ReplyBody } from './perform.ts';
import type { Tenant } from './tenants/tenants.ts';
import { type KeptReply, keptTokens } from './tokens/kept.ts';

export const replyRetentionMs = 24 * hour;

/** What is sealed for a request that has reached out and whose outcome is not known. */
const begun = { begun: true } as const;

/** What is sealed. From its instant on each of `later` changes the body, the last one alone. */
type Kept = KeptReply & { readonly later?: readonly Later[] };

interface Later {
  readonly at: Instant;
  /** Merged into the body (RFC 7386); without it the answer is forgotten then. */
  readonly patch?: Json;
}

/** One text for the four parts of a key. Neither an id nor a route holds a line break. */
export function nameOf(key: Key<'replies'>): string {
  return `${key.tenant_id}\n${key.application_id}\n${key.route}\n${key.key_digest}`;
}

export interface Keeping {
  readonly tenant: Tenant;
  readonly key: Key<'replies'>;
  readonly now: Instant;
  readonly random: Random;
}

/**
 * @param reply `undefined` for a request whose outcome is not known yet.
 * @param version one more than that of the row it replaces, or 1.
 */
export function replyRow(
  keeping: Keeping,
  reply: Reply | undefined,
  version: number,
): Row<'replies'> {
  const { key, now } = keeping;
  if (reply === undefined) {
    return { ...key, version, ...sealedReply(keeping, begun, now), created_at: now };
  }
  const { list: _list, fading, tokens, ...rest } = reply;
  const later = fading ? laterOf(fading, rest.body, now) : [];
  const kept: Kept = {
    ...rest,
    ...(later.length > 0 && { later }),
    ...(tokens && { tokens: keptTokens(tokens) }),
  };
  return { ...key, version, ...sealedReply(keeping, kept, now), created_at: now };
}

/** What changes while the answer is kept; most of a body stays as it is, so only that is stored. */
function laterOf({ at, bodyAt }: Fading, body: ReplyBody | undefined, now: Instant): Later[] {
  const instants = [...new Set(at)].filter((one) => one < endOf(now)).toSorted((a, b) => a - b);
  if (bodyAt === undefined) return instants.map((instant) => ({ at: instant }));
  return instants.flatMap((instant) => {
    const patch = patchBetween(body as Json, bodyAt(instant) as Json);
    return isObject(patch) && Object.keys(patch).length === 0 ? [] : [{ at: instant, patch }];
  });
}

/** The answer as it may be given now; `undefined` when its day is over or it has faded to nothing. */
export function replyOf(
  tenant: Tenant,
  row: Row<'replies'>,
  now: Instant,
): KeptReply | 'begun' | undefined {
  if (now >= endOf(row.created_at)) return undefined;
  const opened = openReply(tenant, row);
  if ('begun' in opened) return 'begun';
  const faded = fade(opened, now);
  if (faded === undefined) return undefined;
  const { later: _later, ...reply } = faded;
  return reply;
}

/** The row without what has faded by now; `undefined` when nothing of it is left. */
export function fadedRow(keeping: Keeping, row: Row<'replies'>): Row<'replies'> | undefined {
  if (keeping.now >= endOf(row.created_at)) return undefined;
  const opened = openReply(keeping.tenant, row);
  const kept = 'begun' in opened ? opened : fade(opened, keeping.now);
  const { version, created_at } = row;
  return kept && { ...row, version: version + 1, ...sealedReply(keeping, kept, created_at) };
}

function endOf(created: Instant): Instant {
  return instantAfter(created, replyRetentionMs);
}

function fade(kept: Kept, now: Instant): Kept | undefined {
  const { later = [], ...reply } = kept;
  const reached = later.filter(({ at }) => at <= now).at(-1);
  if (reached === undefined) return kept;
  if (reached.patch === undefined) return undefined;
  const rest = later.filter(({ at }) => at > now);
  const body = mergePatch(reply.body as Json, reached.patch) as ReplyBody;
  return { ...reply, body, ...(rest.length > 0 && { later: rest }) };
}

function sealedReply(
  { tenant, key, random }: Keeping,
  kept: Kept | typeof begun,
  created: Instant,
) {
  const keys = tenant.keyring.sealing('reply');
  const reply: Sealed = sealText(keys, bindingOf(key, created), JSON.stringify(kept), random);
  const fadesAt = 'begun' in kept ? undefined : kept.later?.[0]?.at;
  return { reply, fades_at: fadesAt ?? endOf(created) };
}

function openReply(tenant: Tenant, row: Row<'replies'>): Kept | typeof begun {
  const binding = bindingOf(row, row.created_at);
  const text = openText(tenant.keyring.sealing('reply'), binding, row.reply);
  return JSON.parse(text.reveal()) as Kept | typeof begun;
}

/** With its beginning: nobody who can write to the database makes an answer last longer than its day. */
function bindingOf(key: Key<'replies'>, created: Instant) {
  const { tenant_id: tenant, application_id: alias } = key;
  return { tenant, id: nameOf(key), alias, field: 'reply', row: String(created) };
}
