/** One request as the samples of all languages write it. */
import { contentOf, type Operation, successOf } from '../document.ts';

export interface SampleRequest {
  readonly operationId: string;
  readonly method: string;
  /** With the parameters of path and query in it. */
  readonly target: string;
  /** Values of the path, in its order. */
  readonly ids: readonly string[];
  readonly query: readonly (readonly [string, unknown])[];
  /** Headers besides the key and the media type. */
  readonly headers: readonly (readonly [string, string])[];
  readonly mediaType: string | undefined;
  /** As it is sent. */
  readonly text: string | undefined;
  /** The same as JSON, where it is one value. */
  readonly body: unknown;
  readonly needsKey: boolean;
  readonly hasReply: boolean;
}

/** Where the samples send it, and as whom. */
export interface Target {
  readonly url: string;
  readonly keyHeader: string;
  /** Without one, samples read it from the environment. */
  readonly key: string | undefined;
}

/** What a reader wrote in place of the examples of an operation. */
export interface Entered {
  /** By the name of the parameter. */
  readonly parameters?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export function requestOf(operation: Operation, entered: Entered = {}): SampleRequest {
  const { path, method, operationId, needsKey, parametersInPlace } = operation;
  const givenOr = (name: string, example: unknown) => entered.parameters?.[name] ?? example;
  const ids: string[] = [];
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const parameter = parametersInPlace.find((one) => one.in === 'path' && one.name === name);
    const id = String(givenOr(name, parameter?.example ?? name.toUpperCase()));
    ids.push(id);
    return encodeURIComponent(id);
  });
  const given = parametersInPlace.flatMap(({ name, in: place, example }) => {
    const value = givenOr(name, example);
    return place === 'path' || value === undefined || value === ''
      ? []
      : [
          {
            name,
            place,
            value,
            isOptional: optionalHeaders.test(name) && !entered.parameters?.[name],
          },
        ];
  });
  const query = given
    .filter(({ place }) => place === 'query')
    .map(({ name, value }) => [name, value] as const);
  const search = new URLSearchParams(
    query.flatMap(([name, value]) =>
      (Array.isArray(value) ? value : [value]).map((one) => [name, String(one)]),
    ),
  ).toString();
  const [mediaType, content] = contentOf(operation.requestBody?.content) ?? [];
  const example = content?.example;
  const written =
    example === undefined || typeof example === 'string'
      ? example
      : JSON.stringify(example, null, 2);
  const text = entered.body ?? (written as string | undefined);
  return {
    operationId,
    method,
    target: search === '' ? filled : `${filled}?${search}`,
    ids,
    query,
    headers: given
      .filter(({ place, isOptional }) => place === 'header' && !isOptional)
      .map(({ name, value }) => [name, String(value)] as const),
    mediaType:
      text === undefined ? undefined : mediaType === '*/*' ? 'application/json' : mediaType,
    text,
    body: parsed(text),
    needsKey,
    hasReply: successOf(operation)?.[1].content !== undefined,
  };
}

/** Every request may have them, so an example shows them only where the reader gives one. */
export const optionalHeaders = /-(?:IDEMPOTENCY-KEY|TRACE-ID)$/;

function parsed(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
