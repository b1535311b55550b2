/** A request as a command. */
import type { SampleRequest, Target } from './request.ts';

export function curlOf(request: SampleRequest, { url, keyHeader, key }: Target): string {
  const { method, target, headers, mediaType, text, needsKey } = request;
  const parts = [
    `curl${methodOptions[method] ?? ` -X ${method}`} ${quoted(`${url}${target}`)}`,
    ...(needsKey
      ? [
          key === undefined
            ? `-H "${keyHeader}: $STRONGROOM_KEY"`
            : `-H ${quoted(`${keyHeader}: ${key}`)}`,
        ]
      : []),
    ...headers.map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(mediaType === undefined ? [] : [`-H ${quoted(`Content-Type: ${mediaType}`)}`]),
    ...(text === undefined ? [] : [`--data-binary ${quoted(text)}`]),
  ];
  return parts.join(' \\\n  ');
}

/** With -X, curl would wait for a body of HEAD. */
const methodOptions: Readonly<Record<string, string>> = { GET: '', HEAD: ' --head' };

/** One word of a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
