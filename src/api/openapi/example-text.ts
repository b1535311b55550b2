/** Examples as text. */

/** As JSON for people; of a stream one line for each member. */
export function exampleText(example: unknown, isLines: boolean): string {
  if (isLines && Array.isArray(example)) {
    return example.map((line) => `${JSON.stringify(line)}\n`).join('');
  }
  return JSON.stringify(example, undefined, 2);
}
