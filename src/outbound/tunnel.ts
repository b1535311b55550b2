/** A connection to another host that is passed on as it is, behind the same address guard as requests. */
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import { second } from '../base/clock.ts';
import { type AdmissionOptions, createAdmission, nameOf } from './admission.ts';
import { failureOf, OutboundError } from './error.ts';

const connectMsMax = 25 * second;

/** Rejects with an OutboundError. @param url https, with the host and the port. */
export type OpenTunnel = (url: URL) => Promise<Socket>;

export function createTunnels(options: AdmissionOptions): OpenTunnel {
  const admit = createAdmission(options);
  return async (url) => {
    const { lookup } = admit(url);
    const { promise, resolve, reject } = Promise.withResolvers<Socket>();
    const port = Number(url.port || 443);
    const socket = connect({ host: nameOf(url), port, lookup, noDelay: true } as TcpNetConnectOpts);
    socket.setTimeout(connectMsMax, () => socket.destroy(new OutboundError('timeout')));
    socket.once('error', (error) => reject(failureOf(error)));
    socket.once('connect', () => {
      socket.setTimeout(0);
      resolve(socket);
    });
    return promise;
  };
}
