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

/** What tells servers apart, by the function that a provider may deny to its users. */
const identitySql = {
  pg_control_system: '(select system_identifier::text from pg_control_system())',
  pg_walfile_name: `case when not pg_is_in_recovery()
    then substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) end`,
} as const;
export type IdentityFunction = keyof typeof identitySql;

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
    systemId: identity?.pg_control_system ?? undefined,
    timeline: identity?.pg_walfile_name ? Number.parseInt(identity.pg_walfile_name, 16) : undefined,
  };
}

type ServerIdentity = Readonly<Partial<Record<IdentityFunction, string | null>>>;

/** What is denied is unknown, and the rest is known all the same. */
async function identityOf(session: Session): Promise<ServerIdentity> {
  const names = Object.keys(identitySql) as IdentityFunction[];
  const whole = await called(session, names);
  if (whole !== undefined) return whole;
  const parts: ServerIdentity[] = [];
  for (const name of names) parts.push((await called(session, [name])) ?? {});
  return Object.assign({}, ...parts);
}

/** @returns the functions that this user of the server may not call. */
export async function hiddenFunctions(session: Session): Promise<readonly IdentityFunction[]> {
  const identity = await identityOf(session);
  return (Object.keys(identitySql) as IdentityFunction[]).filter((name) => !(name in identity));
}

async function called(
  session: Session,
  names: readonly IdentityFunction[],
): Promise<ServerIdentity | undefined> {
  const text = `select ${names.map((name) => `${identitySql[name]} as ${name}`).join(', ')}`;
  try {
    return (await session.query({ text })).rows[0];
  } catch (error) {
    if (error instanceof pg.DatabaseError) return undefined;
    throw error;
  }
}
