/** Serializing responses by their schema, which is compiled with the first response that needs it. */
import { createRequire } from 'node:module';
import type { FastifySerializerCompiler, FastifyServerOptions } from 'fastify';

const require = createRequire(import.meta.url);

type Compile = FastifySerializerCompiler<unknown>;

/** For the server: without it, Fastify loads two compilers and compiles every schema at each start. */
export const schemaController = {
  compilersFactory: {
    // Requests are validated by http/protocol/validation.ts.
    buildValidator: () => () => () => true,
    buildSerializer: (schemas: unknown, options: unknown): Compile => {
      let compile: Compile | undefined;
      return (route) => {
        let serialize: ((value: unknown) => string) | undefined;
        return (value) => {
          compile ??= require('@fastify/fast-json-stringify-compiler')()(
            schemas,
            options,
          ) as Compile;
          serialize ??= compile(route) as (value: unknown) => string;
          return serialize(value);
        };
      };
    },
  },
} as unknown as NonNullable<FastifyServerOptions['schemaController']>;
