/** As much of a wrong body as a response can describe: all of a hostile one would take half a second. */

/** Members of lists and objects, at any depth, in which errors are looked for. */
export const membersMax = 5_000;

export interface ShortenedBody {
  readonly value: unknown;
  /** JSON pointer of the first list or object that lost members; `undefined` when none did. */
  readonly cut: string | undefined;
}

/** A copy that ends after the first {@link membersMax} members, in their order. */
export function shortened(given: unknown): ShortenedBody {
  let left = membersMax;
  let cut: string | undefined;

  /** As many of the members as are left in total. */
  function take<T>(members: readonly T[], pointer: string): readonly T[] {
    const taken = members.slice(0, left);
    left -= taken.length;
    if (taken.length < members.length) cut ??= pointer;
    return taken;
  }

  function copy(value: unknown, pointer: string): unknown {
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) {
      return take(value, pointer).map((item, index) => copy(item, `${pointer}/${index}`));
    }
    const members = take(Object.keys(value), pointer).map((name) => {
      const escaped = name.replaceAll('~', '~0').replaceAll('/', '~1');
      const member = (value as Readonly<Record<string, unknown>>)[name];
      return [name, copy(member, `${pointer}/${escaped}`)];
    });
    return Object.fromEntries(members);
  }

  return { value: copy(given, ''), cut };
}
