/** What a mask shows of a value, by which creates with the keys of visitors are counted: see `guesses.ts`. */
import type { Caller } from '../../rules/caller.ts';

/** What a mask shows of a value that is fingerprinted; `undefined` of one with few digits. */
export function visibleDigits(fingerprinted: string): string | undefined {
  const digits = fingerprinted.replace(/\D/g, '');
  if (digits.length < 5) return undefined;
  return digits.length < 12 ? digits.slice(-4) : `${digits.slice(0, 6)} ${digits.slice(-4)}`;
}

export function isCounted({ kind }: Caller): boolean {
  return kind === 'public' || kind === 'session';
}
