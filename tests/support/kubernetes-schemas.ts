/** The schemas of Kubernetes as kubeconform takes them, made of the description that its API publishes. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface Definition {
  readonly type?: string;
  readonly format?: string;
  readonly properties?: Readonly<Record<string, Definition>>;
  readonly additionalProperties?: unknown;
  readonly 'x-kubernetes-group-version-kind'?: readonly {
    readonly group: string;
    readonly version: string;
    readonly kind: string;
  }[];
}

const quantity = 'io.k8s.apimachinery.pkg.api.resource.Quantity';

/**
 * Writes one file for each kind, in which nothing is allowed that the kind does not have.
 * @param swagger `api/openapi-spec/swagger.json` of Kubernetes.
 * @returns where kubeconform finds the schema of a kind.
 */
export function writeSchemas(swagger: string, directory: string): string {
  const { definitions } = JSON.parse(readFileSync(swagger, 'utf8')) as {
    readonly definitions: Readonly<Record<string, Definition>>;
  };
  const strict = Object.fromEntries(
    Object.entries(definitions).map(([name, one]) => [name, strictly(name, one)]),
  );
  writeFileSync(join(directory, 'definitions.json'), JSON.stringify({ definitions: strict }));
  for (const [name, one] of Object.entries(definitions)) {
    for (const { group, version, kind } of one['x-kubernetes-group-version-kind'] ?? []) {
      const place = [kind.toLowerCase(), group.split('.')[0], version].filter(
        (part) => part !== '',
      );
      const schema = { $ref: `file://${directory}/definitions.json#/definitions/${name}` };
      writeFileSync(join(directory, `${place.join('-')}.json`), JSON.stringify(schema));
    }
  }
  return join(directory, '{{ .ResourceKind }}{{ .KindSuffix }}.json');
}

function strictly(name: string, definition: Definition): unknown {
  if (name === quantity || definition.format === 'int-or-string') {
    return { type: ['string', 'number'] };
  }
  const { properties, ...rest } = definition;
  if (properties === undefined) return rest;
  return {
    ...rest,
    ...(definition.additionalProperties === undefined && { additionalProperties: false }),
    properties: Object.fromEntries(
      Object.entries(properties).map(([key, one]) => [key, strictly(key, one)]),
    ),
  };
}
