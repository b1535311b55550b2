/** Network addresses: which belong to one customer of a provider, and how networks are written. */
import { isIP } from 'node:net';

const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;
const groupsOfNetwork = 4;

/**
 * An IPv4 address is itself, also when it is written as an IPv6 one. Of an IPv6 address it is the first
 * 64 bits: whoever has one address has all of that network (RFC 6177), and could use each once.
 */
export function networkOf(address: string): string {
  const ipv4 = mapped.exec(address)?.[1];
  if (ipv4 !== undefined) return ipv4;
  if (!address.includes(':')) return address;
  const [head = '', tail = ''] = address.split('::');
  const [first, last] = [groupsOf(head), groupsOf(tail)];
  const zeros = Array.from({ length: 8 - first.length - last.length }, () => '0');
  const groups = [...first, ...zeros, ...last].slice(0, groupsOfNetwork);
  return groups.map((group) => Number.parseInt(group, 16).toString(16)).join(':');
}

function groupsOf(text: string): string[] {
  return text === '' ? [] : text.split(':');
}

/** True for an address, and for a network such as `10.0.0.0/8`. */
export function isNetwork(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const bitsMax = isIP(address) === 4 ? 32 : 128;
  const bitsFit = bits === undefined || (/^[0-9]{1,3}$/.test(bits) && Number(bits) <= bitsMax);
  return isIP(address) !== 0 && bitsFit && rest.length === 0;
}
