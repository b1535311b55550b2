/** Network addresses: which of them belong to one customer of a provider, and how networks are written. */
import { isIP } from 'node:net';

const groupsOfAddress = 8;
const groupsOfNetwork = 4;

const groupsOfSite = 3;

/** The unit that counts as one address, and the site that it belongs to. */
export interface Networks {
  readonly network: string;
  readonly site: string;
}

/**
 * Returns the unit that counts as one address. For IPv4 it is the address itself, also if an IPv6 address embeds it.
 * For IPv6 it is the first 64 bits: a customer with one address has all of that network (RFC 6177), and could use
 * each address once. Returns a string that is not an address unchanged.
 */
export function networkOf(address: string): string {
  return networksOf(address).network;
}

/** Adds the /48 network, because providers assign whole /48 networks to customers. An IPv4 address is its own site. */
export function networksOf(address: string): Networks {
  // A dual-stack server sees every IPv4 client in this form.
  if (address.startsWith('::ffff:') && isIP(address.slice(7)) === 4) return alone(address.slice(7));
  if (!address.includes(':') || isIP(address) === 0) return alone(address);
  const groups = groupsOf(address);
  const ipv4 = ipv4In(groups);
  if (ipv4 !== undefined) return alone(ipv4);
  const network = groups.slice(0, groupsOfNetwork).join(':');
  return { network, site: `${groups.slice(0, groupsOfSite).join(':')}::/48` };
}

function alone(address: string): Networks {
  return { network: address, site: address };
}

/** The first 96 bits of an IPv4-mapped address (RFC 4291, 2.5.5.2), and of one behind a translator (RFC 6052). */
const ipv4Prefixes: ReadonlySet<string> = new Set(['0:0:0:0:0:ffff', '64:ff9b:0:0:0:0']);
/** The prefix of 6to4 networks, which embed an IPv4 address (RFC 3056). */
const relayed = '2002';

function ipv4In(groups: readonly string[]): string | undefined {
  if (ipv4Prefixes.has(groups.slice(0, 6).join(':'))) return ipv4Of(groups.slice(6));
  return groups[0] === relayed ? ipv4Of(groups.slice(1, 3)) : undefined;
}

/** The eight groups in lower case without leading zeros, so that equal addresses have equal strings. */
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

/** True for an address of this machine itself. */
export function isLoopback(address: string): boolean {
  return (
    address === '::1' || (isIP(networkOf(address)) === 4 && networkOf(address).startsWith('127.'))
  );
}
