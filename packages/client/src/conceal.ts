/** Keeps values out of logs: they can be read, and no inspection of the object that has them shows them. */

/** Attributes of responses that hold a value, or a key that is shown once. */
const secretNames: ReadonlySet<string> = new Set([
  'data',
  'key',
  'secret',
  'session_key',
  'nonce',
  'configuration',
  'text',
]);

/** The code of a sign-in link lets in whoever has it; the code of a reactor is no secret. */
const isSecret = (name: string, holder: object) =>
  secretNames.has(name) || (name === 'code' && 'person_id' in holder);

const mark = '[hidden]';

/** What Node, Bun and Deno call to show an object. */
const inspection = Symbol.for('nodejs.util.inspect.custom');

/**
 * Conceals secrets in a response, in place. With `everything`, each member of the outermost object is one: where the
 * caller decides the form of the response, no name says what holds a value.
 */
export function conceal(value: unknown, everything = false): unknown {
  if (Array.isArray(value)) {
    for (const item of value) conceal(item, everything);
    if (everything) hide(value, Object.keys(value));
  } else if (typeof value === 'object' && value !== null) {
    const object = value as Record<string, unknown>;
    const isPage = 'pagination' in object;
    const secrets = Object.keys(object).filter(
      (name) => everything || (isSecret(name, object) && !isPage),
    );
    for (const [name, member] of Object.entries(object)) {
      if (!secrets.includes(name)) conceal(member);
    }
    hide(object, secrets);
  }
  return value;
}

/** Each becomes an accessor, which is copied, compared and serialized like any member. */
export function hide(object: object, names: readonly string[]): void {
  if (names.length === 0) return;
  for (const name of names) {
    let value = (object as Record<string, unknown>)[name];
    Object.defineProperty(object, name, {
      get: () => value,
      set: (next) => {
        value = next;
      },
      enumerable: true,
      configurable: true,
    });
  }
  Object.defineProperty(object, inspection, {
    value: () => ({ ...object, ...Object.fromEntries(names.map((name) => [name, mark])) }),
  });
}
