/** A request by the standard library of Go. */
import type { SampleRequest, Target } from './request.ts';

export function goOf(request: SampleRequest, { url, keyHeader, key }: Target): string {
  const { method, target, headers, mediaType, text, needsKey } = request;
  const address = JSON.stringify(url + target);
  const readsKey = needsKey && key === undefined;
  const set = (name: string, value: string) =>
    `\trequest.Header.Set(${JSON.stringify(name)}, ${value})`;
  return [
    'package main',
    '',
    'import (',
    ...[
      'fmt',
      'io',
      'net/http',
      ...(readsKey ? ['os'] : []),
      ...(text === undefined ? [] : ['strings']),
    ].map((name) => `\t"${name}"`),
    ')',
    '',
    'func main() {',
    ...(text === undefined ? [] : [`\tbody := strings.NewReader(${quoted(text)})`]),
    `\trequest, err := http.NewRequest("${method}", ${address}, ${text === undefined ? 'nil' : 'body'})`,
    ...failing,
    ...(needsKey
      ? [set(keyHeader, key === undefined ? 'os.Getenv("STRONGROOM_KEY")' : JSON.stringify(key))]
      : []),
    ...headers.map(([name, value]) => set(name, JSON.stringify(value))),
    ...(mediaType === undefined ? [] : [set('Content-Type', JSON.stringify(mediaType))]),
    '\tresponse, err := http.DefaultClient.Do(request)',
    ...failing,
    '\tdefer response.Body.Close()',
    '\tresult, err := io.ReadAll(response.Body)',
    ...failing,
    '\tfmt.Println(response.Status, string(result))',
    '}',
  ].join('\n');
}

const failing = ['\tif err != nil {', '\t\tpanic(err)', '\t}'];

/** Raw strings of Go cannot hold a backquote. */
function quoted(text: string): string {
  return text.includes('`') ? JSON.stringify(text) : `\`${text}\``;
}
