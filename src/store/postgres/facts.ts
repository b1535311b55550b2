/** Reads facts from a server: whether it accepts writes, which data it has, and whether a pooler is in between. */
import pg from 'pg';
import type { Session } from './session.ts';

export interface Facts {
  readonly isStandby: boolean;
  readonly isReadOnly: boolean;
  /** The format of `server_version_num`: 180003 is 18.3. */
  readonly version: number;
  readonly versionText: string;
  /** Whether the parameters of the session are those that it was opened with. A pooler drops or refuses them. */
  readonly hasParameters: boolean;
  /** The identifier of the data directory, if the user may read it. A primary and its standbys have the same one. */
  readonly systemId: string | undefined;
  /** The timeline of a server that accepts writes. It grows with each promotion. */
  readonly timeline: number | undefined;
}

/** A parameter of the vault's own. The server has it if it got any. */
const marker = 'strongroom.session';

export function markerOption(value: string): string {
  return `-c ${marker}=${value}`;
}

const factsSql = `select pg_is_in_recovery() as standby,
  current_setting('transaction_read_only') = 'on' as readonly,
  current_setting('server_version_num')::integer as version,
  current_setting('server_version') as version_text,
  current_setting('${marker}', true) as marker`;

const identitySql = `select (select system_identifier::text from pg_control_system()) as system_id,
  case when not pg_is_in_recovery() then substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) end as timeline`;

/** @param isOneOfSeveral servers, of which it matters whether they have the same data. */
export async function factsOf(
  session: Session,
  expectedMarker: string | undefined,
  isOneOfSeveral: boolean,
): Promise<Facts> {
  const [row] = (await session.query({ text: factsSql })).rows;
  const identity = isOneOfSeveral ? await identityOf(session) : undefined;
  return {
    isStandby: row.standby,
    isReadOnly: row.readonly,
    version: row.version,
    versionText: row.version_text,
    hasParameters: expectedMarker !== undefined && row.marker === expectedMarker,
    systemId: identity?.system_id ?? undefined,
    timeline: identity?.timeline ? Number.parseInt(identity.timeline, 16) : undefined,
  };
}

interface ServerIdentity {
  readonly system_id: string | null;
  readonly timeline: string | null;
}

/** A provider may deny these functions to its users. The identity is then unknown. */
async function identityOf(session: Session): Promise<ServerIdentity | undefined> {
  try {
    return (await session.query({ text: identitySql })).rows[0];
  } catch (error) {
    if (error instanceof pg.DatabaseError) return undefined;
    throw error;
  }
}
