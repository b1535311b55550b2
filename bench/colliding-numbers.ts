/** Numbers that V8 puts into one chain of a Set or Map: it hashes small integers without a seed. */

/** V8's ComputeUnseededHash, Thomas Wang's mix of 32 bits. */
export function unseededHash(key: number): number {
  let hash = key >>> 0;
  hash = (~hash + (hash << 15)) >>> 0;
  hash = (hash ^ (hash >>> 12)) >>> 0;
  hash = (hash + (hash << 2)) >>> 0;
  hash = (hash ^ (hash >>> 4)) >>> 0;
  hash = Math.imul(hash, 2057) >>> 0;
  hash = (hash ^ (hash >>> 16)) >>> 0;
  return hash & 0x3fffffff;
}

const lastBits = 0x3fff;
const countMax = 20_000;
const found: number[] = [];

/** Numbers whose hashes agree in their last bits, found by trying: as many as asked for, or 20,000. */
export function collidingNumbers(count: number): number[] {
  for (let key = found.at(-1) ?? 0; found.length < Math.min(count, countMax); key += 1) {
    if ((unseededHash(key + 1) & lastBits) === 0) found.push(key + 1);
  }
  return found.slice(0, count);
}
