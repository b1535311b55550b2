/** `structuredClone`, which the engine lacks: data without functions, with support for cycles. */
import type { Host } from './host.ts';
import type { NamedExports } from './parts.ts';

export function clone(host: Host): NamedExports {
  function structuredClone(value: unknown): unknown {
    const seen = new Map<unknown, unknown>();
    const copied = (one: unknown): unknown => {
      if (typeof one === 'function' || typeof one === 'symbol') {
        throw host.error('DataCloneError', 'The value cannot be cloned');
      }
      if (typeof one !== 'object' || one === null) return one;
      if (seen.has(one)) return seen.get(one);
      if (one instanceof Date) return new Date(one);
      if (one instanceof RegExp) return new RegExp(one);
      if (one instanceof ArrayBuffer) return one.slice();
      if (ArrayBuffer.isView(one)) return (one as Uint8Array).slice();
      if (one instanceof Error) return host.error(one.name, one.message);
      const copy = Array.isArray(one)
        ? []
        : one instanceof Map
          ? new Map()
          : one instanceof Set
            ? new Set()
            : {};
      seen.set(one, copy);
      if (copy instanceof Map) {
        for (const [key, member] of one as typeof copy) copy.set(copied(key), copied(member));
      } else if (copy instanceof Set)
        for (const member of one as typeof copy) copy.add(copied(member));
      else
        for (const [key, member] of Object.entries(one))
          Object.assign(copy, { [key]: copied(member) });
      return copy;
    };
    return copied(value);
  }

  return { structuredClone };
}
