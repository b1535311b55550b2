/** What a page may decide about the look of a field: colors, sizes, and a font of the system. */

const oneColor =
  '(?:#[0-9a-f]{3,8}|[a-z]{3,30}|(?:rgb|hsl|oklch|oklab|lab|lch)a?\\([\\d\\s.,%/a-z+-]{1,80}\\))';
const color = new RegExp(
  `^(?:${oneColor}|light-dark\\(\\s*${oneColor}\\s*,\\s*${oneColor}\\s*\\))$`,
  'i',
);
const size = /^\d{1,3}(?:\.\d{1,3})?(?:px|em|rem|%)?$/;
const sizes =
  /^\d{1,3}(?:\.\d{1,3})?(?:px|em|rem)?(?:\s+\d{1,3}(?:\.\d{1,3})?(?:px|em|rem)?){0,3}$/;

/** Forms in which nothing can be fetched. */
const properties: Readonly<Record<string, RegExp>> = {
  'text-color': color,
  'label-color': color,
  'placeholder-color': color,
  'background-color': color,
  'border-color': color,
  'border-width': size,
  'border-radius': size,
  'focus-color': color,
  'error-color': color,
  'font-family': /^[\p{L}\d\s"',-]{1,200}$/u,
  'font-size': size,
  'font-weight': /^(?:normal|bold|[1-9]00)$/,
  padding: sizes,
  gap: size,
};

export function applyTheme(root: HTMLElement, theme: Readonly<Record<string, string>> = {}): void {
  for (const [name, form] of Object.entries(properties)) {
    const value = Object.hasOwn(theme, name) ? String(theme[name]).trim() : '';
    if (form.test(value)) root.style.setProperty(`--${name}`, value);
    else root.style.removeProperty(`--${name}`);
  }
}
