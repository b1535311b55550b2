/** A reactor as it is stored: its settings sealed, the whole row proven. */

import { type Binding, openText, sealText } from '../../crypto/envelope.ts';
import type { Random } from '../../lib/random.ts';
import { Secret } from '../../lib/secret.ts';
import { namingRow } from '../../rules/bound-row.ts';
import type { Opener } from '../../rules/openings.ts';
import { proven, requireProven } from '../../rules/proven-row.ts';
import type { Tenant } from '../../rules/tenant.ts';
import type { Row } from '../../store/tables.ts';
import type { ReactorDefinition } from './definition.ts';

export interface ReactorSealing {
  readonly tenant: Tenant;
  readonly definition: ReactorDefinition;
  readonly random: Random;
}

type UnsealedReactor = Omit<Row<'reactors'>, 'body' | 'proof'>;

export function reactorRow(
  { tenant, definition, random }: ReactorSealing,
  row: UnsealedReactor,
): Row<'reactors'> {
  const keys = tenant.keyring.sealing('data');
  const body = sealText(keys, bindingOf(row), JSON.stringify(definition), random);
  return proven(tenant, 'reactors', { ...row, body });
}

/**
 * The settings of a reactor, from a row that is as the vault wrote it.
 * @throws VaultError `integrity`, which names the row, when anything of it was altered.
 */
export function openReactor(
  { keyring, grant }: Opener,
  row: Row<'reactors'>,
): Secret<ReactorDefinition> {
  const { body } = requireProven({ keyring }, 'reactors', row);
  try {
    const text = openText(keyring.opening('data', grant), bindingOf(row), body);
    return new Secret(JSON.parse(text.reveal()) as ReactorDefinition);
  } catch (error) {
    throw namingRow(error, { entity: 'reactor', id: row.reactor_id });
  }
}

/** A field of its own: what is sealed of a reactor is never taken for anything else with the same id. */
function bindingOf({ tenant_id, reactor_id, version }: UnsealedReactor): Binding {
  return { tenant: tenant_id, id: reactor_id, field: 'reactor.body', row: String(version) };
}
