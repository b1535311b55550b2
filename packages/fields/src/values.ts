/** Bodies with elements in place of values. */
import { ElementValue, StrongroomElement } from './elements.ts';
import type { BodyRequest, ValuePlace } from './protocol.ts';

export type BodyWithFields =
  | string
  | number
  | boolean
  | null
  | undefined
  | ElementValue
  | StrongroomElement
  | readonly BodyWithFields[]
  | { readonly [key: string]: BodyWithFields };

/** The body without its elements, and where they were. */
export function placesIn(body: BodyWithFields): BodyRequest {
  const places: ValuePlace[] = [];
  const walk = (value: BodyWithFields, path: readonly (string | number)[]): unknown => {
    if (value instanceof StrongroomElement) {
      places.push({ path, element: value.elementId, part: undefined });
      return null;
    }
    if (value instanceof ElementValue) {
      places.push({ path, element: value.element.elementId, part: value.part });
      return null;
    }
    if (Array.isArray(value)) return value.map((inner, at) => walk(inner, [...path, at]));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [key, walk(inner, [...path, key])]),
    );
  };
  return { body: walk(body, []), places };
}
