/** Sends the request of an operation to the vault that serves this page, and shows the response. */
import type { JSX } from 'preact';
import { useId, useState } from 'preact/hooks';
import { CodeBlock } from './code-block.tsx';
import type { Operation } from './document.ts';
import type { Entered, SampleRequest } from './samples/request.ts';
import { useSettings } from './settings.ts';

interface TryItProps {
  readonly operation: Operation;
  readonly request: SampleRequest;
  readonly entered: Entered;
  readonly onEnter: (entered: Entered) => void;
}

interface Outcome {
  readonly status: string;
  readonly isSuccess: boolean;
  readonly text: string;
}

/** A response of which more is not worth showing. */
const shownCharactersMax = 100_000;

export function TryIt({ operation, request, entered, onEnter }: TryItProps): JSX.Element {
  const { settings, url, keyHeader } = useSettings();
  const [outcome, setOutcome] = useState<Outcome | 'pending' | undefined>();
  const bodyId = useId();
  const send = async () => {
    setOutcome('pending');
    setOutcome(await sent(request, { url, keyHeader, key: settings.key }));
  };
  const needs =
    operation.needsKey && settings.key === '' ? 'Enter your key above first.' : undefined;
  return (
    <section class="try" aria-label="Try it">
      {operation.parametersInPlace.map(({ name, in: place, required, example }) => (
        <label class="input">
          <span>
            <code>{name}</code>{' '}
            <span class="soft">
              {place}
              {required ? ', required' : ''}
            </span>
          </span>
          <input
            value={entered.parameters?.[name] ?? (place === 'header' ? '' : String(example ?? ''))}
            autocomplete="off"
            spellcheck={false}
            onInput={({ currentTarget }) =>
              onEnter({
                ...entered,
                parameters: { ...entered.parameters, [name]: currentTarget.value },
              })
            }
          />
        </label>
      ))}
      {request.text !== undefined && (
        <label class="input" for={bodyId}>
          <span>Body</span>
          <textarea
            id={bodyId}
            rows={Math.min(18, request.text.split('\n').length + 1)}
            value={request.text}
            spellcheck={false}
            onInput={({ currentTarget }) => onEnter({ ...entered, body: currentTarget.value })}
          />
        </label>
      )}
      <div class="send">
        <button type="button" class="primary" onClick={send} disabled={needs !== undefined}>
          Send request
        </button>
        <span class="soft">
          {needs ??
            (operation.method === 'GET' ? `Sends to ${url}.` : `Sends to ${url} and changes it.`)}
        </span>
      </div>
      <div aria-live="polite">
        {outcome === 'pending' && <p class="soft">Waiting for the response.</p>}
        {typeof outcome === 'object' && (
          <CodeBlock
            label="Response"
            text={outcome.text}
            head={
              <span class={outcome.isSuccess ? 'code-title good' : 'code-title bad'}>
                {outcome.status}
              </span>
            }
          />
        )}
      </div>
    </section>
  );
}

async function sent(
  { method, target, headers, mediaType, text, needsKey }: SampleRequest,
  {
    url,
    keyHeader,
    key,
  }: { readonly url: string; readonly keyHeader: string; readonly key: string },
): Promise<Outcome> {
  const began = performance.now();
  try {
    const response = await fetch(url + target, {
      method,
      headers: {
        ...(needsKey && { [keyHeader]: key }),
        ...Object.fromEntries(headers),
        ...(mediaType !== undefined && { 'Content-Type': mediaType }),
      },
      ...(text !== undefined && { body: text }),
      credentials: 'omit',
      cache: 'no-store',
    });
    const body = await response.text();
    const took = Math.round(performance.now() - began);
    return {
      status: `${response.status} ${response.statusText} in ${took} ms`,
      isSuccess: response.ok,
      text: pretty(body).slice(0, shownCharactersMax) || 'The response has no body.',
    };
  } catch {
    return {
      status: 'No response',
      isSuccess: false,
      text: 'The browser could not reach the vault, or a header has characters that it does not send.',
    };
  }
}

function pretty(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}
