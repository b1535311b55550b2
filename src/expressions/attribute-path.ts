/** Where in a caller's JSON an error is, said without repeating what may be data. */

/** A name somebody chose for a property; digits could be part of a value that ended up as a name. */
const namePattern = /^[A-Za-z_][A-Za-z_-]{0,39}$/;

export function isPropertyName(text: string): boolean {
  return namePattern.test(text);
}

/** The path of a member, with `*` for a name that does not look like one. */
export function memberPath(path: string, name: string): string {
  const step = isPropertyName(name) ? name : '*';
  return path === '' ? step : `${path}.${step}`;
}
