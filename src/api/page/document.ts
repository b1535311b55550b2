/** As much of the OpenAPI document as the page reads. */
import type { Schema } from '../openapi/components.ts';

export interface Document {
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly parameters: Readonly<Record<string, DocumentParameter>>;
    readonly headers: Readonly<Record<string, Schema>>;
    readonly securitySchemes: { readonly key: { readonly name: string } };
  };
}

export interface DescribedOperation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly deprecated?: boolean;
  readonly parameters?: readonly (DocumentParameter | DocumentReference)[];
  readonly requestBody?: { readonly description: string; readonly content: MediaContents };
  readonly responses: Readonly<Record<string, DocumentResponse | DocumentReference>>;
}

export interface DocumentParameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description: string;
  readonly schema: Schema;
}

export interface DocumentResponse {
  readonly description: string;
  readonly content?: MediaContents;
}

export type MediaContents = Readonly<Record<string, { readonly schema: Schema }>>;

export interface DocumentReference {
  readonly $ref: string;
}

export function isReference(value: object): value is DocumentReference {
  return '$ref' in value;
}
