/** The last border to the page: nothing that a customer typed leaves in a response, whatever the request asked for. */

/** A shorter string is found only where it is a whole value: `123` is part of many numbers. */
const partLengthMin = 6;

/** The same response with null in place of every string or number that has a secret in it, in keys as well. */
export function conceal(response: unknown, secrets: readonly string[]): unknown {
  const whole = new Set(secrets.map(plain));
  const parts = [...whole].filter((secret) => secret.length >= partLengthMin);
  const isSecret = (text: string) => {
    const given = plain(text);
    if (given === '') return false;
    return whole.has(given) || parts.some((secret) => given.includes(secret));
  };
  const walk = (value: unknown): unknown => {
    if (typeof value === 'string') return isSecret(value) ? null : value;
    if (typeof value === 'number') return isSecret(String(value)) ? null : value;
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).flatMap(([key, inner]) => (isSecret(key) ? [] : [[key, walk(inner)]])),
    );
  };
  return walk(response);
}

/** Without separators and case, so that `4242-4242` is `42424242`. */
function plain(text: string): string {
  return text
    .normalize('NFKC')
    .replace(/[\s\p{P}\p{S}]/gu, '')
    .toLowerCase();
}
