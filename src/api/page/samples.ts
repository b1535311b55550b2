/** The example of an operation as a command, and in two languages. */
import { exampleText } from '../openapi/example-text.ts';
import type { PublishedOperation } from '../openapi/published-operation.ts';

export interface Samples {
  readonly curl: string;
  readonly typescript: string;
  readonly python: string;
}

/** The prelude that the samples of all operations share. */
export function preludesOf(keyHeader: string): Samples {
  return {
    curl: "export STRONGROOM_URL=http://127.0.0.1:8080\nexport STRONGROOM_KEY='your key'",
    typescript: [
      "const url = 'http://127.0.0.1:8080';",
      "const key = process.env.STRONGROOM_KEY ?? '';",
      '',
      '// Each example sends the key as',
      `// headers: { '${keyHeader}': key }`,
    ].join('\n'),
    python: [
      'import json, os, urllib.request',
      '',
      "url = 'http://127.0.0.1:8080'",
      "key = os.environ['STRONGROOM_KEY']",
    ].join('\n'),
  };
}

export function samplesOf(
  { operation, isStream, path }: PublishedOperation,
  keyHeader: string,
): Samples {
  const { method, mediaType: declared, reply, example } = operation;
  const { params = {}, query = {}, body } = example;
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(params[name] ?? ''),
  );
  const search = new URLSearchParams(query).toString();
  const target = search === '' ? filled : `${filled}?${search}`;
  const mediaType = body === undefined ? undefined : (declared ?? 'application/json');
  const request = { method, target, mediaType, keyHeader, body, isStream };
  const reads = reply.body !== undefined;
  return {
    curl: curlOf(request),
    typescript: typescriptOf(request, reads),
    python: pythonOf(request, reads),
  };
}

interface Request {
  readonly method: string;
  readonly target: string;
  readonly mediaType: string | undefined;
  readonly keyHeader: string;
  readonly body: unknown;
  readonly isStream: boolean;
}

function curlOf({ method, target, mediaType, keyHeader, body, isStream }: Request): string {
  const quoted = exampleText(body ?? null, isStream)
    .trimEnd()
    .replaceAll("'", "'\\''");
  return [
    `curl${method === 'GET' ? '' : ` -X ${method}`} "$STRONGROOM_URL${target}"`,
    `-H "${keyHeader}: $STRONGROOM_KEY"`,
    ...(mediaType === undefined ? [] : [`-H 'Content-Type: ${mediaType}'`]),
    ...(body === undefined ? [] : [`--data-binary '${quoted}'`]),
  ].join(' \\\n  ');
}

function typescriptOf(request: Request, reads: boolean): string {
  const { method, target, mediaType, keyHeader, body, isStream } = request;
  const json = isStream
    ? `${exampleText(body ?? null, false)}.map((line) => JSON.stringify(line) + '\\n').join('')`
    : `JSON.stringify(${exampleText(body ?? null, false)})`;
  const headers = [
    `'${keyHeader}': key`,
    ...(mediaType === undefined ? [] : [`'Content-Type': '${mediaType}'`]),
  ];
  const options = [
    ...(method === 'GET' ? [] : [`  method: '${method}',`]),
    `  headers: { ${headers.join(', ')} },`,
    ...(body === undefined ? [] : [`  body: ${json.replaceAll('\n', '\n  ')},`]),
  ];
  return [
    `const response = await fetch(\`\${url}${target}\`, {`,
    ...options,
    '});',
    'if (!response.ok) throw new Error((await response.json()).detail);',
    ...(reads ? [`const result = ${readerOf(isStream)};`] : []),
  ].join('\n');
}

function readerOf(isStream: boolean): string {
  return isStream
    ? "(await response.text()).trimEnd().split('\\n').map((line) => JSON.parse(line))"
    : 'await response.json()';
}

function pythonOf(request: Request, reads: boolean): string {
  const { method, target, mediaType, keyHeader, body, isStream } = request;
  const value = pythonText(body);
  const data = isStream
    ? `''.join(json.dumps(line) + '\\n' for line in ${value}).encode()`
    : `json.dumps(${value}).encode()`;
  const headers = [
    `'${keyHeader}': key`,
    ...(mediaType === undefined ? [] : [`'Content-Type': '${mediaType}'`]),
  ];
  const read = isStream ? '[json.loads(line) for line in response]' : 'json.load(response)';
  return [
    'request = urllib.request.Request(',
    `    url + '${target}',`,
    ...(method === 'GET' ? [] : [`    method='${method}',`]),
    `    headers={${headers.join(', ')}},`,
    ...(body === undefined ? [] : [`    data=${data.replaceAll('\n', '\n    ')},`]),
    ')',
    ...(reads
      ? ['with urllib.request.urlopen(request) as response:', `    result = ${read}`]
      : ['urllib.request.urlopen(request).close()']),
  ].join('\n');
}

/** JSON is Python but for its three words; strings are left as they are. */
function pythonText(value: unknown): string {
  const words: Readonly<Record<string, string>> = { true: 'True', false: 'False', null: 'None' };
  return exampleText(value ?? null, false).replace(
    /"(?:[^"\\]|\\.)*"|\b(?:true|false|null)\b/g,
    (part) => words[part] ?? part,
  );
}
