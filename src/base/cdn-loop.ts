/** RFC 8586: each vault that forwards a request adds its name, and rejects a request that already has it. */

export const loopHeader = 'cdn-loop';

/** The header value with the name of this vault after the previous ones. Duplicate lists are included once. */
export function extendedLoop(before: readonly (string | undefined)[], own: string): string {
  const lists = before.flatMap((list) => (list === undefined || list === '' ? [] : [list]));
  return [...new Set(lists), own].join(', ');
}

/** Also matches within a quoted parameter: only a caller that wants to be rejected puts the name there. */
export function namesVault(list: string | undefined, own: string): boolean {
  if (list === undefined) return false;
  return list.split(/[\s,;"]+/).some((part) => part.toLowerCase() === own);
}
