/** The entry point: reads the description of the vault that serves the page, and shows it. */
import { render } from 'preact';
import { App } from './app.tsx';
import type { Description } from './document.ts';

const root = document.getElementById('reference');
if (root) {
  // Of the page in a folder of documents, a file beside it.
  const source = root.dataset['document'] ?? '/openapi.json';
  const isServed = source === '/openapi.json';
  const url = isServed ? location.origin : 'http://127.0.0.1:8080';
  fetch(source)
    .then(async (response) => {
      if (!response.ok) throw new Error(`status ${response.status}`);
      const description = (await response.json()) as Description;
      root.replaceChildren();
      render(<App description={description} url={url} isServed={isServed} />, root);
    })
    .catch(() => {
      root.textContent =
        'The description of the API could not be read. Reload the page to try again.';
    });
}
