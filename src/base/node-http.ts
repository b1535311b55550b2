/** Node's own HTTP, without what an import of it brings along. */

/**
 * An import asks a module for all of its names, and those of WebSocket here load Node's `fetch` client:
 * 25 ms and 15 MB at every start, for nothing that a vault uses.
 */
export const nodeHttp = process.getBuiltinModule('node:http');
