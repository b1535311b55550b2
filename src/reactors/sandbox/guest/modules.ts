/** The small modules that code may require: querystring, url, uuid. */
import type { BufferPart, CryptoPart, NamedExports } from './parts.ts';

export function modules(crypto: CryptoPart, { bytesOf, Buffer }: BufferPart): NamedExports {
  type Fields = Record<string, unknown>;

  const escaped = (text: unknown) =>
    encodeURIComponent(String(text)).replace(/%(?:21|27|28|29|2A)/g, (code) =>
      decodeURIComponent(code),
    );

  function unescaped(text: unknown): string {
    try {
      return decodeURIComponent(String(text));
    } catch {
      return String(text);
    }
  }

  const querystring = {
    escape: escaped,
    unescape: unescaped,
    stringify(fields: Fields, separator = '&', equals = '='): string {
      return Object.entries(fields ?? {})
        .flatMap(([name, value]) =>
          (Array.isArray(value) ? value : [value]).map((one) => [name, one]),
        )
        .map(
          ([name, one]) =>
            `${escaped(name)}${equals}${typeof one === 'object' ? '' : escaped(one ?? '')}`,
        )
        .join(separator);
    },
    parse(text: unknown, separator = '&', equals = '='): Fields {
      const fields: Fields = Object.create(null);
      for (const part of String(text ?? '')
        .split(separator)
        .slice(0, 1_000)) {
        if (part === '') continue;
        const at = part.indexOf(equals);
        const end = at === -1 ? part.length : at;
        const name = unescaped(part.slice(0, end).replaceAll('+', ' '));
        const value = unescaped(part.slice(end + equals.length).replaceAll('+', ' '));
        const before = fields[name];
        if (before === undefined) fields[name] = value;
        else fields[name] = Array.isArray(before) ? [...before, value] : [before, value];
      }
      return fields;
    },
  };

  const urlClass = globalThis.URL;

  const url = {
    URL: urlClass,
    URLSearchParams: globalThis.URLSearchParams,
    /** The names of the retired `url.parse`, read by the URL class. */
    parse(text: unknown, withQuery = false): Fields {
      const { protocol, host, hostname, port, pathname, search, hash, href, username, password } =
        new urlClass(String(text));
      const auth = username === '' ? null : `${unescaped(username)}:${unescaped(password)}`;
      const query = search.slice(1);
      const parts = { protocol, slashes: true, auth, host, hostname, pathname, href };
      return {
        ...parts,
        port: port === '' ? null : port,
        search: search === '' ? null : search,
        hash: hash === '' ? null : hash,
        path: `${pathname}${search}`,
        query: withQuery ? querystring.parse(query) : query,
      };
    },
    format: (given: unknown) => String((given as { href?: unknown } | null)?.href ?? given),
    resolve: (from: string, to: string) => new urlClass(to, from).href,
  };

  const pattern =
    /^(?:[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}|0{8}-(?:0{4}-){3}0{12})$/i;
  const validate = (text: unknown) => typeof text === 'string' && pattern.test(text);

  function parse(text: unknown): Uint8Array {
    if (!validate(text)) throw new TypeError('Invalid UUID');
    return Uint8Array.fromHex(String(text).replaceAll('-', ''));
  }

  function stringify(bytes: Uint8Array, at = 0): string {
    const hex = Uint8Array.from(bytes.subarray(at, at + 16)).toHex();
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  }

  function marked(bytes: Uint8Array, version: number): string {
    bytes[6] = ((bytes[6] ?? 0) & 0x0f) | (version << 4);
    bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
    return stringify(bytes);
  }

  function named(algorithm: string, version: number) {
    const made = (name: unknown, namespace: unknown) => {
      const space = typeof namespace === 'string' ? parse(namespace) : bytesOf(namespace);
      const hash = crypto.createHash(algorithm).update(space).update(name).digest();
      return marked(Uint8Array.from((hash as Uint8Array).subarray(0, 16)), version);
    };
    return Object.assign(made, {
      DNS: '6ba7b810-9dad-11d1-80b4-00c04fd430c8',
      URL: '6ba7b811-9dad-11d1-80b4-00c04fd430c8',
    });
  }

  /** RFC 9562: 100 ns since 1582, and a random node with the multicast bit. */
  function v1(): string {
    const time = (BigInt(Date.now()) + 12_219_292_800_000n) * 10_000n;
    const bytes = Buffer.from(String(crypto.randomBytes(16)?.toString('base64')), 'base64');
    bytes.set(
      [24n, 16n, 8n, 0n, 40n, 32n, 56n, 48n].map((shift) => Number((time >> shift) & 0xffn)),
    );
    bytes[10] = (bytes[10] ?? 0) | 1;
    return marked(bytes, 1);
  }

  const uuid = {
    NIL: '00000000-0000-0000-0000-000000000000',
    v1,
    v3: named('md5', 3),
    v4: () => crypto.randomUUID(),
    v5: named('sha1', 5),
    validate,
    version: (text: unknown) => (parse(text)[6] ?? 0) >> 4,
    parse,
    stringify,
  };
  return { querystring, url, uuid };
}
