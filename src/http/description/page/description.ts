/** Both forms of the description: the OpenAPI document, and the page that is made from it. */
import { type OpenapiOptions, openapiOf } from '../openapi.ts';
import { operationsOf } from '../operation.ts';
import { docsPage } from './page.ts';
import { contentSecurityPolicy } from './style.ts';

export interface Description {
  readonly document: object;
  page(): Page;
}

interface Page {
  readonly html: string;
  readonly contentSecurityPolicy: string;
}

export function createDescription(options: OpenapiOptions): Description {
  const document = openapiOf(options);
  let html: string | undefined;
  return {
    document,
    page: () => {
      html ??= docsPage({ document, operations: operationsOf(options.routes) });
      return { html, contentSecurityPolicy };
    },
  };
}
