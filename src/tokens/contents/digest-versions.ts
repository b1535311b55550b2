/** Under which keys the digests of a row are: the version of the key that seals its data tells. */
import { keyVersionOf } from '../../keys/envelope.ts';
import type { DigestPurpose } from '../../keys/keyring.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Row } from '../../store/tables.ts';

type Keyed = Pick<Tenant, 'keyring'>;

/** Whether what the row has of the purpose is under the active key. */
export function hasCurrentDigest(
  { keyring }: Keyed,
  purpose: DigestPurpose,
  { data }: Pick<Row<'tokens'>, 'data'>,
): boolean {
  const version = keyVersionOf(data) ?? 0;
  return keyring.digestVersion(purpose, version) === keyring.activeVersion(purpose);
}

type DigestedRow = Pick<Row<'tokens'>, 'data' | 'fingerprint'> &
  Partial<Pick<Row<'tokens'>, 'search_indexes' | 'metadata'>>;

/** Which digests of the row are under earlier keys. What it does not have is not. */
export function outdatedDigests(
  tenant: Keyed,
  row: DigestedRow,
): Readonly<Record<'fingerprint' | 'terms', boolean>> {
  const { fingerprint, search_indexes = null, metadata = null } = row;
  const hasTerms = search_indexes !== null || metadata !== null;
  const hasFingerprint = fingerprint !== null && fingerprint !== '';
  return {
    fingerprint: hasFingerprint && !hasCurrentDigest(tenant, 'fingerprint', row),
    terms: hasTerms && !hasCurrentDigest(tenant, 'search', row),
  };
}

/**
 * The version under which a row is sealed again whose digests stay as they are: it must go on telling theirs.
 * @returns `undefined` for the active one.
 */
export function versionWithDigests(tenant: Keyed, row: DigestedRow): number | undefined {
  const { fingerprint, terms } = outdatedDigests(tenant, row);
  return fingerprint || terms ? keyVersionOf(row.data) : undefined;
}
