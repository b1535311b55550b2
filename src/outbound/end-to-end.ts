/** Headers that concern one connection alone, which a proxy does not pass on (RFC 9110, section 7.6.1). */

const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

const isHopByHop = (name: string) => hopByHop.has(name) || name.startsWith('proxy-');

/**
 * Names and values in turn, without those of the hop, those that a Connection header lists, and
 * `dropped`, in lower case.
 */
export function endToEnd(headers: readonly string[], dropped: readonly string[] = []): string[] {
  const listed = new Set([...dropped, ...valuesOf(headers, 'connection').flatMap(listItems)]);
  return pairsOf(headers).flatMap(([name, value]) => {
    const lower = name.toLowerCase();
    return isHopByHop(lower) || listed.has(lower) ? [] : [name, value];
  });
}

/** All values of a header, whose name is given in lower case. */
export function valuesOf(headers: readonly string[], wanted: string): string[] {
  return pairsOf(headers).flatMap(([name, value]) =>
    name.toLowerCase() === wanted ? [value] : [],
  );
}

function listItems(value: string): string[] {
  return value.split(',').map((item) => item.trim().toLowerCase());
}

function pairsOf(headers: readonly string[]): [string, string][] {
  const pairs: [string, string][] = [];
  for (let index = 0; index + 1 < headers.length; index += 2) {
    pairs.push([headers[index] ?? '', headers[index + 1] ?? '']);
  }
  return pairs;
}
