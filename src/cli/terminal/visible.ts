/** Text as a terminal may have it. */

/**
 * Control and format characters, which a stored text may have, as escapes: they would steer the terminal, or show the
 * rest of a line in another order.
 */
export function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escaped);
}

/** As JSON writes it, so that JSON with it means the same. */
export function escaped(character: string): string {
  return character.replace(
    /[\s\S]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
