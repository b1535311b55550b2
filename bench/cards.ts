/** Card numbers nobody owns: the test range 424242, unique within a run, valid by Luhn. */
import { randomInt } from 'node:crypto';

const range = '424242';
const serialDigits = 9;

/** More than any one load sends. */
const serialsPerLoad = 1_000_000;

let nextSerial = randomInt(10 ** serialDigits);

/** The first of so many serials that nobody else is given. */
export function takeSerials(count = serialsPerLoad): number {
  nextSerial += count;
  return nextSerial - count;
}

/** The number with the given serial, which wraps round after 10^9. */
export function cardNumber(serial: number): string {
  const body = range + String(serial % 10 ** serialDigits).padStart(serialDigits, '0');
  return body + luhnDigit(body);
}

/** The request for a card of that number, and what else it says. */
export function cardBody(number: string, more: object = {}): string {
  const data = { number, expiration_month: 12, expiration_year: 2030, cvc: '123' };
  return JSON.stringify({ type: 'card', data, ...more });
}

function luhnDigit(body: string): number {
  let sum = 0;
  for (let place = 0; place < body.length; place += 1) {
    const digit = Number(body[body.length - 1 - place]);
    const doubled = place % 2 === 0 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return (10 - (sum % 10)) % 10;
}
