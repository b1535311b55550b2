/** The location of an error in a caller's JSON, without parts that may be data. */

/** A typical property name. Digits could be part of a value that was used as a name by mistake. */
const namePattern = /^[A-Za-z_][A-Za-z_-]{0,39}$/;

export function isPropertyName(text: string): boolean {
  return namePattern.test(text);
}

/** The path of a member, with `*` for a name that does not look like one. */
export function memberPath(path: string, name: string): string {
  const step = isPropertyName(name) ? name : '*';
  return path === '' ? step : `${path}.${step}`;
}
