/** Signing in: with the identity provider, by a link, which also adds the first passkey, and by passkeys. */
import { useEffect, useState } from 'preact/hooks';
import { goToProvider } from '../core/provider.ts';
import { hrefOf, place } from '../core/router.ts';
import { refresh, signIn } from '../core/session.ts';
import {
  addPasskey,
  arePasskeysHere,
  usePasskey,
  type Ways,
  waysToSignIn,
} from '../core/sign-in-ways.ts';
import { t } from '../texts.ts';
import { Button, Code, ErrorNote, TextField, useAction } from '../ui/basics.tsx';
import { Logo } from '../ui/icons.tsx';

/** Taken out of the address at once: it works once, and the history of the browser keeps addresses. */
const initialCode = location.hash.slice(1);
if (initialCode !== '') history.replaceState(null, '', location.pathname + location.search);

let isUsed = false;

export function SignIn() {
  const [ways, setWays] = useState<Ways | undefined>(undefined);
  /** Of a link that is to add a passkey. */
  const [code, setCode] = useState<string | undefined>(undefined);
  const { isBusy, error, run } = useAction();
  const use = (given: string, known: Ways | undefined) =>
    run(async () => {
      // The whole link is as good as its code.
      const [, behind = given] = given.trim().split('#', 2);
      if (known?.link === false) setCode(behind.trim());
      else await signIn(behind.trim());
    });
  useEffect(() => {
    document.title = `${t.gate.signIn} · Strongroom`;
    void waysToSignIn().then((found) => {
      setWays(found);
      if (isUsed || initialCode === '') return;
      isUsed = true;
      void use(initialCode, found);
    });
  }, []);
  return (
    <main class="gate">
      <Logo size={40} />
      <h1>{t.gate.title}</h1>
      <ErrorNote error={error} />
      {code === undefined ? (
        <>
          {ways && <ProviderButton ways={ways} isBusy={isBusy} run={run} />}
          {ways && <PasskeyButton ways={ways} isBusy={isBusy} run={run} />}
          <p>{textOf(ways)}</p>
          {ways?.link !== false && <Code text={t.gate.command} />}
          <LinkForm isBusy={isBusy} onCode={(given) => use(given, ways)} />
        </>
      ) : (
        <FirstPasskey
          isHere={ways !== undefined && arePasskeysHere(ways)}
          isBusy={isBusy}
          onName={(name) =>
            run(async () => {
              await addPasskey(name, { code });
              await refresh();
            })
          }
        />
      )}
    </main>
  );
}

function textOf(ways: Ways | undefined): string {
  if (ways?.link !== false) return t.gate.text;
  return ways.oidc === null ? t.gate.textElsewhere : t.provider.otherwise(ways.oidc.name);
}

interface WayProps {
  readonly ways: Ways;
  readonly isBusy: boolean;
  readonly run: (act: () => Promise<void>) => Promise<void>;
}

function ProviderButton({ ways: { oidc }, isBusy, run }: WayProps) {
  if (oidc === null) return null;
  if (oidc.origin !== location.origin) {
    return (
      <p>
        {t.provider.elsewhere(oidc.name)} <a href={`${oidc.origin}/console`}>{oidc.origin}</a>
      </p>
    );
  }
  return (
    <Button
      tone="primary"
      icon="shield"
      isBusy={isBusy}
      onClick={() => void run(() => goToProvider(destination()))}
    >
      {t.provider.signIn(oidc.name)}
    </Button>
  );
}

/** The page at which the person began, and the tenant that its address names. */
function destination() {
  const { path, query } = place.value;
  const { tenant, ...others } = Object.fromEntries(query);
  const page = hrefOf(path, others);
  return { page: page.length <= pageLengthMax ? page : hrefOf('/'), tenant };
}

const pageLengthMax = 400;

function PasskeyButton({ ways, isBusy, run }: WayProps) {
  if (arePasskeysHere(ways)) {
    const signInByPasskey = async () => {
      await usePasskey();
      await refresh();
    };
    return (
      <Button
        tone={ways.oidc === null ? 'primary' : 'plain'}
        icon="passkey"
        isBusy={isBusy}
        onClick={() => void run(signInByPasskey)}
      >
        {t.gate.passkey}
      </Button>
    );
  }
  if (ways.passkey === null) return null;
  return (
    <p>
      {t.gate.passkeysElsewhere}{' '}
      <a href={`${ways.passkey.origin}/console`}>{ways.passkey.origin}</a>
    </p>
  );
}

interface LinkFormProps {
  readonly isBusy: boolean;
  readonly onCode: (code: string) => Promise<void>;
}

function LinkForm({ isBusy, onCode }: LinkFormProps) {
  const [typed, setTyped] = useState('');
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void onCode(typed);
        setTyped('');
      }}
    >
      <label for="link">{t.gate.link}</label>
      <input
        id="link"
        type="password"
        autocomplete="off"
        value={typed}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
      <Button type="submit" isBusy={isBusy} disabled={typed === ''}>
        {t.gate.signIn}
      </Button>
    </form>
  );
}

interface FirstPasskeyProps {
  readonly isHere: boolean;
  readonly isBusy: boolean;
  readonly onName: (name: string) => Promise<void>;
}

function FirstPasskey({ isHere, isBusy, onName }: FirstPasskeyProps) {
  const [name, setName] = useState<string>(t.account.nameGiven);
  if (!isHere) return <p class="note warn">{t.gate.noPasskeys}</p>;
  return (
    <form
      class="column"
      onSubmit={(event) => {
        event.preventDefault();
        void onName(name.trim());
      }}
    >
      <p>{t.gate.firstPasskey}</p>
      <TextField
        label={t.account.name}
        hint={t.account.nameHint}
        value={name}
        onValue={setName}
        maxLength={80}
      />
      <Button
        type="submit"
        tone="primary"
        icon="passkey"
        isBusy={isBusy}
        disabled={name.trim() === ''}
      >
        {t.gate.addPasskey}
      </Button>
    </form>
  );
}
