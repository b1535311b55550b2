/** The tokens a change is going to make or alter, so that what comes later in a request finds what came before. */
import type { TokenId } from '../../lib/ids.ts';
import type { Change } from '../../store/change.ts';
import type { Store } from '../../store/store.ts';
import type { Row } from '../../store/tables.ts';
import { replacementOf } from './queries.ts';

/** A token as it will be. */
export interface PendingToken {
  /** As it is stored; absent for a new one. */
  readonly stored: Row<'tokens'> | undefined;
  readonly row: Row<'tokens'>;
  /** Its search terms; absent while it is as it is stored. */
  readonly terms: readonly Row<'search_terms'>[] | undefined;
}

export class PendingTokens {
  readonly #byId = new Map<TokenId, PendingToken>();
  readonly #byFingerprint = new Map<string, TokenId[]>();
  readonly #gone = new Map<TokenId, Row<'tokens'>>();

  put(token: PendingToken): void {
    const { token_id: id, fingerprint } = token.row;
    const known = this.#byId.has(id);
    this.#byId.set(id, token);
    if (known || fingerprint === null) return;
    const equals = this.#byFingerprint.get(fingerprint);
    if (equals) equals.push(id);
    else this.#byFingerprint.set(fingerprint, [id]);
  }

  get(id: TokenId): PendingToken | undefined {
    return this.#byId.get(id);
  }

  /** The tokens of that fingerprint, in the order in which they were put. */
  equals(fingerprint: string): readonly PendingToken[] {
    const ids = this.#byFingerprint.get(fingerprint) ?? [];
    return ids.flatMap((id) => this.#byId.get(id) ?? []);
  }

  /** A stored token that makes way. */
  remove(row: Row<'tokens'>): void {
    this.#gone.set(row.token_id, row);
  }

  get removed(): readonly Row<'tokens'>[] {
    return [...this.#gone.values()];
  }

  async change(store: Store): Promise<Pick<Change, 'insert' | 'replace' | 'remove'>> {
    const pending = [...this.#byId.values()];
    const made = pending.filter(({ stored }) => stored === undefined);
    const replacements: readonly Pick<Change, 'insert' | 'replace' | 'remove'>[] =
      await Promise.all(
        pending.map(({ stored, row, terms }) =>
          stored && terms ? replacementOf(store, { row: stored, updated: row, terms }) : {},
        ),
      );
    return {
      remove: {
        tokens: this.removed,
        search_terms: replacements.flatMap(({ remove }) => remove?.search_terms ?? []),
      },
      replace: { tokens: replacements.flatMap(({ replace }) => replace?.tokens ?? []) },
      insert: {
        tokens: made.map(({ row }) => row),
        search_terms: [
          ...made.flatMap(({ terms }) => terms ?? []),
          ...replacements.flatMap(({ insert }) => insert?.search_terms ?? []),
        ],
      },
    };
  }
}
