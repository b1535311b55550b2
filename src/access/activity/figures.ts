/** Figures of what a tenant's callers did in a span of time: how they are added up, stored, and shown. */
import { isObject } from '../../base/json.ts';

/** Upper bounds of the classes of latency, in milliseconds. The last class has none. */
const latencyBoundsMs = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000] as const;

/** Applications of which a span counts revealed values apart. {@link otherApplications} stands for further ones. */
export const applicationsMax = 20;
export const otherApplications = '*';

export interface Figures {
  readonly requests: number;
  /** Requests that the vault failed to handle, with a status of 500 or more. */
  readonly failed: number;
  /** What the log has as denied or failed, however often it was repeated. */
  readonly refused: number;
  /** How many requests took how long, by class. */
  readonly latency: readonly number[];
  /** Values that were revealed, by the id of the application. */
  readonly revealed: Readonly<Record<string, number>>;
}

export const noFigures: Figures = {
  requests: 0,
  failed: 0,
  refused: 0,
  latency: [],
  revealed: {},
};

export function addFigures(one: Figures, other: Figures): Figures {
  return {
    requests: one.requests + other.requests,
    failed: one.failed + other.failed,
    refused: one.refused + other.refused,
    latency: Array.from(
      { length: Math.max(one.latency.length, other.latency.length) },
      (_, at) => (one.latency[at] ?? 0) + (other.latency[at] ?? 0),
    ),
    revealed: addRevealed(one.revealed, other.revealed),
  };
}

export function addRevealed(
  one: Figures['revealed'],
  other: Figures['revealed'],
): Figures['revealed'] {
  const sums = new Map(Object.entries(one));
  for (const [id, values] of Object.entries(other)) countRevealed(sums, id, values);
  return Object.fromEntries(sums);
}

/** Further applications than {@link applicationsMax} are counted together. */
export function countRevealed(sums: Map<string, number>, id: string, values: number): void {
  const isKnown = sums.has(id) || sums.size < applicationsMax;
  const name = isKnown ? id : otherApplications;
  sums.set(name, (sums.get(name) ?? 0) + values);
}

/** The place of a request in `latency`. */
export function latencyClassOf(tookMs: number): number {
  const found = latencyBoundsMs.findIndex((bound) => tookMs <= bound);
  return found < 0 ? latencyBoundsMs.length : found;
}

export const newLatency = (): number[] => latencyBoundsMs.map(() => 0).concat(0);

/**
 * The milliseconds within which this share of the requests had their responses: the upper bound of its class.
 * `undefined` without requests.
 */
export function latencyWithin({ latency }: Figures, share: number): number | undefined {
  const total = latency.reduce((sum, count) => sum + count, 0);
  if (total === 0) return undefined;
  let counted = 0;
  const at = latency.findIndex((count) => {
    counted += count;
    return counted >= total * share;
  });
  return latencyBoundsMs[at] ?? 2 * (latencyBoundsMs.at(-1) ?? 0);
}

/** Reads what {@link storedFigures} wrote; anything else, which others wrote, counts as nothing. */
export function readFigures(text: string): Figures {
  let stored: unknown;
  try {
    stored = JSON.parse(text);
  } catch {
    return noFigures;
  }
  if (!isObject(stored)) return noFigures;
  const { requests, failed, refused, latency, revealed } = stored;
  return {
    requests: countOf(requests),
    failed: countOf(failed),
    refused: countOf(refused),
    latency: Array.isArray(latency)
      ? latency.slice(0, latencyBoundsMs.length + 1).map(countOf)
      : [],
    revealed: isObject(revealed)
      ? Object.fromEntries(
          Object.entries(revealed)
            .slice(0, applicationsMax + 1)
            .map(([id, values]) => [id, countOf(values)]),
        )
      : {},
  };
}

export const storedFigures = (figures: Figures): string => JSON.stringify(figures);

function countOf(value: unknown): number {
  return Number.isSafeInteger(value) && Number(value) > 0 ? Number(value) : 0;
}
