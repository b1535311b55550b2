/** RFC 8586: each vault through which a request goes adds its name, and refuses what it has named before. */

export const loopHeader = 'cdn-loop';

/** The header with the name of this vault behind what came before. Equal lists are taken once. */
export function extendedLoop(before: readonly (string | undefined)[], own: string): string {
  const lists = before.flatMap((list) => (list === undefined || list === '' ? [] : [list]));
  return [...new Set(lists), own].join(', ');
}

/** Also within a quoted parameter, where only a caller that wants to be refused puts it. */
export function namesVault(list: string | undefined, own: string): boolean {
  if (list === undefined) return false;
  return list.split(/[\s,;"]+/).some((part) => part.toLowerCase() === own);
}
