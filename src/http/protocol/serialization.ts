/** Serializing responses by their schema, which is compiled with the first response that needs it. */
import { createRequire } from 'node:module';
import type { TSchema } from 'typebox';

const require = createRequire(import.meta.url);

export type Serialize = (body: object) => string;

/** The compiler is loaded with the first schema: a start does not wait for it. */
export function compileSerializer(schema: TSchema | undefined): Serialize {
  if (schema === undefined) return JSON.stringify;
  let serialize: Serialize | undefined;
  return (body) => {
    serialize ??= require('fast-json-stringify')(schema) as Serialize;
    return serialize(body);
  };
}
