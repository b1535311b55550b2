/** How deep JSON is nested, found in its bytes before it is parsed. */

const quote = 0x22;
const backslash = 0x5c;
const openList = 0x5b;
const closeList = 0x5d;
const openObject = 0x7b;
const closeObject = 0x7d;

/** True of JSON with more levels than `levelsMax`. Bytes that are not JSON may give either. */
export function isNestedDeeper(bytes: Uint8Array, levelsMax: number): boolean {
  // Each level is opened and closed, so that most bodies are not looked through at all.
  if (bytes.length < 2 * (levelsMax + 1)) return false;
  let level = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === quote) {
      at = endOfText(bytes, at);
    } else if (byte === openList || byte === openObject) {
      level += 1;
      if (level > levelsMax) return true;
    } else if (byte === closeList || byte === closeObject) {
      level -= 1;
    }
  }
  return false;
}

function endOfText(bytes: Uint8Array, begin: number): number {
  let at = begin + 1;
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
  return at;
}
