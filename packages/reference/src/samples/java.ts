/** A request by the standard library of Java 17, as a program of one file. */
import type { SampleRequest, Target } from './request.ts';

export function javaOf(request: SampleRequest, { url, keyHeader, key }: Target): string {
  const { method, target, headers, mediaType, text, needsKey } = request;
  const header = (name: string, value: string) =>
    `        .header(${JSON.stringify(name)}, ${value})`;
  return [
    'import java.net.URI;',
    'import java.net.http.HttpClient;',
    'import java.net.http.HttpRequest;',
    ...(text === undefined && method === 'GET'
      ? []
      : ['import java.net.http.HttpRequest.BodyPublishers;']),
    'import java.net.http.HttpResponse.BodyHandlers;',
    '',
    'class Example {',
    '  public static void main(String[] arguments) throws Exception {',
    ...(text === undefined ? [] : [`    var body = ${textBlock(text)};`]),
    `    var request = HttpRequest.newBuilder(URI.create(${JSON.stringify(url + target)}))`,
    ...(needsKey
      ? [
          header(
            keyHeader,
            key === undefined ? 'System.getenv("STRONGROOM_KEY")' : JSON.stringify(key),
          ),
        ]
      : []),
    ...headers.map(([name, value]) => header(name, JSON.stringify(value))),
    ...(mediaType === undefined ? [] : [header('Content-Type', JSON.stringify(mediaType))]),
    ...(text !== undefined
      ? [`        .method("${method}", BodyPublishers.ofString(body))`]
      : method === 'GET'
        ? []
        : [`        .method("${method}", BodyPublishers.noBody())`]),
    '        .build();',
    '    var response = HttpClient.newHttpClient().send(request, BodyHandlers.ofString());',
    '    System.out.println(response.statusCode() + " " + response.body());',
    '  }',
    '}',
  ].join('\n');
}

function textBlock(text: string): string {
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('"""', '\\"""');
  return `"""\n        ${escaped.replaceAll('\n', '\n        ')}"""`;
}
