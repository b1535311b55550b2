/** A request in each language. All of them are whole programs, which tests run as they are. */
import { curlOf } from './curl.ts';
import { goOf } from './go.ts';
import { javaOf } from './java.ts';
import { pythonOf } from './python.ts';
import type { SampleRequest, Target } from './request.ts';
import { typescriptOf } from './typescript.ts';

export const languages = {
  curl: { label: 'curl', of: curlOf },
  typescript: { label: 'TypeScript', of: typescriptOf },
  python: { label: 'Python', of: pythonOf },
  go: { label: 'Go', of: goOf },
  java: { label: 'Java', of: javaOf },
} as const satisfies Record<
  string,
  { readonly label: string; readonly of: (request: SampleRequest, target: Target) => string }
>;

export type Language = keyof typeof languages;
