/** The page of approvals: a person decides from a summary, in which nothing of a program runs. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { hour, second } from '../../src/base/clock.ts';
import { withoutBrowser } from '../support/browser.ts';
import { button, cardNumber, consoleOf, openPage } from '../support/console-pages.ts';
import { answer } from '../support/destination.ts';
import { beginRequest, newAgent } from '../support/egress.ts';
import { onBothEngines } from '../support/engines.ts';
import { untilSo } from '../support/poll.ts';
import { startCalled } from '../support/proxy-calls.ts';

const { destination, environment } = await startCalled({ after });
const authority = `localhost:${destination.port}`;

onBothEngines('approvals in the console', (engine) => {
  if (withoutBrowser) {
    test('approvals in the console', { skip: withoutBrowser }, () => undefined);
    return;
  }
  const { newDesk } = consoleOf(engine, {
    environment: { ...environment, STRONGROOM_EGRESS_ADDRESS: '127.0.0.1:0' },
  });

  test('a person approves and denies what waits, and sees values as their own role shows them', async () => {
    const { tenant, page, complaints, context } = await newDesk();
    const data = { number: cardNumber, expiration_month: 12, expiration_year: 2030 };
    await tenant.token({ id: 'card', type: 'card', data });
    destination.behave(answer(200, [], 'ok'));
    const agent = await newAgent(tenant, {
      host: 'localhost',
      port: destination.port,
      tokens: ['card'],
      places: ['json:card.*'],
      approval: 'first',
    });
    await openPage(page, 'Approvals');
    await page.getByText('Nothing waits').waitFor();
    const sentBefore = destination.requests.length;
    const path = '/v1/<img/src=x/onerror=alert(1)>';
    const denied = await beginRequest({ after }, agent, { authority, path });
    await page.getByText(path).waitFor();
    await page.getByText('Value in json:card.*').waitFor();
    await page.getByText(/4242$/).waitFor();
    assert.ok(!(await page.content()).includes(cardNumber), 'masked, as without a reason');
    assert.equal(destination.requests.length, sentBefore);
    await button(page, 'Deny').click();
    assert.equal((await denied.response)?.status, 403);
    const approved = await beginRequest({ after }, agent, { authority, path: '/v1/pay' });
    await button(page, 'Approve this host for a day').click();
    assert.equal((await approved.response)?.status, 200);
    await page.getByText('approved for a day').waitFor();
    await page.getByText('Administrator').first().waitFor();
    assert.equal(destination.requests.length, sentBefore + 1);
    assert.deepEqual(complaints, []);
    await context.close();
  });

  test('an open page of approvals asks ever less often, and at once when a person returns', async () => {
    const { page, complaints, context } = await newDesk();
    let looks = 0;
    page.on('request', (request) => {
      if (new URL(request.url()).pathname === '/approvals') looks += 1;
    });
    await page.clock.install();
    await openPage(page, 'Approvals');
    await page.getByText('Nothing waits').waitFor();
    await page.clock.runFor('20:00');
    // The fast clock also ends the patience of the client, which then asks twice a look.
    assert.ok(looks >= 2 && looks <= 200, `${looks} requests in twenty minutes`);
    await page.clock.pauseAt(Date.now() + hour);
    const asksAgain = async (act: () => Promise<unknown>) => {
      await page.clock.runFor(second);
      const before = looks;
      await act();
      await page.clock.runFor(second);
      await untilSo(
        () => looks > before,
        () => 'the page does not ask again',
      );
    };
    await asksAgain(() => page.evaluate("dispatchEvent(new Event('focus')); 0"));
    await asksAgain(() => button(page, 'Look now').click());
    assert.deepEqual(complaints, []);
    await context.close();
  });
});
