/** A request by the TypeScript client, or by `fetch` where the client has no method for it. */
import { clientCallOf } from './client-methods.ts';
import type { SampleRequest, Target } from './request.ts';

export function typescriptOf(request: SampleRequest, target: Target): string {
  const { key, url } = target;
  const call = clientCallOf(request.operationId);
  const secret = key === undefined ? "process.env.STRONGROOM_KEY ?? ''" : literal(key);
  if (call === undefined) return withFetch(request, target, secret);
  const { hasReply } = request;
  const name = ['vault', ...call.path.map(camelCase)].join('.');
  const invoked = `${name}(${argumentsOf(request, call.takesQueryValue).join(', ')})`;
  return [
    "import { Strongroom } from '@strongroom/client';",
    '',
    `const vault = new Strongroom({`,
    `  url: ${literal(url)},`,
    `  apiKey: ${secret},`,
    '});',
    '',
    ...(call.isList
      ? [`for await (const item of ${invoked}) {`, '  console.log(item);', '}']
      : hasReply
        ? [`const result = await ${invoked};`, 'console.log(result);']
        : [`await ${invoked};`]),
  ].join('\n');
}

function argumentsOf({ ids, query, body }: SampleRequest, takesQueryValue: boolean): string[] {
  // The client reads pages by itself.
  const asked = query.filter(([name]) => name !== 'start' && name !== 'page');
  const value = takesQueryValue
    ? ((body as { query?: string } | undefined)?.query ?? asked[0]?.[1])
    : undefined;
  return [
    ...ids.map((id) => (/^\d+$/.test(id) ? id : literal(id))),
    ...(takesQueryValue
      ? [literal(value)]
      : body !== undefined
        ? [literal(body)]
        : asked.length > 0
          ? [literal(Object.fromEntries(asked))]
          : []),
  ];
}

function withFetch(request: SampleRequest, { url, keyHeader }: Target, secret: string): string {
  const { method, target, headers, mediaType, text, body, needsKey, hasReply } = request;
  const all = [
    ...(needsKey ? [`${literal(keyHeader)}: ${secret}`] : []),
    ...headers.map(([name, value]) => `${literal(name)}: ${literal(value)}`),
    ...(mediaType === undefined ? [] : [`'Content-Type': ${literal(mediaType)}`]),
  ];
  const sent = body === undefined ? literal(text) : `JSON.stringify(${literal(body, '  ')})`;
  const options = [
    ...(method === 'GET' ? [] : [`  method: ${literal(method)},`]),
    ...(all.length > 0 ? ['  headers: {', ...all.map((one) => `    ${one},`), '  },'] : []),
    ...(text === undefined ? [] : [`  body: ${sent},`]),
  ];
  return [
    options.length > 0
      ? `const response = await fetch(${literal(url + target)}, {`
      : `const response = await fetch(${literal(url + target)});`,
    ...(options.length > 0 ? [...options, '});'] : []),
    'if (!response.ok) throw new Error(await response.text());',
    ...(hasReply ? ['console.log(await response.text());'] : []),
  ].join('\n');
}

/** A value as the formatter of TypeScript writes it. */
export function literal(value: unknown, indent = ''): string {
  if (typeof value === 'string') return quoted(value);
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]';
    const items = value.map((one) => literal(one, `${indent}  `));
    return bracketed(items, { open: '[', close: ']', space: '', indent });
  }
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).map(
      ([name, one]) =>
        `${/^[A-Za-z_$][\w$]*$/.test(name) ? name : quoted(name)}: ${literal(one, `${indent}  `)}`,
    );
    if (members.length === 0) return '{}';
    return bracketed(members, { open: '{', close: '}', space: ' ', indent });
  }
  return String(value);
}

interface Brackets {
  readonly open: string;
  readonly close: string;
  readonly space: string;
  readonly indent: string;
}

function bracketed(items: readonly string[], { open, close, space, indent }: Brackets): string {
  const line = `${open}${space}${items.join(', ')}${space}${close}`;
  if (indent.length + line.length <= 64 && !line.includes('\n')) return line;
  return [open, ...items.map((item) => `${indent}  ${item},`), `${indent}${close}`].join('\n');
}

function quoted(text: string): string {
  const escaped = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"');
  return text.includes("'") && !text.includes('"')
    ? JSON.stringify(text)
    : `'${escaped.replaceAll("'", "\\'")}'`;
}

export function camelCase(name: string): string {
  return name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}
