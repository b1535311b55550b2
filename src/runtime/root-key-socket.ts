/**
 * The Unix socket in the data directory on which a server takes shares of the root key, and wraps and unwraps for
 * commands of the same user. A line of JSON is a request, and so is its response. It is not part of the HTTP interface.
 */
import { once } from 'node:events';
import { chmodSync, rmSync } from 'node:fs';
import { createConnection, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { second } from '../base/clock.ts';
import { systemCodeOf } from '../base/errors.ts';
import { isObject, type JsonObject } from '../base/json.ts';
import { RootKeyError } from '../keys/root/root-key.ts';
import { makePrivateDirectory } from '../store/private-directory.ts';

export type SocketRequest = JsonObject;

/** @throws RootKeyError with what its sender may read. */
export type SocketHandler = (request: SocketRequest) => Promise<JsonObject>;

export interface RootKeySocket {
  close(): Promise<void>;
}

const lineBytesMax = 64 * 1024;
const silenceMs = 10 * second;

/** The last share opens the vault before it is responded to. */
const responseMsMax = 120 * second;

export function socketFile(dataDir: string): string {
  return join(dataDir, 'strongroom.sock');
}

/** @throws RootKeyError when another server has the socket, or it cannot be made. */
export async function openRootKeySocket(
  dataDir: string,
  handle: SocketHandler,
): Promise<RootKeySocket> {
  const file = socketFile(dataDir);
  const connections = new Set<Socket>();
  const server = createServer((socket) => {
    connections.add(socket);
    socket.on('close', () => connections.delete(socket));
    socket.on('error', () => socket.destroy());
    socket.setTimeout(silenceMs, () => socket.destroy());
    void respond(socket, handle);
  });
  try {
    makePrivateDirectory(dataDir);
    if (await isServed(file)) {
      throw new RootKeyError(
        `another server has the socket ${file}: give each server its own STRONGROOM_DATA_DIR`,
      );
    }
    rmSync(file, { force: true });
    await listenPrivately(server, file);
  } catch (error) {
    if (error instanceof RootKeyError) throw error;
    const code = systemCodeOf(error) ?? 'unknown';
    throw new RootKeyError(`the socket ${file} cannot be made: ${code}`, { cause: error });
  }
  return {
    close: async () => {
      for (const socket of connections) socket.destroy();
      server.close();
      if (server.listening) await once(server, 'close');
    },
  };
}

/** No moment passes in which other users could connect. */
async function listenPrivately(server: ReturnType<typeof createServer>, file: string) {
  const umask = process.umask(0o177);
  try {
    server.listen(file);
  } finally {
    process.umask(umask);
  }
  await once(server, 'listening');
  chmodSync(file, 0o600);
}

/** A socket that is left of a server that was killed refuses connections. */
async function isServed(file: string): Promise<boolean> {
  const socket = createConnection(file);
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function respond(socket: Socket, handle: SocketHandler): Promise<void> {
  try {
    const request = await readLine(socket);
    if (request === undefined) return;
    socket.setTimeout(0);
    const response = await handle(request).catch((error: unknown) => {
      if (error instanceof RootKeyError) return { error: error.message };
      return { error: 'the server failed to do this; its log says why' };
    });
    socket.end(`${JSON.stringify(response)}\n`);
  } catch {
    socket.destroy();
  }
}

async function readLine(socket: Socket): Promise<JsonObject | undefined> {
  let text = '';
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    text += (chunk as Buffer).toString('utf8');
    if (text.length > lineBytesMax) throw new RootKeyError('the line is too long');
    if (text.includes('\n')) break;
  }
  if (text === '') return undefined;
  const parsed: unknown = JSON.parse(text);
  if (!isObject(parsed)) throw new RootKeyError('the line is not an object');
  return parsed;
}

/** No server has a socket in the data directory. */
export class NoServerError extends RootKeyError {}

/**
 * Sends a request to the server of the data directory.
 * @throws NoServerError when none runs there, and RootKeyError with what it refuses.
 */
export async function askServer(dataDir: string, request: SocketRequest): Promise<JsonObject> {
  const file = socketFile(dataDir);
  const socket = createConnection(file);
  socket.setTimeout(responseMsMax, () => socket.destroy());
  try {
    await once(socket, 'connect');
  } catch (error) {
    socket.destroy();
    const code = systemCodeOf(error) ?? 'unknown';
    if (code === 'ENOENT' || code === 'ECONNREFUSED') {
      throw new NoServerError(
        `no server of this vault runs with the data directory ${dataDir}. Start it, and unseal it with ` +
          '"strongroom unseal"',
      );
    }
    throw new RootKeyError(
      `the socket ${file} cannot be used: ${code}. Run this as the user of the server`,
    );
  }
  try {
    socket.write(`${JSON.stringify(request)}\n`);
    const response = await readLine(socket);
    if (response === undefined) throw new RootKeyError('the server ended before it responded');
    if (typeof response['error'] === 'string') throw new RootKeyError(response['error']);
    return response;
  } catch (error) {
    if (error instanceof RootKeyError) throw error;
    throw new RootKeyError('the server did not respond', { cause: error });
  } finally {
    socket.destroy();
  }
}
