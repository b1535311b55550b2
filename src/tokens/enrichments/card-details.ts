/** The details of the cards behind a BIN: the brand is built in, the rest comes from the operator's table. */
import { cardBrand } from '../../base/checks.ts';
import type { Clock } from '../../base/clock.ts';
import { invalid } from '../../base/errors.ts';
import type { Caller } from '../../rules/caller.ts';
import { entryOf } from '../../rules/log-entries.ts';
import type { Decide } from '../../rules/operation.ts';
import type { BinRange, BinTable } from './bin-table.ts';

export interface CardReading {
  readonly clock: Clock;
  /** Absent if the operator has none. */
  readonly binTable?: (() => Promise<BinTable>) | undefined;
}

const unknown = {
  funding: null,
  segment: null,
  issuer: { country: null, name: null },
  bin_range: [],
};

const binForm = /^[0-9]{6,8}$/;

/**
 * The narrowest range decides; ranges of other brands are the other networks on the same cards.
 *
 * @throws VaultError `validation_failed`
 */
export function readCardDetails(
  { clock, binTable }: CardReading,
  caller: Caller,
  bin: string,
): Decide {
  if (!binForm.test(bin)) throw invalid('bin', 'must be the first 6 to 8 digits of a card number');
  return async () => {
    const ranges = (await binTable?.())?.find(bin) ?? [];
    const details = ranges.map((range) => detailsOf(range, bin));
    const [own = { brand: cardBrand(bin), ...unknown }] = details;
    const brands = new Map(details.toReversed().map((one) => [one.brand, one]));
    brands.delete(own.brand);
    return {
      change: {
        entries: [entryOf(caller, clock.now(), { entity: 'card', id: '*', operation: 'read' })],
      },
      reply: { status: 200, body: { ...own, additional: [...brands.values()].toReversed() } },
    };
  };
}

function detailsOf(range: BinRange, bin: string) {
  const { bin_min, bin_max, brand, funding, segment, issuer_name, issuer_country } = range;
  return {
    brand: brand ?? cardBrand(bin),
    funding,
    segment,
    issuer: { country: issuer_country, name: issuer_name },
    bin_range: [{ bin_min, bin_max }],
  };
}
