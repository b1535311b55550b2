/** Which addresses count as one, and which texts name a network. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isNetwork, networkOf, networksOf } from '../../src/base/network.ts';

test('an IPv4 address counts as itself, in every way an IPv6 address may write it', () => {
  const spellings = [
    '1.2.3.4',
    '::ffff:1.2.3.4',
    '::FFFF:1.2.3.4',
    '::ffff:0102:0304',
    '::ffff:102:304',
    '0:0:0:0:0:ffff:1.2.3.4',
    '0000:0000:0000:0000:0000:ffff:0102:0304',
    '0:0::ffff:1.2.3.4',
    '::ffff:1.2.3.4%eth0',
    '64:ff9b::1.2.3.4',
    '64:ff9b::102:304',
    '2002:102:304::1',
    '2002:0102:0304:ffff::9',
  ];
  for (const address of spellings) assert.equal(networkOf(address), '1.2.3.4', address);
  assert.equal(networkOf('::ffff:255.0.255.0'), '255.0.255.0');
});

test('an IPv6 address counts as the /64 network that its user has', () => {
  const networks = {
    '2001:db8:1:2:3:4:5:6': '2001:db8:1:2',
    '2001:0db8:1:2::9': '2001:db8:1:2',
    '2001:DB8:1:2::': '2001:db8:1:2',
    '2001:db8::1': '2001:db8:0:0',
    '2001:db8:1:2:3:4:1.2.3.4': '2001:db8:1:2',
    'fe80::1%eth0': 'fe80:0:0:0',
    '::1': '0:0:0:0',
    '::': '0:0:0:0',
  };
  for (const [address, network] of Object.entries(networks)) {
    assert.equal(networkOf(address), network, address);
  }
});

test('an IPv6 address is part of the /48 network that a customer may have whole', () => {
  const one = networksOf('2001:db8:1:2::3');
  const other = networksOf('2001:db8:1:ffff::3');
  assert.equal(one.site, other.site);
  assert.notEqual(one.network, other.network);
  assert.notEqual(one.site, networksOf('2001:db8:2:2::3').site);
  for (const address of ['1.2.3.4', '::ffff:1.2.3.4', '2002:102:304::1', 'unknown']) {
    const { network, site } = networksOf(address);
    assert.equal(site, network, address);
  }
});

test('a text that is not an address counts as itself', () => {
  for (const text of ['', 'unknown', 'a:b', '1::2::3', '::ffff:1.2.3']) {
    assert.equal(networkOf(text), text);
  }
});

test('a network is an address with at most as many bits as it has', () => {
  for (const text of ['10.0.0.7', '10.0.0.0/32', '::1', '2001:db8::/128']) {
    assert.equal(isNetwork(text), true, text);
  }
  for (const text of ['', 'host', '10.0.0.0/33', '::/129', '10.0.0.0/8/8', '10.0.0.0/x']) {
    assert.equal(isNetwork(text), false, text);
  }
});
