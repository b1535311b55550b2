/** The hosts of STRONGROOM_DATABASE_URL, in the form of libpq. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verifiedUrl } from '../../src/store/postgres/database-url.ts';
import { hostsMax, hostsOf } from '../../src/store/postgres/hosts.ts';

const namesOf = (url: string) => hostsOf(url).map(({ name }) => name);
const reasonedBy = (says: RegExp) => (error: { errors?: { url?: string[] } }) =>
  says.test(error.errors?.url?.[0] ?? '');
const urlsOf = (url: string) => hostsOf(url).map((host) => host.url);

test('each host has the user, the database and the parameters of the URL', () => {
  const url =
    'postgres://a:b%40c@one:1,[fd00::1]:2,three/vault?target_session_attrs=read-write&x=y';
  assert.deepEqual(urlsOf(url), [
    'postgres://a:b%40c@one:1/vault?x=y',
    'postgres://a:b%40c@[fd00::1]:2/vault?x=y',
    'postgres://a:b%40c@three:5432/vault?x=y',
  ]);
  assert.deepEqual(namesOf(url), ['one:1', '[fd00::1]:2', 'three:5432']);
});

test('hosts and ports may be parameters, one port for all or one for each', () => {
  assert.deepEqual(urlsOf('postgresql://a@/vault?host=one,two&port=1,2'), [
    'postgresql://a@one:1/vault',
    'postgresql://a@two:2/vault',
  ]);
  assert.deepEqual(namesOf('postgres:///vault?host=/run/one,fd00::1&port=6432'), [
    '/run/one:6432',
    '[fd00::1]:6432',
  ]);
});

test('one host is left to the driver as it is written', () => {
  for (const url of ['postgres://a@/vault', 'postgres:///vault', 'postgres://%2Frun/vault?x=%20']) {
    assert.deepEqual(urlsOf(url), [url]);
  }
});

test('verified TLS is demanded of every host when one of them is beyond loopback', () => {
  const url = verifiedUrl('postgres://localhost:1,db.example:2/vault?sslmode=prefer');
  for (const one of urlsOf(url)) assert.match(one, /\?sslmode=verify-full$/);
});

test('what the driver would read in another way than it was checked is refused', () => {
  for (const url of [
    'postgres://u:p@db.example:5432/vault#prod',
    'postgres://u:p@db.example:5432/vault #prod',
    'postgres://u:p@one.example,two.example/vault#prod',
    'postgres://u:p@db.example:5432\n',
    'postgres://u:p@db.example:5432\r\n/vault',
    'postgres://u:p@db.exa\tmple/vault',
  ]) {
    assert.throws(() => verifiedUrl(url), reasonedBy(/percent-encoded/));
  }
  assert.throws(() => verifiedUrl('u:p@db.example/vault'), reasonedBy(/must begin with postgres/));
  assert.match(verifiedUrl('postgres://u:p%23@db.example/vault'), /sslmode=verify-full$/);
});

test('what a vault cannot use is refused with what to write', () => {
  const many = (count: number) => Array.from({ length: count }, (_, n) => `h${n}`).join(',');
  assert.equal(hostsOf(`postgres://${many(hostsMax)}/vault`).length, hostsMax);
  const refused: readonly (readonly [string, RegExp])[] = [
    [`postgres://${many(hostsMax + 1)}/vault`, /at most 8 hosts/],
    ['postgres://one,two/vault?target_session_attrs=any', /target_session_attrs=read-write/],
    ['postgres://one/vault?target_session_attrs=standby', /target_session_attrs=read-write/],
    ['postgres://one,,two/vault', /a host before and after each comma/],
    ['postgres://one,two:0/vault', /ports from 1 to 65535/],
    ['postgres://one,two:65536/vault', /ports from 1 to 65535/],
    ['postgres://one:65536/vault', /ports from 1 to 65535/],
    ['postgres://:secret', /ports from 1 to 65535/],
    ['postgres://one:5432/vault?port=x', /ports from 1 to 65535/],
    ['postgres://o<ne/vault', /must be a URL/],
    ['postgres://one:5432,one/vault', /each host once/],
    ['postgres://one,%zz/vault', /percent-encoded/],
    ['postgres:///vault?host=one,two&port=1,2,3', /one port for all hosts, or one for each/],
  ];
  for (const [url, says] of refused) {
    assert.throws(() => hostsOf(url), reasonedBy(says));
  }
});
