/** The address by which a browser on the machine of the vault opens it. */
import { connect } from 'node:net';
import { second } from '../base/clock.ts';

/**
 * By the name `localhost`, where browsers permit passkeys, unless that name leads to another server: browsers try the
 * address of IPv6 first, and whoever listens there would get the code of a link.
 */
export async function browserUrl(url: string): Promise<string> {
  const { hostname, port, protocol } = new URL(url);
  if (protocol !== 'http:') return url;
  const isOurs =
    hostname === '[::1]' || (hostname === '127.0.0.1' && !(await isListening('::1', port)));
  return isOurs ? `http://localhost:${port}` : url;
}

function isListening(host: string, port: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port), timeout: second });
    const end = (isThere: boolean) => () => {
      socket.destroy();
      resolve(isThere);
    };
    socket.on('connect', end(true)).on('timeout', end(true)).on('error', end(false));
  });
}
