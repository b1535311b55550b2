/** Log entries on their way to the writer thread: a long string is posted for much less than many objects. */
import type { Instant } from '../../lib/clock.ts';
import type { TenantId } from '../../lib/ids.ts';
import type { WrittenEntry } from '../../lib/log-chain/block.ts';

/** Entries of one tenant, in their order. */
export interface PackedEntries {
  readonly tenant_id: TenantId;
  readonly times: readonly Instant[];
  /** One in each line: no text of an entry has a line break. */
  readonly texts: string;
  /** One in each line. */
  readonly terms: string;
}

export function packEntries(entries: readonly WrittenEntry[]): PackedEntries[] {
  return Array.from(
    Map.groupBy(entries, ({ tenant_id }) => tenant_id),
    ([tenant_id, own]) => ({
      tenant_id,
      times: own.map(({ created_at }) => created_at),
      texts: own.map(({ text }) => text).join('\n'),
      terms: own.map(({ terms }) => terms).join('\n'),
    }),
  );
}

export function unpackEntries({ tenant_id, times, ...packed }: PackedEntries): WrittenEntry[] {
  const [texts, terms] = [packed.texts.split('\n'), packed.terms.split('\n')];
  return times.map((created_at, at) => ({
    tenant_id,
    created_at,
    text: texts[at] ?? '',
    terms: terms[at] ?? '',
  }));
}
