/** Links of documents, each with the document and the heading that it must lead to. */
import { posix } from 'node:path';

const fenced = /^```.*?^```/gms;
const link = /\]\(([^)\s]+)\)/g;
const heading = /^#{1,6} +(.+)$/gm;

/** Links to files that are not among them, or to headings that the file does not have. */
export function deadLinks(
  documents: ReadonlyMap<string, string>,
  files: ReadonlySet<string>,
): string[] {
  const anchors = new Map<string, ReadonlySet<string>>();
  for (const [path, text] of documents) anchors.set(path, anchorsOf(text));
  const folders = new Set([...files].flatMap(foldersAbove));
  return [...documents].flatMap(([path, text]) => {
    const targets = [...text.replace(fenced, '').matchAll(link)].map(([, target = '']) => target);
    return targets
      .filter((target) => !/^[a-z]+:/.test(target))
      .filter((target) => {
        const [file = '', anchor] = target.split('#');
        const place = file === '' ? path : posix.join(posix.dirname(path), file);
        if (!files.has(place) && !folders.has(place.replace(/\/$/, ''))) return true;
        return anchor !== undefined && !anchors.get(place)?.has(anchor);
      })
      .map((target) => `${path} links to ${target}`);
  });
}

function foldersAbove(path: string): string[] {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, at) => parts.slice(0, at + 1).join('/'));
}

/** As GitHub makes them: lower case, without punctuation, hyphens for spaces. */
function anchorsOf(text: string): ReadonlySet<string> {
  const names = [...text.replace(fenced, '').matchAll(heading)].map(([, title = '']) =>
    title
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
  return new Set(names);
}
