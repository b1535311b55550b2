/** The tokens a change is going to make or alter, so that what comes later in a request finds what came before. */
import type { TokenId, TokenIntentId } from '../base/ids.ts';
import type { Change, RemovedRow } from '../store/change.ts';
import type { Store } from '../store/store.ts';
import type { Row } from '../store/tables.ts';
import { equalityOf } from './prepare.ts';
import { replacementOf } from './queries.ts';

export type RemovedToken = RemovedRow<'tokens'>;

/** A token as it will be. */
export interface PendingToken {
  /** As it is stored; absent for a new one. */
  readonly stored: Row<'tokens'> | undefined;
  readonly row: Row<'tokens'>;
  /** Its search terms; absent while it is as it is stored. */
  readonly terms: readonly Row<'search_terms'>[] | undefined;
}

/** By fingerprints under other keys: those of the same values under the active key. */
export type ActiveFingerprints = ReadonlyMap<string, string>;

/** The token with the fingerprint that it has under the active key, as far as that is known. */
export function underActiveKey<R extends { readonly fingerprint: string | null }>(
  row: R,
  active: ActiveFingerprints,
): R {
  const fingerprint = row.fingerprint === null ? undefined : active.get(row.fingerprint);
  return fingerprint === undefined ? row : { ...row, fingerprint };
}

type TokensChange = Pick<Change, 'insert' | 'replace' | 'remove'>;

export class PendingTokens {
  readonly #byId = new Map<TokenId, PendingToken>();
  readonly #byEquality = new Map<string, TokenId[]>();
  readonly #gone = new Map<TokenId, RemovedToken>();
  readonly #converted = new Map<TokenIntentId, Row<'tokens'>>();
  readonly #claims: Row<'fingerprint_claims'>[] = [];
  readonly #active: ActiveFingerprints;

  /** @param active for stored tokens whose fingerprints are under other keys. */
  constructor(active: ActiveFingerprints = new Map()) {
    this.#active = active;
  }

  put(token: PendingToken): void {
    const { token_id: id } = token.row;
    const known = this.#byId.has(id);
    this.#byId.set(id, token);
    const equality = equalityOf(underActiveKey(token.row, this.#active));
    if (known || equality === undefined) return;
    const equals = this.#byEquality.get(equality);
    if (equals) equals.push(id);
    else this.#byEquality.set(equality, [id]);
  }

  get(id: TokenId): PendingToken | undefined {
    return this.#byId.get(id);
  }

  /** The tokens that are equal in that, in the order in which they were put. */
  equals(equality: string): readonly PendingToken[] {
    const ids = this.#byEquality.get(equality) ?? [];
    return ids.flatMap((id) => this.#byId.get(id) ?? []);
  }

  /** A stored token that makes way. */
  remove(row: RemovedToken): void {
    this.#gone.set(row.token_id, row);
  }

  /** Of a new deduplication target: no other server makes one of the same value under another key. */
  claim(row: Row<'fingerprint_claims'>): void {
    this.#claims.push(row);
  }

  /** The token holds the value of the intent from now on. */
  convert({ token_intent_id: id }: Row<'token_intents'>, row: Row<'tokens'>): void {
    this.#converted.set(id, row);
  }

  /** The token that an intent was converted into. */
  convertedInto(intent: TokenIntentId): Row<'tokens'> | undefined {
    return this.#converted.get(intent);
  }

  get removed(): readonly RemovedToken[] {
    return [...this.#gone.values()];
  }

  /** At once where no stored token changes. */
  change(store: Store): TokensChange | Promise<TokensChange> {
    const changed = [...this.#byId.values()].flatMap(({ stored, row, terms }) =>
      stored && terms ? [{ row: stored, updated: row, terms }] : [],
    );
    if (changed.length === 0) return this.#changeWith([]);
    return Promise.all(changed.map((one) => replacementOf(store, one))).then((replacements) =>
      this.#changeWith(replacements),
    );
  }

  #changeWith(replacements: readonly TokensChange[]): TokensChange {
    const made = [...this.#byId.values()].filter(({ stored }) => stored === undefined);
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
        ...(this.#claims.length > 0 && { fingerprint_claims: this.#claims }),
      },
    };
  }
}
