/** The same as the page does, for a terminal and for programs. */
import { closeDialog, openDialog, subjectOf } from '../core/dialogs.ts';
import { setQuery } from '../core/router.ts';
import { t } from '../texts.ts';
import { Button, Code } from './basics.tsx';
import { Dialog } from './dialog.tsx';

interface Samples {
  readonly curl: string;
  readonly typescript: string;
  /** Absent where no command does the same. */
  readonly cli: string | undefined;
}

export interface RequestSample {
  readonly method?: string;
  /** With its query. */
  readonly path: string;
  readonly body?: unknown;
  /** After `vault.`, such as `tokens.list()`. */
  readonly typescript: string;
  readonly cli?: string;
}

/** Samples never hold a key: they take it from a variable. */
function samplesOf({ method = 'GET', path, body, typescript, cli }: RequestSample): Samples {
  const merge = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
  // An id may have an apostrophe, which would end the argument of the shell.
  const quoted = path.replaceAll("'", '%27');
  const lines = [
    `curl -s ${method === 'GET' ? '' : `-X ${method} `}'${location.origin}${quoted}' \\`,
    `  -H "SVC-API-KEY: $KEY"`,
  ];
  if (body !== undefined) {
    const json = JSON.stringify(body).replaceAll("'", "'\\''");
    lines[1] += ' \\';
    lines.push(`  -H 'Content-Type: ${merge}' \\`, `  -d '${json}'`);
  }
  return {
    curl: lines.join('\n'),
    typescript: [
      "import { Strongroom } from '@strongroom/client';",
      '',
      `const vault = new Strongroom({ url: '${location.origin}', apiKey: process.env.KEY ?? '' });`,
      typescript,
    ].join('\n'),
    cli,
  };
}

const dialogName = 'copy';
const forms = ['curl', 'typescript', 'cli'] as const;

export function CopyAs({ sample }: { sample: RequestSample }) {
  const asked = subjectOf(dialogName);
  const shown = asked === undefined ? undefined : samplesOf(sample);
  const form = forms.find((one) => one === asked && shown?.[one] !== undefined) ?? 'curl';
  return (
    <>
      <Button icon="code" onClick={() => openDialog(dialogName)}>
        {t.copyAs.button}
      </Button>
      {shown && (
        <Dialog title={t.copyAs.title} onClose={() => closeDialog(dialogName)} isWide>
          <div class="dialog-body">
            <div class="tabs" role="tablist">
              {forms
                .filter((one) => shown[one] !== undefined)
                .map((one) => (
                  <button
                    key={one}
                    type="button"
                    role="tab"
                    aria-selected={one === form}
                    onClick={() => setQuery({ of: one })}
                  >
                    {t.copyAs[one]}
                  </button>
                ))}
            </div>
            <Code text={shown[form] ?? ''} />
            <p class="hint">{form === 'cli' ? t.copyAs.cliHint : t.copyAs.hint}</p>
          </div>
        </Dialog>
      )}
    </>
  );
}
