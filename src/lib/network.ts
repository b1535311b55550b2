/** Network addresses: which belong to one customer of a provider, and how networks are written. */
import { isIP } from 'node:net';

const groupsOfAddress = 8;
const groupsOfNetwork = 4;

/** The first 96 bits of an IPv4 address written as an IPv6 one (RFC 4291, 2.5.5.2). */
const mapped = '0:0:0:0:0:ffff';

/**
 * What counts as one address. An IPv4 address is itself, in whatever way it is written as an IPv6
 * one. Of an IPv6 address it is the first 64 bits: whoever has one address has all of that network
 * (RFC 6177), and could use each once. A text that is not an address is returned unchanged.
 */
export function networkOf(address: string): string {
  if (!address.includes(':') || isIP(address) === 0) return address;
  const groups = groupsOf(address);
  if (groups.slice(0, -2).join(':') === mapped) return ipv4Of(groups.slice(-2));
  return groups.slice(0, groupsOfNetwork).join(':');
}

/** The eight groups in lower case without leading zeros, so that equal addresses look alike. */
function groupsOf(address: string): string[] {
  const [plain = ''] = address.split('%', 1);
  const [head = '', tail] = plain.split('::', 2);
  const [first, last] = [hexGroups(head), hexGroups(tail ?? '')];
  const gap = tail === undefined ? 0 : groupsOfAddress - first.length - last.length;
  return [...first, ...Array.from({ length: gap }, () => '0'), ...last];
}

function hexGroups(text: string): string[] {
  return text.split(':').flatMap((group) => {
    if (group === '') return [];
    if (!group.includes('.')) return [Number.parseInt(group, 16).toString(16)];
    const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
    return [(a * 256 + b).toString(16), (c * 256 + d).toString(16)];
  });
}

function ipv4Of(groups: readonly string[]): string {
  const halves = groups.map((group) => Number.parseInt(group, 16));
  return halves.flatMap((half) => [half >> 8, half & 255]).join('.');
}

/** True for an address, and for a network such as `10.0.0.0/8`. */
export function isNetwork(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const bitsMax = isIP(address) === 4 ? 32 : 128;
  const bitsFit = bits === undefined || (/^[0-9]{1,3}$/.test(bits) && Number(bits) <= bitsMax);
  return isIP(address) !== 0 && bitsFit && rest.length === 0;
}
