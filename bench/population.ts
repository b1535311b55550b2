/** The tokens that are present before anything is measured: cards with one search index, imported as lines. */
import { cardBody, cardNumber, takeSerials } from './cards.ts';
import { bulkTarget, postLines } from './lines.ts';
import type { Vault } from './vault.ts';

/** Requests take measurements through so many tokens, spread over all there are. */
export const sampleMax = 10_000;

export interface Card {
  readonly id: string;
  readonly number: string;
}

export interface Population {
  readonly count: number;
  /** Some of them, or all. */
  readonly sample: readonly Card[];
}

export const nobody: Population = { count: 0, sample: [] };

export interface Grown {
  readonly population: Population;
  readonly tokensPerSecond: number;
}

/** Imports cards until there are so many, from none or from at most {@link sampleMax}. */
export async function grow(vault: Vault, before: Population, count: number): Promise<Grown> {
  const added = count - before.count;
  const first = takeSerials(added);
  const every = Math.ceil(count / sampleMax);
  const sample = before.sample.filter((_, at) => at % every === 0);
  const started = performance.now();
  let answered = 0;
  const target = bulkTarget(vault.server.url, vault.keys.reveal);
  await postLines(target, indexedCards(first, added), (line) => {
    if (!line.includes('"status":201')) throw new Error(line.toString('utf8'));
    if (answered % every === 0) {
      sample.push({
        id: JSON.parse(line.toString('utf8')).token.id,
        number: cardNumber(first + answered),
      });
    }
    answered += 1;
  });
  if (answered !== added) throw new Error(`of ${added} lines ${answered} were answered`);
  const tokensPerSecond = (added / (performance.now() - started)) * 1000;
  return { population: { count, sample }, tokensPerSecond };
}

function* indexedCards(first: number, count: number): Generator<string> {
  for (let serial = first; serial < first + count; serial += 1) {
    yield cardBody(cardNumber(serial), { search_indexes: ['{{ data.number }}'] });
  }
}
