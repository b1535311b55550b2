/** What all operations have in common, from the facts that the vault states about itself. */
import type { JSX } from 'preact';
import { CodeBlock } from './code-block.tsx';
import type { Description, Facts, TokenTypeFacts } from './document.ts';
import { Fields } from './fields.tsx';
import { Method, ProblemText } from './operation.tsx';
import { type Chapter, chapters, tagAnchor } from './place.ts';
import { useSettings } from './settings.ts';
import { Inline, Prose } from './text.tsx';

interface ChapterProps {
  readonly description: Description;
}

export function ChapterPage({
  chapter,
  description,
}: ChapterProps & { readonly chapter: Chapter }): JSX.Element {
  const Content = contents[chapter];
  return (
    <article class="chapter">
      <h1>{chapters[chapter]}</h1>
      <Content description={description} />
    </article>
  );
}

const contents: Readonly<Record<Chapter, (props: ChapterProps) => JSX.Element>> = {
  introduction: Introduction,
  authentication: Authentication,
  requests: Requests,
  errors: Problems,
  limits: Limits,
  types: TokenTypes,
  expressions: Expressions,
};

function Introduction({ description }: ChapterProps): JSX.Element {
  const { url, keyHeader, isServed } = useSettings();
  const { info, tags } = description;
  return (
    <>
      <Prose text={info.description} />
      <p class="soft">
        Version {info.version}.{' '}
        <a href={isServed ? '/openapi.json' : 'openapi.json'}>OpenAPI document</a>
      </p>
      <CodeBlock
        label="Address and key"
        text={`export STRONGROOM_URL=${url}\nexport STRONGROOM_KEY=key_test_pvt_…\n\ncurl "$STRONGROOM_URL/applications/key" -H "${keyHeader}: $STRONGROOM_KEY"`}
      />
      <h2>Resources</h2>
      <ul class="cards">
        {tags.map(({ name, description: meaning }) => (
          <li>
            <a href={`#${tagAnchor(name)}`}>{name}</a>
            <p>
              <Inline text={firstSentence(meaning)} />
            </p>
          </li>
        ))}
      </ul>
    </>
  );
}

function firstSentence(text: string): string {
  return /^.*?[.:](?=\s|$)/s.exec(text)?.[0].replace(/:$/, '.') ?? text;
}

function Authentication({ description }: ChapterProps): JSX.Element {
  const { keyHeader } = useSettings();
  const { keyKinds, permissions } = description['x-reference'];
  return (
    <>
      <Prose
        text={`Send the key of an application in the header \`${keyHeader}\`. A missing, unknown, or deleted key gets [401](#problem-unauthenticated).`}
      />
      <h2>Kinds of keys</h2>
      <Table
        label="Kinds of keys"
        head={['Kind', 'Use it for']}
        rows={Object.entries(keyKinds).map(([kind, use]) => [
          <code>{kind}</code>,
          <Inline text={use} />,
        ])}
      />
      <h2>Permissions</h2>
      <Prose text="An application holds permissions on their own, or in access rules that name containers of tokens and a transform. Without a rule, the transform in the last column applies." />
      <Table
        label="Permissions"
        head={['Permission', 'Lets a caller', 'Keys', 'Transform']}
        rows={permissions.map(({ name, description: meaning, kinds, transform }) => [
          <code id={`permission-${name}`}>{name}</code>,
          <Inline text={meaning} />,
          kinds.join(', '),
          transform,
        ])}
      />
    </>
  );
}

function Requests({ description }: ChapterProps): JSX.Element {
  const { IdempotencyKey, IfMatch, TraceId } = description.components.parameters;
  return (
    <>
      <Prose
        text={
          'Bodies are JSON in UTF-8. `PATCH` takes a JSON merge patch (RFC 7396) of the media type `application/merge-patch+json`. ' +
          'Unknown attributes are refused, so that a misspelled one is never ignored. Dates are ISO 8601 with an offset. A slash at the end of a path changes nothing.'
        }
      />
      <h2>Headers</h2>
      <Table
        label="Headers of every request"
        head={['Header', 'Meaning']}
        rows={[IdempotencyKey, IfMatch, TraceId].flatMap((one) =>
          one ? [[<code>{one.name}</code>, <Inline text={one.description} />]] : [],
        )}
      />
      <h2>Pages</h2>
      <Prose
        text={
          'Lists are newest first. To read all of a list, send `pagination.next` of each response as `start` of the next request, until it is absent. ' +
          'Every item that exists during the whole time then comes exactly once. To read one page by its number, send `page`; a page past the end is empty.'
        }
      />
    </>
  );
}

function Problems({ description }: ChapterProps): JSX.Element {
  return (
    <>
      <Prose
        text={
          'Every failure is a problem document (RFC 9457) of the media type `application/problem+json`. Programs read its `type`, people read its `detail`, ' +
          'and `errors` has messages for each attribute. It never contains a value that you sent or stored.'
        }
      />
      {Object.entries(description['x-reference'].problems).map(([code, problem]) => (
        <section class="entry" id={`problem-${code}`}>
          <h2>
            <span class="status bad">{problem.status}</span> <code>{code}</code>
          </h2>
          <ProblemText cause={problem.cause} cure={problem.cure} />
        </section>
      ))}
    </>
  );
}

function Limits({ description }: ChapterProps): JSX.Element {
  const { limits, quotas, settings } = description['x-reference'];
  return (
    <>
      <h2>Limits</h2>
      <Table
        label="Limits"
        head={['What', 'At most']}
        rows={limits.map(({ name, most }) => [name, most.toLocaleString('en')])}
      />
      <h2>Quotas</h2>
      <Prose text="The operator sets quotas for each tenant with `strongroom tenant quota`." />
      <Table
        label="Quotas"
        head={['Quota', 'Meaning', 'Default', 'From', 'To']}
        rows={quotas.map(({ name, meaning, default: normal, min, max }) => [
          <code id={`quota-${name}`}>{name}</code>,
          <Inline text={meaning} />,
          normal,
          min,
          max,
        ])}
      />
      <h2>Settings</h2>
      <Prose text="A management key changes settings with [PUT /tenants/self](#updateTenant). Their values are strings." />
      <Table
        label="Settings"
        head={['Setting', 'Default']}
        rows={settings.map(({ name, default: normal }) => [
          <code id={`setting-${name}`}>{name}</code>,
          normal === '' ? 'empty' : <code>{normal}</code>,
        ])}
      />
    </>
  );
}

function TokenTypes({ description }: ChapterProps): JSX.Element {
  return (
    <>
      <Prose text="The type of a token says which data it holds, and what applies where a request says nothing else. A type without a mask shows nothing to a caller whose transform is `mask`." />
      {description['x-reference'].tokenTypes.map((type) => (
        <TokenType type={type} description={description} />
      ))}
    </>
  );
}

function TokenType({
  type,
  description,
}: ChapterProps & { readonly type: TokenTypeFacts }): JSX.Element {
  const { name, schema, container, mask, fingerprint, searchIndexes, code, summary, example } =
    type;
  const rows: [string, JSX.Element | string][] = [
    ['Container', <code>{container}</code>],
    ['Mask', mask === undefined ? 'none' : <code>{JSON.stringify(mask)}</code>],
    ['Fingerprint', <code>{fingerprint}</code>],
    [
      'Search indexes',
      searchIndexes.length === 0
        ? 'none'
        : (searchIndexes.map((one) => <code>{one}</code>)[0] ?? ''),
    ],
  ];
  return (
    <section class="entry" id={`type-${name}`}>
      <h2>
        <code>{name}</code>
      </h2>
      <Fields schema={schema} description={description} />
      <Table label={`Defaults of ${name}`} head={['Default', 'Value']} rows={rows} />
      {code !== undefined && (
        <Prose
          text={`\`${code}\` is deleted when the quota [cvc_retention](#quota-cvc_retention) has passed.`}
        />
      )}
      {summary !== undefined && <Prose text={`The token shows \`${summary}\` in the clear.`} />}
      <CodeBlock
        label={`A token of the type ${name}`}
        text={JSON.stringify({ type: name, data: example }, null, 2)}
      />
    </section>
  );
}

function Expressions({ description }: ChapterProps): JSX.Element {
  const { filters } = description['x-reference'];
  return (
    <>
      <Prose
        text={
          'An expression is a string with `{{ … }}` in it. It picks a value, changes it with filters, and returns the result. A string that is exactly one `{{ … }}` returns ' +
          'the value with its type, and any other string returns a string. The language is Liquid with the filters below. Masks, search indexes, fingerprints, ids, and ' +
          'bodies of detokenize consist of expressions.'
        }
      />
      <Filters
        title="Filters of Strongroom"
        filters={filters.filter(({ isStandard }) => !isStandard)}
      />
      <Filters title="Filters of Liquid" filters={filters.filter(({ isStandard }) => isStandard)} />
    </>
  );
}

function Filters({
  title,
  filters,
}: {
  readonly title: string;
  readonly filters: Facts['filters'];
}): JSX.Element {
  return (
    <>
      <h2>{title}</h2>
      {filters.map(({ name, meaning, arguments: given, examples }) => (
        <section class="entry" id={`filter-${name}`}>
          <h3>
            <code>{name}</code>
          </h3>
          <Prose text={meaning} />
          {given.length > 0 && (
            <Table
              label={`Arguments of ${name}`}
              head={['Argument', 'Must be', 'Default']}
              rows={given.map((one) => [
                <code>{one.name}</code>,
                <Inline text={one.form} />,
                one.fallback === undefined ? (
                  'required'
                ) : (
                  <code>{JSON.stringify(one.fallback)}</code>
                ),
              ])}
            />
          )}
          {examples.length > 0 && (
            <Table
              label={`Examples of ${name}`}
              head={['Data', 'Expression', 'Result']}
              rows={examples.map(({ data, expression, outcome }) => [
                <code>{JSON.stringify(data)}</code>,
                <code>{expression}</code>,
                <Inline text={outcome} />,
              ])}
            />
          )}
        </section>
      ))}
    </>
  );
}

interface TableProps {
  readonly label: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly (JSX.Element | string)[])[];
}

function Table({ label, head, rows }: TableProps): JSX.Element {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section class="table" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {head.map((one) => (
              <th scope="col">{one}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              {row.map((cell) => (
                <td>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** A resource and its operations. */
export function TagPage({
  name,
  meaning,
  operations,
}: {
  readonly name: string;
  readonly meaning: string;
  readonly operations: readonly {
    operationId: string;
    method: string;
    path: string;
    summary: string;
  }[];
}): JSX.Element {
  return (
    <article class="chapter">
      <h1>{name}</h1>
      <Prose text={meaning} />
      <ul class="endpoints">
        {operations.map(({ operationId, method, path, summary }) => (
          <li>
            <a href={`#${operationId}`}>{summary}</a>
            <span class="path">
              <Method method={method} /> <code>{path}</code>
            </span>
          </li>
        ))}
      </ul>
    </article>
  );
}
