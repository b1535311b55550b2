/** Which hosts the proxies of a tenant may send to: patterns with `*`, which stands for any characters. */

const patternsMax = 100;
const patternLengthMax = 253;

const patternForm = /^[a-z0-9*_-]+(?:\.[a-z0-9*_-]+)*$/i;

/** What is wrong with a list of patterns; `undefined` for a valid one. An empty list allows every host. */
export function flawOfDestinations(text: string): string | undefined {
  const patterns = patternsOf(text);
  if (patterns.length > patternsMax) return `must contain at most ${patternsMax} hosts`;
  const isValid = (one: string) => one.length <= patternLengthMax && patternForm.test(one);
  if (text.trim() === '' || patterns.every(isValid)) return undefined;
  return 'must be a comma-separated list of host names, in which * stands for any characters, without ports';
}

/** True when requests may be sent to the host, whose letters may be of either case. */
export function allowsDestination(text: string, host: string): boolean {
  if (text.trim() === '') return true;
  const name = host.toLowerCase().replace(/\.$/, '');
  return patternsOf(text).some((pattern) => matchesWildcard(pattern.toLowerCase(), name));
}

function patternsOf(text: string): string[] {
  return text.split(',').map((one) => one.trim());
}

/** True when the whole text fits the pattern, in which `*` stands for any characters. */
export function matchesWildcard(pattern: string, text: string): boolean {
  const [first = '', ...others] = pattern.split('*');
  const last = others.pop();
  if (last === undefined) return text === pattern;
  if (text.length < first.length + last.length) return false;
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  const end = text.length - last.length;
  let at = first.length;
  for (const part of others) {
    const found = text.indexOf(part, at);
    if (found < 0 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}
