/** Comparing a tenant's rows with its log: every row that the log does not explain is a finding. */

import { parseInstant } from '../base/clock.ts';
import type { TenantId } from '../base/ids.ts';
import type { Keyring } from '../keys/keyring.ts';
import { isProven } from '../rules/proven-row.ts';
import { type LogBlock, openBlock } from '../store/log-chain/block.ts';
import type { PlacedEntry } from '../store/log-chain/entries.ts';
import type { ReadOnlyStore } from '../store/open/read-only.ts';
import { pageOfTenant } from '../store/queries/tenant-rows.ts';
import {
  authenticatorOf,
  type ExplainedName,
  explainedNames,
  explainedOwnerOf,
  explainedTables,
  type Mark,
  marksOfEntry,
  versionOf,
} from '../store/row-states.ts';
import type { AnyRow } from '../store/tables.ts';
import { rangeOf } from './finding.ts';
import { isOwnBlock } from './proving.ts';
import type { LogRecord } from './records.ts';
import { type EntryPlace, RowHistory } from './row-history.ts';
import { isOwn, openRemoval, type Signed } from './statements.ts';

export interface StateFinding {
  /**
   * `edited`: not as the vault wrote it. `restored`: an earlier version that the vault wrote.
   * `inserted`: no entry mentions it. `missing`: according to the log, it exists.
   * The vault may have written a restored or a missing row again since.
   * `forged`: the vault did not write the block that holds the entry, or not at this place.
   */
  readonly kind: 'edited' | 'restored' | 'inserted' | 'missing' | 'forged';
  readonly tenant_id: TenantId;
  /** As entries call it. */
  readonly entity_type: string;
  readonly id: string;
  /** The last entry about the row; absent if there is none. */
  readonly stream_id?: string;
  readonly seq?: number;
  readonly message: string;
}

export interface StateReport {
  /** Rows that were compared. */
  readonly rows: number;
  /** Authentic rows that are older than the log that retention has left, which has no entries about them. */
  readonly beyond: number;
  readonly findings: readonly StateFinding[];
}

/** Rows fetched at a time: a token may have a megabyte. */
const pageRowsMax = 100;

export interface StateWalkOptions {
  readonly tenant: TenantId;
  /** Undefined where the tenant has no row, or one that is deleted. */
  readonly keyring: Keyring | undefined;
  /** The row of the tenant is the one that a deletion leaves. Without keys no entry can prove the deletion. */
  readonly wasDeleted: boolean;
  readonly store: ReadOnlyStore;
}

/**
 * Takes the records of one tenant's log, then reads its tables. Its memory grows with the rows that the
 * log speaks of. The store must give both as of one moment.
 */
export class StateWalk {
  readonly #options: StateWalkOptions;
  readonly #histories = new Map<ExplainedName, Map<string, RowHistory>>();
  /** Of rows that go with another one, without an entry of their own, the id of that one. */
  readonly #owners = new Map<string, string>();
  /** Each once, however many entries name it. */
  readonly #streams = new Map<string, string>();
  /** Entries before it may be gone, so a missing one proves nothing. */
  #horizon = parseInstant(0);
  #rows = 0;
  #beyond = 0;
  readonly #findings: StateFinding[] = [];

  constructor(options: StateWalkOptions) {
    this.#options = options;
  }

  take(record: LogRecord): void {
    if (record.kind === 'removal') this.#takeRemoval(record.signed);
    else if (record.kind === 'blocks') for (const block of record.blocks) this.#takeBlock(block);
  }

  async finish(): Promise<StateReport> {
    for (const table of explainedNames) await this.#compare(table);
    return { rows: this.#rows, beyond: this.#beyond, findings: this.#findings };
  }

  #takeRemoval(signed: Signed): void {
    const { keyring } = this.#options;
    const removal = keyring && isOwn({ keyring }, signed) ? openRemoval(signed) : undefined;
    if (removal && removal.before > this.#horizon) this.#horizon = removal.before;
  }

  /** An unreadable block proves nothing about rows. */
  #takeBlock(block: LogBlock): void {
    const spoken = (openBlock(block) ?? []).filter(
      ({ state, created_at }) => state !== null && created_at >= this.#horizon,
    );
    const isOwn = this.#isOwn(block);
    for (const entry of spoken) {
      if (isOwn) this.#takeEntry(entry);
      else this.#reportEntry(entry, 'was not written by the vault');
    }
    if (!isOwn && spoken.length === 0) this.#reportBlock(block);
  }

  /** A deleted tenant has no keys for the check. */
  #isOwn(block: LogBlock): boolean {
    const { keyring } = this.#options;
    return keyring === undefined || isOwnBlock({ keyring }, block);
  }

  #takeEntry(entry: PlacedEntry): void {
    const stream = this.#streams.get(entry.stream_id) ?? entry.stream_id;
    this.#streams.set(stream, stream);
    const place = { at: entry.created_at, stream, seq: entry.seq };
    for (const mark of marksOfEntry(entry)) {
      this.#historyOf(mark, place).take(mark, place);
      const owner = mark.sign === '+' ? explainedOwnerOf(mark.table) : undefined;
      const isMadeByOwner = owner && explainedTables[owner].entity === entry.entity_type;
      if (isMadeByOwner) this.#owners.set(mark.id, entry.entity_id);
    }
  }

  /** The tables are compared with owners first, so an owner whose history is left over has no row. */
  #wentWithOwner(table: ExplainedName, id: string): boolean {
    const owner = explainedOwnerOf(table);
    const known = owner && this.#historiesOf(owner).get(this.#owners.get(id) ?? '');
    return known !== undefined && known.standing().length === 0;
  }

  #historyOf({ table, id }: Mark, place: EntryPlace): RowHistory {
    const histories = this.#historiesOf(table);
    const history = histories.get(id) ?? new RowHistory(place);
    histories.set(id, history);
    return history;
  }

  #historiesOf(table: ExplainedName): Map<string, RowHistory> {
    const histories = this.#histories.get(table) ?? new Map<string, RowHistory>();
    this.#histories.set(table, histories);
    return histories;
  }

  async #compare(table: ExplainedName): Promise<void> {
    const { tenant, store, keyring } = this.#options;
    // Without the keys of a tenant only its own row can be checked.
    if (keyring === undefined && table !== 'tenants') return;
    const histories = this.#historiesOf(table);
    const column = explainedTables[table].id;
    let after: string | undefined;
    for (;;) {
      const page = { tenant, column, after, rowsMax: pageRowsMax };
      const rows = await store.select(pageOfTenant(table, page));
      for (const row of rows) {
        const id = String(row[column]);
        const history = histories.get(id);
        this.#rows++;
        const flaw = this.#flawOf(table, row, history) ?? this.#pastFlawOf(history);
        if (flaw) this.#report(flaw.kind, { table, id, history, ...flaw });
        histories.delete(id);
        after = id;
      }
      if (rows.length < pageRowsMax) break;
    }
    const message = 'is gone, and no entry says that it was removed';
    // The vault never removes the row of a tenant, whatever entries state.
    if (table === 'tenants' && after === undefined) {
      this.#report('missing', { table, id: tenant, history: histories.get(tenant), message });
      return;
    }
    for (const [id, history] of histories) {
      const isGone = history.standing().length === 0 || this.#wentWithOwner(table, id);
      const flaw = isGone ? this.#pastFlawOf(history) : ({ kind: 'missing', message } as const);
      if (flaw) this.#report(flaw.kind, { table, id, history, ...flaw });
    }
  }

  #flawOf(table: ExplainedName, row: AnyRow, history: RowHistory | undefined): RowFlaw | undefined {
    const { keyring, wasDeleted } = this.#options;
    const isDeleted = table === 'tenants' && row['deleted_at'] !== null;
    const standing = history?.standing() ?? [];
    const authentic =
      !isDeleted && keyring !== undefined && isProven({ keyring }, table, row as never);
    if (history === undefined) {
      if (!authentic || changedAt(row) >= this.#horizon) {
        return { kind: 'inserted', message: 'was created, and no entry says so' };
      }
      this.#beyond++;
      return undefined;
    }
    if (isDeleted) {
      if (wasDeleted && standing.length === 0) return undefined;
      return { kind: 'edited', message: 'is marked as deleted, and the vault did not do so' };
    }
    if (standing.length === 0) {
      return { kind: 'restored', message: 'is there again, after it was removed' };
    }
    const same = standing.filter((one) => one.authenticator === authenticatorOf(table, row));
    if (authentic && same.some(({ version }) => version === versionOf(row))) return undefined;
    if (authentic && same.length === 0) {
      return { kind: 'restored', message: 'is not the version that was written last' };
    }
    return { kind: 'edited', message: 'is not as it was written' };
  }

  /** A flaw that the vault has overwritten and so accepted: the row itself may be as it was written last. */
  #pastFlawOf(history: RowHistory | undefined): RowFlaw | undefined {
    const kind = history?.overwritten(this.#horizon);
    if (kind === undefined) return undefined;
    const before = kind === 'restored' ? 'an older version of it was put back' : 'it was removed';
    return { kind, message: `was written again after ${before} outside the vault` };
  }

  #reportEntry({ entity_type, entity_id: id, stream_id, seq }: PlacedEntry, flaw: string): void {
    const { tenant: tenant_id } = this.#options;
    const message = `the entry about ${entity_type} ${id} ${flaw}`;
    this.#findings.push({ kind: 'forged', tenant_id, entity_type, id, stream_id, seq, message });
  }

  #reportBlock({ stream_id, first_seq: seq, last_seq }: LogBlock): void {
    const { tenant: tenant_id } = this.#options;
    const entries = rangeOf(['entry', 'entries'], seq, last_seq);
    const message = `${entries} of log stream ${stream_id}: not as the vault wrote them, or not in that place`;
    const place = { id: stream_id, stream_id, seq };
    this.#findings.push({ kind: 'forged', tenant_id, entity_type: 'log', ...place, message });
  }

  #report(kind: StateFinding['kind'], { table, id, history, message }: FindingSubject): void {
    const { entity } = explainedTables[table];
    this.#findings.push({
      kind,
      tenant_id: this.#options.tenant,
      entity_type: entity,
      id,
      ...(history && { stream_id: history.last.stream, seq: history.last.seq }),
      message: `${entity} ${id} ${message}`,
    });
  }
}

interface RowFlaw {
  readonly kind: StateFinding['kind'];
  readonly message: string;
}

interface FindingSubject extends Omit<RowFlaw, 'kind'> {
  readonly table: ExplainedName;
  readonly id: string;
  readonly history: RowHistory | undefined;
}

const times = ['created_at', 'modified_at', 'authorized_at', 'used_at'] as const;

/** When the row was last changed, according to the row itself. */
function changedAt(row: AnyRow): number {
  return Math.max(...times.map((name) => Number(row[name] ?? 0)));
}
