/** A connection to another host that is passed on as it is, behind the same address guard as requests. */
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import { second } from '../base/clock.ts';
import { type AdmissionOptions, createAdmission, nameOf } from './admission.ts';
import { failureOf, OutboundError } from './error.ts';
import { type SlotLimits, Slots } from './slots.ts';

const connectMsMax = 25 * second;

/** Open at once, of one thread. A tunnel lasts as long as its ends like, so none waits for another. */
const tunnelLimits: SlotLimits = {
  destinationMax: 256,
  partitionMax: 256,
  totalMax: 512,
  waitingMax: 0,
  waitingOfPartitionMax: 0,
};

/** Nobody waits. */
const never = { signal: new AbortController().signal, throwIfOver: () => undefined };

/**
 * Rejects with an OutboundError, which is `busy` where too many are open.
 * @param url https, with the host and the port.
 * @param partition whose tunnels are counted together.
 */
export type OpenTunnel = (url: URL, partition: string) => Promise<Socket>;

export function createTunnels(
  options: AdmissionOptions,
  limits: SlotLimits = tunnelLimits,
): OpenTunnel {
  const admit = createAdmission(options);
  const slots = new Slots(limits);
  return async (url, partition) => {
    const { lookup } = admit(url);
    const slot = await slots.take({ destination: url.host, partition, limit: never });
    const { promise, resolve, reject } = Promise.withResolvers<Socket>();
    const port = Number(url.port || 443);
    const socket = connect({ host: nameOf(url), port, lookup, noDelay: true } as TcpNetConnectOpts);
    socket.setTimeout(connectMsMax, () => socket.destroy(new OutboundError('timeout')));
    socket.once('close', () => slot.free());
    socket.once('error', (error) => reject(failureOf(error)));
    socket.once('connect', () => {
      socket.setTimeout(0);
      resolve(socket);
    });
    return promise;
  };
}
