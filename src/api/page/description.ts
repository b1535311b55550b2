/** Describes the service in both forms. The page is generated on the first request for it. */
import { openapiOf } from '../openapi/openapi.ts';
import { publishedIn } from '../openapi/published-operation.ts';
import type { DescribedApi, Description } from '../service.ts';
import { docsPage } from './page.ts';
import { contentSecurityPolicy } from './style.ts';

export function createDescription(api: DescribedApi): Description {
  const document = openapiOf(api);
  let html: string | undefined;
  return {
    document,
    page: () => {
      html ??= docsPage({ document, operations: publishedIn(api.sections) });
      return { html, contentSecurityPolicy };
    },
  };
}
