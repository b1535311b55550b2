/** As much of the OpenAPI document as the reference reads, and how its references are followed. */

export interface Description {
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly tags: readonly Tag[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
    readonly responses: Readonly<Record<string, Response>>;
    readonly securitySchemes: { readonly key: { readonly name: string } };
  };
  readonly 'x-reference': Facts;
}

export interface Tag {
  readonly name: string;
  readonly description: string;
}

export interface DescribedOperation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly deprecated?: boolean;
  readonly security?: readonly object[];
  readonly parameters?: readonly (Parameter | Reference)[];
  readonly requestBody?: {
    readonly required?: boolean;
    readonly description: string;
    readonly content: MediaContents;
  };
  readonly responses: Readonly<Record<string, Response | Reference>>;
  readonly 'x-permission'?: string;
  readonly 'x-key-kinds'?: readonly string[];
  readonly 'x-problems'?: readonly string[];
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly description: string;
  readonly schema: Schema;
  readonly example?: unknown;
}

export interface Response {
  readonly description: string;
  readonly content?: MediaContents;
}

export type MediaContents = Readonly<Record<string, Content>>;

export interface Content {
  readonly schema: Schema;
  readonly example?: unknown;
}

export interface Reference {
  readonly $ref: string;
}

/** A JSON schema: the keywords that the vault uses. */
export interface Schema {
  readonly $ref?: string;
  readonly title?: string;
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly pattern?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly contentSchema?: Schema;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly default?: unknown;
}

/** What the vault says about itself beside its operations (`x-reference`). */
export interface Facts {
  readonly problems: Readonly<Record<string, ProblemFacts>>;
  readonly permissions: readonly PermissionFacts[];
  readonly keyKinds: Readonly<Record<string, string>>;
  readonly limits: readonly { readonly name: string; readonly most: number }[];
  readonly quotas: readonly QuotaFacts[];
  readonly settings: readonly { readonly name: string; readonly default: string }[];
  readonly tokenTypes: readonly TokenTypeFacts[];
  readonly filters: readonly FilterFacts[];
}

export interface ProblemFacts {
  readonly status: number;
  readonly title: string;
  readonly cause: string;
  readonly cure: string;
}

interface PermissionFacts {
  readonly name: string;
  readonly description: string;
  readonly kinds: readonly string[];
  readonly transform: string;
}

interface QuotaFacts {
  readonly name: string;
  readonly meaning: string;
  readonly default: string;
  readonly min: string;
  readonly max: string;
}

export interface TokenTypeFacts {
  readonly name: string;
  readonly schema: Schema;
  readonly container: string;
  readonly mask?: unknown;
  readonly fingerprint: string;
  readonly searchIndexes: readonly string[];
  /** The attribute that is deleted after the quota `cvc_retention`. */
  readonly code?: string;
  /** The attribute of the token that shows a summary of the data. */
  readonly summary?: string;
  readonly example?: unknown;
}

export interface FilterFacts {
  readonly name: string;
  readonly meaning: string;
  readonly isStandard: boolean;
  readonly arguments: readonly {
    readonly name: string;
    readonly form: string;
    readonly fallback?: unknown;
  }[];
  readonly examples: readonly FilterExample[];
}

export interface FilterExample {
  readonly data: unknown;
  readonly expression: string;
  readonly outcome: string;
}

/** An operation with its path and method, and everything it refers to in place. */
export interface Operation extends DescribedOperation {
  readonly path: string;
  readonly method: string;
  readonly tag: string;
  readonly parametersInPlace: readonly Parameter[];
  readonly needsKey: boolean;
}

/** In the order of the document's tags. */
export function operationsOf(description: Description): readonly Operation[] {
  const all = Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, operation]): Operation => ({
        ...operation,
        path,
        method: method.toUpperCase(),
        tag: operation.tags[0] ?? '',
        needsKey: operation.security?.length !== 0,
        parametersInPlace: (operation.parameters ?? []).map((one) =>
          '$ref' in one ? parameterAt(description, one) : one,
        ),
      }),
    ),
  );
  return description.tags.flatMap(({ name }) => all.filter(({ tag }) => tag === name));
}

function parameterAt({ components }: Description, { $ref }: Reference): Parameter {
  return components.parameters[nameIn($ref)] as Parameter;
}

/** `Token` of `#/components/schemas/Token`. */
export function nameIn(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1);
}

/** The media type of a body and what it holds; the first where there are several. */
export function contentOf(contents: MediaContents | undefined): [string, Content] | undefined {
  return Object.entries(contents ?? {})[0];
}

/** The response of success that has a body, or the first. */
export function successOf(operation: Operation): [string, Response] | undefined {
  const successes = Object.entries(operation.responses).filter(
    (one): one is [string, Response] => one[0].startsWith('2') && !('$ref' in one[1]),
  );
  return successes.find(([, { content }]) => content) ?? successes[0];
}
