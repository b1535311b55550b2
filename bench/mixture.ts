/** The tokens of the million: a card, an account and a name by measurements, each known again by its serial number. */
import { cardNumber } from './cards.ts';

const given = ['Ada', 'Grace', 'Edsger', 'Barbara', 'Donald', 'Radia', 'Alan', 'Frances'];
const kinds = [
  (serial: number) => ({
    type: 'card',
    data: { number: cardNumber(serial), expiration_month: 12, expiration_year: 2030 },
  }),
  (serial: number) => ({
    type: 'bank',
    data: { routing_number: '021000021', account_number: String(serial).padStart(12, '0') },
  }),
  (serial: number) => ({
    type: 'token',
    data: nameOf(serial),
    metadata: { owner: given[serial % given.length] },
    search_indexes: ['{{ data }}'],
  }),
];

/** A name is found by its search index; every third serial number is one. */
export function nameOf(serial: number): string {
  return `${given[serial % given.length]} Example ${serial}`;
}

export function requestOf(serial: number): { readonly id: string; readonly data: unknown } {
  const kind = kinds[serial % kinds.length];
  if (kind === undefined) throw new Error('a remainder is within the kinds');
  return { id: idOf(serial), ...kind(serial) };
}

export function idOf(serial: number): string {
  return `million-${serial}`;
}

/** `undefined` for a token of another's making. */
export function serialOf(id: string): number | undefined {
  const match = /^million-(\d+)$/.exec(id);
  return match ? Number(match[1]) : undefined;
}
