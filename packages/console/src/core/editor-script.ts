/** Loads the script of the editor, once and where code is edited: it is larger than the rest of the console. */
import type { openEditor } from '../editor/editor.ts';

interface EditorModule {
  readonly openEditor: typeof openEditor;
}

interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { readonly createScriptURL: (url: string) => string },
  ): { createScriptURL(url: string): string };
}

declare global {
  var strongroomEditor: EditorModule | undefined;
  var trustedTypes: TrustedTypes | undefined;
}

let loading: Promise<EditorModule> | undefined;

/** Where it is and what it must contain, as the page says. */
function placeOfEditor(): { readonly path: string; readonly integrity: string } {
  const meta = document.querySelector<HTMLMetaElement>('meta[name=strongroom-editor]');
  const [path = '', integrity = ''] = meta?.content.split(' ') ?? [];
  return { path, integrity };
}

export function loadEditor(): Promise<EditorModule> {
  loading ??= load().catch((error: unknown) => {
    loading = undefined;
    throw error;
  });
  return loading;
}

function load(): Promise<EditorModule> {
  const { path, integrity } = placeOfEditor();
  const policy = globalThis.trustedTypes?.createPolicy('strongroom-editor', {
    createScriptURL: (url) => {
      if (url === path) return url;
      throw new TypeError('The console loads no other script.');
    },
  });
  const script = document.createElement('script');
  script.src = policy ? policy.createScriptURL(path) : path;
  script.integrity = integrity;
  script.crossOrigin = 'anonymous';
  return new Promise((resolve, reject) => {
    script.onload = () => {
      if (globalThis.strongroomEditor) resolve(globalThis.strongroomEditor);
      else reject(new Error('The editor did not start.'));
    };
    script.onerror = () => reject(new Error('The editor could not be loaded.'));
    document.head.append(script);
  });
}
