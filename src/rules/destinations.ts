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

function patternsOf(text: string): string[] {
  return text.split(',').map((one) => one.trim());
}
