/** The console: who is signed in, and the page of the address. */
import type { ComponentChild } from 'preact';
import { providerReturn } from './core/provider.ts';
import { place } from './core/router.ts';
import { type Session, session, state } from './core/session.ts';
import { AccountPage } from './pages/account.tsx';
import { ApplicationPage } from './pages/application.tsx';
import { ApplicationsPage } from './pages/applications.tsx';
import { ApprovalsPage } from './pages/approvals.tsx';
import { KeysPage } from './pages/keys.tsx';
import { LogPage } from './pages/log.tsx';
import { OverviewPage } from './pages/overview.tsx';
import { PeoplePage, PersonPage } from './pages/people.tsx';
import { ProblemsPage } from './pages/problems.tsx';
import { ProviderReturn } from './pages/provider-return.tsx';
import { ProxiesPage, ProxyPage } from './pages/proxies.tsx';
import { ReactorPage, ReactorsPage } from './pages/reactors.tsx';
import { SettingsPage } from './pages/settings.tsx';
import { SignIn } from './pages/sign-in.tsx';
import { TokenPage } from './pages/token.tsx';
import { TokensPage } from './pages/tokens.tsx';
import { WebhookPage } from './pages/webhook.tsx';
import { WebhooksPage } from './pages/webhooks.tsx';
import { t } from './texts.ts';
import { Empty } from './ui/basics.tsx';
import { Cover } from './ui/cover.tsx';
import { Page } from './ui/page.tsx';
import { PresenceDialog } from './ui/presence-dialog.tsx';
import { Shell, Unreachable } from './ui/shell.tsx';
import { Toasts } from './ui/toasts.tsx';

type Route = readonly [pattern: RegExp, show: (id: string, session: Session) => ComponentChild];

const routes: readonly Route[] = [
  [/^\/$/, () => <OverviewPage />],
  [/^\/tokens$/, () => <TokensPage />],
  [/^\/tokens\/(.+)$/, (id) => <TokenPage key={id} id={id} />],
  [/^\/applications$/, () => <ApplicationsPage />],
  [/^\/applications\/(.+)$/, (id) => <ApplicationPage key={id} id={id} />],
  [/^\/proxies$/, () => <ProxiesPage />],
  [/^\/proxies\/(.+)$/, (id) => <ProxyPage key={id} id={id} />],
  [/^\/reactors$/, () => <ReactorsPage />],
  [/^\/reactors\/(.+)$/, (id) => <ReactorPage key={id} id={id} />],
  [/^\/webhooks$/, () => <WebhooksPage />],
  [/^\/webhooks\/(.+)$/, (id) => <WebhookPage key={id} id={id} />],
  [/^\/approvals$/, () => <ApprovalsPage />],
  [/^\/log$/, () => <LogPage />],
  [/^\/keys$/, () => <KeysPage />],
  [/^\/people$/, () => <PeoplePage />],
  [/^\/people\/(.+)$/, (id) => <PersonPage key={id} id={id} />],
  [/^\/settings$/, () => <SettingsPage />],
  [/^\/problems$/, () => <ProblemsPage />],
  [/^\/account$/, (_, session) => <AccountPage session={session} />],
];

function CurrentPage({ session }: { readonly session: Session }) {
  const { path } = place.value;
  for (const [pattern, show] of routes) {
    const found = pattern.exec(path);
    if (found) return <>{show(decodeURIComponent(found[1] ?? ''), session)}</>;
  }
  return (
    <Page title={t.notFound.title}>
      <Empty title={t.notFound.title}>{t.notFound.text}</Empty>
    </Page>
  );
}

export function App() {
  const { kind } = state.value;
  const shown = session.value;
  if (providerReturn !== undefined && kind === 'unknown') {
    return <ProviderReturn response={providerReturn} />;
  }
  return (
    <>
      {shown && (
        <div class={kind === 'signed out' ? 'covered' : undefined}>
          <Shell session={shown}>
            <CurrentPage session={shown} />
          </Shell>
        </div>
      )}
      {kind === 'signed in' && <PresenceDialog />}
      {kind === 'signed out' && (
        <Cover isOverPage={shown !== undefined}>
          <SignIn />
        </Cover>
      )}
      {kind === 'unreachable' && !shown && <Unreachable />}
      <Toasts />
    </>
  );
}
