/** The address guard: the addresses to which a call to a host of another party may connect. */
import { BlockList, isIP } from 'node:net';

/**
 * IPv4 outside the public internet: the IANA special-purpose registry (RFC 6890), multicast, and the one metadata
 * address outside of both. 169.254.169.254 and Alibaba's 100.100.100.200 are in link-local and carrier-grade NAT.
 */
const refused4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
];

/** Only global unicast is public, which excludes loopback, link-local, unique-local, and multicast. */
const public6 = '2000::/3';

/** Exceptions within it: Teredo and other protocol assignments, documentation, and 6to4, which embeds IPv4. */
const refused6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'];

/** IPv6 prefixes of an IPv4 address in the last 32 bits: mapped, and NAT64 (RFC 6052). */
const embedding = ['::ffff:', '64:ff9b::'];
const embeddingBits = 96;

const admitted6 = blockListOf([public6, ...embedding.map((prefix) => `${prefix}0.0.0.0/96`)]);
const refused = blockListOf([
  ...refused4,
  ...refused6,
  ...refused4.flatMap((range) => embedding.map((prefix) => embedded(prefix, range))),
]);

/** True for a public address in any of its notations. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  // A zone, as in fe80::1%eth0, occurs only in addresses that are not public.
  if (family === 0 || address.includes('%')) return false;
  if (family === 4) return !refused.check(address, 'ipv4');
  return admitted6.check(address, 'ipv6') && !refused.check(address, 'ipv6');
}

function embedded(prefix: string, range: string): string {
  const [address, bits] = range.split('/');
  return `${prefix}${address}/${embeddingBits + Number(bits)}`;
}

function blockListOf(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', bits] = range.split('/');
    list.addSubnet(address, Number(bits), address.includes(':') ? 'ipv6' : 'ipv4');
  }
  return list;
}
