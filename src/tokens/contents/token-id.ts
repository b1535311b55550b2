/** The id a token gets: the caller's own, one drawn from an expression, or a UUID. */
import { invalid, type VaultError } from '../../base/errors.ts';
import { newUuid, parseTokenId, type TokenId, tokenIdForm } from '../../base/ids.ts';
import type { Random } from '../../base/random.ts';
import { type Evaluated, evaluateText } from './sealed-row.ts';

/** Draws from an expression before its space of aliases counts as exhausted. */
const drawsMax = 10;

export interface DrawnId {
  readonly value: TokenId;
  /** False for an id that the caller chose, which the vault must not replace when it is taken. */
  readonly drawn: boolean;
}

export interface TokenIds {
  /** The id to use; another one, where there can be another, after the last one was taken. */
  next(taken: boolean): DrawnId;
}

/** @throws VaultError `validation_failed` when the id, or the result of its expression, is not a valid id. */
export function drawTokenIds(
  id: string | undefined,
  evaluated: Evaluated,
  random: Random,
): TokenIds {
  if (id === undefined) return redraw(() => newUuid<TokenId>(random));
  if (!id.includes('{{') && !id.includes('{%')) {
    const own = { value: checked(id), drawn: false };
    return { next: () => own };
  }
  const first = checked(evaluateText(id, 'id', evaluated));
  // An expression without randomness gives the same value again: then the caller chose the id.
  let draws = 1;
  let current: DrawnId = { value: first, drawn: false };
  return {
    next: (taken) => {
      if (!taken) return current;
      while (draws < drawsMax) {
        draws++;
        const value = checked(evaluateText(id, 'id', evaluated));
        if (value === current.value) continue;
        current = { value, drawn: true };
        return current;
      }
      if (current.drawn) current = { value: newUuid<TokenId>(random), drawn: true };
      return current;
    },
  };
}

function redraw(draw: () => TokenId): TokenIds {
  let current = { value: draw(), drawn: true };
  return {
    next: (taken) => {
      if (taken) current = { value: draw(), drawn: true };
      return current;
    },
  };
}

/** Of two creations of one request that name the same id, the second is a mistake. */
export function idRepeated(): VaultError {
  return invalid('id', 'must be unique in the request');
}

/** A token of this id could not be read, because its path is that of another route. */
const reserved = 'export';

/** Stricter than for ids that are looked up: those that earlier releases stored stay readable. */
function checked(text: string): TokenId {
  const id = /\p{Cf}/u.test(text) ? undefined : parseTokenId(text);
  if (id === undefined) throw invalid('id', tokenIdForm);
  if (id === reserved) throw invalid('id', `must not be "${reserved}", which is a path`);
  return id;
}
