/** An operation: what it takes and returns in the middle, and how to call it on the side. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { CodeBlock } from './code-block.tsx';
import {
  contentOf,
  type Description,
  type Operation,
  type Parameter,
  successOf,
} from './document.ts';
import { FieldHead, Fields, Meaning, typeOf } from './fields.tsx';
import { type Entered, optionalHeaders, requestOf } from './samples/request.ts';
import { type Language, languages } from './samples/samples.ts';
import { useSettings, withOwnIds } from './settings.ts';
import { Inline, Prose } from './text.tsx';
import { TryIt } from './try-it.tsx';

interface OperationProps {
  readonly operation: Operation;
  readonly description: Description;
}

export function OperationPage({ operation, description }: OperationProps): JSX.Element {
  return (
    <article class="operation">
      <div class="explained">
        <p class="eyebrow">{operation.tag}</p>
        <h1>
          {operation.summary}
          {operation.deprecated && <span class="badge">deprecated</span>}
        </h1>
        <p class="path">
          <Method method={operation.method} /> <code>{operation.path}</code>
        </p>
        <Prose text={operation.description.replace(accessSentence, '')} />
        <Access operation={operation} />
        <Parameters operation={operation} description={description} place="path" />
        <Parameters operation={operation} description={description} place="query" />
        <Body operation={operation} description={description} />
        <Parameters operation={operation} description={description} place="header" />
        <Returned operation={operation} description={description} />
        <Errors operation={operation} description={description} />
      </div>
      <Aside operation={operation} key={operation.operationId} />
    </article>
  );
}

/** The list of keys and permissions says the same. */
const accessSentence = /\n*(?:Needs the permission `[\w:]+`|For any valid key|Needs no key)\.$/;

export function Method({ method }: { readonly method: string }): JSX.Element {
  return <span class={`method ${method.toLowerCase()}`}>{method}</span>;
}

function Access({ operation }: { readonly operation: Operation }): JSX.Element | null {
  const kinds = operation['x-key-kinds'];
  if (!kinds) return null;
  const permission = operation['x-permission'];
  return (
    <dl class="access">
      <div>
        <dt>Keys</dt>
        <dd>{kinds.join(', ')}</dd>
      </div>
      {permission?.includes(':') && (
        <div>
          <dt>Permission</dt>
          <dd>
            <a href={`#permission-${permission}`}>
              <code>{permission}</code>
            </a>
          </dd>
        </div>
      )}
    </dl>
  );
}

const places = { path: 'Path', query: 'Query', header: 'Headers' } as const;

function Parameters({
  operation,
  description,
  place,
}: OperationProps & { readonly place: Parameter['in'] }): JSX.Element | null {
  const own = operation.parametersInPlace.filter((one) => one.in === place);
  if (own.length === 0) return null;
  const fields = (
    <ul class="fields">
      {own.map(({ name, required, schema, description: meaning }) => (
        <li class="field">
          <FieldHead
            name={name}
            type={typeOf(schema, { description, within: [] })}
            isRequired={required ?? false}
          />
          <Meaning schema={{ ...schema, description: meaning }} />
        </li>
      ))}
    </ul>
  );
  const isCommon = own.every(({ name }) => optionalHeaders.test(name));
  return (
    <section>
      <h2>{places[place]}</h2>
      {isCommon ? (
        <details class="nested">
          <summary>Optional: {own.map(({ name }) => name).join(', ')}</summary>
          {fields}
        </details>
      ) : (
        fields
      )}
    </section>
  );
}

function Body({ operation, description }: OperationProps): JSX.Element | null {
  const { requestBody } = operation;
  const content = contentOf(requestBody?.content);
  if (!requestBody || !content) return null;
  const [mediaType, { schema, example }] = content;
  return (
    <section>
      <h2>
        Body <span class="media">{mediaType === '*/*' ? 'any type' : mediaType}</span>
      </h2>
      <p class="soft">
        <Inline text={requestBody.description} />
      </p>
      {Object.keys(schema).length > 0 && (
        <Fields schema={schema} description={description} example={example} />
      )}
    </section>
  );
}

function Returned({ operation, description }: OperationProps): JSX.Element | null {
  const success = successOf(operation);
  if (!success) return null;
  const [status, response] = success;
  const content = contentOf(response.content);
  return (
    <section>
      <h2>
        Returns <span class="status good">{status}</span>{' '}
        {content && <span class="media">{content[0]}</span>}
      </h2>
      {response.description !== 'Done.' && (
        <p class="soft">
          <Inline text={response.description} />
        </p>
      )}
      {content && <Fields schema={content[1].schema} description={description} />}
    </section>
  );
}

function Errors({ operation, description }: OperationProps): JSX.Element | null {
  const codes = operation['x-problems'] ?? [];
  const facts = description['x-reference'].problems;
  const own = Object.entries(operation.responses).filter(
    ([status, one]) => !('$ref' in one) && Number(status) >= 400,
  );
  if (codes.length === 0 && own.length === 0) return null;
  return (
    <section id={`${operation.operationId}/errors`}>
      <h2>Errors</h2>
      <ul class="errors">
        {own.map(([status, response]) => (
          <li class="error">
            <span class="status bad">{status}</span>{' '}
            {'description' in response && response.description}
          </li>
        ))}
        {codes.map((code) => {
          const problem = facts[code];
          return (
            problem && (
              <li>
                <details class="error">
                  <summary>
                    <span class="status bad">{problem.status}</span> <code>{code}</code>
                  </summary>
                  <ProblemText cause={problem.cause} cure={problem.cure} />
                </details>
              </li>
            )
          );
        })}
      </ul>
    </section>
  );
}

export function ProblemText(problem: {
  readonly cause: string;
  readonly cure: string;
}): JSX.Element {
  return (
    <>
      <p>
        <Inline text={problem.cause} />
      </p>
      <p>
        <strong>What to do:</strong> <Inline text={problem.cure} />
      </p>
    </>
  );
}

function Aside({ operation }: { readonly operation: Operation }): JSX.Element {
  const access = useSettings();
  const { settings, url, keyHeader, isServed } = access;
  const [entered, setEntered] = useState<Entered>({});
  const [isTrying, setIsTrying] = useState(false);
  const request = ownRequest(operation, entered, settings.ids);
  const key = settings.key === '' ? undefined : settings.key;
  const text = languages[settings.language].of(request, { url, keyHeader, key });
  const success = successOf(operation);
  const example = contentOf(success?.[1].content)?.[1].example;
  const response =
    example === undefined
      ? undefined
      : withOwnIds(
          typeof example === 'string' ? example : JSON.stringify(example, null, 2),
          settings.ids,
        );
  return (
    <aside class="samples" aria-label="Example">
      <CodeBlock
        label={`${languages[settings.language].label} example`}
        text={text}
        head={<Languages />}
      />
      <OwnValues operation={operation} />
      {isServed && (
        <button
          type="button"
          class="try-toggle"
          aria-expanded={isTrying}
          onClick={() => setIsTrying(!isTrying)}
        >
          {isTrying ? 'Close' : 'Try it'}
        </button>
      )}
      {isTrying && (
        <TryIt operation={operation} request={request} entered={entered} onEnter={setEntered} />
      )}
      {response !== undefined && success && (
        <CodeBlock label={`Response ${success[0]}`} text={response} />
      )}
    </aside>
  );
}

/** The request with the reader's ids in its parameters and its body. */
function ownRequest(operation: Operation, entered: Entered, ids: Readonly<Record<string, string>>) {
  const examples = operation.parametersInPlace.flatMap(({ name, example }) =>
    typeof example === 'string' && ids[example] ? [[name, ids[example]] as const] : [],
  );
  const plain = requestOf(operation);
  const body = entered.body ?? (plain.text === undefined ? undefined : withOwnIds(plain.text, ids));
  return requestOf(operation, {
    parameters: { ...Object.fromEntries(examples), ...entered.parameters },
    ...(body !== undefined && { body }),
  });
}

function Languages(): JSX.Element {
  const { settings, change } = useSettings();
  return (
    <fieldset class="languages">
      <legend class="hidden">Language of the examples</legend>
      {Object.entries(languages).map(([name, { label }]) => (
        <label class={name === settings.language ? 'chosen' : ''}>
          <input
            type="radio"
            name="language"
            value={name}
            checked={name === settings.language}
            onChange={() => change({ language: name as Language })}
          />
          {label}
        </label>
      ))}
    </fieldset>
  );
}

/** Inputs for the key and for the ids in the path of this operation. */
function OwnValues({ operation }: { readonly operation: Operation }): JSX.Element {
  const { settings, change } = useSettings();
  const ids = operation.parametersInPlace.filter(
    ({ in: place, example }) => place === 'path' && typeof example === 'string',
  );
  return (
    <details class="own" open={settings.key !== ''}>
      <summary>Use your own key{ids.length > 0 ? ' and ids' : ''}</summary>
      <label class="input">
        <span>API key</span>
        <input
          class="secret"
          value={settings.key}
          autocomplete="off"
          spellcheck={false}
          placeholder="key_test_…"
          onInput={({ currentTarget }) => change({ key: currentTarget.value.trim() })}
        />
      </label>
      {ids.map(({ name, example }) => (
        <label class="input">
          <span>
            <code>{name}</code>
          </span>
          <input
            value={settings.ids[example as string] ?? ''}
            autocomplete="off"
            spellcheck={false}
            placeholder={example as string}
            onInput={({ currentTarget }) =>
              change({ ids: { ...settings.ids, [example as string]: currentTarget.value.trim() } })
            }
          />
        </label>
      ))}
      <p class="soft">They stay in the memory of this page, and go when you close or reload it.</p>
    </details>
  );
}

/** Moves to a part of the page that was just shown. */
export function useScroll(part: string | undefined, dependency: unknown): void {
  useEffect(() => {
    const target = part === undefined ? undefined : document.getElementById(part);
    if (target) target.scrollIntoView();
    else scrollTo(0, 0);
  }, [part, dependency]);
}
