/** A request by the Python client, or by `httpx` where the client has no method for it. */
import { clientCallOf } from './client-methods.ts';
import type { SampleRequest, Target } from './request.ts';

export function pythonOf(request: SampleRequest, target: Target): string {
  const { key, url } = target;
  const call = clientCallOf(request.operationId);
  const secret = key === undefined ? 'os.environ["STRONGROOM_KEY"]' : JSON.stringify(key);
  if (call === undefined) return withHttpx(request, target, secret);
  const invoked = invocation(['vault', ...call.pythonPath].join('.'), argumentsOf(request));
  return [
    ...(key === undefined ? ['import os', ''] : []),
    'from strongroom import Strongroom',
    '',
    'vault = Strongroom(',
    `    url=${JSON.stringify(url)},`,
    `    api_key=${secret},`,
    ')',
    '',
    ...(call.isList
      ? [`for item in ${invoked}:`, '    print(item)']
      : request.hasReply
        ? [`result = ${invoked}`, 'print(result)']
        : [invoked]),
  ].join('\n');
}

const keywords = new Set(['import', 'from', 'global', 'class', 'async', 'with', 'in', 'is']);

function argumentsOf({ operationId, ids, query, body }: SampleRequest): string[] {
  const asked = query.filter(([name]) => name !== 'start' && name !== 'page');
  const positional = ids.map((id) => (/^\d+$/.test(id) ? id : JSON.stringify(id)));
  if (body !== undefined && wholeBodies.has(operationId)) return [...positional, literal(body)];
  const named = body === undefined ? asked : Object.entries(body as object);
  return [
    ...positional,
    ...named.map(([name, value]) => `${keywords.has(name) ? `${name}_` : name}=${literal(value)}`),
  ];
}

/** Their bodies are any JSON. */
const wholeBodies = new Set(['tokenize', 'detokenize']);

function invocation(name: string, given: readonly string[]): string {
  const line = `${name}(${given.join(', ')})`;
  if (line.length <= 72 && !line.includes('\n')) return line;
  const indented = given.map((one) => `    ${one.replaceAll('\n', '\n    ')},`);
  return [`${name}(`, ...indented, ')'].join('\n');
}

function withHttpx(request: SampleRequest, { url, keyHeader }: Target, secret: string): string {
  const { method, target, headers, mediaType, text, body, needsKey, hasReply } = request;
  const all = [
    ...(needsKey ? [`${JSON.stringify(keyHeader)}: ${secret}`] : []),
    ...headers.map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`),
    ...(mediaType === undefined || mediaType === 'application/json'
      ? []
      : [`"Content-Type": ${JSON.stringify(mediaType)}`]),
  ];
  const content =
    text === undefined
      ? []
      : body !== undefined && mediaType === 'application/json'
        ? [`    json=${literal(body).replaceAll('\n', '\n    ')},`]
        : [`    content=${JSON.stringify(text)},`];
  return [
    ...(secret.startsWith('os.') && needsKey ? ['import os', ''] : []),
    'import httpx',
    '',
    'response = httpx.request(',
    `    ${JSON.stringify(method)},`,
    `    ${JSON.stringify(url + target)},`,
    ...(all.length > 0 ? [`    headers={${all.join(', ')}},`] : []),
    ...content,
    ')',
    'response.raise_for_status()',
    ...(hasReply ? ['print(response.text)'] : []),
  ].join('\n');
}

/** A value as Black writes it. */
function literal(value: unknown, indent = ''): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) {
    return bracketed(
      value.map((one) => literal(one, `${indent}    `)),
      ['[', ']'],
      indent,
    );
  }
  if (typeof value === 'object') {
    const members = Object.entries(value as object).map(
      ([name, one]) => `${JSON.stringify(name)}: ${literal(one, `${indent}    `)}`,
    );
    return bracketed(members, ['{', '}'], indent);
  }
  return JSON.stringify(value);
}

function bracketed(
  items: readonly string[],
  [open, close]: readonly [string, string],
  indent: string,
): string {
  const line = `${open}${items.join(', ')}${close}`;
  if (indent.length + line.length <= 64 && !line.includes('\n')) return line;
  return [open, ...items.map((item) => `${indent}    ${item},`), `${indent}${close}`].join('\n');
}
