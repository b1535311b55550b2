/** The rooms of `src` in the order of their imports: each imports from those before it, and from no other. */
import type { Ranks } from './tidy.ts';

/** Rooms of one line know nothing of each other. */
const rooms = [
  ['base'],
  ['store', 'expressions', 'outbound', 'keys'],
  ['rules'],
  ['queue'],
  ['audit'],
  ['access'],
  ['tokens'],
  ['reactors'],
  ['proxies'],
  ['webhooks'],
  ['http'],
  ['browser'],
  ['api'],
  ['runtime'],
  ['cli'],
] as const;

export const ranks: Ranks = Object.fromEntries(
  rooms.flatMap((line, rank) => line.map((room) => [room, rank])),
);
