/** Connections that the server itself ends, and the status of requests whose response had not begun by then. */
import type { Duplex } from 'node:stream';

export interface CutOff {
  /** @param status that the client got, or would have got. */
  note(socket: Duplex, status: number): void;
  /** From now on all connections are ended because the server stops. */
  noteAll(): void;
  /** `undefined` where the client left. */
  statusOf(socket: Duplex): number | undefined;
}

/** The client took too long. */
export const tooSlowStatus = 408;
const stoppingStatus = 503;

export function createCutOff(): CutOff {
  const statuses = new WeakMap<Duplex, number>();
  let isAll = false;
  return {
    note: (socket, status) => void statuses.set(socket, status),
    noteAll: () => {
      isAll = true;
    },
    statusOf: (socket) => statuses.get(socket) ?? (isAll ? stoppingStatus : undefined),
  };
}
