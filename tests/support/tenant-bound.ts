/** Whether a statement stays within a tenant: each table that it reads or writes is held to one. */

export interface Unbound {
  readonly table: string;
  /** Without quotes, in lower case. */
  readonly query: string;
}

/**
 * The queries that take rows of a table without saying whose. Each query within a statement is looked at by
 * itself; a join counts when the table's tenant is compared, if only with that of another table.
 */
export function unboundQueries(statement: string, tables: readonly string[]): Unbound[] {
  const plain = statement.replaceAll('"', '').replace(/\s+/g, ' ').toLowerCase();
  return queriesIn(plain).flatMap((query) =>
    unboundIn(query, tables).map((table) => ({ table, query: query.trim() })),
  );
}

/** A statement apart from the queries in its brackets, and those; a union is as many as it joins. */
function queriesIn(statement: string): string[] {
  const open: string[] = [''];
  const found: string[] = [];
  const plainBrackets: boolean[] = [];
  for (const [at, character] of [...statement].entries()) {
    if (character === '(') {
      const isQuery = /^\(\s*(?:select|insert|update|delete|with)\b/.test(statement.slice(at));
      plainBrackets.push(!isQuery);
      if (isQuery) open.push('');
      else open.push(`${open.pop()}(`);
    } else if (character === ')') {
      if (plainBrackets.pop() === false) found.push(open.pop() ?? '');
      open.push(`${open.pop()})`);
    } else {
      open.push(`${open.pop()}${character}`);
    }
  }
  return [...found, ...open].flatMap((query) => query.split(/\bunion(?: all)?\b|;/));
}

function unboundIn(query: string, tables: readonly string[]): string[] {
  const references = [...query.matchAll(reference)].filter(([, , table = '']) =>
    tables.includes(table),
  );
  return references
    .filter(([, verb, table = '', alias]) => {
      if (verb === 'into') return !columnsOf(query, table).includes('tenant_id');
      const name = alias === undefined || notAnAlias.has(alias) ? table : alias;
      const own = new RegExp(`\\b${name}\\.tenant_id${compared}|= ${name}\\.tenant_id\\b`);
      const condition = /\b(?:where|on)\b.*/.exec(query)?.[0] ?? '';
      return !own.test(condition) && !(references.length === 1 && bare.test(condition));
    })
    .map(([, , table = '']) => table);
}

const reference = /\b(from|join|into|update)\s+(\w+)(?:\s+(?:as\s+)?(\w+))?/g;
const compared = '(?: = | in )';
const bare = new RegExp(`(?<![.\\w])tenant_id${compared}`);
const notAnAlias = new Set(
  'where set on inner left cross join order group limit using select values as default'.split(' '),
);

function columnsOf(query: string, table: string): string[] {
  const list = new RegExp(`\\binto ${table} (?:as \\w+ )?\\(([^)]*)\\)`).exec(query)?.[1] ?? '';
  return list.split(',').map((column) => column.trim());
}
