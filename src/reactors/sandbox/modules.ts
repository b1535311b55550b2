/** Names that code may require, in addition to the operator's modules. */

/** The name of the public package, whose code runs here unchanged, and our own. */
export const errorModules: readonly string[] = [
  '@basis-theory/basis-theory-reactor-formulas-sdk-js',
  'strongroom/errors',
];

/** With or without `node:`, where Node has them. */
const builtModules: readonly string[] = ['buffer', 'crypto', 'querystring', 'url', 'uuid'];

export function isBuiltModule(name: string): boolean {
  const bare = name.startsWith('node:') ? name.slice('node:'.length) : name;
  return builtModules.includes(bare) || errorModules.includes(name);
}
