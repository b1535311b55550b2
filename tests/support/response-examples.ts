/** What the examples of the description were answered with, in a form that every run gives again. */
import type { Story } from './example-story.ts';

/** Longer lists are shortened: an example shows of what kind the members are. */
const membersMax = 2;

const time = '2026-01-31T09:30:00.000+00:00';

/** Values of attributes that are new in every run and have no form of their own. */
const byName: Readonly<Record<string, string>> = {
  head_hash: '0000000000000000000000000000000000000000000000000000000000000000',
  fingerprint: 'CC2XvyoohnqecEq4r3FtXv6MdCx4TbaW1UUTdCCN5MNL',
  next: 'Cursor0000000000000000000000000000',
  nonce: 'Nonce000000000000000000000000000',
  public_key: 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=',
  signature: 'c2lnbmF0dXJl',
};

const pem = '-----BEGIN PUBLIC KEY-----\n…\n-----END PUBLIC KEY-----\n';

/** Responses by the id of their operation: of a stream its lines, of others the body. */
export function responseExamples({ steps, real }: Story): Readonly<Record<string, unknown>> {
  const shown = new Map([...real].map(([example, value]) => [value, example]));
  const clean = cleaner(shown);
  return Object.fromEntries(
    steps
      .filter(({ operation: { reply }, received }) => {
        return reply.body !== undefined && received.status === reply.status;
      })
      .map(({ operation, answered }) => [operation.id, clean(answered, '')]),
  );
}

/** @param shown what examples have in place of values that the vault made up. */
function cleaner(shown: Map<string, string>) {
  let ids = 0;
  const idOf = (id: string) => {
    const known = shown.get(id);
    if (known !== undefined) return known;
    ids += 1;
    const made = `00000000-0000-4000-8000-${String(ids).padStart(12, '0')}`;
    shown.set(id, made);
    return made;
  };

  function text(value: string, name: string): string {
    const known = shown.get(value);
    if (known !== undefined) return known;
    if (value.startsWith('-----BEGIN')) return pem;
    if (name === 'statement') return value.replace(/^(\{"type":"[^"]+").*$/s, '$1, …}');
    return (
      byName[name] ??
      value
        .replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, idOf)
        .replace(/\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)/g, time)
        .replace(/\b(key_(?:test|prod)_[a-z]{3}_)[A-Za-z0-9]{49}/g, '$1…')
        .replace(/^[A-Za-z0-9]{38}$/, 'KeyOfAProxy')
        .replace(/^whsec_.*$/, 'whsec_…')
        .replace(/^[0-9a-f]{8}$/, '0a1b2c3d')
    );
  }

  return function clean(value: unknown, name: string): unknown {
    if (typeof value === 'string') return text(value, name);
    if (Array.isArray(value))
      return value.slice(0, membersMax).map((one) => clean(one, singular(name)));
    // A fingerprint has 43 or 44 characters, and ids are in an order of their own.
    if (name === 'stored_bytes') return 4096;
    // How many entries a stream has depends on how many connections write.
    if (name === 'head_seq' || (name === 'seq' && Number(value) > 1)) return 42;
    if (name === 'by_application') return { [idOf('any application')]: 4096 };
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([member, one]) => [member, clean(one, member)]),
    );
  };
}

function singular(name: string): string {
  return name.replace(/s$/, '');
}
