/** An approval as it is stored: the request that people see is sealed, and the whole row proven. */
import type { ApplicationId, KeyId, PersonId } from '../../base/ids.ts';
import type { Random } from '../../base/random.ts';
import type { Caller } from '../../rules/caller.ts';
import type { Opener, Resealer } from '../../rules/openings.ts';
import { type Keys, proven, requireProven } from '../../rules/proven-row.ts';
import { openSettings, resealSettings, sealSettings } from '../../rules/sealed-settings.ts';
import type { Unproven } from '../../store/stored-row.ts';
import type { Row } from '../../store/tables.ts';
import type { ShownRequest } from './shown-request.ts';

interface ApprovalBody {
  readonly request: ShownRequest;
  readonly key: KeyId | undefined;
  /** `first` or `always`, as the policy said. */
  readonly approval: 'first' | 'always';
  /** Of the request that waits: no other is sent in its place. */
  readonly digest: string;
}

/** Who decided. */
export interface Decider {
  readonly application_id: ApplicationId;
  readonly person?: { readonly id: PersonId; readonly name: string };
}

export function deciderOf({ application, signedIn, origin }: Caller): Decider {
  const { person } = origin;
  return {
    application_id: application,
    ...(signedIn && person && { person: { id: signedIn.id, name: person.name } }),
  };
}

export function storedDecider({ decider }: Pick<Row<'approvals'>, 'decider'>): Decider | undefined {
  return decider === null ? undefined : (JSON.parse(decider) as Decider);
}

type UnsealedApproval = Omit<Row<'approvals'>, 'body' | 'proof'>;

export function approvalRow(
  { keyring }: Keys,
  { body, random }: { readonly body: ApprovalBody; readonly random: Random },
  row: UnsealedApproval,
): Row<'approvals'> {
  const sealed = sealSettings({ keyring, random }, sealedAs(row), body);
  return proven({ keyring }, 'approvals', { ...row, body: sealed });
}

/** @throws VaultError `integrity`, which names the row, if what is sealed in it was altered. */
export function openApproval(opener: Opener, row: Row<'approvals'>): ApprovalBody {
  return openSettings<ApprovalBody>(opener, sealedAs(row), row.body).reveal();
}

/** The row in its next version, with other columns where they are given. */
export function nextApproval(
  resealer: Resealer,
  { proof: _proof, ...row }: Row<'approvals'>,
  columns: Partial<UnsealedApproval> = {},
): Row<'approvals'> {
  const body = resealSettings(resealer, sealedAs(row), row.body);
  return proven(resealer, 'approvals', { ...row, ...columns, version: row.version + 1, body });
}

/** Sealed again under another key. @throws VaultError `integrity` when it was altered. */
export function resealedApproval(
  resealer: Resealer,
  stored: Unproven<'approvals'>,
): Row<'approvals'> {
  return nextApproval(resealer, requireProven(resealer, 'approvals', stored));
}

function sealedAs({ tenant_id, approval_id: id, version }: UnsealedApproval) {
  return { entity: 'approval', tenant_id, id, version } as const;
}
