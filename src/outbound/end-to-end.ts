/** Hop-by-hop headers, which a proxy does not forward (RFC 9110, section 7.6.1). */

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
 * Returns alternating names and values without hop-by-hop headers, headers that a Connection header lists, and
 * `dropped`, whose names are in lower case.
 */
export function endToEnd(headers: readonly string[], dropped: readonly string[] = []): string[] {
  const listed = valuesOf(headers, 'connection').flatMap(listItems);
  const kept: string[] = [];
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const [name = '', value = ''] = [headers[at], headers[at + 1]];
    const lower = name.toLowerCase();
    if (isHopByHop(lower) || dropped.includes(lower) || listed.includes(lower)) continue;
    kept.push(name, value);
  }
  return kept;
}

/** All values of a header whose name is given in lower case. */
export function valuesOf(headers: readonly string[], headerName: string): string[] {
  const values: string[] = [];
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] ?? '';
    if (name.length === headerName.length && name.toLowerCase() === headerName) {
      values.push(headers[at + 1] ?? '');
    }
  }
  return values;
}

function listItems(value: string): string[] {
  return value.split(',').map((item) => item.trim().toLowerCase());
}
