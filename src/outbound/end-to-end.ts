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

/** All values of a header, whose name is given in lower case. */
export function valuesOf(headers: readonly string[], wanted: string): string[] {
  const values: string[] = [];
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] ?? '';
    if (name.length === wanted.length && name.toLowerCase() === wanted) {
      values.push(headers[at + 1] ?? '');
    }
  }
  return values;
}

function listItems(value: string): string[] {
  return value.split(',').map((item) => item.trim().toLowerCase());
}
