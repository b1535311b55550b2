/**
 * Prints what Strongroom guarantees and which test fails when a guarantee is broken: the first comment of each test file,
 * as a Markdown table for each folder of tests.
 */
import { guaranteesOf } from '../tests/support/guarantees.ts';
import { committedPaths, readSource } from '../tests/support/source.ts';

const files = committedPaths().filter((path) => /^tests\/.*\.test\.ts$/.test(path));
const byFolder = Map.groupBy(guaranteesOf(files.map(readSource)), ({ path }) =>
  path.slice(0, path.lastIndexOf('/')),
);
for (const [folder, guarantees] of byFolder) {
  const rows = guarantees.map(
    ({ path, guarantee }) => `| ${guarantee.replaceAll('|', '\\|')} | \`${path}\` |`,
  );
  process.stdout.write(
    `${[`## ${folder}`, '', '| Guarantee | Test |', '|---|---|', ...rows, ''].join('\n')}\n`,
  );
}
