/** Values are found in a response as destinations write them, at every border of chunks, in time for its bytes. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { Readable, type Transform } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { suite, test } from 'node:test';
import { Scrub, ScrubFrames, scrubTexts } from '../../src/proxies/egress/scrub.ts';
import { patternsOf } from '../../src/proxies/egress/value-patterns.ts';

const bytesOf = (text: string) => Buffer.from(text, 'utf8').toString('latin1');
const visa = '4242424242424242';
const amex = '378282246310005';
const secret = 'wJalr/XUtn+FEMI<K7&MD>"b\'Px\\ (a)!~*%41 漢😀é';

const pay = async () => undefined;

/** Without what the program knows, and without another who waits. */
async function scrubbedText(values: readonly string[], text: string, known = '') {
  let found = 0;
  const onFound = (count: number) => {
    found += count;
  };
  const patterns = await patternsOf(values, { known, pay });
  const [scrubbedOne = ''] = await scrubTexts({ patterns, pay, onFound }, [text]);
  return { text: scrubbedOne, found };
}

async function scrubbed(values: readonly string[], chunks: readonly Buffer[], known = '') {
  let found = 0;
  const scrub = new Scrub({
    patterns: await patternsOf(values, { known, pay }),
    onFound: (count) => {
      found += count;
    },
    onRead: pay,
    pay,
    isOfLines: false,
  });
  const bytes = await buffer(Readable.from(chunks, { objectMode: true }).pipe(scrub));
  return { bytes, found };
}

const html: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
const escapedHtml = (text: string) => text.replace(/[&<>"']/g, (one) => html[one] ?? one);
const hexOf = (one: string) => one.charCodeAt(0).toString(16).padStart(4, '0');
const jsonOf = (text: string) => JSON.stringify(text).slice(1, -1);

/** As these write text by default. */
const writers: Record<string, (text: string) => string> = {
  'nothing escaped': (text) => text,
  'encoding/json of Go': (text) => jsonOf(text).replace(/[<>&]/g, (one) => `\\u${hexOf(one)}`),
  'json_encode of PHP': (text) =>
    jsonOf(text)
      .replaceAll('/', '\\/')
      .replace(/[\u0080-\uffff]/g, (one) => `\\u${hexOf(one)}`),
  'JSON with capitals': (text) =>
    jsonOf(text).replace(/[^ -~]|[<>&'/]/g, (one) => `\\u${hexOf(one).toUpperCase()}`),
  'JSON in JSON': (text) => jsonOf(jsonOf(text)),
  'JSON in JSON in JSON': (text) => jsonOf(jsonOf(jsonOf(text))),
  'a literal of JavaScript': (text) =>
    Array.from(text, (one) => `\\u{${one.codePointAt(0)?.toString(16)}}`).join(''),
  'single quotes escaped': (text) => text.replace(/['\\]/g, (one) => `\\${one}`),
  URLSearchParams: (text) => new URLSearchParams({ v: text }).toString().slice(2),
  encodeURIComponent: (text) => encodeURIComponent(text),
  'URL encoding in small letters': (text) =>
    encodeURIComponent(text).replace(/%../g, (one) => one.toLowerCase()),
  'every byte in URL encoding': (text) =>
    Array.from(Buffer.from(text), (one) => `%${one.toString(16).padStart(2, '0')}`).join(''),
  'URL encoding twice': (text) => encodeURIComponent(encodeURIComponent(text)),
  HTML: escapedHtml,
  'HTML twice': (text) => escapedHtml(escapedHtml(text)),
  'HTML by numbers': (text) =>
    Array.from(text, (one) => `&#x${one.codePointAt(0)?.toString(16)};`).join(''),
  hexadecimal: (text) => Buffer.from(text).toString('hex').toUpperCase(),
  'base64 in lines': (text) =>
    Buffer.from(`ab${text}`).toString('base64').replace(/.{12}/g, '$&\r\n'),
  'base64 in URL encoding': (text) => encodeURIComponent(Buffer.from(text).toString('base64')),
  'base64 in lines in JSON': (text) =>
    jsonOf(Buffer.from(text).toString('base64').replace(/.{12}/g, '$&\n')),
};

suite('values in responses', () => {
  for (const [name, write] of Object.entries(writers)) {
    test(`are found in this encoding, also between any two bytes: ${name}`, async () => {
      for (const value of [secret, visa, 'a&amp;%25\\\\n=b', '50%-off']) {
        const text = Buffer.from(`<i>${write(value)}</i>`);
        const whole = await scrubbed([value], [text]);
        assert.equal(whole.found, 1, `${value} ${text}`);
        assert.equal(whole.bytes.length, text.length);
        // At its ends, base64 has characters that belong to what is beside the value.
        const left = String(whole.bytes).replace(/\*+/, '');
        assert.ok(left.length <= 16, left);
        const single = Array.from(text, (byte) => Buffer.of(byte));
        assert.deepEqual((await scrubbed([value], single)).bytes, whole.bytes);
        for (let at = 1; at < text.length; at += 1) {
          const parts = [text.subarray(0, at), text.subarray(at)];
          assert.deepEqual((await scrubbed([value], parts)).bytes, whole.bytes, `parted at ${at}`);
        }
      }
    });
  }

  test('are found as cards are printed, trimmed, and in UTF-16 and UTF-32', async () => {
    const texts: [string, Buffer][] = [
      [amex, Buffer.from('3782 822463 10005')],
      [visa, Buffer.from('4242-4242-4242-4242')],
      [visa, Buffer.from('4242%204242%204242%204242')],
      [visa, Buffer.from('4,242,424,242,424,242')],
      [visa, Buffer.from('4242/4242/4242_4242')],
      [visa, Buffer.from('4\u202f242\u202f424\u202f242\u202f424\u202f242')],
      ['123-45-6789', Buffer.from('123456789')],
      ['  padded-secret-001 ', Buffer.from('padded-secret-001')],
      [visa, Buffer.from(visa, 'utf16le')],
      [visa, Buffer.from(visa, 'utf16le').swap16()],
      [visa, Buffer.from(Array.from(visa, (one) => `${one}\0\0\0`).join(''))],
    ];
    for (const [value, text] of texts) {
      const { bytes, found } = await scrubbed([value], [text]);
      assert.equal(found, 1, String(text));
      assert.match(String(bytes).replaceAll('\0', ''), /^\*+$/);
    }
  });

  test('are found whole, however long they are', async () => {
    for (const rest of [0, 1, 3, 5, 6, 100, 191]) {
      const value = `${'x'.repeat(191)}😀${'漢字 '.repeat(64)}${createHash('shake256', {
        outputLength: 1500,
      })
        .update('x')
        .digest('hex')
        .slice(0, 192 * 7 + rest)}`;
      const { bytes } = await scrubbed([value], [Buffer.from(`<${value}>`)]);
      assert.match(String(bytes), /^<\*+>$/, `rest ${rest}`);
    }
  });

  test('are left where the program wrote them, in whatever encoding, and only these', async () => {
    const secretKey = 'Joe.Smith@example.com';
    for (const known of [
      secretKey,
      'JOE.SMITH@EXAMPLE.COM',
      'joe%2Esmith%2540example.com',
      Buffer.from(`x${secretKey}`).toString('base64'),
      Array.from(secretKey, (one) => `\\u${hexOf(one)}`).join(''),
    ]) {
      const { text } = await scrubbedText(
        [secretKey, visa],
        `${secretKey} ${visa}`,
        `{"a":"${known}"}`,
      );
      assert.equal(text, `${secretKey} ${'*'.repeat(16)}`);
    }
    const wide = Array.from(visa, (one) => String.fromCodePoint(0xff10 + Number(one))).join('');
    assert.equal((await scrubbedText([visa], visa, bytesOf(wide))).text, visa);
    assert.equal((await scrubbedText([visa], visa, '4242424242424243')).found, 1);
  });

  test('leave other text as it is, and hold back none that begins no value', async () => {
    const text = 'data: {"a":"4242 4242 & 50% of \\u0034 é 漢"}\n\n';
    const { bytes, found } = await scrubbed([visa, secret], [Buffer.from(text)]);
    assert.equal(String(bytes), text);
    assert.equal(found, 0);
  });

  test('hold back as much of a stream whatever the values are, and pass lines of messages at once', async () => {
    const words = [
      'data: |4',
      '242 |sk',
      '-a\n\n',
      'data: 42424242',
      '4242',
      'x'.repeat(9_000),
      '4242',
    ];
    const sizesOf = async (value: string, isOfLines: boolean) => {
      const scrub = new Scrub({
        patterns: await patternsOf([value], { pay }),
        onFound: () => undefined,
        onRead: pay,
        pay,
        isOfLines,
      });
      const sizes: number[] = [];
      for (const word of words) {
        await new Promise((resolve) => scrub.write(word, resolve));
        sizes.push(String(scrub.read() ?? '').length);
      }
      return sizes;
    };
    for (const isOfLines of [true, false]) {
      const sizes = await sizesOf(visa, isOfLines);
      assert.deepEqual(await sizesOf('sk-another-value', isOfLines), sizes);
      assert.equal(sizes[2], isOfLines ? words.slice(0, 3).join('').length : 0);
    }
  });

  test('are found in another case, and as bytes of Latin-1', async () => {
    const mail = 'Jane.Doe@Example.com';
    assert.equal((await scrubbedText([mail], mail.toUpperCase())).found, 1);
    assert.equal(
      (await scrubbedText(['pässwörter'], 'a pässwörter z')).text,
      `a ${'*'.repeat(10)} z`,
    );
  });

  test('cost time for the bytes of a response alone, whatever escapes it has', async () => {
    for (const text of ['\\', '%', '%25', '&amp;', '&#0', '\\u{0', '4', 'w']) {
      // Time that grew with the square of the length would be hours.
      const long = text.repeat(300_000);
      assert.equal((await scrubbedText([visa, secret], long)).text, long);
    }
  });

  test('that cost most are looked for in bounded work, between whose parts others have their turns', async () => {
    const alike = Array.from({ length: 160 }, (_, at) => 'a'.repeat(90) + String(at).padStart(6));
    const hostile: readonly (readonly [value: string, echoed: string])[] = [
      ['a'.repeat(16_000), `${'a'.repeat(95)}b`],
      [alike.join(''), 'a'.repeat(95)],
    ];
    for (const [value, echoed] of hostile) {
      const bytes = 8_192;
      let parts = 0;
      const counted = async () => {
        parts += 1;
      };
      const patterns = await patternsOf([value], { pay: counted });
      parts = 0;
      const text = echoed.repeat(Math.ceil(bytes / echoed.length)).slice(0, bytes);
      await scrubTexts({ patterns, pay: counted, onFound: () => undefined }, [text]);
      // A part has 16,384 steps. What begins alike is looked for once: a place takes as many as a value is long.
      assert.ok(parts > 1 && parts < bytes / 20, `${parts} parts for ${echoed}`);
    }
  });

  test('have turns between the steps at one place, too', async () => {
    let parts = 0;
    const counted = async () => {
      parts += 1;
    };
    const patterns = await patternsOf([`${'\\%'.repeat(40)}end`], { pay });
    const text = '\\\\%25'.repeat(40);
    await scrubTexts({ patterns, pay: counted, onFound: () => undefined }, [text]);
    assert.ok(parts > text.length, `${parts} parts of ${text.length} places`);
  });

  test('are found whole among many values that begin alike, and beside what the program knows', async () => {
    const alike = Array.from({ length: 400 }, (_, at) => `sk_live_${String(at).padStart(12, '0')}`);
    const key = 'sk_live_zQ81xWmJ2kd0';
    const echoed = `${alike.join('\n')} ${key}`;
    const { text } = await scrubbedText([alike.join('\n'), key], echoed);
    assert.match(text, /^[*\n ]+$/);
    const guessed = await scrubbedText([alike.join('\n'), key], key, `"${key}"`);
    assert.equal(guessed.text, key);
  });
});

suite('what has no byte to search is paid for, in parts', () => {
  const part = 64;
  const count = 4_096;
  const frames = (first: number, next: number, tail: readonly number[]) =>
    Buffer.concat(
      Array.from({ length: count }, (_, at) => Buffer.from([at === 0 ? first : next, ...tail])),
    );
  const floods: Readonly<Record<string, Buffer>> = {
    'pings without a byte': frames(0x89, 0x89, [0]),
    'messages without a byte': frames(0x81, 0x81, [0]),
    'parts of a message without a byte': frames(0x01, 0x00, [0]),
    'parts of a message of a byte': frames(0x01, 0x00, [1, 0x61]),
  };
  async function paidFor(
    chunks: readonly Buffer[],
    scrub: (pays: (ms: number) => Promise<void>) => Transform,
  ) {
    let paidMs = 0;
    let times = 0;
    const pays = async (ms: number) => {
      paidMs += ms;
      times += 1;
    };
    await buffer(Readable.from(chunks, { objectMode: true }).pipe(scrub(pays)));
    return { paidMs, times };
  }

  for (const [what, chunk] of Object.entries(floods)) {
    test(`frames of a WebSocket: ${what}`, async () => {
      const patterns = await patternsOf([secret], { known: '', pay });
      const { paidMs, times } = await paidFor(
        [chunk],
        (pays) => new ScrubFrames({ patterns, pay: pays, onFound: () => undefined }),
      );
      assert.ok(times >= count / part, `${times} times`);
      assert.ok(paidMs >= count / 100, `${paidMs} ms`);
    });
  }

  test('chunks of a response that are held back', async () => {
    const patterns = await patternsOf([secret], { known: '', pay });
    const chunks = Array.from({ length: count }, () => Buffer.from('a'));
    const { paidMs } = await paidFor(
      chunks,
      (pays) =>
        new Scrub({
          ...{ patterns, pay: pays, onFound: () => undefined },
          ...{ onRead: pay, isOfLines: false },
        }),
    );
    assert.ok(paidMs >= count / 50, `${paidMs} ms`);
  });
});
