/**
 * `node:http` without the three names that Node takes from the library of its `fetch`. An import of a module of Node
 * reads all that it exports, so it loads that library: 40 ms of each start, for names that nothing here uses.
 */
import http from 'node:http';

const unused: ReadonlySet<string> = new Set(['CloseEvent', 'MessageEvent', 'WebSocket']);

/** @returns the text of a module to import in place of `node:http`. */
export function leanHttpModule(): string {
  const names = Object.keys(http).filter((name) => !unused.has(name));
  return `const http = process.getBuiltinModule('node:http');
export default http;
export const { ${names.join(', ')} } = http;
`;
}
